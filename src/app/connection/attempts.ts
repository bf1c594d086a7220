/** Attempts to connect: the lead of tabs, the token, the socket, what its close means, and the pause before the next one. */

import { fullJitterMs } from '../../back-off.ts'
import type { Failure } from '../callsign-error.ts'
import type { Closed, Confirmed } from './input.ts'
import { connectedIn, socketIn } from './phase.ts'
import { OFFLINE, type Step } from './step.ts'
import { subscribeWatch } from './watches.ts'

/** A pause ends at once. With `takeOver` this tab does not wait for the leading tab. */
export function connect(step: Step, takeOver: boolean): void {
  const { phase } = step
  switch (phase.kind) {
    case 'off':
    case 'elsewhere':
      if (step.connection.tabs.kind === 'none') return askToken(step, 0)
      return lead(step, takeOver)
    case 'waiting':
      return takeOver ? lead(step, true) : undefined
    case 'leading':
      return takeOver && !phase.isTaken ? lead(step, true) : undefined
    default:
      return endPause(step)
  }
}

/** Ends what there is; the caller ends the socket. */
export function stop(step: Step, kind: 'off' | 'elsewhere'): void {
  for (const { command } of step.connection.watches) step.settle(command, OFFLINE)
  step.change({ watches: [] })
  forgetMessages(step)
  release(step)
  step.enter({ kind })
}

export function disconnect(step: Step, command?: number): void {
  const socket = socketIn(step.phase)
  stop(step, command === undefined ? 'elsewhere' : 'off')
  if (socket === undefined) return step.settle(command)
  const act = step.wait({ for: 'disconnect', ...(command !== undefined && { command }) })
  step.act({ do: 'disconnect', act, socket })
}

/** The session has ended. */
export function endForGood(step: Step): void {
  const socket = socketIn(step.phase)
  stop(step, 'off')
  if (socket !== undefined) step.act({ do: 'abandon', socket })
}

export function onBehind(step: Step, act: number): void {
  if (step.phase.kind === 'leading' && act === leadOf(step)) step.enter({ kind: 'waiting' })
}

export function onLost(step: Step, act: number): void {
  if (act === leadOf(step)) disconnect(step)
}

export function endPause(step: Step): void {
  if (step.phase.kind === 'pausing') askToken(step)
}

export function onTime(step: Step): void {
  if (step.phase.kind === 'pausing' && step.phase.untilMs <= step.nowMs) askToken(step)
}

/** Takes the outcome of the present phase's act, and ignores one of an earlier phase. */
export function onPhaseDone(step: Step, act: number, token: string): void {
  const { phase } = step
  if (act === leadOf(step) && (phase.kind === 'leading' || phase.kind === 'waiting')) return askToken(step)
  if (!('act' in phase) || phase.act !== act) return
  if (phase.kind !== 'token') return pause(step, phase.retryAfterMs)
  const socket = step.number()
  step.enter({ kind: 'opening', socket, token })
  step.act({ do: 'open', socket, token })
}

export function onPhaseFailed(step: Step, act: number, failure: Failure): void {
  const { phase } = step
  // A page that may have no locks.
  if (act === leadOf(step)) return onPhaseDone(step, act, '')
  if (!('act' in phase) || phase.act !== act) return
  if (failure.code !== 'NO_ANSWER') step.act({ do: 'trouble', failure })
  if (phase.kind !== 'token') return pause(step, phase.retryAfterMs)
  pause(step, 0, failuresAfter(step))
}

export function onConnected(step: Step, { socket, device, serverMs }: Confirmed): void {
  const { phase } = step
  if (phase.kind !== 'opening' || phase.socket !== socket) return
  if (serverMs > 0) step.act({ do: 'hear time', serverMs })
  if (device !== step.connection.deviceId) forgetDevice(step, device)
  const { queues, watches } = step.connection
  const left = queues.map(({ name, since }) => {
    const destination = `/user/queue/${name}`
    const position = since === undefined ? {} : { since }
    const headers = { id: name, destination, ack: 'client-individual', ...position }
    return step.request({ socket, command: 'SUBSCRIBE', headers }, { for: 'queue', socket })
  })
  left.push(...watches.map(watch => subscribeWatch(step, socket, watch)))
  const connected = { socket, token: phase.token, connectedAtMs: step.nowMs }
  step.enter({ kind: 'subscribing', ...connected, left, recovered: [] })
}

