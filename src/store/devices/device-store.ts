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
  TokenVerdict,
} from '../../domain/devices/device.ts'
import { PUSH_TOKEN_NAMES, pushTokensJudged, tokenOf, withoutToken } from '../../domain/devices/device.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import { assert } from '../../errors.ts'
import { DEVICE_LISTS_KEPT_MAX, PEOPLE_KEPT_MAX } from '../../limits.ts'
import { idInKey, idsKey, rangeOf, textKey, userInKey } from '../engine/keys.ts'
import type { Change, ReadStore, View } from '../engine/store.ts'
import type { Table } from '../engine/table.ts'
import { WatchedCache } from '../engine/watched-cache.ts'
import type { Webhooks } from '../operators/webhook-store.ts'
import {
  DEVICE_KEYS,
  DEVICES,
  DEVICES_PENDING,
  DEVICES_REMOVED,
  PUSH_TOKENS,
  tokenKey,
} from './device-tables.ts'

export class DeviceStore {
  readonly #activeDevices: WatchedCache<UserId, readonly Device[]>
  readonly #activeCounts: WatchedCache<UserId, number>

  readonly #webhooks: Pick<Webhooks, 'add'> | undefined

  /** Without `webhooks`, no event is written. */
  constructor(store: ReadStore, webhooks?: Pick<Webhooks, 'add'>) {
    this.#webhooks = webhooks
    this.#activeDevices = new WatchedCache(store, [DEVICES], userInKey, DEVICE_LISTS_KEPT_MAX)
    this.#activeCounts = new WatchedCache(store, [DEVICES], userInKey, PEOPLE_KEPT_MAX)
  }

  /** The device, also a removed one. */
  read(view: View, userId: UserId, deviceId: DeviceId): Device | undefined {
    const key = idsKey(userId, deviceId)
    return view.get(DEVICES, key) ?? view.get(DEVICES_REMOVED, key)
  }

  /** The user's devices that are not removed, by id. */
  activeDevicesOf(view: View, userId: UserId): readonly Device[] {
    return this.#activeDevices.of(userId, () => valuesOf(view, DEVICES, userId))
  }

  /** The devices that the user had at that time, by id, those removed since among them. */
  devicesAt(view: View, userId: UserId, atMs: number): readonly Device[] {
    const removed = valuesOf(view, DEVICES_REMOVED, userId).filter(
      ({ removedAtMs = 0 }) => removedAtMs > atMs,
    )
    return [...this.activeDevicesOf(view, userId), ...removed]
      .filter(({ createdAtMs }) => createdAtMs <= atMs)
      .sort((one, other) => (one.deviceId < other.deviceId ? -1 : 1))
  }

  /** Removed devices of the user, by id; only those behind `after`, if it is given. */
  removedDevicesOf(view: View, userId: UserId, limit: number, after?: DeviceId): Device[] {
    const start = after === undefined ? idsKey(userId) : idsKey(userId, after + 1n)
    const range = { ...rangeOf(idsKey(userId)), start, limit }
    return [...view.range(DEVICES_REMOVED, range)].map(({ value }) => value)
  }

  countActive(view: View, userId: UserId): number {
    return this.#activeCounts.of(userId, () => view.count(DEVICES, rangeOf(idsKey(userId))))
  }

  /** The device, unless it is removed or not the user's. */
  active(view: View, userId: UserId, deviceId: DeviceId): Device | undefined {
    return view.get(DEVICES, idsKey(userId, deviceId))
  }

  /** Whose the key is, also of a device that was removed or is being registered. */
  ownerOfKey(view: View, publicKey: string): KeyOwner | undefined {
    return view.get(DEVICE_KEYS, textKey(publicKey))
  }

  /** The devices that the user is registering. */
  pendingOf(view: View, userId: UserId): PendingDevice[] {
    return valuesOf(view, DEVICES_PENDING, userId)
  }

  pendingDevice(view: View, userId: UserId, deviceId: DeviceId): PendingDevice | undefined {
    return view.get(DEVICES_PENDING, idsKey(userId, deviceId))
  }

  /** The devices that anyone is registering, or was when the process ended. */
  allPending(view: View): KeyOwner[] {
    return [...view.keys(DEVICES_PENDING)].map(key => ({
      userId: userInKey(key),
      deviceId: idInKey(key, 1) as DeviceId,
    }))
  }

  /** A registration begins, or begins anew. The key is the user's from now on. */
  begin(change: Change, userId: UserId, pending: PendingDevice): void {
    const { deviceId, publicKey } = pending
    change.put(DEVICES_PENDING, idsKey(userId, deviceId), pending)
    change.put(DEVICE_KEYS, textKey(publicKey), { userId, deviceId })
  }

  /** A registration has failed; its key is free again, unless a removed device of the user has it. */
  abandon(change: Change, userId: UserId, deviceId: DeviceId): void {
    const pending = this.pendingDevice(change, userId, deviceId)
    if (pending === undefined) return
    const { publicKey } = pending
    change.remove(DEVICES_PENDING, idsKey(userId, deviceId))
    this.#freeKey(change, userId, publicKey)
    const removed = valuesOf(change, DEVICES_REMOVED, userId).find(device => device.publicKey === publicKey)
    if (removed === undefined || this.ownerOfKey(change, publicKey) !== undefined) return
    change.put(DEVICE_KEYS, textKey(publicKey), { userId, deviceId: removed.deviceId })
  }

