#!/bin/bash
# base.sh [--suite bookworm|trixie] [--arch amd64|arm64]: the part of the image that seldom changes, made once. Prints
# the directory that holds it:
#   base.tar     Debian's userspace in the layout of an image-based system, without the kernel
#   kernel.tar   /usr/lib/modules/$KVER with vmlinuz, its modules and initramfs.img (dracut, with ostree-prepare-root)
#   info         SUITE=, ARCH=, KVER=
# Kept under ${RASUPD_CACHE:-/var/cache/rasupd-tests}, keyed by the hash of this file. Packages come from the mirrors
# this machine's own apt uses. Needs root and mmdebstrap; for another architecture than this machine's also
# qemu-user-static, registered in binfmt_misc with the flag F (it runs inside of the root, where no emulator lies).
set -euo pipefail

suite=bookworm arch=$(dpkg --print-architecture)
while [ $# -gt 0 ]; do
  case $1 in
    --suite) suite=$2; shift ;;
    --arch) arch=$2; shift ;;
    -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "base.sh: unknown option $1 (--help)" >&2; exit 2 ;;
  esac
  shift
done

packages=systemd,systemd-sysv,systemd-resolved,udev,dbus,linux-image-cloud-$arch,dracut,zstd,kmod,ostree,ostree-boot
packages=$packages,iproute2,e2fsprogs,util-linux,mount,ca-certificates,systemd-boot-efi
case $suite in # the libraries rasupd is linked with, and bootctl
  bookworm) packages=$packages,libostree-1-1,libcurl4,libarchive13,libfmt9,libisal2,libzstd1,libssl3,systemd-boot ;;
  trixie) packages=$packages,libostree-1-1,libcurl4t64,libarchive13t64,libfmt10,libisal2,libzstd1,libssl3t64,systemd-boot-tools ;;
  *) echo "base.sh: Debian $suite is not known here: bookworm or trixie" >&2; exit 2 ;;
esac

cache=${RASUPD_CACHE:-/var/cache/rasupd-tests}
out=$cache/image-$suite-$arch-$(sha256sum "$0" | cut -c1-16)
mkdir -p "$cache"
exec 9> "$cache/image-$suite-$arch.lock"
flock 9
if [ -e "$out/info" ]; then echo "$out"; exit 0; fi

# dracut wants /proc, /sys and /dev in the root: bound in a namespace of our own, so that nothing stays mounted.
if [ "${BASE_SH_INSIDE:-}" != yes ]; then
  BASE_SH_INSIDE=yes exec unshare --mount --propagation private -- bash "$0" --suite "$suite" --arch "$arch" 9>&-
fi
work=$(mktemp -d "$cache/making.XXXXXX")
trap 'umount -q -R -l "$work"/root/{proc,sys,dev} || true; rm -rf --one-file-system "$work"' EXIT
root=$work/root
say() { echo "base.sh: $*" >&2; }

# deb lines for the mirrors apt already uses. Its own suites are taken as they are; another suite has the same mirror.
sources() {
  local site release component codename origin
  apt-get indextargets --format '$(SITE)|$(RELEASE)|$(COMPONENT)|$(CODENAME)|$(ORIGIN)' 'Created-By: Packages' |
    sort -u | while IFS='|' read -r site release component codename origin; do
      [ "$origin" = Debian ] || continue
      case $codename in
        "$suite" | "$suite-updates" | "$suite-security") echo "deb $site $release $component" ;;
        *-updates | *-security | *-backports) ;;
        *) echo "deb $site $suite $component" ;;
      esac
    done | sort -u
}

# The mirror's proxy and timeouts, when apt has any.
apt_options() { apt-config dump | grep -E '^Acquire::(https?::(Proxy|Timeout)|Retries)' | grep -v '""' || true; }

make_root() {
  local options=() line
  sources > "$work/sources.list"
  [ -s "$work/sources.list" ] || { say "apt knows no Debian mirror; run apt-get update"; exit 1; }
  while read -r line; do [ -z "$line" ] || options+=(--aptopt="$line"); done < <(apt_options)
  INITRD=No mmdebstrap --quiet --mode=root --architectures="$arch" --variant=minbase --format=directory \
    --include="$packages" "${options[@]}" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
    --dpkgopt=force-unsafe-io --aptopt='Apt::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' \
    "$suite" "$root" - < "$work/sources.list" >&2
}

