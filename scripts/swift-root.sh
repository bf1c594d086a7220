#!/usr/bin/env bash
# Makes a Debian 13 root with the Swift toolchain and OpenSSL, in which the Swift package is built and tested on Linux, and
# prints its folder. Once it takes some minutes and 4 GB; needs root and debootstrap. Apple's swift-crypto comes with it, out of
# Debian's source of the toolchain: CryptoKit's interface, for the half of the package that phones run.
# The folder is CALLSIGN_SWIFT_ROOT, or callsign/swift-root in the cache. Another mirror than Debian's: CALLSIGN_DEBIAN_MIRROR.
set -euo pipefail

folder=${CALLSIGN_SWIFT_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/callsign/swift-root}
mirror=${CALLSIGN_DEBIAN_MIRROR:-http://deb.debian.org/debian}
# There once the root is whole: one that was cut off is made anew.
whole=$folder/opt/swift-6.0.whole

if [ -e "$whole" ]; then
  echo "$folder"
  exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
  echo "swift-root: needs root and debootstrap" >&2
  exit 1
fi

make_root() {
  rm -rf "$folder"
  debootstrap --variant=minbase trixie "$folder" "$mirror"
  # Packages start no services here.
  printf '#!/bin/sh\nexit 101\n' >"$folder/usr/sbin/policy-rc.d"
  chmod +x "$folder/usr/sbin/policy-rc.d"
  DEBIAN_FRONTEND=noninteractive chroot "$folder" apt-get install -y -qq --no-install-recommends \
    swiftlang libssl-dev libc6-dev libstdc++-14-dev gcc git pkgconf ca-certificates xz-utils
  echo "deb-src $mirror trixie main" >"$folder/etc/apt/sources.list.d/sources.list"
  chroot "$folder" sh -ec '
    apt-get update -qq
    cd /tmp
    apt-get source -qq --download-only --tar-only swiftlang
    tar xf swiftlang_*.orig.tar.xz -C /opt --strip-components=1 --wildcards "*/swift-crypto/*" "*/swift-asn1/*"
    rm -f swiftlang_*
  ' || echo "without swift-crypto"
  chroot "$folder" apt-get clean
  touch "$whole"
}

mkdir -p "$(dirname "$folder")"
# One at a time: two that make the same root would undo each other's work.
exec 9>"$folder.lock"
flock 9
if [ ! -e "$whole" ]; then
  # On its own: in a condition it would go on after a step that failed.
  make_root >"$folder.log" 2>&1 </dev/null &
  if ! wait $!; then
    echo "swift-root: could not be made: $(tail -n 1 "$folder.log")" >&2
    exit 1
  fi
fi
echo "$folder"
