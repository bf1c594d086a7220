/**
 * Devices and their keys (contract 2.5): register, list, remove, renew push tokens, and read the keys of people one
 * has to do with.
 */

import type { Static } from 'typebox'
import { normalizeLabel } from '../../domain/accounts/display-name.ts'
import { PRESENT_KEYS } from '../../domain/contacts/friend-request.ts'
import { type Device, type DeviceInfo, deviceName, pushTokensAfter } from '../../domain/devices/device.ts'
import { otherEncodingOf, readPublicKey } from '../../domain/devices/public-key.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import { SignalError } from '../../errors.ts'
import { invalidMember } from '../../schema/check.ts'
import {
  DeviceInfoBody,
  DeviceList,
  PublicKeysQuery,
  PublicKeysReply,
  PutPushRequest,
  RegisterDeviceReply,
  RegisterDeviceRequest,
} from '../../schema/device.ts'
import { timeText } from '../../schema/time.ts'
import { sessionIdOf } from '../../store/accounts/session-store.ts'
import { withPush } from '../../store/devices/device-store.ts'
import type { View } from '../../store/engine/store.ts'
import { assertLasts } from '../accounts/authentication.ts'
import type { StepUpDeps } from '../accounts/step-up.ts'
import { shownDevices } from '../contacts/people.ts'
import type { ApiDeps, Reading } from '../deps.ts'
import {
  type Operation,
  type OperationRequest,
  operation,
  operationWithBody,
  pathId,
  read,
  readWithQuery,
} from '../table/operation.ts'
import {
  assertUnrestricted,
  countUnavailable,
  deviceListMembers,
  putDeviceList,
  readDeviceLists,
  signingMembers,
} from './device-list-requests.ts'
import type { DeviceLists } from './device-lists.ts'
import type { DeviceRegistration, RegistrationCommand } from './device-registration.ts'
import { assertMayEnd, removeDevice } from './device-removal.ts'
import { tellPushLosses } from './push-losses.ts'
import { known, pushTokensIn } from './sent-members.ts'

type Deps = Pick<
  ApiDeps,
  | 'accounts'
  | 'database'
  | 'deviceLists'
  | 'devices'
  | 'inbox'
  | 'keysShown'
  | 'notices'
  | 'proveAbsences'
  | 'requestRates'
  | 'restrictions'
  | 'secrets'
  | 'sessions'
  | 'waitingSignIns'
  | 'webPushHosts'
> &
  StepUpDeps & {
    readonly lists: Pick<DeviceLists, 'put'>
    readonly registration: Pick<DeviceRegistration, 'register'>
  }

const registerDevice = operationWithBody(RegisterDeviceRequest, {
  id: 'registerDevice',
  method: 'POST',
  path: '/app/api/register_device',
  aliases: ['/app/api/register-device'],
  tag: 'devices',
  summary: 'Register a device with its public key, which goes into the log',
  access: 'restricted',
  replies: { 200: RegisterDeviceReply, 201: RegisterDeviceReply },
  codes: [
    'KEY_IN_USE',
    'SESSION_HAS_DEVICE',
    'DEVICE_LIMIT',
    'DEVICE_LIST_CONFLICT',
    'DEVICE_NOT_FOUND',
    'DEVICE_NOT_LISTED',
    'DEVICE_REQUIRED',
    'RATE_LIMITED',
    'LOG_UNAVAILABLE',
    'OVERLOADED',
    'PUSH_ENDPOINT_REFUSED',
  ],
  isIdempotent: true,
  areRepliesOfSession: true,
  handle: (deps: Deps, request) => deps.registration.register(registrationOf(request, deps), request),
})

/** The request as the domain takes it. Throws `VALIDATION_FAILED` for a key of no known form or another algorithm. */
function registrationOf(
  request: OperationRequest<Static<typeof RegisterDeviceRequest>, undefined, 'restricted'>,
  { secrets, webPushHosts }: Pick<Deps, 'secrets' | 'webPushHosts'>,
): RegistrationCommand {
  const { publicKey, keyAlgorithm, deviceInfo, push, replacesDeviceId } = request.body
  const key = readPublicKey(publicKey, keyAlgorithm)
  if (key.kind === 'refused') throw invalidMember(`/${key.field}`, 'FORMAT', key.reason)
  const sessionId = sessionIdOf(request.requester.sessionName)
  return {
    userId: request.requester.userId,
    sessionId,
    publicKey,
    otherEncoding: otherEncodingOf(publicKey),
    keyAlgorithm: key.algorithm,
    ...signingMembers(secrets, sessionId, request.body),
    info: deviceInfo && infoOf(deviceInfo),
    push: push && pushTokensIn(push, webPushHosts, '/push'),
    replacesDeviceId: replacesDeviceId as DeviceId | undefined,
  }
}

