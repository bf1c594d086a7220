/** Which of the machine's addresses a phone on the same network reaches it by. */

import type { NetworkInterfaceInfo } from 'node:os'

type Interfaces = Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>

/**
 * An IPv4 address, in the order of how likely a phone is beside it; undefined where there is none. Choice: no IPv6, whose
 * addresses of a home network change and are nothing to type.
 */
export function chooseLanAddress(interfaces: Interfaces): string | undefined {
  const candidates = Object.entries(interfaces).flatMap(([name, addresses]) =>
    (addresses ?? [])
      .filter(
        ({ family, internal, address }) => family === 'IPv4' && !internal && !address.startsWith('169.254.'),
      )
      .map(({ address }) => ({
        address,
        rank: (VIRTUAL.test(name) ? RANGES.length + 1 : 0) + rankOf(address),
      })),
  )
  return candidates.toSorted((one, other) => one.rank - other.rank)[0]?.address
}

/** Homes and offices first, public addresses last (RFC 1918). */
function rankOf(address: string): number {
  const rank = RANGES.findIndex(range => range.test(address))
  return rank < 0 ? RANGES.length : rank
}

const RANGES = [/^192\.168\./, /^10\./, /^172\.(?:1[6-9]|2\d|3[01])\./]
/** Bridges of containers and virtual machines, and tunnels: no phone is behind them. */
const VIRTUAL =
  /^(?:docker|br-|veth|virbr|vmnet|vboxnet|vEthernet|utun|tun|tap|tailscale|wg|zt|ppp|podman|cni|lxc|lxd)/
