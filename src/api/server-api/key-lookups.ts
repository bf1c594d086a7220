/** Keys of the log with their proofs, for the operators' page: it verifies the devices of a user as an app does. */

import { GetPublicKeysReply, GetPublicKeysRequest } from '../../keyserver/bodies.ts'
import { type ServerOperation, serverOperationWithBody } from '../table/server-operation.ts'
import type { ServerApiDeps } from './deps.ts'

type Deps = Pick<ServerApiDeps, 'lookUpKeys'>

const lookUpKeys = serverOperationWithBody(GetPublicKeysRequest, {
  id: 'lookUpKeys',
  method: 'POST',
  path: '/server/api/v1/key-lookups',
  tag: 'users',
  summary:
    'Keys that the log has under these hashes, with proofs to verify, as `POST /api/get-public-keys` answers',
  scope: 'users',
  replies: { 200: GetPublicKeysReply },
  codes: ['UNKNOWN_PUBLIC_KEY_HASH', 'IDENTITY_MISMATCH', 'LOG_UNAVAILABLE'],
  handle: async ({ lookUpKeys }: Deps, { body }) => ({ status: 200, body: await lookUpKeys(body) }),
})

export const KEY_LOOKUPS: readonly ServerOperation<Deps>[] = [lookUpKeys]
