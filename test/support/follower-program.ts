/**
 * A process that follows the store of its parent in the folder that it is given. After each change that it is told of, and
 * before, it says what its view and its two caches have in every row. It ends with its parent.
 */

import { FollowedStore } from '../../src/store/engine/followed-store.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { RowCache } from '../../src/store/engine/row-cache.ts'
import type { FollowedCommit } from '../../src/store/engine/store.ts'
import { WatchedCache } from '../../src/store/engine/watched-cache.ts'
import { FOLLOWED_ROWS, LOGGED_ROWS, ROW_KEYS } from './followed-rows.ts'

/** What the parent says: the last change that is durable, and then each change; or to be in the middle of a view. */
export type ToFollower = { readonly lastChange: number } | FollowedCommit | 'view'

export interface Seen {
  /** The changes that were applied together: the first and the last. */
  readonly first: number
  readonly number: number
  /** Whether the view had the change's row in the table that nobody watches. */
  readonly isLogged: boolean
  /** For each key, by view and caches: the number of the change that wrote the row, 0 where there is none. */
  readonly rows: readonly (readonly [number, number, number])[]
  /** Numbers that were waited for and are applied. */
  readonly applied: readonly number[]
}

const database = LmdbStore.openReadOnly(process.argv[2]!)

function follow(lastChange: number): (change: FollowedCommit) => void {
  const store = new FollowedStore(database, lastChange)
  const rowCache = new RowCache(store, FOLLOWED_ROWS, row => row?.number ?? 0, ROW_KEYS.length)
  const keyText = (key: Uint8Array) => Buffer.from(key).toString()
  const watchedCache: WatchedCache<string, number> = new WatchedCache(
    store,
    [FOLLOWED_ROWS],
    keyText,
    ROW_KEYS.length,
  )
  let applied: number[] = []
  const look = () =>
    store.view(view =>
      ROW_KEYS.map((key): [number, number, number] => {
        const read = () => view.get(FOLLOWED_ROWS, key)?.number ?? 0
        return [read(), rowCache.of(view, key), watchedCache.of(keyText(key), read)]
      }),
    )
  const wait = async (number: number) => {
    await store.applied(number)
    applied.push(number)
  }
  return change => {
    void wait(change.number + 3)
    void wait(change.number)
    look()
    store.apply(change)
    const { first, number } = change
    const isLogged = store.view(view => view.has(LOGGED_ROWS, Buffer.from(String(number))))
    process.send!({ first, number, isLogged, rows: look(), applied } satisfies Seen)
    applied = []
  }
}

let onChange: ((change: FollowedCommit) => void) | undefined
process.on('message', (message: ToFollower) => {
  if (message === 'view') {
    database.snapshot()
    process.send!('viewing')
  } else if ('lastChange' in message) onChange = follow(message.lastChange)
  else onChange?.(message)
})
process.once('disconnect', () => process.exit(0))
process.send!('open')
