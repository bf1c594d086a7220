/**
 * Which web pages may call the API (Fetch standard; contract 1.7): exact origins, in development also every page that this
 * machine serves; bearer tokens and no cookies. Without either there is none of it; the log's files are open to every page
 * by themselves.
 */

export class CorsPolicy {
  readonly #origins: ReadonlySet<string>
  readonly #isLoopbackAllowed: boolean

  /** `isLoopbackAllowed`: whether pages of any loopback origin may call, too. */
  constructor(origins: readonly string[], isLoopbackAllowed = false) {
    this.#origins = new Set(origins)
    this.#isLoopbackAllowed = isLoopbackAllowed
  }

  isAllowed(origin: string): boolean {
    return this.#origins.has(origin) || (this.#isLoopbackAllowed && LOOPBACK_ORIGIN.test(origin))
  }
}

/** Whether the page came from this server, under the name that it was just asked by or under its public one. */
export function isOwnOrigin(origin: string, host: string, publicUrl: string | undefined): boolean {
  try {
    const url = new URL(origin)
    const ownUrls = [`${url.protocol}//${host}`, ...(publicUrl === undefined ? [] : [publicUrl])]
    return url.origin !== 'null' && ownUrls.some(own => new URL(own).origin === url.origin)
  } catch {
    return false
  }
}

/** As browsers send it. Names below `localhost` are loopback as well (RFC 6761, 6.3). */
const LOOPBACK_ORIGIN =
  /^https?:\/\/(?:(?:[a-z0-9-]{1,63}\.){0,4}localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(?::\d{1,5})?$/

/** The header that makes an OPTIONS request a preflight (Fetch standard, 4.8). */
export const PREFLIGHT_MARK = 'access-control-request-method'

/** The reply to a preflight of an allowed origin. Two hours are the longest that Chromium remembers. */
export const PREFLIGHT_HEADERS: readonly (readonly [string, string])[] = [
  ['Access-Control-Allow-Methods', 'GET, POST, PUT, DELETE'],
  [
    'Access-Control-Allow-Headers',
    'authorization, content-type, idempotency-key, if-match, x-client-version',
  ],
  ['Access-Control-Max-Age', '7200'],
]

/** The same for the log's files, which every page may read, also one that puts a header of its own on all it asks for. */
export const FILE_PREFLIGHT_HEADERS: readonly (readonly [string, string])[] = [
  ['Access-Control-Allow-Methods', 'GET, HEAD'],
  ...PREFLIGHT_HEADERS.slice(1),
]

/** The headers of answers that a page may read. `Date` tells apps the time by the server's clock. */
export const EXPOSED_HEADERS =
  'date, retry-after, ratelimit, ratelimit-policy, x-request-id, api-version, deprecation'
