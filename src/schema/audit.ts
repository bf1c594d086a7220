/** Wire shapes of the audit log, and of sessions of the operators' page. */

import Type from 'typebox'
import { SCOPES } from '../domain/operators/server-key.ts'
import { oneOf } from './one-of.ts'
import { PAGE_MEMBERS, page } from './page.ts'
import { Time } from './time.ts'

export const AuditQuery = Type.Object({
  since: Type.Optional(
    Type.String({ format: 'date-time', description: 'Only rows of this time and newer ones' }),
  ),
  ...PAGE_MEMBERS,
})

export const AuditPage = page(
  Type.Object({
    at: Time,
    keyId: Type.String({ description: 'Of the server key, or `operator` for the operator’s own command' }),
    person: Type.Optional(Type.String({ description: 'Whose key it is' })),
    operation: Type.String({ description: 'An `operationId` of this document' }),
    target: Type.String({ description: 'Such as `id:42` or `report:7`' }),
    requestId: Type.String(),
  }),
)

export const ConsoleSession = Type.Object({
  token: Type.String({ description: 'Sent as a server key is, until `expiresAt`' }),
  expiresAt: Time,
  person: Type.Optional(Type.String()),
  scopes: Type.Array(oneOf(SCOPES)),
})
