/**
 * The feed of the development console: the last things that happened, in order, and answers that wait for the next
 * one (`GET /dev/feed?after=N`). Each event is kept as the text that is sent, so the feed has a known size, and
 * another request costs only a join. A full feed drops its oldest events.
 */

import { SignalError } from '../../errors.ts'
import type { HttpAnswer, HttpRoute } from '../../transport/route.ts'
import { jsonAnswer } from '../page-route.ts'
import type { ConsoleFact } from './events.ts'

/** Requests by their numbers: the newest one's, and the JSON of those after one. */
export interface ToldRequests {
  readonly sequence: number
  rowsAfter(after: number, countMax: number): readonly string[]
}

export class ConsoleFeed {
  readonly startedAtMs: number
  readonly #nowMs: () => number
  readonly #requests: ToldRequests | undefined
  readonly #bounds: typeof BOUNDS
  /** JSON, oldest first; the newest has `#sequence`. */
  #texts: string[] = []
  /** Events at the front of `#texts` that are forgotten. */
  #forgotten = 0
  #chars = 0
  #sequence = 0
  readonly #waiters = new Set<() => void>()
  #isClosed = false

  /** Tells requests, if there are any, beside the events. */
  constructor(nowMs: () => number, requests?: ToldRequests, bounds: Partial<typeof BOUNDS> = {}) {
    this.#nowMs = nowMs
    this.#requests = requests
    this.#bounds = { ...BOUNDS, ...bounds }
    this.startedAtMs = nowMs()
  }

  /** The newest event's number; 0 before the first. */
  get sequence(): number {
    return this.#sequence
  }

  /** How many answers wait. */
  get waiting(): number {
    return this.#waiters.size
  }

  /** Size of the kept events, as sent. */
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

  /** Answers waiting requests, and lets none wait any more: a server that stops answers first. */
  close(): void {
    this.#isClosed = true
    this.#wakeAll()
  }

  route(): HttpRoute {
    const handle: HttpRoute['handle'] = ({ query }) =>
      this.#answer(numberIn(query, 'after') ?? 0, numberIn(query, 'requestsAfter'))
    return { method: 'GET', path: '/dev/feed', handle }
  }

  /** Wakes waiting requests: there are new rows to show. */
  readonly onRequest = (): void => {
    if (this.#waiters.size > 0) this.#wakeAll()
  }

  async #answer(asked: number, requestsAsked: number | undefined): Promise<HttpAnswer> {
    // A reader beyond the newest event has seen another server: everything here is new to it.
    const after = asked > this.#sequence ? 0 : asked
    const hasRequests = () => requestsAsked !== undefined && requestsAsked !== (this.#requests?.sequence ?? 0)
    while (after === this.#sequence && !hasRequests() && (await this.#somethingNew()));
    const events = this.#textAfter(after)
    const requests = requestsAsked === undefined ? '' : this.#requestsAfter(requestsAsked)
    return jsonAnswer(200, `{${events}${requests},"startedAtMs":${this.startedAtMs}}`)
  }

  #requestsAfter(asked: number): string {
    const newest = this.#requests?.sequence ?? 0
    const rows = this.#requests?.rowsAfter(asked > newest ? 0 : asked, EVENTS_PER_ANSWER_MAX) ?? []
    // A reader gets at most the kept rows: the next answer forgets rows that this one leaves out.
    return `,"requests":[${rows.join(',')}],"nextRequest":${newest}`
  }

  /** Resolves with true at the next event or request, and with false when there was none for as long as one waits. */
  async #somethingNew(): Promise<boolean> {
    if (this.#isClosed) return false
    if (this.#waiters.size >= this.#bounds.waitersMax) {
      throw new SignalError('OVERLOADED', `${this.#bounds.waitersMax} others wait for the feed`)
    }
    return new Promise<boolean>(resolve => {
      const end = (isNew: boolean): void => {
        clearTimeout(timer)
        this.#waiters.delete(wake)
        resolve(isNew && !this.#isClosed)
      }
      const wake = () => end(true)
      const timer = setTimeout(end, this.#bounds.waitMs, false).unref()
      this.#waiters.add(wake)
    })
  }

  #textAfter(after: number): string {
    const oldest = this.#sequence - this.size.events + 1
    const from = this.#forgotten + Math.max(0, after + 1 - oldest)
    const texts = this.#texts.slice(from, from + EVENTS_PER_ANSWER_MAX)
    const next = Math.max(after, oldest - 1) + texts.length
    return `"events":[${texts.join(',')}],"next":${next}`
  }

  #forgetOldest(): void {
    while (
      this.size.events > this.#bounds.eventsMax ||
      (this.#chars > this.#bounds.charsMax && this.size.events > 1)
    ) {
      this.#chars -= this.#texts[this.#forgotten]!.length
      this.#texts[this.#forgotten] = ''
      this.#forgotten += 1
    }
    // Shifting a long array for each event would cost more than the event.
    if (this.#forgotten <= this.#bounds.eventsMax) return
    this.#texts = this.#texts.slice(this.#forgotten)
    this.#forgotten = 0
  }

  #wakeAll(): void {
    for (const wake of [...this.#waiters]) wake()
  }
}

/** Undefined where the query does not name it. */
function numberIn(query: string, name: string): number | undefined {
  const text = new URLSearchParams(query).get(name)
  if (text === null) return undefined
  if (!/^\d{1,15}$/.test(text)) {
    throw new SignalError('VALIDATION_FAILED', `${name} is the number of an event, such as 0`, {
      errors: [{ pointer: `/${name}`, code: 'invalid', detail: 'digits' }],
    })
  }
  return Number(text)
}

const BOUNDS = {
  /** How long an answer waits for something to tell: below the time after which proxies and browsers give up on it. */
  waitMs: 20_000,
  eventsMax: 2_000,
  /** Sum over all events, as sent: large calls and pushes add up. */
  charsMax: 8_000_000,
  /** Requests that may wait at once; the next gets a request to come back. A browser has six connections to a server. */
  waitersMax: 64,
}
const EVENTS_PER_ANSWER_MAX = 500
