/** How a push is shown, judged by the server's time (docs/build/push.md). */

import { sha256 } from '#primitives'
import { Recent } from '../../recent.ts'
import type { CallsignOptions } from '../callsign-options.ts'
import type { DeviceDetails, RegisteredDevice } from '../devices/device-registration.ts'
import type { Server } from '../session/server.ts'
import { type Invitation, ringsForMs } from './ringing.ts'
import { makePushKey, openPush, pushKeyOf } from './sealed-push.ts'

/** `uuid` is CallKit's name of the call, the same for each push and message of it. */
interface CallShown {
  readonly callId: string
  readonly uuid: string
  readonly callerId: string
  /** For screens: this user's own name for the caller, else the caller's display name. */
  readonly callerName: string
  /** False for a stranger, who may have any name: say so on the screen. */
  readonly isContact: boolean
  readonly isVideo: boolean
}

export type PushAction =
  /** Ring, `forMs` at the longest. Android: a full-screen notification. iOS: report it to CallKit, always first of all. */
  | (CallShown & { readonly show: 'ringing'; readonly forMs: number })
  /** It has rung out. iOS: report it, and its end at once. Android: nothing. */
  | (CallShown & { readonly show: 'over' })
  | {
      readonly show: 'stop-ringing'
      readonly callId: string
      readonly uuid: string
      readonly reason: 'cancelled' | 'answered_elsewhere' | 'declined_elsewhere' | 'ended'
      /** In place of the ringing. */
      readonly shows: AfterRinging
    }
  /** Shown by the system, or by the app: `type` and members as docs/build/push.md has them. */
  | { readonly show: 'notice'; readonly type: string; readonly members: Readonly<Record<string, string>> }
  /** For another device of this phone's past, or shown before. */
  | { readonly show: 'nothing' }

type AfterRinging =
  /** Where `isContact` is false they are a stranger, who may have any name: say so. */
  | { readonly show: 'missed-call'; readonly name: string; readonly isContact: boolean }
  /** A line without sound that is gone after 10 s: the user has answered or declined it on another device. */
  | { readonly show: 'quiet'; readonly reason: 'answered_elsewhere' | 'declined_elsewhere' }
  | { readonly show: 'nothing' }

/** A push's own members as texts: those of FCM are, and those of APNs stand beside `aps`. */
export type PushMembers = Readonly<Record<string, string>>

export function pushMembers(payload: Readonly<Record<string, unknown>>): PushMembers {
  const entries = Object.entries(payload).filter(
    ([, value]) => !['object', 'undefined'].includes(typeof value),
  )
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]))
}

/** Opens pushes, and remembers them, so that each is shown once. */
export class Pushes {
  readonly #seen = new Recent<string, true>(SEEN_MAX)
  readonly #options: Pick<CallsignOptions, 'storage' | 'device' | 'sealedPushes'>

  constructor(options: Pick<CallsignOptions, 'storage' | 'device' | 'sealedPushes'>) {
    this.#options = options
  }

  /** The app's facts about the device, with the key for sealing its pushes. */
  async detailsFor(userId: string | undefined): Promise<DeviceDetails | undefined> {
    const { storage, device, sealedPushes } = this.#options
    if (sealedPushes === undefined || userId === undefined) return device
    const pushKey = sealedPushes ? await makePushKey(storage, userId) : ''
    return { ...device, push: { ...device?.push, pushKey } }
  }

