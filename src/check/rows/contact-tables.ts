/** Contacts, blocks, requests, share tokens, and the lists in which they stand. */

import type { FriendRequest, Link } from '../../domain/contacts/friend-request.ts'
import { LINK_SHAPES } from '../../store/contacts/contact-store.ts'
import { listsOf } from '../../store/contacts/friend-request-table.ts'
import type { ShareToken } from '../../store/contacts/share-token-store.ts'
import { EXPIRY, endingKey } from '../../store/engine/expiries.ts'
import { idInKey, idsKey, userInKey } from '../../store/engine/keys.ts'
import { entryKey, entryOf, LIST, listInKey } from '../../store/tables/id-lists.ts'
import { bytes, count, flag, id, oneOf, record, sealed, text } from './form.ts'
import type { StoredRows } from './stored-rows.ts'
import { byBeginning, byIds, byOwner, type TableCheck, tableCheck } from './table-check.ts'

type Request = Omit<FriendRequest, 'message'>

const PAIR = [16]

export const CONTACT_TABLES: Readonly<Record<string, TableCheck>> = {
  contacts: tableCheck<Link>({
    shapes: LINK_SHAPES,
    key: PAIR,
    keyAs: byIds,
    form: record({ sinceMs: count }),
    *disagreements(key, { sinceMs }, rows) {
      const [userId, otherId] = [userInKey(key), idInKey(key, 1)]
      if (!rows.has('users', idsKey(userId))) yield 'its user is not in users'
      const isMutual = rows.holds<Link>(
        'contacts',
        idsKey(otherId, userId),
        other => other.sinceMs === sinceMs,
      )
      if (!isMutual) yield `user ${otherId} does not have user ${userId} as a contact since the same time`
      if (!isListed(rows, userId, LIST.contacts, sinceMs, otherId)) yield `the contact is not in id-lists`
    },
    remedy: 'have one of them remove the other and ask again, or restore a backup',
  }),
  blocks: tableCheck<number>({
    key: PAIR,
    keyAs: byIds,
    form: count,
    *disagreements(key, atMs, rows) {
      const userId = userInKey(key)
      if (!rows.has('users', idsKey(userId))) yield 'its user is not in users'
      if (!isListed(rows, userId, LIST.blocks, atMs, idInKey(key, 1))) yield 'the block is not in id-lists'
    },
    remedy: 'have the user unblock and block again, or restore a backup',
  }),
  'friend-requests': tableCheck<Request>({
    key: [8],
    keyAs: byIds,
    form: record(
      {
        requestId: id,
        senderId: id,
        receiverId: id,
        state: oneOf('pending', 'accepted', 'declined', 'cancelled', 'expired'),
        isDelivered: flag,
        isShown: flag,
        isByToken: flag,
        createdAtMs: count,
      },
      { tokenShownAtMs: count, message: sealed, closedAtMs: count },
    ),
    ending: { kind: EXPIRY.friendRequest },
    *disagreements(key, request, rows) {
      const { requestId, senderId, receiverId, createdAtMs, isDelivered, state } = request
      if (requestId !== idInKey(key, 0)) yield `it says that it is request ${requestId}`
      for (const [ownerId, list] of listsOf(request)) {
        if (!isListed(rows, ownerId, list, createdAtMs, requestId)) {
          yield `it is not in the list of user ${ownerId} in id-lists`
        }
      }
      // Others may be left standing when two people become contacts.
      if (state !== 'pending' || !isDelivered) return
      const stands = rows.holds<Direction>(
        'friend-request-directions',
        idsKey(senderId, receiverId),
        direction => direction.requestId !== undefined,
      )
      if (!stands) yield `no request stands from ${senderId} to ${receiverId} in friend-request-directions`
    },
    remedy: 'have it sent again, or restore a backup',
  }),
  'friend-request-directions': tableCheck<Direction>({
    key: PAIR,
    keyAs: byIds,
    form: record({}, { requestId: id, quietUntilMs: count }),
    *disagreements(key, { requestId }, rows) {
      if (requestId === undefined) return
      const isTheirs = rows.holds<Request>(
        'friend-requests',
        idsKey(requestId),
        ({ senderId, receiverId, closedAtMs }) =>
          senderId === userInKey(key) && receiverId === idInKey(key, 1) && closedAtMs === undefined,
      )
      if (!isTheirs) yield `friend-requests has no open request ${requestId} between them`
    },
    remedy: 'have the request sent again, or restore a backup',
  }),
  'share-tokens': tableCheck<ShareToken>({
    key: PAIR,
    keyAs: byIds,
    form: record(
      {
        userId: id,
        tokenId: id,
        lastCharacters: text,
        hash: bytes(32),
        createdAtMs: count,
        expiresAtMs: count,
        usesMax: count,
        uses: count,
      },
      { label: text, overAtMs: count },
    ),
    ending: { kind: EXPIRY.shareToken },
    *disagreements(key, { userId, tokenId, hash, createdAtMs, expiresAtMs, overAtMs }, rows) {
      if (!idsKey(userId, tokenId).every((byte, at) => byte === key[at]))
        yield 'it says that it is another token'
      if (!rows.has('users', idsKey(userId))) yield 'its user is not in users'
      const isFound = rows.holds<Uint8Array>('share-tokens-by-hash', hash, found => key.equals(found))
      if (!isFound) yield 'share-tokens-by-hash does not lead to it'
      // Its sweep takes it from the list and its ending from there.
      const isLive =
        overAtMs === undefined && rows.has('expiries', endingKey(EXPIRY.shareToken, expiresAtMs, key))
      if (isLive && !isListed(rows, userId, LIST.shareTokens, createdAtMs, tokenId))
        yield 'it is not in id-lists'
    },
    remedy: 'have its user make another link, or restore a backup',
  }),
  'share-tokens-by-hash': tableCheck<Uint8Array>({
    key: [32],
    keyAs: byBeginning,
    form: bytes(16),
    *disagreements(key, token, rows) {
      if (!rows.holds<ShareToken>('share-tokens', token, ({ hash }) => key.equals(hash))) {
        yield `share-tokens has no token ${byIds(Buffer.from(token))} with this hash`
      }
    },
    remedy: 'its link leads nowhere: have its user make another one',
  }),
  'id-lists': tableCheck<0>({
    key: [23],
    keyAs: byOwner,
    form: oneOf(0),
    *disagreements(key, _, rows) {
      const [ownerId, list, { atMs, id }] = [userInKey(key), listInKey(key), entryOf(key)]
      if (!isThere(rows, ownerId, list, atMs, id)) {
        yield `entry ${id} of list ${list} stands for nothing: ${LISTED_IN.get(list) ?? 'no table'} does not have it so`
      }
    },
    remedy: 'it counts against a limit of the user, and may be shown: restore a backup',
  }),
}

interface Direction {
  readonly requestId?: bigint
}

function isListed(
  rows: StoredRows,
  ownerId: bigint,
  list: (typeof LIST)[keyof typeof LIST],
  atMs: number,
  id: bigint,
): boolean {
  return rows.has('id-lists', entryKey(ownerId, list, { atMs, id }))
}

/** Whether what an entry of a list stands for is there. */
function isThere(rows: StoredRows, ownerId: bigint, list: number, atMs: number, id: bigint): boolean {
  const pair = idsKey(ownerId, id)
  switch (list) {
    case LIST.contacts:
      return rows.holds<Link>('contacts', pair, ({ sinceMs }) => sinceMs === atMs)
    case LIST.blocks:
      return rows.holds<number>('blocks', pair, sinceMs => sinceMs === atMs)
    case LIST.shareTokens:
      return rows.holds<ShareToken>(
        'share-tokens',
        pair,
        ({ createdAtMs, overAtMs }) => createdAtMs === atMs && overAtMs === undefined,
      )
    default:
      return rows.holds<Request>(
        'friend-requests',
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
