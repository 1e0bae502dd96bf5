#!/bin/bash
# full_disk.sh FOLDER CONFIG_ROOT SMALL BIG: installs SMALL on a 16 MiB file system, upgrades to BIG, which does
# not fit, and checks that the old image still boots. The answer is left in FOLDER/answer. The mount lives in a
# namespace of its own and goes with it.
set -euo pipefail
if [ "${FULL_DISK_INSIDE:-}" != yes ]; then
  FULL_DISK_INSIDE=yes exec unshare --mount --propagation private -- bash "$0" "$@"
fi
folder=$1 config=$2 small=$3 big=$4
root=$folder/small-disk
mkdir -p "$root"
mount -t tmpfs -o size=16m tmpfs "$root"
run() { "$RASUPD" --config-root "$config" --sysroot "$root" --json "$@"; }
state() { (cd "$root" && find boot ostree/deploy -not -path '*/var/lib/rasupd*' -printf '%p %m %s %l\n' | sort); }

run install to-filesystem "$small" "$root" > "$folder/installed"
before=$(state)
code=0
run switch "$big" > "$folder/answer" || code=$?
[ "$code" = 6 ] || { echo "exit $code instead of 6"; cat "$folder/answer"; exit 1; }
[ "$before" = "$(state)" ] || { echo "the full disk changed what boots:"; diff <(echo "$before") <(state); exit 1; }
ostree fsck --quiet --repo="$root/ostree/repo"
ostree admin status --sysroot="$root" > /dev/null
run status > /dev/null
