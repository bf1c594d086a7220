/** The octets of this device's keys by number, in memory and nowhere else. */

import { fingerprintOf } from '../devices/call-key.ts'
import type { EpochKey } from './call.ts'
import type { HeldKey } from './device.ts'

export class CallKeys {
  readonly #octets = new Map<number, Uint8Array>()
  /** By call, epoch and number: a fingerprint takes thousands of hashes. */
  readonly #epochs = new Map<string, EpochKey>()

  /** Gives its number, which equal octets share. */
  put(key: number, octets: Uint8Array): number {
    for (const [known, others] of this.#octets) {
      if (octets.every((octet, at) => octet === others[at])) return known
    }
    this.#octets.set(key, octets)
    return key
  }

  /** A copy, which stays whole when the key is wiped. */
  copyOf(key: number): Uint8Array {
    return this.#octets.get(key)!.slice()
  }

  epochKey(callId: string, { epoch, key }: HeldKey): EpochKey {
    const name = `${callId} ${epoch} ${key}`
    const known = this.#epochs.get(name)
    if (known !== undefined) return known
    const octets = this.#octets.get(key)!
    const made = { epoch, key: octets, fingerprint: fingerprintOf(octets, callId, epoch) }
    this.#epochs.set(name, made)
    return made
  }

  /** Overwrites and forgets it. */
  wipe(key: number): void {
    const octets = this.#octets.get(key)
    this.#octets.delete(key)
    octets?.fill(0)
    for (const [name, made] of this.#epochs) if (made.key === octets) this.#epochs.delete(name)
  }
}
