/** Suspensions of users, which are members of their rows, and the end of those that have one. */

import type { Suspension } from '../../domain/accounts/account.ts'
import type { UserId } from '../../domain/ids.ts'
import { suspensionAt } from '../../domain/operators/suspension.ts'
import type { AccountStore } from '../accounts/account-store.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { idsKey, userInKey } from '../engine/keys.ts'
import type { Change } from '../engine/store.ts'
import type { Webhooks } from './webhook-store.ts'

interface Parts {
  readonly accounts: AccountStore
  readonly expiries: Expiries
  readonly webhooks: Pick<Webhooks, 'add'>
}

export class Suspensions {
  readonly #accounts: AccountStore
  readonly #expiries: Expiries
  readonly #webhooks: Parts['webhooks']

  constructor({ accounts, expiries, webhooks }: Parts) {
    this.#accounts = accounts
    this.#expiries = expiries
    this.#webhooks = webhooks
    expiries.define(EXPIRY.suspension, (change, key) => this.#onDue(change, userInKey(key)))
  }

  /** Takes the place of one that there is. */
  begin(change: Change, userId: UserId, asked: Omit<Suspension, 'atMs'>): Suspension {
    const suspension = { ...asked, atMs: change.nowMs }
    const user = this.#accounts.read(change, userId)
    if (user !== undefined) this.#accounts.put(change, userId, { ...user, suspension })
    const { reason, untilMs } = suspension
    this.#webhooks.add(change, { kind: 'user.suspended', userId, reason, untilMs })
    if (untilMs !== undefined) this.#expiries.add(change, EXPIRY.suspension, untilMs, idsKey(userId))
    return suspension
  }

  /** False where the user is not suspended. The sessions that it ended stay ended. */
  lift(change: Change, userId: UserId): boolean {
    const user = this.#accounts.read(change, userId)
    if (user?.suspension === undefined) return false
    const { suspension: _, ...restored } = user
    this.#accounts.put(change, userId, restored)
    this.#webhooks.add(change, { kind: 'user.unsuspended', userId })
    return true
  }

  /** It may have been lifted since, or another have taken its place, which ends later or never. */
  #onDue(change: Change, userId: UserId): number | undefined {
    const user = this.#accounts.read(change, userId)
    const suspension = suspensionAt(user, change.nowMs)
    if (suspension === undefined) this.lift(change, userId)
    return suspension?.untilMs
  }
}
