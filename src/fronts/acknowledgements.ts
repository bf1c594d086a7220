/** Counts the writer's messages that a front has handled, and answers each `barrier` with that count. */

import type { MessageToFront } from './messages.ts'

export class Acknowledgements {
  readonly #tell: (count: number) => void
  #count = 0

  constructor(tell: (count: number) => void) {
    this.#tell = tell
  }

  /** Later messages wait for the promise that `handle` returns. */
  of(
    message: MessageToFront,
    handle: (message: Exclude<MessageToFront, { kind: 'barrier' }>) => Promise<void> | undefined,
  ): Promise<void> | undefined {
    if (message.kind === 'barrier') {
      this.#tell(this.#count)
      return undefined
    }
    const until = handle(message)
    if (until !== undefined) return until.then(() => this.#onHandled())
    this.#onHandled()
    return undefined
  }

  #onHandled(): void {
    this.#count += 1
  }
}
