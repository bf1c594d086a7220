/**
 * The devices of the users: active ones, removed ones, those whose key is on its way into the log, whose each public
 * key is, and which device has each push token.
 */

import type {
  Device,
  KeyOwner,
  PendingDevice,
  PushLoss,
  PushTokenName,
  PushTokens,
} from '../../domain/devices/device.ts'
import { PUSH_TOKEN_NAMES, withoutToken } from '../../domain/devices/device.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import { assert } from '../../errors.ts'
import { DEVICE_LISTS_KEPT_MAX, PEOPLE_KEPT_MAX } from '../../limits.ts'
import type { Database, Table } from '../engine/database.ts'
import { idInKey, idsKey, rangeOf, textKey, userInKey } from '../engine/keys.ts'
import { WatchedCache } from '../engine/watched-cache.ts'

export class DeviceStore {
  readonly #database: Database
  /** The active ones, at most ten to a user, however many were removed. */
  readonly #devices: Table<Device>
  readonly #removed: Table<Device>
  readonly #pending: Table<PendingDevice>
  readonly #keyOwners: Table<KeyOwner>
  readonly #tokenHolders: Table<KeyOwner>
  readonly #activeDevices: WatchedCache<UserId, readonly Device[]>
  readonly #activeCounts: WatchedCache<UserId, number>

  constructor(database: Database) {
    this.#database = database
    this.#devices = database.table('devices')
    this.#removed = database.table('devices-removed')
    this.#pending = database.table('devices-pending')
    this.#keyOwners = database.table('device-keys')
    this.#tokenHolders = database.table('push-tokens')
    this.#activeDevices = new WatchedCache(database, [{ name: 'devices' }], userInKey, DEVICE_LISTS_KEPT_MAX)
    this.#activeCounts = new WatchedCache(database, [{ name: 'devices' }], userInKey, PEOPLE_KEPT_MAX)
  }

  /** The device, also a removed one. */
  read(userId: UserId, deviceId: DeviceId): Device | undefined {
    const key = idsKey(userId, deviceId)
    return this.#devices.get(key) ?? this.#removed.get(key)
  }

  /** The user's devices that are not removed, by id. */
  activeDevicesOf(userId: UserId): readonly Device[] {
    return this.#activeDevices.of(userId, () => valuesOf(this.#devices, userId))
  }

  /** The devices that the user had at that time, by id, those removed since among them. */
  devicesAt(userId: UserId, atMs: number): readonly Device[] {
    const removed = valuesOf(this.#removed, userId).filter(({ removedAtMs = 0 }) => removedAtMs > atMs)
    return [...this.activeDevicesOf(userId), ...removed]
      .filter(({ createdAtMs }) => createdAtMs <= atMs)
      .sort((one, other) => (one.deviceId < other.deviceId ? -1 : 1))
  }

  countActive(userId: UserId): number {
    return this.#activeCounts.of(userId, () => this.#devices.getKeysCount(rangeOf(idsKey(userId))))
  }

  /** The device, unless it is removed or not the user's. */
  active(userId: UserId, deviceId: DeviceId): Device | undefined {
    return this.#devices.get(idsKey(userId, deviceId))
  }

  /** Whose the key is, also of a device that was removed or is being registered. */
  ownerOfKey(publicKey: string): KeyOwner | undefined {
    return this.#keyOwners.get(textKey(publicKey))
  }

  /** The devices that the user is registering. */
  pendingOf(userId: UserId): PendingDevice[] {
    return valuesOf(this.#pending, userId)
  }

  pendingDevice(userId: UserId, deviceId: DeviceId): PendingDevice | undefined {
    return this.#pending.get(idsKey(userId, deviceId))
  }

  /** The devices that anyone is registering, or was when the process ended. */
  allPending(): KeyOwner[] {
    return [...this.#pending.getKeys()].map(key => ({
      userId: userInKey(key),
      deviceId: idInKey(key, 1) as DeviceId,
    }))
  }

  /** In a transaction: a registration begins, or begins anew. The key is the user's from now on. */
  begin(userId: UserId, pending: PendingDevice): void {
    const { deviceId, publicKey } = pending
    this.#pending.put(idsKey(userId, deviceId), pending)
    this.#keyOwners.put(textKey(publicKey), { userId, deviceId })
  }

