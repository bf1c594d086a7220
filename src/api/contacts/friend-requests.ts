/**
 * Friend requests (contract 3.2 to 3.4): ask by id, by share token or by search; accept, decline, cancel, list. What is
 * told to whom is decided by `domain/friend-request.ts`; here nothing is added that would tell more.
 */

import type { Static } from 'typebox'
import { normalizeMessage } from '../../domain/accounts/display-name.ts'
import type { KeysShown } from '../../domain/contacts/friend-request.ts'
import {
  type ClosingDecision,
  CONTACTS_MAX,
  type FriendRequest,
  OUTGOING_MAX,
  REQUEST_OPEN_MS,
} from '../../domain/contacts/friend-request.ts'
import { type DeviceId, newId, type RequestId, type UserId } from '../../domain/ids.ts'
import { type ErrorCode, SignalError } from '../../errors.ts'
import { invalidMember } from '../../schema/check.ts'
import {
  AcceptReply,
  IncomingRequest,
  OutgoingRequest,
  RequestByIdRequest,
  RequestBySearchRequest,
  RequestByTokenRequest,
  RequestPage,
  RequestReply,
  RequestsQuery,
  SubmittedReply,
} from '../../schema/contact.ts'
import { timeText } from '../../schema/time.ts'
import type { RequestCommand } from '../../store/contacts/contact-store.ts'
import type { ShareToken } from '../../store/contacts/contact-tables.ts'
import type { Change, View } from '../../store/engine/store.ts'
import type { ApiDeps, Reading } from '../deps.ts'
import { type LastingRate, refuseCounted, takeRate } from '../table/lasting-rates.ts'
import {
  type Operation,
  type OperationRequest,
  operation,
  operationWithBody,
  pathId,
  type Reply,
  readWithQuery,
} from '../table/operation.ts'
import { type Page, pageOf, rangeOf } from '../table/page.ts'
import { assertByUsers, isReachable, keysOf, personOf, shownDevices, userNotFound } from './people.ts'
import { assertLive, findShareToken, tokenNotFound } from './share-tokens.ts'

type Deps = Pick<
  ApiDeps,
  | 'accounts'
  | 'addresses'
  | 'contacts'
  | 'contactsBy'
  | 'database'
  | 'deviceLists'
  | 'devices'
  | 'identityOf'
  | 'randomBytes'
  | 'rateLimits'
  | 'rates'
  | 'searches'
  | 'shareTokens'
>

const ASKING_CODES = [
  'CONTACTS_BY_SERVER',
  'SELF_REQUEST',
  'ALREADY_FRIENDS',
  'USER_BLOCKED',
  'CONTACT_LIMIT',
  'PENDING_LIMIT',
] as const
const RULES = { method: 'POST', tag: 'contacts', access: 'session', isIdempotent: true } as const
/** By id and by token together. */
const REQUESTS: LastingRate = {
  name: 'friend-request',
  rates: ['friend-request', 'friend-request-day'],
}
const SEARCHES: LastingRate = {
  name: 'search',
  rates: ['search', 'search-day'],
}

const requestById = operationWithBody(RequestByIdRequest, {
  ...RULES,
  id: 'requestById',
  path: '/app/api/friend-request/by-id',
  summary: 'Ask a user to become a contact; when they have asked already, both are contacts',
  replies: { 200: RequestReply, 201: RequestReply },
  codes: ['USER_NOT_FOUND', ...ASKING_CODES],
  handle: (deps: Deps, request) => {
    assertByUsers(deps)
    const receiverId = request.body.targetUserId as UserId
    return ask(deps, request, { receiverId, route: 'id', rate: REQUESTS })
  },
})

const requestByToken = operationWithBody(RequestByTokenRequest, {
  ...RULES,
  id: 'requestByToken',
  path: '/app/api/friend-request/by-token',
  summary: 'Ask the owner of a share token to become a contact; answers with the keys of their devices',
  replies: { 200: RequestReply, 201: RequestReply },
  codes: ['SHARE_TOKEN_NOT_FOUND', 'SHARE_TOKEN_EXPIRED', ...ASKING_CODES],
  handle: async (deps: Deps, request) => {
    const { requester, body, nowMs } = request
    assertByUsers(deps)
    const token = await findShareToken(deps, requester.userId, body.token, nowMs)
    return ask(deps, request, { receiverId: token.userId, route: 'token', rate: REQUESTS, token })
  },
})

