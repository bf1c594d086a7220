/** Tables by which the server API finds users, and tells which of them have changed. */

import { addressIdentifier, type ContactData, type User } from '../../domain/accounts/account.ts'
import { parseEmail } from '../../domain/accounts/email.ts'
import type { UserId } from '../../domain/ids.ts'
import { EXPIRY } from '../engine/expiries.ts'
import { HASH, ID, NUMBER } from '../engine/key-parts.ts'
import { idInKey, idsKey, indexKey, textKey } from '../engine/keys.ts'
import { count, id, object, oneOf, optional, type RowOf } from '../engine/row-form.ts'
import { rowTable } from '../engine/table.ts'

/** The user of each external id; by its hash, since a key has a fixed length. */
export const EXTERNAL_IDS = rowTable(
  'external-ids',
  { 'external id': HASH },
  object({ userId: id<UserId>() }),
  {
    holds: 'the user to whom the operator’s backend gave this id',
    relations: [
      {
        in: 'users',
        under: (_, { userId }) => idsKey(userId),
        where: ({ externalId }: User, key) => externalId !== undefined && textKey(externalId).equals(key),
        what: (_, { userId }) => `its user ${userId} with this external id`,
      },
    ],
    remedy: 'the backend does not find the user: restore a backup',
  },
)

/** Several users may have one address, since it is unproven. */
export const CONTACT_ADDRESSES = rowTable('contact-addresses', { address: HASH, user: ID }, oneOf(0), {
  holds: 'nothing: its key pairs an address with a user, as the backend says',
  relations: [
    {
      in: 'users',
      under: key => key.subarray(HASH.bytes),
      where: ({ contactData }: User, key) =>
        contactIdentifiers(contactData).some(each => textKey(each).equals(key.subarray(0, HASH.bytes))),
      what: () => 'the user with this address in the contact data',
    },
  ],
  remedy: 'the backend does not find the user by this address: restore a backup',
})

/** The latest change of a user. Without a user, the place alone, so that numbers go on behind it. */
export type UserChange = RowOf<typeof USER_CHANGE>
const USER_CHANGE = object({
  userId: optional(id<UserId>()),
  atMs: count,
  isErased: optional(oneOf(true)),
})

export const USER_CHANGES = rowTable('user-changes', { number: NUMBER }, USER_CHANGE, {
  holds: 'that a user was changed, for the last time so far, or erased',
  shapes: [USER_CHANGE.shape('userId')],
  ending: {
    kind: EXPIRY.erasedUser,
    atMs: ({ userId, isErased, atMs }) =>
      userId !== undefined && isErased ? atMs + ERASED_TOLD_MS : undefined,
  },
  relations: [
    {
      in: 'user-changes-by-user',
      under: (_, { userId }) => (userId === undefined ? undefined : idsKey(userId)),
      where: (number: number, key) => indexKey(number).every((octet, at) => octet === key[at]),
      what: (_, { userId }) => `user ${userId} at this place`,
    },
    {
      in: 'users',
      under: (_, { userId, isErased }) => (userId === undefined || isErased ? undefined : idsKey(userId)),
      what: (_, { userId }) => `its user ${userId}`,
    },
  ],
  remedy: 'a backend that follows changes misses one: restore a backup',
})

export const USER_CHANGES_BY_USER = rowTable('user-changes-by-user', { user: ID }, count, {
  holds: 'the place of a user among the changes',
  relations: [
    {
      in: 'user-changes',
      under: (_, number) => indexKey(number),
      where: ({ userId }: UserChange, key) => userId === idInKey(key, 0),
      what: () => 'the user at this place',
    },
  ],
  remedy: 'a backend that follows changes misses one: restore a backup',
})

/** The identifiers of what the backend says of a user. */
export function contactIdentifiers({ email, phone }: ContactData = {}): string[] {
  return [
    ...(email === undefined ? [] : [addressIdentifier('email', parseEmail(email)?.key ?? email)]),
    ...(phone === undefined ? [] : [addressIdentifier('phone', phone)]),
  ]
}

/** How long an erased user stays in the list of changes. */
export const ERASED_TOLD_MS = 30 * 86_400_000
