/**
 * Properties over random input. A failure prints the seed and the smallest counterexample; `CALLSIGN_TEST_SEED` runs
 * that seed again.
 */
import fc from 'fast-check'
import type { Test } from 'tap'

/** Fails the test with seed and counterexample unless the predicate holds for every value tried. */
export function checkProperty<Values extends [unknown, ...unknown[]]>(
  t: Test,
  arbitraries: { [At in keyof Values]: fc.Arbitrary<Values[At]> },
  predicate: (...values: Values) => boolean,
  numRuns = 300,
): void {
  const seed = process.env.CALLSIGN_TEST_SEED
  const parameters = seed === undefined ? { numRuns } : { numRuns, seed: Number(seed) }
  t.doesNotThrow(() => fc.assert(fc.property<Values>(...arbitraries, predicate), parameters))
}
