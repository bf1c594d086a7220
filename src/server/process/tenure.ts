/**
 * The time in which a node writes. It holds the parts that last only so long, and ends them in one step. The process goes on,
 * and may write again.
 */

import { realWorld } from '../../runtime/clock.ts'
import type { Process, WritingProcess } from './process.ts'

export class Tenure {
  /** Its timers and figures end with the tenure. */
  readonly context: WritingProcess
  readonly #ends: (() => unknown)[] = []

  constructor({ config, logger, metrics, media, onActorFailure, devConsole, fatal, onFault }: Process) {
    const world = realWorld()
    this.context = { config, logger, world, metrics, media, onActorFailure, devConsole, fatal, onFault }
    this.onEnd(metrics.beginTenure())
    this.onEnd(() => world.stop())
  }

  /** Has `end` called as the tenure ends, after those that were added later. */
  onEnd(end: () => unknown): void {
    this.#ends.push(end)
  }

  async end(): Promise<void> {
    while (this.#ends.length > 0) await this.#ends.pop()!()
  }
}
