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
  /** How many rows of a user are written and not durable yet; what is read of them now may never be so. */
  readonly #unsettled = new Map<UserId, number>()

  /** `tables` are what values are made of: tables whose keys begin with a user's id. */
  constructor(database: Pick<Database, 'watch'>, tables: readonly string[], usersMax: number) {
    this.#values = new BoundedCache(usersMax)
    const onWriting = (key: Uint8Array) => this.#count(idInKey(key, 0) as UserId, 1)
    const onWritten = (key: Uint8Array) => this.#count(idInKey(key, 0) as UserId, -1)
    for (const table of tables) database.watch(table, onWritten, onWriting)
  }

  /** Also in a transaction. */
  get(userId: UserId): Value | undefined {
    return this.#values.get(userId)
  }

  /**
   * In the same turn as `value` was read: a change that is durable after the reading then comes after this call. While
   * one is under way, nothing is kept.
   */
  set(userId: UserId, value: Value): void {
    if (!this.#unsettled.has(userId)) this.#values.set(userId, value)
  }

  #count(userId: UserId, more: 1 | -1): void {
    const count = (this.#unsettled.get(userId) ?? 0) + more
    if (count === 0) this.#unsettled.delete(userId)
    else this.#unsettled.set(userId, count)
    this.#values.delete(userId)
  }
}
