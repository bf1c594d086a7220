/** Server keys, as the operator's command makes, lists and revokes them. */

import { isServerKeyId } from '../../domain/operators/server-key.ts'
import { SignalError } from '../../errors.ts'
import { invalidMember } from '../../schema/check.ts'
import { CreatedServerKey, CreateServerKeyRequest, ServerKeys } from '../../schema/server-key.ts'
import { optionalTimeText, timeText } from '../../schema/time.ts'
import type { ListedServerKey } from '../../store/operators/server-keys.ts'
import {
  type ServerOperation,
  serverOperation,
  serverOperationWithBody,
  serverRead,
} from '../table/server-operation.ts'
import type { ServerApiDeps } from './deps.ts'

type Deps = Pick<ServerApiDeps, 'database' | 'serverKeys'>

export const SERVER_KEYS: readonly ServerOperation<Deps>[] = [
  serverOperationWithBody(CreateServerKeyRequest, {
    id: 'createServerKey',
    method: 'POST',
    path: '/server/api/v1/server-keys',
    tag: 'operator',
    summary: 'Makes a server key, which is shown this once',
    replies: { 201: CreatedServerKey },
    codes: [],
    handle({ serverKeys }: Deps, { body, nowMs, commit }) {
      const { name, person, scopes } = body
      const expiresAtMs = body.expiresAt === undefined ? undefined : Date.parse(body.expiresAt)
      if (expiresAtMs !== undefined && expiresAtMs <= nowMs)
        throw invalidMember('/expiresAt', 'PAST', 'is a time to come')
      if (scopes.includes('console') !== (person !== undefined))
        throw invalidMember(
          '/person',
          'CONSOLE',
          'names the person of a key of scope console, and of no other',
        )
      return commit(change => {
        const { keyId, key } = serverKeys.create(change, { name, person, scopes, expiresAtMs })
        const shown = {
          id: keyId,
          name,
          person,
          scopes,
          createdAt: timeText(nowMs),
          expiresAt: body.expiresAt,
        }
        return { status: 201, body: { ...shown, key }, target: `key:${keyId}` }
      })
    },
  }),
  serverRead({
    id: 'listServerKeys',
    method: 'GET',
    path: '/server/api/v1/server-keys',
    tag: 'operator',
    summary: 'All server keys, also those that were revoked lately',
    replies: { 200: ServerKeys },
    codes: [],
    handle: ({ database, serverKeys }: Deps) => ({
      status: 200,
      body: { items: database.view(view => serverKeys.list(view)).map(shownKey) },
    }),
  }),
  serverOperation({
    id: 'revokeServerKey',
    method: 'DELETE',
    path: '/server/api/v1/server-keys/{keyId}',
    tag: 'operator',
    summary: 'Revokes a server key at once',
    replies: { 204: null },
    codes: ['SERVER_KEY_NOT_FOUND'],
    handle({ serverKeys }: Deps, { params: [keyId = ''], commit }) {
      if (!isServerKeyId(keyId))
        throw new SignalError('SERVER_KEY_NOT_FOUND', 'there is no server key of this id')
      return commit(change => {
        serverKeys.revoke(change, keyId)
        return { status: 204, target: `key:${keyId}` }
      })
    },
  }),
]

function shownKey({
  keyId,
  name,
  person,
  scopes,
  createdAtMs,
  expiresAtMs,
  revokedAtMs,
}: ListedServerKey): object {
  return {
    id: keyId,
    name,
    person,
    scopes,
    createdAt: timeText(createdAtMs),
    expiresAt: optionalTimeText(expiresAtMs),
    revokedAt: optionalTimeText(revokedAtMs),
  }
}
