/**
 * Guards the development surface: it shows codes, so a reader could sign in as any user (contract 0.1, "14 Development").
 * It answers only requests that name this machine. Data and commands are for this machine's own requests alone, even where
 * phones on the same network are served: not for pages from elsewhere, and not for requests that a proxy or a tunnel
 * on this machine forwards.
 *
 * A page that has its own name resolve to this machine (DNS rebinding) is same-origin for the browser, but the Host
 * header still has that name. A page of another origin may send requests without asking (Fetch standard,
 * "CORS-safelisted request header"), whose answers it can't read: none of these has the media type
 * `application/json`, and all of them say where they come from.
 */

import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { SignalError } from '../../errors.ts'
import type { HttpRequest, HttpRoute } from '../../transport/route.ts'

export interface GuardOptions {
  /** The address that clients see. */
  readonly publicUrl: () => string
  /** Whether the network's other machines may use any address of this one. */
  readonly isExposed: boolean
  /** Origins of pages that the API is open to: they may read here, too. */
  readonly corsOrigins: readonly string[]
}

/** Lets through requests that name this machine; refuses the rest with `HOST_NOT_ALLOWED`. */
export function guardHost(route: HttpRoute, options: GuardOptions): HttpRoute {
  return guarded(route, request => assertHost(request, options))
}

/** Lets through requests that come from this machine, directly, and ask for one of its addresses. */
export function guardPlace(route: HttpRoute, options: GuardOptions): HttpRoute {
  return guarded(route, request => assertHere(request, options))
}

/**
 * Likewise, for this server's own pages: refuses other origins with `ORIGIN_NOT_ALLOWED`, and a body that is not
 * `application/json` with `UNSUPPORTED_MEDIA_TYPE`.
 */
export function guardData(route: HttpRoute, options: GuardOptions): HttpRoute {
  return guarded(route, request => {
    assertHere(request, options)
    assertOrigin(request, options)
    if (request.method === 'POST') assertJson(request)
  })
}

function guarded(route: HttpRoute, check: (request: HttpRequest) => void): HttpRoute {
  return {
    ...route,
    headers: [...(route.headers ?? []), ...HEADERS_OF_PLACE, 'origin', 'sec-fetch-site'],
    handle(request) {
      check(request)
      return route.handle(request)
    },
  }
}

function assertHost({ header }: HttpRequest, { publicUrl, isExposed }: GuardOptions): void {
  const name = hostNameOf(header('host'))
  if (name !== undefined) {
    if (isLoopbackName(name) || name === new URL(publicUrl()).hostname) return
    if (isExposed && isIP(addressIn(name)) !== 0) return
  }
  throw new SignalError(
    'HOST_NOT_ALLOWED',
    'the development surface is for localhost, as the banner names it',
  )
}

function assertHere(request: HttpRequest, options: GuardOptions): void {
  if (isFromHere(request, options)) return
  throw new SignalError(
    'HOST_NOT_ALLOWED',
    'codes and the console are for the machine that the server runs on, not through a proxy or a tunnel',
  )
}

/** Headers that say where a request comes from: `isFromHere` reads them. */
export const HEADERS_OF_PLACE = [
  'host',
  // Those of proxies and tunnels.
  ...['forwarded*', 'x-forwarded-*', 'via*', 'cf-*', 'x-real-ip*', 'x-original-*'],
] as const

/**
 * Whether a request comes from this machine, asks for one of its addresses, and has no mark of a proxy or a tunnel. A
 * tunnel that forwards bytes leaves no mark, but its clients ask for the tunnel's name.
 */
export function isFromHere({ network, header }: HttpRequest, { isExposed }: GuardOptions): boolean {
  const [host, ...marks] = HEADERS_OF_PLACE
  if (!isThisMachine(network) || marks.some(name => header(name) !== '')) return false
  const name = hostNameOf(header(host))
  if (name === undefined) return false
  return isLoopbackName(name) || (isExposed && ownAddresses().includes(addressIn(name)))
}

/**
 * Whether a network, as `networkOf` has it, is this machine itself: loopback, or an IPv4 address of its own. Its IPv6
 * addresses share a network with its neighbours.
 */
function isThisMachine(network: string): boolean {
  const bytes = Buffer.from(network, 'latin1')
  if (bytes.length !== 4) return bytes.length > 0 && bytes.every(byte => byte === 0)
  if (bytes[0] === 127) return true
  return ownAddresses().includes(bytes.join('.'))
}

function ownAddresses(): readonly string[] {
  const own = Object.values(networkInterfaces()).flatMap(addresses => addresses ?? [])
  return own.map(({ address }) => address)
}

function assertOrigin({ method, header }: HttpRequest, { corsOrigins }: GuardOptions): void {
  const origin = header('origin')
  if (origin === '') {
    const site = header('sec-fetch-site')
    // A program sends none; `none` means a typed address.
    if (site === '' || site === 'none' || site === 'same-origin') return
  } else if (URL.canParse(origin)) {
    const { host } = new URL(origin)
    if (host !== '' && host === header('host').toLowerCase()) return
    if (method !== 'POST' && corsOrigins.includes(origin)) return
  }
  throw new SignalError(
    'ORIGIN_NOT_ALLOWED',
    'the development surface is not for pages of other origins; those in CALLSIGN_CORS_ORIGINS may read',
  )
}

function assertJson({ contentType }: HttpRequest): void {
  const [mediaType = ''] = contentType.split(';')
  if (mediaType.trim().toLowerCase() === 'application/json') return
  throw new SignalError('UNSUPPORTED_MEDIA_TYPE', 'send application/json')
}

/** The name or address in a Host header, as URLs have it; undefined for any other text. */
function hostNameOf(host: string): string | undefined {
  const form = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i
  if (!form.test(host) || !URL.canParse(`http://${host}`)) return undefined
  return new URL(`http://${host}`).hostname
}

function isLoopbackName(name: string): boolean {
  return name === 'localhost' || name === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(name)
}

/** Without the brackets of an IPv6 address. */
function addressIn(name: string): string {
  return name.replace(/^\[|\]$/g, '')
}
