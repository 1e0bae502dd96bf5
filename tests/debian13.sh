#!/usr/bin/env bash
# Builds rasupd and runs its unit tests in a Debian 13 root (g++ 14, libostree 2025.2), made once by mmdebstrap and
# kept in the cache. The root is entered in a private mount namespace, so nothing stays mounted. Run as root.
# usage: tests/debian13.sh [ctest arguments…]
#        tests/debian13.sh --program FILE     no tests: the program, with fault injection, as FILE
set -euo pipefail
program=
if [ "${1:-}" = --program ]; then program=$2; set --; fi
here=$(cd "$(dirname "$0")/.." && pwd)
cache=${RASUPD_CACHE:-/var/cache/rasupd-tests}
packages=g++,cmake,ninja-build,ccache,pkg-config,libostree-dev,ostree,libcurl4-openssl-dev,libarchive-dev,libssl-dev,zlib1g-dev,libzstd-dev,libisal-dev,libexpected-dev,nlohmann-json3-dev,libcli11-dev,libfmt-dev,libtomlplusplus-dev,libgtest-dev,libgmock-dev,librapidcheck-dev,python3,attr,zstd,util-linux,mount,jq,e2fsprogs,ca-certificates,skopeo,docker-registry,apache2-utils
root=$cache/debian13-$(printf %s "$packages" | sha256sum | cut -c1-12)

command -v mmdebstrap >/dev/null || apt-get install -y --no-install-recommends mmdebstrap
if [ ! -e "$root/.complete" ]; then
  # The mirror is whatever this machine's own apt uses.
  mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -E '/debian/?$' | head -n 1)
  [ -n "$mirror" ] || { echo "no Debian mirror in this machine's apt configuration" >&2; exit 1; }
  rm -rf "$root"; mkdir -p "$cache"
  mmdebstrap --variant=apt --aptopt='Apt::Install-Recommends "0"' --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/man/*' --include="$packages" trixie "$root" "deb $mirror trixie main"
  touch "$root/.complete"
fi

tests=ON target=all
if [ -n "$program" ]; then tests=OFF target=rasupd; fi
# shellcheck disable=SC2016
unshare --mount --propagation private bash -euc '
  root=$1 here=$2 tests=$3 target=$4; shift 4
  mount --bind "$root" "$root" # a mount of its own: the tests unshare once more inside
  mkdir -p "$root/src" "$root/build"
  mount --bind "$here" "$root/src"
  for d in proc dev sys; do mount --rbind "/$d" "$root/$d"; done
  exec chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin TMPDIR=/tmp bash -euc "
    cmake -S /src -B /build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=\"-O1 -g1\" \
      -DRASUPD_WERROR=ON -DRASUPD_FAILPOINTS=ON -DRASUPD_TESTS=$tests >/dev/null
    cmake --build /build -j2 --target $target
    [ $tests = ON ] || exit 0
    ctest --test-dir /build --output-on-failure -LE integration \"\$@\"" bash "$@"
' bash "$root" "$here" "$tests" "$target" "$@"
[ -z "$program" ] || install -D -m755 "$root/build/bin/rasupd" "$program"
