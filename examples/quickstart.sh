#!/bin/bash
# The main job of rasupd in one sitting, with no server: two signed versions of a small system in an OCI layout,
# a sysroot in a directory, and install, upgrade, rollback, status, and an unsigned image being refused.
#
#   examples/quickstart.sh [--keep]      as root on Debian 12; --keep leaves the directory for a look around
#
# RASUPD=PATH uses a program that is built already. Every step is checked: exit 0 means all of it held.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

keep=no
case ${1:-} in
  --keep) keep=yes ;;
  -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
  '') ;;
  *) echo "quickstart: unknown option $1 (--help)" >&2; exit 2 ;;
esac
[ "$(id -u)" = 0 ] || { echo "quickstart: needs root: deployments keep owners and modes" >&2; exit 2; }

section() { printf '\n=== %s\n' "$*"; }
check() { # WHAT COMMAND…
  local what=$1
  shift
  if "$@"; then echo "  ok: $what"; else echo "  FAILED: $what" >&2; exit 1; fi
}

section "Program"
needed=(g++ cmake ninja-build pkg-config libostree-dev libglib2.0-dev libcurl4-openssl-dev libarchive-dev libssl-dev
  zlib1g-dev libzstd-dev libisal-dev libexpected-dev nlohmann-json3-dev libcli11-dev libfmt-dev libtomlplusplus-dev)
[ -z "${RASUPD:-}" ] || needed=()
missing=()
for package in "${needed[@]}" ostree openssl jq e2fsprogs; do
  dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing: ${missing[*]}"
  DEBIAN_FRONTEND=noninteractive
  export DEBIAN_FRONTEND
  apt-get -qq update
  apt-get -qq install -y --no-install-recommends "${missing[@]}" > /dev/null
fi
if [ -z "${RASUPD:-}" ]; then
  cmake --preset release -DRASUPD_TESTS=OFF -DRASUPD_BENCH=OFF > /dev/null
  cmake --build --preset release -j2 --target rasupd | tail -1
  RASUPD=$PWD/build/release/bin/rasupd
fi
echo "using $RASUPD"

work=$(mktemp -d "${TMPDIR:-/tmp}/rasupd-quickstart.XXXXXX")
clean() {
  if [ "$keep" = yes ]; then echo "kept: $work"; return; fi
  chattr -R -f -i "$work" 2> /dev/null || true # deployments are immutable directories
  rm -rf "$work"
}
trap clean EXIT
layout=$work/images config=$work/config root=$work/machine
identity=registry.example/demo/os
# Runs the program on this demo's machine; what is meant for a person is shown with its command.
rasupd() {
  case " $* " in *" --json "*) ;; *) printf '\n$ rasupd %s\n' "$*" >&2 ;; esac
  "$RASUPD" --config-root "$config" --sysroot "$root" "$@"
}

# --- an OCI layout with plain tools: blobs are files named after their SHA-256 ---

blob() { # MEDIA_TYPE < BYTES: stores a blob, prints its descriptor
  local temp digest
  temp=$(mktemp "$work/blob.XXXXXX")
  cat > "$temp"
  digest=$(sha256sum "$temp" | cut -d' ' -f1)
  jq -cn --arg t "$1" --arg d "sha256:$digest" --argjson s "$(stat -c %s "$temp")" '{mediaType: $t, digest: $d, size: $s}'
  mv "$temp" "$layout/blobs/sha256/$digest"
}

name_it() { # DESCRIPTOR NAME: NAME in index.json means DESCRIPTOR from now on
  jq --argjson d "$1" --arg n "$2" '.manifests |= (map(select(.annotations["org.opencontainers.image.ref.name"] != $n))
    + [$d + {annotations: {"org.opencontainers.image.ref.name": $n}}])' "$layout/index.json" > "$work/index"
  mv "$work/index" "$layout/index.json"
}

make_tree() { # VERSION DIR: base/ and release/, one layer each
  local base=$2/base release=$2/release
  mkdir -p "$base"/{usr/bin,usr/lib/modules/6.1.0-demo,sysroot,boot,var,run,proc,sys,dev,tmp} "$release"/{etc,usr/lib,usr/share}
  ln -s sysroot/ostree "$base/ostree"
  head -c 65536 /dev/zero | tr '\0' k > "$base/usr/lib/modules/6.1.0-demo/vmlinuz"
  head -c 65536 /dev/zero | tr '\0' i > "$base/usr/lib/modules/6.1.0-demo/initramfs.img"
  printf 'ID=demo\nVERSION_ID=%s\nPRETTY_NAME="Demo %s"\n' "$1" "$1" > "$release/usr/lib/os-release"
  echo "motd of version $1" > "$release/etc/motd"
  echo "servers = pool.example # default of $1" > "$release/etc/ntp.conf"
  [ "$1" = 1.0 ] || echo "new in $1" > "$release/etc/new-in-$1.conf"
}

publish() { # VERSION: builds the image, names it "stable", prints its digest
  local tree=$work/tree-$1 layers=[] ids=[] part tar id config manifest
  make_tree "$1" "$tree"
  for part in base release; do
    tar=$work/$part.tar
    tar -C "$tree/$part" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$tar" .
    id=sha256:$(sha256sum "$tar" | cut -d' ' -f1)
    layers=$(jq -c --argjson l "$(gzip -nc "$tar" | blob application/vnd.oci.image.layer.v1.tar+gzip)" '. + [$l]' <<< "$layers")
    ids=$(jq -c --arg i "$id" '. + [$i]' <<< "$ids")
  done
  config=$(jq -cn --argjson ids "$ids" --arg a "$(dpkg --print-architecture)" '{architecture: $a, os: "linux",
    config: {Labels: {"containers.bootc": "1"}}, rootfs: {type: "layers", diff_ids: $ids}}' |
    blob application/vnd.oci.image.config.v1+json)
  manifest=$(jq -cn --argjson c "$config" --argjson l "$layers" --arg v "$1" '{schemaVersion: 2,
    mediaType: "application/vnd.oci.image.manifest.v1+json", config: $c, layers: $l,
    annotations: {"org.opencontainers.image.version": $v}}' | blob application/vnd.oci.image.manifest.v1+json)
  name_it "$manifest" stable
  jq -r .digest <<< "$manifest"
}

