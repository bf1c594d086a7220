/** The policy of the page: Next.js gives its own inline scripts the nonce that it finds in the request. */

import { type NextRequest, NextResponse } from 'next/server'
import { server } from './app/pins.ts'

/** Where calls have their sound and picture: the gateway of the server, such as wss://media.example.org. */
const MEDIA = process.env.MEDIA ?? 'ws://127.0.0.1:*'

export function proxy(request: NextRequest): NextResponse {
  // The page for developers evaluates code, and has inline styles.
  if (process.env.NODE_ENV !== 'production') return NextResponse.next()
  const policy = policyWith(crypto.randomUUID())
  const headers = new Headers(request.headers)
  headers.set('Content-Security-Policy', policy)
  const response = NextResponse.next({ request: { headers } })
  response.headers.set('Content-Security-Policy', policy)
  return response
}

function policyWith(nonce: string): string {
  return [
    "default-src 'none'",
    `script-src 'self' 'nonce-${nonce}'`,
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "media-src 'self' blob:",
    "worker-src 'self' blob:",
    `connect-src 'self' ${server} ${server.replace(/^http/, 'ws')} ${MEDIA}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

/** Pages, and no files. */
export const config = { matcher: '/((?!_next/|.*\\.\\w+$).*)' }
