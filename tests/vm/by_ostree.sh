# Run in a guest: makes a machine of it that `ostree admin` deployed, with nothing of rasupd's in its commit and /var.
set -e
mount -o remount,rw /sysroot
mount -o remount,rw /boot
rm -rf /var/lib/rasupd
old=$(sed -n 's/.*ostree=\([^ ]*\).*/\1/p' /proc/cmdline)
old=$(basename "$(realpath "/sysroot$old")")
ostree refs --list ostree/container | sed 's|^|ostree/container/|' | xargs -r -n1 ostree refs --delete
new=$(ostree commit --orphan --tree=ref="${old%.*}" -s 'made by hand')
printf '[origin]\ncontainer-image-reference=%s\n' "$IMAGE" > /run/origin
ostree admin deploy --os=default --karg-proc-cmdline --origin-file=/run/origin "$new"
# The menu, as ostree's own backend for GRUB would have made it.
cd /boot/loader
for entry in $(grep -H '^version ' entries/*.conf | sed 's/:version / /' | sort -k2,2nr | cut -d' ' -f1); do
  echo "menuentry 'by hand' {"
  value() { sed -n "s|^$1 *||p" "$entry"; }
  linux=$(value linux) initrd=$(value initrd)
  echo "  linux \$rasupd_boot/${linux#/boot} $(value options)"
  echo "  initrd \$rasupd_boot/${initrd#/boot}"
  echo '}'
done > grub.cfg
sync
