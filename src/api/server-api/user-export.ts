/** All that the server holds of a user, for the operator who has to hand it out (GDPR, articles 15 and 20). */

import { readUserRef } from '../../domain/operators/user-ref.ts'
import { UserExport } from '../../schema/export.ts'
import { personalData } from '../accounts/personal-data.ts'
import { type ServerOperation, serverRead } from '../table/server-operation.ts'
import type { ServerApiDeps } from './deps.ts'

const exportUserByRef = serverRead({
  id: 'exportUserByRef',
  method: 'GET',
  path: '/server/api/v1/users/{ref}/export',
  tag: 'users',
  summary: 'All that the server holds of a user, in one document that is sent as it is made',
  scope: 'export',
  replies: { 200: UserExport },
  codes: ['USER_NOT_FOUND', 'VALIDATION_FAILED', 'OVERLOADED'],
  handle: async (deps: ServerApiDeps, request) => {
    const { database, serverKeys, serverUsers } = deps
    const { holder, params, nowMs } = request
    const ref = readUserRef(params[0] ?? '')
    // On record before the first octet leaves: the reader may go away before the last.
    const userId = await database.change(change => {
      const found = serverUsers.userOf(change, ref)
      request.audit(change, `id:${found}`)
      return found
    }, nowMs)
    const body = personalData(deps, {
      ...{ userId, nowMs, idsAs: 'string' },
      // It takes a while, in which the key may be revoked.
      assertAllowed: () => void serverKeys.current(holder.keyId, deps.nowMs()),
    })
    return { status: 200, body }
  },
})

export const USER_EXPORT: readonly ServerOperation<ServerApiDeps>[] = [exportUserByRef]
