/**
 * Takes device lists (`src/log/device-list.ts`) and has them logged under the user's slot 0. Beside each step, what a
 * crash there leaves.
 *
 *   1. judge    by the newest list and the registered devices: nothing is left
 *   2. keep     the list as pending, durable: the next request of the user, the next start, or the repair that the server
 *               repeats every few seconds goes on from here
 *   3. log      the list's hash. A crash after it leaves the entry and the pending list: logging it again finds the entry
 *   4. finish   the list is the newest one, and after a reset the other devices hear of it
 *
 * Lists of one user take turns, and a pending list is finished before the next one is judged. So every entry in slot 0 has
 * a list that was served after it, in the same order.
 */

import { sha256 } from '#primitives'
import type { Device } from '../../domain/devices/device.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import { SignalError } from '../../errors.ts'
import { encodeBase64 } from '../../log/base64.ts'
import {
  DEVICE_LIST_SLOT,
  type DeviceListVerdict,
  deviceListHash,
  judgeDeviceList,
  type ListedDevice,
  parseDeviceList,
} from '../../log/device-list.ts'
import { equalHashes } from '../../log/hash.ts'
import { invalidMember } from '../../schema/check.ts'
import type { LoggedDeviceList } from '../../store/devices/device-tables.ts'
import type { Change, View } from '../../store/engine/store.ts'
import { assertLasts } from '../accounts/authentication.ts'
import type { ApiDeps } from '../deps.ts'
import { type LastingRate, takeRate } from '../table/lasting-rates.ts'
import { noticeOf } from './device-removal.ts'
import { Turns } from './turns.ts'

type Deps = Pick<
  ApiDeps,
  | 'accounts'
  | 'database'
  | 'deviceLists'
  | 'devices'
  | 'notices'
  | 'nowMs'
  | 'rateLimits'
  | 'rates'
  | 'register'
  | 'restrictions'
  | 'sessions'
>

export interface DeviceListCommand {
  readonly userId: UserId
  readonly sessionId: Uint8Array
  readonly list: Uint8Array
  /** The seq of the list that the sender knows as the newest; undefined where it knows of none. */
  readonly knownSeq: number | undefined
  /** Resolves where the user may start over, with a list that no device of the newest one has signed. */
  readonly requireFreshProof: () => Promise<void>
}

/** A device's registered keys, which a list must name as they are. */
export type RegisteredKeys = Pick<Device, 'deviceId' | 'keyAlgorithm' | 'publicKey' | 'signingKey'>

interface JudgedList extends Pick<DeviceListCommand, 'userId' | 'list' | 'knownSeq'> {
  /** The request's member that has the list. */
  readonly pointer: string
  /** The user's devices. */
  readonly active: readonly RegisteredKeys[]
}

export class DeviceLists {
  readonly #deps: Deps
  readonly #turns = new Turns()

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /**
   * Resolves with the list as it is logged; the same list again changes nothing. Rejects with `DEVICE_LIST_CONFLICT`,
   * `VALIDATION_FAILED`, `RATE_LIMITED`, or as the log or `requireFreshProof` refuses.
   */
  put(command: DeviceListCommand): Promise<LoggedDeviceList> {
    const { userId, list } = command
    return this.#turns.take(`${userId}`, async () => {
      const { database, deviceLists, devices, sessions } = this.#deps
      await this.#finishPending(userId)
      const newest = database.view(view => deviceLists.newest(view, userId))
      if (newest !== undefined && equalHashes(newest.list, list)) return newest
      const judge = (view: View) =>
        this.#judge(view, { ...command, pointer: '/list', active: devices.activeDevicesOf(view, userId) })
      const verdict = database.view(judge)
      if (verdict.kind === 'reset') await command.requireFreshProof()
      await database.change(change => {
        assertLasts(sessions.read(change, command.sessionId))
        judge(change)
        takeRate(this.#deps, change, LISTS, userId)
        deviceLists.begin(change, userId, list)
      })
      return (await this.#finishPending(userId)) ?? gone()
    })
  }

