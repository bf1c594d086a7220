/** All operations of the server API. The writer answers each of them, wherever they are asked for. */

import type { ServerOperation } from '../table/server-operation.ts'
import type { ServerApiDeps } from './deps.ts'
import { SERVER_KEYS } from './server-keys.ts'
import { SUSPENSIONS } from './suspensions.ts'

/** In the order of the document. */
export const SERVER_OPERATIONS: readonly ServerOperation<ServerApiDeps>[] = [...SUSPENSIONS, ...SERVER_KEYS]
