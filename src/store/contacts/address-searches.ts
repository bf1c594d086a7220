/**
 * Searches by email or phone (contract 3.3). A request only leaves what to look for: who is found, and what becomes of
 * it, is done behind it, so that neither its answer nor its time says whether there was anybody.
 */

import { addressIdentifier } from '../../domain/accounts/account.ts'
import type { SearchTask } from '../../domain/contacts/deferred-task.ts'
import type { UserId } from '../../domain/ids.ts'
import type { AccountStore } from '../accounts/account-store.ts'
import type { Change, View } from '../engine/store.ts'
import type { DeferredTasks } from '../tables/deferred-tasks.ts'
import type { ContactStore } from './contact-store.ts'

export class AddressSearches {
  readonly #deferredTasks: DeferredTasks
  readonly #accounts: Pick<AccountStore, 'read' | 'ownerOf'>
  readonly #contacts: Pick<ContactStore, 'decideRequest' | 'request'>

  constructor(
    deferredTasks: DeferredTasks,
    accounts: Pick<AccountStore, 'read' | 'ownerOf'>,
    contacts: Pick<ContactStore, 'decideRequest' | 'request'>,
  ) {
    this.#deferredTasks = deferredTasks
    this.#accounts = accounts
    this.#contacts = contacts
    deferredTasks.define('search', (change, search) => this.#run(change, search))
  }

  leave(change: Change, search: Omit<SearchTask, 'kind'>): void {
    this.#deferredTasks.leave(change, { kind: 'search', ...search })
  }

  /** Limits that only somebody found would run into are kept silent, too. */
  #run(change: Change, { requestId, senderId, address, message }: SearchTask): void {
    const receiverId = this.#discoverableAt(change, address)
    if (receiverId === undefined || receiverId === senderId || !this.#isHere(change, senderId)) return
    const command = { requestId, senderId, receiverId, route: 'address', message } as const
    const decision = this.#contacts.decideRequest(change, command, change.nowMs)
    if (decision.kind !== 'refused') this.#contacts.request(change, command, decision)
  }

  /** The user who has proven this address and can be found by it. */
  #discoverableAt(view: View, { kind, key }: SearchTask['address']): UserId | undefined {
    const userId = this.#accounts.ownerOf(view, addressIdentifier(kind, key))?.userId
    const user = userId === undefined ? undefined : this.#accounts.read(view, userId)
    if (userId === undefined || user === undefined || user.erasesAtMs !== undefined) return undefined
    const { discoverableByEmail, discoverableByPhone } = user.settings
    return (kind === 'email' ? discoverableByEmail : discoverableByPhone) ? userId : undefined
  }

  #isHere(view: View, userId: UserId): boolean {
    const user = this.#accounts.read(view, userId)
    return user !== undefined && user.erasesAtMs === undefined
  }
}
