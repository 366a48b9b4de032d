#!/usr/bin/env bash
# Builds the tiny guest: one qcow2 of about 16 MB that boots under BIOS and under
# UEFI, and behaves like a cloud image: NoCloud seed, DHCP, ACPI power button,
# the genuine QEMU guest agent, a serial console.
#
#   deploy/guest/build.sh [DIR]     DIR: work folder, default .cache/guest (or $HCP_GUEST_DIR)
#
# Prints the image's path on stdout, all else on stderr. A second run is instant:
# the image is built again only when a file of this folder changes. Made from
# packages of this Debian or Ubuntu that are downloaded and unpacked, never
# installed; without loop devices and without mounts. Needs packages.txt.
set -Eeuo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export LC_ALL=C.UTF-8
say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$1" >&2; [ $# -lt 2 ] || printf 'remedy: %s\n' "$2" >&2; exit 1; }

W=${1:-${HCP_GUEST_DIR:-$here/../../.cache/guest}}
mkdir -p "$W" && W=$(cd "$W" && pwd)
image=$W/hcp-guest.qcow2
stamp=$(cat "$here"/{build.sh,init,udhcpc.script} | sha256sum | cut -c1-16)
fresh() { [ -s "$image" ] && [ "$(cat "$W/stamp" 2>/dev/null)" = "$stamp" ]; }
fresh && { echo "$image"; exit 0; }

exec 9>"$W/lock"
flock -w 600 9 || die "another build of the guest holds $W/lock for ten minutes" "end it, or give another folder"
fresh && { echo "$image"; exit 0; }
[ "$(uname -m)" = x86_64 ] || die "the guest image is for x86_64, this machine is $(uname -m)"
for tool in apt-get apt-cache dpkg cpio qemu-img gzip; do
  command -v "$tool" >/dev/null || die "$tool is missing" "apt-get install $(sed 's/#.*//' "$here/packages.txt" | xargs)"
done

X=$W/unpacked R=$W/root B=$W/boot
trap 'say "the build ended at line $LINENO"' ERR
trap 'rm -rf --one-file-system "$R" "$B" "$image.part"' EXIT
rm -rf --one-file-system "$X" "$R" "$B"
mkdir -p "$X" "$W/debs" "$R" "$B"

known() { apt-cache show "$1" >/dev/null 2>&1; }
# depends PACKAGE: what it needs, directly and not, by name
depends() {
  apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances "$1" |
    sed -n 's/^\([a-z0-9].*\)$/\1/p'
}

fetch() {
  known busybox-static || { say "reading the package lists"; apt-get -qq update >&2; }
  local kernel wanted
  kernel=linux-image-cloud-amd64
  known "$kernel" || kernel=linux-image-virtual
  known "$kernel" || die "no kernel package for a guest is known to apt" "run apt-get update"
  mapfile -t wanted < <(
    depends "$kernel" | grep -E '^linux-(image|modules)-[0-9]' || true
    for package in qemu-guest-agent kmod grub-common mtools; do
      echo "$package"
      depends "$package" | grep -E '^lib(c6|[a-z0-9.+-]*[0-9](t64)?|gcc-s1|devmapper1.*)$'
    done
    printf '%s\n' busybox-static grub-pc-bin grub-efi-amd64-bin
  )
  mapfile -t wanted < <(printf '%s\n' "${wanted[@]}" | sort -u)
  say "fetching ${#wanted[@]} packages for the guest"
  rm -f "$W"/debs/*.deb
  (cd "$W/debs" && apt-get -qq -o APT::Sandbox::User=root download "${wanted[@]}" >&2) ||
    { apt-get -qq update >&2 && (cd "$W/debs" && apt-get -qq -o APT::Sandbox::User=root download "${wanted[@]}" >&2); } ||
    die "apt-get could not download the guest's packages" "check the network and run apt-get update"
  local deb
  for deb in "$W"/debs/*.deb; do dpkg -x "$deb" "$X"; done
  rm -rf "$W/debs"
}

# run PROGRAM ARGUMENT...: an unpacked program with its own unpacked libraries
libraries() { echo "$X/lib/x86_64-linux-gnu:$X/usr/lib/x86_64-linux-gnu:$X/lib:$X/usr/lib"; }
loader() { find "$X" -name ld-linux-x86-64.so.2 -print -quit; }
run() { "$(loader)" --library-path "$(libraries)" "$@"; }
program() { local d; for d in bin sbin usr/bin usr/sbin; do [ ! -e "$X/$d/$1" ] || { echo "$X/$d/$1"; return; }; done; die "$1 is in none of the packages"; }

copy_modules() {
  local base kv name file dep
  base=$(find "$X" -path '*/lib/modules/*' -prune -print -quit)
  kv=${base##*/}
  # kmod is depmod when it is called so
  "$(loader)" --argv0 depmod --library-path "$(libraries)" "$(program kmod)" -b "${base%/lib/modules/*}" "$kv"
  mkdir -p "$R/lib/modules/$kv"
  : >"$R/etc/modules"
  for name in virtio_pci virtio_blk virtio_net virtio_console virtio_balloon virtio-rng button evdev \
    sd_mod sr_mod virtio_scsi ata_piix ahci isofs vfat nls_ascii nls_utf8 nls_cp437; do
    file=$(grep -oE "^[^:]*/$name\.ko[^:]*" "$base/modules.dep" || true)
    [ -n "$file" ] || continue # built in
    for dep in $(sed -n "s|^$file: *||p" "$base/modules.dep" | tr ' ' '\n' | tac) "$file"; do
      add_module "$base/$dep" "$R/lib/modules/$kv"
    done
  done
}

