#!/usr/bin/env bash
# make demo: one real virtual machine, made by HCP on this machine. A second run
# reuses what is there and takes seconds. make demo-clean removes it all.
#
#   DEMO_LISTEN, DEMO_ADMIN_LISTEN   other addresses than 127.0.0.1:8080 and :8081
. "$(dirname "$0")/lib.sh"
building=
trap 'rc=$?; [ -z "$building" ] || kill "$building" 2>/dev/null || true; [ $rc = 0 ] || printf "The demo ended early. The log of hcpd is %s; to start over: make demo-clean && make demo\n" "${D#"$PWD"/}/hcpd.log" >&2' EXIT

prepare() {
  [ "$(uname -m)" = x86_64 ] || die "the demo's guest is for x86_64, this machine is $(uname -m)"
  need_go
  need_root "make demo"
  mkdir -p "$D"
  chmod 711 "$D" # hcpd's log and the ready file have tokens; QEMU may have to pass
  say "building hcpd and hcpctl"
  build_bin >"$D/build.log" 2>&1 & # beside the next steps, which wait for the network
  building=$!
  mapfile -t wanted < <(packages deploy/libvirt/packages.txt deploy/guest/packages.txt)
  apt_install "${wanted[@]}"
  say "the guest image (built once, from Debian packages)"
  IMAGE_FILE=$(deploy/guest/build.sh) || die "the guest image could not be built" "the reason is above; then: make demo"
  wait "$building" || { tail -n 15 "$D/build.log" >&2; die "hcpd and hcpctl do not build" "see above, or: make build"; }
  building=
}

# libvirt: the system's libvirtd when this user can reach it, else a private one
# in namespaces of its own, which ends without a trace.
libvirt() {
  if ! is_private && timeout 10 virsh -q -c qemu:///system uri >/dev/null 2>&1; then
    LIBVIRT=qemu:///system
    [ -e "$D/libvirt" ] || ! virsh_host pool-info hcp >/dev/null 2>&1 || : >"$D/pool-was-there"
    say "libvirt: the one of this system, $LIBVIRT"
    return
  fi
  need_root "a private libvirt host"
  : >"$D/private"
  LIBVIRT=$(host start demo) || die "the private libvirt host did not start" "see $HCP_HOSTS/demo/log/libvirtd.log; then: make demo-clean"
  say "libvirt: a private one in its own namespaces, as no system libvirtd answers"
}

# hcpd is started again when it was built anew since; its data stay.
hcpd() {
  if alive && [ "$(cat "$D/libvirt" 2>/dev/null)" = "$LIBVIRT" ] &&
    [ "$(stat -Lc %i "/proc/$(daemon)/exe")" = "$(stat -c %i bin/hcpd)" ]; then
    say "hcpd runs already: $(ready url)"
    return
  fi
  stop_hcpd
  say "starting hcpd on $LISTEN"
  local pid until=$((SECONDS + 60))
  (umask 077 && : >"$D/hcpd.log")
  setsid bin/hcpd --dev --libvirt "$LIBVIRT" --data "$D/data" --listen "$LISTEN" --admin-listen "$ADMIN_LISTEN" \
    --ready-file "$D/ready.json" --log.format text </dev/null >>"$D/hcpd.log" 2>&1 &
  pid=$!
  echo "$pid" >"$D/hcpd.pid"
  echo "$LIBVIRT" >"$D/libvirt"
  until [ -s "$D/ready.json" ]; do
    kill -0 "$pid" 2>/dev/null || {
      rm -f "$D/hcpd.pid"
      grep -E '^(hcpd:|Try:|Cause:|panic)' "$D/hcpd.log" >&2 || tail -n 5 "$D/hcpd.log" >&2
      die "hcpd did not start, see above" "if a port is taken: end its process, or DEMO_LISTEN=127.0.0.1:18080 DEMO_ADMIN_LISTEN=127.0.0.1:18081 make demo"
    }
    [ $SECONDS -lt $until ] || die "hcpd is not ready after 60 s" "see $D/hcpd.log"
    sleep 0.1
  done
  say "hcpd serves at $(ready url)"
}

