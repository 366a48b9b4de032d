# Sourced by the scripts behind the Makefile. Start reading at need_go.
# shellcheck shell=bash
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export LC_ALL=C.UTF-8

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$1" >&2; [ $# -lt 2 ] || printf 'remedy: %s\n' "$2" >&2; exit 1; }

# need_go: a Go that is new enough for go.mod.
need_go() {
  local want have
  want=$(awk '$1 == "go" {print $2; exit}' go.mod)
  command -v go >/dev/null || die "Go is not installed" "install Go $want or newer from https://go.dev/dl/ and put its bin folder on PATH"
  have=$(go env GOVERSION) && have=${have#go}
  [ "$(printf '%s\n' "$want" "$have" | sort -V | head -n1)" = "$want" ] ||
    die "Go $have is too old: this repository needs $want" "install Go $want or newer from https://go.dev/dl/"
}

# as_root COMMAND...: directly as root, else through sudo.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

need_root() {
  [ "$(id -u)" = 0 ] && return
  command -v sudo >/dev/null || die "$1 needs root, and there is no sudo" "run the same command as root, or install sudo"
  sudo -n true 2>/dev/null || sudo -v || die "$1 needs root, and sudo refuses" "run the same command as root"
}

# packages FILE...: the names in package lists; # begins a comment.
packages() { local f; for f in "$@"; do [ ! -e "$f" ] || sed 's/#.*//' "$f"; done | tr -s ' \t' '\n' | sed '/^$/d' | sort -u; }

# apt_install NAME...: installs what is missing; does nothing, and asks for nothing, when all is there.
apt_install() {
  local missing=() p
  for p in "$@"; do
    dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed || missing+=("$p")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || die "these Debian packages are missing, and there is no apt-get: ${missing[*]}" "install their like with the package manager of this system"
  need_root "installing packages"
  say "installing ${#missing[@]} packages: ${missing[*]}"
  local log; log=$(mktemp)
  { as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null ||
    { tail -n 15 "$log" >&2; rm -f "$log"; die "apt-get could not install: ${missing[*]}" "run: apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"; }
  rm -f "$log"
}

# build_bin: bin/hcpd and bin/hcpctl.
build_bin() {
  mkdir -p bin
  CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/hcpd ./cmd/hcpctl
}