  /**
   * Keeps the user's first list, which comes with the device, in the change that makes the device. A list that is kept
   * already stays. `finish` is to be called once the change is durable.
   */
  beginFirst(change: Change, userId: UserId, list: Uint8Array, device: RegisteredKeys): void {
    if (this.#isKept(change, userId, list)) return
    this.assertFirst(change, userId, list, device)
    this.#deps.deviceLists.begin(change, userId, list)
  }

  /** Throws `DEVICE_LIST_CONFLICT`, `OVERLOADED` or `VALIDATION_FAILED` unless it can be the user's first list, of this device alone. */
  assertFirst(view: View, userId: UserId, list: Uint8Array, device: RegisteredKeys): void {
    if (this.#isKept(view, userId, list)) return
    if (this.#deps.deviceLists.pending(view, userId) !== undefined)
      throw new SignalError('OVERLOADED', 'another list of yours is being logged: ask again')
    const [pointer, active] = ['/deviceList', [device]]
    this.#judge(view, { userId, list, knownSeq: undefined, pointer, active })
  }

  /** Has a pending list logged, if there is one. Rejects as the log refuses; the list then stays pending. */
  finish(userId: UserId): Promise<LoggedDeviceList | undefined> {
    return this.#turns.take(`${userId}`, () => this.#finishPending(userId))
  }

  /** Finishes what a crash has cut short, or the log was too late for. Returns how many lists were finished, and how many the log does not take now. */
  async repairPending(): Promise<{ readonly finished: number; readonly left: number }> {
    const { database, deviceLists } = this.#deps
    const users = database.view(view => deviceLists.allPending(view))
    let finished = 0
    for (const userId of users) {
      try {
        await this.finish(userId)
        finished++
      } catch (error) {
        if (!(error instanceof SignalError)) throw error
      }
    }
    return { finished, left: users.length - finished }
  }

  /** Whether the user's devices need signing keys. */
  has(view: View, userId: UserId): boolean {
    const { deviceLists } = this.#deps
    return (deviceLists.newest(view, userId) ?? deviceLists.pending(view, userId)) !== undefined
  }

  #isKept(view: View, userId: UserId, list: Uint8Array): boolean {
    const { deviceLists } = this.#deps
    const kept = deviceLists.pending(view, userId) ?? deviceLists.newest(view, userId)?.list
    return kept !== undefined && equalHashes(kept, list)
  }

  /** Throws what `put` rejects with. */
  #judge(view: View, judged: JudgedList): Exclude<DeviceListVerdict, { kind: 'refused' }> {
    const { userId, list, knownSeq, pointer, active } = judged
    const { deviceLists } = this.#deps
    const newest = deviceLists.newest(view, userId)
    if (newest?.seq !== knownSeq) throw conflict(newest?.seq)
    const verdict = judgeDeviceList(userId, newest?.list, list)
    if (verdict.kind === 'refused') throw invalidList(pointer, verdict.reason, verdict.detail)
    if (verdict.kind === 'first' && verdict.list.seq !== 0) {
      throw invalidList(pointer, 'seq-jump', `the first list has seq ${verdict.list.seq}, not 0`)
    }
    for (const [at, listed] of verdict.list.devices.entries()) {
      const device = active.find(({ deviceId }) => deviceId === listed.deviceId)
      const fault = device === undefined ? 'unknown-device' : faultOf(listed, device)
      if (fault !== undefined) throw invalidList(pointer, fault, `device ${at} of the list: ${FAULTS[fault]}`)
    }
    return verdict
  }

  async #finishPending(userId: UserId): Promise<LoggedDeviceList | undefined> {
    const { database, deviceLists, nowMs } = this.#deps
    const list = database.view(view => deviceLists.pending(view, userId))
    if (list === undefined) return undefined
    const { index, vrfHash } = await this.#log(userId, list)
    return database.change(change => this.#finish(change, userId, list, { index, vrfHash }), nowMs())
  }

  async #log(userId: UserId, list: Uint8Array): ReturnType<Deps['register']> {
    const { database, deviceLists, register } = this.#deps
    try {
      return await register(userId, DEVICE_LIST_SLOT as DeviceId, encodeBase64(deviceListHash(list)))
    } catch (cause) {
      if (!(cause instanceof SignalError)) throw cause
      if (cause.code === 'TOO_MANY_KEYS') {
        await database.change(change => deviceLists.abandon(change, userId))
        throw new SignalError('DEVICE_LIMIT', 'the log takes no more lists of this user', { cause })
      }
      if (cause.code !== 'DEADLINE_EXCEEDED') throw cause
      throw new SignalError('LOG_UNAVAILABLE', 'the log did not answer in time', { cause })
    }
  }