const requestBySearch = operationWithBody(RequestBySearchRequest, {
  ...RULES,
  id: 'requestBySearch',
  path: '/app/api/friend-request',
  summary: 'Ask by email or phone, without hearing whether a user was found, or by the hash of a key',
  replies: { 200: RequestReply, 201: RequestReply, 202: SubmittedReply },
  codes: ['USER_NOT_FOUND', 'BLOCKED_COUNTRY', ...ASKING_CODES],
  handle: (deps: Deps, request) => {
    const { email, phone, publicKeyHash } = request.body
    assertByUsers(deps)
    const named = [email, phone, publicKeyHash].filter(text => text !== undefined)
    if (named.length !== 1) throw fault('', 'has to name one of email, phone and publicKeyHash')
    if (publicKeyHash === undefined) return askAddress(deps, request)
    return askKeyOwner(deps, request, publicKeyHash)
  },
})

interface Asking {
  readonly receiverId: UserId
  readonly route: RequestCommand['route']
  readonly rate: LastingRate
  readonly token?: ShareToken
}

type CheckedAsking = OperationRequest<{ readonly message?: string }, undefined, 'session'>

/**
 * What asks for somebody who can be told of; a token's owner has been looked for already. Only what the sender learns
 * something by, or makes, is counted.
 */
async function ask(deps: Deps, request: CheckedAsking, asking: Asking): Promise<Reply> {
  const { contacts } = deps
  const { requester, nowMs } = request
  const { receiverId, rate, token } = asking
  const command = commandOf(deps, request, receiverId, asking.route)
  if (receiverId === requester.userId) throw new SignalError('SELF_REQUEST', "you can't be your own contact")
  if (token === undefined && !deps.database.view(view => isReachable(view, deps, receiverId))) {
    return refuseCounted(deps, rate, { userId: requester.userId, nowMs }, userNotFound())
  }
  return request.commit(change => {
    if (token !== undefined) assertLive(current(change, deps, token), nowMs)
    const decision = contacts.decideRequest(change, command, nowMs)
    if (decision.kind === 'refused') throw refusal(decision.code)
    if (decision.kind !== 'repeated') takeRate(deps, change, rate, requester.userId)
    const friendRequest = contacts.request(change, command, decision)
    if (token !== undefined && decision.kind === 'created') {
      deps.shareTokens.use(change, current(change, deps, token))
    }
    const status = decision.kind === 'created' ? 201 : 200
    const keysShown = contacts.keysShown(change, requester.userId, receiverId, nowMs)
    return { status, body: viewOf(change, deps, friendRequest, { userId: receiverId, keysShown }) }
  })
}

/** Answers the same in the same time, whoever the address is of: they are looked for later. */
function askAddress(
  deps: Deps,
  request: OperationRequest<Static<typeof RequestBySearchRequest>, undefined, 'session'>,
): Promise<Reply> {
  const { searches, addresses, randomBytes } = deps
  const { requester, body } = request
  const { email, phone, country } = body
  const { kind, key } = addresses.readNamed({ email, phone, country })
  const message = readMessage(body.message)
  return request.commit(change => {
    takeRate(deps, change, SEARCHES, requester.userId)
    const requestId = newId(randomBytes) as RequestId
    searches.leave(change, { requestId, senderId: requester.userId, address: { kind, key }, message })
    return { status: 202, body: { status: 'submitted' } }
  })
}

function askKeyOwner(deps: Deps, request: CheckedAsking, publicKeyHash: string): Promise<Reply> {
  const identity = deps.identityOf(Buffer.from(publicKeyHash, 'base64'))
  const isKnown =
    identity !== undefined && deps.database.view(view => isKnownDevice(view, deps, request, identity))
  if (!isKnown) {
    const taker = { userId: request.requester.userId, nowMs: request.nowMs }
    return refuseCounted(deps, SEARCHES, taker, userNotFound())
  }
  return ask(deps, request, { receiverId: identity.userId as UserId, route: 'id', rate: SEARCHES })
}

