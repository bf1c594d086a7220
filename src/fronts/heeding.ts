/** Counts what the writer has said to a front, and says how much of it the front has heeded when the writer asks. */

import type { SaidByWriter } from './messages.ts'

export class Heeding {
  readonly #tell: (count: number) => void
  #count = 0

  constructor(tell: (count: number) => void) {
    this.#tell = tell
  }

  /** The words behind it wait for the promise that `heed` returns. */
  of(
    said: SaidByWriter,
    heed: (said: Exclude<SaidByWriter, { kind: 'how-far' }>) => Promise<void> | undefined,
  ): Promise<void> | undefined {
    if (said.kind === 'how-far') {
      this.#tell(this.#count)
      return undefined
    }
    const until = heed(said)
    if (until !== undefined) return until.then(() => this.#onHeeded())
    this.#onHeeded()
    return undefined
  }

  #onHeeded(): void {
    this.#count += 1
  }
}