/** The texts as lists and alerts may show them. Throws `VALIDATION_FAILED` if no visible character is left of one. */
function infoOf(sent: Static<typeof DeviceInfoBody>): DeviceInfo {
  const texts = Object.entries(known(DeviceInfoBody, sent)).map(([name, text]) => {
    const shown = normalizeLabel(text)
    if (shown === undefined) throw invalidMember(`/deviceInfo/${name}`, 'FORMAT', NOTHING_SEEN)
    return [name, shown]
  })
  return { platform: 'unknown', ...Object.fromEntries(texts) }
}

const putPush = operationWithBody(PutPushRequest, {
  id: 'putPushTokens',
  method: 'PUT',
  path: '/app/api/devices/current/push',
  tag: 'devices',
  summary: 'Renew the push tokens of this device',
  access: 'restricted-device',
  replies: { 204: null },
  codes: ['DEVICE_NOT_FOUND', 'PUSH_ENDPOINT_REFUSED'],
  handle: (
    { devices, sessions, notices, webPushHosts }: Deps,
    { requester: { userId, deviceId, sessionName }, body, nowMs, commit },
  ) => {
    const sent = pushTokensIn(body, webPushHosts)
    return commit(change => {
      const device = devices.active(change, userId, deviceId)
      if (device === undefined) throw deviceNotFound()
      // Else the tokens that a logout has just forgotten would be back, for calls to somebody who is gone.
      assertLasts(sessions.read(change, sessionIdOf(sessionName)))
      const tokens = pushTokensAfter(device.push, sent, nowMs)
      tellPushLosses(change, notices, devices.put(change, userId, withPush(device, tokens)), { userId })
      return { status: 204 }
    })
  },
})

export const listDevices = read({
  id: 'listDevices',
  method: 'GET',
  path: '/app/api/devices',
  tag: 'devices',
  summary: "The user's devices, newest first; there are never more than a page",
  access: 'restricted',
  replies: { 200: DeviceList },
  codes: [],
  handle: (
    { database, devices }: Pick<ApiDeps, 'devices'> & Pick<Reading, 'database'>,
    { requester: { userId, deviceId } },
  ) => ({
    status: 200,
    body: { items: database.view(view => deviceViews(view, devices, userId, deviceId)) },
  }),
})

/** The user's devices, newest first; `currentId` is of the one that asks, where one does. */
export function deviceViews(
  view: View,
  devices: Pick<ApiDeps['devices'], 'activeDevicesOf'>,
  userId: UserId,
  currentId: DeviceId | undefined,
): readonly { readonly current: boolean }[] {
  const newestFirst = devices
    .activeDevicesOf(view, userId)
    .toSorted((one, other) => other.createdAtMs - one.createdAtMs)
  return newestFirst.map(device => itemOf(device, currentId))
}

const removeOne = operation({
  id: 'removeDevice',
  method: 'DELETE',
  path: '/app/api/devices/{deviceId}',
  tag: 'devices',
  summary: 'Remove a device and end its sessions; removing the current one is a logout',
  access: 'restricted',
  replies: { 204: null },
  codes: ['DEVICE_NOT_FOUND', 'DEVICE_NOT_LISTED', 'DEVICE_REQUIRED'],
  handle: (deps: Deps, { requester: { userId, sessionName }, params, commit }) => {
    const deviceId = pathId<DeviceId>(params)
    if (deviceId === undefined) throw deviceNotFound()
    const sessionId = sessionIdOf(sessionName)
    return commit(change => {
      const session = deps.sessions.read(change, sessionId)
      assertLasts(session)
      assertMayEnd(change, deps, { userId, deviceId, by: session.deviceId, nowMs: change.nowMs })
      if (!removeDevice(change, deps, { userId, deviceId, sessionId })) throw deviceNotFound()
      return { status: 204 }
    })
  },
})

