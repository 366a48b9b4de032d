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
rooted='^github.com/lotuscloud/hcp/(drivers/libvirt|tests)(/|$)'

mapfile -t wanted < <(packages deploy/*/packages.txt)
apt_install "${wanted[@]}"

scratch=$(mktemp -d "${TMPDIR:-/tmp}/hcp-test.XXXXXX")
cleanup() {
  local rc=$?
  trap - EXIT INT TERM
  [ ! -x deploy/libvirt/host.sh ] || as_root env HCP_HOSTS="$scratch/hosts" deploy/libvirt/host.sh stop-all >/dev/null 2>&1 || true
  as_root rm -rf --one-file-system "$scratch" || true
  exit "$rc"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say "building"
build_bin
export HCPTEST_BIN="$PWD/bin"

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
  go test "$@" "${pkgs[@]}" || failed=1
  say "$title: $((SECONDS - start)) s"
}

root_exec=()
[ "$(id -u)" = 0 ] || root_exec=(-exec 'sudo -E')
lane 'plain tests' "${plain_pkgs[@]}" -- -p 2 -timeout 10m
lane 'race detector' "${race_pkgs[@]}" -- -race -p 2 -timeout 15m
lane 'whole system and real libvirt' "${rooted_pkgs[@]}" -- -p 1 -count 1 -timeout 20m "${root_exec[@]}"

[ "$failed" = 0 ] || die "some tests failed" "see the FAIL lines above; one package again: go test ./path/to/package"
say "all tests passed in $((SECONDS / 60)) min $((SECONDS % 60)) s"
