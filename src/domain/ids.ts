/**
 * Ids: unsigned 64-bit integers, `bigint` inside the server and 8 bytes big-endian in its keys (contract 1.3).
 *
 * Ids that the server makes are random below 2^53, so that a client that reads JSON numbers as doubles loses nothing,
 * and at least 2^32, so that none is mistaken for a count. They show no order and can't be walked. Ids of events are texts.
 */

import { assert } from '../errors.ts'
import { OWN_ID_END, OWN_ID_MIN } from '../limits.ts'

export type UserId = bigint & { readonly [BRAND]: 'UserId' }
export type DeviceId = bigint & { readonly [BRAND]: 'DeviceId' }
export type RequestId = bigint & { readonly [BRAND]: 'RequestId' }
export type MethodId = bigint & { readonly [BRAND]: 'MethodId' }
export type CallId = bigint & { readonly [BRAND]: 'CallId' }
export type TokenId = bigint & { readonly [BRAND]: 'TokenId' }
export type CircleId = bigint & { readonly [BRAND]: 'CircleId' }

declare const BRAND: unique symbol

/**
 * The uint64 that a JSON value stands for: a decimal text without sign or leading zero, an integer below 2^53, or a
 * bigint. Undefined for everything else.
 */
export function parseUint64(value: string | number | bigint): bigint | undefined {
  if (typeof value === 'bigint') return value >= 0n && value <= UINT64_MAX ? value : undefined
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0 ? BigInt(value) : undefined
  if (!UINT64_FORM.test(value)) return undefined
  const id = BigInt(value)
  return id <= UINT64_MAX ? id : undefined
}

/** Uniform in [2^32, 2^53). `randomBytes` gives that many bytes of a cryptographic generator. */
export function newId(randomBytes: (length: number) => Uint8Array): bigint {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const bytes = Uint8Array.from(randomBytes(7))
    assert(bytes.length === 7, 'the generator gave as many bytes as asked')
    // 53 of the 56 bits; a number below the range is drawn again, since a remainder would favour some ids.
    bytes[0]! &= 0x1f
    const id = BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
    if (id >= OWN_ID_MIN) return id
  }
  throw new Error('the random generator is broken')
}

/** An id of no other event: 22 base64url characters. `randomBytes` gives that many bytes of a cryptographic generator. */
export function newEventId(randomBytes: (length: number) => Uint8Array): string {
  return Buffer.from(randomBytes(EVENT_ID_BYTES)).toString('base64url')
}

/** Whether the id is in the range of those that the server makes. */
export function isOwnId(id: bigint): boolean {
  return id >= OWN_ID_MIN && id < OWN_ID_END
}

/** As many as a UUID has, which APNs wants of each push. */
const EVENT_ID_BYTES = 16
const UINT64_FORM = /^(?:0|[1-9][0-9]{0,19})$/
const UINT64_MAX = 2n ** 64n - 1n
/** One draw in two million falls below the range; this many in a row do not. */
const TRIES_MAX = 64