  /** In a transaction: a registration has failed; its key is free again, unless a removed device of the user has it. */
  abandon(userId: UserId, deviceId: DeviceId): void {
    const pending = this.pendingDevice(userId, deviceId)
    if (pending === undefined) return
    const { publicKey } = pending
    this.#pending.remove(idsKey(userId, deviceId))
    this.#freeKey(userId, publicKey)
    const removed = valuesOf(this.#removed, userId).find(device => device.publicKey === publicKey)
    if (removed === undefined || this.ownerOfKey(publicKey) !== undefined) return
    this.#keyOwners.put(textKey(publicKey), { userId, deviceId: removed.deviceId })
  }

  /** In a transaction: a registration is done, the device is there. Returns as `put`. */
  finish(userId: UserId, device: Device): readonly PushLoss[] {
    this.#pending.remove(idsKey(userId, device.deviceId))
    return this.put(userId, device)
  }

  /**
   * In a transaction: the new state of an active device, or a new one. A push token that another device had is taken
   * from it: a phone has one, whoever is signed in. Returns the devices that lost one, whose users are to be told.
   */
  put(userId: UserId, device: Device): readonly PushLoss[] {
    assert(device.removedAtMs === undefined, 'a removed device stays as it is')
    const before = this.active(userId, device.deviceId)
    const taken = this.#moveTokens({ userId, deviceId: device.deviceId }, before?.push, device.push)
    this.#devices.put(idsKey(userId, device.deviceId), device)
    return lossesOf(taken)
  }

  /**
   * In a transaction: the device is active no more and gets no pushes. Returns it, undefined when it was not there. What
   * its user said of it, such as its name and time zone, is not kept.
   */
  remove(userId: UserId, deviceId: DeviceId, nowMs: number): Device | undefined {
    const device = this.active(userId, deviceId)
    if (device === undefined) return undefined
    this.forgetPush(userId, deviceId)
    const { push: _, ...kept } = device
    const removed = { ...kept, removedAtMs: nowMs }
    this.#devices.remove(idsKey(userId, deviceId))
    this.#removed.put(idsKey(userId, deviceId), { ...removed, info: { platform: device.info.platform } })
    return removed
  }

  /** In a transaction: the device gets no pushes until it sends tokens again. */
  forgetPush(userId: UserId, deviceId: DeviceId): void {
    const device = this.active(userId, deviceId)
    if (device !== undefined) this.put(userId, withPush(device, undefined))
  }

  /** In a transaction: notes that the device was heard of, once an hour at most. */
  touch(userId: UserId, deviceId: DeviceId, nowMs: number): void {
    const device = this.active(userId, deviceId)
    if (device === undefined || nowMs - device.lastSeenAtMs < TOUCHED_EVERY_MS) return
    this.#devices.put(idsKey(userId, deviceId), { ...device, lastSeenAtMs: nowMs })
  }

  /**
   * A token leads to no device any more, as its provider saw at `beforeMs`: it is dropped unless it was registered
   * later. Left out, it is dropped in any case.
   */
  dropToken(
    userId: UserId,
    deviceId: DeviceId,
    token: PushTokenName,
    beforeMs: number | undefined,
  ): Promise<void> {
    return this.#database.commit(() => {
      const device = this.active(userId, deviceId)
      const push = device?.push
      if (device === undefined || push?.[token] === undefined) return
      if (beforeMs !== undefined && push.registeredAtMs >= beforeMs) return
      this.put(userId, withPush(device, withoutToken(push, token)))
    })
  }

  /** Keeps which environment of APNs knows the device's tokens. */
  setApnsEnvironment(
    userId: UserId,
    deviceId: DeviceId,
    apnsEnvironment: NonNullable<PushTokens['apnsEnvironment']>,
  ): Promise<void> {
    return this.#database.commit(() => {
      const device = this.active(userId, deviceId)
      if (device?.push === undefined) return
      this.put(userId, withPush(device, { ...device.push, apnsEnvironment }))
    })
  }

  /** In a transaction: nothing of the user remains here. The keys in the log stay (contract 2.10). */
  eraseOf(userId: UserId): void {
    for (const { deviceId } of this.pendingOf(userId)) this.abandon(userId, deviceId)
    for (const { deviceId } of this.activeDevicesOf(userId)) this.remove(userId, deviceId, 0)
    for (const { deviceId, publicKey } of valuesOf(this.#removed, userId)) {
      this.#removed.remove(idsKey(userId, deviceId))
      this.#freeKey(userId, publicKey)
    }
  }

  #freeKey(userId: UserId, publicKey: string): void {
    if (this.ownerOfKey(publicKey)?.userId === userId) this.#keyOwners.remove(textKey(publicKey))
  }

  /** Every token of a device has a row that names it, and no other device has that token. */
  #moveTokens(owner: KeyOwner, before: PushTokens | undefined, after: PushTokens | undefined): TakenToken[] {
    const taken: TakenToken[] = []
    for (const name of PUSH_TOKEN_NAMES) {
      const [old, token] = [before?.[name], after?.[name]]
      if (old === token) continue
      if (old !== undefined) this.#tokenHolders.remove(tokenKey(name, old))
      if (token === undefined) continue
      const holder = this.#tokenHolders.get(tokenKey(name, token))
      if (holder !== undefined) taken.push({ ...this.#takeToken(holder, name), name })
      this.#tokenHolders.put(tokenKey(name, token), owner)
    }
    return taken
  }

  #takeToken({ userId, deviceId }: KeyOwner, name: PushTokenName): Omit<TakenToken, 'name'> {
    const device = this.active(userId, deviceId)
    assert(device?.push?.[name] !== undefined, 'a token is held by the device that its row names')
    this.#devices.put(idsKey(userId, deviceId), withPush(device, withoutToken(device.push, name)))
    return { userId, device }
  }
}

/** A token that a device had a moment ago. */
interface TakenToken {
  readonly userId: UserId
  readonly device: Device
  readonly name: PushTokenName
}

/** One for each device. */
function lossesOf(taken: readonly TakenToken[]): readonly PushLoss[] {
  const first = taken.filter(
    ({ device }, at) => at === taken.findIndex(each => each.device.deviceId === device.deviceId),
  )
  return first.map(({ userId, device }) => ({
    userId,
    device,
    tokens: taken.filter(each => each.device.deviceId === device.deviceId).map(({ name }) => name),
  }))
}

/** The device with these tokens, or with none. */
export function withPush({ push: _, ...device }: Device, push: PushTokens | undefined): Device {
  return push === undefined ? device : { ...device, push }
}

function valuesOf<Value>(table: Table<Value>, userId: UserId): Value[] {
  return [...table.getRange(rangeOf(idsKey(userId)))].map(({ value }) => value)
}

/** Of the table `push-tokens`. */
export function tokenKey(name: PushTokenName, token: string): Uint8Array {
  return textKey(`${name} ${token}`)
}

const TOUCHED_EVERY_MS = 3_600_000
