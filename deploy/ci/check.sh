#!/usr/bin/env bash
# make check: what a commit must pass, in the time of a coffee. Installs nothing.
. "$(dirname "$0")/lib.sh"
need_go

failed=0
run() { # run TITLE COMMAND...
  local start=$SECONDS out
  if out=$("${@:2}" 2>&1); then say "$1: ok ($((SECONDS - start)) s)"; else say "$1: FAILED"; printf '%s\n' "$out" >&2; failed=1; fi
}
formatted() { local f; f=$(git ls-files '*.go' | xargs -r -d '\n' gofmt -l) && [ -z "$f" ] || { echo "gofmt -w would change:"; echo "$f"; return 1; }; }

run gofmt formatted
run 'go vet' go vet ./...
run staticcheck go tool staticcheck ./...
run 'house rules' go test ./internal/archtest
run 'short tests' env HCP_SKIP_E2E=1 go test -short -timeout 3m ./...
[ "$failed" = 0 ] || die "make check found something" "see above"
