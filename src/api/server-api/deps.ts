/** Everything that operations of the server API are given. A file takes the members that it needs. */

import type { LookUpKeys } from '../../keyserver/lookups.ts'
import type { AuditLog } from '../../store/operators/audit-log.ts'
import type { CircleStore } from '../../store/operators/circles.ts'
import type { ServerKeyStore } from '../../store/operators/server-keys.ts'
import type { ServerUsers } from '../../store/operators/server-users.ts'
import type { Suspensions } from '../../store/operators/suspensions.ts'
import type { UserChanges } from '../../store/operators/user-changes.ts'
import type { WebhookEndpoint } from '../../store/operators/webhook-endpoints.ts'
import type { Webhooks } from '../../store/operators/webhook-store.ts'
import type { ApiDeps } from '../deps.ts'

export interface ServerApiDeps extends ApiDeps {
  readonly serverKeys: ServerKeyStore
  readonly auditLog: AuditLog
  readonly serverUsers: ServerUsers
  readonly suspensions: Suspensions
  readonly circles: CircleStore
  readonly lookUpKeys: LookUpKeys
  readonly userChanges: UserChanges
  readonly webhooks: Webhooks
  readonly webhookPosts: WebhookPosts
}

/** Requests to endpoints of webhooks, and their addresses and secrets. */
export interface WebhookPosts {
  /** What is wrong with an address; undefined for one that events may be sent to. */
  readonly faultOf: (url: string) => string | undefined
  readonly newSecret: () => string
  /** Resolves with the reason why the endpoint has not taken it; undefined where it has. */
  readonly send: (endpoint: WebhookEndpoint, body: string) => Promise<string | undefined>
}
