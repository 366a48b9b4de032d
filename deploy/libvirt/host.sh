#!/usr/bin/env bash
# A private libvirt host on this machine, without systemd: libvirtd, virtlogd and
# all their QEMU and dnsmasq processes in mount, network, host name and process
# namespaces of their own. Several run side by side, and each ends without a
# trace, since everything of it dies with its first process.
#
#   host.sh start NAME [DIR]    start (or find running); prints the URI
#   host.sh uri NAME            qemu+unix:///system?socket=DIR/run/libvirt-sock
#   host.sh exec NAME COMMAND   run inside, e.g. exec h1 virsh list --all
#   host.sh signal NAME SIGNAL  send a signal to libvirtd alone
#   host.sh restart NAME        kill -9 libvirtd and start it again; guests live on
#   host.sh stop NAME           end it and all its guests; DIR stays
#   host.sh remove NAME         stop, and delete DIR
#   host.sh stop-all            stop every host known in $HCP_HOSTS
#
# DIR holds the host's etc, lib, cache, log and run folders, default
# $HCP_HOSTS/NAME; HCP_HOSTS defaults to /var/tmp/hcp-hosts. Console logs of guests
# stand in DIR/log/qemu. The host has only a loopback and its own NAT network
# `default` (DHCP, no way out). Reach it from outside through the socket:
#   virsh -c "$(host.sh uri NAME)" list --all
# Guests run under TCG: the same on every machine, also where /dev/kvm is there but
# does not work (nested, emulated). HCP_KVM=1 lets a host use /dev/kvm.
# As root, or under sudo: then the socket is open to the calling user's group.
# Needs packages.txt.
set -Eeuo pipefail
export LC_ALL=C.UTF-8 PATH=$PATH:/usr/sbin:/sbin
HCP_HOSTS=${HCP_HOSTS:-/var/tmp/hcp-hosts}
READY_WITHIN=60 # seconds for both daemons and the network, on a busy machine
self=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

