/** The time by the server's clock, which the times in its answers are of: this browser's may be wrong. */

const TOLERANCE_MS = 5_000
let aheadMs = 0

/** Reads the `Date` of an answer that has just come. It counts whole seconds, and has been on its way. */
export function setServerClock(date: string | null): void {
  const differenceMs = Date.parse(date ?? '') - Date.now()
  aheadMs = Math.abs(differenceMs) > TOLERANCE_MS ? differenceMs : 0
}

export function serverNowMs(): number {
  return Date.now() + aheadMs
}
