/**
 * Registers devices (contract 2.5, "order"). Beside each step, what a crash there leaves.
 *
 *   1. judge    a view says whether the user may register the key, and the device gets its id: nothing is left
 *   2. log      one change: the key's entry under user and device, and the pending row, which fixes the device's id
 *               and makes the key the user's. A crash before it leaves nothing. After it a repeated request, or the
 *               repair at the next start, goes on from the row: the log answers the same key with the same index
 *   3. finish   one change: device, binding of the session, end of the replaced device, notice to the others, no
 *               pending row. A crash after it leaves a device that a repeated request is answered with
 *
 * A user's first device list may come with the first device: `DeviceLists` keeps it as pending with step 3 and has it
 * logged before the answer.
 *
 * When the log refuses, the pending row goes and the requester hears why. If the log appends the entry all the same, its
 * device id is nobody's: nobody looks it up, and the next attempt gets a new id.
 *
 * The change of step 2 judges again, since the state may have changed. If it refuses, the entry stays as above. New keys
 * of one user take turns, so that side by side they can't pass the view and fill the log with such entries.
 *
 * Requests with one key, in either encoding, take turns, so that one that is repeated while the first is under way gets the
 * same device.
 */

import { lasts } from '../../domain/accounts/session.ts'
import {
  type Device,
  type DeviceInfo,
  decideRegistration,
  type PendingDevice,
  pushTokensAfter,
  type RegistrationDecision,
  type SentPushTokens,
  withKey,
} from '../../domain/devices/device.ts'
import type { KeyAlgorithm } from '../../domain/devices/public-key.ts'
import { type DeviceId, newId, type UserId } from '../../domain/ids.ts'
import { assert, SignalError } from '../../errors.ts'
import type { Alongside, Registration } from '../../keyserver/registration.ts'
import { invalidMember } from '../../schema/check.ts'
import { withPush } from '../../store/devices/device-store.ts'
import type { Change, View } from '../../store/engine/store.ts'
import { assertLasts } from '../accounts/authentication.ts'
import type { ApiDeps } from '../deps.ts'
import { assertRate, countRate, type LastingRate } from '../table/lasting-rates.ts'
import type { OperationRequest, Reply } from '../table/operation.ts'
import type { DeviceLists } from './device-lists.ts'
import { assertMayEnd, noticeOf, removeDevice } from './device-removal.ts'
import { tellPushLosses } from './push-losses.ts'
import { Turns } from './turns.ts'

type Deps = Pick<
  ApiDeps,
  | 'database'
  | 'devices'
  | 'inbox'
  | 'notices'
  | 'nowMs'
  | 'randomBytes'
  | 'rateLimits'
  | 'rates'
  | 'register'
  | 'restrictions'
  | 'sessions'
> & { readonly lists: Pick<DeviceLists, 'assertFirst' | 'beginFirst' | 'finish' | 'has'> }

/** A request whose key has been checked. */
export interface RegistrationCommand {
  readonly userId: UserId
  readonly sessionId: Uint8Array
  readonly publicKey: string
  /** The same key in its other encoding. */
  readonly otherEncoding: string
  readonly keyAlgorithm: KeyAlgorithm
  /** Base64. The device has shown that it has it. */
  readonly signingKey: string | undefined
  /** The user's first device list, of this device. */
  readonly deviceList: Uint8Array | undefined
  /** The device's id in that list. */
  readonly listedDeviceId: DeviceId | undefined
  readonly info: DeviceInfo | undefined
  readonly push: SentPushTokens | undefined
  readonly replacesDeviceId: DeviceId | undefined
}

/** How the registrations ended that the last process left unfinished. */
export interface Repairs {
  finished: number
  /** Their sessions have ended since, or may not replace the device any more. */
  abandoned: number
  /** The log or the store does not take them now: they wait for the next start or for their client. */
  left: number
}

type CommittingRequest = Pick<OperationRequest<unknown, unknown, 'session'>, 'commit' | 'nowMs'>

