/** Users and their sign-in methods; one identifier belongs to one method of one user. */

import { identifierOf, type LoginMethod, type User } from '../../domain/accounts/account.ts'
import type { MethodId, UserId } from '../../domain/ids.ts'
import { assert } from '../../errors.ts'
import { PEOPLE_KEPT_MAX } from '../../limits.ts'
import type { Database, Table } from '../engine/database.ts'
import { idsKey, textKey, userInKey } from '../engine/keys.ts'
import { WatchedCache } from '../engine/watched-cache.ts'

/** Whose an identifier is. */
export interface MethodOwner {
  readonly userId: UserId
  readonly methodId: MethodId
}

export class AccountStore {
  readonly #users: Table<User>
  /** All of a user's in one record: they are few, and read together. */
  readonly #methods: Table<readonly LoginMethod[]>
  readonly #owners: Table<MethodOwner>
  readonly #displayNames: WatchedCache<UserId, string>

  constructor(database: Database) {
    this.#users = database.table('users', USER_SHAPES)
    this.#methods = database.table('login-methods', METHOD_SHAPES)
    this.#owners = database.table('login-method-owners')
    this.#displayNames = new WatchedCache(database, [{ name: 'users' }], userInKey, PEOPLE_KEPT_MAX)
  }

  read(userId: UserId): User | undefined {
    return this.#users.get(idsKey(userId))
  }

  /** As others see it; empty when there is no such user. */
  displayNameOf(userId: UserId): string {
    return this.#displayNames.of(userId, () => this.read(userId)?.displayName ?? '')
  }

  /** The user's methods, oldest first. */
  methodsOf(userId: UserId): readonly LoginMethod[] {
    return this.#methods.get(idsKey(userId)) ?? []
  }

  /** By `addressIdentifier` or `socialIdentifier`. */
  ownerOf(identifier: string): MethodOwner | undefined {
    return this.#owners.get(textKey(identifier))
  }

  method({ userId, methodId }: MethodOwner): LoginMethod | undefined {
    return this.methodsOf(userId).find(({ id }) => id === methodId)
  }

  /** In a transaction. */
  put(userId: UserId, user: User): void {
    this.#users.put(idsKey(userId), user)
  }

  /** In a transaction: a new method, or the new state of one. Its identifier must be nobody else's. */
  putMethod(userId: UserId, method: LoginMethod): void {
    const owner = this.ownerOf(identifierOf(method))
    assert(owner === undefined || owner.methodId === method.id, 'an identifier belongs to one method')
    const methods = [...this.methodsOf(userId).filter(({ id }) => id !== method.id), method]
    this.#methods.put(
      idsKey(userId),
      methods.toSorted((a, b) => a.addedAtMs - b.addedAtMs),
    )
    if (owner === undefined) this.#owners.put(textKey(identifierOf(method)), { userId, methodId: method.id })
  }

  /** In a transaction. */
  removeMethod(userId: UserId, method: LoginMethod): void {
    const methods = this.methodsOf(userId).filter(({ id }) => id !== method.id)
    if (methods.length > 0) this.#methods.put(idsKey(userId), methods)
    else this.#methods.remove(idsKey(userId))
    this.#owners.remove(textKey(identifierOf(method)))
  }

  /** In a transaction: nothing of the user remains here. */
  remove(userId: UserId): void {
    for (const method of this.methodsOf(userId)) this.removeMethod(userId, method)
    this.#users.remove(idsKey(userId))
  }
}

/** Of the table `users`. */
export const USER_SHAPES = [
  ['displayName', 'createdAtMs', 'settings', 'primaryMethodId', 'acceptLanguage'],
  ['discoverableByEmail', 'discoverableByPhone', 'callsFromContactsOnly'],
]
/** Of the table `login-methods`. */
export const METHOD_SHAPES = [['kind', 'key', 'shown', 'id', 'addedAtMs', 'lastUsedAtMs']]
