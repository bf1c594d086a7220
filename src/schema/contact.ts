/** Wire shapes of contacts, friend requests, blocks and share tokens (contract 1.9, 3). */

import Type from 'typebox'
import { DEVICE_LIST_MEMBERS, KeyAlgorithm, PublicKeyHash } from './device.ts'
import { oneOf } from './one-of.ts'
import { PAGE_MEMBERS, page } from './page.ts'
import { Time } from './time.ts'
import { Uint64, Uint64Text } from './uint64.ts'

/** A user as seen by another user. */
const PERSON_MEMBERS = { userId: Uint64Text, displayName: Type.String() }
export const Person = Type.Object(PERSON_MEMBERS)

export const Alias = Type.String({
  description: 'Your own name for them, to be shown in place of `displayName`',
})

/** A contact by the names that the user has for them. */
const CONTACT_MEMBERS = { ...PERSON_MEMBERS, alias: Type.Optional(Alias) }

/** A device of a user whose keys may be read. */
export const PeerDevice = Type.Object({
  deviceId: Uint64Text,
  publicKeyHash: PublicKeyHash,
  keyAlgorithm: KeyAlgorithm,
})

/** The other's devices, where they are to be seen. */
const KEY_MEMBERS = {
  publicKeyHashs: Type.Array(PublicKeyHash, { description: "One for each of the other's devices" }),
  devices: Type.Array(PeerDevice),
  ...DEVICE_LIST_MEMBERS,
}

const MESSAGE_MEMBER = {
  message: Type.Optional(
    Type.String({
      maxLength: 4096,
      description: 'At most 200 characters as a reader counts them, in at most 1,600 bytes',
    }),
  ),
}

const ShareTokenText = Type.String({ maxLength: 128, description: '`c_` and 22 base64url characters' })

export const RequestByIdRequest = Type.Object({ targetUserId: Uint64, ...MESSAGE_MEMBER })

export const RequestByTokenRequest = Type.Object({ token: ShareTokenText, ...MESSAGE_MEMBER })

export const RequestBySearchRequest = Type.Object(
  {
    email: Type.Optional(Type.String({ maxLength: 512 })),
    phone: Type.Optional(Type.String({ maxLength: 64 })),
    country: Type.Optional(
      Type.String({ maxLength: 2, description: 'ISO 3166 letters, for a phone number without calling code' }),
    ),
    publicKeyHash: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z0-9+/]{85}[AQgw]==$',
        description: 'The vrfHash that the log has a key of theirs under: base64 of 64 bytes',
      }),
    ),
    ...MESSAGE_MEMBER,
  },
  {
    description: 'Exactly one of `email`, `phone` and `publicKeyHash`',
    examples: [{ email: 'bob@example.org', message: 'It is Ann' }],
  },
)

const KEYS_IF_SHOWN = keysIfShown('Given for a request by token, and once it is accepted')

function keysIfShown(description: string) {
  return {
    publicKeyHashs: Type.Optional(Type.Array(PublicKeyHash, { description })),
    devices: Type.Optional(Type.Array(PeerDevice, { description })),
    ...DEVICE_LIST_MEMBERS,
  }
}

export const RequestReply = Type.Object({
  requestId: Uint64Text,
  status: oneOf(['pending', 'accepted']),
  user: Person,
  createdAt: Time,
  ...KEYS_IF_SHOWN,
})

/** The same for a known address and an unknown one. */
export const SubmittedReply = Type.Object({ status: Type.Literal('submitted') })

const NAMED_MEMBERS = { requestId: Type.Optional(Uint64), userId: Type.Optional(Uint64) }

/** For the receiver. */
export const IncomingRequest = Type.Object(NAMED_MEMBERS, {
  description: 'Exactly one: the request, or the user who sent it',
  examples: [{ requestId: '42' }],
})

/** For the sender. */
export const OutgoingRequest = Type.Object(NAMED_MEMBERS, {
  description: 'Exactly one: the request, or the user whom it was sent to',
  examples: [{ requestId: '42' }],
})

export const AcceptReply = Type.Object({
  contact: Type.Object({ ...PERSON_MEMBERS, since: Time }),
  ...KEY_MEMBERS,
})

export const RequestsQuery = Type.Object({
  direction: Type.Optional(oneOf(['incoming', 'outgoing'], 'Left out: incoming')),
  ...PAGE_MEMBERS,
})

export const RequestPage = page(
  Type.Object({
    requestId: Uint64Text,
    direction: oneOf(['incoming', 'outgoing']),
    status: Type.Literal('pending'),
    user: Person,
    message: Type.Optional(Type.String()),
    createdAt: Time,
    expiresAt: Time,
  }),
)

export const ContactView = Type.Object({
  ...CONTACT_MEMBERS,
  since: Time,
  devices: Type.Integer({ description: 'How many devices they have' }),
})

export const ContactPage = page(ContactView)

export const RenameContactRequest = Type.Object(
  {
    alias: Type.Optional(
      Type.String({
        maxLength: 400,
        description:
          'As a display name: 1 to 50 characters in at most 200 bytes. Null or empty: none any more',
      }),
    ),
  },
  { examples: [{ alias: 'Mum' }] },
)

/** The body of block and unblock. */
export const UserIdRequest = Type.Object({ userId: Uint64 })

export const BlockPage = page(Type.Object({ ...PERSON_MEMBERS, since: Time }))

export const CreateShareTokenRequest = Type.Object({
  expiresIn: Type.Optional(
    Type.Integer({ minimum: 60, maximum: 365 * 86_400, description: 'Seconds; left out: 7 days' }),
  ),
  maxUses: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 10_000, description: 'Requests that it is good for; left out: 100' }),
  ),
  label: Type.Optional(
    Type.String({
      maxLength: 100,
      pattern: '^[^\\x00-\\x1f\\x7f-\\x9f]*$',
      description: 'For its owner alone',
    }),
  ),
})

const SHARE_TOKEN_MEMBERS = {
  id: Uint64Text,
  label: Type.Optional(Type.String()),
  createdAt: Time,
  expiresAt: Time,
  maxUses: Type.Integer(),
  uses: Type.Integer({ description: 'Requests that were made by it' }),
}

export const CreateShareTokenReply = Type.Object({
  ...SHARE_TOKEN_MEMBERS,
  token: ShareTokenText,
  url: Type.String({ description: 'A page for people without the app; the app opens it by itself' }),
  deepLink: Type.String(),
})

export const ShareTokenPage = page(
  Type.Object({ ...SHARE_TOKEN_MEMBERS, last4: Type.String({ description: 'The last four characters' }) }),
)

export const ResolveShareTokenRequest = Type.Object({ token: ShareTokenText })

export const ResolveShareTokenReply = Type.Object({
  token: ShareTokenText,
  displayName: Type.String(),
  relation: Type.Optional(
    oneOf(['none', 'self', 'contact', 'outgoing', 'incoming'], 'What you have with the owner already'),
  ),
})

/** The picture of a share token's URL. */
export const QrImage = Type.String({
  contentMediaType: 'image/svg+xml',
  description: 'SVG 1.1, black on white, with the quiet zone that scanners need',
})
