/**
 * The actors that have something to do, in the order in which they came to have it. Beside each stands the time it
 * was put there: the age of the first one is the truest sign of overload.
 */
import type { Cell } from './cell.ts'

/** A ring of cells. An index counts from the one that has waited longest. */
export class RunQueue {
  #cells: (Cell | undefined)[] = new Array(SLOTS_MIN)
  #queuedAtMs = new Float64Array(SLOTS_MIN)
  #head = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  push(cell: Cell, atMs: number): void {
    if (this.#length === this.#cells.length) this.#grow()
    const slot = this.#slot(this.#length)
    this.#cells[slot] = cell
    this.#queuedAtMs[slot] = atMs
    this.#length += 1
  }

  /** Takes out the cell at `index`, which must be below `length`; the first one takes its place. */
  take(index: number): Cell {
    const slot = this.#slot(index)
    const cell = this.#cells[slot]!
    this.#cells[slot] = this.#cells[this.#head]
    this.#queuedAtMs[slot] = this.#queuedAtMs[this.#head]!
    this.#cells[this.#head] = undefined
    this.#head = this.#slot(1)
    this.#length -= 1
    return cell
  }

  /** How long the first cell has waited; 0 when there is none. */
  headAgeMs(nowMs: number): number {
    return this.#length === 0 ? 0 : nowMs - this.#queuedAtMs[this.#head]!
  }

  #slot(index: number): number {
    return (this.#head + index) & (this.#cells.length - 1)
  }

  #grow(): void {
    const cells: (Cell | undefined)[] = new Array(this.#cells.length * 2)
    const queuedAtMs = new Float64Array(cells.length)
    for (let i = 0; i < this.#length; i++) {
      cells[i] = this.#cells[this.#slot(i)]
      queuedAtMs[i] = this.#queuedAtMs[this.#slot(i)]!
    }
    this.#cells = cells
    this.#queuedAtMs = queuedAtMs
    this.#head = 0
  }
}

/** A power of two, so that positions wrap with a mask. */
const SLOTS_MIN = 64
