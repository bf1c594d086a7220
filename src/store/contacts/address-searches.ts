/**
 * Searches by email or phone (contract 3.3). A request only leaves what to look for: who is found, and what becomes of
 * it, is done behind it, so that neither its answer nor its time says whether there was anybody.
 */

import { addressIdentifier } from '../../domain/accounts/account.ts'
import type { SearchErrand } from '../../domain/contacts/errand.ts'
import type { UserId } from '../../domain/ids.ts'
import type { AccountStore } from '../accounts/account-store.ts'
import type { Database } from '../engine/database.ts'
import type { Errands } from '../engine/errands.ts'
import type { ContactStore } from './contact-store.ts'

export interface AddressSearchesParts {
  readonly errands: Errands
  readonly database: Pick<Database, 'ambient'>
  readonly accounts: Pick<AccountStore, 'read' | 'ownerOf'>
  readonly contacts: Pick<ContactStore, 'decideRequest' | 'request'>
}

export class AddressSearches {
  readonly #parts: AddressSearchesParts

  constructor(parts: AddressSearchesParts) {
    this.#parts = parts
    parts.errands.define('search', (search, nowMs) => this.#run(search, nowMs))
  }

  /** In a transaction. */
  leave(search: Omit<SearchErrand, 'kind'>, nowMs: number): void {
    this.#parts.errands.leave({ kind: 'search', ...search }, nowMs)
  }

  /** Limits that only somebody found would run into are kept silent, too. */
  #run({ requestId, senderId, address, message }: SearchErrand, nowMs: number): void {
    const { contacts } = this.#parts
    const receiverId = this.#discoverableAt(address)
    if (receiverId === undefined || receiverId === senderId || !this.#isHere(senderId)) return
    const command = { requestId, senderId, receiverId, route: 'address', message } as const
    const decision = contacts.decideRequest(command, nowMs)
    if (decision.kind !== 'refused') contacts.request(command, decision, nowMs)
  }

  /** The user who has proven this address and can be found by it. */
  #discoverableAt({ kind, key }: SearchErrand['address']): UserId | undefined {
    const { accounts, database } = this.#parts
    const userId = accounts.ownerOf(database.ambient, addressIdentifier(kind, key))?.userId
    const user = userId === undefined ? undefined : accounts.read(database.ambient, userId)
    if (userId === undefined || user === undefined || user.erasesAtMs !== undefined) return undefined
    const { discoverableByEmail, discoverableByPhone } = user.settings
    return (kind === 'email' ? discoverableByEmail : discoverableByPhone) ? userId : undefined
  }

  #isHere(userId: UserId): boolean {
    const user = this.#parts.accounts.read(this.#parts.database.ambient, userId)
    return user !== undefined && user.erasesAtMs === undefined
  }
}
