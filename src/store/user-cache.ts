/**
 * Values made of what the store has of a user, kept until any of it changes. A change is known by its row, so whoever
 * writes one need not think of what is kept here.
 */

import type { UserId } from '../domain/ids.ts'
import { BoundedCache } from './bounded-cache.ts'
import type { Database } from './database.ts'
import { idInKey } from './keys.ts'

export class UserCache<Value> {
  readonly #values: BoundedCache<UserId, Value>

  /** `tables` are what values are made of: tables whose keys begin with a user's id. */
  constructor(database: Pick<Database, 'watch'>, tables: readonly string[], usersMax: number) {
    this.#values = new BoundedCache(usersMax)
    const forget = (key: Uint8Array) => this.#values.delete(idInKey(key, 0) as UserId)
    for (const table of tables) database.watch(table, forget)
  }

  get(userId: UserId): Value | undefined {
    return this.#values.get(userId)
  }

  /**
   * Not in a transaction, and in the same turn as `value` was read: a change that is durable after the reading then
   * comes after this call.
   */
  set(userId: UserId, value: Value): void {
    this.#values.set(userId, value)
  }
}
