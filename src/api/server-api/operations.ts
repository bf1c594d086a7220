/** All operations of the server API. The writer answers each of them, wherever they are asked for. */

import type { ServerOperation } from '../table/server-operation.ts'
import { AUDIT } from './audit.ts'
import { SERVER_CALLS } from './calls.ts'
import { CIRCLES } from './circles.ts'
import { CONSOLE_SESSIONS } from './console-sessions.ts'
import { SERVER_CONTACTS } from './contacts.ts'
import type { ServerApiDeps } from './deps.ts'
import { REPORTS } from './reports.ts'
import { SERVER_KEYS } from './server-keys.ts'

/** In the order of the document. */
export const SERVER_OPERATIONS: readonly ServerOperation<ServerApiDeps>[] = [
  ...SERVER_CONTACTS,
  ...CIRCLES,
  ...SERVER_CALLS,
  ...REPORTS,
  ...AUDIT,
  ...CONSOLE_SESSIONS,
  ...SERVER_KEYS,
]
