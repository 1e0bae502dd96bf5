#!/bin/bash
# emulated.sh COMMAND…: runs COMMAND while this machine starts programs of arm64 through qemu-user-static, also inside of
# a chroot that has no emulator. What it registers and mounts for that is undone when COMMAND ends, however it ends; a
# registration that is there already stays. Needs root.
set -euo pipefail
misc=/proc/sys/fs/binfmt_misc name=rasupd-aarch64
program=/usr/libexec/qemu-binfmt/aarch64-binfmt-P # by this name Debian's emulator expects what the flag P does
[ -x "$program" ] || { echo "emulated.sh: apt-get install qemu-user-static" >&2; exit 1; }
# An ELF file of 64 bits, little-endian, executable or shared, for machine 183 (EM_AARCH64); the operating system's ABI
# byte and the type's lowest bit may differ.
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'

mounted= child=
undo() {
  [ ! -e "$misc/$name" ] || echo -1 > "$misc/$name"
  [ -z "$mounted" ] || umount "$misc"
}

exec 8> /run/lock/rasupd-emulated.lock
flock -n 8 || { echo "emulated.sh: another one runs" >&2; exit 1; }
trap undo EXIT
# Everything it started ends with it.
trap '[ -z "$child" ] || kill -TERM -- "-$child" 2> /dev/null' INT TERM HUP
[ -e "$misc/register" ] || { mount -t binfmt_misc binfmt_misc "$misc"; mounted=yes; }
if ! grep -qsx 'interpreter .*aarch64.*' "$misc"/*; then
  # F: the kernel opens the emulator now. P: it is told argv[0] as it was.
  echo ":$name:M::$magic:$mask:$program:FP" > "$misc/register"
fi
set -m
"$@" 8>&- &
child=$!
# A signal ends the first wait, not the command.
until wait "$child" && code=0 || { code=$?; ! kill -0 "$child" 2> /dev/null; }; do :; done
exit "$code"
