/** The calls that a user remembers (contract 4.6): list them, say that the missed ones were seen, forget them. */

import type { Static } from 'typebox'
import { activeRowOf, type CallHistoryRow, peersIn } from '../../domain/calls/call-history.ts'
import type { CallId, UserId } from '../../domain/ids.ts'
import { HistoryPage, historyBody } from '../../schema/call.ts'
import { PageQuery } from '../../schema/page.ts'
import type { View } from '../../store/engine/store.ts'
import type { ApiDeps } from '../deps.ts'
import { type Operation, operation, readWithQuery } from '../table/operation.ts'
import { type Page, pageOf, rangeOf } from '../table/page.ts'
import { callNotFound, readCallId } from './calls.ts'

type Deps = Pick<ApiDeps, 'accounts' | 'callIndex' | 'calls' | 'contacts' | 'database' | 'history'>

const PATH = '/app/api/call/history'
const HISTORY = { tag: 'calls', access: 'session' } as const

/** The writer answers it: it alone knows which calls go on for a user. */
const listCallHistory = readWithQuery(PageQuery, {
  ...HISTORY,
  id: 'listCallHistory',
  method: 'GET',
  path: PATH,
  summary: 'Your calls of the last `historyDays`, newest first, with the names that people have now',
  replies: { 200: HistoryPage },
  codes: [],
  handle: (deps: Deps, { requester: { userId }, query, nowMs }) => ({
    status: 200,
    body: deps.database.view(view => historyPage(view, deps, userId, query, nowMs)),
  }),
})

interface HistoryParts extends Pick<ApiDeps, 'accounts' | 'callIndex' | 'calls' | 'history'> {
  readonly contacts: Pick<ApiDeps['contacts'], 'aliasOf'>
}

export function historyPage(
  view: View,
  { accounts, callIndex, calls, contacts, history }: HistoryParts,
  userId: UserId,
  query: Static<typeof PageQuery>,
  nowMs: number,
): Page {
  const active = activeRows(view, calls, callIndex.callsOf(userId), userId)
  const found = history.list(view, userId, { ...rangeOf(query), active }, nowMs)
  const entryOf = ({ createdAtMs, callId }: CallHistoryRow) => ({ atMs: createdAtMs, id: callId })
  const itemOf = (row: CallHistoryRow) => {
    const peers = peersIn(row, userId).map(peerId => ({
      userId: peerId,
      displayName: accounts.displayNameOf(view, peerId),
      alias: contacts.aliasOf(view, userId, peerId),
    }))
    return historyBody(row, peers)
  }
  return pageOf(query, found, entryOf, itemOf)
}

/** Those of the live calls that go on for the user. */
function activeRows(
  view: View,
  calls: HistoryParts['calls'],
  live: readonly CallId[],
  userId: UserId,
): CallHistoryRow[] {
  return live.flatMap(callId => {
    const call = calls.read(view, callId)
    return (call && activeRowOf(call, userId)) ?? []
  })
}

const markHistorySeen = operation({
  ...HISTORY,
  id: 'markCallHistorySeen',
  method: 'POST',
  path: `${PATH}/seen`,
  summary: 'You have looked at your missed calls: they count in the badge no more',
  replies: { 204: null },
  codes: [],
  handle: ({ history }: Deps, { requester: { userId }, commit }) =>
    commit(change => {
      history.markSeen(change, userId)
      return { status: 204 }
    }),
})

const forgetCall = operation({
  ...HISTORY,
  id: 'forgetCall',
  method: 'DELETE',
  path: `${PATH}/{callId}`,
  summary: 'Forget one call',
  replies: { 204: null },
  codes: ['CALL_NOT_FOUND'],
  handle: ({ callIndex, calls, history }: Deps, { requester: { userId }, params, commit }) => {
    const callId = readCallId(params[0])
    // Choice: a call that goes on stays in the list, by itself.
    const live = callIndex.callsOf(userId).filter(each => each === callId)
    return commit(change => {
      const isThere =
        history.remove(change, userId, callId) || activeRows(change, calls, live, userId).length > 0
      if (!isThere) throw callNotFound()
      return { status: 204 }
    })
  },
})

const forgetHistory = operation({
  ...HISTORY,
  id: 'forgetCallHistory',
  method: 'DELETE',
  path: PATH,
  summary: 'Forget all calls',
  replies: { 204: null },
  codes: [],
  handle: ({ history }: Deps, { requester: { userId }, commit }) =>
    commit(change => {
      history.removeAll(change, userId)
      return { status: 204 }
    }),
})

export const CALL_HISTORY: readonly Operation<Deps>[] = [
  listCallHistory,
  markHistorySeen,
  forgetCall,
  forgetHistory,
]
