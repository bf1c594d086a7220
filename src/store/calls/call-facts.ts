/** Facts that the rules of calling need beyond the call: the people, their devices, which rooms are free. */

import type { CallDeviceRef } from '../../domain/calls/call.ts'
import {
  type CallActor,
  type CalleeFacts,
  type CallFacts,
  type CallRequest,
  NO_FACTS,
} from '../../domain/calls/call-command.ts'
import type { LiveCalls } from '../../domain/calls/live-calls.ts'
import { type CallId, newId, type UserId } from '../../domain/ids.ts'
import type { AccountStore } from '../accounts/account-store.ts'
import type { ContactStore } from '../contacts/contact-store.ts'
import type { DeviceListStore } from '../devices/device-list-store.ts'
import type { DeviceStore } from '../devices/device-store.ts'
import type { ReadStore, View } from '../engine/store.ts'
import { CalledPeople } from './called-people.ts'

export interface CallFactsDeps {
  readonly database: Pick<ReadStore, 'view' | 'watch'>
  readonly accounts: Pick<AccountStore, 'read' | 'displayNameOf'>
  readonly devices: Pick<DeviceStore, 'activeDevicesOf' | 'devicesAt'>
  readonly deviceLists: Pick<DeviceListStore, 'newest'>
  readonly contacts: Pick<ContactStore, 'linkOf' | 'blockedAtMs' | 'haveCircle'>
  readonly index: Pick<LiveCalls, 'otherCallOf' | 'otherCallWith' | 'callInRoom' | 'callsBetween'>
  readonly randomBytes: (length: number) => Uint8Array
}

export class CallFactsReader {
  readonly #deps: CallFactsDeps
  readonly #people: CalledPeople

  constructor(deps: CallFactsDeps) {
    this.#deps = deps
    this.#people = new CalledPeople(deps)
  }

  /** All that the decision on the request needs, as of now: from durable rows and from the rooms' decisions. */
  read(request: CallRequest, callId: CallId): CallFacts {
    const { by } = request
    switch (request.kind) {
      case 'start':
      case 'invite':
        return { ...this.#liveFacts(request, callId), ...this.#peopleFacts(request) }
      case 'remove':
        return this.readForOperator()
      case 'request-rejoin':
        return { ...NO_FACTS, actor: this.#actorOf(by) }
      case 'join':
      case 'rejoin': {
        const otherCallId = this.#deps.index.otherCallWith(by.userId, by.deviceId, callId)
        return { ...NO_FACTS, actor: this.#actorOf(by), otherCallId }
      }
      default:
        return NO_FACTS
    }
  }

  /** For a command of the operator's. */
  readForOperator(): CallFacts {
    return { ...NO_FACTS, freeRoomId: this.#freeRoomId() }
  }

  #peopleFacts({ by, calleeIds }: CallingRequest): Pick<CallFacts, PeopleFact> {
    const { database, accounts, devices } = this.#deps
    return database.view(view => {
      const own = devices.activeDevicesOf(view, by.userId)
      return {
        actor: actorOf(view, this.#deps, this.#people, by),
        ownDevices: own.map(({ deviceId }) => deviceId),
        displayName: accounts.displayNameOf(view, by.userId),
        callees: calleeIds.flatMap(
          calleeId => calleeFacts(view, this.#deps, this.#people, by.userId, calleeId) ?? [],
        ),
      }
    })
  }

  #liveFacts({ by, calleeIds, roomId }: CallingRequest, callId: CallId): Omit<CallFacts, PeopleFact> {
    const { index } = this.#deps
    const inRoom = roomId === undefined ? undefined : index.callInRoom(roomId)
    return {
      callsBetween: calleeIds.flatMap(calleeId => index.callsBetween(by.userId, calleeId)),
      otherCallId: index.otherCallOf(by.userId, callId),
      isRoomInUse: inRoom !== undefined && inRoom !== callId,
      freeRoomId: this.#freeRoomId(),
    }
  }

  #actorOf(by: CallDeviceRef): CallActor | undefined {
    return this.#deps.database.view(view => actorOf(view, this.#deps, this.#people, by))
  }

  #freeRoomId(): number {
    for (;;) {
      const roomId = Number(newId(this.#deps.randomBytes))
      if (this.#deps.index.callInRoom(roomId) === undefined) return roomId
    }
  }
}

/** A request of a user who calls people. */
type CallingRequest = Extract<CallRequest, { readonly calleeIds: unknown }>
type PeopleFact = 'actor' | 'ownDevices' | 'displayName' | 'callees'

/** A request that was on its way when its user was suspended has no actor any more. */
function actorOf(
  view: View,
  { devices }: Pick<CallFactsDeps, 'devices'>,
  people: CalledPeople,
  { userId, deviceId }: CallDeviceRef,
): CallActor | undefined {
  const device = devices.activeDevicesOf(view, userId).find(each => each.deviceId === deviceId)
  if (device === undefined || people.user(view, userId)?.isSuspended) return undefined
  const { publicKeyHash, keyAlgorithm } = device
  return { userId, deviceId, publicKeyHash, keyAlgorithm }
}

function calleeFacts(
  view: View,
  { contacts, devices }: Pick<CallFactsDeps, 'contacts' | 'devices'>,
  people: CalledPeople,
  callerId: UserId,
  userId: UserId,
): CalleeFacts | undefined {
  const user = people.user(view, userId)
  if (user === undefined) return undefined
  const { displayName, isSuspended, deviceList } = user
  const { link, blockedAtMs } = people.towards(view, userId, callerId)
  const isKnown = link !== undefined || contacts.haveCircle(view, callerId, userId)
  const isInvited = isKnown || user.takesCallsFromStrangers
  // Whether the caller is blocked or not, the log shows the same newest list.
  const shown =
    blockedAtMs === undefined || deviceList !== undefined
      ? user.deviceIds
      : devices.devicesAt(view, userId, blockedAtMs).map(({ deviceId }) => deviceId)
  return {
    userId,
    displayName,
    caller: link?.alias === undefined ? { isContact: isKnown } : { isContact: isKnown, alias: link.alias },
    mayBeCalled: isInvited && people.towards(view, callerId, userId).blockedAtMs === undefined,
    isWithheld: blockedAtMs !== undefined,
    isSuspended,
    deviceIds: deviceList === undefined ? shown : shown.filter(id => deviceList.deviceIds.includes(id)),
    deviceList,
  }
}
