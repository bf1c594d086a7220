/** The calls that a user remembers (contract 4.6): list them, say that the missed ones were seen, forget them. */

import type { CallHistoryRow } from '../../domain/calls/call-history.ts'
import { HistoryPage, historyBody } from '../../schema/call.ts'
import { PageQuery } from '../../schema/page.ts'
import type { CallHistoryStore } from '../../store/calls/call-history-store.ts'
import type { Store } from '../../store/engine/store.ts'
import { type Operation, operation, operationWithQuery } from '../table/operation.ts'
import { pageOf, rangeOf } from '../table/page.ts'
import { callNotFound, readCallId } from './calls.ts'

export interface CallHistoryWorld {
  readonly database: Pick<Store, 'view'>
  readonly callHistory: Pick<CallHistoryStore, 'list' | 'markSeen' | 'remove' | 'removeAll'>
}

export function callHistoryOperations(world: CallHistoryWorld): readonly Operation[] {
  return [listHistory(world), markHistorySeen(world), forgetCall(world), forgetHistory(world)]
}

function listHistory({ database, callHistory }: CallHistoryWorld): Operation {
  return operationWithQuery(PageQuery, {
    ...HISTORY,
    id: 'listCallHistory',
    method: 'GET',
    path: PATH,
    summary: 'Your calls of the last 90 days, newest first',
    replies: { 200: HistoryPage },
    codes: [],
    handle: ({ caller: { userId }, query, nowMs }) => {
      const { limit, after } = rangeOf(query)
      const found = database.view(view => callHistory.list(view, userId, { limit, after }, nowMs))
      const entryOf = ({ createdAtMs, callId }: CallHistoryRow) => ({ atMs: createdAtMs, id: callId })
      return { status: 200, body: pageOf(query, found, entryOf, historyBody) }
    },
  })
}

function markHistorySeen({ callHistory }: CallHistoryWorld): Operation {
  return operation({
    ...HISTORY,
    id: 'markCallHistorySeen',
    method: 'POST',
    path: `${PATH}/seen`,
    summary: 'You have looked at your missed calls: they count in the badge no more',
    replies: { 204: null },
    codes: [],
    handle: ({ caller: { userId }, commit }) =>
      commit(change => {
        callHistory.markSeen(change, userId)
        return { status: 204 }
      }),
  })
}

function forgetCall({ callHistory }: CallHistoryWorld): Operation {
  return operation({
    ...HISTORY,
    id: 'forgetCall',
    method: 'DELETE',
    path: `${PATH}/{callId}`,
    summary: 'Forget one call',
    replies: { 204: null },
    codes: ['CALL_NOT_FOUND'],
    handle: ({ caller: { userId }, params, commit }) => {
      const callId = readCallId(params[0])
      return commit(change => {
        if (!callHistory.remove(change, userId, callId)) throw callNotFound()
        return { status: 204 }
      })
    },
  })
}

function forgetHistory({ callHistory }: CallHistoryWorld): Operation {
  return operation({
    ...HISTORY,
    id: 'forgetCallHistory',
    method: 'DELETE',
    path: PATH,
    summary: 'Forget all calls',
    replies: { 204: null },
    codes: [],
    handle: ({ caller: { userId }, commit }) =>
      commit(change => {
        callHistory.removeAll(change, userId)
        return { status: 204 }
      }),
  })
}

const PATH = '/app/api/call/history'
const HISTORY = { tag: 'calls', access: 'session' } as const
