/**
 * Seals this page's frames and opens the other members' with the keys of a call. All state is bounded, and none is made
 * by a frame that is not authentic.
 */

import type { Bytes } from '../devices/device-keys.ts'
import { deriveMediaBase, type FrameFormat, openFrame, parseFrame, sealFrame } from './media-frame.ts'
import { deriveSFrameKey, importBaseKey, type SFrameKey } from './sframe.ts'

/** Why a frame was not opened. */
export type FrameFailure =
  /** It was sealed with the key of an epoch that is not held here. */
  | 'no-key'
  /** It was sealed with another key, or changed on the way. */
  | 'not-authentic'
  /** It came before, is older than the window, or has a key that its sender had left for a newer one. */
  | 'replayed'
  /** It was sealed by this page. */
  | 'reflected'
  | 'malformed'
  /** More senders than a call can have in one epoch. */
  | 'too-many-senders'

export type Opened =
  | {
      readonly kind: 'opened'
      readonly frame: Bytes
      readonly epoch: number
      /** Its sender is the last whose frames this epoch's key opens: the call needs the next one. */
      readonly fillsEpoch: boolean
    }
  | { readonly kind: 'failed'; readonly reason: FrameFailure }

interface Epoch {
  readonly key: Bytes
  readonly baseKey: Promise<CryptoKey>
  /** By KID. Only an authentic frame adds one. */
  readonly senders: Map<bigint, Sender>
}

interface Sender {
  readonly key: SFrameKey
  readonly window: ReplayWindow
  /** When its first frame of this epoch was opened. */
  readonly sinceMs: number
}

interface Sending {
  readonly epoch: number
  readonly kid: bigint
  readonly key: Promise<SFrameKey>
}

export class FrameCryptor {
  readonly #callId: string
  readonly #monotonicMs: () => number
  readonly #epochs = new Map<number, Epoch>()
  /**
   * All members seal with one call key. A KID of its own for each run of the page gives each an SFrame key of its own, so
   * that no nonce is used twice under one key, not even after a reload.
   */
  #ownNumbers: readonly bigint[] = [randomNumber()]
  /** One for all tracks and epochs, and it never goes back. */
  #counter = 0n
  #sending: Sending | undefined

  constructor(callId: string, monotonicMs = () => performance.now()) {
    this.#callId = callId
    this.#monotonicMs = monotonicMs
  }

