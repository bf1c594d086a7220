/** `GET /index/lookup/{indexKey}`: what the index has under a key, or that it has nothing. */

import { SignalError } from '../../errors.ts'
import type { HttpRoute } from '../../transport/route.ts'
import type { IndexReader } from './index-reader.ts'

export const INDEX_LOOKUP_PATH = '/index/lookup/{indexKey}'

/** Counts as a lookup of keys does. */
export function indexLookupRoute(index: Pick<IndexReader, 'lookUp'>): HttpRoute {
  return {
    method: 'GET',
    path: INDEX_LOOKUP_PATH,
    isLookup: true,
    countsFor: 'good-token',
    handle({ params: [key = ''] }) {
      if (!KEY_FORM.test(key))
        throw new SignalError('NOT_FOUND', 'a key of the index is 64 lower-case hexadecimal digits')
      const body = index.lookUp(Uint8Array.from(Buffer.from(key, 'hex')))
      return { status: 200, contentType: 'application/json; charset=utf-8', body, noStore: true }
    },
  }
}

const KEY_FORM = /^[0-9a-f]{64}$/
