#!/bin/bash
# arm64_program.sh: builds rasupd for arm64, fault injection in, and prints two paths:
#   PROGRAM    the program, for Debian 12
#   ROOT       the Debian 12 root it was built in: GRUB's modules and a static busybox of arm64 are there, too
# The root has the compilers of this machine's architecture beside the libraries of arm64; it is made once by
# mmdebstrap, kept under ${RASUPD_CACHE:-/var/cache/rasupd-tests} and entered in a mount namespace of its own. Run as root.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
cache=${RASUPD_CACHE:-/var/cache/rasupd-tests}
native=$(dpkg --print-architecture)
packages=crossbuild-essential-arm64,cmake,ninja-build,pkg-config,ccache,zlib1g-dev:arm64,libzstd-dev:arm64,libisal-dev:arm64
packages=$packages,libostree-dev:arm64,libcurl4-openssl-dev:arm64,libarchive-dev:arm64,libssl-dev:arm64,libfmt-dev:arm64
packages=$packages,libexpected-dev,nlohmann-json3-dev,libcli11-dev,libtomlplusplus-dev:arm64
packages=$packages,busybox-static:arm64,grub-efi-arm64-bin:arm64
key=$(printf '%s %s' "$native" "$packages" | sha256sum | cut -c1-12)
root=$cache/cross-arm64-$key

mkdir -p "$cache"
exec 9> "$cache/cross-arm64.lock"
flock 9
if [ ! -e "$root/.complete" ]; then
  # The mirror is whatever this machine's own apt uses.
  mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -E '/debian/?$' | head -n 1)
  [ -n "$mirror" ] || { echo "arm64_program.sh: apt knows no Debian mirror; run apt-get update" >&2; exit 1; }
  rm -rf "$root"
  mmdebstrap --quiet --mode=root --variant=apt --architectures="$native,arm64" --include="$packages" \
    --aptopt='Apt::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' --dpkgopt=force-unsafe-io \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    bookworm "$root" "deb $mirror bookworm main" >&2
  touch "$root/.complete"
fi

build=$root/build
mkdir -p "$root/src" "$build"
# shellcheck disable=SC2016
unshare --mount --propagation private bash -euc '
  root=$1 here=$2 flags=$3
  mount --bind "$here" "$root/src"
  for dir in proc dev; do mount --rbind "/$dir" "$root/$dir"; done
  exec chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin TMPDIR=/tmp CXXFLAGS="$flags" CCACHE_DISABLE=1 bash -euc "
    cmake -S /src -B /build -G Ninja -DCMAKE_TOOLCHAIN_FILE=/src/tests/vm/arm64.cmake -DCMAKE_BUILD_TYPE=RelWithDebInfo \
      -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=\"-O1 -g0\" -DRASUPD_TESTS=OFF -DRASUPD_FAILPOINTS=ON
    cmake --build /build -j2 --target rasupd"
' bash "$root" "$here" "${CXXFLAGS:-}" >&2
echo "PROGRAM=$build/bin/rasupd"
echo "ROOT=$root"