export class DeviceRegistration {
  readonly #deps: Deps
  /** By key and by user. */
  readonly #turns = new Turns()

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /**
   * Answers 201 with a new device, or 200 with the user's device that has this key, to which the session is bound
   * then too. Rejects with `KEY_IN_USE`, `DEVICE_LIMIT`, `DEVICE_NOT_FOUND` (of `replacesDeviceId`), the restriction of a
   * session that may not replace that device, `RATE_LIMITED`, as the log refuses, or as for an access token of an ended
   * session.
   */
  register(command: RegistrationCommand, request: CommittingRequest): Promise<Reply> {
    const { userId, publicKey, otherEncoding } = command
    const key = publicKey.length < otherEncoding.length ? publicKey : otherEncoding
    return this.#turns.take(`key ${key}`, () => {
      const active = this.#deps.database.view(view => this.#deps.devices.activeDevicesOf(view, userId))
      if (withKey(active, command) !== undefined) return this.#answerKnown(command, request)
      return this.#turns.take(`user ${userId}`, () => this.#registerNew(command, request))
    })
  }

  /** Finishes what a crash has cut short. To be called once the log takes keys and before requests are taken. */
  async repairPending(): Promise<Repairs> {
    const repairs: Repairs = { finished: 0, abandoned: 0, left: 0 }
    const all = this.#deps.database.view(view => this.#deps.devices.allPending(view))
    for (let at = 0; at < all.length; at += REPAIRED_AT_ONCE) {
      const some = all.slice(at, at + REPAIRED_AT_ONCE)
      const outcomes = await Promise.all(some.map(({ userId, deviceId }) => this.#repair(userId, deviceId)))
      for (const outcome of outcomes) repairs[outcome]++
    }
    return repairs
  }

  async #registerNew(command: RegistrationCommand, request: CommittingRequest): Promise<Reply> {
    const { database, devices } = this.#deps
    const { userId } = command
    const { deviceId, publicKey } = database.view(view => this.#judge(view, command, request.nowMs))
    let device: Device
    const attempt = { begun: undefined as PendingDevice | undefined, isGivenUp: false }
    const begin = (change: Change): PendingDevice => {
      attempt.begun = undefined
      if (attempt.isGivenUp) throw new SignalError('LOG_UNAVAILABLE', 'the log appends too late')
      const pending = this.#judge(change, command, request.nowMs, deviceId)
      devices.begin(change, userId, pending)
      attempt.begun = pending
      return pending
    }
    try {
      const logged = await this.#log(userId, deviceId, publicKey, begin)
      // The log had the key already, or the state has changed since the view: then this says why it is refused.
      const pending = attempt.begun ?? (await database.change(begin, request.nowMs))
      const finish = (change: Change) => this.#finish(change, userId, pending, logged)
      if (command.deviceList === undefined) {
        return await request.commit(change => replyOf(201, finish(change)))
      }
      device = await database.change(finish, request.nowMs)
    } catch (error) {
      attempt.isGivenUp = true
      // Where even this can't be written, the row stays and the next attempt goes on from it.
      await this.#abandon(userId, deviceId).catch(noop)
      throw error
    }
    return this.#answerListed(userId, device, 201, request)
  }

  /** Answers once the user's pending list is logged. Where that fails, the device stays: a repeated request is answered 200. */
  async #answerListed(
    userId: UserId,
    device: Device,
    status: 200 | 201,
    request: CommittingRequest,
  ): Promise<Reply> {
    await this.#deps.lists.finish(userId)
    return request.commit(() => replyOf(status, device))
  }

  /** Answers with the user's device that has the key. */
  async #answerKnown(command: RegistrationCommand, request: CommittingRequest): Promise<Reply> {
    const { userId, deviceList } = command
    const bind = (change: Change): Device => {
      const decision = this.#decide(change, command)
      if (decision.kind === 'refused') throw new SignalError(decision.code, REFUSALS[decision.code])
      if (decision.kind !== 'known') {
        throw new SignalError('OVERLOADED', 'the device has just been removed: ask again')
      }
      return this.#bindKnown(change, command, decision.device)
    }
    if (deviceList === undefined) return request.commit(change => replyOf(200, bind(change)))
    const device = await this.#deps.database.change(change => {
      const bound = bind(change)
      this.#beginList(change, userId, deviceList, bound)
      return bound
    }, request.nowMs)
    return this.#answerListed(userId, device, 200, request)
  }

  /** A user's first list has the user's first device. */
  #beginList(change: Change, userId: UserId, list: Uint8Array, device: Device): void {
    const { devices, lists } = this.#deps
    assertOnly(devices.activeDevicesOf(change, userId), device)
    lists.beginFirst(change, userId, list, device)
  }

  #decide(view: View, command: RegistrationCommand): RegistrationDecision {
    const { userId, publicKey, otherEncoding, replacesDeviceId } = command
    const { devices } = this.#deps
    return decideRegistration({
      userId,
      publicKey,
      otherEncoding,
      owner: devices.ownerOfKey(view, publicKey),
      otherEncodingOwner: devices.ownerOfKey(view, otherEncoding),
      devices: devices.activeDevicesOf(view, userId),
      pending: devices.pendingOf(view, userId),
      replacesDeviceId,
    })
  }

  #bindKnown(change: Change, command: RegistrationCommand, known: Device): Device {
    const { nowMs } = change
    const { userId, sessionId, info = known.info, push = {}, replacesDeviceId } = command
    const { devices, sessions } = this.#deps
    const session = sessions.read(change, sessionId)
    assertLasts(session)
    // Its public key is no secret: else any session of the user could make itself a device of the list.
    const isProven = session.deviceId === known.deviceId || known.signingKey === command.signingKey
    if (known.signingKey !== undefined && !isProven) throw unproven(command)
    const tokens = pushTokensAfter(known.push, push, nowMs)
    const device = { ...withSigningKey(withPush(known, tokens), command), info, lastSeenAtMs: nowMs }
    const losses = devices.put(change, userId, device)
    tellPushLosses(change, this.#deps.notices, losses, { userId, replacesDeviceId })
    sessions.bind(change, sessionId, device.deviceId)
    this.#assertMayReplace(change, command, nowMs)
    this.#replace(change, userId, replacesDeviceId, device.deviceId)
    return device
  }

  /** The row to begin with, under `chosenId` where the id is chosen. Throws as `register` rejects. */
  #judge(view: View, command: RegistrationCommand, nowMs: number, chosenId?: DeviceId): PendingDevice {
    const { userId, sessionId, keyAlgorithm, info, push, replacesDeviceId, signingKey, deviceList } = command
    const decision = this.#decide(view, command)
    assert(decision.kind !== 'known', 'requests with one key take turns')
    if (decision.kind === 'refused') throw new SignalError(decision.code, REFUSALS[decision.code])
    this.#assertMayReplace(view, command, nowMs)
    this.#assertStays(view, command)
    const { begun, pendingOthers } = decision
    // What is pending counts as done; what then fails is not counted, so that an outage uses nothing up.
    assertRate(this.#deps, view, REGISTRATIONS, { userId, nowMs, promised: pendingOthers })
    if (signingKey === undefined && this.#deps.lists.has(view, userId)) throw signingKeyNeeded()
    const deviceId = chosenId ?? begun?.deviceId ?? this.#newDeviceId(view, command)
    assert(begun === undefined || begun.deviceId === deviceId, 'requests with one key take turns')
    // The log may have the bytes that the earlier attempt sent already.
    const publicKey = begun?.publicKey ?? command.publicKey
    if (deviceList !== undefined) {
      const kept = this.#deps.devices.activeDevicesOf(view, userId)
      assertOnly(kept.filter(each => each.deviceId !== replacesDeviceId))
      const keys = { deviceId, publicKey, keyAlgorithm, ...(signingKey && { signingKey }) }
      this.#deps.lists.assertFirst(view, userId, deviceList, keys)
    }
    const tokens = push && pushTokensAfter(undefined, push, nowMs)
    return {
      deviceId,
      sessionId,
      info: info ?? { platform: 'unknown' },
      publicKey,
      keyAlgorithm,
      ...(signingKey && { signingKey }),
      ...(deviceList && { deviceList }),
      ...(tokens && { push: tokens }),
      ...(replacesDeviceId !== undefined && { replacesDeviceId }),
      startedAtMs: nowMs,
    }
  }

  /** The session of a listed device is no other device's: a thief of its tokens would put the phone out of its account. */
  #assertStays(view: View, { userId, sessionId, replacesDeviceId }: RegistrationCommand): void {
    const { sessions, restrictions, lists } = this.#deps
    const deviceId = sessions.read(view, sessionId)?.deviceId
    if (deviceId === undefined || deviceId === replacesDeviceId || !lists.has(view, userId)) return
    if (restrictions.of(view, userId, deviceId) === undefined)
      throw new SignalError(
        'SESSION_HAS_DEVICE',
        'sign in again to register another key, or replace this device',
      )
  }

  /** The id in the device's list, which its app had to choose to sign it, else a random one. */
  #newDeviceId(view: View, { userId, listedDeviceId }: RegistrationCommand): DeviceId {
    const { devices, randomBytes } = this.#deps
    const isTaken = (deviceId: DeviceId) =>
      (devices.read(view, userId, deviceId) ?? devices.pendingDevice(view, userId, deviceId)) !== undefined
    if (listedDeviceId !== undefined) {
      if (isTaken(listedDeviceId)) throw listFault('DEVICE_ID_TAKEN', 'choose another device id')
      return listedDeviceId
    }
    for (;;) {
      const deviceId = newId(randomBytes) as DeviceId
      if (!isTaken(deviceId)) return deviceId
    }
  }

  async #log(
    userId: UserId,
    deviceId: DeviceId,
    publicKey: string,
    alongside?: Alongside,
  ): Promise<Registration> {
    try {
      return await this.#deps.register(userId, deviceId, publicKey, alongside)
    } catch (cause) {
      if (!(cause instanceof SignalError) || cause.code !== 'DEADLINE_EXCEEDED') throw cause
      throw new SignalError('LOG_UNAVAILABLE', 'the log did not answer in time', { cause })
    }
  }

  /** Throws when the session that asked has ended. */
  #finish(change: Change, userId: UserId, pending: PendingDevice, { index, vrfHash }: Registration): Device {
    const { nowMs } = change
    const { devices, sessions, notices } = this.#deps
    // The pending row goes with the user, whose sessions last no longer.
    assertLasts(sessions.read(change, pending.sessionId))
    // The device may have been seen since.
    this.#assertMayReplace(change, { ...pending, userId }, nowMs)
    const { deviceId, info, publicKey, keyAlgorithm, signingKey, deviceList, push, startedAtMs } = pending
    const device: Device = {
      deviceId,
      info,
      publicKey,
      keyAlgorithm,
      publicKeyIndex: index,
      publicKeyHash: Buffer.from(vrfHash).toString('base64'),
      ...(signingKey && { signingKey }),
      ...(push && { push }),
      createdAtMs: startedAtMs,
      lastSeenAtMs: nowMs,
    }
    const { replacesDeviceId } = pending
    const isFirst = devices.activeDevicesOf(change, userId).length === 0
    tellPushLosses(change, notices, devices.finish(change, userId, device), { userId, replacesDeviceId })
    sessions.bind(change, pending.sessionId, deviceId)
    this.#replace(change, userId, replacesDeviceId, deviceId)
    countRate(this.#deps, change, REGISTRATIONS, userId)
    if (deviceList !== undefined) this.#beginList(change, userId, deviceList, device)
    if (!isFirst) notices.tell(change, userId, { kind: 'device_added', ...noticeOf(device) }, deviceId)
    return device
  }

  /** Throws its restriction to a session that may not replace the device. */
  #assertMayReplace(
    view: View,
    {
      userId,
      sessionId,
      replacesDeviceId: deviceId,
    }: Pick<RegistrationCommand, 'userId' | 'sessionId'> & {
      readonly replacesDeviceId?: DeviceId | undefined
    },
    nowMs: number,
  ): void {
    if (deviceId === undefined) return
    const by = this.#deps.sessions.read(view, sessionId)?.deviceId
    assertMayEnd(view, this.#deps, { userId, deviceId, by, nowMs, isReplaced: true })
  }

  /** After the session is bound to the new device, so that it outlives the old one. */
  #replace(change: Change, userId: UserId, replaced: DeviceId | undefined, by: DeviceId): void {
    if (replaced === undefined || replaced === by) return
    removeDevice(change, this.#deps, { userId, deviceId: replaced, exceptDeviceId: by })
  }

  async #repair(userId: UserId, deviceId: DeviceId): Promise<keyof Repairs> {
    const { database, devices, sessions, nowMs } = this.#deps
    const pending = database.view(view => devices.pendingDevice(view, userId, deviceId))
    assert(pending !== undefined, 'nothing is registered before the repair has ended')
    const session = database.view(view => sessions.read(view, pending.sessionId))
    try {
      if (!lasts(session)) {
        await this.#abandon(userId, deviceId)
        return 'abandoned'
      }
      const logged = await this.#log(userId, deviceId, pending.publicKey)
      await database.change(change => this.#finish(change, userId, pending, logged), nowMs())
      return 'finished'
    } catch (error) {
      if (!(error instanceof SignalError)) throw error
      if (error.code !== 'DEVICE_NOT_LISTED' && error.code !== 'DEVICE_REQUIRED') return 'left'
      await this.#abandon(userId, deviceId)
      return 'abandoned'
    }
  }

  #abandon(userId: UserId, deviceId: DeviceId): Promise<void> {
    return this.#deps.database.change(change => this.#deps.devices.abandon(change, userId, deviceId))
  }
}

