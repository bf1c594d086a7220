/** Wire shapes of the login methods (contract 2.9). */

import Type from 'typebox'
import { oneOf } from './one-of.ts'
import { Time } from './time.ts'
import { Uint64, Uint64Text } from './uint64.ts'

export const MethodKind = oneOf(['email', 'phone', 'social', 'passkey'])

export const AddLoginMethodRequest = Type.Object(
  {
    kind: oneOf(['email', 'phone', 'social']),
    value: Type.Optional(Type.String({ description: 'The email address or phone number' })),
    country: Type.Optional(
      Type.String({ description: 'ISO 3166 letters: what a phone number without calling code belongs to' }),
    ),
    provider: Type.Optional(
      Type.String({ description: 'The name of the identity provider, such as `google`' }),
    ),
    idToken: Type.Optional(Type.String({ description: 'What the provider signed' })),
    nonce: Type.Optional(
      Type.String({ description: 'The nonce of the token, required if it has one; for Apple the raw nonce' }),
    ),
    authorizationCode: Type.Optional(Type.String({ description: 'Beside a token of Apple' })),
  },
  { examples: [{ kind: 'email', value: 'ann@example.com' }] },
)

export const SetPrimaryRequest = Type.Object({ id: Uint64 })

export const LoginMethodView = Type.Object({
  id: Uint64Text,
  kind: MethodKind,
  value: Type.Optional(Type.String({ description: 'The address; of a provider the one that it named' })),
  provider: Type.Optional(Type.String()),
  label: Type.Optional(Type.String({ description: 'Of a passkey: what its user calls it' })),
  backedUp: Type.Optional(
    Type.Boolean({ description: 'Of a passkey: whether it is synced to other devices of the user' }),
  ),
  verified: Type.Boolean(),
  primary: Type.Boolean(),
  addedAt: Time,
  lastUsedAt: Time,
})

export const LoginMethodList = Type.Object({ items: Type.Array(LoginMethodView) })
