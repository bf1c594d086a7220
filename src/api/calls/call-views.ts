/** Looking at calls (contract 4.3): the record, who is in it, and the invitations that wait for an answer. */

import { type Call, hasPart, isOver, keySetOf, participantOf } from '../../domain/calls/call.ts'
import { pendingRecord, recordOf, recordWithKeySets } from '../../domain/calls/call-view.ts'
import type { UserId } from '../../domain/ids.ts'
import { SignalError } from '../../errors.ts'
import {
  CallRecordReply,
  KeyMembersReply,
  keySetBody,
  ParticipantsReply,
  PendingReply,
  participantBody,
  recordBody,
} from '../../schema/call.ts'
import { KeyMembersQuery } from '../../schema/call-request.ts'
import type { ApiDeps, Reading } from '../deps.ts'
import { type Operation, read, readWithQuery } from '../table/operation.ts'
import { callNotFound, readCallId } from './calls.ts'

type Deps = Pick<ApiDeps, 'admit'> & Pick<Reading, 'calls' | 'database'>

const VIEW = { method: 'GET', tag: 'calls', access: 'device' } as const

export const getCall = read({
  ...VIEW,
  id: 'getCall',
  path: '/app/api/call/{callId}',
  summary: 'A live call that you have a part in',
  replies: { 200: CallRecordReply },
  codes: ['CALL_NOT_FOUND', 'CALL_ENDED'],
  handle: (deps: Deps, { requester, params }) => {
    const call = readLiveCall(deps, params[0], requester.userId)
    return { status: 200, body: recordBody(recordWithKeySets(call, requester), deps.admit) }
  },
})

export const getParticipants = read({
  ...VIEW,
  id: 'getParticipants',
  path: '/app/api/call/{callId}/participants',
  summary: 'People who are in the call, were in it, or are invited',
  replies: { 200: ParticipantsReply },
  codes: ['CALL_NOT_FOUND', 'CALL_ENDED'],
  handle: (deps: Deps, { requester, params }) => {
    const call = readLiveCall(deps, params[0], requester.userId)
    const { callId, version, keyEpoch } = call
    const views = recordOf(call, requester).participants
    const participants = views.map(view => participantBody(view, callId, deps.admit))
    return { status: 200, body: { callId, version, keyEpoch, participants } }
  },
})

export const getKeyMembers = readWithQuery(KeyMembersQuery, {
  ...VIEW,
  id: 'getKeyMembers',
  path: '/app/api/call/{callId}/key-members',
  summary: 'The devices that the key of an epoch was sealed for, as its sealer said; of the newest two',
  replies: { 200: KeyMembersReply },
  codes: ['CALL_NOT_FOUND', 'CALL_ENDED', 'KEY_MEMBERS_NOT_FOUND'],
  handle: (deps: Deps, { requester, query: { epoch }, params }) => {
    const call = readLiveCall(deps, params[0], requester.userId)
    const set = keySetOf(call, epoch)
    if (set === undefined) {
      throw new SignalError('KEY_MEMBERS_NOT_FOUND', `no set of devices is kept of epoch ${epoch}`)
    }
    return { status: 200, body: { callId: call.callId, ...keySetBody(set) } }
  },
})

const getPendingCalls = read({
  ...VIEW,
  id: 'getPendingCalls',
  path: '/app/api/call/pending',
  summary: 'Invitations that you have not answered, newest first, each with the key for this device',
  replies: { 200: PendingReply },
  codes: [],
  handle: (
    { admit, database, calls, callIndex }: Deps & Pick<ApiDeps, 'callIndex'>,
    { requester: { userId, deviceId } },
  ) => {
    const mine = database.view(view =>
      callIndex.callsOf(userId).flatMap(callId => calls.read(view, callId) ?? []),
    )
    const newestFirst = mine.sort((a, b) => invitedAtMs(b, userId) - invitedAtMs(a, userId))
    const records = newestFirst.flatMap(call => pendingRecord(call, { userId, deviceId }) ?? [])
    return { status: 200, body: { items: records.map(record => recordBody(record, admit)) } }
  },
})

export const CALL_VIEWS: readonly Operation<Deps & Pick<ApiDeps, 'callIndex'>>[] = [
  getCall,
  getParticipants,
  getKeyMembers,
  getPendingCalls,
]

/** Throws `CALL_NOT_FOUND`, or `CALL_ENDED` to those who had a part in it. */
function readLiveCall({ database, calls }: Deps, text: string | undefined, userId: UserId): Call {
  const callId = readCallId(text)
  const call = database.view(view => calls.read(view, callId))
  if (call === undefined || !hasPart(call, userId)) throw callNotFound()
  if (isOver(call)) throw new SignalError('CALL_ENDED', `the call is over: ${call.status}`)
  return call
}

function invitedAtMs(call: Call, userId: UserId): number {
  return participantOf(call, userId)?.invitedAtMs ?? 0
}
