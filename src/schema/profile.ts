/** Wire shapes of the profile, the login methods and account deletion (contract 2.7 to 2.10). */

import Type from 'typebox'
import { Challenge, Settings, UserView, VerifyLoginRequest } from './account.ts'
import { oneOf } from './one-of.ts'
import { DeviceSignature } from './step-up.ts'
import { Time } from './time.ts'

export const PutUserRequest = Type.Object(
  {
    displayName: Type.Optional(
      Type.String({ description: '1 to 50 characters as a reader counts them, in at most 200 bytes' }),
    ),
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
    settings: Type.Optional(Type.Partial(Settings)),
  },
  { examples: [{ displayName: 'Ann' }] },
)

const Pending = Type.Object({
  ...Challenge.properties,
  kind: oneOf(['email', 'phone']),
})

export const ChangedUser = Type.Object({
  user: UserView,
  pending: Type.Optional(Type.Array(Pending, { description: 'Addresses that wait for their codes' })),
})

export const VerifyRequest = Type.Object(
  { ...VerifyLoginRequest.properties, deviceSignature: DeviceSignature },
  { examples: [{ challengeId: '3q2-7wAAAAAAAAAAAAAAAA', otp: '123456' }] },
)

export const VerifyReply = Type.Object({
  purpose: oneOf(['bind-email', 'bind-phone', 'step-up']),
  user: UserView,
})

export const PlatformLoginRequest = Type.Object({
  platform: Type.Optional(Type.String({ description: '`apple`, or the name of another identity provider' })),
  authorizationCode: Type.Optional(Type.String()),
  authCode: Type.Optional(Type.String({ description: 'Another spelling of `authorizationCode`' })),
  identityToken: Type.Optional(Type.String()),
  idToken: Type.Optional(Type.String({ description: 'Another spelling of `identityToken`' })),
  displayName: Type.Optional(Type.String({ description: 'Used only if the account is new' })),
  nonce: Type.Optional(
    Type.String({
      description:
        'The raw nonce, required if the token has one; the token of Apple has its SHA-256 in hexadecimal',
    }),
  ),
})

export const DeleteUserRequest = Type.Object({ confirm: Type.Literal(true) })

export const DeleteUserReply = Type.Object({
  erasesAt: { ...Time, description: 'Signing in before then keeps the account' },
})