/** Also one that was removed, to somebody who is shown it: else they could try whether it was. */
function isKnownDevice(
  view: View,
  deps: Deps,
  { requester, nowMs }: CheckedAsking,
  identity: { readonly userId: bigint; readonly deviceId: bigint },
): boolean {
  const { devices, contacts } = deps
  const [userId, deviceId] = [identity.userId as UserId, identity.deviceId as DeviceId]
  if (devices.active(view, userId, deviceId) !== undefined) return true
  const shown = contacts.keysShown(view, requester.userId, userId, nowMs)
  return (
    shown !== undefined && shownDevices(view, deps, userId, shown).some(each => each.deviceId === deviceId)
  )
}

const acceptRequest = operationWithBody(IncomingRequest, {
  ...RULES,
  id: 'acceptRequest',
  path: '/app/api/friend-request/accept',
  summary: 'Accept a request, named by its id or its sender: both are contacts',
  replies: { 200: AcceptReply },
  codes: ['REQUEST_NOT_FOUND', 'REQUEST_CLOSED', 'CONTACT_LIMIT', 'CONTACTS_BY_SERVER'],
  handle: (deps: Deps, { requester: { userId }, body, nowMs, commit }) => {
    assertByUsers(deps)
    return commit(change => {
      const sentBy = (senderId: UserId) => deps.contacts.incomingFrom(change, senderId, userId, nowMs)
      const { senderId } = closedBy(deps.contacts.accept(change, requestIdOf(body, sentBy), userId))
      const contact = { ...personOf(change, deps, senderId), since: timeText(nowMs) }
      return { status: 200, body: { contact, ...keysOf(change, deps, senderId) } }
    })
  },
})

const declineRequest = operationWithBody(IncomingRequest, {
  ...RULES,
  id: 'declineRequest',
  path: '/app/api/friend-request/decline',
  summary: 'Decline a request, named by its id or its sender, who does not hear of it',
  replies: { 204: null },
  codes: ['REQUEST_NOT_FOUND', 'REQUEST_CLOSED'],
  handle: ({ contacts }: Deps, { requester: { userId }, body, nowMs, commit }) =>
    commit(change => {
      const sentBy = (senderId: UserId) => contacts.incomingFrom(change, senderId, userId, nowMs)
      closedBy(contacts.decline(change, requestIdOf(body, sentBy), userId))
      return { status: 204 }
    }),
})

const CANCEL = {
  ...RULES,
  replies: { 204: null },
  codes: ['REQUEST_NOT_FOUND', 'REQUEST_CLOSED'],
} as const

const cancelRequest = operationWithBody(OutgoingRequest, {
  ...CANCEL,
  id: 'cancelRequest',
  path: '/app/api/friend-request/cancel',
  summary: "Take one's own request back, named by its id or its receiver",
  handle: (deps: Deps, request) => cancel(deps, request, request.body),
})

const cancelRequestAt = operation({
  ...CANCEL,
  id: 'cancelRequestAt',
  method: 'DELETE',
  path: '/app/api/friend-request/{requestId}',
  summary: "Take one's own request back, named by the path",
  handle: (deps: Deps, request) => {
    const requestId = pathId(request.params)
    if (requestId === undefined) throw refusal('REQUEST_NOT_FOUND')
    return cancel(deps, request, { requestId })
  },
})

type Cancelling = Pick<OperationRequest<unknown, undefined, 'session'>, 'requester' | 'nowMs' | 'commit'>
type NamedRequest = Static<typeof IncomingRequest | typeof OutgoingRequest>

function cancel(
  { contacts }: Deps,
  { requester: { userId }, nowMs, commit }: Cancelling,
  named: NamedRequest,
): Promise<Reply> {
  return commit(change => {
    const sentTo = (receiverId: UserId) => contacts.outgoingTo(change, userId, receiverId, nowMs)
    closedBy(contacts.cancel(change, requestIdOf(named, sentTo), userId))
    return { status: 204 }
  })
}

/** The id that is given, or that of the request found for the other user. */
function requestIdOf(
  { requestId, userId }: NamedRequest,
  find: (userId: UserId) => FriendRequest | undefined,
): bigint {
  if ((requestId === undefined) === (userId === undefined)) {
    throw fault('', 'has to name one of requestId and userId')
  }
  const named = requestId ?? find(userId as UserId)?.requestId
  if (named === undefined) throw refusal('REQUEST_NOT_FOUND')
  return named
}

