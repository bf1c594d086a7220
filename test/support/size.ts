/**
 * The two sizes of the suite. `npm test` proves each behaviour once; `npm run test:long` repeats, searches and rehearses.
 * A file named `*.long.test.ts` belongs to the long size. In other files a test says so by its options:
 *
 *     t.test('it survives', long(), async t => ...)
 *
 * A file that is named on the command line runs whole.
 */

const { CALLSIGN_TEST_SIZE: size } = process.env
const isLong = size === 'long'

interface TestOptions {
  readonly skip?: string | boolean
  readonly only?: boolean
}

/** Options of a test that only the long size runs. */
export function long(options: TestOptions = {}): TestOptions {
  return size === 'short' ? { skip: 'long size' } : sized(options)
}

/** Options of a test that both sizes run, the long one with the greater numbers of `bySize`. */
export function sized(options: TestOptions = {}): TestOptions {
  return isLong ? { ...options, only: true } : options
}

/** A number of runs, kills or rows. */
export function bySize(counts: { readonly short: number; readonly long: number }): number {
  return isLong ? counts.long : counts.short
}
