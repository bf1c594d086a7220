/**
 * The networks that a request counts for (contract 0.1, "2.2 SMS"). Whoever rents an IPv6 prefix has all that is in it, so
 * each prefix up to a /32 is counted too, and may ask as many times as often as it stands for more clients.
 *
 * A network is a text of its bytes: the four of an IPv4 address, or the eight of an IPv6 address's /64.
 */

export interface CountedNetwork {
  /** Unlike that of every other network of any width. */
  readonly name: string
  /** How many times the rate of one client it may use. */
  readonly factor: number
}

/** The network itself and, of IPv6, the prefixes around it: narrowest first. */
export function countedNetworks(network: string): readonly CountedNetwork[] {
  const self = { name: network, factor: 1 }
  if (network.length !== IPV6_BYTES) return [self]
  return [
    self,
    { name: network.slice(0, 7), factor: 4 },
    { name: network.slice(0, 6), factor: 16 },
    { name: network.slice(0, 5), factor: 32 },
    // Four bytes alone are an IPv4 address.
    { name: `${network.slice(0, 4)}::/32`, factor: 64 },
  ]
}

/**
 * The network of people who are signed in, as many clients: each is counted besides. The prefixes around it are not counted,
 * since they slow only accounts that have never signed in from them.
 */
export function networkOfSignedIn(network: string): CountedNetwork {
  return { name: network, factor: SIGNED_IN_FACTOR }
}

/** As `countedNetworks`, for a connection before its user signs in. */
export function networksOfUnknown(network: string): readonly CountedNetwork[] {
  return countedNetworks(network).map(({ name, factor }) => ({ name, factor: SIGNED_IN_FACTOR * factor }))
}

/** Whether it stands for more than one client's network. */
export function isWide({ factor }: CountedNetwork): boolean {
  return factor > 1
}

/** A network of `countedNetworks` for a person, such as `203.0.113.7` or `2001:db8:7::/48`. */
export function shownNetwork(name: string): string {
  const bytes = Buffer.from(name.replace(/::\/32$/, ''), 'latin1')
  if (bytes.length === IPV4_BYTES && name.length === IPV4_BYTES) return bytes.join('.')
  const padded = Buffer.concat([bytes, Buffer.alloc(IPV6_BYTES)])
  const groups = [0, 2, 4, 6].map(at => padded.readUInt16BE(at).toString(16))
  while (groups.at(-1) === '0') groups.pop()
  return `${groups.join(':')}::/${bytes.length * 8}`
}

const IPV4_BYTES = 4
const IPV6_BYTES = 8
/** Contract 0.1, "8 Rates by address". */
const SIGNED_IN_FACTOR = 20