/** The server has a subscription, or has refused a watch. */
export function onSubscribed(step: Step, act: number, ...recovered: readonly (string | undefined)[]): void {
  const { phase } = step
  if (phase.kind !== 'subscribing' || !phase.left.includes(act)) return
  const left = phase.left.filter(each => each !== act)
  const all = [...phase.recovered, ...recovered]
  if (left.length > 0) return step.enter({ ...phase, left, recovered: all })
  const { socket, token, connectedAtMs } = phase
  step.enter({ kind: 'connected', socket, token, connectedAtMs })
  step.act({ do: 'ready', mayHaveMissed: !all.includes('true') || all.includes('false') })
}

/** Where the connection broke, its close says more. */
export function onQueueRefused(step: Step, socket: number, failure: Failure): void {
  if (failure.code !== 'OFFLINE' && socket === socketIn(step.phase)) giveUp(step, socket, failure)
}

/** The server breaks the protocol, or refuses a queue. The close of the socket follows as an input. */
export function giveUp(step: Step, socket: number, failure: Failure): void {
  step.act({ do: 'trouble', failure })
  step.act({ do: 'abandon', socket })
}

/** The meaning of a close: the table of docs/protocol/socket.md. */
export function onClosed(step: Step, { socket, code, reason, retryAfterMs, failure }: Closed): void {
  const { phase } = step
  if (socketIn(phase) !== socket) return
  if (code === 4409) return stop(step, 'elsewhere')
  if (code === 4403 || (code === 4401 && OVER_REASONS.includes(reason))) {
    const message = failure?.message ?? 'The server has ended the session.'
    const name = code === 4403 ? 'DEVICE_REMOVED' : reason.toUpperCase()
    step.act({ do: 'end session', failure: { code: name, message } })
    return stop(step, 'off')
  }
  forgetMessages(step)
  const failures = failuresAfter(step)
  if (code === 4401 && 'token' in phase) return renew(step, phase.token, retryAfterMs, failures)
  if (reason === 'device_not_registered') return register(step, retryAfterMs, failures)
  if (FAULT_CODES.includes(code))
    step.act({ do: 'trouble', failure: failure ?? { code: 'ANSWER_INVALID', message: reason } })
  pause(step, retryAfterMs, failures)
}

function renew(step: Step, token: string, retryAfterMs: number, failures: number): void {
  const act = step.number()
  step.enter({ kind: 'renewing', act, retryAfterMs }, failures)
  step.act({ do: 'renew', act, token })
}

function register(step: Step, retryAfterMs: number, failures: number): void {
  const act = step.number()
  step.enter({ kind: 'registering', act, retryAfterMs }, failures)
  step.act({ do: 'register', act })
}

function lead(step: Step, isTaken: boolean): void {
  release(step)
  const act = step.number()
  step.change({ tabs: { kind: 'asked', lead: act } })
  step.enter({ kind: 'leading', isTaken }, 0)
  step.act({ do: 'lead', act, isTaken })
}

function release(step: Step): void {
  if (leadOf(step) === undefined) return
  step.change({ tabs: { kind: 'free' } })
  step.act({ do: 'release' })
}

function leadOf({ connection: { tabs } }: Step): number | undefined {
  return tabs.kind === 'asked' ? tabs.lead : undefined
}

function askToken(step: Step, failures?: number): void {
  const act = step.number()
  step.enter({ kind: 'token', act }, failures)
  step.act({ do: 'token', act })
}

/** Devices that lost their connections together come back one by one. */
function pause(step: Step, retryAfterMs: number, failures = step.connection.failures): void {
  const jitterMs = Math.floor(fullJitterMs(BACK_OFF, failures, step.random))
  step.enter({ kind: 'pausing', untilMs: step.nowMs + Math.max(jitterMs, retryAfterMs) }, failures)
}

function failuresAfter({ connection: { failures }, nowMs, phase }: Step): number {
  const connectedAtMs = connectedIn(phase)?.connectedAtMs
  return connectedAtMs !== undefined && nowMs - connectedAtMs > STEADY_MS ? 1 : failures + 1
}

/** Messages that no one has begun with come again on the next connection. */
function forgetMessages(step: Step): void {
  step.change({ queues: step.connection.queues.map(queue => ({ ...queue, waiting: [] })) })
}

/** Another device has an inbox of its own. */
function forgetDevice(step: Step, deviceId: string | undefined): void {
  const queues = step.connection.queues.map(queue => ({ ...queue, since: undefined }))
  step.change({ deviceId, seen: [], queues })
}

const FAULT_CODES: readonly number[] = [1002, 1007, 1008, 1009]
const OVER_REASONS: readonly string[] = ['token_missing', 'token_invalid', 'session_revoked']
/** A connection that lasted longer was a good one. */
const STEADY_MS = 5_000
const BACK_OFF = { firstMs: 2_000, maxMs: 60_000 }