# add_module FILE FOLDER: insmod of busybox reads plain .ko only
add_module() {
  local plain=${1##*/}
  plain=${plain%.xz} plain=${plain%.zst}
  [ ! -e "$2/$plain" ] || return 0
  case $1 in
  *.xz) xz -dc "$1" >"$2/$plain" ;;
  *.zst) zstd -qdc "$1" >"$2/$plain" ;;
  *) cp "$1" "$2/$plain" ;;
  esac
  echo "$plain" >>"$R/etc/modules"
}

build_root() {
  mkdir -p "$R"/{bin,sbin,etc,proc,sys,dev,run,tmp,mnt,root,var/log,lib64}
  local busybox applet lib ga
  busybox=$(program busybox)
  cp "$busybox" "$R/bin/busybox"
  for applet in $("$busybox" --list); do [ -e "$R/bin/$applet" ] || ln -s busybox "$R/bin/$applet"; done
  copy_modules

  ga=$(program qemu-ga)
  cp "$ga" "$R/sbin/qemu-ga"
  cp -L "$(loader)" "$R/lib64/ld-linux-x86-64.so.2"
  run --list "$ga" | awk '$2 == "=>" {print $3}' | while read -r lib; do
    [ -f "$lib" ] || die "qemu-ga needs $lib"
    mkdir -p "$R/lib/x86_64-linux-gnu"
    cp -L "$lib" "$R/lib/x86_64-linux-gnu/"
  done

  echo 'root::0:0:root:/root:/bin/sh' >"$R/etc/passwd"
  echo 'root:x:0:' >"$R/etc/group"
  # the agent's guest-shutdown calls this
  rm -f "$R/sbin/shutdown"
  printf '#!/bin/sh\ncase "$*" in *-r*) reboot -f ;; *) poweroff -f ;; esac\n' >"$R/sbin/shutdown"
  install -m 755 "$here/init" "$R/init"
  install -m 755 "$here/udhcpc.script" "$R/etc/udhcpc.script"
  chmod 755 "$R/sbin/shutdown"
  (cd "$R" && find . -print0 | sort -z | cpio -0 -o -H newc --quiet -R 0:0 | gzip -n -9) >"$B/initrd.gz"
  cp "$(find "$X/boot" -name 'vmlinuz-*' -print -quit)" "$B/vmlinuz"
}

# le32 N: four bytes, little end first
le32() { printf "\\x$(printf %02x $(($1 & 255)))\\x$(printf %02x $(($1 >> 8 & 255)))\\x$(printf %02x $(($1 >> 16 & 255)))\\x$(printf %02x $(($1 >> 24 & 255)))"; }

# A raw disk: MBR with GRUB's boot code, GRUB's core right behind it, one FAT
# partition of type EF at 1 MiB with kernel, initramfs and GRUB for UEFI.
build_disk() {
  local disk=$B/disk.raw grub sectors mib
  grub=$(ls -d "$X"/usr/lib/grub)
  cat >"$B/grub.cfg" <<'CFG'
serial --unit=0 --speed=115200
terminal_output serial console
search --no-floppy --set=root --file /vmlinuz
linux /vmlinuz console=tty0 console=ttyS0 quiet panic=5
initrd /initrd.gz
boot
CFG
  local common=(part_msdos fat linux normal serial search search_fs_file boot configfile terminal)
  run "$(program grub-mkimage)" -d "$grub/i386-pc" -O i386-pc -o "$B/core.img" -p '(hd0,msdos1)/' -c "$B/grub.cfg" biosdisk "${common[@]}"
  run "$(program grub-mkimage)" -d "$grub/x86_64-efi" -O x86_64-efi -o "$B/bootx64.efi" -p / -c "$B/grub.cfg" efi_gop "${common[@]}"
  [ "$(stat -c %s "$B/core.img")" -le $((2047 * 512)) ] || die "GRUB's core does not fit before the partition"

  mib=$(($(du -cb "$B/vmlinuz" "$B/initrd.gz" "$B/bootx64.efi" | tail -n1 | cut -f1) / 1048576 + 8))
  truncate -s "${mib}M" "$disk"
  sectors=$((mib * 2048))
  head -c 440 "$grub/i386-pc/boot.img" | dd of="$disk" conv=notrunc status=none
  { printf '\x80\x20\x21\x00\xef\xfe\xff\xff'; le32 2048; le32 $((sectors - 2048)); } | dd of="$disk" bs=1 seek=446 conv=notrunc status=none
  printf '\x55\xaa' | dd of="$disk" bs=1 seek=510 conv=notrunc status=none
  dd if="$B/core.img" of="$disk" bs=512 seek=1 conv=notrunc status=none

  local at="$disk@@1M" mtools
  mtools=$(program mtools)
  export MTOOLS_SKIP_CHECK=1
  run "$mtools" -c mformat -i "$at" -v HCPGUEST ::
  run "$mtools" -c mmd -i "$at" ::/EFI ::/EFI/BOOT
  run "$mtools" -c mcopy -i "$at" "$B/vmlinuz" ::/vmlinuz
  run "$mtools" -c mcopy -i "$at" "$B/initrd.gz" ::/initrd.gz
  run "$mtools" -c mcopy -i "$at" "$B/bootx64.efi" ::/EFI/BOOT/BOOTX64.EFI
  qemu-img convert -c -O qcow2 "$disk" "$image.part"
}

began=$SECONDS
fetch
build_root
build_disk
mv "$image.part" "$image"
echo "$stamp" >"$W/stamp"
rm -rf --one-file-system "$X"
say "guest image: $(du -h "$image" | cut -f1), $((SECONDS - began)) s"
echo "$image"
