/**
 * Whose request it is: the peer's address, or what the trusted proxies in front say of theirs (X-Forwarded-For,
 * contract 8). Without a list of proxies nothing that a client sends is believed.
 */

import type uWS from 'uWebSockets.js'
import { BlockList, isIP } from 'node:net'

export class RemoteAddresses {
  readonly #trusted = new BlockList()
  /** Whether the peer is not always the client. */
  readonly areForwarded: boolean

  /** Addresses and ranges such as `10.0.0.0/8`, IPv4 or IPv6. */
  constructor(trustedProxies: readonly string[]) {
    this.areForwarded = trustedProxies.length > 0
    for (const range of trustedProxies) {
      const [address = '', prefix] = range.split('/')
      const family = isIP(address) === 4 ? 'ipv4' : 'ipv6'
      if (prefix === undefined) this.#trusted.addAddress(address, family)
      else this.#trusted.addSubnet(address, Number(prefix), family)
    }
  }

  /** The client's network (see `networkOf`). Valid until: the request's callback returns. */
  of(res: uWS.HttpResponse, req: uWS.HttpRequest): string {
    const peer = peerOf(res)
    const isForwarded = this.areForwarded && this.#isTrusted(peer)
    return networkOf(isForwarded ? this.clientBehind(peer, forwardedFor(req)) : peer)
  }

  /** Likewise the network of the connection's other end. Valid until: it is closed. */
  ofPeer(res: uWS.HttpResponse): string {
    return networkOf(peerOf(res))
  }

  /**
   * The first address that is no trusted proxy's, from the peer's own backwards through `hops`, the list that each
   * proxy has added its own peer to. An unreadable hop ends the walk: its writer can't be trusted further.
   */
  clientBehind(peer: Uint8Array, hops: readonly string[]): Uint8Array {
    let client = peer
    for (let at = hops.length - 1; at >= 0 && this.#isTrusted(client); at--) {
      const hop = parseHop(hops[at]!)
      if (hop === undefined) break
      client = hop
    }
    return client
  }

  #isTrusted(address: Uint8Array): boolean {
    return address.length === 4
      ? this.#trusted.check(address.join('.'), 'ipv4')
      : this.#trusted.check(formatIpv6(address), 'ipv6')
  }
}

/** Four or 16 bytes, which are uWebSockets' own. */
function peerOf(res: uWS.HttpResponse): Uint8Array {
  return withoutMapping(new Uint8Array(res.getRemoteAddress()))
}

/** The items of every X-Forwarded-For line: some proxies add to the client's line, some add a line of their own. */
function forwardedFor(req: uWS.HttpRequest): readonly string[] {
  const hops: string[] = []
  req.forEach((name, value) => {
    if (name === 'x-forwarded-for') hops.push(...value.split(','))
  })
  return hops
}

/** An address with or without a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:443`. */
function parseHop(hop: string): Uint8Array | undefined {
  const text = hop.trim()
  const [, bracketed, beforePort] = /^\[([^\]]*)\](?::\d+)?$|^([\d.]+):\d+$/.exec(text) ?? []
  return parseAddress(bracketed ?? beforePort ?? text)
}

/**
 * The network that counts as one client: an IPv4 address, or the /64 of an IPv6 address, as a text of its bytes.
 * `address` has 4 or 16 of them, and 4 where an IPv4 address came in on an IPv6 socket.
 */
export function networkOf(address: Uint8Array): string {
  return Buffer.from(address.subarray(0, 8)).toString('latin1')
}

/** Four or 16 bytes; undefined for any other text. */
export function parseAddress(text: string): Uint8Array | undefined {
  const version = text.includes('%') ? 0 : isIP(text)
  if (version === 0) return undefined
  if (version === 4) return Uint8Array.from(text.split('.'), Number)
  // `URL` writes any form of an IPv6 address in groups of hexadecimal digits, with at most one `::`.
  const [left = '', right] = new URL(`http://[${text}]`).hostname.slice(1, -1).split('::')
  const [before, after] = [groupsOf(left), groupsOf(right ?? '')]
  const groups = [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after]
  return withoutMapping(Uint8Array.from(groups.flatMap(group => [group >> 8, group & 0xff])))
}

function groupsOf(text: string): number[] {
  return text === '' ? [] : text.split(':').map(group => Number.parseInt(group, 16))
}

function formatIpv6(address: Uint8Array): string {
  return Buffer.from(address)
    .toString('hex')
    .replace(/.{4}(?=.)/g, '$&:')
}

/** An IPv4 address that came in on an IPv6 socket is still an IPv4 address (RFC 4291, 2.5.5.2). */
function withoutMapping(address: Uint8Array): Uint8Array {
  if (address.length !== 16 || address[10] !== 0xff || address[11] !== 0xff) return address
  for (let at = 0; at < 10; at++) if (address[at] !== 0) return address
  return address.subarray(12)
}
