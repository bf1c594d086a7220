/**
 * Codes that are guessed as a whole (contract 2.2): many networks with few tries each, over many addresses. No count of one
 * address or one network sees that; the share of wrong codes among all does.
 *
 * Only strangers' tries count, and only strangers are slowed. While codes are guessed, a network that the account does not
 * know has two wrong codes in six hours, and each prefix of IPv6 around it in proportion: a thousand networks then guess 8,000 times a day, of a million codes.
 */

import type { CountedNetwork } from '../network.ts'
import { missingForTally, type Tally, type TallyRule } from '../tally.ts'
import type { Asker } from './known-sign-in.ts'

/** One attempt to enter a code, or to ask for one. */
export interface CodeTry {
  readonly asker: Asker
  readonly network: string
  readonly isAccepted: boolean
}

/** Milliseconds until all tries together look honest again; 0 when they do. */
export function guessedForMs(allTries: Tally, nowMs: number): number {
  return missingForTally(allTries, HONEST, nowMs)
}

/** Milliseconds until a network may try or ask again while codes are guessed; 0 when it may now. */
export function slowedForMs(triesOfNetwork: Tally, { factor }: CountedNetwork, nowMs: number): number {
  return missingForTally(triesOfNetwork, { ...SLOWED, floor: factor * SLOWED.floor }, nowMs)
}

const HOUR_MS = 3_600_000
/** More wrong codes than right ones, and two hundred at least: people mistype one in ten. */
const HONEST: TallyRule = { perMs: HOUR_MS, floor: 200, perConfirmed: 1, confirmedPerMs: HOUR_MS }
const SLOWED: TallyRule = { perMs: 6 * HOUR_MS, floor: 2, perConfirmed: 1, confirmedPerMs: 6 * HOUR_MS }
