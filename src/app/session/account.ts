/** The user's profile and the ways by which they sign in. */

import type { Challenge, LoginMethod, User } from '../wire.ts'
import type { BodyOf, ReplyOf } from './operations.ts'
import type { Session } from './session.ts'
import type { Confirm } from './sign-in.ts'
import { confirmed } from './sign-in.ts'

export class Account {
  readonly #session: Session

  constructor(session: Session) {
    this.#session = session
  }

  read(): Promise<User> {
    return this.#session.request('GET user', undefined)
  }

  /** A new address counts once its code is confirmed: `confirm` is asked for each. */
  async update(changes: BodyOf<'PUT user'>, confirm?: Confirm): Promise<User> {
    const { user, pending = [] } = await this.#session.request('PUT user', changes)
    let newest = user
    for (const challenge of pending)
      if (confirm !== undefined) newest = await this.#verify(challenge, confirm)
    return newest
  }

  loginMethods(): Promise<ReplyOf<'GET user/login-methods'>> {
    return this.#session.request('GET user/login-methods', undefined)
  }

  /** An address, which `confirm` is asked the code of, or what a provider has signed. */
  async addLoginMethod(method: BodyOf<'POST user/login-methods'>, confirm: Confirm): Promise<void> {
    const reply = await this.#session.request('POST user/login-methods', method)
    if ('challengeId' in reply) await this.#verify(reply, confirm)
  }

  setPrimaryLoginMethod(id: string): Promise<ReplyOf<'PUT user/login-methods/primary'>> {
    return this.#session.request('PUT user/login-methods/primary', { id })
  }

  async removeLoginMethod({ id }: Pick<LoginMethod, 'id'>): Promise<void> {
    await this.#session.request('DELETE user/login-methods/{id}', undefined, { id })
  }

  /** All that the server has of the account. Five a day. */
  export(): Promise<ReplyOf<'GET user/export'>> {
    return this.#session.request('GET user/export', undefined)
  }

  /** The account ends, unless the user signs in again before it is erased. */
  delete(): Promise<ReplyOf<'DELETE user'>> {
    return this.#session.request('DELETE user', { confirm: true })
  }

  async #verify(challenge: Challenge, confirm: Confirm): Promise<User> {
    const { challengeId } = challenge
    const { user } = await confirmed(this.#session, challenge, confirm, otp =>
      this.#session.request('POST verify', { challengeId, otp }),
    )
    return user
  }
}