sign() { # DIGEST: cosign's classic signature, made by openssl
  local payload layer config manifest
  payload=$(jq -cnj --arg r "$identity" --arg d "$1" '{critical: {identity: {"docker-reference": $r},
    image: {"docker-manifest-digest": $d}, type: "cosign container image signature"}, optional: null}')
  layer=$(printf %s "$payload" | blob application/vnd.dev.cosign.simplesigning.v1+json)
  layer=$(jq -c --arg s "$(printf %s "$payload" | openssl dgst -sha256 -sign "$work/release.key" | base64 -w0)" \
    '. + {annotations: {"dev.cosignproject.cosign/signature": $s}}' <<< "$layer")
  config=$(jq -cn --argjson l "$layer" '{architecture: "", os: "", config: {}, rootfs: {type: "layers", diff_ids: [$l.digest]}}' |
    blob application/vnd.oci.image.config.v1+json)
  manifest=$(jq -cn --argjson c "$config" --argjson l "$layer" '{schemaVersion: 2,
    mediaType: "application/vnd.oci.image.manifest.v1+json", config: $c, layers: [$l]}' |
    blob application/vnd.oci.image.manifest.v1+json)
  name_it "$manifest" "${1/:/-}.sig"
}

default_root() { # the deployment that boots next, found through the boot entries alone
  local entry
  entry=$(grep -H '^version ' "$root"/boot/loader/entries/*.conf | sort -t' ' -k2 -n | tail -1 | sed 's/:version .*//')
  realpath "$root$(grep -o 'ostree=[^ ]*' "$entry" | cut -d= -f2)"
}
refuses() { # CODE ARGUMENTS…: rasupd must end with CODE
  local wanted=$1 code=0
  shift
  rasupd "$@" || code=$?
  [ "$code" = "$wanted" ]
}

section "Version 1.0, signed, in an OCI layout directory"
mkdir -p "$layout/blobs/sha256" "$config/etc/rasupd" "$root"
echo '{"imageLayoutVersion": "1.0.0"}' > "$layout/oci-layout"
echo '{"schemaVersion": 2, "manifests": []}' > "$layout/index.json"
openssl ecparam -name prime256v1 -genkey -noout -out "$work/release.key"
openssl pkey -in "$work/release.key" -pubout -out "$config/etc/rasupd/release.pub"
jq -n --arg path "$layout" --arg key "$config/etc/rasupd/release.pub" --arg repo "$identity" '{default: [{type: "reject"}],
  transports: {oci: {($path): [{type: "sigstoreSigned", keyPath: $key,
    signedIdentity: {type: "exactRepository", dockerRepository: $repo}}]}}}' | tee "$config/etc/rasupd/policy.json"
first=$(publish 1.0)
sign "$first"
echo "published $first"

section "Install into a directory"
rasupd install to-filesystem "oci:$layout:stable" "$root"
check "version 1.0 boots next" grep -q VERSION_ID=1.0 "$(default_root)/usr/lib/os-release"

section "The machine's own changes in /etc and /var"
echo "servers = time.machine.example" > "$(default_root)/etc/ntp.conf"
echo "this machine's" > "$(default_root)/etc/local.conf"
echo precious > "$root/ostree/deploy/default/var/data"
rasupd etc diff

section "Version 2.0 appears: upgrade"
second=$(publish 2.0)
sign "$second"
rasupd upgrade --check
rasupd upgrade
check "version 2.0 boots next" grep -q VERSION_ID=2.0 "$(default_root)/usr/lib/os-release"

section "/etc after the merge"
grep -r . "$(default_root)/etc" | sed "s|$(default_root)||"
check "an untouched default follows the image" grep -q 'version 2.0' "$(default_root)/etc/motd"
check "a local edit stays" grep -q machine.example "$(default_root)/etc/ntp.conf"
check "a local file stays" test -e "$(default_root)/etc/local.conf"
check "a new default arrives" test -e "$(default_root)/etc/new-in-2.0.conf"
check "/var was not touched" grep -q precious "$root/ostree/deploy/default/var/data"

section "Status"
rasupd status
check "the rollback is 1.0" test "$(rasupd status --json | jq -r .status.rollback.image.imageDigest)" = "$first"

section "Rollback: no download, boot entries only"
mv "$layout" "$layout.away"
rasupd rollback
mv "$layout.away" "$layout"
check "version 1.0 boots next" grep -q VERSION_ID=1.0 "$(default_root)/usr/lib/os-release"

section "An unsigned image is refused"
third=$(publish 3.0)
echo "published $third, not signed"
check "exit code 5 (Untrusted)" refuses 5 upgrade
check "version 1.0 still boots next" grep -q VERSION_ID=1.0 "$(default_root)/usr/lib/os-release"

section "ostree's own opinion"
ostree admin status --sysroot="$root"
ostree fsck --quiet --repo="$root/ostree/repo"
printf '\nAll of it held.\n'
