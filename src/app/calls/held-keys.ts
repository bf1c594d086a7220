/** The keys of a call by epoch: which one frames are sealed with, and how long older ones open frames. */

import type { CallRecord, KeysReason } from '../wire.ts'
import { type DeviceCall, type HeldKey, isAsking, newestKey } from './device.ts'
import { report } from './ending.ts'
import { noteOpened, refusalOfSet } from './key-rules.ts'
import type { Turn } from './turn.ts'

interface Taking {
  /** This device has just come back, or had no key: everyone in the call already sends with it. */
  readonly wasAway?: boolean
  /** Why it was made: after a person has left it is used at once. */
  readonly reason?: KeysReason | undefined
}

/** Keeps a key. A second key of a held epoch replaces a provisional key, and only the host may send it. */
export function hold(
  turn: Turn,
  callId: string,
  key: HeldKey,
  { wasAway = false, reason }: Taking = {},
): void {
  const call = turn.call(callId)
  if (call === undefined) return
  // Also one of this device's own, which was on its way when they were removed.
  const ignored = refusalOfSet(turn, callId, key, undefined)
  if (ignored !== undefined) return report(turn, callId, ignored)
  const same = call.key.held.find(({ epoch }) => epoch === key.epoch)
  const isOther = same !== undefined && same.key !== key.key
  if (isOther && (same.isProvisional === undefined || key.isProvisional))
    return report(turn, callId, KEY_CHANGED)
  const others = call.key.held.filter(({ epoch }) => epoch !== key.epoch)
  const all = [key, ...others].sort((a, b) => b.epoch - a.epoch)
  const held = all.slice(0, KEPT_MAX)
  // The host may answer the ask yet.
  const nonce = key.isProvisional ? call.nonce : undefined
  turn.change(callId, { key: { kind: 'held', held }, nonce, offer: undefined })
  const [newest] = held
  const before = newestKey(call)
  if (newest !== undefined && (newest.key !== before?.key || newest.epoch !== before.epoch)) {
    turn.change(callId, { unopened: [], heldAtMs: turn.nowMs })
    turn.act({ do: 'emit', callId, name: 'key', value: newest })
    noteOpened(turn, callId, newest.epoch)
  }
  const { sending } = call
  if (isOther && sending.epoch === key.epoch) turn.act({ do: 'emit', callId, name: 'sending', value: key })
  const isUrgent = reason === 'leave' && key.epoch > sending.epoch
  if (sending.epoch === 0 || wasAway || isAsking(call) || isUrgent)
    return use(turn, callId, key.epoch, reason)
  const due = { epoch: key.epoch, atMs: turn.nowMs + SPREAD_MS }
  if (key.epoch > sending.epoch)
    turn.change(callId, { sending: { ...sending, uses: added(sending.uses, due) } })
  else if (key.epoch < sending.epoch)
    turn.change(callId, { sending: { ...sending, drops: added(sending.drops, due) } })
}

/**
 * All members have it. Frames of the ones before may still be on their way: after a rotation by time they are opened
 * for longer.
 */
export function use(turn: Turn, callId: string, epoch: number, reason?: KeysReason): void {
  const call = turn.call(callId)
  const held = call?.key.held.find(one => one.epoch === epoch)
  // A newer one may have been used at once, after a return to the call.
  if (call === undefined || held === undefined || epoch <= call.sending.epoch) return
  const { uses, drops } = call.sending
  const old = call.key.held.filter(one => one.epoch < epoch && !drops.some(drop => drop.epoch === one.epoch))
  const atMs = turn.nowMs + (reason === 'leave' ? SPREAD_MS : KEPT_MS)
  const sending = {
    epoch,
    uses: uses.filter(one => one.epoch > epoch),
    drops: [...drops, ...old.map(one => ({ epoch: one.epoch, atMs }))],
  }
  turn.change(callId, { sending })
  turn.act({ do: 'emit', callId, name: 'sending', value: held })
}

/** Its frames can't be opened any more. */
export function drop(turn: Turn, callId: string, epoch: number): void {
  const call = turn.call(callId)
  if (call === undefined) return
  const { key, sending } = call
  turn.change(callId, {
    key: { ...key, held: key.held.filter(one => one.epoch !== epoch) },
    sending: { ...sending, drops: sending.drops.filter(one => one.epoch !== epoch) },
  })
}

/** The newest key seals frames until then, even if a server withholds newer ones. */
export function outdatedAtMs({ heldAtMs, record }: DeviceCall): number {
  return heldAtMs + periodMsOf(record) + KEPT_MS
}

/** Whether this key, or a newer one, was in use for as long as one may be: it does not come back. */
export function isOutdated({ nowMs }: Turn, call: DeviceCall, epoch: number): boolean {
  return epoch <= (newestKey(call)?.epoch ?? 0) && nowMs >= outdatedAtMs(call)
}

/** The time of a key. No server has keys made all the time, or none. */
export function periodMsOf(record: Pick<CallRecord, 'keyRotationIn'> | undefined): number {
  const { keyRotationIn = PERIOD_S } = record ?? {}
  return keyRotationIn > PERIOD_MIN_S ? 1000 * Math.min(keyRotationIn, PERIOD_S) : 1000 * PERIOD_MIN_S
}

type Due = DeviceCall['sending']['uses'][number]

/** A key of the same epoch that comes once more puts nothing off. */
function added(all: readonly Due[], due: Due): readonly Due[] {
  return all.some(({ epoch }) => epoch === due.epoch) ? all : [...all, due]
}

const KEY_CHANGED = {
  code: 'CALL_KEY_CHANGED',
  message: 'Another key was sent for an epoch of the call whose key is here already.',
}
/** More than the two that a call has unless keys are made faster than they are used. */
const KEPT_MAX = 4
/** From a key's arrival to its use, and after a person has left to the end of the one before. */
const SPREAD_MS = 5_000
/** From a key's use to the end of the one before, which frames on their way may still need. */
const KEPT_MS = 60_000
/** The host makes a key as often, and no server makes it less. */
const PERIOD_S = 600
const PERIOD_MIN_S = 60
