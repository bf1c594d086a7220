/** Wire shapes of contacts and circles, as the operator's backend makes them. */

import Type from 'typebox'
import { page } from './page.ts'
import { Time } from './time.ts'
import { Uint64Text } from './uint64.ts'

/** In a body or query an external id stands as it is, in no further encoding. */
export const UserRefText = Type.String({
  maxLength: 260,
  description: '`id:<userId>`, or `ext:` and your own id for the user',
})

const PAIR = { a: UserRefText, b: UserRefText }
export const ContactPair = Type.Object(PAIR)

export const LinkedContacts = Type.Object({
  userIds: Type.Array(Uint64Text, { minItems: 2, maxItems: 2, description: 'Of `a` and `b`' }),
  since: Time,
})

export const CircleMemberPage = page(
  Type.Object({
    userId: Uint64Text,
    externalId: Type.Optional(Type.String()),
    displayName: Type.String(),
    since: Time,
  }),
)
