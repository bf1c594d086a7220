/**
 * Answers that are made part by part, by who has asked for them. A process makes few at once (`ANSWER_STREAMS_MAX`), and a client
 * that reads slowly keeps one for minutes, so no asker may have them all.
 */

import { SignalError } from '../../errors.ts'

export class LongAnswers {
  readonly #max: number
  readonly #open = new Map<string, number>()

  constructor(max: number) {
    this.#max = max
  }

  /** The parts, none made yet. They count until they end or are let go. Throws `OVERLOADED`. */
  counted(asker: string, parts: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    const made = parts[Symbol.asyncIterator]()
    const open = this.#open.get(asker) ?? 0
    if (open >= this.#max)
      throw new SignalError(
        'OVERLOADED',
        `read your other answers first: ${this.#max} long ones may be on their way`,
      )
    this.#open.set(asker, open + 1)
    let isOver = false
    const end = () => {
      if (isOver) return
      isOver = true
      const left = this.#open.get(asker)! - 1
      if (left > 0) this.#open.set(asker, left)
      else this.#open.delete(asker)
    }
    const watched: AsyncIterator<Uint8Array> = {
      async next() {
        try {
          const part = await made.next()
          if (part.done) end()
          return part
        } catch (error) {
          end()
          throw error
        }
      },
      async return() {
        end()
        await made.return?.()
        return { done: true, value: undefined }
      },
    }
    return { [Symbol.asyncIterator]: () => watched }
  }
}
