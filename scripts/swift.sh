#!/usr/bin/env bash
# Runs `swift` with these arguments in the root that scripts/swift-root.sh makes, on this project, which is /callsign there: such as
# `scripts/swift.sh test`. The node of this machine is there too, for the tests that call a server.
set -euo pipefail
project=$(cd "$(dirname "$0")/.." && pwd)
root=$("$project/scripts/swift-root.sh")
node=$(readlink -f "$(command -v node)")

# In mounts of its own, which end with it.
exec unshare -m bash -c '
  set -euo pipefail
  root=$1 project=$2 node=$3
  shift 3
  mkdir -p "$root/callsign"
  touch "$root/usr/local/bin/node"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --bind "$project" "$root/callsign"
  mount --bind "$node" "$root/usr/local/bin/node"
  mount -t tmpfs tmpfs "$root/tmp"
  cd "$root"
  if [ -e opt/swift-crypto ]; then
    export CALLSIGN_SWIFT_CRYPTO=${CALLSIGN_SWIFT_CRYPTO-/opt/swift-crypto} SWIFTCI_USE_LOCAL_DEPS=1
  fi
  HOME=/root LANG=C.UTF-8 exec chroot "$root" sh -c "cd /callsign/swift && exec swift \"\$@\"" swift "$@"
' swift "$root" "$project" "$node" "$@"
