/**
 * The keys of one call by epoch, in memory and nowhere else. The last two are kept: frames of the one before may still be on
 * their way when a new one comes.
 */

import { fingerprintOf } from '../devices/call-key.ts'

export interface EpochKey {
  readonly epoch: number
  /** 32 octets, wiped when the call ends here. */
  readonly key: Uint8Array
  /** Twenty digits that are the same on all devices in the call. */
  readonly fingerprint: string
}

export class CallKeys {
  readonly #callId: string
  /** Newest first. */
  #held: readonly EpochKey[] = []

  constructor(callId: string) {
    this.#callId = callId
  }

  get newest(): EpochKey | undefined {
    return this.#held[0]
  }

  get all(): readonly EpochKey[] {
    return this.#held
  }

  /** Keeps a key; gives it if it is the newest now and was not before. */
  hold(epoch: number, key: Uint8Array): EpochKey | undefined {
    const before = this.newest
    const others = this.#held.filter(held => held.epoch !== epoch)
    const fingerprint = fingerprintOf(key, this.#callId, epoch)
    this.#held = [{ epoch, key, fingerprint }, ...others].sort((a, b) => b.epoch - a.epoch).slice(0, KEPT_MAX)
    const { newest } = this
    return newest?.fingerprint === before?.fingerprint ? undefined : newest
  }

  /** Overwrites and forgets all keys. */
  wipe(): void {
    for (const { key } of this.#held) key.fill(0)
    this.#held = []
  }
}

const KEPT_MAX = 2
