/**
 * The TURN relay that media takes where two devices can't reach each other (contract 5.2): its addresses, and
 * credentials made as draft-uberti-behave-turn-rest-00 has them. A name says until when it is good and whose it is, the
 * password is its MAC under a secret that the relay knows too: neither side keeps anything.
 */

import { createHmac } from 'node:crypto'
import type { UserId } from '../ids.ts'

export interface TurnRelay {
  /** Secrets shared with the relay, the signing one first; the relay may know the rest still, or already. */
  readonly secrets: readonly [string, ...string[]]
  readonly addresses: TurnAddresses
  /** How long credentials are good, in seconds. */
  readonly lifetimeS: number
}

/** As clients get them: URIs of RFC 7065 and, for STUN, of RFC 7064. */
export interface TurnAddresses {
  readonly tlsUrl: string
  readonly noneTlsUrl: string
  /** Every way to the relay, the one to try first first. */
  readonly uris: readonly string[]
  /** Absent where the relay has none. */
  readonly stunUrl?: string
}

export interface TurnCredentials {
  /** `<expiry>:<userId>`, the expiry in seconds since 1970. */
  readonly username: string
  /** Base64 of the HMAC-SHA1 of the name. */
  readonly password: string
  readonly expiresAtMs: number
}

/** Credentials of the user, good for the relay's time. */
export function turnCredentials(
  { secrets: [secret], lifetimeS }: Pick<TurnRelay, 'secrets' | 'lifetimeS'>,
  userId: UserId,
  nowMs: number,
): TurnCredentials {
  const expiresAtS = Math.floor(nowMs / 1000) + lifetimeS
  const username = `${expiresAtS}:${userId}`
  const password = createHmac('sha1', secret).update(username).digest('base64')
  return { username, password, expiresAtMs: expiresAtS * 1000 }
}

/** A TURN URI taken apart (RFC 7065, section 3.1). */
export interface TurnUrl {
  readonly scheme: 'turn' | 'turns'
  /** Host and, if it is said, port: as written. */
  readonly authority: string
  readonly transport: 'udp' | 'tcp' | undefined
}

/** Undefined for any other text. */
export function parseTurnUrl(text: string): TurnUrl | undefined {
  const { scheme, authority, port = '1', transport } = TURN_URL_FORM.exec(text)?.groups ?? {}
  if (authority === undefined || Number(port) < 1 || Number(port) > 65_535) return undefined
  return {
    scheme: scheme as TurnUrl['scheme'],
    authority,
    transport: transport as TurnUrl['transport'],
  }
}

/**
 * A relay's addresses; the operator names two. A relay listens by UDP and TCP on its plain port, and by TCP on the
 * one with TLS, unless an address says otherwise: `transport=tcp` on the plain one leaves out UDP, and STUN with it.
 */
export function turnAddresses(plain: TurnUrl, tls: TurnUrl): TurnAddresses {
  const tlsUrl = formatTurnUrl(tls, tls.transport ?? 'tcp')
  const byTcp = formatTurnUrl(plain, 'tcp')
  if (plain.transport === 'tcp') return { tlsUrl, noneTlsUrl: byTcp, uris: [byTcp, tlsUrl] }
  const byUdp = formatTurnUrl(plain, 'udp')
  return { tlsUrl, noneTlsUrl: byUdp, uris: [byUdp, byTcp, tlsUrl], stunUrl: `stun:${plain.authority}` }
}

function formatTurnUrl({ scheme, authority }: TurnUrl, transport: 'udp' | 'tcp'): string {
  return `${scheme}:${authority}?transport=${transport}`
}

/**
 * What a development server without settings hands out: good for a relay on the same machine, which `host` names, that knows
 * the secret.
 */
export function developmentRelay(host: string): TurnRelay {
  const plain = `turn:${host}:3478?transport`
  const tls = `turns:${host}:5349?transport=tcp`
  return {
    secrets: ['callsign-development'],
    addresses: {
      tlsUrl: tls,
      noneTlsUrl: `${plain}=udp`,
      uris: [`${plain}=udp`, `${plain}=tcp`, tls],
    },
    lifetimeS: 43_200,
  }
}

/** A host is a name, an IPv4 address or, in brackets, one of IPv6 (RFC 3986, section 3.2.2, no percent-encoding). */
const HOST = String.raw`[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\]`
const TURN_URL_FORM = new RegExp(
  String.raw`^(?<scheme>turns?):(?<authority>(?:${HOST})(?::(?<port>\d{1,5}))?)(?:\?transport=(?<transport>udp|tcp))?$`,
)
