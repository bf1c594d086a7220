/** A load's counts. */

import { createHistogram } from 'node:perf_hooks'

/** Milliseconds. */
export interface Latency {
  readonly p50: number
  readonly p99: number
}

export class Figures {
  started = 0
  answered = 0
  ended = 0
  /** Calls that were due while everybody was busy, or the server away. */
  heldBack = 0
  readonly #failures = new Map<string, number>()
  readonly #latency = createHistogram()
  readonly #latencyOfInterval = createHistogram()

  get failed(): number {
    return [...this.#failures.values()].reduce((sum, count) => sum + count, 0)
  }

  /** By reason. */
  get failures(): ReadonlyMap<string, number> {
    return this.#failures
  }

  fail(reason: string): void {
    this.#failures.set(reason, (this.#failures.get(reason) ?? 0) + 1)
  }

  /** From the request that started a call to a device that rings. */
  rang(ms: number): void {
    const microseconds = Math.max(1, Math.round(ms * 1_000))
    this.#latency.record(microseconds)
    this.#latencyOfInterval.record(microseconds)
  }

  /** Over all calls; undefined before the first. */
  get latency(): Latency | undefined {
    return latencyOf(this.#latency)
  }

  /** Over the calls since the last take; undefined when none rang. */
  takeLatency(): Latency | undefined {
    const latency = latencyOf(this.#latencyOfInterval)
    this.#latencyOfInterval.reset()
    return latency
  }
}

function latencyOf(histogram: ReturnType<typeof createHistogram>): Latency | undefined {
  if (histogram.count === 0) return undefined
  const ms = (percentile: number) => Math.round(histogram.percentile(percentile) / 100) / 10
  return { p50: ms(50), p99: ms(99) }
}