  /** Undefined for a push that is for another device of this phone's past. */
  async judge(
    payload: Readonly<Record<string, unknown>>,
    device: Pick<RegisteredDevice, 'userId' | 'deviceId'>,
    server: Pick<Server, 'nowMs' | 'isTimeKnown'>,
  ): Promise<{ readonly action: PushAction; readonly members: PushMembers } | undefined> {
    const opened = await this.#open(payload, device)
    if (opened === undefined) return undefined
    const members = pushMembers(opened)
    if (isOfOtherDevice(members, device.deviceId)) return undefined
    const { eventId = '' } = members
    const action = judgePush(members, this.#seen.has(eventId), server)
    this.#seen.set(eventId, true)
    return { action, members }
  }

  /** A push that is not sealed is taken, too: it was on its way when the server got the key. */
  async #open(
    payload: Readonly<Record<string, unknown>>,
    { userId, deviceId }: Pick<RegisteredDevice, 'userId' | 'deviceId'>,
  ): Promise<Readonly<Record<string, unknown>> | undefined> {
    const { sealed } = payload
    if (typeof sealed !== 'string') return payload
    const pushKey = await pushKeyOf(this.#options.storage, userId)
    return pushKey === undefined ? undefined : openPush(pushKey, deviceId, sealed)
  }
}

/** Whether a call's push is for another device of this phone's past. */
export function isOfOtherDevice({ type = '', deviceId }: PushMembers, own: string): boolean {
  return deviceId !== undefined && CALL_PUSHES.includes(type) && deviceId !== own
}

/** Judges a push for this device. `isSeen` says that its event was judged before. */
export function judgePush(
  members: PushMembers,
  isSeen: boolean,
  server: Pick<Server, 'nowMs' | 'isTimeKnown'>,
): PushAction {
  const { type = '', callId = '', expiresAt = '', sentAt } = members
  if (type === 'call_invitation') {
    const clock = { aheadMs: 0, isKnown: server.isTimeKnown }
    const forMs = ringsForMs({ expiresAt, sentAt: Number(sentAt) }, clock, server.nowMs())
    // iOS wants to hear of each, also where it rings already.
    return forMs > 0
      ? { ...callShown(members), show: 'ringing', forMs }
      : { ...callShown(members), show: 'over' }
  }
  if (isSeen) return { show: 'nothing' }
  if (type !== 'call_cancel') return { show: 'notice', type, members }
  const reason = members.reason as Extract<PushAction, { show: 'stop-ringing' }>['reason']
  return {
    show: 'stop-ringing',
    callId,
    uuid: callUuid(callId),
    reason,
    shows: afterRinging(reason, members),
  }
}

function afterRinging(reason: string | undefined, members: PushMembers): AfterRinging {
  if (reason === 'cancelled')
    return { show: 'missed-call', name: members.callerName ?? '', isContact: isContactIn(members) }
  if (reason === 'answered_elsewhere' || reason === 'declined_elsewhere') return { show: 'quiet', reason }
  return { show: 'nothing' }
}

/** The invitation of a push. Undefined where the key was too long for a push: the call rings with the next connection. */
export function invitationIn(members: PushMembers): Invitation | undefined {
  const { callId = '', callerId = '', callerName = '', encryptedAESKey, expiresAt = '' } = members
  const { keyFromUserId, keyFromDeviceId, displayName = callerName, alias } = members
  const sealer =
    keyFromUserId === undefined || keyFromDeviceId === undefined ? {} : { keyFromUserId, keyFromDeviceId }
  if (encryptedAESKey === undefined) return undefined
  const numbers = { keyEpoch: Number(members.keyEpoch), sentAt: Number(members.sentAt) }
  const isVideo = members.isVideo === 'true'
  const isOnGoing = members.isOnGoing === 'true'
  return {
    callId,
    callerId,
    callerName,
    displayName,
    ...(alias !== undefined && { alias }),
    isContact: isContactIn(members),
    encryptedAESKey,
    ...sealer,
    expiresAt,
    isVideo,
    isOnGoing,
    ...numbers,
  }
}

function callShown(members: PushMembers): CallShown {
  const { callId = '', callerId = '', callerName = '' } = members
  const isContact = isContactIn(members)
  return {
    callId,
    uuid: callUuid(callId),
    callerId,
    callerName,
    isContact,
    isVideo: members.isVideo === 'true',
  }
}

function isContactIn({ isContact }: PushMembers): boolean {
  return isContact === 'true'
}

/** The first sixteen octets of SHA-256 of the call's id. */
export function callUuid(callId: string): string {
  const digest = sha256(new TextEncoder().encode(callId)).subarray(0, 16)
  const hex = [...digest].map(octet => octet.toString(16).padStart(2, '0')).join('')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

const CALL_PUSHES: readonly string[] = ['call_invitation', 'call_cancel', 'missed_call']
const SEEN_MAX = 500