export const listRequests = readWithQuery(RequestsQuery, {
  id: 'listRequests',
  method: 'GET',
  path: '/app/api/friend-request',
  tag: 'contacts',
  summary: 'Open requests to the user, or by the user, newest first',
  access: 'session',
  replies: { 200: RequestPage },
  codes: [],
  handle: (
    deps: Pick<ApiDeps, 'accounts'> & Pick<Reading, 'contacts' | 'database'>,
    { requester: { userId }, query, nowMs },
  ) => ({
    status: 200,
    body: deps.database.view(view => requestPage(view, deps, userId, query, nowMs)),
  }),
})

export function requestPage(
  view: View,
  deps: Pick<ApiDeps, 'accounts'> & Pick<Reading, 'contacts'>,
  userId: UserId,
  query: Static<typeof RequestsQuery>,
  nowMs: number,
): Page {
  const { direction = 'incoming' } = query
  const found = deps.contacts.readRequests(view, userId, direction, { ...rangeOf(query), nowMs })
  const entryOf = ({ createdAtMs, requestId }: FriendRequest) => ({ atMs: createdAtMs, id: requestId })
  const itemOf = (request: FriendRequest) => ({
    requestId: request.requestId,
    direction,
    status: 'pending',
    user: personOf(view, deps, direction === 'incoming' ? request.senderId : request.receiverId),
    message: request.message,
    createdAt: timeText(request.createdAtMs),
    expiresAt: timeText(request.createdAtMs + REQUEST_OPEN_MS),
  })
  return pageOf(query, found, entryOf, itemOf)
}

export const FRIEND_REQUESTS: readonly Operation<Deps>[] = [
  requestById,
  requestByToken,
  requestBySearch,
  acceptRequest,
  declineRequest,
  cancelRequest,
  cancelRequestAt,
  listRequests,
]

function commandOf(
  { randomBytes }: Deps,
  { requester, body }: CheckedAsking,
  receiverId: UserId,
  route: RequestCommand['route'],
): RequestCommand {
  return {
    requestId: newId(randomBytes) as RequestId,
    senderId: requester.userId,
    receiverId,
    route,
    message: readMessage(body.message),
  }
}

/** The message as it is kept. Throws `VALIDATION_FAILED`. */
function readMessage(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const message = normalizeMessage(text)
  if (message === undefined)
    throw fault('/message', 'has more than 200 characters or 1,600 bytes, or some that no text has')
  return message
}

/** The token as it is in this change: others may have used or revoked it since it was found. */
function current(change: Change, { shareTokens }: Deps, { userId, tokenId }: ShareToken): ShareToken {
  const token = shareTokens.read(change, userId, tokenId)
  if (token === undefined) throw tokenNotFound()
  return token
}

/** A request that was made or met, as its sender sees it, or either once it is accepted. */
function viewOf(
  change: Change,
  deps: Deps,
  { requestId, state, isByToken, createdAtMs }: FriendRequest,
  other: { readonly userId: UserId; readonly keysShown: KeysShown | undefined },
): object {
  const isAccepted = state === 'accepted'
  return {
    requestId,
    status: isAccepted ? 'accepted' : 'pending',
    user: personOf(change, deps, other.userId),
    createdAt: timeText(createdAtMs),
    ...(isAccepted || isByToken ? keysOf(change, deps, other.userId, other.keysShown) : {}),
  }
}

/** The request that a command has closed. Throws what the command was refused for. */
function closedBy(decision: ClosingDecision): FriendRequest {
  if (decision.kind === 'refused') throw refusal(decision.code)
  return decision.request
}

function refusal(code: ErrorCode): SignalError {
  return new SignalError(code, SENTENCES[code] ?? 'the request is not possible')
}

function fault(pointer: string, detail: string): SignalError {
  return invalidMember(pointer, pointer === '' ? 'REQUIRED' : 'FORMAT', detail)
}

const SENTENCES: Partial<Record<ErrorCode, string>> = {
  ALREADY_FRIENDS: 'you are contacts already',
  USER_BLOCKED: 'you have blocked this user: unblock them first',
  CONTACT_LIMIT: `you have ${CONTACTS_MAX} contacts already`,
  PENDING_LIMIT: `you have ${OUTGOING_MAX} open requests already`,
  REQUEST_NOT_FOUND: 'no such request',
  REQUEST_CLOSED: 'this request is closed',
}
