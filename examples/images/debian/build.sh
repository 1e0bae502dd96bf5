#!/bin/bash
# Builds a bootable OCI image of Debian with systemd, ostree and rasupd.
#
#   build.sh --rasupd PROGRAM --policy FILE --out LAYOUT [options]
#     --rasupd PROGRAM   the program, built for this Debian release; it becomes /usr/bin/rasupd
#     --policy FILE      becomes /usr/lib/rasupd/policy.json: whose signatures this image accepts for its successor
#     --key FILE         a public key the policy names, becomes /usr/lib/rasupd/keys/NAME (may be repeated)
#     --units DIR        units of rasupd (default: examples/units), enabled as their [Install] section says
#     --site DIR         a directory laid over the image: what this fleet adds (may be repeated)
#     --version V        org.opencontainers.image.version (default 1.0)
#     --suite SUITE      bookworm or trixie (default bookworm)
#     --arch ARCH        amd64 or arm64 (default this machine's); base.sh says what another one needs
#     --out LAYOUT       an OCI layout directory; the image is its tag "os"
#
# Push it with `skopeo copy oci:LAYOUT:os docker://…` and sign what was pushed, e.g. with `cosign sign --key`. Needs
# root, mmdebstrap and buildah. base.sh, which is called here, keeps what seldom changes in a cache.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")

program= policy= out= suite=bookworm arch=$(dpkg --print-architecture) version=1.0 keys=() sites=() units=$here/../../units
while [ $# -gt 0 ]; do
  case $1 in
    --rasupd) program=$2; shift ;;
    --policy) policy=$2; shift ;;
    --key) keys+=("$2"); shift ;;
    --units) units=$2; shift ;;
    --site) sites+=("$2"); shift ;;
    --version) version=$2; shift ;;
    --suite) suite=$2; shift ;;
    --arch) arch=$2; shift ;;
    --out) out=$2; shift ;;
    -h | --help) sed -n '2,18s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "build.sh: unknown option $1 (--help)" >&2; exit 2 ;;
  esac
  shift
done
[ -n "$program" ] && [ -n "$policy" ] && [ -n "$out" ] || { echo "build.sh: --rasupd, --policy and --out are needed" >&2; exit 2; }

base=$(bash "$here/base.sh" --suite "$suite" --arch "$arch")
. "$base/info"
work=$(mktemp -d "${TMPDIR:-/tmp}/rasupd-image.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/context"

# Owners are root's whoever owns the sources; mtimes are 0 so that the same content is the same layer.
pack() { tar -C "$1" --numeric-owner --owner=0 --group=0 --mtime=@0 --sort=name -cf "$work/context/$2.tar" .; }

# Units are enabled by links in /usr: a machine that wants one off masks it in /etc.
enable_units() { # SYSTEM-DIRECTORY
  local unit kind targets target
  for unit in "$1"/rasupd-*; do
    [ -f "$unit" ] || continue
    case $unit in */rasupd-upgrade.*) continue ;; esac # shipped, never enabled: when to upgrade is the operator's decision
    sed -n 's/^WantedBy=/wants /p; s/^RequiredBy=/requires /p' "$unit" | while read -r kind targets; do
      for target in $targets; do
        mkdir -p "$1/$target.$kind"
        ln -sf "../$(basename "$unit")" "$1/$target.$kind/"
      done
    done
  done
}

rasupd_layer() { # DIR
  local lib=$1/usr/lib/rasupd system=$1/usr/lib/systemd/system strip=-s
  [ "$ARCH" = "$(dpkg --print-architecture)" ] || strip= # this machine's strip knows no other architecture
  install -D -m 755 $strip "$program" "$1/usr/bin/rasupd"
  install -D -m 644 "$policy" "$lib/policy.json"
  [ ${#keys[@]} = 0 ] || install -D -m 644 -t "$lib/keys" "${keys[@]}"
  mkdir -p "$system" "$lib/health.d/required.d" "$lib/health.d/wanted.d"
  [ ! -d "$units" ] || cp -r --no-preserve=ownership "$units/." "$system/"
  [ ! -d "$here/../../system.conf.d" ] || install -D -m 644 -t "$1/usr/lib/systemd/system.conf.d" "$here/../../system.conf.d/"*
  [ ! -d "$here/../../health.d" ] || cp -r --no-preserve=ownership "$here/../../health.d/." "$lib/health.d/"
  enable_units "$system"
}

version_layer() { # DIR
  mkdir -p "$1/usr/lib" "$1/usr/share/rasupd-image"
  echo "$version" > "$1/usr/share/rasupd-image/version"
  { tar -xOf "$base/base.tar" ./usr/lib/os-release | grep -v -e '^PRETTY_NAME=' -e '^IMAGE_VERSION='
    printf 'PRETTY_NAME="Debian %s image %s"\nIMAGE_VERSION=%s\n' "$SUITE" "$version" "$version"; } > "$1/usr/lib/os-release"
}

ln "$base/base.tar" "$base/kernel.tar" "$work/context/" 2> /dev/null || cp "$base/base.tar" "$base/kernel.tar" "$work/context/"
mkdir "$work/rasupd" "$work/site" "$work/version"
rasupd_layer "$work/rasupd"
for site in "${sites[@]}"; do cp -a "$site/." "$work/site/"; done
version_layer "$work/version"
for layer in rasupd site version; do pack "$work/$layer" "$layer"; done

builder() { STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot buildah --root "$work/storage" --runroot "$work/run" "$@"; }
builder build --quiet --layers --format oci --arch "$ARCH" --build-arg "VERSION=$version" \
  --annotation "org.opencontainers.image.version=$version" --tag localhost/os -f "$here/Containerfile" "$work/context" > /dev/null
rm -rf "$out"
builder push --quiet --disable-compression=false localhost/os "oci:$out:os"
printf 'KVER=%s\n' "$KVER"
