/**
 * Routes of pages and of what they load, and the JSON that pages ask for. Nothing comes from elsewhere, and no script is inline but those that are named.
 */

import type { HttpAnswer, HttpRoute } from '../transport/route.ts'

/**
 * Gives what `read` gives, as it is now. `scripts`: inline scripts that a page may run, as the policy names them.
 * `connectTo`: other servers that it may connect to. `workerScope`: the pages that a service worker may have.
 * It counts against nothing: a page loads some ninety modules, and without one of them stays empty, so that the fifth tab
 * of a minute would.
 */
export function pageRoute(
  path: string,
  contentType: string,
  read: () => string | Uint8Array,
  {
    scripts = [],
    connectTo = [],
    workerScope,
  }: { scripts?: readonly string[]; connectTo?: readonly string[]; workerScope?: string | undefined } = {},
): HttpRoute {
  const sources = (others: readonly string[]) => ["'self'", ...others].join(' ')
  const policy = [...POLICY, `connect-src ${sources(connectTo)}`, `script-src ${sources(scripts)}`]
  const headers = [
    ['Content-Security-Policy', policy.join('; ')],
    ['Cache-Control', 'no-cache'],
    ...(workerScope === undefined ? [] : [['Service-Worker-Allowed', workerScope] as const]),
  ] as const
  const handle = (): HttpAnswer => ({ status: 200, contentType, body: read(), headers })
  return { method: 'GET', path, isUncounted: true, handle }
}

/** An answer of the development surface: JSON, never cached. `json` is the text of the body. */
export function jsonAnswer(status: number, json: string): HttpAnswer {
  return { status, contentType: 'application/json; charset=utf-8', body: json, noStore: true }
}

/** Pictures may be drawn by a page itself, video comes from its peer connections. */
const POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "media-src 'self' blob:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
]
