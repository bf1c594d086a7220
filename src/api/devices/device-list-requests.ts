/** `PUT user/device-list` and `GET user/device-lists`; and the members of `register_device` that say which signing key and list a device has. */

import type { Static } from 'typebox'
import { p256Verify } from '#primitives'
import { possessionChallenge } from '../../domain/accounts/token.ts'
import { restrictionError } from '../../domain/devices/restriction.ts'
import { type DeviceId, isOwnId, type UserId } from '../../domain/ids.ts'
import type { Secrets } from '../../domain/secrets.ts'
import { SignalError } from '../../errors.ts'
import { DEVICE_LISTS_PER_PAGE } from '../../limits.ts'
import { encodeBase64 } from '../../log/base64.ts'
import { type DeviceList, LIST_SIGNATURE_BYTES, parseDeviceList } from '../../log/device-list.ts'
import { isP256Point } from '../../log/p256.ts'
import { possessionMessage } from '../../log/signing-messages.ts'
import { invalidMember } from '../../schema/check.ts'
import {
  DeviceListsQuery,
  DeviceListsReply,
  PutDeviceListReply,
  PutDeviceListRequest,
  type RegisterDeviceRequest,
} from '../../schema/device.ts'
import { sessionIdOf } from '../../store/accounts/session-store.ts'
import type { LoggedDeviceList } from '../../store/devices/device-tables.ts'
import type { View } from '../../store/engine/store.ts'
import type { Requester } from '../accounts/authentication.ts'
import { freshForS, requireFreshProof, type StepUpDeps } from '../accounts/step-up.ts'
import type { ApiDeps } from '../deps.ts'
import { operationWithBody, readWithQuery } from '../table/operation.ts'
import type { DeviceLists } from './device-lists.ts'
import type { RegistrationCommand } from './device-registration.ts'

/** The newest list of a user, as members of a reply; none where the user has no list. */
export function deviceListMembers(
  view: View,
  { deviceLists }: Pick<ApiDeps, 'deviceLists'>,
  userId: UserId,
): object {
  const newest = deviceLists.newest(view, userId)
  if (newest === undefined) return {}
  const { deviceListHash, deviceListIndex } = entryMembers(newest)
  return { deviceList: encodeBase64(newest.list), deviceListHash, deviceListIndex }
}

export const putDeviceList = operationWithBody(PutDeviceListRequest, {
  id: 'putDeviceList',
  method: 'PUT',
  path: '/app/api/user/device-list',
  tag: 'devices',
  summary: "Replace the user's device list by one that follows it, or start over with another first one",
  access: 'restricted-device',
  replies: { 200: PutDeviceListReply },
  codes: [
    'DEVICE_LIST_CONFLICT',
    'DEVICE_NOT_LISTED',
    'DEVICE_LIMIT',
    'STEP_UP_REQUIRED',
    'DELIVERY_UNAVAILABLE',
    'RATE_LIMITED',
    'LOG_UNAVAILABLE',
    'OVERLOADED',
  ],
  readsIfMatch: true,
  handle: async (deps: StartOverDeps & { readonly lists: Pick<DeviceLists, 'put'> }, request) => {
    const { requester, body, ifMatch } = request
    const logged = await deps.lists.put({
      userId: requester.userId,
      sessionId: sessionIdOf(requester.sessionName),
      list: octetsOf('/list', body.list),
      knownSeq: seqIn(ifMatch),
      async requireFreshProof() {
        assertMayStartOver(deps, request)
        await requireFreshProof(withProof(deps), request)
      },
    })
    return { status: 200, body: { deviceListSeq: logged.seq, ...entryMembers(logged) } }
  },
})

/**
 * An unlisted device starts over only where no device of the list was seen lately, or none has answered while its sign-in
 * waited: else a code alone, or a careless approval, would take the account from its owner.
 */
function assertMayStartOver(
  { database, restrictions, waitingSignIns }: StartOverDeps,
  { requester, nowMs }: { readonly requester: Requester; readonly nowMs: number },
): void {
  const { userId, session } = requester
  const isUnanswered = session.isUnanswered === true && nowMs < session.createdAtMs + STARTS_OVER_MS
  if (isUnanswered || restrictions.current(requester) === undefined) return
  if (database.view(view => waitingSignIns.isAsked(view, userId, nowMs)))
    throw new SignalError(
      'DEVICE_NOT_LISTED',
      'a device of your list was seen lately: approve this one there, or sign in anew and wait for the time of an answer',
    )
}

type StartOverDeps = StepUpDeps & Pick<ApiDeps, 'restrictions' | 'waitingSignIns'>

/** Starting over takes the account from its other devices: a stolen token alone never does that. */
function withProof(deps: StepUpDeps): StepUpDeps {
  return { ...deps, stepUpSeconds: freshForS(deps) }
}

