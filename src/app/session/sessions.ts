/** Where the user is signed in. */

import type { QueueEvent } from '../wire.ts'
import type { ReplyOf } from './operations.ts'
import type { Session } from './session.ts'

export class Sessions {
  readonly #session: Session

  constructor(session: Session) {
    this.#session = session
  }

  /** Those that last, newest first; this app's own `isCurrent`. */
  async list(): Promise<ReplyOf<'GET user/sessions'>['items']> {
    return (await this.#session.request('GET user/sessions', undefined)).items
  }

  /** Rejects with `SESSION_NOT_FOUND` where it has ended already. To end this app's own, sign out. */
  async end(id: string): Promise<void> {
    await this.#session.request('DELETE user/sessions/{id}', undefined, { id })
  }

  /** Ends all but this app's own. */
  async endOthers(): Promise<void> {
    await this.#session.request('DELETE user/sessions', undefined)
  }

  /** Whether the event tells of this app's own sign-in, which is no news to its user. */
  isOwnStart(event: QueueEvent): boolean {
    return event.type === 'session_started' && event.sessionId === this.#session.id
  }
}
