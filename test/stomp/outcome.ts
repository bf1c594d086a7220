/** Compares what a client saw with what a conformance case requires; empty when nothing is wrong. */

import { headerOf, type NaiveFrame } from '../support/naive-stomp.ts'
import { octetsOf } from '../support/notation.ts'
import type { MessageOutcome, Outcome } from './case.ts'

/** A frame as the client got it. */
export interface SeenFrame extends NaiveFrame {
  readonly octets: Buffer
  /** Undefined where the carrier has no kinds of messages. */
  readonly isText: boolean | undefined
}

/** How the connection ended, if it did; `codeless` where the carrier has no close codes. */
export type SeenEnd = 'open' | 'codeless' | number

export function outcomeFaults(
  frames: readonly SeenFrame[],
  end: SeenEnd,
  required: readonly Outcome[],
): string[] {
  const faults: string[] = []
  const rest = [...frames]
  for (const outcome of required) {
    if (outcome.kind === 'silence') continue
    if (outcome.kind === 'closed') {
      faults.push(...endFaults(end, [outcome.code]))
      continue
    }
    // The RECEIPT of a SEND and the MESSAGEs it causes come in either order.
    const at = rest.findIndex(({ command }) => command === COMMAND[outcome.kind])
    const [frame] = at < 0 ? [] : rest.splice(at, 1)
    if (frame === undefined) faults.push(`no ${outcome.kind}`)
    else faults.push(...frameFaults(frame, outcome))
    if (outcome.kind === 'refused') faults.push(...endFaults(end, outcome.close))
  }
  if (rest.length > 0) faults.push(`${rest.length} frames more: ${rest[0]?.octets}`)
  const endsIt = required.some(({ kind }) => kind === 'refused' || kind === 'closed')
  if (!endsIt && end !== 'open') faults.push(`closed: ${end}`)
  return faults
}

/** Parts of every ERROR (contract 7.1), for any reason. */
export function errorFaults(frame: SeenFrame): string[] {
  const faults = ['message', 'code', 'reason', 'retry', 'content-type']
    .filter(name => headerOf(frame, name) === undefined)
    .map(name => `no ${name}`)
  if (headerOf(frame, 'content-length') !== String(frame.body.length)) faults.push('content-length')
  const problem = JSON.parse(frame.body.toString())
  if (String(problem.status) !== headerOf(frame, 'code')) faults.push('the problem has another status')
  const head = frame.octets.subarray(0, -frame.body.length - 1).toString()
  if (head.replace(/receipt-id.*/, '').includes('\\')) faults.push('an escape in a header of ours')
  // A receipt-id is the client's own, whatever it put there.
  const words = frame.octets.toString().replace(/^receipt-id:.*$/m, '')
  if (/\.[jt]s:\d|k[ar]t_/.test(words)) faults.push('says too much')
  return faults
}

function endFaults(end: SeenEnd, codes: readonly number[]): string[] {
  if (end === 'open') return ['still open']
  return end === 'codeless' || codes.includes(end) ? [] : [`closed with ${end} instead of ${codes}`]
}

function frameFaults(frame: SeenFrame, outcome: Exclude<Outcome, { kind: 'closed' | 'silence' }>): string[] {
  const faults: string[] = []
  const expect = (what: string, actual: unknown, expected: unknown) => {
    if (actual !== expected) faults.push(`${what} is ${actual} instead of ${expected}`)
  }
  if (outcome.kind === 'receipt') {
    expect('receipt-id', headerOf(frame, 'receipt-id'), outcome.id)
    return faults
  }
  for (const [name, value] of Object.entries(outcome.headers ?? {}))
    expect(name, headerOf(frame, name), value)
  if (outcome.kind === 'message') return [...faults, ...messageFaults(frame, outcome)]
  for (const name of outcome.has ?? []) expect(`has ${name}`, headerOf(frame, name) !== undefined, true)
  if (outcome.kind === 'connected') expect('version', headerOf(frame, 'version'), outcome.version)
  else faults.push(...errorFaults(frame))
  return faults
}

function messageFaults(frame: SeenFrame, outcome: MessageOutcome): string[] {
  const { subscription, destination, body, lines = [], without = [], isBinary } = outcome
  const faults: string[] = []
  const wire = frame.octets.toString('latin1').split('\n')
  if (subscription !== undefined && headerOf(frame, 'subscription') !== subscription)
    faults.push('subscription')
  if (destination !== undefined && headerOf(frame, 'destination') !== destination) faults.push('destination')
  if (body !== undefined && !frame.body.equals(octetsOf(body))) faults.push(`body ${frame.body}`)
  if (isBinary !== undefined && frame.isText === isBinary) faults.push(`travels as text: ${frame.isText}`)
  for (const line of lines) {
    if (!wire.includes(octetsOf(line).toString('latin1'))) faults.push(`no line ${line}`)
  }
  for (const name of without) if (headerOf(frame, name) !== undefined) faults.push(`has ${name}`)
  if (!/^[\w-]+$/.test(headerOf(frame, 'message-id') ?? '')) faults.push('message-id')
  return faults
}

const COMMAND = { message: 'MESSAGE', receipt: 'RECEIPT', connected: 'CONNECTED', refused: 'ERROR' } as const
