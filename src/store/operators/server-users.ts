/** Users as the server API finds them. */

import type { UserId } from '../../domain/ids.ts'
import type { UserRef } from '../../domain/operators/user-ref.ts'
import { SignalError } from '../../errors.ts'
import type { AccountStore } from '../accounts/account-store.ts'
import type { View } from '../engine/store.ts'

export class ServerUsers {
  readonly #accounts: AccountStore

  constructor(accounts: AccountStore) {
    this.#accounts = accounts
  }

  /** The user; one whose account ends in some days is found too. Throws `USER_NOT_FOUND`. */
  userOf(view: View, ref: UserRef): UserId {
    const userId = this.find(view, ref)
    if (userId === undefined) throw new SignalError('USER_NOT_FOUND', 'there is no such user')
    return userId
  }

  find(view: View, ref: UserRef): UserId | undefined {
    if (ref.kind === 'ext') return this.#accounts.ownerOfExternalId(view, ref.externalId)
    return this.#accounts.read(view, ref.userId) === undefined ? undefined : ref.userId
  }
}
