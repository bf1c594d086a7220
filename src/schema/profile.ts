/** Wire shapes of the profile, the login methods and account deletion (contract 2.7 to 2.10). */

import Type from 'typebox'
import { Uint64, Uint64Text } from './uint64.ts'

export const PutUserRequest = Type.Object({
  displayName: Type.Optional(Type.String({ description: '1 to 50 characters' })),
  email: Type.Optional(
    Type.String({
      description:
        'Takes the place of the email address once its code is confirmed. An address is removed as a login method, not here',
    }),
  ),
  phone: Type.Optional(Type.String({ description: 'Takes the place of the phone number likewise' })),
  country: Type.Optional(
    Type.String({ description: 'ISO 3166 letters: what a phone number without calling code belongs to' }),
  ),
  settings: Type.Optional(
    Type.Object({
      discoverableByEmail: Type.Optional(Type.Boolean()),
      discoverableByPhone: Type.Optional(Type.Boolean()),
      callsFromContactsOnly: Type.Optional(Type.Boolean()),
    }),
  ),
})

/** An address that waits for its code. */
export const PendingAddress = Type.Object({
  challengeId: Type.String({ description: 'To be confirmed with `verify`' }),
  kind: Type.Union([Type.Literal('email'), Type.Literal('phone')]),
  sentTo: Type.String(),
  expiresIn: Type.Integer(),
  resendIn: Type.Integer(),
})

export const MethodKind = Type.Union([Type.Literal('email'), Type.Literal('phone'), Type.Literal('social')])

export const AddLoginMethodRequest = Type.Object({
  kind: MethodKind,
  value: Type.Optional(Type.String({ description: 'The email address or phone number' })),
  country: Type.Optional(
    Type.String({ description: 'ISO 3166 letters: what a phone number without calling code belongs to' }),
  ),
  provider: Type.Optional(
    Type.String({ description: 'The name of the identity provider, such as `google`' }),
  ),
  idToken: Type.Optional(Type.String({ description: 'What the provider signed' })),
  nonce: Type.Optional(Type.String({ description: 'What the token must repeat; for Apple the raw nonce' })),
  authorizationCode: Type.Optional(Type.String({ description: 'Beside a token of Apple' })),
})

export const SetPrimaryRequest = Type.Object({ id: Uint64 })

export const LoginMethodView = Type.Object({
  id: Uint64Text,
  kind: MethodKind,
  value: Type.Optional(Type.String({ description: 'The address; of a provider the one that it named' })),
  provider: Type.Optional(Type.String()),
  verified: Type.Boolean(),
  primary: Type.Boolean(),
  addedAt: Type.String({ format: 'date-time' }),
  lastUsedAt: Type.String({ format: 'date-time' }),
})

export const LoginMethodList = Type.Object({ items: Type.Array(LoginMethodView) })

export const PlatformLoginRequest = Type.Object({
  platform: Type.Optional(Type.String({ description: '`apple`, or the name of another identity provider' })),
  authorizationCode: Type.Optional(Type.String()),
  authCode: Type.Optional(Type.String({ description: 'Another spelling of `authorizationCode`' })),
  identityToken: Type.Optional(Type.String()),
  idToken: Type.Optional(Type.String({ description: 'Another spelling of `identityToken`' })),
  displayName: Type.Optional(Type.String({ description: 'Used only if the account is new' })),
  nonce: Type.Optional(
    Type.String({ description: 'The raw nonce; the token of Apple has its SHA-256 in hexadecimal' }),
  ),
})

export const DeleteUserRequest = Type.Object({ confirm: Type.Literal(true) })
