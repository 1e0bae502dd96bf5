#!/bin/bash
# fake_boot.sh SYSROOT CMD…: runs CMD as if the machine had booted from SYSROOT's first boot entry, without a
# kernel: a private mount namespace and process namespace, the deployment as /, /sysroot, /boot and /var bound, an empty
# /run/ostree-booted, /proc/cmdline with the entry's arguments, the host's /usr. Needs root; leaves no mounts.
#
# FAKE_BOOT_ENTRY=N    boot the Nth entry (from 0) instead of the first, as a boot menu would
# FAKE_BOOT_RUN=DIR    use DIR as /run, so that several calls see one boot; else a fresh tmpfs
# FAKE_BOOT_BIND=DIR   this directory (e.g. the build's bin) is at /run/bind
# FAKE_BOOT_SYSTEMCTL=N  systemctl exits with N (0)
# /run/systemctl.log records what was asked of systemctl. One /run has one boot id.
set -euo pipefail

if [ "${FAKE_BOOT_INSIDE:-}" != yes ]; then
  FAKE_BOOT_INSIDE=yes exec unshare --mount --pid --fork --kill-child --propagation private -- "$0" "$@"
fi
unset FAKE_BOOT_INSIDE
sysroot=$(realpath "$1")
shift

# The entry that boots: highest version first.
entry=$(for f in "$sysroot"/boot/loader/entries/ostree-*.conf; do
  echo "$(sed -n 's/^version //p' "$f") $f"
done | sort -rn | sed -n "$((${FAKE_BOOT_ENTRY:-0} + 1))p" | cut -d' ' -f2-)
[ -n "$entry" ] || { echo "fake_boot: no such boot entry in $sysroot/boot" >&2; exit 97; }
options=$(sed -n 's/^options //p' "$entry")
path=$(grep -o 'ostree=[^ ]*' <<<"$options" | cut -d= -f2)
root=$(realpath "$sysroot$path")
stateroot=$(cut -d/ -f4 <<<"$path")

mount --bind "$root" "$root"
mount --bind "$sysroot" "$root/sysroot"
mount --bind "$sysroot/boot" "$root/boot"
mount --bind "$sysroot/ostree/deploy/$stateroot/var" "$root/var"
if [ -n "${FAKE_BOOT_RUN:-}" ]; then
  mkdir -p "$FAKE_BOOT_RUN"
  mount --bind "$FAKE_BOOT_RUN" "$root/run"
else
  mount -t tmpfs tmpfs "$root/run"
fi
mkdir -p "$root/run/ostree" "$root/run/fake-bin"
touch "$root/run/ostree-booted"
printf '#!/bin/sh\necho "$*" >>/run/systemctl.log\nexit %s\n' "${FAKE_BOOT_SYSTEMCTL:-0}" >"$root/run/fake-bin/systemctl"
chmod 755 "$root/run/fake-bin/systemctl"
mount --rbind /usr "$root/usr"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
echo "$options" >"$root/run/fake-cmdline"
mount --bind "$root/run/fake-cmdline" "$root/proc/cmdline"
# One /run is one boot.
[ -e "$root/run/fake-boot-id" ] || cat /proc/sys/kernel/random/uuid >"$root/run/fake-boot-id"
mount --bind "$root/run/fake-boot-id" "$root/proc/sys/kernel/random/boot_id"
if [ -n "${FAKE_BOOT_BIND:-}" ]; then
  mkdir -p "$root/run/bind"
  mount --rbind "$FAKE_BOOT_BIND" "$root/run/bind"
fi
# Not exec: a process that is number 1 of its namespace would survive its own SIGKILL.
code=0
PATH=/run/fake-bin:$PATH chroot "$root" "$@" || code=$?
exit $code