die() { printf 'error: %s\n' "$1" >&2; [ $# -lt 2 ] || printf 'remedy: %s\n' "$2" >&2; exit 1; }
usage() { sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "$self/host.sh" >&2; exit 2; }

# dir_of NAME: the folder of a host that was started
dir_of() {
  case $1 in '' | *[!a-z0-9-]*) die "'$1' is no host name: use a-z, 0-9 and -" ;; esac
  [ -f "$HCP_HOSTS/$1.dir" ] && cat "$HCP_HOSTS/$1.dir" || echo "$HCP_HOSTS/$1"
}

# first_process DIR: the host's first process seen from outside, if it lives. The
# start time guards against a process id that came round again.
started_at() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
first_process() {
  local pid start
  read -r pid start 2>/dev/null <"$1/first" || return 1
  [ "$(started_at "$pid")" = "$start" ] && echo "$pid"
}

inside() { # inside DIR COMMAND...
  local pid
  pid=$(first_process "$1") || die "no host runs in $1" "host.sh start NAME"
  shift
  exec_inside "$pid" "$@"
}
# -r: under a changed root, the mount namespace alone would lead to the root above it.
exec_inside() { local pid=$1; shift; nsenter -t "$pid" -m -n -u -p -r -- "$@"; }

socket_group() { [ -n "${SUDO_GID:-}" ] && getent group "$SUDO_GID" | cut -d: -f1 || echo root; }

configure() { # configure NAME DIR
  local name=$1 dir=$2 seed net uuid
  mkdir -p "$dir"/{etc/qemu/networks/autostart,lib,cache,log/qemu,run}
  chmod 755 "$dir" "$dir"/{lib,log,log/qemu,run}
  seed=$(printf '%s' "$name$dir" | sha256sum)
  uuid=$(printf '%s-%s-4%s-8%s-%s' "${seed:0:8}" "${seed:8:4}" "${seed:12:3}" "${seed:15:3}" "${seed:18:12}")
  net=$((100 + 0x${seed:30:4} % 150))
  cat >"$dir/etc/libvirtd.conf" <<CONF
listen_tls = 0
listen_tcp = 0
listen_addr = "127.0.0.1"
auth_unix_rw = "none"
auth_unix_ro = "none"
unix_sock_group = "$(socket_group)"
unix_sock_rw_perms = "0770"
host_uuid = "$uuid"
max_clients = 200
log_outputs = "2:file:/var/log/libvirt/libvirtd.log"
CONF
  # cgroup_controllers: two hosts with a domain of one name would share a path
  cat >"$dir/etc/qemu.conf" <<CONF
user = "root"
group = "root"
security_driver = "none"
cgroup_controllers = [ ]
namespaces = [ ]
remember_owner = 0
vnc_listen = "127.0.0.1"
stdio_handler = "logd"
CONF
  : >"$dir/etc/libvirt.conf"
  : >"$dir/etc/virtlogd.conf"
  [ -e "$dir/etc/qemu/networks/default.xml" ] || cat >"$dir/etc/qemu/networks/default.xml" <<XML
<network>
  <name>default</name>
  <forward mode='nat'/>
  <bridge name='virbr0' stp='on' delay='0'/>
  <ip address='192.168.$net.1' netmask='255.255.255.0'>
    <dhcp><range start='192.168.$net.2' end='192.168.$net.254'/></dhcp>
  </ip>
</network>
XML
  ln -sf ../default.xml "$dir/etc/qemu/networks/autostart/default.xml"
}

# hide_kvm: libvirtd asks access(2) whether /dev/kvm can be written, and as root only
# a read-only mount says no. Where it says yes and QEMU has no KVM, libvirtd probes
# QEMU anew for each define: seconds of CPU every time.
hide_kvm() { # hide_kvm DIR
  [ -e /dev/kvm ] && [ "${HCP_KVM:-}" != 1 ] || return 0
  : >"$1/no-kvm"
  mount --bind "$1/no-kvm" /dev/kvm
  mount -o remount,bind,ro /dev/kvm
}

# The first process inside: it sees its own /proc, has the five fixed paths of
# libvirt on DIR, and reaps whatever is orphaned to it.
enter() { # enter NAME DIR
  local name=$1 dir=$2 d
  mount --make-rprivate / || die "/ is not a mount point here: the host's mounts would leak" "bind the root on itself first"
  mount -t proc proc /proc
  mkdir -p /etc/libvirt /var/lib/libvirt /var/cache/libvirt /var/log/libvirt /run/libvirt
  mount --bind "$dir/etc" /etc/libvirt
  for d in lib cache log; do mount --bind "$dir/$d" "/var/$d/libvirt"; done
  mount --bind "$dir/run" /run/libvirt
  hide_kvm "$dir"
  hostname "$name"
  ip link set lo up
  trap 'exit 0' TERM
  : >"$dir/entered"
  while :; do sleep 3600 & wait $! || true; done
}

daemons() { # daemons PID DIR: start what does not run
  exec_inside "$1" sh -c '
    pgrep -x virtlogd >/dev/null 2>&1 || { rm -f /run/libvirt/virtlogd.pid; virtlogd -d -p /run/libvirt/virtlogd.pid; }
    rm -f /run/libvirt/libvirtd.pid
    libvirtd -d -p /run/libvirt/libvirtd.pid' 9>&- >>"$2/log/start.log" 2>&1
}

await() { # await SECONDS WHAT COMMAND...
  local until=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $until ] || return 1
    sleep 0.1
  done
}

