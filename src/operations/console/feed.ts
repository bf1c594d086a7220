/**
 * The feed of the development console: the last things that happened, in order, and answers that wait for the next one
 * (`GET /dev/feed?after=N`). Each event is kept as the text that is sent, so that what is kept has a known size, and
 * whoever asks again costs nothing but a join. When it is full the oldest events go.
 */

import { SignalError } from '../../errors.ts'
import type { HttpAnswer, HttpRoute } from '../../transport/http.ts'
import type { ConsoleFact } from './events.ts'
import { jsonAnswer } from './json-answer.ts'

export interface ConsoleFeedOptions {
  readonly nowMs: () => number
  /** How long an answer waits for something to tell. */
  readonly waitMs?: number
  readonly eventsMax?: number
  /** Of all events together, as they are sent. */
  readonly charsMax?: number
  /** Answers that wait at once; who comes then is told to come back. */
  readonly waitersMax?: number
}

export class ConsoleFeed {
  readonly startedAtMs: number
  readonly #nowMs: () => number
  readonly #waitMs: number
  readonly #eventsMax: number
  readonly #charsMax: number
  readonly #waitersMax: number
  /** JSON, oldest first; the newest has `#sequence`. */
  #texts: string[] = []
  /** Events at the front of `#texts` that are forgotten. */
  #forgotten = 0
  #chars = 0
  #sequence = 0
  readonly #waiters = new Set<() => void>()
  #isClosed = false

  constructor(options: ConsoleFeedOptions) {
    this.#nowMs = options.nowMs
    this.#waitMs = options.waitMs ?? WAIT_MS
    this.#eventsMax = options.eventsMax ?? EVENTS_MAX
    this.#charsMax = options.charsMax ?? CHARS_MAX
    this.#waitersMax = options.waitersMax ?? WAITERS_MAX
    this.startedAtMs = options.nowMs()
  }

  /** Of the newest event; 0 when there was none yet. */
  get sequence(): number {
    return this.#sequence
  }

  /** How many answers wait. */
  get waiting(): number {
    return this.#waiters.size
  }

  /** What is kept, as it is sent. */
  get size(): { readonly events: number; readonly chars: number } {
    return { events: this.#texts.length - this.#forgotten, chars: this.#chars }
  }

  readonly add = (fact: ConsoleFact): void => {
    if (this.#isClosed) return
    this.#sequence += 1
    const text = JSON.stringify({ sequence: this.#sequence, atMs: this.#nowMs(), ...fact })
    this.#texts.push(text)
    this.#chars += text.length
    this.#forgetOldest()
    this.#wakeAll()
  }

  /** Ends what waits, and has nothing wait any more: a server that stops answers first. */
  close(): void {
    this.#isClosed = true
    this.#wakeAll()
  }

  route(): HttpRoute {
    const handle: HttpRoute['handle'] = ({ query }) => this.#answer(afterOf(query))
    return { method: 'GET', path: '/dev/feed', handle }
  }

  async #answer(asked: number): Promise<HttpAnswer> {
    // Whoever has seen more than there is has seen another server: everything of this one is new.
    const after = asked > this.#sequence ? 0 : asked
    if (after === this.#sequence) await this.#somethingNew()
    return jsonAnswer(200, this.#textAfter(after))
  }

  /** Resolves with the next event, or when there was none for as long as one waits for it. */
  async #somethingNew(): Promise<void> {
    if (this.#isClosed) return
    if (this.#waiters.size >= this.#waitersMax) {
      throw new SignalError('OVERLOADED', `${this.#waitersMax} others wait for the feed`)
    }
    await new Promise<void>(resolve => {
      const wake = (): void => {
        clearTimeout(timer)
        this.#waiters.delete(wake)
        resolve()
      }
      const timer = setTimeout(wake, this.#waitMs).unref()
      this.#waiters.add(wake)
    })
  }

  #textAfter(after: number): string {
    const oldest = this.#sequence - this.size.events + 1
    const from = this.#forgotten + Math.max(0, after + 1 - oldest)
    const texts = this.#texts.slice(from, from + EVENTS_PER_ANSWER_MAX)
    const next = Math.max(after, oldest - 1) + texts.length
    return `{"events":[${texts.join(',')}],"next":${next},"startedAtMs":${this.startedAtMs}}`
  }

  #forgetOldest(): void {
    while (this.size.events > this.#eventsMax || (this.#chars > this.#charsMax && this.size.events > 1)) {
      this.#chars -= this.#texts[this.#forgotten]!.length
      this.#texts[this.#forgotten] = ''
      this.#forgotten += 1
    }
    // Shifting a long array for each event would cost more than the event.
    if (this.#forgotten <= this.#eventsMax) return
    this.#texts = this.#texts.slice(this.#forgotten)
    this.#forgotten = 0
  }

  #wakeAll(): void {
    for (const wake of [...this.#waiters]) wake()
  }
}

function afterOf(query: string): number {
  const text = new URLSearchParams(query).get('after') ?? '0'
  if (!/^\d{1,15}$/.test(text)) {
    throw new SignalError('VALIDATION_FAILED', 'after is the number of an event, such as 0', {
      errors: [{ pointer: '/after', code: 'invalid', detail: 'digits' }],
    })
  }
  return Number(text)
}

/** Below the time after which proxies and browsers give up on an answer. */
const WAIT_MS = 20_000
const EVENTS_MAX = 2_000
/** Bounds what large calls and pushes add up to. */
const CHARS_MAX = 8_000_000
const EVENTS_PER_ANSWER_MAX = 500
/** A browser has six connections to a server. */
const WAITERS_MAX = 64
