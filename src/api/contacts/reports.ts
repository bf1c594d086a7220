/** Reports of a user to the operator's moderators. The reported user never hears of one. */

import type { CallId, UserId } from '../../domain/ids.ts'
import { REASON_TITLES, REPORT_REASONS } from '../../domain/operators/report.ts'
import { SignalError } from '../../errors.ts'
import { ReportReasons, ReportReply, ReportRequest } from '../../schema/report.ts'
import { timeText } from '../../schema/time.ts'
import type { View } from '../../store/engine/store.ts'
import type { ApiDeps } from '../deps.ts'
import { type Operation, operationWithBody, read } from '../table/operation.ts'
import { userNotFound } from './people.ts'

type Deps = Pick<ApiDeps, 'accounts' | 'calls' | 'database' | 'history' | 'reports'>

export const listReportReasons = read({
  id: 'listReportReasons',
  method: 'GET',
  path: '/app/api/report/reasons',
  tag: 'contacts',
  summary: 'The reasons of a report, in the order to show them in',
  access: 'session',
  replies: { 200: ReportReasons },
  codes: [],
  handle: () => ({ status: 200, body: REASONS }),
})

const reportUser = operationWithBody(ReportRequest, {
  id: 'reportUser',
  method: 'POST',
  path: '/app/api/report',
  tag: 'contacts',
  summary: 'Report a user to the moderators of the app; the reported user never hears of it, nor who it was',
  access: 'session',
  replies: { 201: ReportReply },
  codes: ['USER_NOT_FOUND', 'SELF_REQUEST'],
  rates: [{ name: 'report', by: 'user' }],
  isIdempotent: true,
  handle(deps: Deps, { requester: { userId: reporterId }, body, commit, nowMs }) {
    const reportedId = body.userId as UserId
    if (reportedId === reporterId) throw new SignalError('SELF_REQUEST', 'nobody reports themselves')
    const callId = body.callId as CallId | undefined
    return commit(change => {
      // Also users who have asked for their account's end: they may do so to get away.
      if (deps.accounts.read(change, reportedId) === undefined) throw userNotFound()
      const isCallKnown = callId !== undefined && wereInCall(change, deps, callId, [reporterId, reportedId])
      const { reason, text } = body
      const words = text?.trim() ? { text: text.trim() } : {}
      const report = { reporterId, reportedId, callId, isCallKnown, reason, ...words }
      const reportId = deps.reports.add(change, report)
      return { status: 201, body: { reportId, createdAt: timeText(nowMs) } }
    })
  },
})

/** By the call while the server has it, else by what either remembers of it. */
function wereInCall(
  view: View,
  { calls, history }: Deps,
  callId: CallId,
  userIds: readonly UserId[],
): boolean {
  const call = calls.read(view, callId)
  const people = [
    ...(call?.participants ?? []).map(({ userId }) => userId),
    ...userIds.flatMap(userId => history.ofCall(view, userId, callId)?.people ?? []),
  ]
  return userIds.every(userId => people.includes(userId))
}

const REASONS = {
  items: REPORT_REASONS.map(reason => ({ reason, title: REASON_TITLES[reason] })),
}

export const REPORTS: readonly Operation<Deps>[] = [listReportReasons, reportUser]
