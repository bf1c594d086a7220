/** The keys of a call by epoch: which one frames are sealed with, and how long older ones open frames. */

import { type DeviceCall, type HeldKey, isAsking, newestKey } from './device.ts'
import type { Turn } from './turn.ts'

/** Keeps a key. A device that has just come back, or had none, sends with it at once, as all in the call do. */
export function hold(turn: Turn, callId: string, key: HeldKey, wasAway = false): void {
  const call = turn.call(callId)
  if (call === undefined) return
  const others = call.key.held.filter(({ epoch }) => epoch !== key.epoch)
  const all = [key, ...others].sort((a, b) => b.epoch - a.epoch)
  const held = all.slice(0, KEPT_MAX)
  turn.change(callId, { key: { kind: 'held', held } })
  const [newest] = held
  const before = newestKey(call)
  if (newest !== undefined && (newest.key !== before?.key || newest.epoch !== before.epoch)) {
    turn.change(callId, { unopened: [] })
    turn.act({ do: 'emit', callId, name: 'key', value: newest })
  }
  const { sending } = call
  if (sending.epoch === 0 || wasAway || isAsking(call)) return use(turn, callId, key.epoch)
  const due = { epoch: key.epoch, atMs: turn.nowMs + SPREAD_MS }
  if (key.epoch > sending.epoch)
    turn.change(callId, { sending: { ...sending, uses: added(sending.uses, due) } })
  else if (key.epoch < sending.epoch)
    turn.change(callId, { sending: { ...sending, drops: added(sending.drops, due) } })
}

/** All have it by now. Frames of the ones before may still be on their way. */
export function use(turn: Turn, callId: string, epoch: number): void {
  const call = turn.call(callId)
  const held = call?.key.held.find(one => one.epoch === epoch)
  // A newer one may have been used at once, after a return to the call.
  if (call === undefined || held === undefined || epoch <= call.sending.epoch) return
  const { uses, drops } = call.sending
  const old = call.key.held.filter(one => one.epoch < epoch && !drops.some(drop => drop.epoch === one.epoch))
  const atMs = turn.nowMs + SPREAD_MS
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

type Due = DeviceCall['sending']['uses'][number]

/** A key of the same epoch that comes once more puts nothing off. */
function added(all: readonly Due[], due: Due): readonly Due[] {
  return all.some(({ epoch }) => epoch === due.epoch) ? all : [...all, due]
}

/** More than the two that a call has unless keys are made faster than they are used. */
const KEPT_MAX = 4
/** From a key's arrival to its use, and from its use to the end of the one before. */
const SPREAD_MS = 5_000
