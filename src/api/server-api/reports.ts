/** Reports as moderators work through them: queues by state, decisions and notes. */

import { parseUint64 } from '../../domain/ids.ts'
import { readUserRef } from '../../domain/operators/user-ref.ts'
import { SignalError } from '../../errors.ts'
import { ChangeReportRequest, ReportPage, ReportsQuery, ReportView } from '../../schema/report.ts'
import { timeText } from '../../schema/time.ts'
import type { View } from '../../store/engine/store.ts'
import type { NamedReport } from '../../store/operators/reports.ts'
import { personOf } from '../contacts/people.ts'
import { pageOf, rangeOf } from '../table/page.ts'
import {
  type ServerOperation,
  serverOperationWithBody,
  serverRead,
  serverReadWithQuery,
} from '../table/server-operation.ts'
import type { ServerApiDeps } from './deps.ts'

type Deps = Pick<ServerApiDeps, 'accounts' | 'database' | 'reports' | 'serverUsers'>

const SHARED = { tag: 'moderation', scope: 'reports' } as const

const listReports = serverReadWithQuery(ReportsQuery, {
  ...SHARED,
  id: 'listReports',
  method: 'GET',
  path: '/server/api/v1/reports',
  summary:
    'Reports in a state, or about a user: those that wait for a moderator longest first, closed ones newest first',
  replies: { 200: ReportPage },
  codes: ['USER_NOT_FOUND'],
  handle: (deps: Deps, { query }) =>
    deps.database.view(view => {
      const { about, state = 'open' } = query
      const [range, itemOf] = [rangeOf(query), (report: NamedReport) => viewOf(view, deps, report)]
      if (about === undefined) {
        const found = deps.reports.inState(view, state, range)
        const placeOf = ({ reportId: id, stateSinceMs: atMs }: NamedReport) => ({ id, atMs })
        return { status: 200, body: pageOf(query, found, placeOf, itemOf) }
      }
      const userId = deps.serverUsers.userOf(view, readUserRef(about, '/about'))
      const found = deps.reports.about(view, userId, range)
      const placeOf = ({ reportId: id, createdAtMs: atMs }: NamedReport) => ({ id, atMs })
      return { status: 200, body: pageOf(query, found, placeOf, itemOf) }
    }),
})

const getReport = serverRead({
  ...SHARED,
  id: 'getReport',
  method: 'GET',
  path: '/server/api/v1/reports/{reportId}',
  summary: 'One report',
  replies: { 200: ReportView },
  codes: ['REPORT_NOT_FOUND'],
  handle: (deps: Deps, { params }) =>
    deps.database.view(view => {
      const report = deps.reports.read(view, reportIdIn(params))
      if (report === undefined) throw reportNotFound()
      return { status: 200, body: viewOf(view, deps, report) }
    }),
})

const changeReport = serverOperationWithBody(ChangeReportRequest, {
  ...SHARED,
  id: 'changeReport',
  method: 'PATCH',
  path: '/server/api/v1/reports/{reportId}',
  summary: 'Take a report into review, close it or open it again, and note why',
  replies: { 200: ReportView },
  codes: ['REPORT_NOT_FOUND'],
  handle(deps: Deps, { body, params, holder, commit }) {
    const reportId = reportIdIn(params)
    const { state, note } = body
    const handling = { state, note: note?.trim(), handledBy: holder.person ?? holder.name }
    return commit(change => {
      const report = deps.reports.handle(change, reportId, handling)
      if (report === undefined) throw reportNotFound()
      return { status: 200, body: viewOf(change, deps, report), target: `report:${reportId}` }
    })
  },
})

function viewOf(
  view: View,
  deps: Deps,
  { reporterId, reportedId, createdAtMs, stateSinceMs, ...report }: NamedReport,
): object {
  return {
    ...report,
    stateSince: timeText(stateSinceMs),
    createdAt: timeText(createdAtMs),
    reported: personOf(view, deps, reportedId),
    ...(reporterId !== undefined && { reporter: personOf(view, deps, reporterId) }),
  }
}

function reportIdIn([text = '']: readonly string[]): bigint {
  const reportId = parseUint64(text)
  if (reportId === undefined) throw reportNotFound()
  return reportId
}

function reportNotFound(): SignalError {
  return new SignalError('REPORT_NOT_FOUND', 'there is no report of this id')
}

export const REPORTS: readonly ServerOperation<Deps>[] = [listReports, getReport, changeReport]
