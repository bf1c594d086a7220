/**
 * The world an actor system runs in: two clocks, randomness, and the ways to be called again later. Everything in
 * the runtime that could differ between two runs comes from here, so that a test can hand in its own and replay one.
 */

/** Inputs that differ from run to run. Code in `src/runtime` and `actors` reads clock and randomness only here. */
export interface World {
  /** Wall clock, milliseconds since 1970. It may jump; stored deadlines are in it. */
  nowMs(): number
  /** Milliseconds from an arbitrary start, never going back. Timers and budgets are measured with it. */
  monotonicMs(): number
  /** At least 0, less than 1. For spreading load, never for secrets. */
  random(): number
  /** Calls `run` once, before the event loop takes up its next callback. */
  microtask(run: () => void): void
  /** Calls `run` once, after the event loop has looked at its sockets. */
  immediate(run: () => void): void
  /** Calls `run` about every `ms` until the returned function is called. Does not keep the process alive. */
  every(ms: number, run: () => void): () => void
  /** Which of `runnable` waiting actors runs next, as an index. Left out: the one that has waited longest. */
  pick?(runnable: number): number
}

/** The machine's own clocks and event loop; after `stop` nothing is called again. */
export function realWorld(): World & { stop(): void } {
  const intervals = new Set<NodeJS.Timeout>()
  let isStopped = false
  return {
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    random: () => Math.random(),
    microtask: run => queueMicrotask(run),
    immediate: run => void setImmediate(run),
    every(ms, run) {
      if (isStopped) return () => undefined
      const interval = setInterval(run, ms)
      interval.unref()
      intervals.add(interval)
      return () => {
        clearInterval(interval)
        intervals.delete(interval)
      }
    },
    stop() {
      isStopped = true
      for (const interval of intervals) clearInterval(interval)
    },
  }
}

/** A monotonic clock in milliseconds that all processes of this machine have in common. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** The same clock in whole milliseconds. */
export function wholeMs(clock: () => number): () => number {
  return () => Math.floor(clock())
}
