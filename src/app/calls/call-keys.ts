/** The octets of this device's keys by number, in memory and nowhere else. */

import { sha256 } from '@noble/hashes/sha2.js'
import { encodeBase64 } from '../../log/base64.ts'
import { Recent } from '../../recent.ts'
import { CallsignError } from '../callsign-error.ts'
import { fingerprintOf, type KeyBinding, makeCallKey } from '../devices/call-key.ts'
import { hashOfSet } from '../devices/key-members.ts'
import type { EpochKey } from './call.ts'
import type { HeldKey } from './device.ts'

export class CallKeys {
  readonly #octets = new Map<number, Uint8Array>()
  /** By call, epoch and number: a fingerprint takes thousands of hashes. */
  readonly #epochs = new Map<string, EpochKey>()
  /** By the hash of each key that there ever was: its call, epoch and set. */
  readonly #uses = new Recent<string, string>(USES_MAX)

  /** 32 random bytes. */
  make(key: number): void {
    this.#octets.set(key, makeCallKey())
  }

  /** Gives its number, which equal octets share. Throws as `bind`. */
  put(key: number, octets: Uint8Array, binding: KeyBinding, keyMembers: string): number {
    this.bind(octets, binding, keyMembers)
    for (const [known, others] of this.#octets) {
      if (octets.every((octet, at) => octet === others[at])) return known
    }
    this.#octets.set(key, octets)
    return key
  }

  /** Notes what a key is for. Throws `CALL_KEY_REUSED` where it had another call, epoch or set. */
  bind(octets: Uint8Array, { callId, epoch }: KeyBinding, keyMembers: string): void {
    const digest = encodeBase64(sha256(octets))
    const use = `${callId} ${epoch} ${keyMembers}`
    const before = this.#uses.get(digest)
    if (before !== undefined && before !== use)
      throw new CallsignError('CALL_KEY_REUSED', 'A key was sent that another epoch of a call has had.')
    this.#uses.set(digest, use)
  }

  /** A copy, which stays whole when the key is wiped. */
  copyOf(key: number): Uint8Array {
    return this.#octets.get(key)!.slice()
  }

  epochKey(callId: string, { epoch, key, keyMembers }: HeldKey): EpochKey {
    const name = `${callId} ${epoch} ${key}`
    const known = this.#epochs.get(name)
    if (known !== undefined) return known
    const octets = this.#octets.get(key)!
    const fingerprint = fingerprintOf(octets, hashOfSet(keyMembers), { callId, epoch })
    const made = { epoch, key: octets, fingerprint }
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

/** More than a call has epochs, and a few hundred bytes each. */
const USES_MAX = 10_000
