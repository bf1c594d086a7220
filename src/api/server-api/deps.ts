/** Everything that operations of the server API are given. A file takes the members that it needs. */

import type { CallAnswer, OperatorRequest } from '../../domain/calls/call-command.ts'
import type { CallId } from '../../domain/ids.ts'
import type { LookUpKeys } from '../../keyserver/lookups.ts'
import type { AuditLog } from '../../store/operators/audit-log.ts'
import type { AuditRow } from '../../store/operators/operator-tables.ts'
import type { ServerKeyStore } from '../../store/operators/server-keys.ts'
import type { ServerUsers } from '../../store/operators/server-users.ts'
import type { Suspensions } from '../../store/operators/suspensions.ts'
import type { UserChanges } from '../../store/operators/user-changes.ts'
import type { WebhookEndpoint } from '../../store/operators/webhook-endpoints.ts'
import type { Webhooks } from '../../store/operators/webhook-store.ts'
import type { IdempotentRequest } from '../../store/tables/idempotency-store.ts'
import type { ApiDeps } from '../deps.ts'

/** Puts a command of the operator's to the room of a call; resolves and rejects as `AskRoom`. */
export type OperateRoom = (
  callId: CallId,
  command: OperatorRequest,
  beside: {
    /** Written in the change of what the command does; not where it changes nothing. */
    readonly audit: AuditRow
    readonly idempotent: IdempotentRequest | undefined
  },
) => Promise<CallAnswer>

export interface ServerApiDeps extends ApiDeps {
  readonly serverKeys: ServerKeyStore
  readonly auditLog: AuditLog
  readonly serverUsers: ServerUsers
  readonly suspensions: Suspensions
  readonly lookUpKeys: LookUpKeys
  readonly userChanges: UserChanges
  readonly webhooks: Webhooks
  readonly webhookPosts: WebhookPosts
  readonly operateRoom: OperateRoom
}

/** Requests to endpoints of webhooks, and their addresses and secrets. */
export interface WebhookPosts {
  /** The fault of an address; undefined for one that takes events. */
  readonly faultOf: (url: string) => string | undefined
  readonly newSecret: () => string
  /** Resolves with the reason why the endpoint has not taken it; undefined where it has. */
  readonly send: (endpoint: WebhookEndpoint, body: string) => Promise<string | undefined>
}
