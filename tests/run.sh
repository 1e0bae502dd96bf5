#!/bin/bash
# Builds rasupd and runs all of its tests on a Debian 12 or 13 machine, as root.
#
#   tests/run.sh [--asan] [--boot] [-R REGEX] [--help]
#     --asan     under AddressSanitizer and UndefinedBehaviorSanitizer
#     --boot     first the core of the boot stories: machines in QEMU, 12 power cuts, up to 25 minutes more
#     -R REGEX   only the tests whose name matches (ctest -R)
#
# Packages that are missing are installed with apt-get; nothing else outside build/ and the cache of the real
# test image (${RASUPD_CACHE:-/var/cache/rasupd-tests}) is written. Ends with ctest's summary.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

preset=dev
boot=no
select=()
while [ $# -gt 0 ]; do
  case $1 in
    --asan) preset=asan ;;
    --boot) boot=yes ;;
    -R) [ $# -gt 1 ] || { echo "run.sh: -R needs a regular expression" >&2; exit 2; }; select=(-R "$2"); shift ;;
    -h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "run.sh: unknown option $1 (--help)" >&2; exit 2 ;;
  esac
  shift
done
[ "$(id -u)" = 0 ] || { echo "run.sh: needs root: the tests deploy sysroots and mount in private namespaces" >&2; exit 2; }

packages=(
  # to build
  g++ cmake ninja-build pkg-config libostree-dev libglib2.0-dev libcurl4-openssl-dev libarchive-dev libssl-dev
  zlib1g-dev libzstd-dev libisal-dev libexpected-dev nlohmann-json3-dev libcli11-dev libfmt-dev libtomlplusplus-dev
  libgtest-dev libgmock-dev librapidcheck-dev
  # to test
  ostree python3 python3-jsonschema docker-registry apache2-utils skopeo buildah umoci mmdebstrap jq zstd openssl
  attr e2fsprogs libubootenv-tool util-linux ca-certificates
  gdisk mtools dosfstools xfsprogs btrfs-progs grub-common grub-efi-amd64-bin grub-pc-bin
)
if [ $boot = yes ]; then
  packages+=(qemu-system-x86 qemu-utils ovmf busybox-static cpio)
fi
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "== installing: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update
  # Only what is named: recommended packages would bring services along.
  apt-get -qq install -y --no-install-recommends -o Dpkg::Use-Pty=0 "${missing[@]}"
fi

# The real Debian image needs apt's lists (for the mirror's name); make it before the clock of a test runs.
apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -q . || apt-get -qq update
[ -n "${select[*]}" ] || bash tests/support/debian_image.sh > /dev/null

echo "== building (preset $preset)"
cmake --preset "$preset"
cmake --build --preset "$preset" -j2
stories=0
if [ $boot = yes ]; then
  echo "== telling the boot stories"
  RASUPD=$PWD/build/$preset/bin/rasupd /usr/bin/python3 -B -m tests.vm.run --core -j 2 || stories=$?
fi
echo "== testing"
ctest --preset "$preset" "${select[@]}" || exit $?
if [ "$stories" != 0 ]; then
  echo "run.sh: a boot story failed; its console is above" >&2
  exit "$stories"
fi
