/** What the rules of calling people have to know beyond the call: who they are, their devices, which rooms are free. */

import { takesCallsFromStrangers } from '../../domain/accounts/account.ts'
import type { CalleeFacts, CallFacts } from '../../domain/calls/call-command.ts'
import type { LiveCalls } from '../../domain/calls/live-calls.ts'
import { type CallId, newId, type UserId } from '../../domain/ids.ts'
import type { AccountStore } from '../accounts/account-store.ts'
import type { ContactStore } from '../contacts/contact-store.ts'
import type { DeviceStore } from '../devices/device-store.ts'
import type { View } from '../engine/store.ts'

export interface CallFactsParts {
  readonly accounts: Pick<AccountStore, 'read'>
  readonly devices: Pick<DeviceStore, 'activeDevicesOf' | 'devicesAt'>
  readonly contacts: Pick<ContactStore, 'isContact' | 'blockedAtMs'>
  readonly index: Pick<LiveCalls, 'otherCallOf' | 'callInRoom'>
  readonly randomBytes: (length: number) => Uint8Array
}

/** Somebody calls people, in this call. */
export interface Calling {
  readonly callId: CallId
  readonly callerId: UserId
  readonly calleeIds: readonly UserId[]
  /** The room that was named. */
  readonly roomId: number | undefined
}

/** As of now, by what is durable and by what the rooms have decided. */
export function readCallFacts(view: View, parts: CallFactsParts, calling: Calling): CallFacts {
  const { callId, callerId, calleeIds, roomId } = calling
  const inRoom = roomId === undefined ? undefined : parts.index.callInRoom(roomId)
  return {
    callees: calleeIds.flatMap(calleeId => calleeFacts(view, parts, callerId, calleeId) ?? []),
    ownDevices: parts.devices.activeDevicesOf(view, callerId).map(({ deviceId }) => deviceId),
    otherCallId: parts.index.otherCallOf(callerId, callId),
    isRoomInUse: inRoom !== undefined && inRoom !== callId,
    freeRoomId: freeRoomId(parts),
  }
}

function calleeFacts(
  view: View,
  { accounts, contacts, devices }: CallFactsParts,
  callerId: UserId,
  userId: UserId,
): CalleeFacts | undefined {
  const account = accounts.read(view, userId)
  if (account === undefined) return undefined
  const isInvited = contacts.isContact(view, callerId, userId) || takesCallsFromStrangers(account)
  const blockedAtMs = contacts.blockedAtMs(view, userId, callerId)
  const shown =
    blockedAtMs === undefined
      ? devices.activeDevicesOf(view, userId)
      : devices.devicesAt(view, userId, blockedAtMs)
  return {
    userId,
    displayName: account.displayName,
    mayBeCalled: isInvited && contacts.blockedAtMs(view, callerId, userId) === undefined,
    isWithheld: blockedAtMs !== undefined,
    deviceIds: shown.map(({ deviceId }) => deviceId),
  }
}

function freeRoomId({ index, randomBytes }: CallFactsParts): number {
  for (;;) {
    const roomId = Number(newId(randomBytes))
    if (index.callInRoom(roomId) === undefined) return roomId
  }
}