# What every machine of the fleet has: DHCP, a resolver, an identity of its own from its first boot on.
configure() {
  printf '[Match]\nName=en* eth*\n[Network]\nDHCP=yes\n' > "$root/usr/lib/systemd/network/80-dhcp.network"
  chroot "$root" systemctl -q enable systemd-networkd systemd-resolved
  ln -sf ../run/systemd/resolve/stub-resolv.conf "$root/etc/resolv.conf"
  : > "$root/etc/machine-id"
  : > "$root/etc/fstab" # root= comes from the kernel command line, /boot and /var from ostree
  echo debian > "$root/etc/hostname"
  # dracut copies it into the initramfs: it must be there first. Debian 12 reads sysroot.readonly of the repository.
  mkdir -p "$root/usr/lib/ostree"
  printf '[sysroot]\nreadonly=true\n[etc]\ntransient=false\n[composefs]\nenabled=no\n' > "$root/usr/lib/ostree/prepare-root.conf"
}

# The kernel where ostree looks for it; dracut's emergency reboots, a machine in the field has nobody at its console.
make_kernel() {
  kver=$(basename "$root"/usr/lib/modules/*)
  local modules=$root/usr/lib/modules/$kver dir
  for dir in proc sys dev; do mount --rbind "/$dir" "$root/$dir"; done
  chroot "$root" dracut --force --quiet --no-hostonly --no-hostonly-cmdline --reproducible --zstd --add "ostree systemd" \
    --omit "bash-completion nfs lvm dm mdraid multipath iscsi crypt i18n plymouth network virtiofs resume rngd nvdimm qemu-net" \
    --drivers "virtio_blk virtio_pci virtio_scsi overlay erofs ext4 xfs btrfs vfat nls_ascii nls_cp437" \
    --kernel-cmdline "rd.shell=0 rd.emergency=reboot" --kver "$kver" /initramfs.img >&2
  for dir in proc sys dev; do umount -R -l "$root/$dir"; done
  mv "$root/initramfs.img" "$modules/initramfs.img"
  cp "$root/boot/vmlinuz-$kver" "$modules/vmlinuz"
  chmod 644 "$modules/vmlinuz" "$modules/initramfs.img"
  rm -rf "$modules/build" "$modules/source"
}

# State lives in /var and starts empty: tmpfiles.d makes at boot what programs expect there.
to_image_layout() {
  cp -a "$root/var/lib/dpkg" "$root/usr/lib/dpkg-db"
  (
    cd "$root"
    find boot tmp run dev var -xdev -mindepth 1 -delete
    rm -rf vmlinuz* initrd.img* .dockerenv etc/.pwd.lock home root opt srv mnt media usr/local
    ln -s var/home home; ln -s var/roothome root; ln -s var/opt opt; ln -s var/srv srv; ln -s var/mnt mnt
    ln -s run/media media; ln -s ../var/usrlocal usr/local; mkdir -p sysroot efi; ln -s sysroot/ostree ostree
    {
      printf 'd /var/%s 0755 root root -\n' lib log cache spool home opt srv mnt usrlocal
      printf 'd /var/tmp 1777 root root -\nd /var/roothome 0700 root root -\nd /run/media 0755 root root -\n'
      printf 'L /var/lib/dpkg - - - - ../../usr/lib/dpkg-db\n'
    } > usr/lib/tmpfiles.d/image-layout.conf
  )
}

pack() { # OUT TAR-ARGUMENTS…
  local to=$1
  shift
  tar -C "$root" --numeric-owner --xattrs --xattrs-include='security.capability' --sort=name -cf "$to" "$@"
}

say "making a Debian $suite root"
make_root
configure
say "making the initramfs"
make_kernel
to_image_layout
mkdir "$work/done"
pack "$work/done/base.tar" --exclude=./usr/lib/modules .
pack "$work/done/kernel.tar" ./usr/lib/modules
printf 'SUITE=%s\nARCH=%s\nKVER=%s\n' "$suite" "$arch" "$kver" > "$work/done/info"
rm -rf "$out"
mv "$work/done" "$out"
say "done: $out"
echo "$out"
