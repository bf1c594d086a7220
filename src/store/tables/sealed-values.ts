/**
 * Values that a store keeps sealed, and that are mostly opened soon after: the last ones are remembered, so that opening them
 * costs neither deciphering nor decoding. A value that was sealed or opened here must not be changed.
 */

import { decode, encode } from 'msgpackr'
import { IV_BYTES } from '../../domain/secrets.ts'
import { BoundedCache } from '../engine/bounded-cache.ts'
import { nameOfKey } from '../engine/keys.ts'
import { Sealed, type SealingSecrets } from './sealed.ts'

interface Remembered<Value> {
  readonly sealed: Uint8Array
  readonly value: Value
}

export class SealedValues<Value> {
  readonly #sealed: Sealed
  /** By the random bytes with which the sealed ones begin: no two begin alike. */
  readonly #last = new BoundedCache<string, Remembered<Value>>(VALUES_KEPT_MAX)

  constructor(secrets: SealingSecrets, randomBytes: (length: number) => Uint8Array, use: string) {
    this.#sealed = new Sealed(secrets, randomBytes, use)
  }

  seal(value: Value): Uint8Array {
    const sealed = this.#sealed.seal(encode(value))
    this.#last.set(nameOf(sealed), { sealed, value })
    return sealed
  }

  /** Undefined when another secret has sealed it, or its bytes have changed. */
  open(sealed: Uint8Array): Value | undefined {
    const known = this.#last.get(nameOf(sealed))
    if (known !== undefined && Buffer.compare(known.sealed, sealed) === 0) return known.value
    const plain = this.#sealed.open(sealed)
    return plain && decode(plain)
  }
}

function nameOf(sealed: Uint8Array): string {
  return nameOfKey(sealed.subarray(0, IV_BYTES))
}

/** A push is sent within moments; one that waits for longer is read again. */
const VALUES_KEPT_MAX = 256
