/** Parses commands to the simulator: the body of `POST /dev/simulator`. */

import { SignalError } from '../../errors.ts'
import type { Behaviour, SimulatorCommand } from './events.ts'

/** Throws `MALFORMED_JSON`, or `VALIDATION_FAILED` for any other command. */
export function parseSimulatorCommand(body: Uint8Array): SimulatorCommand {
  const said = parseObject(body)
  const command = commandOf(said)
  if (command === undefined) {
    throw new SignalError('VALIDATION_FAILED', 'the body is no command to the simulator', {
      errors: [{ pointer: '', code: 'invalid', detail: 'see SimulatorCommand' }],
    })
  }
  return command
}

function parseObject(body: Uint8Array): Record<string, unknown> {
  let said: unknown
  try {
    said = JSON.parse(Buffer.from(body).toString('utf8'))
  } catch {
    throw new SignalError('MALFORMED_JSON', 'the body is no JSON')
  }
  if (typeof said !== 'object' || said === null) throw new SignalError('MALFORMED_JSON', 'send an object')
  return { ...said }
}

/** Refuses missing and unknown members. */
function commandOf(said: Record<string, unknown>): SimulatorCommand | undefined {
  switch (said.kind) {
    case 'people': {
      const { behaviours } = said
      if (!Array.isArray(behaviours) || behaviours.length < 1 || behaviours.length > PEOPLE_MAX)
        return undefined
      return behaviours.every(isBehaviour) ? { kind: 'people', behaviours } : undefined
    }
    case 'befriend': {
      const { shareToken } = said
      return isText(shareToken) ? { kind: 'befriend', shareToken } : undefined
    }
    case 'call': {
      const { from, to, isVideo } = said
      if (!isId(from) || !isId(to) || typeof isVideo !== 'boolean') return undefined
      return { kind: 'call', from, to, isVideo }
    }
    case 'load': {
      const { users, callsPerSecond } = said
      if (!isNumber(users, 2, USERS_MAX) || !Number.isInteger(users)) return undefined
      return isNumber(callsPerSecond, 0.1, CALLS_PER_SECOND_MAX)
        ? { kind: 'load', users, callsPerSecond }
        : undefined
    }
    case 'stop':
      return { kind: 'stop' }
    default:
      return undefined
  }
}

function isBehaviour(value: unknown): value is Behaviour {
  return BEHAVIOURS.includes(value as Behaviour)
}

/** A share token, or the link that holds one. */
function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= TEXT_CHARS_MAX
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && /^\d{1,20}$/.test(value)
}

function isNumber(value: unknown, min: number, max: number): value is number {
  return typeof value === 'number' && value >= min && value <= max
}

const BEHAVIOURS: readonly Behaviour[] = ['answer', 'decline', 'time-out', 'drop', 'drop-and-rejoin']
const TEXT_CHARS_MAX = 500
/** At once; fifty fill a contact list. */
const PEOPLE_MAX = 50
/** More than one machine can play beside the server. */
const USERS_MAX = 10_000
const CALLS_PER_SECOND_MAX = 500