const publicKeys = readWithQuery(PublicKeysQuery, {
  id: 'readPublicKeys',
  method: 'GET',
  path: '/app/api/user/publicKeys',
  tag: 'devices',
  summary: 'The devices and keys of people: oneself, contacts, open requests by token, a common call',
  access: 'restricted',
  replies: { 200: PublicKeysReply },
  codes: ['RATE_LIMITED', 'DEVICE_NOT_LISTED', 'DEVICE_REQUIRED', 'LOG_UNAVAILABLE', 'OVERLOADED'],
  rates: [{ name: 'public-keys', by: 'user' }],
  handle: async (deps: Deps, { requester, query }) => {
    const { userId } = requester
    const asked = new Set((query.userIds ?? [userId]) as UserId[])
    if ([...asked].some(each => each !== userId)) assertUnrestricted(deps, requester)
    const unlisted = deps.database.view(view => unlistedOf(view, deps, userId, asked))
    const absenceOf = await deps.proveAbsences(unlisted)
    // Read only now: a list may have come while the proofs were made.
    const found = deps.database.view(view => keysOf(view, deps, { asker: userId, asked, absenceOf }))
    countUnavailable(deps, userId, found.unavailable.length)
    return { status: 200, body: found }
  },
})

export const DEVICES: readonly Operation<Deps>[] = [
  registerDevice,
  putPush,
  listDevices,
  removeOne,
  publicKeys,
  putDeviceList,
  readDeviceLists,
]

/** Those whose keys the asker may read, and who have no device list. */
function unlistedOf(view: View, deps: Deps, asker: UserId, asked: ReadonlySet<UserId>): readonly UserId[] {
  const { accounts, deviceLists, keysShown } = deps
  return [...asked].filter(
    userId =>
      (userId === asker || keysShown(asker, userId) !== undefined) &&
      accounts.read(view, userId) !== undefined &&
      deviceLists.newest(view, userId) === undefined,
  )
}

interface KeysAsked {
  readonly asker: UserId
  readonly asked: ReadonlySet<UserId>
  readonly absenceOf: (userId: UserId) => object | undefined
}

/** An unknown user looks the same as one who hides keys from the asker. */
function keysOf(
  view: View,
  deps: Deps,
  { asker, asked, absenceOf }: KeysAsked,
): { readonly users: readonly object[]; readonly unavailable: readonly UserId[] } {
  const { accounts, devices, keysShown } = deps
  const users: object[] = []
  const unavailable: UserId[] = []
  for (const userId of asked) {
    const shown = userId === asker ? PRESENT_KEYS : keysShown(asker, userId)
    const user = shown && accounts.read(view, userId)
    if (shown === undefined || user === undefined) unavailable.push(userId)
    else {
      const { displayName } = user
      // The owner has to see which device is not listed yet.
      const own = userId === asker ? devices.activeDevicesOf(view, userId) : undefined
      const seen = own ?? shownDevices(view, deps, userId, shown)
      users.push({
        userId,
        displayName,
        devices: seen.map(keyOf),
        ...(deps.deviceLists.newest(view, userId) === undefined
          ? { absent: absenceOf(userId) }
          : deviceListMembers(view, deps, userId)),
      })
    }
  }
  return { users, unavailable }
}

function keyOf(device: Device): object {
  const { deviceId, keyAlgorithm, publicKey, publicKeyHash, publicKeyIndex, signingKey } = device
  const index = String(publicKeyIndex)
  return { deviceId, keyAlgorithm, publicKey, publicKeyHash, publicKeyIndex: index, signingKey }
}

function itemOf(device: Device, currentId: DeviceId | undefined) {
  const { deviceId, info, keyAlgorithm, publicKeyHash, publicKeyIndex, createdAtMs, lastSeenAtMs } = device
  return {
    deviceId,
    name: deviceName(info),
    platform: info.platform,
    model: info.model,
    appVersion: info.appVersion,
    keyAlgorithm,
    publicKeyHash,
    publicKeyIndex: String(publicKeyIndex),
    current: deviceId === currentId,
    createdAt: timeText(createdAtMs),
    lastSeenAt: timeText(lastSeenAtMs),
  }
}

function deviceNotFound(): SignalError {
  return new SignalError('DEVICE_NOT_FOUND', 'no such device')
}

const NOTHING_SEEN = 'has nothing that a reader could see'