start() { # start NAME [DIR]
  local name=$1 dir pid outer
  dir=${2:-$(dir_of "$name")}
  mkdir -p "$HCP_HOSTS" "$dir" && dir=$(cd "$dir" && pwd)
  exec 9>"$dir/lock"
  flock -w $READY_WITHIN 9 || die "another start of $name holds $dir/lock"
  echo "$dir" >"$HCP_HOSTS/$name.dir"
  if ! first_process "$dir" >/dev/null; then
    for tool in libvirtd virtlogd qemu-system-x86_64 dnsmasq ip nsenter unshare; do
      command -v "$tool" >/dev/null || die "$tool is missing" "apt-get install --no-install-recommends $(sed 's/#.*//' "$self/packages.txt" | xargs)"
    done
    configure "$name" "$dir"
    rm -rf "$dir/entered" "$dir/first" "$dir"/run/*
    # propagation is set inside, where its failure can be told
    setsid unshare --mount --net --uts --pid --fork --kill-child --propagation unchanged \
      "$self/host.sh" __enter "$name" "$dir" </dev/null >"$dir/enter.log" 2>&1 9>&- &
    outer=$!
    await 20 entered test -e "$dir/entered" || { kill -9 "$outer" 2>/dev/null; tail -n3 "$dir/enter.log" >&2; die "the namespaces of $name cannot be made"; }
    pid=$(pgrep -P "$outer" | head -n1 || true)
    [ -n "$pid" ] || pid=$(pgrep -f "host.sh __enter $name $dir\$" | tail -n1)
    echo "$pid $(started_at "$pid")" >"$dir/first"
  fi
  pid=$(first_process "$dir")
  exec_inside "$pid" pgrep -x libvirtd >/dev/null || daemons "$pid" "$dir"
  if ! await $READY_WITHIN libvirtd answers "$name" "$dir"; then
    tail -n5 "$dir/log/start.log" "$dir/log/libvirtd.log" >&2 || true
    stop "$name"
    die "libvirtd of $name does not answer within $READY_WITHIN s" "see $dir/log/libvirtd.log"
  fi
  link_when_deep "$name"
  uri "$name"
}

answers() { # answers NAME DIR: libvirtd answers and the network is up
  inside "$2" timeout 10 virsh -q -c qemu:///system net-list --name | grep -qx default
}

# uri NAME: a socket path has at most 107 bytes, so that a deep DIR is reached by a
# short link.
uri() {
  local dir
  dir=$(short_link "$1")
  [ -L "$dir" ] || dir=$(dir_of "$1")
  echo "qemu+unix:///system?socket=$dir/run/libvirt-sock"
}
short_link() { local dir; dir=$(dir_of "$1"); echo "/run/hcp-libvirt/$1-$(printf '%s' "$dir" | sha256sum | cut -c1-8)"; }
link_when_deep() {
  local dir link
  dir=$(dir_of "$1") link=$(short_link "$1")
  [ $((${#dir} + 17)) -gt 107 ] || return 0
  mkdir -p "${link%/*}"
  ln -sfn "$dir" "$link"
}

# stop NAME: the first process takes all others of its namespaces with it. One whose
# start was cut short is known by its command line alone.
stop() {
  local dir pid
  dir=$(dir_of "$1")
  for pid in $(first_process "$dir" || true) $(pgrep -f "host.sh __enter $1 $dir\$" || true); do
    kill -9 "$pid" 2>/dev/null || true
    await 20 gone test ! -e "/proc/$pid" || die "the processes of $1 do not end"
  done
  rm -rf "$(short_link "$1")" "$dir/first" "$dir/entered" "$dir"/run/* "$HCP_HOSTS/$1.dir"
  rmdir /run/hcp-libvirt 2>/dev/null || true
}

ended() { ! exec_inside "$1" pgrep -x libvirtd; }

restart() {
  local dir pid
  dir=$(dir_of "$1")
  pid=$(first_process "$dir") || die "host $1 does not run" "host.sh start $1"
  exec_inside "$pid" pkill -9 -x libvirtd || true
  await 10 gone ended "$pid" || die "libvirtd of $1 does not end"
  daemons "$pid" "$dir"
  await $READY_WITHIN libvirtd answers "$1" "$dir" || die "libvirtd of $1 does not answer after its restart" "see $dir/log/libvirtd.log"
}

[ $# -ge 1 ] || usage
verb=$1
shift
[ "$verb" = stop-all ] || [ $# -ge 1 ] || usage
case $verb in
start | stop | remove | restart | stop-all) [ "$(id -u)" = 0 ] || die "host.sh $verb needs root" "sudo $self/host.sh $verb $*" ;;
esac
case $verb in
start) start "$@" ;;
stop) stop "$1" ;;
remove) dir=$(dir_of "$1"); stop "$1"; rm -rf --one-file-system "$dir" ;;
stop-all) for f in "$HCP_HOSTS"/*.dir; do [ ! -e "$f" ] || { f=${f##*/}; stop "${f%.dir}"; }; done ;;
restart) restart "$1" ;;
uri) uri "$1" ;;
exec) name=$1; shift; inside "$(dir_of "$name")" "$@" ;;
signal) inside "$(dir_of "$1")" pkill "-$2" -x libvirtd ;;
__enter) enter "$@" ;;
*) usage ;;
esac
