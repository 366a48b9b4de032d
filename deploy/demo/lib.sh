# Sourced by demo.sh and clean.sh: where the demo keeps what, and how to ask it.
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/../ci/lib.sh"

D=$PWD/.cache/demo
HCP_HOSTS=$D/hosts
VM=web-1
LISTEN=${DEMO_LISTEN:-127.0.0.1:8080}
ADMIN_LISTEN=${DEMO_ADMIN_LISTEN:-127.0.0.1:8081}

# ready NAME: a field of what hcpd wrote once it served.
ready() { sed -n "s/^ *\"$1\": *\"\(.*\)\",\{0,1\}$/\1/p" "$D/ready.json" 2>/dev/null; }

# daemon: the process id of the demo's own hcpd, if it lives.
daemon() {
  local pid
  pid=$(cat "$D/hcpd.pid" 2>/dev/null) && [ -n "$pid" ] &&
    tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF -- "--data $D/data " && echo "$pid"
}

# alive: that hcpd answers.
livez() { exec 3<>"/dev/tcp/${1%:*}/${1##*:}" && printf 'GET /livez HTTP/1.0\r\n\r\n' >&3 && timeout 5 head -n1 <&3 | grep -q ' 200'; }
alive() { daemon >/dev/null && [ -s "$D/ready.json" ] && (livez "$(ready admin_url | sed 's|.*//||')") 2>/dev/null; }

stop_hcpd() {
  local pid
  if pid=$(daemon); then
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 200); do [ -e "/proc/$pid" ] || break; sleep 0.1; done
    [ ! -e "/proc/$pid" ] || { kill -9 "$pid" 2>/dev/null || true; sleep 0.5; }
  fi
  rm -f "$D/hcpd.pid" "$D/ready.json"
}

tenant() { HCP_SERVER=$(ready url) HCP_PROJECT=$(ready project) HCP_TOKEN=$(ready token) HCP_CONFIG=$D/hcpctl.yaml bin/hcpctl "$@"; }
operator() { HCP_SERVER=$(ready url) HCP_TOKEN=$(ready ops_token) HCP_CONFIG=$D/hcpctl.yaml bin/hcpctl "$@"; }

# field NAME: the first string field of that name in the JSON on stdin.
field() { sed -n "s/^.*\"$1\": *\"\([^\"]*\)\".*$/\1/p" | head -n1; }

# on_host COMMAND...: where the guests' libvirtd is: here, or in the namespaces of
# the private host.
is_private() { [ -e "$D/private" ]; }
host() { as_root env HCP_HOSTS="$HCP_HOSTS" deploy/libvirt/host.sh "$@"; }
on_host() { if is_private; then host exec demo "$@"; else as_root "$@"; fi; }
virsh_host() { on_host timeout 30 virsh -q -c qemu:///system "$@" </dev/null; }
