/** Where the user is signed in, and who waits to be. */

import { encodeBase64 } from '../../log/base64.ts'
import { signInAnswerMessage } from '../../log/signing-messages.ts'
import type { RegisteredDevice } from '../devices/device-registration.ts'
import { fromBase64Url } from '../devices/octets.ts'
import type { QueueEvent } from '../wire.ts'
import type { ReplyOf } from './operations.ts'
import type { Session } from './session.ts'

export class Sessions {
  readonly #session: Session
  readonly #device: RegisteredDevice

  constructor(session: Session, device: RegisteredDevice) {
    this.#session = session
    this.#device = device
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

  /** Sign-ins that wait for an answer: show each with its `signInCode`. */
  async waiting(): Promise<ReplyOf<'GET user/waiting-sign-ins'>['items']> {
    return (await this.#session.request('GET user/waiting-sign-ins', undefined)).items
  }

  /**
   * Lets in who waits, once the user has compared the code on both screens, or keeps them out. Rejects with
   * `SIGN_IN_NOT_FOUND` where it was answered already, or a later one took its place.
   */
  async answer(id: string, approve: boolean): Promise<void> {
    const { userId, keys } = this.#device
    const message = signInAnswerMessage(BigInt(userId), fromBase64Url(id), approve)
    const signature = encodeBase64(await keys.sign(message))
    await this.#session.request('POST user/waiting-sign-ins/{id}', { approve, signature }, { id })
  }

  /** Whether the event tells of this app's own sign-in, which is no news to its user. */
  isOwnStart(event: QueueEvent): boolean {
    return event.type === 'session_started' && event.sessionId === this.#session.id
  }
}
