/** All operations of the server API. The writer answers each of them, wherever they are asked for. */

import type { ServerOperation } from '../table/server-operation.ts'
import type { ServerApiDeps } from './deps.ts'
import { SERVER_KEYS } from './server-keys.ts'
import { USER_FACTS } from './user-facts.ts'
import { USER_IMPORTS } from './user-imports.ts'
import { USERS } from './users.ts'

/** In the order of the document. */
export const SERVER_OPERATIONS: readonly ServerOperation<ServerApiDeps>[] = [
  ...USERS,
  ...USER_FACTS,
  ...USER_IMPORTS,
  ...SERVER_KEYS,
]
