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

/** Options of a test that only the long size runs. */
export function long(options: object = {}): object {
  return size === 'short' ? { skip: 'long size' } : sized(options)
}

/** Options of a test that both sizes run, the long one with the greater numbers of `countOf`. */
export function sized(options: object = {}): object {
  // What stands in it runs whole.
  return isLong ? { ...options, only: true, runOnly: false } : options
}

/** A number of runs, kills or rows: the size's own, unless the environment has one by this name. */
export function countOf(variable: string, counts: Parameters<typeof bySize>[0]): number {
  return Number(process.env[variable] ?? bySize(counts))
}

/** One of two numbers. */
export function bySize(counts: { readonly short: number; readonly long: number }): number {
  return isLong ? counts.long : counts.short
}
