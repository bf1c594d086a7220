/** A reply's body as it goes out: members as JSON text; bytes, and parts that are made one by one, unchanged. */

import type { AnswerBody } from '../../transport/route.ts'
import type { Reply } from './operation.ts'

export function answerBody(body: Reply['body'], textOf: (body: object | string) => string): AnswerBody {
  if (body === undefined) return ''
  return body instanceof Uint8Array || isMadeInParts(body) ? body : textOf(body)
}

/** Such a body is made once: its reply can't be kept for an `Idempotency-Key`. */
export function isMadeInParts(body: object | string): body is AsyncIterable<Uint8Array> {
  return typeof body === 'object' && Symbol.asyncIterator in body
}
