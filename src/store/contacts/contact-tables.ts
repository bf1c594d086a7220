/** Tables of contacts, blocks, requests, and share tokens. The lists in which they stand: `id-lists.ts`. */

import type { RequestId, TokenId, UserId } from '../../domain/ids.ts'
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
import { OF_A_USER, rowTable } from '../engine/table.ts'
import { entryKey, LIST, type List } from '../tables/id-lists.ts'

const LINK = object({ sinceMs: count })

export const CONTACTS = rowTable({
  name: 'contacts',
  subject: 'contacts',
  holds: 'since when',
  key: { user: ID, contact: ID },
  row: LINK,
  shapes: [LINK.shape()],
  relations: [
    OF_A_USER,
    {
      in: 'contacts',
      under: key => idsKey(idInKey(key, 1), idInKey(key, 0)),
      where: (other: RowOf<typeof LINK>, _, { sinceMs }) => other.sinceMs === sinceMs,
      otherwise: key =>
        `user ${idInKey(key, 1)} does not have user ${idInKey(key, 0)} as a contact since the same time`,
    },
    {
      in: 'id-lists',
      under: (key, { sinceMs }) =>
        entryKey(userInKey(key), LIST.contacts, { atMs: sinceMs, id: idInKey(key, 1) }),
      otherwise: 'the contact is not in id-lists',
    },
  ],
  remedy: 'have one of them remove the other and ask again, or restore a backup',
})

export const BLOCKS = rowTable({
  name: 'blocks',
  subject: 'contacts',
  holds: 'since when',
  key: { blocker: ID, blocked: ID },
  row: count,
  relations: [
    OF_A_USER,
    {
      in: 'id-lists',
      under: (key, atMs) => entryKey(userInKey(key), LIST.blocks, { atMs, id: idInKey(key, 1) }),
      otherwise: 'the block is not in id-lists',
    },
  ],
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

export const FRIEND_REQUESTS = rowTable({
  name: 'friend-requests',
  subject: 'contacts',
  holds: 'from whom to whom, its state, its message sealed',
  key: { request: ID },
  row: REQUEST,
  ending: { kind: EXPIRY.friendRequest },
  relations: [
    {
      in: 'friend-request-directions',
      // An undelivered one may be left standing when two people become contacts.
      under: (_, { state, isDelivered, senderId, receiverId }) =>
        state === 'pending' && isDelivered ? idsKey(senderId, receiverId) : undefined,
      where: ({ requestId }: RowOf<typeof DIRECTION>) => requestId !== undefined,
      otherwise: (_, { senderId, receiverId }) =>
        `no request stands from ${senderId} to ${receiverId} in friend-request-directions`,
    },
  ],
  *disagreements(key, request, rows) {
    const { requestId, createdAtMs } = request
    if (requestId !== idInKey(key, 0)) yield `it says that it is request ${requestId}`
    for (const [ownerId, list] of listsOf(request)) {
      const isListed = rows.has('id-lists', entryKey(ownerId, list, { atMs: createdAtMs, id: requestId }))
      if (!isListed) yield `it is not in the list of user ${ownerId} in id-lists`
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

export const DIRECTIONS = rowTable({
  name: 'friend-request-directions',
  subject: 'contacts',
  holds: 'the request that stands, and until when none arrives',
  key: { sender: ID, receiver: ID },
  row: DIRECTION,
  relations: [
    {
      in: 'friend-requests',
      under: (_, { requestId }) => (requestId === undefined ? undefined : idsKey(requestId)),
      where: ({ senderId, receiverId, closedAtMs }: StoredRequest, key) =>
        senderId === idInKey(key, 0) && receiverId === idInKey(key, 1) && closedAtMs === undefined,
      otherwise: (_, { requestId }) => `friend-requests has no open request ${requestId} between them`,
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

export const SHARE_TOKENS = rowTable({
  name: 'share-tokens',
  subject: 'contacts',
  holds: 'label, hash, times, uses',
  key: { user: ID, token: ID },
  row: SHARE_TOKEN,
  ending: { kind: EXPIRY.shareToken },
  relations: [
    OF_A_USER,
    {
      in: 'share-tokens-by-hash',
      under: (_, { hash }) => hash,
      where: (found: Uint8Array, key) => key.equals(found),
      otherwise: 'share-tokens-by-hash does not lead to it',
    },
  ],
  *disagreements(key, { userId, tokenId, createdAtMs, expiresAtMs, overAtMs }, rows) {
    if (!key.equals(idsKey(userId, tokenId))) yield 'it says that it is another token'
    // Its sweep takes it from the list and its ending from there.
    const isLive =
      overAtMs === undefined && rows.has('expiries', endingKey(EXPIRY.shareToken, expiresAtMs, key))
    const entry = entryKey(userId, LIST.shareTokens, { atMs: createdAtMs, id: tokenId })
    if (isLive && !rows.has('id-lists', entry)) yield 'it is not in id-lists'
  },
  remedy: 'have its user make another link, or restore a backup',
})

export const TOKENS_BY_HASH = rowTable({
  name: 'share-tokens-by-hash',
  subject: 'contacts',
  holds: 'the key of the token that has this hash',
  key: { token: HASH },
  row: bytes(2 * ID.bytes),
  relations: [
    {
      in: 'share-tokens',
      under: (_, token) => token,
      where: ({ hash }: ShareToken, key) => key.equals(hash),
      otherwise: (_, token) =>
        `share-tokens has no token ${idInKey(token, 0)}/${idInKey(token, 1)} with this hash`,
    },
  ],
  remedy: 'its link leads nowhere: have its user make another one',
})

export const CONTACT_TABLES = [CONTACTS, BLOCKS, FRIEND_REQUESTS, DIRECTIONS, SHARE_TOKENS, TOKENS_BY_HASH]

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
