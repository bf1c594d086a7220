/** The network of a seeded run of devices: how long each thing takes, and the faults on the way. */

import type { SeededRandom } from './world.ts'

/** Classes of faults: a run has some of them, and its shortest form is played without those that it does not need. */
export const FAULTS = ['lost', 'late', 'twice', 'slow', 'half-open', 'unsealed'] as const
export type Fault = (typeof FAULTS)[number]

export class DeviceRunNet {
  readonly draw: SeededRandom
  /** Empty at the end of each run. */
  faults: ReadonlySet<Fault>

  constructor(draw: SeededRandom, faults: ReadonlySet<Fault>) {
    this.draw = draw
    this.faults = faults
  }

  has(fault: Fault, chance: number): boolean {
    const isDrawn = this.draw.chance(chance)
    return isDrawn && this.faults.has(fault)
  }

  /** One way between a device and the server. */
  delayMs(): number {
    const usual = 5 + this.draw.below(80)
    return this.has('slow', 0.15) ? usual + this.draw.below(4_000) : usual
  }

  /** Until a device knows that no answer will come. */
  silenceMs(): number {
    return 500 + this.draw.below(12_000)
  }
}

/** Runs due work, in the order of time. */
export class Agenda {
  nowMs = 0
  readonly #heap: { readonly atMs: number; readonly order: number; readonly run: () => void }[] = []
  #order = 0

  at(atMs: number, run: () => void): void {
    const heap = this.#heap
    const item = { atMs, order: ++this.#order, run }
    let at = heap.length
    while (at > 0) {
      const above = (at - 1) >> 1
      if (!isBefore(item, heap[above]!)) break
      heap[at] = heap[above]!
      at = above
    }
    heap[at] = item
  }

  /** Up to this time. */
  runUntil(endMs: number): void {
    for (;;) {
      const next = this.#heap[0]
      if (next === undefined || next.atMs > endMs) break
      this.#takeFirst()
      this.nowMs = next.atMs
      next.run()
    }
    this.nowMs = endMs
  }

  #takeFirst(): void {
    const heap = this.#heap
    const last = heap.pop()!
    if (heap.length === 0) return
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      if (below >= heap.length) break
      if (below + 1 < heap.length && isBefore(heap[below + 1]!, heap[below]!)) below += 1
      if (!isBefore(heap[below]!, last)) break
      heap[at] = heap[below]!
      at = below
    }
    heap[at] = last
  }
}

function isBefore(one: { atMs: number; order: number }, other: { atMs: number; order: number }): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order)
}