  /** Undefined where the account has been erased. */
  #finish(
    change: Change,
    userId: UserId,
    list: Uint8Array,
    entry: Pick<LoggedDeviceList, 'index' | 'vrfHash'>,
  ): LoggedDeviceList | undefined {
    const { accounts, deviceLists } = this.#deps
    if (accounts.read(change, userId) === undefined) {
      deviceLists.eraseOf(change, userId)
      return undefined
    }
    const { seq, devices, signerDeviceId } = parseDeviceList(list)
    const isFirst = deviceLists.newest(change, userId) === undefined
    const deviceIds = devices.map(({ deviceId }) => deviceId as DeviceId)
    const logged = { list, seq, deviceIds, ...entry }
    this.#tellRestrictions(change, userId, () => deviceLists.finish(change, userId, logged))
    const kind = seq === 0 ? 'device_list_reset' : 'device_list_changed'
    const signer = this.#deps.devices.read(change, userId, signerDeviceId as DeviceId)
    if (signer === undefined) return logged
    if (isFirst) this.#tellLeftOut(change, userId, deviceIds, signer)
    else this.#deps.notices.tell(change, userId, { kind, ...noticeOf(signer) }, signer.deviceId)
    return logged
  }

  /** Says which devices may do more or less once `write` has run. */
  #tellRestrictions(change: Change, userId: UserId, write: () => void): void {
    const { devices, restrictions } = this.#deps
    const active = devices.activeDevicesOf(change, userId)
    const isRestricted = ({ deviceId }: Device) => restrictions.of(change, userId, deviceId) !== undefined
    const before = new Set(active.filter(isRestricted))
    write()
    for (const device of active) {
      if (isRestricted(device) === before.has(device)) continue
      const { deviceId } = device
      change.happened({
        kind: 'restriction-changed',
        userId,
        deviceId,
        isRestricted: isRestricted(device),
      })
    }
  }

  /** A first list takes the account from the devices that it does not name, as one that starts over does. */
  #tellLeftOut(change: Change, userId: UserId, deviceIds: readonly DeviceId[], signer: Device): void {
    const { devices, notices } = this.#deps
    const body = { kind: 'device_list_reset', ...noticeOf(signer) } as const
    for (const { deviceId } of devices.activeDevicesOf(change, userId))
      if (!deviceIds.includes(deviceId)) notices.tellOnly(change, userId, body, deviceId)
  }
}

function faultOf(listed: ListedDevice, device: RegisteredKeys): keyof typeof FAULTS | undefined {
  const hash = sha256(Buffer.from(device.publicKey, 'base64'))
  if (listed.algorithm !== device.keyAlgorithm || !equalHashes(listed.publicKeySha256, hash))
    return 'another-public-key'
  return encodeBase64(listed.signingKey) === device.signingKey ? undefined : 'another-signing-key'
}

function invalidList(pointer: string, reason: string, detail: string): SignalError {
  return invalidMember(pointer, reason.toUpperCase().replaceAll('-', '_'), detail)
}

function conflict(seq: number | undefined): SignalError {
  const present = seq === undefined ? 'there is no list' : `the newest list has seq ${seq}`
  const members = seq === undefined ? {} : { deviceListSeq: seq }
  return new SignalError('DEVICE_LIST_CONFLICT', `${present}: fetch it and sign the next one`, { members })
}

function gone(): never {
  throw new SignalError('SESSION_REVOKED', 'the account was erased')
}

const FAULTS = {
  'unknown-device': 'it is no device of yours',
  'another-public-key': 'it is registered with another public key',
  'another-signing-key': 'it is registered with another signing key, or with none',
} as const
/** Each list is an entry of the log for ever. */
const LISTS: LastingRate = { name: 'device_list', rates: ['register-device'] }
