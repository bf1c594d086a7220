/** A JSON document about the server, served with an entity tag; it is the same for as long as the process runs. */

import { createHash } from 'node:crypto'
import type { HttpRoute } from '../../transport/route.ts'

/** Makes the document at its first request, so that it can name addresses known only once the server listens. */
export function documentRoute(path: string, make: () => object, cacheControl = 'no-cache'): HttpRoute {
  let made: { readonly text: string; readonly etag: string } | undefined
  return {
    method: 'GET',
    path,
    headers: ['if-none-match'],
    handle: ({ header }) => {
      made ??= makeText(make())
      const { text, etag } = made
      const isKnown = header('if-none-match')
        .split(',')
        .some(tag => isSameTag(tag.trim(), etag))
      return {
        status: isKnown ? 304 : 200,
        contentType: 'application/json; charset=utf-8',
        body: isKnown ? '' : text,
        headers: [
          ['ETag', etag],
          ['Cache-Control', cacheControl],
        ],
      }
    },
  }
}

function makeText(document: object): { readonly text: string; readonly etag: string } {
  const text = JSON.stringify(document)
  return { text, etag: `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"` }
}

/** RFC 9110 13.1.2: the weak comparison. */
function isSameTag(tag: string, etag: string): boolean {
  return tag === '*' || tag === etag || tag === `W/${etag}`
}
