/**
 * Properties over random input. A failure prints the seed and the smallest counterexample; `CALLSIGN_SEED` runs that
 * seed again.
 */
import fc from 'fast-check'
import type { Test } from 'tap'
import { seedOf } from './seed.ts'

/** Fails the test with seed and counterexample unless the predicate holds for every value tried. */
export function checkProperty<Values extends [unknown, ...unknown[]]>(
  t: Test,
  arbitraries: { [At in keyof Values]: fc.Arbitrary<Values[At]> },
  predicate: (...values: Values) => boolean,
  numRuns = 300,
): void {
  const property = fc.property<Values>(...arbitraries, predicate)
  t.doesNotThrow(() => fc.assert(property, { numRuns, seed: seedOf() }))
}
