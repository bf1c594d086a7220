/**
 * Answers that are made part by part, on their way to the client of a front. The writer makes the next part only when the front
 * asks for it, which it does when its client has read the one before. So a client that reads slowly, or not at all, keeps one
 * part of its answer between the processes, however long the whole is.
 */

import { SignalError } from '../src/errors.ts'
import { ANSWER_PART_BYTES_MAX, ANSWER_STREAMS_MAX } from '../src/limits.ts'
import type { Ref } from '../src/runtime/actor.ts'
import type { StreamMessage } from './messages.ts'

/** Calls for `stop` of a stream after so long, unless it is called again for the same one, or with undefined. */
type Remind = (stream: string, ms: number | undefined) => void

interface OpenStream {
  readonly parts: AsyncIterator<Uint8Array>
  /** The rest of a longer part. */
  rest: Uint8Array
}

/** The streams that one front reads, in the writer. */
export class AnswerStreams {
  readonly #open = new Map<string, OpenStream>()
  readonly #newName: () => string
  readonly #remind: Remind
  readonly #onFault: (error: unknown) => void
  #isOver = false

  /** No writer may give a name again: a front would read another client's parts from its next writer. */
  constructor(newName: () => string, remind: Remind, onFault: (error: unknown) => void) {
    this.#newName = newName
    this.#remind = remind
    this.#onFault = onFault
  }

  get size(): number {
    return this.#open.size
  }

  /** Returns the stream's name for the front. Throws `OVERLOADED`, and lets go of the parts, where there are too many. */
  open(parts: AsyncIterable<Uint8Array>): string {
    const stream = { parts: parts[Symbol.asyncIterator](), rest: NO_BYTES }
    if (this.#isOver || this.#open.size >= ANSWER_STREAMS_MAX) {
      this.#letGo(stream)
      throw new SignalError('OVERLOADED', 'too many long answers are on their way')
    }
    const name = this.#newName()
    this.#open.set(name, stream)
    this.#remind(name, UNASKED_MS_MAX)
    return name
  }

  /** Resolves with the next part, undefined at the end. Rejects as the parts do, and for an unknown stream. */
  async next(name: string): Promise<Uint8Array | undefined> {
    const stream = this.#open.get(name)
    if (stream === undefined) throw new SignalError('OUTCOME_UNKNOWN', 'the rest of the answer is gone')
    this.#remind(name, undefined)
    try {
      while (stream.rest.length === 0) {
        const part = await stream.parts.next()
        if (part.done) {
          this.#open.delete(name)
          return undefined
        }
        stream.rest = part.value
      }
    } catch (error) {
      this.stop(name)
      throw error
    }
    const part = stream.rest.subarray(0, ANSWER_PART_BYTES_MAX)
    stream.rest = stream.rest.subarray(ANSWER_PART_BYTES_MAX)
    if (this.#open.has(name)) this.#remind(name, UNASKED_MS_MAX)
    return part
  }

  stop(name: string): void {
    const stream = this.#open.get(name)
    if (stream === undefined) return
    this.#open.delete(name)
    this.#remind(name, undefined)
    this.#letGo(stream)
  }

  /** The front is gone. */
  stopAll(): void {
    for (const name of [...this.#open.keys()]) this.stop(name)
  }

  /** Opens no more either. */
  close(): void {
    this.#isOver = true
    this.stopAll()
  }

  #letGo({ parts }: OpenStream): void {
    parts.return?.().catch(this.#onFault)
  }
}

/** A stream as the front reads it from its desk, once. */
export function partsFrom(
  desk: Ref<StreamMessage>,
  stream: string,
  deadlineMs: number,
): AsyncIterable<Uint8Array> {
  const stop = () => desk.tellControl({ kind: 'stop-stream', stream })
  const parts: AsyncIterator<Uint8Array> = {
    async next() {
      const part = desk.ask<Uint8Array | undefined>(
        reply => ({ kind: 'next-part', stream, reply }),
        deadlineMs,
      )
      // After an ask that ended at its deadline the writer may still have it.
      const bytes = await part.catch((error: unknown) => {
        stop()
        throw error
      })
      return bytes === undefined ? { done: true, value: undefined } : { done: false, value: bytes }
    },
    async return() {
      stop()
      return { done: true, value: undefined }
    },
  }
  return { [Symbol.asyncIterator]: () => parts }
}

/** For an answer whose front never heard of it: a front that reads asks within a few seconds, or says that it stops. */
const UNASKED_MS_MAX = 60_000
const NO_BYTES = new Uint8Array(0)
