/** The bodies of answers: one that is a text, as bytes, and one that is made part by part. */

import type { AnswerBody } from './route.ts'

/**
 * A body as bytes, valid until the next call. Departure from handing over the text: uWebSockets would measure it, encode it
 * into memory of its own and copy it from there, a microsecond for 2 kB (`bench/lookup.ts`); and from Node 24 on it sends
 * texts within Latin-1 as Latin-1.
 */
export function encoded(body: string | Uint8Array): Uint8Array {
  if (typeof body !== 'string') return body
  return body.length > ENCODED_MAX ? Buffer.from(body) : ENCODING.subarray(0, ENCODING.write(body))
}

/** Whether a body is made part by part. */
export function isStream(body: AnswerBody): body is AsyncIterable<Uint8Array> {
  return typeof body === 'object' && Symbol.asyncIterator in body
}

/** Lets go of a body without a reader. */
export function dropStream(body: AnswerBody, onFault: (error: unknown) => void): void {
  if (isStream(body)) stopParts(body[Symbol.asyncIterator](), onFault)
}

/** Tells the parts' maker that no more are wanted. */
export function stopParts(parts: AsyncIterator<Uint8Array>, onFault: (error: unknown) => void): void {
  parts.return?.().catch(onFault)
}

const ENCODING = Buffer.allocUnsafeSlow(65_536)
/** Characters (UTF-16) of the texts that are encoded there: each takes at most three bytes. */
const ENCODED_MAX = Math.floor(ENCODING.length / 3)