/** Lists that a contact missed: those who may read the user's keys may read them. */
export const readDeviceLists = readWithQuery(DeviceListsQuery, {
  id: 'readDeviceLists',
  method: 'GET',
  path: '/app/api/user/device-lists',
  tag: 'devices',
  summary: "A user's device lists from the last one of seq 0 on",
  access: 'restricted',
  replies: { 200: DeviceListsReply },
  codes: ['USER_NOT_FOUND', 'RATE_LIMITED', 'DEVICE_NOT_LISTED', 'DEVICE_REQUIRED'],
  rates: [{ name: 'public-keys', by: 'user' }],
  handle: (
    deps: Pick<
      ApiDeps,
      'accounts' | 'database' | 'deviceLists' | 'keysShown' | 'requestRates' | 'restrictions'
    >,
    { requester, query },
  ) => {
    const userId = (query.userId ?? requester.userId) as UserId
    const isOwn = userId === requester.userId
    if (!isOwn) assertUnrestricted(deps, requester)
    const isShown = isOwn || deps.keysShown(requester.userId, userId) !== undefined
    const lists = deps.database.view(view =>
      isShown && deps.accounts.read(view, userId) !== undefined
        ? deps.deviceLists.chain(view, userId, query.after, DEVICE_LISTS_PER_PAGE)
        : undefined,
    )
    if (lists === undefined) {
      countUnavailable(deps, requester.userId, 1)
      throw new SignalError('USER_NOT_FOUND', 'no such user, or none whose keys you may read')
    }
    return { status: 200, body: { lists: lists.map(encodeBase64) } }
  },
})

/** Throws its restriction to a session that has one: of other people it reads nothing. */
export function assertUnrestricted(
  { restrictions }: Pick<ApiDeps, 'restrictions'>,
  requester: Requester,
): void {
  const restriction = restrictions.current(requester)
  if (restriction !== undefined) throw restrictionError(restriction)
}

/** Throws `RATE_LIMITED` to a user who tries ids: names and keys of people whom strangers may call are behind some. */
export function countUnavailable(
  { requestRates }: Pick<ApiDeps, 'requestRates'>,
  asker: UserId,
  count: number,
): void {
  requestRates?.takeMany('public-keys-unavailable', 'user', `${asker}`, count)
}

/** Throws `VALIDATION_FAILED` for a signing key without possession, and for a list that can't be a device's first one. */
export function signingMembers(
  secrets: Pick<Secrets, 'possession'>,
  sessionId: Uint8Array,
  body: Static<typeof RegisterDeviceRequest>,
): Pick<RegistrationCommand, 'signingKey' | 'deviceList' | 'listedDeviceId'> {
  const { signingKey, possession, deviceList } = body
  if (signingKey === undefined) {
    for (const name of ['possession', 'deviceList'] as const) {
      if (body[name] !== undefined)
        throw invalidMember('/signingKey', 'REQUIRED', `is needed beside \`${name}\``)
    }
    return { signingKey, deviceList: undefined, listedDeviceId: undefined }
  }
  const key = octetsOf('/signingKey', signingKey)
  if (!isP256Point(key))
    throw invalidMember('/signingKey', 'FORMAT', 'must be an uncompressed point of P-256')
  if (possession === undefined)
    throw invalidMember('/possession', 'REQUIRED', 'is needed beside `signingKey`')
  const signature = octetsOf('/possession', possession)
  if (signature.length !== LIST_SIGNATURE_BYTES)
    throw invalidMember('/possession', 'LENGTH', `must be ${LIST_SIGNATURE_BYTES} octets: r and s`)
  const challenge = Buffer.from(possessionChallenge(secrets.possession, sessionId), 'base64')
  if (!p256Verify(key, possessionMessage(challenge), signature)) {
    const detail = 'is not a signature by `signingKey` over the `challenge` of this session'
    throw invalidMember('/possession', 'SIGNATURE', detail)
  }
  if (deviceList === undefined) return { signingKey, deviceList, listedDeviceId: undefined }
  const list = octetsOf('/deviceList', deviceList)
  const [device, ...more] = firstListIn(list).devices
  if (more.length > 0) throw invalidMember('/deviceList', 'NOT_ALONE', 'must name this device alone')
  if (!isOwnId(device!.deviceId))
    throw invalidMember('/deviceList', 'DEVICE_ID', 'must choose a device id from 2^32 up to 2^53')
  return { signingKey, deviceList: list, listedDeviceId: device!.deviceId as DeviceId }
}

function firstListIn(octets: Uint8Array): DeviceList {
  try {
    return parseDeviceList(octets)
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
    throw invalidMember('/deviceList', 'MALFORMED', error.message)
  }
}

function octetsOf(pointer: string, text: string): Uint8Array {
  const octets = Buffer.from(text, 'base64')
  if (octets.toString('base64') !== text) throw invalidMember(pointer, 'FORMAT', 'must be canonical base64')
  return Uint8Array.from(octets)
}

/** The seq in `If-Match`, with or without quotes; undefined where the header was not sent. */
function seqIn(ifMatch: string): number | undefined {
  if (ifMatch === '') return undefined
  const seq = Number(IF_MATCH_FORM.exec(ifMatch)?.groups?.seq)
  if (Number.isSafeInteger(seq)) return seq
  throw invalidMember('', 'HEADER', 'If-Match has the seq of the newest list, such as "3"')
}

function entryMembers({ vrfHash, index }: LoggedDeviceList) {
  return { deviceListHash: encodeBase64(vrfHash), deviceListIndex: String(index) }
}

/** So long after an unanswered wait; then its owner may be there again. */
const STARTS_OVER_MS = 86_400_000
const IF_MATCH_FORM = /^(?<quote>"?)(?<seq>0|[1-9][0-9]{0,15})\k<quote>$/
