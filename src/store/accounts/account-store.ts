/** Users and their sign-in methods; one identifier belongs to one method of one user. */

import { isDeepStrictEqual } from 'node:util'
import { identifierOf, type LoginMethod, type User } from '../../domain/accounts/account.ts'
import type { UserId } from '../../domain/ids.ts'
import { assert } from '../../errors.ts'
import { PEOPLE_KEPT_MAX } from '../../limits.ts'
import { idsKey, keyBehind, textKey, userInKey } from '../engine/keys.ts'
import type { Change, ReadStore, View } from '../engine/store.ts'
import { WatchedCache } from '../engine/watched-cache.ts'
import type { UserChanges } from '../operators/user-changes.ts'
import type { UserEvents } from '../operators/user-events.ts'
import { CONTACT_ADDRESSES, contactIdentifiers, EXTERNAL_IDS } from '../operators/user-tables.ts'
import {
  LOGIN_METHOD_OWNERS,
  LOGIN_METHODS,
  type MethodOwner,
  REFUSED_SIGN_INS,
  USERS,
} from './account-tables.ts'

export class AccountStore {
  readonly #displayNames: WatchedCache<UserId, string>
  readonly #events: UserEvents | undefined

  readonly #changes: Pick<UserChanges, 'note'>

  /** `events` writes webhooks; left out where there are none. */
  constructor(database: Pick<ReadStore, 'watch'>, changes: Pick<UserChanges, 'note'>, events?: UserEvents) {
    this.#changes = changes
    this.#events = events
    this.#displayNames = new WatchedCache(database, [USERS], userInKey, PEOPLE_KEPT_MAX)
  }

  read(view: View, userId: UserId): User | undefined {
    return view.get(USERS, idsKey(userId))
  }

  /** As others see it; empty when there is no such user. */
  displayNameOf(view: View, userId: UserId): string {
    return this.#displayNames.of(userId, () => this.read(view, userId)?.displayName ?? '')
  }

  /** The user's methods, oldest first. */
  methodsOf(view: View, userId: UserId): readonly LoginMethod[] {
    return view.get(LOGIN_METHODS, idsKey(userId)) ?? []
  }

  /** By `addressIdentifier`, `socialIdentifier` or `passkeyIdentifier`. */
  ownerOf(view: View, identifier: string): MethodOwner | undefined {
    return view.get(LOGIN_METHOD_OWNERS, textKey(identifier))
  }

  method(view: View, { userId, methodId }: MethodOwner): LoginMethod | undefined {
    return this.methodsOf(view, userId).find(({ id }) => id === methodId)
  }

  /** By the id that the operator's backend has for the user. */
  ownerOfExternalId(view: View, externalId: string): UserId | undefined {
    return view.get(EXTERNAL_IDS, textKey(externalId))?.userId
  }

  /** Users by a contact address, in the order of their ids, behind `after`. */
  usersWithContact(view: View, identifier: string, { after, limit }: UserRange): UserId[] {
    const hash = textKey(identifier)
    const start = after === undefined ? hash : Buffer.concat([hash, idsKey(after + 1n)])
    const keys = view.keys(CONTACT_ADDRESSES, { start, end: keyBehind(hash), limit })
    return [...keys].map(key => userInKey(key.subarray(hash.length)))
  }

  /** All users in the order of their ids, behind `after`. */
  list(view: View, { after, limit }: UserRange): UserId[] {
    const range = after === undefined ? { limit } : { start: idsKey(after + 1n), limit }
    return [...view.keys(USERS, range)].map(userInKey)
  }

  /** No other user may have the external id. */
  put(change: Change, userId: UserId, user: User): void {
    const before = this.read(change, userId)
    this.#index(change, userId, before, user)
    this.#events?.onPut(change, userId, before, user)
    change.put(USERS, idsKey(userId), user)
    // The language goes with each request of theirs.
    if (!isDeepStrictEqual({ ...before, acceptLanguage: user.acceptLanguage }, user))
      this.#changes.note(change, userId, 'here')
  }

  /** A new method, or the new state of one. Its identifier must be nobody else's. */
  putMethod(change: Change, userId: UserId, method: LoginMethod): void {
    const owner = this.ownerOf(change, identifierOf(method))
    assert(owner === undefined || owner.methodId === method.id, 'an identifier belongs to one method')
    const before = this.methodsOf(change, userId)
    const methods = [...before.filter(({ id }) => id !== method.id), method]
    if (owner === undefined) this.#events?.onChanged(change, userId, 'loginMethods')
    change.put(
      LOGIN_METHODS,
      idsKey(userId),
      methods.toSorted((a, b) => a.addedAtMs - b.addedAtMs),
    )
    if (owner !== undefined) return
    change.put(LOGIN_METHOD_OWNERS, textKey(identifierOf(method)), { userId, methodId: method.id })
    this.#changes.note(change, userId, 'here')
  }

  /** Removes the method, and that its user refused a sign-in by it. */
  removeMethod(change: Change, userId: UserId, method: LoginMethod): void {
    this.#events?.onChanged(change, userId, 'loginMethods')
    const methods = this.methodsOf(change, userId).filter(({ id }) => id !== method.id)
    if (methods.length > 0) change.put(LOGIN_METHODS, idsKey(userId), methods)
    else change.remove(LOGIN_METHODS, idsKey(userId))
    const key = textKey(identifierOf(method))
    change.remove(LOGIN_METHOD_OWNERS, key)
    change.remove(REFUSED_SIGN_INS, key)
    this.#changes.note(change, userId, 'here')
  }

  /** Nothing of the user remains here. */
  remove(change: Change, userId: UserId): void {
    this.#events?.onRemoving(change, userId)
    for (const method of this.methodsOf(change, userId)) this.removeMethod(change, userId, method)
    const before = this.read(change, userId)
    if (before === undefined) return
    this.#index(change, userId, before, undefined)
    change.remove(USERS, idsKey(userId))
    this.#changes.note(change, userId, 'erased')
  }

  /** Keeps what finds a user in step with their row. */
  #index(change: Change, userId: UserId, before: User | undefined, after: User | undefined): void {
    const [oldId, newId] = [before?.externalId, after?.externalId]
    if (oldId !== newId) {
      if (oldId !== undefined) change.remove(EXTERNAL_IDS, textKey(oldId))
      if (newId !== undefined) {
        assert(this.ownerOfExternalId(change, newId) === undefined, 'an external id belongs to one user')
        change.put(EXTERNAL_IDS, textKey(newId), { userId })
      }
    }
    const [old, now] = [contactIdentifiers(before?.contactData), contactIdentifiers(after?.contactData)]
    const keyOf = (identifier: string) => Buffer.concat([textKey(identifier), idsKey(userId)])
    for (const each of old) if (!now.includes(each)) change.remove(CONTACT_ADDRESSES, keyOf(each))
    for (const each of now) if (!old.includes(each)) change.put(CONTACT_ADDRESSES, keyOf(each), 0)
  }
}

/** A part of a list in the order of ids. */
export interface UserRange {
  readonly after?: UserId | undefined
  readonly limit: number
}
