/** Worlds for tests: one whose clocks and queues the test moves by hand, one whose every choice comes from a seed. */
import type { World } from '../../src/runtime/clock.ts'

interface Interval {
  readonly everyMs: number
  readonly run: () => void
  dueMs: number
}

/** Nothing happens in it until the test says so. */
export class FakeWorld implements World {
  #wallMs = 1_700_000_000_000
  #monotonicMs = 5_000
  #microtasks: (() => void)[] = []
  #immediates: (() => void)[] = []
  readonly #intervals = new Set<Interval>()
  /** Passes with each reading of the monotonic clock, to use up budgets. */
  readingCostMs = 0
  /** How often the clock was read. */
  readings = 0

  nowMs(): number {
    return this.#wallMs
  }

  monotonicMs(): number {
    this.readings += 1
    this.#moveTo(this.#monotonicMs + this.readingCostMs)
    return this.#monotonicMs
  }

  random(): number {
    return 0.5
  }

  microtask(run: () => void): void {
    this.#microtasks.push(run)
  }

  immediate(run: () => void): void {
    this.#immediates.push(run)
  }

  every(ms: number, run: () => void): () => void {
    const interval = { everyMs: ms, run, dueMs: this.#monotonicMs + ms }
    this.#intervals.add(interval)
    return () => this.#intervals.delete(interval)
  }

  get microtasksWaiting(): number {
    return this.#microtasks.length
  }

  get immediatesWaiting(): number {
    return this.#immediates.length
  }

  get intervalsRunning(): number {
    return this.#intervals.size
  }

  get isIdle(): boolean {
    return this.#microtasks.length + this.#immediates.length === 0
  }

  /** Runs the microtasks that wait, and those they add. */
  runMicrotasks(): void {
    for (let run = this.#microtasks.shift(); run !== undefined; run = this.#microtasks.shift()) run()
  }

  /** Runs the oldest microtask, or the oldest immediate when there is none. */
  runOne(): void {
    const run = this.#microtasks.shift() ?? this.#immediates.shift()
    run?.()
  }

  /** Runs everything that waits, until nothing does. */
  run(): void {
    while (!this.isIdle) this.runOne()
  }

  /** As `run`, and lets real promises settle in between. */
  async settle(): Promise<void> {
    do {
      this.run()
      await new Promise(resolve => setImmediate(resolve))
    } while (!this.isIdle)
  }

  /** Moves both clocks; calls due timers on the way and runs the work that they start. */
  advance(ms: number): void {
    const untilMs = this.#monotonicMs + ms
    for (let next = this.#nextDue(untilMs); next !== undefined; next = this.#nextDue(untilMs)) {
      this.#moveTo(next.dueMs)
      next.dueMs += next.everyMs
      next.run()
      this.run()
    }
    this.#moveTo(untilMs)
  }

  /** Moves both clocks at once and calls each interval once; waiting work goes on waiting. */
  jump(ms: number): void {
    this.#moveTo(this.#monotonicMs + ms)
    for (const interval of this.#intervals) {
      interval.dueMs = this.#monotonicMs + interval.everyMs
      interval.run()
    }
  }

  /** Moves the wall clock only, as when it is set. */
  setWallClock(ms: number): void {
    this.#wallMs = ms
  }

  #nextDue(untilMs: number): Interval | undefined {
    let next: Interval | undefined
    for (const interval of this.#intervals) {
      if (interval.dueMs <= untilMs && (next === undefined || interval.dueMs < next.dueMs)) next = interval
    }
    return next
  }

  #moveTo(ms: number): void {
    const by = Math.max(0, ms - this.#monotonicMs)
    this.#monotonicMs += by
    this.#wallMs += by
  }
}

/** A small generator of the same numbers for the same seed (mulberry32). */
export class SeededRandom {
  #state: number

  constructor(seed: number) {
    this.#state = seed | 0
  }

  /** Begins anew: what a step draws depends on nothing that was drawn before it. */
  beginStep(seed: number, step: number): void {
    this.#state = (Math.imul(seed, 0x9e3779b1) ^ Math.imul(step, 0x85ebca6b)) | 0
  }

  /** At least 0, less than 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number, at least 0 and below `bound`. */
  below(bound: number): number {
    return Math.floor(this.next() * bound)
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }
}

/**
 * A fake world that picks who runs next, and lets drains end early, by its seed. Microtasks keep their order, as the
 * event loop keeps it; everything else that has no promised order is drawn.
 */
export class SeededWorld extends FakeWorld {
  readonly draw: SeededRandom
  /** Chance that a reading of the clock uses up a drain's budget. */
  readonly #slowReading = 0.3

  constructor(seed: number) {
    super()
    this.draw = new SeededRandom(seed)
  }

  override monotonicMs(): number {
    this.readingCostMs = this.draw.chance(this.#slowReading) ? 2 : 0
    return super.monotonicMs()
  }

  override random(): number {
    return this.draw.next()
  }

  pick(runnable: number): number {
    return this.draw.below(runnable)
  }
}