function replyOf(
  status: 200 | 201,
  { deviceId, publicKeyIndex, publicKeyHash, keyAlgorithm }: Device,
): Reply {
  const index = String(publicKeyIndex)
  const body = { deviceId, publicKeyIndex: index, vrfHash: publicKeyHash, publicKeyHash, keyAlgorithm }
  return { status, body }
}

/** Throws unless these are no devices but `device`. */
function assertOnly(active: readonly Device[], device?: Device): void {
  if (active.every(({ deviceId }) => deviceId === device?.deviceId)) return
  throw listFault('NOT_FIRST', 'you have other devices: register this one, and send a list that names it')
}

/** A device keeps its first signing key. */
function withSigningKey(device: Device, { signingKey }: RegistrationCommand): Device {
  if (signingKey === undefined || signingKey === device.signingKey) return device
  if (device.signingKey === undefined) return { ...device, signingKey }
  throw invalidMember('/signingKey', 'ANOTHER_KEY', 'is not the one that the device has')
}

function unproven({ signingKey }: RegistrationCommand): SignalError {
  if (signingKey !== undefined)
    return invalidMember('/signingKey', 'ANOTHER_KEY', 'is not the one that the device has')
  return invalidMember('/signingKey', 'REQUIRED', 'is needed, since the device with this public key has one')
}

function signingKeyNeeded(): SignalError {
  return invalidMember('/signingKey', 'REQUIRED', 'is needed, since you have a device list')
}

function listFault(code: string, detail: string): SignalError {
  return invalidMember('/deviceList', code, detail)
}

const noop = (): void => {}

const REFUSALS = {
  KEY_IN_USE: 'another user has registered this key: make a new one',
  DEVICE_NOT_FOUND: 'the device to be replaced is not one of yours',
  DEVICE_LIMIT: 'the account has as many devices as it can have: remove one first',
} as const
/** Registrations of new keys (contract 8). A key that is known costs none: apps send theirs at every start. */
const REGISTRATIONS: LastingRate = {
  name: 'register_device',
  rates: ['register-device'],
}
/** Well below what the log lets wait. */
const REPAIRED_AT_ONCE = 256
