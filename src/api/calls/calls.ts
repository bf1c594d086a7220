/**
 * What is done to calls (contract 4.3): start, invite, join, decline, leave, end, remove, rejoin, keys. Each request is
 * put to the call's room, which decides; here it is read and the answer written, in whichever process it came to.
 */

import { isOver } from '../../domain/calls/call.ts'
import type { CallCommand, CallReply, CallRequest } from '../../domain/calls/call-command.ts'
import { mediaOf } from '../../domain/calls/call-view.ts'
import { type CallId, type DeviceId, newId, parseUint64, type UserId } from '../../domain/ids.ts'
import { type ErrorCode, SignalError } from '../../errors.ts'
import {
  AcceptedReply,
  CallRecordReply,
  mediaBody,
  RequestRejoinReply,
  recordBody,
} from '../../schema/call.ts'
import {
  AcceptRejoinRequest,
  DeclineRequest,
  EndCallRequest,
  InviteRequest,
  KeysRequest,
  RemoveRequest,
  RequestRejoinRequest,
  StartCallRequest,
  saidAcceptance,
  saidKeys,
} from '../../schema/call-request.ts'
import { formatJson } from '../../schema/json.ts'
import type { IdempotentRequest } from '../../store/tables/idempotency-store.ts'
import type { Requester } from '../accounts/authentication.ts'
import type { ApiDeps, Reading } from '../deps.ts'
import { type Command, command, commandWithBody, type Reply } from '../table/operation.ts'

type Deps = Pick<ApiDeps, 'admit' | 'askRoom' | 'idsAs' | 'randomBytes'> & Pick<Reading, 'calls' | 'database'>

/** The answer to a request that its room has carried out, as it is kept for when the request is repeated. */
export function keptCallReply(
  kind: CallCommand['kind'],
  reply: CallReply,
  { idsAs, admit }: Pick<ApiDeps, 'idsAs' | 'admit'>,
): string {
  const { status, body } = replyTo(kind, reply, admit)
  return JSON.stringify(body === undefined ? { status } : { status, body: formatJson(body, idsAs) })
}