  /** Adds the key for opening this epoch's frames. The oldest epoch goes when there are too many. */
  setKey(epoch: number, key: Bytes): void {
    const isHeld = this.#epochs.get(epoch)?.key.every((byte, index) => byte === key[index]) ?? false
    // Sent again, it must not forget which frames came before.
    if (isHeld || epoch < 1 || epoch > EPOCH_MAX) return
    const isUsed = this.#sending?.epoch === epoch
    this.dropKey(epoch)
    const baseKey = deriveMediaBase(key, this.#callId, epoch).then(importBaseKey)
    this.#epochs.set(epoch, { key: key.slice(), baseKey, senders: new Map() })
    if (isUsed) this.useKey(epoch)
    if (this.#epochs.size > EPOCHS_MAX) this.dropKey(Math.min(...this.#epochs.keys()))
  }

  /**
   * Chooses the key for sealing frames; without an epoch, no frame is sealed. Returns false where the key is not held.
   */
  useKey(epoch: number | undefined): boolean {
    if (epoch === undefined) this.#sending = undefined
    const held = epoch === undefined ? undefined : this.#epochs.get(epoch)
    if (epoch === undefined || held === undefined) return false
    if (this.#sending?.epoch === epoch) return true
    const kid = kidOf(epoch, this.#ownNumbers[0]!)
    this.#sending = { epoch, kid, key: held.baseKey.then(base => deriveSFrameKey(base, kid)) }
    return true
  }

  /** Frames of this epoch can't be opened any more, and none is sealed with its key. */
  dropKey(epoch: number): void {
    this.#epochs.get(epoch)?.key.fill(0)
    this.#epochs.delete(epoch)
    if (this.#sending?.epoch === epoch) this.#sending = undefined
  }

  /** Undefined where there is no key yet, or its codec makes no such frame: then nothing may be sent. */
  async seal(format: FrameFormat, frame: Bytes): Promise<Bytes | undefined> {
    const sending = this.#sending
    if (sending === undefined) return undefined
    // Taken before anything is waited for: no other frame gets it.
    const counter = this.#counter++
    return sealFrame(format, await sending.key, { kid: sending.kid, counter }, frame)
  }

  async open(format: FrameFormat, bytes: Bytes): Promise<Opened> {
    const sealed = parseFrame(format, bytes)
    if (sealed === undefined) return failed('malformed')
    const { kid, counter } = sealed
    const number = Number(kid >> NUMBER_BITS)
    const epoch = this.#epochs.get(number)
    if (epoch === undefined) return failed('no-key')
    const known = epoch.senders.get(kid)
    if (known === undefined && epoch.senders.size >= SENDERS_MAX) return failed('too-many-senders')
    if (known?.window.has(counter) || this.#hasLeft(number, kid)) return failed('replayed')
    const key = known?.key ?? (await deriveSFrameKey(await epoch.baseKey, kid))
    const frame = await openFrame(sealed, key).catch(() => undefined)
    if (frame === undefined) return failed('not-authentic')
    if (this.#ownNumbers.includes(kid & NUMBER_MASK)) {
      this.#renewNumber()
      return failed('reflected')
    }
    // Another track's frame may have been first.
    const first = epoch.senders.get(kid)
    const sender = first ?? { key, window: new ReplayWindow(), sinceMs: this.#monotonicMs() }
    if (!sender.window.add(counter)) return failed('replayed')
    if (first === undefined && epoch.senders.size >= SENDERS_MAX) return failed('too-many-senders')
    epoch.senders.set(kid, sender)
    const fillsEpoch = first === undefined && epoch.senders.size === SENDERS_MAX
    return { kind: 'opened', frame, epoch: number, fillsEpoch }
  }

  /** Frames under way when the sender took a newer key have arrived. */
  #hasLeft(epoch: number, kid: bigint): boolean {
    const untilMs = this.#monotonicMs() - LATE_MS
    return [...this.#epochs].some(([newer, { senders }]) => {
      const sender = newer > epoch ? senders.get(kidOf(newer, kid & NUMBER_MASK)) : undefined
      return sender !== undefined && sender.sinceMs <= untilMs
    })
  }

  /** The gateway has sent a frame back, or a member has the same number by chance, which must not stay so. */
  #renewNumber(): void {
    if (this.#ownNumbers.length > RENEWALS_MAX) return
    this.#ownNumbers = [randomNumber(), ...this.#ownNumbers]
    const epoch = this.#sending?.epoch
    this.#sending = undefined
    if (epoch !== undefined) this.useKey(epoch)
  }
}

/** Which counters were there, of the newest 1,024. */
export class ReplayWindow {
  /** A bit for each, by its remainder: an epoch may have thousands of windows. */
  readonly #seen = new Uint8Array(Number(WINDOW) / 8)
  #newest = -1n

  /** Also those that are too old to tell. */
  has(counter: bigint): boolean {
    if (counter > this.#newest) return false
    if (counter + WINDOW <= this.#newest) return true
    const { byte, bit } = placeOf(counter)
    return (this.#seen[byte]! & bit) !== 0
  }

  /** False where it was there before. */
  add(counter: bigint): boolean {
    if (this.has(counter)) return false
    if (counter >= this.#newest + WINDOW) this.#seen.fill(0)
    else for (let passed = this.#newest + 1n; passed <= counter; passed++) this.#set(passed, false)
    this.#set(counter, true)
    if (counter > this.#newest) this.#newest = counter
    return true
  }

  #set(counter: bigint, isSeen: boolean): void {
    const { byte, bit } = placeOf(counter)
    this.#seen[byte] = isSeen ? this.#seen[byte]! | bit : this.#seen[byte]! & ~bit
  }
}

function placeOf(counter: bigint): { readonly byte: number; readonly bit: number } {
  const place = Number(counter % WINDOW)
  return { byte: place >> 3, bit: 1 << (place & 7) }
}

function failed(reason: FrameFailure): Opened {
  return { kind: 'failed', reason }
}

function kidOf(epoch: number, number: bigint): bigint {
  return (BigInt(epoch) << NUMBER_BITS) | number
}

function randomNumber(): bigint {
  const [low, high] = globalThis.crypto.getRandomValues(new Uint32Array(2)) as unknown as [number, number]
  return ((BigInt(high) << 32n) | BigInt(low)) & NUMBER_MASK
}

const NUMBER_BITS = 48n
const NUMBER_MASK = (1n << NUMBER_BITS) - 1n
const EPOCH_MAX = 0xffff
const EPOCHS_MAX = 4
/** In one epoch. A member who makes up more than that has the call make a new key. */
const SENDERS_MAX = 4_096
/** Frames take no longer from a sender to here. */
const LATE_MS = 5_000
const RENEWALS_MAX = 4
const WINDOW = 1_024n
