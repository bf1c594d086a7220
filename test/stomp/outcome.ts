/** Compares what a client saw with what a conformance case requires; empty when nothing is wrong. */

import { headerOf, type NaiveFrame } from '../support/naive-stomp.ts'
import { octetsOf } from '../support/notation.ts'
import type { FrameOutcome, Outcome, RefusedOutcome } from './case.ts'

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
    if (outcome.kind !== 'refused') continue
    if (frame !== undefined) faults.push(...errorFaults(frame))
    faults.push(...endFaults(end, outcome.close))
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

/** What is wrong with a frame that has come. */
export function frameFaults(
  { octets, body, isText }: Pick<SeenFrame, 'octets' | 'body' | 'isText'>,
  outcome: FrameOutcome | RefusedOutcome,
): string[] {
  const faults: string[] = []
  const wire = octets.toString('latin1').split('\n')
  const firstOf = (name: string) => wire.find(line => line.startsWith(`${name}:`))
  const { lines } = outcome
  const topic =
    outcome.kind === 'refused' || outcome.destination === undefined
      ? []
      : [`destination:${outcome.destination}`]
  for (const line of [...lines, ...topic]) {
    const expected = octetsOf(line).toString('latin1')
    const name = expected.slice(0, expected.indexOf(':'))
    const found = firstOf(name)
    if (found === undefined || (expected !== `${name}:*` && found !== expected))
      faults.push(`${found} instead of ${line}`)
  }
  for (const name of outcome.without) if (firstOf(name) !== undefined) faults.push(`has ${name}`)
  if (outcome.kind === 'refused') return faults
  if (outcome.body !== undefined && !body.equals(octetsOf(outcome.body))) faults.push(`body ${body}`)
  if (outcome.isBinary !== undefined && isText === outcome.isBinary) faults.push(`travels as text: ${isText}`)
  if (outcome.kind === 'message' && !/^message-id:[\w-]+$/.test(firstOf('message-id') ?? ''))
    faults.push('message-id')
  return faults
}

export const COMMAND = {
  message: 'MESSAGE',
  receipt: 'RECEIPT',
  connected: 'CONNECTED',
  refused: 'ERROR',
} as const
