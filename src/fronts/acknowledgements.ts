/** Counts the writer's messages that a front has handled, and answers each `barrier` with that count. */

import type { Link } from './link/link.ts'
import type { MessageToFront, MessageToWriter } from './messages.ts'

export class Acknowledgements {
  #count = 0

  /** Messages behind it wait for the promise that `handle` returns. */
  of(
    message: MessageToFront,
    writer: Pick<Link, 'send'>,
    handle: (message: Exclude<MessageToFront, { kind: 'barrier' }>) => Promise<void> | undefined,
  ): Promise<void> | undefined {
    if (message.kind === 'barrier') {
      writer.send({ kind: 'acknowledged', count: this.#count } satisfies MessageToWriter)
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
