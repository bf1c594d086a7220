/**
 * Notices as pushes (contract 6): the alert, headers and payload that APNs and FCM are sent. The words are the app's
 * own, named by `loc-key`, so that they are in the language of the phone.
 */

import type { Device } from '../domain/device.ts'
import type { Notice } from '../domain/notice.ts'
import type { ApnsPush } from './apns.ts'
import type { FcmPush } from './fcm.ts'

/** What the alert says and what the app reads, before it is put into a provider's form. */
interface Alert {
  /** Name of the words in the app's resources. */
  readonly locKey: string
  readonly locArgs: readonly string[]
  readonly thread: 'contacts' | 'account'
  readonly badge?: number
  /** Flat members of the payload. */
  readonly members: Readonly<Record<string, string | number>>
}

/** The push for a device with an APNs token; undefined when the notice is not pushed or there is no token. */
export function apnsPushOf(device: Device, notice: Notice, expiresAtMs: number): ApnsPush | undefined {
  const { apnsToken, apnsEnvironment = 'production', bundleId } = device.push ?? {}
  const alert = alertOf(notice)
  if (apnsToken === undefined || bundleId === undefined || alert === undefined) return undefined
  return {
    token: apnsToken,
    environment: apnsEnvironment,
    topic: bundleId,
    pushType: 'alert',
    priority: 10,
    expiresAtMs,
    id: uuidOf(notice.eventId),
    payload: {
      aps: {
        alert: { 'loc-key': alert.locKey, 'loc-args': alert.locArgs },
        sound: 'default',
        'thread-id': alert.thread,
        ...(alert.badge === undefined ? {} : { badge: alert.badge }),
      },
      ...alert.members,
    },
  }
}

/** Likewise for a device with an FCM token. `data` holds strings only, as FCM demands. */
export function fcmPushOf(
  device: Device,
  notice: Notice,
  expiresAtMs: number,
  nowMs: number,
): FcmPush | undefined {
  const token = device.push?.fcmToken
  const alert = alertOf(notice)
  if (token === undefined || alert === undefined) return undefined
  const data = Object.entries(alert.members).map(([name, value]) => [name, String(value)])
  return {
    token,
    priority: 'high',
    ttlSeconds: Math.max(0, Math.floor((expiresAtMs - nowMs) / 1000)),
    notification: { bodyLocKey: alert.locKey, bodyLocArgs: alert.locArgs },
    channelId: alert.thread,
    data: Object.fromEntries(data),
  }
}

function alertOf(notice: Notice): Alert | undefined {
  const common = { eventId: notice.eventId, sentAt: notice.sentAtMs }
  switch (notice.kind) {
    case 'friend_request':
    case 'contact_added': {
      const type = notice.kind === 'friend_request' ? 'newFriendRequested' : 'acceptFriendRequested'
      const { requestId, userId, displayName, badge } = notice
      const ids = { requestId: `${requestId}`, userId: `${userId}` }
      return {
        locKey: type,
        locArgs: [displayName],
        thread: 'contacts',
        badge: badge.total,
        members: { type, ...ids, displayName, badge: badge.total, ...common },
      }
    }
    case 'device_added': {
      const { kind: type, deviceId, name, platform, publicKeyHash } = notice
      const members = { type, deviceId: `${deviceId}`, name, platform, publicKeyHash, ...common }
      return { locKey: type, locArgs: [name], thread: 'account', members }
    }
    case 'session_revoked':
      return {
        locKey: notice.kind,
        locArgs: [],
        thread: 'account',
        members: { type: notice.kind, reason: notice.reason, ...common },
      }
    default:
      return undefined
  }
}

/** APNs wants a UUID; the event's 16 bytes are one. */
function uuidOf(eventId: string): string {
  const hex = Buffer.from(eventId, 'base64url').toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
