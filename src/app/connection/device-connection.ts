/**
 * Decides the connection of one device, see docs/protocol/socket.md ("Connect"): an input (`input.ts`), the time and a random number go
 * in; the new state (`phase.ts`) and the acts to carry out (`act.ts`) come out. Nothing else happens here, so the same stories
 * (test/vectors/device-connection.jsonl) hold in every language. The shell carries out the acts in their order, gives each
 * outcome back as an input, and says `time` at `nextDeadlineMs`.
 *
 *     off, elsewhere ─ connect ─> leading ─> token ─> opening ─> subscribing ─> connected
 *     leading ─ another tab leads ─> waiting ─ it closes ─> token
 *     token, opening, subscribing, connected ─ it fails ─> pausing ─> token
 *     opening, subscribing, connected ─ close ─> renewing, registering ─> pausing
 *     any ─ disconnect, the session ends ─> off           any ─ another connection takes over ─> elsewhere
 *
 * `attempts`, `queues` and `watches` each decide their part.
 */

import type { Act } from './act.ts'
import * as attempts from './attempts.ts'
import type { Input } from './input.ts'
import { connectedIn, type DeviceConnection } from './phase.ts'
import * as queues from './queues.ts'
import { OFFLINE, Step } from './step.ts'
import * as watches from './watches.ts'

/** `hasTabs`: tabs of the device share one connection. */
export function newConnection(hasTabs: boolean): DeviceConnection {
  return {
    phase: { kind: 'off' },
    failures: 0,
    tabs: { kind: hasTabs ? 'free' : 'none' },
    deviceId: undefined,
    ...queues.newQueues(),
    watches: [],
    waiting: [],
    count: 0,
  }
}

/** `nowMs` never goes back; `random` is from 0 up to 1, which is not reached. */
export function decide(
  before: DeviceConnection,
  input: Input,
  nowMs: number,
  random: number,
): { readonly connection: DeviceConnection; readonly acts: readonly Act[] } {
  const step = new Step(before, nowMs, random)
  onInput(step, input)
  return { connection: step.connection, acts: step.acts }
}

/** When `time` is to be said, if nothing else comes; undefined where nothing is to happen by itself. */
export function nextDeadlineMs(connection: DeviceConnection): number | undefined {
  const { phase } = connection
  return phase.kind === 'pausing' ? phase.untilMs : queues.nextMessageMs(connection)
}

function onInput(step: Step, input: Input): void {
  switch (input.on) {
    case 'connect':
      return attempts.connect(step, input.takeOver)
    case 'disconnect':
      return attempts.disconnect(step, input.command)
    case 'watch':
      return watches.watch(step, input.command, input.destination)
    case 'unwatch':
      return watches.unwatch(step, input.watch)
    case 'send':
      return send(step, input)
    case 'online':
      return attempts.endPause(step)
    case 'over':
      return attempts.endForGood(step)
    case 'behind':
      return attempts.onBehind(step, input.lead)
    case 'lost':
      return attempts.onLost(step, input.lead)
    case 'connected':
      return attempts.onConnected(step, input)
    case 'message':
      return queues.onMessage(step, input)
    case 'closed':
      return attempts.onClosed(step, input)
    case 'time':
      attempts.onTime(step)
      return queues.onTime(step)
    case 'done':
    case 'failed':
      return onOutcome(step, input)
  }
}

function send(step: Step, { command, destination, body }: Extract<Input, { on: 'send' }>): void {
  const socket = connectedIn(step.phase)?.socket
  if (socket === undefined) return step.settle(command, OFFLINE)
  step.request({ socket, command: 'SEND', headers: { destination }, body }, { for: 'send', command })
}

function onOutcome(step: Step, input: Extract<Input, { on: 'done' | 'failed' }>): void {
  const { act } = input
  const waiting = step.connection.waiting.find(each => each.act === act)
  if (waiting === undefined) {
    if (input.on === 'failed') return attempts.onPhaseFailed(step, act, input.failure)
    return attempts.onPhaseDone(step, act, input.token ?? '')
  }
  step.change({ waiting: step.connection.waiting.filter(each => each !== waiting) })
  const failure = input.on === 'failed' ? input.failure : undefined
  switch (waiting.for) {
    case 'queue':
      if (input.on === 'done') return attempts.onSubscribed(step, act, input.recovered)
      // Its user has not approved the device yet: the account's queue is enough to hear of that.
      if (input.failure.code === 'DEVICE_NOT_LISTED') return attempts.onSubscribed(step, act)
      return attempts.onQueueRefused(step, waiting.socket, input.failure)
    case 'watch':
      if (failure === undefined) watches.onWatched(step, waiting.socket, waiting.id)
      else watches.onRefused(step, waiting.id, failure)
      return attempts.onSubscribed(step, act)
    case 'handle':
      return queues.onHandled(step, waiting.queue, waiting.message, failure)
    case 'ack':
      return failure === undefined ? queues.onAcknowledged(step, waiting) : undefined
    case 'send':
    case 'disconnect':
      return step.settle(waiting.command, failure)
  }
}
