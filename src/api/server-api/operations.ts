/** All operations of the server API. The writer answers them all, whichever process takes the request. */

import type { ServerOperation } from '../table/server-operation.ts'
import { AUDIT } from './audit.ts'
import { SERVER_CALLS } from './calls.ts'
import { CIRCLES } from './circles.ts'
import { CONSOLE_SESSIONS } from './console-sessions.ts'
import { SERVER_CONTACTS } from './contacts.ts'
import type { ServerApiDeps } from './deps.ts'
import { KEY_LOOKUPS } from './key-lookups.ts'
import { REPORTS } from './reports.ts'
import { SERVER_KEYS } from './server-keys.ts'
import { SIGN_IN_TOKENS } from './sign-in-tokens.ts'
import { SUSPENSIONS } from './suspensions.ts'
import { USER_EXPORT } from './user-export.ts'
import { USER_FACTS } from './user-facts.ts'
import { USER_IMPORTS } from './user-imports.ts'
import { USERS } from './users.ts'
import { WEBHOOKS } from './webhooks.ts'

/** In the order of the document. */
export const SERVER_OPERATIONS: readonly ServerOperation<ServerApiDeps>[] = [
  ...USERS,
  ...USER_FACTS,
  ...USER_EXPORT,
  ...KEY_LOOKUPS,
  ...USER_IMPORTS,
  ...SERVER_CONTACTS,
  ...CIRCLES,
  ...SUSPENSIONS,
  ...SIGN_IN_TOKENS,
  ...SERVER_CALLS,
  ...REPORTS,
  ...AUDIT,
  ...CONSOLE_SESSIONS,
  ...SERVER_KEYS,
  ...WEBHOOKS,
]
