/** Pauses after failed attempts. Their bound doubles, and a part is random, so that peers don't return in step. */

export interface BackOff {
  /** The bound after the first failure. */
  readonly firstMs: number
  readonly maxMs: number
}

/** The pause after this many failures in a row: from half of the bound to the whole. `random` is at least 0, less than 1. */
export function backOffMs(backOff: BackOff, failures: number, random: number): number {
  return boundMs(backOff, failures) * (0.5 + random / 2)
}

/** The same from zero, for clients: thousands may lose one server together. */
export function fullJitterMs(backOff: BackOff, failures: number, random: number): number {
  return boundMs(backOff, failures) * random
}

function boundMs({ firstMs, maxMs }: BackOff, failures: number): number {
  return Math.min(maxMs, firstMs * 2 ** (failures - 1))
}
