/**
 * Which users have changed, in order, for a backend that keeps its own list of them: the latest change of each, by rising
 * numbers. An erased user stays in the list for a while, by the id alone.
 */

import type { UserId } from '../../domain/ids.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { idsKey, indexKey } from '../engine/keys.ts'
import type { Change, View } from '../engine/store.ts'
import { ERASED_TOLD_MS, USER_CHANGES, USER_CHANGES_BY_USER, type UserChange } from './user-tables.ts'

export interface NumberedChange {
  readonly number: number
  readonly userId: UserId
  readonly atMs: number
  readonly isErased: boolean
}

export class UserChanges {
  readonly #expiries: Expiries

  constructor(expiries: Expiries) {
    this.#expiries = expiries
    expiries.define(EXPIRY.erasedUser, (change, key) => this.#forget(change, key))
  }

  /** The user was made or changed, or is erased: at the end of the change there is none. Once for each change. */
  note(change: Change, userId: UserId, state: 'here' | 'erased'): void {
    const noted = change.local(this, () => {
      const users = new Map<UserId, 'here' | 'erased'>()
      change.atEnd(() => {
        for (const [each, state] of users) this.#write(change, each, state)
      })
      return users
    })
    noted.set(userId, state)
  }

  /** Changes behind `since`, oldest first, at most `limit`. */
  list(view: View, since: number, limit: number): NumberedChange[] {
    const changes: NumberedChange[] = []
    for (const { key, value } of view.range(USER_CHANGES, { start: indexKey(since + 1), limit })) {
      const { userId, atMs, isErased = false } = value
      if (userId !== undefined) changes.push({ number: numberOf(key), userId, atMs, isErased })
    }
    return changes
  }

  /** The number of the last change; 0 before the first. */
  last(view: View): number {
    const [key] = view.keys(USER_CHANGES, { reverse: true, limit: 1 })
    return key === undefined ? 0 : numberOf(key)
  }

  #write(change: Change, userId: UserId, state: 'here' | 'erased'): void {
    const last = this.last(change)
    const before = change.get(USER_CHANGES_BY_USER, idsKey(userId))
    if (before !== undefined) change.remove(USER_CHANGES, indexKey(before))
    if (last > 0 && change.get(USER_CHANGES, indexKey(last))?.userId === undefined)
      change.remove(USER_CHANGES, indexKey(last))
    const row: UserChange = { userId, atMs: change.nowMs }
    const key = indexKey(last + 1)
    change.put(USER_CHANGES, key, state === 'erased' ? { ...row, isErased: true } : row)
    change.put(USER_CHANGES_BY_USER, idsKey(userId), last + 1)
    if (state === 'erased') this.#expiries.add(change, EXPIRY.erasedUser, change.nowMs + ERASED_TOLD_MS, key)
  }

  #forget(change: Change, key: Uint8Array): undefined {
    const row = change.get(USER_CHANGES, key)
    if (row?.userId === undefined || !row.isErased) return
    change.remove(USER_CHANGES_BY_USER, idsKey(row.userId))
    // No number is given twice: a backend that has seen this one would miss the next.
    if (numberOf(key) === this.last(change)) change.put(USER_CHANGES, key, { atMs: row.atMs })
    else change.remove(USER_CHANGES, key)
  }
}

function numberOf(key: Uint8Array): number {
  return Buffer.from(key.buffer, key.byteOffset, key.length).readUIntBE(0, 6)
}