# image: the guest's bytes on the libvirt cluster. Its name carries the sum once
# another guest is there under the plain one.
image() {
  local sum have
  sum=$(sha256sum "$IMAGE_FILE" | cut -d' ' -f1)
  IMAGE=tiny-linux
  have=$(operator image get "$IMAGE" -o json 2>/dev/null | field sha256 || true)
  if [ -n "$have" ] && [ "$have" != "$sum" ]; then
    IMAGE=tiny-linux-${sum:0:8}
    have=$(operator image get "$IMAGE" -o json 2>/dev/null | field sha256 || true)
  fi
  [ -n "$have" ] || show operator image create "$IMAGE" --version 1 --file "$IMAGE_FILE"
  # an image is offered in the zones of the clusters that have its bytes
  operator image get "$IMAGE" -o json | grep -q '"libvirt"' ||
    show operator image import "$IMAGE" --cluster local-libvirt --file "$IMAGE_FILE"
}

# show COMMAND...: prints what a person would type, then does it.
show() {
  local who=$1; shift
  printf '\n\033[1m$ hcpctl %s\033[0m%s\n' "$*" "$([ "$who" = operator ] && echo '    # as operator')"
  "$who" "$@"
}

machine() {
  local state
  state=$(tenant vm get "$VM" -o json 2>/dev/null | field state || true)
  case $state in
  '') show tenant vm create "$VM" --image "$IMAGE" --flavor tiny --zone libvirt --wait-timeout 5m ;;
  running) ;;
  stopped) show tenant vm start "$VM" ;;
  *) show tenant vm wait "$VM" --for state=running --timeout 3m ;;
  esac
  ID=$(tenant vm get "$VM" -o json | field id)
  JOB=$(tenant job list --vm "$VM" --limit 1 -o name | head -n1)
  JOB=${JOB##*/}
  show tenant job describe "$JOB"
  show tenant vm wait "$VM" --for address --timeout 5m
  show tenant vm get "$VM" -o wide
}

proof() {
  local uuid=${ID#vm_} log until greeting=''
  uuid=${uuid:0:8}-${uuid:8:4}-${uuid:12:4}-${uuid:16:4}-${uuid:20}
  log=$(virsh_host dumpxml "$uuid" | sed -n "s/^.*<log file='\([^']*\)'.*$/\1/p" | head -n1)
  until=$((SECONDS + 120))
  while [ -z "$greeting" ] && [ $SECONDS -lt $until ]; do
    greeting=$(on_host cat "$log" 2>/dev/null | tr -d '\r' | grep -a '^Hello from' | tail -n1 || true)
    [ -n "$greeting" ] || sleep 0.5
  done
  [ -n "$greeting" ] || die "the guest did not greet on its serial console within two minutes" "see $log"
  printf '\nThe guest says on its serial console:\n  %s\n' "$greeting"
  printf '\nlibvirt agrees: virsh dominfo %s\n' "$uuid"
  virsh_host dominfo "$uuid" | sed -n '/^\(Name\|UUID\|State\|CPU(s)\|Max memory\):/s/^/  /p'
  virsh_host domstate "$uuid" | grep -q running || die "libvirt does not say that the machine runs" "tail $D/hcpd.log"
}

farewell() {
  cat <<TEXT

$VM runs; make demo took $SECONDS s. To look further, paste these:
  export HCP_SERVER=$(ready url) HCP_PROJECT=$(ready project) PATH=\$PWD/bin:\$PATH
  export HCP_TOKEN=\$(sed -n 's/^ *"token": "\(.*\)",/\1/p' .cache/demo/ready.json)
  hcpctl vm list
  hcpctl vm describe $VM
  hcpctl event watch            # in a second terminal, then:
  hcpctl vm reboot $VM
  hcpctl vm stop $VM && hcpctl vm start $VM
The log of hcpd is .cache/demo/hcpd.log; make demo-clean removes everything.
TEXT
}

prepare
libvirt
hcpd
image
machine
proof
farewell
