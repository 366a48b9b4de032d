#!/usr/bin/env bash
# make demo-clean: deletes the demo's VMs through HCP, ends hcpd and the private
# libvirt host, removes .cache/demo, and then looks whether anything is left. The
# built guest image stays in .cache/guest, the packages stay installed.
. "$(dirname "$0")/lib.sh"
[ -d "$D" ] || { say "there is no demo"; exit 0; }
need_root "make demo-clean"

# What HCP does not delete in time is removed with libvirt below.
delete_vms() {
  local vms
  alive || return 0
  mapfile -t vms < <(tenant vm list -o json | tr -d ' \n' | grep -o '"id":"vm_[0-9a-f]*"' | cut -d'"' -f4 | sort -u)
  [ ${#vms[@]} -gt 0 ] || return 0
  say "hcpctl vm delete ${vms[*]}"
  tenant vm delete "${vms[@]}" --yes --wait-timeout 2m || say "HCP did not delete all of them; libvirt does"
}

# On the system's own libvirt the demo made the pool hcp, unless it was there
# before: then its images stay and only the machines go.
clean_system() {
  local d path v
  virsh_host version >/dev/null 2>&1 || die "libvirt does not answer at qemu:///system: what the demo made there cannot be removed" "start libvirtd, then: make demo-clean"
  [ ! -e "$D/pool-was-there" ] || { say "the pool hcp was there before the demo: it stays, with the demo's image in it"; return 0; }
  virsh_host pool-info hcp >/dev/null 2>&1 || return 0
  path=$(virsh_host pool-dumpxml hcp | sed -n 's|.*<path>\(.*\)</path>.*|\1|p')
  for d in $(virsh_host list --all --uuid); do
    virsh_host dumpxml "$d" | grep -qF "'$path/" || continue
    say "removing the domain $d"
    virsh_host destroy "$d" >/dev/null 2>&1 || true
    virsh_host undefine "$d" --managed-save --snapshots-metadata --nvram >/dev/null || true
  done
  say "removing the pool hcp"
  virsh_host pool-refresh hcp >/dev/null 2>&1 || true
  for v in $(virsh_host vol-list hcp | awk 'NF {print $1}'); do virsh_host vol-delete "$v" --pool hcp >/dev/null || true; done
  virsh_host pool-destroy hcp >/dev/null || true
  as_root rmdir "$path" || true
  virsh_host pool-undefine hcp >/dev/null || true
}

# leftovers: a line for each thing of the demo that is still here.
leftovers() {
  pgrep -af -- "$D/" | sed 's/^/process /' || true
  awk -v d="$D/" 'index($2, d) == 1 {print "mount", $2}' /proc/mounts
  [ ! -e "$D" ] || echo "folder $D"
  [ "$system" = no ] || virsh_host pool-list --all --name 2>/dev/null | grep -x hcp | sed 's/^/pool /' || true
}

delete_vms
say "stopping hcpd"
stop_hcpd
system=no
if is_private || [ -d "$HCP_HOSTS" ]; then
  say "stopping the private libvirt host"
  host remove demo
elif [ -e "$D/libvirt" ]; then
  clean_system
  [ -e "$D/pool-was-there" ] || system=yes
fi
as_root rm -rf --one-file-system "$D"
left=$(leftovers)
[ -z "$left" ] || die "this is left of the demo: ${left//$'\n'/; }" "end or remove it by hand"
say "the demo is gone: no process, mount, network or volume of it is left"