/** The record's text with the room and its tokens as they are now: the call may have gone to another gateway since. */
function withPresentRoom(
  { admit, calls, database, idsAs }: Pick<Deps, 'admit' | 'calls' | 'database' | 'idsAs'>,
  { userId, deviceId }: Requester,
  kept: string,
): string {
  const callId = parseUint64(/^\{"callId":"?(\d+)/.exec(kept)?.[1] ?? '') as CallId | undefined
  const call = callId === undefined ? undefined : database.view(view => calls.read(view, callId))
  // Without a gateway it is as it was, or `media_ready` follows.
  if (call?.gateway === undefined || isOver(call) || deviceId === undefined) return kept
  const media = formatJson(mediaBody(mediaOf(call, { userId, deviceId }), admit), idsAs)
  return kept
    .replace(/"roomId":\d+/, `"roomId":${call.roomId}`)
    .replace(/"media":\{[^{}]*\}/, () => `"media":${media}`)
}

/** The id of a path. Throws `CALL_NOT_FOUND` for any other text. */
export function readCallId(text: string | undefined): CallId {
  const callId = parseUint64(text ?? '')
  if (callId === undefined) throw callNotFound()
  return callId as CallId
}

export function callNotFound(): SignalError {
  return new SignalError('CALL_NOT_FOUND', 'no call of that id has you in it')
}

const COMMAND = { method: 'POST', tag: 'calls', access: 'device' } as const
/** Refusals of any command to a room. */
const ASKED_CODES = ['OVERLOADED'] as const
const KNOWN_CODES = ['CALL_NOT_FOUND', 'CALL_ENDED', 'NOT_PARTICIPANT'] as const
const STARTING_CODES = ['ROOM_IN_USE', 'ALREADY_IN_CALL', 'CALL_CROSSED', 'CALL_ID_TAKEN'] as const
/** Refusals of a device that comes into a call. */
const COMING_CODES = ['ALREADY_IN_CALL', 'CALL_FULL', 'CALL_NOT_ACTIVE', 'REJOIN_REQUIRED'] as const
const CALLING_CODES = ['CALLEE_NOT_CONTACT', 'DEVICE_LIST_MISMATCH', 'PLAINTEXT_KEY_SUSPECTED'] as const
/** Keys of 1,024 bytes for 320 devices (contract 8). */
const KEYS_BODY_BYTES_MAX = 512 * 1024
/** The older forms are deprecated since there is another: 2026-01-01. */
const OLD_PATHS_SINCE = 1_767_225_600

const startCall = commandWithBody(StartCallRequest, {
  ...COMMAND,
  id: 'startCall',
  path: '/app/api/call/start',
  deprecatedAliases: [{ path: '/group-calls/start', since: OLD_PATHS_SINCE }],
  summary: 'Call contacts: each of their devices gets its own key',
  replies: { 201: CallRecordReply },
  codes: [...ASKED_CODES, ...CALLING_CODES, ...STARTING_CODES],
  isIdempotent: true,
  bodyBytesMax: KEYS_BODY_BYTES_MAX,
  repeat: withPresentRoom,
  handle: (deps: Deps, { requester, body, idempotent }) => {
    const { roomId, encryptedAESKeys, keyMembers, isVideo } = body
    const callId = (body.callId ?? newId(deps.randomBytes)) as CallId
    const startRequest: CallRequest = {
      kind: 'start',
      by: deviceOf(requester),
      callId,
      calleeIds: body.calleeIds as UserId[],
      roomId,
      encryptedAESKeys,
      keyMembers,
      isVideo,
    }
    return carryOut(deps, callId, startRequest, idempotent)
  },
})

const inviteToCall = commandWithBody(InviteRequest, {
  ...COMMAND,
  id: 'inviteToCall',
  path: '/app/api/call/{callId}/invite',
  deprecatedAliases: [{ path: '/group-calls/{callId}/invite', since: OLD_PATHS_SINCE }],
  summary: 'Invite contacts into a call that you are in',
  replies: { 200: CallRecordReply },
  codes: [...ASKED_CODES, ...CALLING_CODES, ...KNOWN_CODES, 'NOT_HOST', 'CALL_FULL', 'EPOCH_CONFLICT'],
  isIdempotent: true,
  bodyBytesMax: KEYS_BODY_BYTES_MAX,
  repeat: withPresentRoom,
  handle: (deps: Deps, { requester, body, params, idempotent }) => {
    const { roomId, encryptedAESKeys, keyMembers, isVideo, epoch } = body
    const callId = readCallId(params[0])
    const inviteRequest: CallRequest = {
      kind: 'invite',
      by: deviceOf(requester),
      calleeIds: body.calleeIds as UserId[],
      roomId,
      encryptedAESKeys,
      keyMembers,
      isVideo,
      epoch,
    }
    return carryOut(deps, callId, inviteRequest, idempotent)
  },
})

const joinCall = command({
  ...COMMAND,
  id: 'joinCall',
  path: '/app/api/call/{callId}/join',
  summary: 'Answer an invitation, with the key for this device; from a second device: move the call there',
  replies: { 200: CallRecordReply },
  codes: [...ASKED_CODES, ...KNOWN_CODES, ...COMING_CODES],
  handle: (deps: Deps, { requester, params }) =>
    carryOut(deps, readCallId(params[0]), { kind: 'join', by: deviceOf(requester) }),
})

const declineCall = commandWithBody(DeclineRequest, {
  ...COMMAND,
  id: 'declineCall',
  path: '/app/api/call/{callId}/decline',
  summary: 'Turn an invitation down, on all devices',
  isBodyOptional: true,
  replies: { 204: null },
  codes: [...ASKED_CODES, ...KNOWN_CODES],
  handle: (deps: Deps, { requester, body, params }) =>
    carryOut(deps, readCallId(params[0]), {
      kind: 'decline',
      by: deviceOf(requester),
      reason: body.reason,
    }),
})

const leaveCall = command({
  ...COMMAND,
  id: 'leaveCall',
  path: '/app/api/call/{callId}/leave',
  summary: 'Leave the call; it goes on without you',
  replies: { 204: null },
  codes: [...ASKED_CODES, 'CALL_NOT_FOUND'],
  handle: (deps: Deps, { requester, params }) =>
    carryOut(deps, readCallId(params[0]), { kind: 'leave', by: deviceOf(requester) }),
})

const END = {
  ...COMMAND,
  replies: { 200: CallRecordReply },
  codes: [...ASKED_CODES, ...KNOWN_CODES, 'NOT_HOST'],
} as const

const endCall = commandWithBody(EndCallRequest, {
  ...END,
  id: 'endCall',
  path: '/app/api/call/end',
  summary: 'End the call for everybody: the host, or either of two',
  handle: (deps: Deps, { requester, body }) =>
    carryOut(deps, body.callId as CallId, { kind: 'end', by: deviceOf(requester) }),
})

const endCallAt = command({
  ...END,
  id: 'endCallAt',
  path: '/app/api/call/{callId}/end',
  summary: 'End the call for everybody, named by the path',
  handle: (deps: Deps, { requester, params }) =>
    carryOut(deps, readCallId(params[0]), { kind: 'end', by: deviceOf(requester) }),
})

const removeFromCall = commandWithBody(RemoveRequest, {
  ...COMMAND,
  id: 'removeFromCall',
  path: '/app/api/call/{callId}/remove',
  summary: 'Remove a person from the call, who may not come back by themselves; for the host',
  replies: { 204: null },
  codes: [...ASKED_CODES, ...KNOWN_CODES, 'NOT_HOST', 'USER_NOT_FOUND'],
  handle: (deps: Deps, { requester, body, params }) =>
    carryOut(deps, readCallId(params[0]), {
      kind: 'remove',
      by: deviceOf(requester),
      userId: body.userId as UserId,
    }),
})

const requestRejoin = commandWithBody(RequestRejoinRequest, {
  ...COMMAND,
  id: 'requestRejoin',
  path: '/app/api/call/{callId}/request-rejoin',
  summary: 'Ask everybody in the call for its key',
  isBodyOptional: true,
  replies: { 202: RequestRejoinReply },
  codes: [...ASKED_CODES, ...KNOWN_CODES, 'CALL_NOT_ACTIVE', 'NO_ACTIVE_PARTICIPANT'],
  handle: (deps: Deps, { requester, body: { nonce }, params }) => {
    const callId = readCallId(params[0])
    const rejoinRequest: CallRequest = { kind: 'request-rejoin', by: deviceOf(requester), nonce }
    return carryOut(deps, callId, rejoinRequest)
  },
})

const acceptRejoin = commandWithBody(AcceptRejoinRequest, {
  ...COMMAND,
  id: 'acceptRejoin',
  path: '/app/api/call/{callId}/accept-rejoin',
  summary: 'Give the key to a device that has asked for it',
  replies: { 202: AcceptedReply },
  codes: [...ASKED_CODES, ...KNOWN_CODES, 'CALL_NOT_ACTIVE', 'EPOCH_CONFLICT', 'PLAINTEXT_KEY_SUSPECTED'],
  handle: (deps: Deps, { requester, body, params }) => {
    const acceptance: CallRequest = {
      kind: 'accept-rejoin',
      by: deviceOf(requester),
      ...saidAcceptance(body),
    }
    return carryOut(deps, readCallId(params[0]), acceptance)
  },
})

const rejoinCall = command({
  ...COMMAND,
  id: 'rejoinCall',
  path: '/app/api/call/{callId}/rejoin',
  summary: 'Come back into the call, once the key is there',
  replies: { 200: CallRecordReply },
  codes: [...ASKED_CODES, ...KNOWN_CODES, ...COMING_CODES],
  handle: (deps: Deps, { requester, params }) =>
    carryOut(deps, readCallId(params[0]), { kind: 'rejoin', by: deviceOf(requester) }),
})

const sendKeys = commandWithBody(KeysRequest, {
  ...COMMAND,
  id: 'sendKeys',
  path: '/app/api/call/{callId}/keys',
  summary: 'Give every device in the call a new key (the host), or the present one again (any device in it)',
  replies: { 202: AcceptedReply },
  codes: [
    ...ASKED_CODES,
    ...KNOWN_CODES,
    'NOT_HOST',
    'CALL_NOT_ACTIVE',
    'EPOCH_CONFLICT',
    'DEVICE_LIST_MISMATCH',
    'PLAINTEXT_KEY_SUSPECTED',
  ] as ErrorCode[],
  bodyBytesMax: KEYS_BODY_BYTES_MAX,
  handle: (deps: Deps, { requester, body, params }) =>
    carryOut(deps, readCallId(params[0]), { kind: 'keys', by: deviceOf(requester), ...saidKeys(body) }),
})

export const CALLS: readonly Command<Deps>[] = [
  startCall,
  inviteToCall,
  joinCall,
  declineCall,
  leaveCall,
  endCall,
  endCallAt,
  removeFromCall,
  requestRejoin,
  acceptRejoin,
  rejoinCall,
  sendKeys,
]

async function carryOut(
  { askRoom, admit }: Deps,
  callId: CallId,
  callRequest: CallRequest,
  idempotent?: IdempotentRequest,
): Promise<Reply> {
  const reply = await askRoom(callId, callRequest, idempotent)
  return reply.kind === 'kept' ? JSON.parse(reply.text) : replyTo(callRequest.kind, reply, admit)
}

function replyTo(kind: CallCommand['kind'], reply: CallReply, admit: ApiDeps['admit']): Reply {
  switch (reply.kind) {
    case 'record':
      return { status: kind === 'start' ? 201 : 200, body: recordBody(reply.record, admit) }
    case 'asked':
      return { status: 202, body: { expiresIn: reply.expiresInS, asked: reply.asked } }
    case 'done':
      return kind === 'accept-rejoin' || kind === 'keys' ? { status: 202, body: {} } : { status: 204 }
  }
}

type DeviceRequester = Requester & { readonly deviceId: DeviceId }

function deviceOf({ userId, deviceId }: DeviceRequester) {
  return { userId, deviceId }
}
