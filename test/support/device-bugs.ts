/** Mistakes made on purpose in the inputs and acts of a device's machine, to see that seeded runs show them. */

import type { Act } from '../../src/app/calls/act.ts'
import type { Device } from '../../src/app/calls/device.ts'
import { decide } from '../../src/app/calls/device-call.ts'
import type { Input } from '../../src/app/calls/input.ts'

interface Plant {
  /** The input as the machine gets it; undefined for one that it does not get. */
  readonly input?: (input: Input, device: Device) => Input | undefined
  readonly acts?: (acts: readonly Act[], input: Input) => readonly Act[]
  readonly device?: (device: Device, input: Input) => Device
}

const PLANTS = {
  'a moved call kept': { input: input => (isQueued(input, 'call_moved') ? settledOnly(input) : input) },
  'an answer elsewhere overlooked': {
    input: input => (isQueued(input, 'call_answered_elsewhere') ? settledOnly(input) : input),
  },
  'a new key overlooked': { input: input => (isQueued(input, 'key_update') ? settledOnly(input) : input) },
  'asks for the key not heard': {
    input: input => (isQueued(input, 'participant_request_rejoin') ? settledOnly(input) : input),
  },
  'a topic that is not heard': { input: input => (input.on === 'topic' ? undefined : input) },
  'a wrong epoch': {
    acts: acts => acts.map(act => withBody(act, 'keys', ({ epoch }) => ({ epoch: Number(epoch) + 1 }))),
  },
  'a leave that is not sent': {
    acts: acts => acts.filter(act => !isRequest(act, 'leave')),
  },
  'nothing is kept': { acts: acts => acts.filter(act => act.do !== 'keep') },
  'a key that is wiped too soon': {
    acts: acts =>
      acts.flatMap<Act>(act =>
        act.do === 'emit' && act.name === 'key'
          ? [act, { do: 'wipe' as const, keys: [act.value.key] }]
          : [act],
      ),
  },
  'keys that are never wiped': { acts: acts => acts.filter(act => act.do !== 'wipe') },
  'a message settled twice': {
    acts: (acts, input) =>
      acts.flatMap(act => (act.do === 'settle' && isQueued(input, 'call_cancelled') ? [act, act] : [act])),
  },
  'a message never settled': {
    acts: (acts, input) => (isQueued(input, 'call_missed') ? acts.filter(act => act.do !== 'settle') : acts),
  },
  'a ring without an end': {
    device: device => ({
      ...device,
      calls: device.calls.map(call =>
        call.phase.kind === 'ringing in'
          ? { ...call, phase: { ...call.phase, untilMs: Number.MAX_SAFE_INTEGER } }
          : call,
      ),
    }),
  },
  'an ask that is not repeated': {
    device: device => ({
      ...device,
      calls: device.calls.map(call =>
        'ask' in call.phase && call.phase.ask.kind === 'pausing'
          ? { ...call, phase: { ...call.phase, ask: { kind: 'returning' as const } } }
          : call,
      ),
    }),
  },
  'the call of the other of two overlooked': {
    input: input =>
      input.on === 'failed' && input.failure.code === 'CALL_CROSSED'
        ? { ...input, failure: { code: 'CALL_NOT_FOUND' } }
        : input,
  },
  'a connection that is not told': {
    acts: (acts, input) => (input.on === 'connected' ? acts.filter(act => act.do !== 'request') : acts),
  },
} as const satisfies Record<string, Plant>

export type DeviceBug = keyof typeof PLANTS

export function decideWith(bug: DeviceBug | undefined): typeof decide {
  if (bug === undefined) return decide
  const plant: Plant = PLANTS[bug]
  return (before, input, nowMs) => {
    const seen = plant.input === undefined ? input : plant.input(input, before)
    if (seen === undefined) return { device: before, acts: [] }
    const { device, acts } = decide(before, seen, nowMs)
    return { device: plant.device?.(device, input) ?? device, acts: plant.acts?.(acts, input) ?? acts }
  }
}

function isQueued(input: Input, type: string): boolean {
  return input.on === 'queue' && input.event.type === type
}

/** The same message with nothing in it for a call. */
function settledOnly(input: Input): Input {
  if (input.on !== 'queue') return input
  return { ...input, event: { type: 'badge' } as never }
}

function isRequest(act: Act, name: string): boolean {
  return act.do === 'request' && act.operation.endsWith(`/${name}`)
}

function withBody(act: Act, name: string, change: (body: Readonly<Record<string, unknown>>) => object): Act {
  if (act.do !== 'request' || !isRequest(act, name)) return act
  const body = act.body as Readonly<Record<string, unknown>>
  return { ...act, body: { ...body, ...change(body) } }
}
