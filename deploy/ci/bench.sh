#!/usr/bin/env bash
# make bench: measures HCP beside the machine's own limits of the same run. The
# table goes to stdout and into docs/benchmarks.md
. "$(dirname "$0")/lib.sh"
need_go
report=$(mktemp)
trap 'rm -f "$report"' EXIT
{ HCP_BENCH=1 go test -count 1 -timeout 10m -v -run '^TestBench$' ./tests/load | grep -vE '^(===|---|PASS|ok)'; } | tee "$report"
[ "${PIPESTATUS[0]}" = 0 ] || die "the benchmark did not finish" "see the lines above"
{
  sed '/^```/,$d' docs/benchmarks.md
  printf '```\n%d cores, %s, %s\n\n' "$(nproc)" "$(go env GOVERSION)" "$(uname -sm)"
  cat "$report"
  printf '```\n'
} >"$report.md" && mv "$report.md" docs/benchmarks.md
