#!/usr/bin/env bash
# make build: the two binaries, static.
. "$(dirname "$0")/lib.sh"
need_go
build_bin
say "bin/hcpd and bin/hcpctl are built"
