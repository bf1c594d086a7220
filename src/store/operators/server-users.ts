/** Users as the server API finds, makes and changes them. */

import { isDeepStrictEqual } from 'node:util'
import {
  addressIdentifier,
  type ContactData,
  DEFAULT_SETTINGS,
  type User,
} from '../../domain/accounts/account.ts'
import type { Address } from '../../domain/accounts/challenge.ts'
import { displayNameFromEmail } from '../../domain/accounts/display-name.ts'
import { newId, type UserId } from '../../domain/ids.ts'
import type { UserRef } from '../../domain/operators/user-ref.ts'
import { assert, SignalError } from '../../errors.ts'
import type { AccountStore, UserRange } from '../accounts/account-store.ts'
import type { ContactStore } from '../contacts/contact-store.ts'
import type { Change, View } from '../engine/store.ts'
import type { Notices } from '../messages/notices.ts'

/** A user's members as the backend sends them. A member left out stays as it is. */
export interface SaidOfUser {
  readonly displayName?: string | undefined
  /** Undefined: taken away. */
  readonly addresses: ReadonlyMap<Address['kind'], Address | undefined>
  readonly isReachableByAll?: boolean | undefined
  /** Empty: taken away. */
  readonly externalId?: string | undefined
}

interface PutUser {
  readonly userId: UserId
  readonly outcome: 'created' | 'changed' | 'unchanged'
}

interface Parts {
  readonly accounts: AccountStore
  readonly contacts: Pick<ContactStore, 'onNewName'>
  readonly notices: Pick<Notices, 'tell'>
  readonly randomBytes: (length: number) => Uint8Array
}

export class ServerUsers {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The user; one whose account ends in some days is found too. Throws `USER_NOT_FOUND`. */
  userOf(view: View, ref: UserRef): UserId {
    const userId = this.#find(view, ref)
    if (userId === undefined) throw new SignalError('USER_NOT_FOUND', 'there is no such user')
    return userId
  }

  /** Users with an address that they have proven, or that the backend says of them; by ids, behind `after`. */
  usersAt(view: View, { kind, key }: Address, { after = 0n as UserId, limit }: UserRange): UserId[] {
    const { accounts } = this.#parts
    const identifier = addressIdentifier(kind, key)
    const owner = accounts.ownerOf(view, identifier)?.userId
    const said = accounts.usersWithContact(view, identifier, { after, limit })
    if (owner === undefined || owner <= after || said.includes(owner)) return said
    return [...said, owner].sort((one, other) => (one < other ? -1 : 1)).slice(0, limit)
  }

  /**
   * Makes or changes a user; only one named by an external id is made. Addresses become contact data: login methods are the
   * user's own. Throws `USER_NOT_FOUND`, `METHOD_IN_USE`, `EXTERNAL_ID_IN_USE`.
   */
  put(change: Change, ref: UserRef, said: SaidOfUser): PutUser {
    const userId = this.#find(change, ref)
    if (userId !== undefined) return this.#change(change, userId, said)
    if (ref.kind === 'ext') return this.#create(change, ref.externalId, said)
    throw new SignalError(
      'USER_NOT_FOUND',
      'there is no such user; a new one is named by ext: and your own id',
    )
  }

  #find(view: View, ref: UserRef): UserId | undefined {
    const { accounts } = this.#parts
    if (ref.kind === 'ext') return accounts.ownerOfExternalId(view, ref.externalId)
    return accounts.read(view, ref.userId) === undefined ? undefined : ref.userId
  }

  #create(change: Change, externalId: string, said: SaidOfUser): PutUser {
    const { accounts, randomBytes } = this.#parts
    const userId = newId(randomBytes) as UserId
    assert(accounts.read(change, userId) === undefined, 'a new id is nobody else’s')
    const made: User = {
      displayName: displayNameFromEmail(said.addresses.get('email')?.key ?? ''),
      createdAtMs: change.nowMs,
      settings: DEFAULT_SETTINGS,
      acceptLanguage: '',
      externalId,
      isMadeByServer: true,
    }
    accounts.put(change, userId, this.#after(change, userId, made, said))
    return { userId, outcome: 'created' }
  }

  #change(change: Change, userId: UserId, said: SaidOfUser): PutUser {
    const { accounts, contacts, notices } = this.#parts
    const before = accounts.read(change, userId)!
    const after = this.#after(change, userId, before, said)
    if (isDeepStrictEqual(after, before)) return { userId, outcome: 'unchanged' }
    accounts.put(change, userId, after)
    const isRenamed = after.displayName !== before.displayName
    if (isRenamed) contacts.onNewName(change, userId)
    if (isRenamed || !isDeepStrictEqual(after.settings, before.settings))
      notices.tell(change, userId, { kind: 'profile_changed' })
    return { userId, outcome: 'changed' }
  }

  #after(view: View, userId: UserId, before: User, said: SaidOfUser): User {
    const { externalId, contactData, ...kept } = before
    const { displayName = kept.displayName, isReachableByAll } = said
    const newExternalId = said.externalId ?? externalId ?? ''
    this.#assertFree(view, userId, newExternalId)
    const newContactData = this.#contactDataAfter(view, userId, contactData, said)
    // A setting of the user's own, once they sign in by themselves.
    const settings =
      isReachableByAll === undefined || before.isMadeByServer === undefined
        ? kept.settings
        : { ...kept.settings, callsFromContactsOnly: !isReachableByAll }
    return {
      ...kept,
      displayName,
      settings,
      ...(newExternalId !== '' && { externalId: newExternalId }),
      ...(newContactData && { contactData: newContactData }),
    }
  }

  #assertFree(view: View, userId: UserId, externalId: string): void {
    const owner = this.#parts.accounts.ownerOfExternalId(view, externalId)
    if (owner !== undefined && owner !== userId)
      throw new SignalError('EXTERNAL_ID_IN_USE', `user ${owner} has this external id`)
  }

  #contactDataAfter(
    view: View,
    userId: UserId,
    before: ContactData | undefined,
    { addresses }: SaidOfUser,
  ): ContactData | undefined {
    const shown = { ...before }
    for (const [kind, address] of addresses) {
      delete shown[kind]
      if (address === undefined) continue
      const owner = this.#parts.accounts.ownerOf(view, addressIdentifier(kind, address.key))
      if (owner !== undefined && owner.userId !== userId)
        throw new SignalError('METHOD_IN_USE', `another account signs in by this ${NAMES[kind]}`)
      shown[kind] = address.shown
    }
    return Object.keys(shown).length === 0 ? undefined : shown
  }
}

const NAMES = { email: 'email address', phone: 'phone number' } as const
