/** Where the user is signed in. */

import { type Callsign, hasCode, type SessionStartedEvent, type SignInEndedEvent } from '../../src/app/app.ts'
import { programName } from '../../src/ui/names.ts'
import { word } from '../../src/ui/words.ts'
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

  async onStarted({ sessionId, userAgent, network }: SessionStartedEvent): Promise<void> {
    const from = network === undefined ? '' : `, from ${network}`
    this.#store.say('bad', `Signed in as you: ${programName(userAgent)}${from}. Was that you?`, {
      label: 'End that session',
      run: () => this.end(sessionId),
    })
    await this.load()
  }

  /** Here, on another device, or not at all. */
  onAnswered(outcome: SignInEndedEvent['outcome']): void {
    // The one that has replaced it asks now.
    if (outcome === 'replaced') return
    this.#store.say(outcome === 'approved' ? 'good' : 'bad', word(`notice-sign-in-${outcome}`))
  }
}
