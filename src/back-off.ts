/** Pauses after failed attempts. Their bound doubles, and a part is random, so that peers don't return in step. */

export interface BackOff {
  /** The bound after the first failure. */
  readonly firstMs: number
  readonly maxMs: number
}

/** The pause after so many failures in a row: half to all of the bound. `random` returns [0, 1). */
export function backOffMs(backOff: BackOff, failures: number, random: () => number): number {
  return boundMs(backOff, failures) * (0.5 + random() / 2)
}

/** The same from zero, for clients: thousands may lose one server at once. */
export function fullJitterMs(backOff: BackOff, failures: number, random: () => number): number {
  return boundMs(backOff, failures) * random()
}

function boundMs({ firstMs, maxMs }: BackOff, failures: number): number {
  return Math.min(maxMs, firstMs * 2 ** (failures - 1))
}
