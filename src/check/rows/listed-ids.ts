/** Whether the row that an entry of `id-lists` stands for exists. */

import { listsOf, type ShareToken, type StoredRequest } from '../../store/contacts/contact-tables.ts'
import { idsKey, userInKey } from '../../store/engine/keys.ts'
import { entryOf, LIST, listInKey } from '../../store/tables/id-lists.ts'
import type { StoredRows } from './stored-rows.ts'

export function* emptyEntry(key: Buffer, _: 0, rows: StoredRows): Iterable<string> {
  const [list, { id }] = [listInKey(key), entryOf(key)]
  const table = LISTED_IN.get(list)
  if (table !== undefined && isThere(table, key, rows)) return
  yield `entry ${id} of list ${list} stands for nothing: ${table ?? 'no table'} does not have it so`
}

function isThere(table: string, key: Buffer, rows: StoredRows): boolean {
  const [ownerId, list, { atMs, id }] = [userInKey(key), listInKey(key), entryOf(key)]
  const pair = idsKey(ownerId, id)
  switch (list) {
    case LIST.contacts:
      return rows.holds<{ readonly sinceMs: number }>(table, pair, ({ sinceMs }) => sinceMs === atMs)
    case LIST.blocks:
      return rows.holds<number>(table, pair, sinceMs => sinceMs === atMs)
    case LIST.shareTokens:
      return rows.holds<ShareToken>(
        table,
        pair,
        ({ createdAtMs, overAtMs }) => createdAtMs === atMs && overAtMs === undefined,
      )
    default:
      return rows.holds<StoredRequest>(
        table,
        idsKey(id),
        request =>
          request.createdAtMs === atMs &&
          listsOf(request).some(([itsOwner, itsList]) => itsOwner === ownerId && itsList === list),
      )
  }
}

const LISTED_IN = new Map<number, string>([
  [LIST.contacts, 'contacts'],
  [LIST.blocks, 'blocks'],
  [LIST.shareTokens, 'share-tokens'],
  ...[LIST.incoming, LIST.outgoing, LIST.unshown, LIST.closedRequests].map(
    list => [list, 'friend-requests'] as const,
  ),
])
