/**
 * Pushes in the forms of APNs and FCM (contract 6): which token, topic, urgency and payload each kind of content gets.
 *
 * The VoIP topic is for incoming calls alone: Apple ends an app that is woken there and reports no call, so that the
 * end of one goes another way.
 */

import { randomUUID } from 'node:crypto'
import type { Device } from '../domain/devices/device.ts'
import type { ApnsPush } from './apns-link.ts'
import type { FcmPush } from './fcm.ts'
import type { Alert, PushContent, Ring } from './push-content.ts'
import { CHANNELS, type LocKey } from './push-words.ts'
import type { PushSealing } from './sealed-push.ts'

/** A push's content, its event, and its lifetime. */
export interface Push {
  readonly content: PushContent
  /** 22 base64url characters. */
  readonly eventId: string
  /** Milliseconds since 1970; after that the push is pointless. */
  readonly expiresAtMs: number
}

/**
 * The push for a device with the Apple token that it takes; undefined when there is none, or no bundle id: the device's
 * own, or else the usual one.
 */
export function apnsPushOf(device: Device, push: Push, usualBundleId?: string): ApnsPush | undefined {
  const {
    apnsToken,
    apnsVoipToken,
    apnsEnvironment = 'production',
    bundleId = usualBundleId,
  } = device.push ?? {}
  if (bundleId === undefined) return undefined
  const { content, eventId, expiresAtMs } = push
  const { kind, callId, members } = content
  const isVoip = kind === 'ring' && apnsVoipToken !== undefined
  const token = isVoip ? apnsVoipToken : apnsToken
  if (token === undefined) return undefined
  const sealing = sealingOf(device)
  // One literal: V8 takes microseconds to add members after a spread at the beginning.
  return {
    environment: apnsEnvironment,
    // The same event to two devices would tell Apple that they have something to do with one another.
    id: sealing === undefined ? uuidOf(eventId) : randomUUID(),
    isUrgent: kind !== 'alert',
    // A phone that was out of coverage for half a minute still rings; the app ends a stale call at once.
    expiresAtMs,
    sealing,
    token,
    topic: isVoip ? `${bundleId}.voip` : bundleId,
    pushType: isVoip ? 'voip' : kind === 'silent' ? 'background' : 'alert',
    priority: kind === 'silent' ? 5 : 10,
    collapseId: isVoip ? undefined : callId,
    payload: { aps: isVoip ? {} : apsOf(content, sealing !== undefined), ...members },
  }
}

function apsOf(content: PushContent, isSealed: boolean): object {
  if (content.kind === 'silent') return { 'content-available': 1 }
  return isSealed ? sealedAps(content) : alertAps(content)
}

/** Likewise for a device with an FCM token. */
export function fcmPushOf(device: Device, push: Push, nowMs: number): FcmPush | undefined {
  const token = device.push?.fcmToken
  if (token === undefined) return undefined
  const { content, expiresAtMs } = push
  // The moments that a push spends here take no second from the 30 or 60 of contract 6.
  const ttlSeconds = Math.max(0, Math.round((expiresAtMs - nowMs) / 1000))
  const sealing = sealingOf(device)
  const shown = sealing === undefined ? fcmNotification(content) : {}
  const { kind, members: data } = content
  return { token, priority: 'high', ttlSeconds, isUrgent: kind !== 'alert', sealing, data, ...shown }
}

/** Undefined for a device that Apple's and Google's servers may read the pushes of. */
function sealingOf({ deviceId, push }: Device): PushSealing | undefined {
  return push?.pushKey === undefined ? undefined : { deviceId: `${deviceId}`, pushKey: push.pushKey }
}

/** None for pushes that ring or stop ringing: the system shows nothing by itself, and the app, woken at once, does. */
function fcmNotification(content: PushContent): Pick<FcmPush, 'notification' | 'channelId'> {
  if (content.kind !== 'alert') return {}
  const { locKey, locArgs, thread, callId } = content
  // The app shows a ringing call under this tag, so that the notification replaces it.
  const replaced = callId === undefined ? {} : { tag: callId }
  const channelId = CHANNELS[thread === 'calls' ? 'missed' : thread]
  return { notification: { bodyLocKey: locKey, bodyLocArgs: locArgs, ...replaced }, channelId }
}

function alertAps(content: Alert | Ring): object {
  const { locKey, locArgs, thread } = content
  const badge = content.kind === 'alert' ? content.badge : undefined
  return {
    alert: { 'loc-key': locKey, 'loc-args': locArgs },
    sound: 'default',
    'thread-id': thread,
    ...(badge === undefined ? {} : { badge }),
    ...(content.kind === 'ring' ? RINGING_ALERT : {}),
  }
}

/** Words for the case that the app's extension opens nothing. It sets the badge, too. */
function sealedAps({ kind }: Alert | Ring): object {
  return {
    alert: { 'loc-key': (kind === 'ring' ? 'sealed_call' : 'sealed_notice') satisfies LocKey },
    sound: 'default',
    'mutable-content': 1,
    ...(kind === 'ring' ? RINGING_ALERT : {}),
  }
}

/** APNs wants a UUID; the event's 16 bytes are one. */
function uuidOf(eventId: string): string {
  const hex = Buffer.from(eventId, 'base64url').toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

/** A call to a phone without VoIP pushes: shown through a focus, and the app is woken to ring as it can. */
const RINGING_ALERT = { 'interruption-level': 'time-sensitive', 'content-available': 1 }
