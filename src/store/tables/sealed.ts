/** Bytes that a store keeps sealed, for the one use that it names: opened as anything else, or by another secret, it is lost. */

import { IV_BYTES, openSealed, type Secrets, seal } from '../../domain/secrets.ts'

export type SealingSecrets = Pick<Secrets, 'seal'>

export class Sealed {
  readonly #key: Secrets['seal']
  readonly #randomBytes: (length: number) => Uint8Array
  readonly #use: string

  constructor({ seal }: SealingSecrets, randomBytes: (length: number) => Uint8Array, use: string) {
    this.#key = seal
    this.#randomBytes = randomBytes
    this.#use = use
  }

  /** As `seal` of `domain` makes it: it begins with `IV_BYTES` random bytes, so that no two begin alike. */
  seal(plain: Uint8Array): Uint8Array {
    return seal(this.#key, this.#use, this.#randomBytes(IV_BYTES), plain)
  }

  /** The plain bytes; undefined when another secret has sealed them. */
  open(sealed: Uint8Array): Uint8Array | undefined {
    return openSealed(this.#key, this.#use, sealed)
  }
}