  /** A registration is done, the device is there. Returns as `put`. */
  finish(change: Change, userId: UserId, device: Device): readonly PushLoss[] {
    const { deviceId, info } = device
    change.remove(DEVICES_PENDING, idsKey(userId, deviceId))
    this.#webhooks?.add(change, { kind: 'device.added', userId, deviceId, platform: info.platform })
    return this.put(change, userId, device)
  }

  /**
   * The new state of an active device, or a new one. A push token that another device had is taken
   * from it: a phone has one, for any user who is signed in. Returns the devices that lost one, whose users are to be told.
   */
  put(change: Change, userId: UserId, device: Device): readonly PushLoss[] {
    assert(device.removedAtMs === undefined, 'a removed device stays as it is')
    const before = this.active(change, userId, device.deviceId)
    const taken = this.#moveTokens(change, { userId, deviceId: device.deviceId }, before?.push, device.push)
    change.put(DEVICES, idsKey(userId, device.deviceId), device)
    return lossesOf(taken)
  }

  /**
   * The device is active no more and gets no pushes. Returns it, undefined when it was not there. What
   * its user said of it, such as its name and time zone, is not kept.
   */
  remove(change: Change, userId: UserId, deviceId: DeviceId): Device | undefined {
    const device = this.active(change, userId, deviceId)
    if (device === undefined) return undefined
    this.forgetPush(change, userId, deviceId)
    const { push: _, ...kept } = device
    const removed = { ...kept, removedAtMs: change.nowMs }
    change.remove(DEVICES, idsKey(userId, deviceId))
    change.put(DEVICES_REMOVED, idsKey(userId, deviceId), {
      ...removed,
      info: { platform: device.info.platform },
    })
    return removed
  }

  /** The device gets no pushes until it sends tokens again. */
  forgetPush(change: Change, userId: UserId, deviceId: DeviceId): void {
    const device = this.active(change, userId, deviceId)
    if (device !== undefined) this.put(change, userId, withPush(device, undefined))
  }

  /** Notes that the device was heard of, once an hour at most. */
  touch(change: Change, userId: UserId, deviceId: DeviceId): void {
    const { nowMs } = change
    const device = this.active(change, userId, deviceId)
    if (device === undefined || nowMs - device.lastSeenAtMs < TOUCHED_EVERY_MS) return
    change.put(DEVICES, idsKey(userId, deviceId), { ...device, lastSeenAtMs: nowMs })
  }

  /** A provider's answer about a token counts unless the device has sent the token anew since, or another. */
  judgeToken(change: Change, { userId, deviceId }: KeyOwner, judged: TokenVerdict): void {
    const device = this.active(change, userId, deviceId)
    if (device?.push === undefined) return
    const after = pushTokensJudged(device.push, judged)
    if (after !== device.push) this.put(change, userId, withPush(device, after))
  }

  /** Keeps which environment of APNs knows the device's tokens. */
  setApnsEnvironment(
    change: Change,
    { userId, deviceId }: KeyOwner,
    apnsEnvironment: NonNullable<PushTokens['apnsEnvironment']>,
  ): void {
    const device = this.active(change, userId, deviceId)
    if (device?.push === undefined) return
    this.put(change, userId, withPush(device, { ...device.push, apnsEnvironment }))
  }

  /** Nothing of the user remains here. The keys in the log stay (contract 2.10). */
  eraseOf(change: Change, userId: UserId): void {
    for (const { deviceId } of this.pendingOf(change, userId)) this.abandon(change, userId, deviceId)
    for (const { deviceId } of this.activeDevicesOf(change, userId)) this.remove(change, userId, deviceId)
    for (const { deviceId, publicKey } of valuesOf(change, DEVICES_REMOVED, userId)) {
      change.remove(DEVICES_REMOVED, idsKey(userId, deviceId))
      this.#freeKey(change, userId, publicKey)
    }
  }

  #freeKey(change: Change, userId: UserId, publicKey: string): void {
    if (this.ownerOfKey(change, publicKey)?.userId === userId) change.remove(DEVICE_KEYS, textKey(publicKey))
  }

  /** Every token of a device has a row that names it, and no other device has that token. */
  #moveTokens(
    change: Change,
    owner: KeyOwner,
    before: PushTokens | undefined,
    after: PushTokens | undefined,
  ): TakenToken[] {
    const taken: TakenToken[] = []
    for (const name of PUSH_TOKEN_NAMES) {
      const [old, token] = [tokenOf(before, name), tokenOf(after, name)]
      if (old === token) continue
      if (old !== undefined) change.remove(PUSH_TOKENS, tokenKey(name, old))
      if (token === undefined) continue
      const holder = change.get(PUSH_TOKENS, tokenKey(name, token))
      if (holder !== undefined) taken.push({ ...this.#takeToken(change, holder, name), name })
      change.put(PUSH_TOKENS, tokenKey(name, token), owner)
    }
    return taken
  }

  #takeToken(change: Change, { userId, deviceId }: KeyOwner, name: PushTokenName): Omit<TakenToken, 'name'> {
    const device = this.active(change, userId, deviceId)
    assert(device?.push?.[name] !== undefined, 'a token is held by the device that its row names')
    change.put(DEVICES, idsKey(userId, deviceId), withPush(device, withoutToken(device.push, name)))
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

function valuesOf<Value>(view: View, table: Table<Value>, userId: UserId): Value[] {
  return [...view.range(table, rangeOf(idsKey(userId)))].map(({ value }) => value)
}

const TOUCHED_EVERY_MS = 3_600_000
