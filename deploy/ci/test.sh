#!/usr/bin/env bash
# make test: installs what the tests need (apt), builds, runs every test of the
# repository, and leaves nothing running, whatever happens.
#
# The packages in race run under the race detector. The packages in rooted talk
# to a real libvirt in namespaces of its own and run as root.
. "$(dirname "$0")/lib.sh"
need_go
need_root "make test"

race='^github.com/lotuscloud/hcp/(actors|cluster|persistence|transport|api|drivers/sim)(/|$)'
rooted='^github.com/lotuscloud/hcp/(drivers/libvirt|tests/e2e|tests/chaos)(/|$)'

mapfile -t wanted < <(packages deploy/*/packages.txt)
apt_install "${wanted[@]}"

# Everything temporary is below one folder, so that an aborted run can be undone:
# private libvirt hosts are known there by NAME.dir.
scratch=$(mktemp -d "${TMPDIR:-/tmp}/hcp.XXXX")
export TMPDIR=$scratch
cleanup() {
  local rc=$? known
  trap - EXIT INT TERM
  while read -r known; do
    as_root env HCP_HOSTS="${known%/*}" deploy/libvirt/host.sh stop "$(basename "$known" .dir)" >/dev/null 2>&1 || true
  done < <(as_root find "$scratch" -maxdepth 6 -name '*.dir' -type f 2>/dev/null)
  as_root rm -rf --one-file-system "$scratch" || true
  exit "$rc"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say "building"
build_bin
export HCPTEST_BIN="$PWD/bin"
say "the guest image"
deploy/guest/build.sh >/dev/null

mapfile -t all < <(go list ./...)
select_pkgs() { printf '%s\n' "${all[@]}" | grep "$@" || true; }
mapfile -t race_pkgs < <(select_pkgs -E "$race")
mapfile -t rooted_pkgs < <(select_pkgs -E "$rooted")
mapfile -t plain_pkgs < <(printf '%s\n' "${all[@]}" | grep -vE "$race" | grep -vE "$rooted")

failed=0
lane() { # lane TITLE PACKAGES... -- FLAGS...
  local title=$1 pkgs=() start=$SECONDS; shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do pkgs+=("$1"); shift; done
  shift
  [ ${#pkgs[@]} -gt 0 ] || return 0
  say "$title: ${#pkgs[@]} packages"
  "${run[@]}" go test "$@" "${pkgs[@]}" || failed=1
  say "$title: $((SECONDS - start)) s"
}

run=(env)
root_exec=()
[ "$(id -u)" = 0 ] || root_exec=(-exec 'sudo -E')
lane 'plain tests' "${plain_pkgs[@]}" -- -p 2 -timeout 10m
lane 'race detector' "${race_pkgs[@]}" -- -race -p 2 -timeout 15m
run=(env HCP_REQUIRE_LIBVIRT=1)
lane 'whole system and real libvirt' "${rooted_pkgs[@]}" -- -p 1 -count 1 -timeout 20m "${root_exec[@]}"

[ "$failed" = 0 ] || die "some tests failed" "see the FAIL lines above; one package again: go test ./path/to/package"
say "all tests passed in $((SECONDS / 60)) min $((SECONDS % 60)) s"
