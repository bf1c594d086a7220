/** Facts that the rules of calling need beyond the call: the people, their devices, which rooms are free. */

import { takesCallsFromStrangers } from '../../domain/accounts/account.ts'
import type { CalleeFacts, CallFacts } from '../../domain/calls/call-command.ts'
import type { LiveCalls } from '../../domain/calls/live-calls.ts'
import { type CallId, type DeviceId, newId, type UserId } from '../../domain/ids.ts'
import type { AccountStore } from '../accounts/account-store.ts'
import type { ContactStore } from '../contacts/contact-store.ts'
import type { DeviceListStore } from '../devices/device-list-store.ts'
import type { DeviceStore } from '../devices/device-store.ts'
import type { Store, View } from '../engine/store.ts'

export interface CallFactsDeps {
  readonly database: Pick<Store, 'view'>
  readonly accounts: Pick<AccountStore, 'read'>
  readonly devices: Pick<DeviceStore, 'active' | 'activeDevicesOf' | 'devicesAt'>
  readonly deviceLists: Pick<DeviceListStore, 'newest'>
  readonly contacts: Pick<ContactStore, 'isContact' | 'blockedAtMs'>
  readonly index: Pick<LiveCalls, 'otherCallOf' | 'callInRoom' | 'callsBetween'>
  readonly randomBytes: (length: number) => Uint8Array
}

/** A user who calls people, in this call. */
export interface Calling {
  readonly callId: CallId
  readonly callerId: UserId
  readonly calleeIds: readonly UserId[]
  /** The room that was named. */
  readonly roomId: number | undefined
}

export class CallFactsReader {
  readonly #deps: CallFactsDeps

  constructor(deps: CallFactsDeps) {
    this.#deps = deps
  }

  /** As of now, by what is durable and by what the rooms have decided. */
  read(calling: Calling): CallFacts {
    const { callId, callerId, calleeIds, roomId } = calling
    const { database, devices, index } = this.#deps
    const inRoom = roomId === undefined ? undefined : index.callInRoom(roomId)
    return database.view(view => ({
      callees: calleeIds.flatMap(calleeId => calleeFacts(view, this.#deps, callerId, calleeId) ?? []),
      ownDevices: devices.activeDevicesOf(view, callerId).map(({ deviceId }) => deviceId),
      callsBetween: calleeIds.flatMap(calleeId => index.callsBetween(callerId, calleeId)),
      otherCallId: index.otherCallOf(callerId, callId),
      isRoomInUse: inRoom !== undefined && inRoom !== callId,
      freeRoomId: freeRoomId(this.#deps),
    }))
  }

  /** Whether the device is one of its user's at this moment. */
  isRegistered(userId: UserId, deviceId: DeviceId): boolean {
    const { database, devices } = this.#deps
    return database.view(view => devices.active(view, userId, deviceId)) !== undefined
  }
}

function calleeFacts(
  view: View,
  { accounts, contacts, devices, deviceLists }: CallFactsDeps,
  callerId: UserId,
  userId: UserId,
): CalleeFacts | undefined {
  const account = accounts.read(view, userId)
  if (account === undefined) return undefined
  const isInvited = contacts.isContact(view, callerId, userId) || takesCallsFromStrangers(account)
  const blockedAtMs = contacts.blockedAtMs(view, userId, callerId)
  const deviceList = deviceLists.newest(view, userId)
  // Whether the caller is blocked or not, the log shows the same newest list.
  const shown =
    blockedAtMs === undefined || deviceList !== undefined
      ? devices.activeDevicesOf(view, userId)
      : devices.devicesAt(view, userId, blockedAtMs)
  return {
    userId,
    displayName: account.displayName,
    mayBeCalled: isInvited && contacts.blockedAtMs(view, callerId, userId) === undefined,
    isWithheld: blockedAtMs !== undefined,
    deviceIds: shown.map(({ deviceId }) => deviceId).filter(id => deviceList?.deviceIds.includes(id) ?? true),
    ...(deviceList && { deviceList: { seq: deviceList.seq, deviceIds: deviceList.deviceIds } }),
  }
}

function freeRoomId({ index, randomBytes }: CallFactsDeps): number {
  for (;;) {
    const roomId = Number(newId(randomBytes))
    if (index.callInRoom(roomId) === undefined) return roomId
  }
}
