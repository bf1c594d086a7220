/** The record of changes by the server API. */

import { AuditPage, AuditQuery } from '../../schema/audit.ts'
import { invalidMember } from '../../schema/check.ts'
import { timeText } from '../../schema/time.ts'
import type { AuditEntry } from '../../store/operators/audit-log.ts'
import { type ServerOperation, serverReadWithQuery } from '../table/server-operation.ts'
import type { ServerApiDeps } from './deps.ts'

type Deps = Pick<ServerApiDeps, 'auditLog' | 'database'>

const listAudit = serverReadWithQuery(AuditQuery, {
  id: 'listAudit',
  method: 'GET',
  path: '/server/api/v1/audit',
  tag: 'moderation',
  summary: 'Changes by the server API, with key and target, newest first',
  scope: 'audit',
  replies: { 200: AuditPage },
  codes: [],
  handle({ auditLog, database }: Deps, { query: { since, limit = LIMIT, cursor } }) {
    const sinceMs = since === undefined ? 0 : Date.parse(since)
    const after = cursor === undefined ? undefined : parseCursor(cursor)
    const found = database.view(view => auditLog.read(view, { sinceMs, after, limit: limit + 1 }))
    const shown = found.slice(0, limit)
    const nextCursor = found.length > limit ? Buffer.from(shown.at(-1)!.key).toString('base64url') : undefined
    return { status: 200, body: { items: shown.map(itemOf), nextCursor } }
  },
})

function itemOf({ atMs, keyId, person, operation, target, requestId }: AuditEntry): object {
  return { at: timeText(atMs), keyId, person, operation, target, requestId }
}

function parseCursor(text: string): Uint8Array {
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.length !== KEY_BYTES || bytes.toString('base64url') !== text)
    throw invalidMember('/cursor', 'FORMAT', 'is no cursor of this list', 'the query')
  return bytes
}

const LIMIT = 50
/** A row's key: time and count. */
const KEY_BYTES = 12

export const AUDIT: readonly ServerOperation<Deps>[] = [listAudit]
