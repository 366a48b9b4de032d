#!/usr/bin/env bash
# make demo-clean: deletes the demo's VMs through HCP, ends hcpd and the private
# libvirt host, and removes .cache/demo. The built guest image stays in
# .cache/guest, the packages stay installed.
. "$(dirname "$0")/lib.sh"
[ -d "$D" ] || { say "there is no demo"; exit 0; }

if pid=$(daemon); then
  mapfile -t vms < <(tenant vm list -o json --limit 0 | tr -d ' \n' | grep -o '"id":"vm_[0-9a-f]*"' | cut -d'"' -f4 | sort -u)
  [ ${#vms[@]} -eq 0 ] || tenant vm delete "${vms[@]}" --yes --wait-timeout 5m
  kill "$pid"
  for _ in $(seq 200); do [ -e "/proc/$pid" ] || break; sleep 0.1; done
  [ ! -e "/proc/$pid" ] || kill -9 "$pid"
fi
if is_private; then
  as_root env HCP_HOSTS="$HCP_HOSTS" deploy/libvirt/host.sh remove demo
elif virsh -q -c qemu:///system pool-info hcp >/dev/null 2>&1; then
  # ours when nothing but images is in it and no machine uses it
  users=$(for d in $(virsh -q -c qemu:///system list --all --uuid); do virsh -q -c qemu:///system dumpxml "$d"; done | grep -c "/var/lib/libvirt/hcp/" || true)
  if [ "$users" = 0 ]; then
    virsh -q -c qemu:///system pool-destroy hcp || true
    virsh -q -c qemu:///system pool-undefine hcp || true
    as_root rm -rf --one-file-system /var/lib/libvirt/hcp
  else
    say "the pool hcp stays: machines use it"
  fi
fi
as_root rm -rf --one-file-system "$D"
say "the demo is gone"
