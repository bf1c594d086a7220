/**
 * Routes of pages and of what they load, and the JSON that pages ask for. Nothing comes from elsewhere, and no script is inline.
 */

import type { HttpAnswer, HttpRoute } from '../transport/route.ts'

/**
 * Gives what `read` gives, as it is now. `connectTo`: other servers that the page may connect to. `workerScope`: the pages
 * that a service worker may have. It counts against nothing: a page that lacks one of its files stays empty, so many tabs
 * opened in a minute would.
 */
export function pageRoute(
  path: string,
  contentType: string,
  read: () => string | Uint8Array,
  { connectTo = [], workerScope }: { connectTo?: readonly string[]; workerScope?: string | undefined } = {},
): HttpRoute {
  const policy = [...POLICY, `connect-src ${["'self'", ...connectTo].join(' ')}`, "script-src 'self'"]
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
