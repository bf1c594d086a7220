/**
 * The keys of the call that this tab is in, by epoch, in this page's memory and nowhere else. The last two are kept: what
 * was encrypted with the one before may still be on its way when a new one comes.
 */

import { fingerprintOf, mediaKeyOf, openText, sealText } from './call-key.ts'
import type { Bytes } from './device-key.ts'

interface HeldKey {
  readonly epoch: number
  readonly key: Bytes
  readonly mediaKey: CryptoKey
}

/** On the topic of media's signals. */
export interface SealedSignal {
  readonly epoch: number
  /** base64, see `sealText`. */
  readonly sealed: string
}

export class CallKeys {
  #callId: string | undefined
  /** Newest first. */
  #held: readonly HeldKey[] = []
  /** Signals of an epoch whose key has not come yet. */
  #early: SealedSignal[] = []
  /** Gets the text of each signal sealed with the call's key. */
  onMediaSignal: (text: string) => void = () => {}

  has(callId: string): boolean {
    return this.#callId === callId && this.#held.length > 0
  }

  /** The newest key; undefined when there is none of this call. */
  newest(callId: string): HeldKey | undefined {
    return this.#callId === callId ? this.#held[0] : undefined
  }

  /** Keeps a key, and gives the fingerprint of the newest one. */
  async hold(callId: string, epoch: number, key: Bytes): Promise<string> {
    if (this.#callId !== callId) this.wipe()
    const mediaKey = await mediaKeyOf(key, callId, epoch)
    this.#callId = callId
    const others = this.#held.filter(held => held.epoch !== epoch)
    this.#held = [{ epoch, key, mediaKey }, ...others].sort((a, b) => b.epoch - a.epoch).slice(0, KEPT_MAX)
    const early = this.#early.splice(0)
    for (const signal of early) this.onSealed(callId, signal.epoch, signal.sealed)
    const newest = this.#held[0]!
    return fingerprintOf(newest.key, callId, newest.epoch)
  }

  /** Overwrites and forgets all keys. */
  wipe(): void {
    for (const { key } of this.#held) key.fill(0)
    this.#held = []
    this.#early = []
    this.#callId = undefined
  }

  /** For the topic of media's signals; undefined when there is no key. */
  async sealText(callId: string, text: string): Promise<SealedSignal | undefined> {
    const held = this.newest(callId)
    return held && { epoch: held.epoch, sealed: await sealText(text, held.mediaKey) }
  }

  /** Opens a sealed signal from the topic. One sealed without a key of the call is skipped. */
  onSealed(callId: string, epoch: number, sealed: string): void {
    if (this.#callId !== callId) return
    const held = this.#held.find(held => held.epoch === epoch)
    if (held === undefined) {
      this.#early = [...this.#early, { epoch, sealed }].slice(-EARLY_MAX)
      return
    }
    this.#inOrder = this.#inOrder
      .then(async () => this.onMediaSignal(await openText(sealed, held.mediaKey)))
      .catch(() => {})
  }

  /** An offer is to be read before its candidates. */
  #inOrder: Promise<void> = Promise.resolve()
}

const KEPT_MAX = 2
const EARLY_MAX = 100
