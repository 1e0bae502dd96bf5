#!/bin/bash
# Makes a real Debian 12 image in two versions, once, and prints the directory that holds them:
#   v1/, v2/   OCI layouts (tag "os", gzip layers, six of them; v2 changes the last two)
#   info       KVER=, TREE_BYTES= (the size of v1 as one tar)
# Kept under ${RASUPD_CACHE:-/var/cache/rasupd-tests}, keyed by the hash of this file: change the recipe and
# it is made anew. Packages come from the mirrors this machine's own apt uses. Needs root.
set -euo pipefail

if [ "${1:-}" = --help ]; then sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0; fi

SUITE=bookworm
ARCH=$(dpkg --print-architecture)
# The cloud kernel is the smallest real one; the rest brings the tree past 250 MB with files a server has.
PACKAGES=systemd,systemd-sysv,udev,dbus,linux-image-cloud-$ARCH,initramfs-tools,zstd,openssh-server,sudo
PACKAGES=$PACKAGES,python3,perl,curl,ca-certificates,iproute2,vim-tiny,less
EXTRA_PACKAGE=tree # what v2 has more than v1

cache=${RASUPD_CACHE:-/var/cache/rasupd-tests}
key=$(sha256sum "$0" | cut -c1-16)
out=$cache/debian-$ARCH-$key
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
if [ -e "$out/info" ]; then echo "$out"; exit 0; fi

work=$(mktemp -d "$cache/making.XXXXXX")
# Only what this script made is removed; mounts live in mmdebstrap's own namespace.
trap 'rm -rf "$work"' EXIT
say() { echo "debian_image: $*" >&2; }

# deb lines for the mirrors apt already uses, e.g. a local mirror in a lab.
sources() {
  apt-get indextargets --format '$(SITE)|$(RELEASE)|$(COMPONENT)|$(CODENAME)|$(ORIGIN)' 'Created-By: Packages' |
    sort -u | while IFS='|' read -r site release component codename origin; do
      [ "$origin" = Debian ] || continue
      case $codename in "$SUITE" | "$SUITE-updates" | "$SUITE-security") echo "deb $site $release $component" ;; esac
    done
}

# The mirror's proxy and timeouts, when apt has any.
apt_options() { apt-config dump | grep -E '^Acquire::(https?::(Proxy|Timeout)|Retries)' | grep -v '""' || true; }

make_root() { # DIR
  local options=() line
  sources > "$work/sources.list"
  [ -s "$work/sources.list" ] || { say "apt knows no Debian $SUITE mirror; run apt-get update"; exit 1; }
  while read -r line; do [ -z "$line" ] || options+=(--aptopt="$line"); done < <(apt_options)
  mmdebstrap --quiet --mode=root --variant=minbase --format=directory --include="$PACKAGES" "${options[@]}" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --aptopt='Apt::Install-Recommends "false"' \
    "$SUITE" "$1" - < "$work/sources.list" >&2
}

