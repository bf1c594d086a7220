/**
 * Decides the calls of one device: an input (`input.ts`) and the time go in; the device's new state (`device.ts`) and the acts to
 * carry out (`act.ts`) come out. Nothing else happens here, so the same stories (test/vectors/device-calls.jsonl) hold in every
 * language. The shell carries out the acts in their order, gives each outcome back as an input, and says `time` at
 * `nextDeadlineMs`.
 *
 *     ringing in ─ answer ─> entering ─> active            ringing out ─ a callee joins ─> active
 *     entering ─ it fails ─> ringing in, or ended          entering, active ─ no key ─> rejoining
 *     rejoining ─ no grant ─> keyless                      rejoining, keyless ─ a key ─> active
 *     any ─ close ─> ended, gone with the next input
 *
 * `starting`, `ringing`, `entering`, `rejoining` and `rotation` each decide their part.
 */

import type { Act } from './act.ts'
import { onCommand } from './commands.ts'
import { type Device, type DeviceCall, isAsking, keysIn } from './device.ts'
import { close, endHere, onReasonDue } from './ending.ts'
import { join } from './entering.ts'
import { drop, outdatedAtMs, use } from './held-keys.ts'
import type { Input } from './input.ts'
import { onInvitation, onQueue } from './messages.ts'
import { onOutcome } from './outcomes.ts'
import * as rejoining from './rejoining.ts'
import { onConnected } from './restoring.ts'
import * as ringing from './ringing.ts'
import * as rotation from './rotation.ts'
import * as starting from './starting.ts'
import { onTopic } from './topic.ts'
import { Turn } from './turn.ts'

export function newDevice(userId: string, deviceId: string): Device {
  return {
    ...{
      userId,
      deviceId,
      calls: [],
      starts: [],
      ended: [],
      waiting: [],
      kept: {},
      connection: undefined,
      count: 0,
    },
    restoring: { kind: 'waiting', early: [] },
    clock: { aheadMs: 0, isKnown: false },
  }
}

export function decide(
  before: Device,
  input: Input,
  nowMs: number,
): { readonly device: Device; readonly acts: readonly Act[] } {
  const calls = before.calls.filter(({ phase }) => phase.kind !== 'ended')
  const turn = new Turn({ ...before, calls }, nowMs)
  onInput(turn, input)
  turn.wipeUnused(
    input.on === 'done' && input.key !== undefined ? [...keysIn(before), input.key] : keysIn(before),
  )
  return { device: turn.device, acts: turn.acts }
}

/** When `time` is to be said, if nothing else comes; undefined where nothing is to happen by itself. */
export function nextDeadlineMs({ calls }: Device): number | undefined {
  const all = calls.flatMap(call => deadlinesOf(call).map(({ atMs }) => atMs)).filter(Number.isFinite)
  return all.length === 0 ? undefined : Math.min(...all)
}

function onInput(turn: Turn, input: Input): void {
  switch (input.on) {
    case 'start':
      return starting.start(turn, input)
    case 'close':
      starting.closeStarts(turn, input.reason)
      // They may ring again, or be come back to.
      for (const call of turn.device.calls) endHere(turn, call, input.reason)
      return
    case 'invited':
      return onInvitation(turn, input.invitation)
    case 'cancelled':
      starting.dropHeld(turn, input.callId)
      if (turn.call(input.callId)?.phase.kind === 'ringing in') close(turn, input.callId, input.reason)
      return
    case 'queue':
      return onQueue(turn, input.event, input.command)
    case 'topic':
      return onTopic(turn, input.callId, input.event)
    case 'done':
    case 'failed':
      return onOutcome(turn, input)
    case 'time':
      return onTime(turn)
    case 'restarted':
      turn.device = { ...turn.device, kept: input.kept }
      return
    case 'connected':
      return onConnected(turn, input)
    case 'disconnected':
      turn.device = { ...turn.device, connection: undefined }
      return
    case 'clock':
      turn.device = { ...turn.device, clock: { aheadMs: input.aheadMs, isKnown: input.isKnown } }
      return
    case 'join':
      return join(turn, input.callId, input.command)
    default:
      return onCommand(turn, input)
  }
}

function onTime(turn: Turn): void {
  for (const call of turn.device.calls)
    for (const { atMs, run } of deadlinesOf(call)) if (atMs <= turn.nowMs) run(turn)
}

function deadlinesOf(call: DeviceCall): { readonly atMs: number; readonly run: (turn: Turn) => void }[] {
  const { callId, phase, rotation: planned, end, sending } = call
  const all = []
  if (phase.kind === 'ringing in')
    all.push({ atMs: phase.untilMs, run: (turn: Turn) => ringing.onRingDue(turn, callId) })
  if ('ask' in phase && 'untilMs' in phase.ask) {
    const { ask } = phase
    all.push({ atMs: phase.ask.untilMs, run: (turn: Turn) => rejoining.onAskDue(turn, callId, ask) })
  }
  if (planned.kind === 'planned')
    all.push({ atMs: planned.atMs, run: (turn: Turn) => rotation.onRotationDue(turn, callId) })
  for (const { atMs, epoch } of sending.uses)
    all.push({ atMs, run: (turn: Turn) => use(turn, callId, epoch) })
  for (const { atMs, epoch } of sending.drops)
    all.push({ atMs, run: (turn: Turn) => drop(turn, callId, epoch) })
  if (call.offer !== undefined)
    all.push({ atMs: call.offer.atMs, run: (turn: Turn) => rejoining.onOfferDue(turn, callId) })
  // While it asks for another key, it sends with this one.
  const isInUse = phase.kind === 'active' || (isAsking(call) && sending.epoch > 0)
  if (isInUse && call.key.held.length > 0)
    all.push({ atMs: outdatedAtMs(call), run: (turn: Turn) => rejoining.onOutdated(turn, callId) })
  if (end.kind !== 'none') all.push({ atMs: end.atMs, run: (turn: Turn) => onReasonDue(turn, call) })
  return phase.kind === 'ended' ? [] : all
}
