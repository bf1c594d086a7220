/**
 * Addresses of a host for connections that a client has chosen: a name that leads into a private network, to this machine
 * or to no host at all has none.
 */

import { type LookupAddress, type LookupOptions, lookup } from 'node:dns'
import { BlockList, isIPv6, type LookupFunction } from 'node:net'

/** The name has an address to which no connection may go, or none to which one may. */
export class AddressRefusedError extends Error {
  readonly reason: 'address-not-public' | 'address-not-allowed'

  constructor(reason: AddressRefusedError['reason'], message: string) {
    super(message)
    this.reason = reason
  }
}

/** In the form in which sockets ask. `resolve` is the system's if it is left out. */
export function publicLookup(resolve: typeof lookup.__promisify__ | Resolve = lookup): LookupFunction {
  return (hostname, options, callback) => {
    ;(resolve as Resolve)(hostname, { ...options, all: true }, (error, found) => {
      const [first] = found ?? []
      if (error !== null || first === undefined) return callback(error ?? new Error('no address'), [])
      // One that is not public may be the one that the socket takes.
      if (!found.every(({ address }) => isPublicAddress(address)))
        return callback(new AddressRefusedError('address-not-public', `${hostname} is not public`), [])
      if (options.all) return callback(null, [...found])
      callback(null, first.address, first.family)
    })
  }
}

export type Resolve = (
  hostname: string,
  options: LookupOptions & { readonly all: true },
  callback: (error: NodeJS.ErrnoException | null, found: LookupAddress[]) => void,
) => void

/** By the IANA registries of special-purpose addresses. */
export function isPublicAddress(address: string): boolean {
  if (isIPv6(address)) return GLOBAL_UNICAST.check(address, 'ipv6') && !SPECIAL.check(address, 'ipv6')
  return !SPECIAL.check(address, 'ipv4')
}

const GLOBAL_UNICAST = new BlockList()
GLOBAL_UNICAST.addSubnet('2000::', 3, 'ipv6')

const SPECIAL = new BlockList()
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const)
  SPECIAL.addSubnet(network, prefix, 'ipv4')
// Among them 6to4, which carries any address of IPv4.
for (const [network, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const)
  SPECIAL.addSubnet(network, prefix, 'ipv6')