# A plain root becomes what a bootable image looks like: kernel beside its modules, state as links into /var.
to_image_layout() { # DIR
  cd "$1"
  kver=$(basename usr/lib/modules/*)
  cp --no-preserve=mode "boot/vmlinuz-$kver" "usr/lib/modules/$kver/vmlinuz"
  cp --no-preserve=mode "boot/initrd.img-$kver" "usr/lib/modules/$kver/initramfs.img"
  find boot tmp run dev -mindepth 1 -delete
  rm -rf vmlinuz* initrd.img* "usr/lib/modules/$kver/build" "usr/lib/modules/$kver/source"
  : > etc/machine-id
  rm -f etc/hostname etc/resolv.conf etc/.pwd.lock
  echo rasupd-test > etc/hostname
  mkdir -p usr/lib/ostree usr/lib/tmpfiles.d
  printf '[sysroot]\nreadonly=true\n' > usr/lib/ostree/prepare-root.conf
  cp -a var/lib/dpkg usr/lib/dpkg-db
  find var -mindepth 1 -delete
  rm -rf home root opt srv mnt media usr/local
  ln -s var/home home; ln -s var/roothome root; ln -s var/opt opt; ln -s var/srv srv; ln -s var/mnt mnt
  ln -s run/media media; ln -s ../var/usrlocal usr/local; mkdir sysroot; ln -s sysroot/ostree ostree
  printf 'd /var/%s 0755 root root -\n' lib log cache spool home opt srv mnt usrlocal > usr/lib/tmpfiles.d/rasupd-test.conf
  printf 'd /var/roothome 0700 root root -\n' >> usr/lib/tmpfiles.d/rasupd-test.conf
  cd - > /dev/null
}

# What an image builder changes from one version to the next: an /etc default, the release, an application.
version_files() { # DIR VERSION
  mkdir -p "$1/etc" "$1/usr/lib"
  echo "default of $2" > "$1/etc/rasupd-test.conf"
  echo "shipped by $2" > "$1/etc/rasupd-test-$2.conf"
  sed "s/^PRETTY_NAME=.*/PRETTY_NAME=\"rasupd test $2\"/" "$work/root/usr/lib/os-release" > "$1/usr/lib/os-release"
}

application_files() { # DIR VERSION
  mkdir -p "$1/usr/lib/rasupd-test"
  echo "$2" > "$1/usr/lib/rasupd-test/version"
  [ "$2" = 1.0 ] || (cd "$work" && apt-get download -qq -o APT::Sandbox::User=root "$EXTRA_PACKAGE" >&2 && dpkg-deb -x "$EXTRA_PACKAGE"_*.deb "$1")
}

tar_layer() { # DIR OUT TAR-ARGUMENTS…
  local from=$1 to=$2
  shift 2
  tar -C "$from" --numeric-owner --xattrs --xattrs-include='security.capability' --sort=name -cf "$to" "$@"
}

make_layers() {
  local root=$work/root version
  tar_layer "$root" "$work/1.tar" --exclude=./usr/lib/modules --exclude=./usr/share \
    --exclude="./usr/lib/python3*" .
  tar_layer "$root" "$work/2.tar" ./usr/share
  tar_layer "$root" "$work/3.tar" ./usr/lib/modules
  tar_layer "$root" "$work/4.tar" $(cd "$root" && ls -d ./usr/lib/python3*)
  for version in 1.0 2.0; do
    version_files "$work/files-$version" "$version"
    application_files "$work/app-$version" "$version"
    tar_layer "$work/files-$version" "$work/5-$version.tar" .
    tar_layer "$work/app-$version" "$work/6-$version.tar" .
  done
}

export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
builder() { buildah --root "$work/storage" --runroot "$work/runroot" "$@"; }

add_layer() { # FROM TAR NAME: a new local image NAME
  local container
  container=$(builder from "$1")
  builder add -q "$container" "$2" / > /dev/null
  builder commit -q --rm "$container" "$3" > /dev/null
}

make_image() { # VERSION OUT
  local container
  add_layer localhost/layer4 "$work/5-$1.tar" "layer5-$1"
  container=$(builder from "localhost/layer5-$1")
  builder add -q "$container" "$work/6-$1.tar" / > /dev/null
  builder config --label containers.bootc=1 --label "org.opencontainers.image.version=$1" \
    --annotation "org.opencontainers.image.version=$1" --arch "$ARCH" --cmd /sbin/init "$container"
  builder commit -q --rm -f oci --disable-compression=false "$container" "oci:$2:os" > /dev/null
}

say "making a Debian $SUITE root"
make_root "$work/root"
to_image_layout "$work/root"
say "packing layers"
make_layers
bytes=$(tar -C "$work/root" -cf - . | wc -c)
rm -rf "$work/root"
say "building the images"
from=scratch
for layer in 1 2 3 4; do
  add_layer "$from" "$work/$layer.tar" "layer$layer"
  rm "$work/$layer.tar"
  from=localhost/layer$layer
done
mkdir "$work/done"
make_image 1.0 "$work/done/v1"
make_image 2.0 "$work/done/v2"
printf 'KVER=%s\nTREE_BYTES=%s\n' "$kver" "$bytes" > "$work/done/info"
rm -rf "$out"
mv "$work/done" "$out"
say "done: $bytes bytes"
echo "$out"
