/** How long to wait between attempts that fail: the bound doubles, and a part is random, so that peers do not stay in step. */

export interface BackOff {
  readonly minMs: number
  /** At least twice the minimum. */
  readonly maxMs: number
}

/**
 * The pause after this many failures in a row, at least one: random between the minimum and twice as long after the first,
 * then in a range that doubles, until it is the upper half of the maximum. `random` gives at least 0 and less than 1.
 */
export function backOffMs({ minMs, maxMs }: BackOff, failures: number, random: () => number): number {
  const boundMs = Math.min(maxMs, minMs * 2 ** failures)
  return (boundMs / 2) * (1 + random())
}
