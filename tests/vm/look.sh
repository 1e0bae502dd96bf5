#!/bin/bash
# look.sh RAW OFFSET SIZE WORK: what is on the root file system that begins at byte OFFSET of the disk RAW. Prints lines:
#   fault TEXT        something is broken
#   version V         what a boot entry starts, the default first
#   trial ID          the deployment on trial in GRUB's menu
#   env NAME=VALUE    GRUB's environment block
#   journal LINE      of rasupd's own journal
# The journal is replayed as the kernel would at the next boot; nothing else may need repair. The mount lives in a
# namespace of its own and goes with it.
set -euo pipefail
if [ "${LOOK_INSIDE:-}" != yes ]; then
  LOOK_INSIDE=yes exec unshare --mount --propagation private -- bash "$0" "$@"
fi
raw=$1 offset=$2 size=$3 work=$4
root=$work/root
mkdir -p "$root"
mount -o "loop,offset=$offset,sizelimit=$size" "$raw" "$root" # replays the journal
umount "$root"
e2fsck -fn "$raw?offset=$offset" > "$work/e2fsck" 2>&1 || { echo "fault e2fsck: $(tr '\n' ' ' < "$work/e2fsck")"; }
mount -o "ro,loop,offset=$offset,sizelimit=$size" "$raw" "$root"
said=$(ostree fsck --quiet --repo="$root/ostree/repo" 2>&1) || echo "fault ostree fsck: $(tr '\n' ' ' <<< "$said")"

[ -L "$root/boot/loader" ] || echo "fault boot/loader is no link"
entries=$(grep -H '^version ' "$root"/boot/loader/entries/*.conf | sed 's/:version / /' | sort -k2,2nr | cut -d' ' -f1)
for entry in $entries; do
  path=$(grep -o 'ostree=[^ ]*' "$entry" | cut -d= -f2)
  deployment=$(realpath -e "$root$path" 2> /dev/null) || { echo "fault $(basename "$entry") names no deployment: $path"; continue; }
  echo "version $(cat "$deployment/usr/share/rasupd-image/version" || echo '?')"
  [ -d "$deployment/etc" ] || echo "fault $path has no /etc"
  for key in linux initrd; do
    file=$(sed -n "s/^$key //p" "$entry")
    file=$root/boot/${file#/boot}
    case $key in linux) source=vmlinuz ;; initrd) source=initramfs.img ;; esac
    cmp -s "$file" "$deployment"/usr/lib/modules/*/"$source" || echo "fault $key of $(basename "$entry") is not the image's"
  done
  [ ! -e "$root/boot/loader/grub.cfg" ] || grep -q "$path" "$root/boot/loader/grub.cfg" || echo "fault GRUB's menu lacks $path"
done
sed -n "s/^set rasupd_trial='\\(.*\\)'$/trial \\1/p" "$root/boot/loader/grub.cfg" 2> /dev/null || true
if [ -e "$root/boot/grub/grubenv" ]; then
  [ "$(stat -c %s "$root/boot/grub/grubenv")" = 1024 ] || echo "fault grubenv is not 1024 bytes"
  grep -a '^[a-z_]*=' "$root/boot/grub/grubenv" | sed 's/^/env /' || true
fi
sed 's/^/journal /' "$root/ostree/deploy/default/var/lib/rasupd/journal" 2> /dev/null || true
umount "$root"
