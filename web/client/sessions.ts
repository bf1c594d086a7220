/** Where the user is signed in, and sign-ins that wait for the user's answer. */

import { type Callsign, hasCode, type SessionStartedEvent, type SignInEndedEvent } from '../../src/app/app.ts'
import { programName } from './names.ts'
import type { Store } from './state.ts'

export class Sessions {
  readonly #me: Callsign
  readonly #store: Store

  constructor(me: Callsign, store: Store) {
    this.#me = me
    this.#store = store
  }

  async load(): Promise<void> {
    this.#store.update({ sessions: await this.#me.sessions.list() })
  }

  async loadAsking(): Promise<void> {
    this.#store.update({ asking: await this.#me.sessions.waiting() })
  }

  async end(id: string): Promise<void> {
    await this.#me.sessions.end(id).catch(error => {
      // The wish is fulfilled: another device was faster, or the answer to a first try was lost.
      if (!hasCode(error, 'SESSION_NOT_FOUND')) throw error
    })
    this.#store.say('good', 'That session is ended.')
    await this.load()
  }

  async endOthers(): Promise<void> {
    await this.#me.sessions.endOthers()
    this.#store.say('good', 'All other sessions are ended.')
    await this.load()
  }

  async answer(id: string, approve: boolean): Promise<void> {
    await this.#me.sessions.answer(id, approve)
    await this.onAnswered(approve ? 'approved' : 'refused')
  }

  async onStarted({ sessionId, userAgent, network }: SessionStartedEvent): Promise<void> {
    const from = network === undefined ? '' : `, from ${network}`
    this.#store.say('bad', `Signed in as you: ${programName(userAgent)}${from}. Was that you?`, {
      label: 'End that session',
      run: () => this.end(sessionId),
    })
    await this.load()
  }

  /** Here, on another device, or not at all. */
  async onAnswered(outcome: SignInEndedEvent['outcome']): Promise<void> {
    // The one that has replaced it asks now.
    if (outcome !== 'replaced') this.#store.say(outcome === 'approved' ? 'good' : 'bad', OUTCOMES[outcome])
    await this.loadAsking()
  }
}

const OUTCOMES: Readonly<Record<Exclude<SignInEndedEvent['outcome'], 'replaced'>, string>> = {
  approved: 'The sign-in is approved. Its device asks to be on your list next.',
  refused:
    'The sign-in is refused. For seven days its address opens nothing, then a new account, unless you confirm a code to it while you are signed in.',
  passed: 'There was no answer to the sign-in in time, so it has gone through.',
  expired: 'The sign-in was given up.',
}
