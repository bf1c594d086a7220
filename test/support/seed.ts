/** Seeded randomness: a failing run prints its seed, and `CALLSIGN_SEED` replays it. */

import { randomInt } from 'node:crypto'
import { countOf } from './size.ts'

/** The seed from the environment, or a new one. */
export function seedOf(): number {
  const given = process.env.CALLSIGN_SEED
  return given === undefined ? randomInt(2 ** 31) : Number(given)
}

/** How many seeded runs to make: one, where the environment has its seed. */
export function runsOf(...count: Parameters<typeof countOf>): number {
  return process.env.CALLSIGN_SEED === undefined ? countOf(...count) : 1
}

/** Numbers in [0, 1) that depend on the seed alone (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
