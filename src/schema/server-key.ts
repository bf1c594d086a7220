/** Wire shapes of server keys, as the operator's command makes and lists them. */

import Type from 'typebox'
import { SCOPES } from '../domain/operators/server-key.ts'
import { oneOf } from './one-of.ts'
import { Time } from './time.ts'

const NAME_CHARS_MAX = 100

const Scopes = Type.Array(oneOf(SCOPES), {
  minItems: 1,
  maxItems: SCOPES.length,
  uniqueItems: true,
  description: 'The groups of operations that the key may ask for',
})
const Name = Type.String({ minLength: 1, maxLength: NAME_CHARS_MAX, description: 'For lists and audit rows' })
const Person = Type.String({
  minLength: 1,
  maxLength: NAME_CHARS_MAX,
  description: 'Whose key it is; a key of scope `console` has one',
})

export const CreateServerKeyRequest = Type.Object({
  name: Name,
  person: Type.Optional(Person),
  scopes: Scopes,
  expiresAt: Type.Optional(Time),
})

const SERVER_KEY = {
  id: Type.String({ pattern: '^[0-9a-f]{12}$' }),
  name: Name,
  person: Type.Optional(Person),
  scopes: Scopes,
  createdAt: Time,
  expiresAt: Type.Optional(Time),
  revokedAt: Type.Optional(Time),
}

export const CreatedServerKey = Type.Object({
  ...SERVER_KEY,
  key: Type.String({ description: 'Shown this once' }),
})

export const ServerKeys = Type.Object({ items: Type.Array(Type.Object(SERVER_KEY)) })
