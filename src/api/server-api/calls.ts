/** Calls as the operator sees them, ends them and takes people out of them. */

import type { Call } from '../../domain/calls/call.ts'
import type { UserId } from '../../domain/ids.ts'
import { readUserRef, type UserRef } from '../../domain/operators/user-ref.ts'
import { SignalError } from '../../errors.ts'
import {
  CallsQuery,
  momentBody,
  RemoveFromCallRequest,
  ServerCallPage,
  ServerCallView,
  serverCallBody,
} from '../../schema/server-call.ts'
import type { View } from '../../store/engine/store.ts'
import type { ListEntry, ListRange } from '../../store/tables/id-lists.ts'
import { readCallId } from '../calls/calls.ts'
import { pageOf, rangeOf } from '../table/page.ts'
import {
  type ServerOperation,
  serverOperation,
  serverOperationWithBody,
  serverRead,
  serverReadWithQuery,
} from '../table/server-operation.ts'
import type { ServerApiDeps } from './deps.ts'

type Deps = Pick<
  ServerApiDeps,
  'accounts' | 'callIndex' | 'calls' | 'database' | 'operateRoom' | 'serverUsers'
>

const CALLS_RULES = { tag: 'calls of users', scope: 'calls' } as const
const CALL_PATH = '/server/api/v1/calls/{callId}'
const COMMAND = {
  ...CALLS_RULES,
  method: 'POST',
  replies: { 204: null },
  isIdempotent: true,
} as const

export const SERVER_CALLS: readonly ServerOperation<Deps>[] = [
  serverReadWithQuery(CallsQuery, {
    ...CALLS_RULES,
    id: 'listCalls',
    method: 'GET',
    path: '/server/api/v1/calls',
    summary: 'Live calls, newest first, or those that ended in the last 24 hours',
    replies: { 200: ServerCallPage },
    codes: [],
    handle(deps: Deps, { query: { live = true, ...query } }) {
      const { callIndex, calls, database } = deps
      const range = rangeOf(query)
      return database.view(view => {
        const ended = live ? [] : calls.readEnded(view, range).flatMap(({ id }) => calls.read(view, id) ?? [])
        const found = live ? liveIn(callIndex.all(), range) : ended
        const entryOf = live ? startOf : endOf
        const itemOf = (call: Call) => serverCallBody(call, externalIdIn(view, deps))
        return { status: 200, body: pageOf(query, found, entryOf, itemOf) }
      })
    },
  }),
  serverRead({
    ...CALLS_RULES,
    id: 'getCallOfUsers',
    method: 'GET',
    path: CALL_PATH,
    summary: 'A call with its time line, for 24 hours after its end, too',
    replies: { 200: ServerCallView },
    codes: ['CALL_NOT_FOUND'],
    handle(deps: Deps, { params }) {
      const { calls, database } = deps
      const callId = readCallId(params[0])
      return database.view(view => {
        const call = calls.read(view, callId)
        if (call === undefined) throw new SignalError('CALL_NOT_FOUND', 'there is no such call any more')
        const timeLine = call.timeLine.map(momentBody)
        return { status: 200, body: { ...serverCallBody(call, externalIdIn(view, deps)), timeLine } }
      })
    },
  }),
  serverOperation({
    ...COMMAND,
    id: 'endCallOfUsers',
    path: `${CALL_PATH}/end`,
    summary: 'Ends a call for all, with the reason `operator`; no error where it has ended',
    codes: ['CALL_NOT_FOUND', 'OVERLOADED'],
    async handle({ operateRoom }: Deps, { params, auditRow, idempotent }) {
      const callId = readCallId(params[0])
      const audit = auditRow(`call:${callId}`)
      await operateRoom(callId, { kind: 'operator-end' }, { audit, idempotent })
      return { status: 204 }
    },
  }),
  serverOperationWithBody(RemoveFromCallRequest, {
    ...COMMAND,
    id: 'removeUserFromCall',
    path: `${CALL_PATH}/remove`,
    summary:
      'Takes a user out of a call, who may not come back by themselves; a call that leaves one person alone for good ends',
    codes: ['CALL_NOT_FOUND', 'CALL_ENDED', 'USER_NOT_FOUND', 'OVERLOADED'],
    async handle(deps: Deps, { params, body, auditRow, idempotent }) {
      const callId = readCallId(params[0])
      const userId = removedBy(deps, readUserRef(body.ref))
      const audit = auditRow(`call:${callId} id:${userId}`)
      await deps.operateRoom(callId, { kind: 'operator-remove', userId }, { audit, idempotent })
      return { status: 204 }
    },
  }),
]

/** A user of the call may have no account any more. Throws `USER_NOT_FOUND`. */
function removedBy({ database, serverUsers }: Deps, ref: UserRef): UserId {
  return ref.kind === 'id' ? ref.userId : database.view(view => serverUsers.userOf(view, ref))
}

function externalIdIn(view: View, { accounts }: Deps): (userId: UserId) => string | undefined {
  return userId => accounts.read(view, userId)?.externalId
}

/** Newest first, in the order of a cursor. */
function liveIn(calls: readonly Call[], { limit, after }: ListRange): readonly Call[] {
  const isBehind = (call: Call) => after === undefined || compare(startOf(call), after) > 0
  return calls
    .filter(isBehind)
    .sort((one, other) => compare(startOf(one), startOf(other)))
    .slice(0, limit)
}

function compare(one: ListEntry, other: ListEntry): number {
  return other.atMs - one.atMs || Number(other.id > one.id) - Number(other.id < one.id)
}

function startOf({ createdAtMs, callId }: Call): ListEntry {
  return { atMs: createdAtMs, id: callId }
}

function endOf({ endedAtMs, callId }: Call): ListEntry {
  return { atMs: endedAtMs!, id: callId }
}
