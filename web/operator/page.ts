/** The page's state in memory, and the ways to change it. The browser keeps nothing of a user. */

import type { CallsignServerError } from '../../src/backend/callsign-server-error.ts'
import type { OperationName, Params, ServerLink } from '../../src/backend/server-link.ts'
import type { Operations } from '../../src/backend/wire.ts'
import { endSession, linkBy, type Session } from './session.ts'

export type ReplyOf<Name extends OperationName> = Operations[Name]['reply']

/** The state of a request. */
export type Answer<Value> =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'there'; readonly value: Value }
  | { readonly kind: 'failed'; readonly words: string }

/** The place in the page that the address names: ids of this server alone, never an address or a name. */
export interface Place {
  readonly view: string
  readonly id: string
}

/** The public facts of the log. */
export interface LogFacts {
  readonly vkey: string
  readonly vrfPublicKey: string
  readonly indexVkey?: string
}

export class Page {
  readonly log: LogFacts
  readonly #draw: () => void
  readonly #answers = new Map<string, Answer<unknown>>()
  /** How many pages of a list are shown. */
  readonly #pages = new Map<string, number>()
  session: Session | undefined
  place: Place = { view: '', id: '' }
  /** Said to screen readers, and shown. */
  said: { readonly words: string; readonly isBad: boolean } | undefined
  isBusy = false
  /** The question that waits for a second click. */
  asked: string | undefined
  /** The last search for people. */
  sought: readonly string[] = []

  constructor(log: LogFacts, draw: () => void) {
    this.log = log
    this.#draw = draw
  }

  may(scope: string): boolean {
    return this.session?.scopes.some(each => each === scope) ?? false
  }

  change(act: () => void): void {
    act()
    this.#draw()
  }

  /** The reply of an operation, asked for once until something is changed. */
  reply<Name extends OperationName>(name: Name, params: Params = {}): Answer<ReplyOf<Name>> {
    return this.kept(`${name} ${JSON.stringify(params)}`, link => link.ask(name, { params }))
  }

  /** The value of `ask`, likewise. */
  kept<Value>(key: string, ask: (link: ServerLink) => Promise<Value>): Answer<Value> {
    const known = this.#answers.get(key) as Answer<Value> | undefined
    if (known !== undefined) return known
    const waiting: Answer<Value> = { kind: 'waiting' }
    this.#answers.set(key, waiting)
    const settle = (answer: Answer<Value>) => {
      // Asked for anew, or signed out, in the meantime.
      if (this.#answers.get(key) === waiting) this.change(() => this.#answers.set(key, answer))
    }
    this.link()
      .then(ask)
      .then(
        value => settle({ kind: 'there', value }),
        error => settle({ kind: 'failed', words: this.wordsOf(error) }),
      )
    return waiting
  }

  /** How many pages of a list to show, and a way to one more. */
  pagesOf(key: string): { readonly count: number; readonly more: () => void } {
    const count = this.#pages.get(key) ?? 1
    return { count, more: () => this.change(() => this.#pages.set(key, count + 1)) }
  }

  /** Changes something at the server and asks for everything anew. `done` tells the reader. */
  async act(done: string, act: (link: ServerLink) => Promise<unknown>): Promise<boolean> {
    if (this.isBusy) return false
    this.change(() => Object.assign(this, { isBusy: true, said: undefined, asked: undefined }))
    try {
      await act(await this.link())
      this.change(() => {
        this.said = { words: done, isBad: false }
        this.#answers.clear()
      })
      return true
    } catch (error) {
      this.change(() => {
        this.said = { words: this.wordsOf(error), isBad: true }
      })
      return false
    } finally {
      this.change(() => {
        this.isBusy = false
      })
    }
  }

  /** Shows everything as it is now. */
  refresh(): void {
    this.change(() => this.#answers.clear())
  }

  /** Forgets all that the page knows. */
  leave(words: string | undefined): void {
    endSession()
    this.change(() => {
      this.#answers.clear()
      this.#pages.clear()
      Object.assign(this, { session: undefined, asked: undefined, sought: [] })
      this.said = words === undefined ? undefined : { words, isBad: true }
    })
  }

  async link(): Promise<ServerLink> {
    if (this.session === undefined) throw new Error('the page asks nothing without a session')
    return linkBy(this.session.token)
  }

  /** A refusal in words. One of the session itself ends it. */
  wordsOf(error: unknown): string {
    const { code, status, message } = error as Partial<CallsignServerError> & Error
    if (status === 401) this.leave(ENDED[code ?? ''] ?? 'Sign in again.')
    return (code !== undefined && WORDS[code]) || `It did not work: ${message}.`
  }
}

const ENDED: Readonly<Record<string, string>> = {
  SERVER_KEY_EXPIRED: 'Your session has ended. Sign in again to go on.',
  SERVER_KEY_REVOKED: 'Your key was revoked. Ask the operator for another.',
}
const WORDS: Readonly<Record<string, string>> = {
  SCOPE_MISSING: 'Your key does not open this. The operator can make one that does.',
  USER_NOT_FOUND: 'There is no such person: they never were here, or their account is erased.',
  CALL_NOT_FOUND: 'The server knows nothing of this call any more. It keeps a call for a day after its end.',
  CALL_ENDED: 'The call has ended by itself.',
  REPORT_NOT_FOUND: 'There is no such report: it is too old, or was never here.',
  RATE_LIMITED: 'That was too much at once. Wait a second, and try again.',
  NO_ANSWER: 'The server does not answer. Look whether it runs, and try again.',
}
