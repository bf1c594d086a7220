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
  /** It came before, or is older than the window. */
  | 'replayed'
  /** It was sealed by this page. */
  | 'reflected'
  | 'malformed'
  /** More senders than a call can have in one epoch. */
  | 'too-many-senders'

export type Opened =
  | { readonly kind: 'opened'; readonly frame: Bytes; readonly epoch: number }
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
}

interface Sending {
  readonly epoch: number
  readonly kid: bigint
  readonly key: Promise<SFrameKey>
}

export class FrameCryptor {
  readonly #callId: string
  readonly #epochs = new Map<number, Epoch>()
  /**
   * All members seal with one call key. A KID of its own for each run of the page gives each an SFrame key of its own, so
   * that no nonce is used twice under one key, not even after a reload.
   */
  #ownNumbers: readonly bigint[] = [randomNumber()]
  /** One for all tracks and epochs, and it never goes back. */
  #counter = 0n
  #sending: Sending | undefined

  constructor(callId: string) {
    this.#callId = callId
  }

  /** Opens frames of this epoch from now on. The oldest epoch goes when there are too many. */
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

  /** Seals frames with the key of this epoch from now on. Gives false where it is not held. */
  useKey(epoch: number): boolean {
    const held = this.#epochs.get(epoch)
    if (held === undefined) return false
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
    const epoch = this.#epochs.get(Number(kid >> NUMBER_BITS))
    if (epoch === undefined) return failed('no-key')
    const known = epoch.senders.get(kid)
    if (known === undefined && epoch.senders.size >= SENDERS_MAX) return failed('too-many-senders')
    if (known?.window.has(counter)) return failed('replayed')
    const key = known?.key ?? (await deriveSFrameKey(await epoch.baseKey, kid))
    const frame = await openFrame(sealed, key).catch(() => undefined)
    if (frame === undefined) return failed('not-authentic')
    if (this.#ownNumbers.includes(kid & NUMBER_MASK)) {
      this.#renewNumber()
      return failed('reflected')
    }
    // Another track's frame may have been first meanwhile.
    const sender = epoch.senders.get(kid) ?? { key, window: new ReplayWindow() }
    epoch.senders.set(kid, sender)
    if (!sender.window.add(counter)) return failed('replayed')
    return { kind: 'opened', frame, epoch: Number(kid >> NUMBER_BITS) }
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
  /** The last counter of each remainder, plus 1; 0 where there was none. */
  readonly #last = new BigUint64Array(WINDOW)
  #newest = -1n

  /** Also those that are too old to tell. */
  has(counter: bigint): boolean {
    if (counter + BigInt(WINDOW) <= this.#newest) return true
    return this.#last[Number(counter % BigInt(WINDOW))] === BigInt.asUintN(64, counter + 1n)
  }

  /** False where it was there before. */
  add(counter: bigint): boolean {
    if (this.has(counter)) return false
    this.#last[Number(counter % BigInt(WINDOW))] = counter + 1n
    if (counter > this.#newest) this.#newest = counter
    return true
  }
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
const SENDERS_MAX = 256
const RENEWALS_MAX = 4
const WINDOW = 1024
