/**
 * The gateway for a call, among those that may take one: a weighted rendezvous hash gives each call two of them, and the one
 * with fewer calls for its weight gets it. The hash alone would give 250 of 1,000 calls plus or minus 14 to each of four
 * gateways, and more than 10 % too many to one of them every fourth time. The least loaded alone would send every new call to a
 * gateway that has just come back, empty.
 */

import { createHash } from 'node:crypto'
import type { CallId } from '../domain/ids.ts'

export interface Candidate {
  readonly name: string
  /** Its share of the calls. */
  readonly weight: number
}

/** `callsOf` says how many live calls a gateway has. Undefined without a candidate. */
export function chooseGateway<Found extends Candidate>(
  callId: CallId,
  candidates: readonly Found[],
  callsOf: (name: string) => number,
): Found | undefined {
  const [first, second] = inRendezvousOrder(callId, candidates)
  if (first === undefined || second === undefined) return first
  const loadOf = ({ name, weight }: Candidate) => (callsOf(name) + 1) / weight
  return loadOf(second) < loadOf(first) ? second : first
}

/** The order is the call's own; without one of the candidates the rest keep theirs. */
export function inRendezvousOrder<Found extends Candidate>(
  callId: CallId,
  candidates: readonly Found[],
): readonly Found[] {
  const drawn = candidates.map(candidate => ({ candidate, draw: drawOf(callId, candidate) }))
  return drawn.sort((one, other) => one.draw - other.draw).map(({ candidate }) => candidate)
}

/** Exponentially distributed with the weight as its rate: the smallest of several is each one's by weight. */
function drawOf(callId: CallId, { name, weight }: Candidate): number {
  const digest = createHash('sha256').update(`${name}\n${callId}`).digest()
  const evenly = (digest.readUIntBE(0, 6) + 1) / (2 ** 48 + 1)
  return -Math.log(evenly) / weight
}
