/** Tables of reports: one row for each, and the lists in which it stands. */

import type { CallId, UserId } from '../../domain/ids.ts'
import type { ReportReason, ReportState } from '../../domain/operators/report.ts'
import { REPORT_STATES } from '../../domain/operators/report.ts'
import { EXPIRY } from '../engine/expiries.ts'
import { ID, KIND, TIME } from '../engine/key-parts.ts'
import { idInKey, idsKey, timeBytes } from '../engine/keys.ts'
import {
  count,
  flag,
  id,
  object,
  oneOf,
  optional,
  type RowOf,
  sealed,
  text,
  typed,
} from '../engine/row-form.ts'
import { rowTable } from '../engine/table.ts'

export type StoredReport = RowOf<typeof REPORT>
const REPORT = object({
  reporterId: optional(id<UserId>()),
  reportedId: id<UserId>(),
  callId: optional(id<CallId>()),
  isCallKnown: flag,
  reason: typed<ReportReason>(text),
  text: optional(sealed),
  state: oneOf(...REPORT_STATES),
  note: optional(sealed),
  handledBy: optional(text),
  createdAtMs: count,
  stateSinceMs: count,
})

export const REPORTS = rowTable('reports', { report: ID }, REPORT, {
  holds: 'who reported whom and why, its state; the words of both sides sealed',
  ending: { kind: EXPIRY.report },
  relations: [
    { in: 'users', under: (_, { reportedId }) => idsKey(reportedId), what: () => 'the reported user' },
    { in: 'reports-by-state', under: (key, report) => stateKey(report, idInKey(key, 0)) },
    { in: 'reports-by-user', under: (key, report) => aboutKey(report, idInKey(key, 0)) },
    { in: 'reports-by-user', under: (key, report) => byKey(report, idInKey(key, 0)) },
  ],
  remedy: 'a moderator may not see it: restore a backup',
})

export const REPORTS_BY_STATE = rowTable(
  'reports-by-state',
  { state: KIND, since: TIME, report: ID },
  oneOf(0),
  {
    holds: 'nothing: its key says which reports are in a state, since when',
    relations: [
      {
        in: 'reports',
        under: key => key.subarray(STATE_BYTES),
        where: (report: StoredReport, key) => key.equals(stateKey(report, idOfListed(key))),
      },
    ],
    remedy: 'a moderator sees a report twice, or one that is gone: restore a backup',
  },
)

export const REPORTS_BY_USER = rowTable(
  'reports-by-user',
  { user: ID, role: KIND, created: TIME, report: ID },
  oneOf(0),
  {
    holds: 'nothing: its key says which reports are by a user, and which are about them',
    relations: [
      {
        in: 'reports',
        under: key => key.subarray(USER_BYTES),
        where: (report: StoredReport, key) => {
          const reportId = idOfListed(key)
          return [aboutKey(report, reportId), byKey(report, reportId)].some(own => own && key.equals(own))
        },
      },
    ],
    remedy: 'the end of an account may leave a report behind: restore a backup',
  },
)

/** The roles of a user in a report. */
export const ROLE = { by: 1, about: 2 } as const

export function stateKey({ state, stateSinceMs }: Listed, reportId: bigint): Uint8Array {
  return Buffer.concat([statePrefix(state), timeBytes(stateSinceMs), idsKey(reportId)])
}

export function statePrefix(state: ReportState): Uint8Array {
  return Uint8Array.of(STATE_NUMBERS[state])
}

export function aboutKey({ reportedId, createdAtMs }: Listed, reportId: bigint): Uint8Array {
  return userKey(reportedId, ROLE.about, createdAtMs, reportId)
}

/** Undefined for one without its reporter. */
export function byKey({ reporterId, createdAtMs }: Listed, reportId: bigint): Uint8Array | undefined {
  return reporterId === undefined ? undefined : userKey(reporterId, ROLE.by, createdAtMs, reportId)
}

export function userPrefix(userId: UserId, role: number): Uint8Array {
  return Buffer.concat([idsKey(userId), Uint8Array.of(role)])
}

/** The report of a key of either list, which ends with it. */
export function idOfListed(key: Uint8Array): bigint {
  return idInKey(key.subarray(key.length - ID.bytes), 0)
}

type Listed = Pick<StoredReport, 'state' | 'stateSinceMs' | 'reportedId' | 'reporterId' | 'createdAtMs'>

function userKey(userId: UserId, role: number, createdAtMs: number, reportId: bigint): Uint8Array {
  return Buffer.concat([userPrefix(userId, role), timeBytes(createdAtMs), idsKey(reportId)])
}

/** Numbers that stores keep. */
const STATE_NUMBERS: Readonly<Record<ReportState, number>> = {
  open: 1,
  'in-review': 2,
  resolved: 3,
  dismissed: 4,
}
/** In a key, before the report. */
const STATE_BYTES = KIND.bytes + TIME.bytes
const USER_BYTES = ID.bytes + KIND.bytes + TIME.bytes
