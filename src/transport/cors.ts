/**
 * Which web pages may call the API (Fetch standard; contract 1.7): exact origins, bearer tokens and no cookies. Without
 * origins there is none of it; the log's files are open to every page by themselves.
 */

export class CorsPolicy {
  readonly #origins: ReadonlySet<string>

  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins)
  }

  isAllowed(origin: string): boolean {
    return this.#origins.has(origin)
  }
}

/** The header that makes an OPTIONS request a preflight (Fetch standard, 4.8). */
export const PREFLIGHT_MARK = 'access-control-request-method'

/** What a preflight of an allowed origin is told. Two hours are the longest that Chromium remembers. */
export const PREFLIGHT_HEADERS: readonly (readonly [string, string])[] = [
  ['Access-Control-Allow-Methods', 'GET, POST, PUT, DELETE'],
  ['Access-Control-Allow-Headers', 'authorization, content-type, idempotency-key, x-client-version'],
  ['Access-Control-Max-Age', '7200'],
]

/** The same for the log's files, which every page may read, also one that puts a header of its own on all it asks for. */
export const FILE_PREFLIGHT_HEADERS: readonly (readonly [string, string])[] = [
  ['Access-Control-Allow-Methods', 'GET, HEAD'],
  ...PREFLIGHT_HEADERS.slice(1),
]

/** The headers of answers that a page may read. */
export const EXPOSED_HEADERS =
  'retry-after, ratelimit, ratelimit-policy, x-request-id, api-version, deprecation'
