/**
 * A call's keys as LiveKit's key providers take them: one for each device and epoch, by the label that the device has at the
 * gateway. The server gives the labels, and the keys are of devices: swapped labels give silence, not another person's sound.
 */

import { hkdf } from '@noble/hashes/hkdf.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { encodeBase64 } from '../../log/base64.ts'
import type { Call, CallEvents } from '../calls/call.ts'
import { concat } from '../devices/octets.ts'

/** A call as far as its media needs it. */
export interface LiveKitCall extends Pick<Call, 'callId' | 'state' | 'keys' | 'sendingKey' | 'roomId'> {
  readonly self: LiveKitMember | undefined
  readonly participants: readonly LiveKitMember[]
  readonly media:
    | { readonly kind: string; readonly url?: string; readonly token?: string; readonly keySize?: number }
    | undefined
  on<Name extends 'changed' | 'media'>(name: Name, listener: (event: CallEvents[Name]) => unknown): () => void
}

interface LiveKitMember {
  readonly userId: string
  readonly state: string
  readonly deviceId?: string
  /** The device's label at the gateway. */
  readonly identity?: string
}

/** For `setKey` of a key provider. */
export interface LiveKitSlot {
  readonly identity: string
  readonly key: string
  readonly keyIndex: number
  /** Whether this device seals with it. It comes last: some providers take the newest index for the one to send with. */
  readonly isSending: boolean
  /** Random octets, since the epoch has ended. */
  readonly isOver: boolean
}

/** The device whose frames a key seals. */
export interface LiveKitSender {
  readonly callId: string
  readonly epoch: number
  readonly userId: string
  readonly deviceId: string
}

/** A string, since all LiveKit SDKs derive the same AES key from a string alone. */
export function liveKitKey(callKey: Uint8Array, { callId, epoch, userId, deviceId }: LiveKitSender): string {
  const numbers = new DataView(new ArrayBuffer(28))
  numbers.setBigUint64(0, BigInt(callId))
  numbers.setUint32(8, epoch)
  numbers.setBigUint64(12, BigInt(userId))
  numbers.setBigUint64(20, BigInt(deviceId))
  const info = concat(new TextEncoder().encode('callsign livekit v1\n'), new Uint8Array(numbers.buffer))
  return encodeBase64(hkdf(sha256, callKey, undefined, info, 32))
}

/** Calls `set` for each key of each device, now and as they come and end, until the call ends. The function given stops it. */
export function feedLiveKitKeys(call: LiveKitCall, set: (slot: LiveKitSlot) => void): () => void {
  let held: ReadonlyMap<string, LiveKitSlot> = new Map()
  const comeAtMs = new Map<number, number>()
  let timer: ReturnType<typeof setTimeout> | undefined
  const follow = () => {
    clearTimeout(timer)
    const waitMs = noteEpochs(comeAtMs, call)
    if (waitMs > 0) timer = setTimeout(follow, waitMs)
    const slots = slotsOf(call, epoch => call.state !== 'ended' && comeAtMs.has(epoch))
    const over = [...held].filter(([place]) => !slots.has(place)).map(([, slot]) => overwritten(slot))
    const isNews = ([place, slot]: [string, LiveKitSlot]) => {
      const before = held.get(place)
      return before?.key !== slot.key || (slot.isSending && !before.isSending)
    }
    const news = [...slots].filter(isNews).map(([, slot]) => slot)
    held = slots
    for (const slot of [...news.filter(({ isSending }) => !isSending), ...over]) set(slot)
    const sending = [...slots.values()].find(({ isSending }) => isSending)
    if (sending !== undefined && [...news, ...over].some(one => one.identity === sending.identity))
      set(sending)
    if (call.state === 'ended') stop()
  }
  const stop = call.on('changed', follow)
  follow()
  return () => {
    stop()
    clearTimeout(timer)
  }
}

/** By label and index. This device seals with the call's sending key, and opens frames with each key that it holds. */
function slotsOf(
  { callId, keys, sendingKey, self, participants }: LiveKitCall,
  hasCome: (epoch: number) => boolean,
): ReadonlyMap<string, LiveKitSlot> {
  const ready = keys.filter(({ epoch }) => hasCome(epoch)).sort((a, b) => a.epoch - b.epoch)
  const used = ready.filter(({ epoch }) => epoch <= (sendingKey?.epoch ?? 0))
  const slots = new Map<string, LiveKitSlot>()
  const others = participants.filter(
    ({ userId, identity }) => userId !== self?.userId && identity !== self?.identity,
  )
  for (const { userId, deviceId, identity, state } of self === undefined ? [] : [...others, self]) {
    if (state !== 'joined' || deviceId === undefined || identity === undefined) continue
    const own = userId === self?.userId
    for (const { epoch, key } of own ? used : ready) {
      const keyIndex = epoch % SLOTS
      const isSending = own && epoch === used.at(-1)?.epoch
      const text = liveKitKey(key, { callId, epoch, userId, deviceId })
      slots.set(`${identity} ${keyIndex}`, { identity, key: text, keyIndex, isSending, isOver: false })
    }
  }
  return slots
}

/**
 * Notes which epochs are here, so that no key meets one in its slot whose frames may still be on their way: they are opened for a
 * minute. Gives how long the next one has to wait, if there is one.
 */
function noteEpochs(comeAtMs: Map<number, number>, { keys }: LiveKitCall): number {
  const nowMs = performance.now()
  const isHeld = (epoch: number) => keys.some(one => one.epoch === epoch)
  for (const [epoch, atMs] of comeAtMs)
    if (!isHeld(epoch) && nowMs - atMs >= SPREAD_MS) comeAtMs.delete(epoch)
  for (const { epoch } of [...keys].sort((a, b) => a.epoch - b.epoch)) {
    const recent = [...comeAtMs.values()].filter(atMs => nowMs - atMs < SPREAD_MS)
    if (comeAtMs.has(epoch)) continue
    if (recent.length >= EPOCHS_MAX) return Math.min(...recent) + SPREAD_MS - nowMs
    comeAtMs.set(epoch, nowMs)
  }
  return 0
}

/** Known to no device. */
export function randomKey(): string {
  return encodeBase64(globalThis.crypto.getRandomValues(new Uint8Array(32)))
}

function overwritten(slot: LiveKitSlot): LiveKitSlot {
  return { ...slot, key: randomKey(), isSending: false, isOver: true }
}

/** The size of the key ring in LiveKit's SDKs. */
export const SLOTS = 16
/** The most epochs that are taken within the time that an old one still opens frames. */
const EPOCHS_MAX = 14
const SPREAD_MS = 60_000
