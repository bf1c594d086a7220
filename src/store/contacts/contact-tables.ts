/** Tables of contacts, blocks, requests, and share tokens. The lists in which they stand: `id-lists.ts`. */

import type { RequestId, TokenId, UserId } from '../../domain/ids.ts'
import { OF_A_USER } from '../accounts/account-tables.ts'
import { EXPIRY, endingKey } from '../engine/expiries.ts'
import { HASH, ID } from '../engine/key-parts.ts'
import { idInKey, idsKey, userInKey } from '../engine/keys.ts'
import {
  bytes,
  count,
  flag,
  id,
  object,
  oneOf,
  optional,
  type RowOf,
  sealed,
  text,
} from '../engine/row-form.ts'
import { rowTable } from '../engine/table.ts'
import { entryKey, LIST, type List } from '../tables/id-lists.ts'

const LINK = object({
  sinceMs: count,
  /** The user's own name for the contact, who never sees it. */
  alias: optional(text),
})

/** The entry in a list for the other user in a key. */
function entryIn(list: List, key: Buffer, atMs: number): Uint8Array {
  return entryKey(userInKey(key), list, { atMs, id: idInKey(key, 1) })
}

export const CONTACTS = rowTable('contacts', { user: ID, contact: ID }, LINK, {
  holds: 'since when, and the user’s own name for the contact',
  shapes: [LINK.shape(), LINK.shape('alias')],
  relations: [
    OF_A_USER,
    {
      in: 'contacts',
      under: key => idsKey(idInKey(key, 1), idInKey(key, 0)),
      where: (other: RowOf<typeof LINK>, _, { sinceMs }) => other.sinceMs === sinceMs,
      what: () => 'the same the other way, since the same time',
    },
    { in: 'id-lists', under: (key, { sinceMs }) => entryIn(LIST.contacts, key, sinceMs) },
  ],
  remedy: 'have one of them remove the other and ask again, or restore a backup',
})

export const BLOCKS = rowTable('blocks', { blocker: ID, blocked: ID }, count, {
  holds: 'since when',
  relations: [OF_A_USER, { in: 'id-lists', under: (key, atMs) => entryIn(LIST.blocks, key, atMs) }],
  remedy: 'have the user unblock and block again, or restore a backup',
})

export type StoredRequest = RowOf<typeof REQUEST>
const REQUEST = object({
  requestId: id<RequestId>(),
  senderId: id<UserId>(),
  receiverId: id<UserId>(),
  state: oneOf('pending', 'accepted', 'declined', 'cancelled', 'expired'),
  isDelivered: flag,
  isShown: flag,
  isByToken: flag,
  createdAtMs: count,
  tokenShownAtMs: optional(count),
  message: optional(sealed),
  closedAtMs: optional(count),
})

export const FRIEND_REQUESTS = rowTable('friend-requests', { request: ID }, REQUEST, {
  holds: 'from whom to whom, its state, its message sealed',
  ending: { kind: EXPIRY.friendRequest },
  ownKey: (_, { requestId }) => idsKey(requestId),
  relations: [
    {
      in: 'friend-request-directions',
      // One that was not delivered may be left standing when two people become contacts.
      under: (_, { state, isDelivered, senderId, receiverId }) =>
        state === 'pending' && isDelivered ? idsKey(senderId, receiverId) : undefined,
      where: ({ requestId }: RowOf<typeof DIRECTION>) => requestId !== undefined,
      what: (_, { senderId, receiverId }) => `a request that stands from ${senderId} to ${receiverId}`,
    },
  ],
  *disagreements(_, request, rows) {
    const entry = { atMs: request.createdAtMs, id: request.requestId }
    for (const [ownerId, list] of listsOf(request)) {
      if (!rows.has('id-lists', entryKey(ownerId, list, entry)))
        yield `it is not in the list of user ${ownerId} in id-lists`
    }
  },
  remedy: 'have it sent again, or restore a backup',
})

const DIRECTION = object({
  /** The newest request that is open to its sender. */
  requestId: optional(id<RequestId>()),
  /** Until then requests do not reach the receiver. */
  quietUntilMs: optional(count),
})

export const DIRECTIONS = rowTable('friend-request-directions', { sender: ID, receiver: ID }, DIRECTION, {
  holds: 'the request that stands, and until when none arrives',
  relations: [
    {
      in: 'friend-requests',
      under: (_, { requestId }) => (requestId === undefined ? undefined : idsKey(requestId)),
      where: ({ senderId, receiverId, closedAtMs }: StoredRequest, key) =>
        key.equals(idsKey(senderId, receiverId)) && closedAtMs === undefined,
      what: (_, { requestId }) => `an open request ${requestId} between them`,
    },
  ],
  remedy: 'have the request sent again, or restore a backup',
})

export type ShareToken = RowOf<typeof SHARE_TOKEN>
const SHARE_TOKEN = object({
  userId: id<UserId>(),
  tokenId: id<TokenId>(),
  label: optional(text),
  /** The last four characters: enough for its owner to know it by. */
  lastCharacters: text,
  /** SHA-256 of the token's bytes. */
  hash: bytes(HASH.bytes),
  createdAtMs: count,
  expiresAtMs: count,
  usesMax: count,
  uses: count,
  /** When it was revoked or used for the last time. */
  overAtMs: optional(count),
})

export const SHARE_TOKENS = rowTable('share-tokens', { user: ID, token: ID }, SHARE_TOKEN, {
  holds: 'label, hash, times, uses',
  ending: { kind: EXPIRY.shareToken },
  ownKey: (_, { userId, tokenId }) => idsKey(userId, tokenId),
  relations: [
    OF_A_USER,
    {
      in: 'share-tokens-by-hash',
      under: (_, { hash }) => hash,
      where: (found: Uint8Array, key) => key.equals(found),
    },
  ],
  *disagreements(key, { createdAtMs, expiresAtMs, overAtMs }, rows) {
    // Its sweep takes it from the list and its ending from there.
    const isLive =
      overAtMs === undefined && rows.has('expiries', endingKey(EXPIRY.shareToken, expiresAtMs, key))
    if (isLive && !rows.has('id-lists', entryIn(LIST.shareTokens, key, createdAtMs)))
      yield 'it is not in id-lists'
  },
  remedy: 'have its user make another link, or restore a backup',
})

export const TOKENS_BY_HASH = rowTable('share-tokens-by-hash', { token: HASH }, bytes(2 * ID.bytes), {
  holds: 'the key of the token that has this hash',
  relations: [
    {
      in: 'share-tokens',
      under: (_, token) => token,
      where: ({ hash }: ShareToken, key) => key.equals(hash),
      what: (_, token) => `token ${idInKey(token, 0)}/${idInKey(token, 1)} with this hash`,
    },
  ],
  remedy: 'its link leads nowhere: have its user make another one',
})

/** Whose lists a request is in. Both keep it to its end, so that what is left of a user is found. */
export function listsOf(request: Omit<StoredRequest, 'message'>): readonly (readonly [UserId, List])[] {
  const { senderId, receiverId, state, isShown, isDelivered, closedAtMs } = request
  const senders = closedAtMs !== undefined ? LIST.closedRequests : isShown ? LIST.outgoing : LIST.unshown
  const receivers = state === 'pending' && isDelivered ? LIST.incoming : LIST.closedRequests
  return [
    [senderId, senders],
    [receiverId, receivers],
  ]
}
