/** Counts what was said to a front, and tells the writer once a turn how much of it the front has heeded. */

import type { World } from '../runtime/clock.ts'

export class Heeding {
  readonly #world: Pick<World, 'immediate'>
  readonly #tell: (count: number) => void
  #count = 0
  #told = 0

  constructor(world: Pick<World, 'immediate'>, tell: (count: number) => void) {
    this.#world = world
    this.#tell = tell
  }

  /** One word more, heeded when `until` resolves; returns that. */
  of(until: Promise<void> | undefined): Promise<void> | undefined {
    if (until !== undefined) return until.then(() => this.#onHeeded())
    this.#onHeeded()
    return undefined
  }

  #onHeeded(): void {
    if (this.#count++ !== this.#told) return
    this.#world.immediate(() => {
      this.#told = this.#count
      this.#tell(this.#count)
    })
  }
}
