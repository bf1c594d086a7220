/** Everything that operations of the server API are given. A file takes the members that it needs. */

import type { AuditLog } from '../../store/operators/audit-log.ts'
import type { ServerKeyStore } from '../../store/operators/server-keys.ts'
import type { ServerUsers } from '../../store/operators/server-users.ts'
import type { Suspensions } from '../../store/operators/suspensions.ts'
import type { UserChanges } from '../../store/operators/user-changes.ts'
import type { ApiDeps } from '../deps.ts'

export interface ServerApiDeps extends ApiDeps {
  readonly serverKeys: ServerKeyStore
  readonly auditLog: AuditLog
  readonly serverUsers: ServerUsers
  readonly suspensions: Suspensions
  readonly userChanges: UserChanges
}
