#!/usr/bin/env bash
# make bench: measures HCP beside the machine's own limits; the table goes to
# stdout and to docs/benchmarks.md. Nothing is asserted.
. "$(dirname "$0")/lib.sh"
need_go
build_bin
export HCP_BIN="$PWD/bin"
go run ./tests/load -out docs/benchmarks.md "$@"
