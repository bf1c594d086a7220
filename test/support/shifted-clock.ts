/** Puts a process's wall clock ahead: loaded before a program (`--import`), it moves `Date.now` by so much. */

/** The environment in which a program's wall clock is ahead of ours. */
export function shiftedClock(aheadMs: number): Readonly<Record<string, string>> {
  return { [AHEAD_MS]: `${aheadMs}`, NODE_OPTIONS: `--import=${import.meta.url}` }
}

const AHEAD_MS = 'CLOCK_AHEAD_MS'
const aheadMs = Number(process.env[AHEAD_MS] ?? 0)
if (aheadMs !== 0) {
  const now = Date.now
  Date.now = () => now() + aheadMs
}
