/** Tables of the server API: its keys and its audit log. */

import type { Scope } from '../../domain/operators/server-key.ts'
import { EXPIRY } from '../engine/expiries.ts'
import { NUMBER, opaque, TIME } from '../engine/key-parts.ts'
import { bytes, count, listOf, object, optional, type RowOf, text, typed } from '../engine/row-form.ts'
import { rowTable } from '../engine/table.ts'

export type ServerKey = RowOf<typeof SERVER_KEY>
const SERVER_KEY = object({
  name: text,
  person: optional(text),
  scopes: listOf(typed<Scope>(text)),
  secretHash: bytes(32),
  createdAtMs: count,
  expiresAtMs: optional(count),
  revokedAtMs: optional(count),
})

/** For so long, an ended key is refused by its own code, which names the reason. */
export const ENDED_KEY_KEPT_MS = 90 * 86_400_000

export const SERVER_KEYS = rowTable('server-keys', { key: opaque(6) }, SERVER_KEY, {
  holds: 'name, scopes and the hash of a key of the server API',
  ending: {
    kind: EXPIRY.serverKey,
    atMs({ expiresAtMs, revokedAtMs = expiresAtMs }) {
      return revokedAtMs === undefined ? undefined : revokedAtMs + ENDED_KEY_KEPT_MS
    },
  },
  remedy: 'the backend’s requests are refused: make another key',
})

/** A request to the server API that changed something. */
export type AuditRow = RowOf<typeof AUDIT_ROW>
const AUDIT_ROW = object({
  keyId: text,
  person: optional(text),
  /** The `operationId`. */
  operation: text,
  /** Such as `id:4294967297`; never an address or an external id, which an erasure would have to find here. */
  target: text,
  requestId: text,
})

export const AUDIT = rowTable('audit', { time: TIME, count: NUMBER }, AUDIT_ROW, {
  holds: 'who did what to whom by the server API',
  shapes: [AUDIT_ROW.shape(), AUDIT_ROW.shape('person')],
  ending: { kind: EXPIRY.audit },
  remedy: 'the record of one request is lost',
})
