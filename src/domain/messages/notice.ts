/**
 * Messages to a user's devices (contract 6, 7.3): calls, contacts and the account. Each has an id, the same over
 * socket and push, so that a device shows it once.
 */

import type { AddressMethod } from '../accounts/account.ts'
import type { Proof } from '../accounts/session.ts'
import type { AskedBy } from '../accounts/waiting-sign-in.ts'
import type { CallNotice, CallNoticeBody } from '../calls/call-notice.ts'
import type { PushTokenName } from '../devices/device.ts'
import type { DeviceId, RequestId, UserId } from '../ids.ts'

/** Items that a user has not looked at, for the app's icon. */
export interface Badge {
  readonly total: number
  readonly friendRequests: number
  readonly missedCalls: number
}

export type NoticeBody = CallNoticeBody | PersonalNoticeBody

/** A notice without the members that only one device gets. */
export type SharedNotice = CallNotice | PersonalNoticeBody

/** Contacts and the account. */
export type PersonalNoticeBody =
  | {
      readonly kind: 'friend_request'
      readonly requestId: RequestId
      readonly userId: UserId
      readonly displayName: string
      readonly message?: string
      readonly createdAtMs: number
    }
  | { readonly kind: 'friend_request_cancelled'; readonly requestId: RequestId; readonly userId: UserId }
  | {
      readonly kind: 'contact_added'
      readonly userId: UserId
      readonly displayName: string
      /** The accepted request; none where the operator's backend made them contacts. */
      readonly requestId?: RequestId
      /** Only to the sender of a request, who waited for it. */
      readonly isPushed: boolean
    }
  | {
      /** Changed: what the contact calls themselves, or what this user calls them. */
      readonly kind: 'contact_changed' | 'contact_removed'
      readonly userId: UserId
      readonly displayName: string
      /** This user's own name for them. */
      readonly alias: string | undefined
    }
  | {
      /** Changed, reset: this device has signed the next device list, or one with which the user starts over. */
      readonly kind: 'device_added' | 'device_removed' | 'device_list_changed' | 'device_list_reset'
      readonly deviceId: DeviceId
      readonly name: string
      readonly platform: string
      readonly publicKeyHash: string
    }
  | {
      /** Pushes no longer reach the device: another device has sent the same push tokens. */
      readonly kind: 'device_push_lost'
      readonly deviceId: DeviceId
      readonly name: string
      readonly platform: string
      readonly tokens: readonly PushTokenName[]
      readonly isPushed: boolean
    }
  | {
      /** A sign-in to an account that was there before. */
      readonly kind: 'session_started'
      /** 22 base64url characters. */
      readonly sessionId: string
      readonly userAgent: string
      readonly network?: string
      readonly proof: Proof
    }
  | { readonly kind: 'session_ending'; readonly sessionId: string; readonly endsAtMs: number }
  | { readonly kind: 'session_revoked'; readonly reason: string }
  | {
      /** A sign-in waits for an answer on one of these devices. */
      readonly kind: 'sign_in_waiting'
      readonly id: string
      /** The screen that waits shows it, too. */
      readonly signInCode: string
      readonly method: AskedBy
      readonly userAgent: string
      readonly network?: string
      readonly endsAtMs: number
    }
  | {
      /** It waits no more. Replaced: a later one does. Passed: it is in without an answer. Expired: it was never fetched. */
      readonly kind: 'sign_in_ended'
      readonly id: string
      readonly outcome: 'approved' | 'refused' | 'replaced' | 'passed' | 'expired'
    }
  | {
      /** The address signs in to another account now. */
      readonly kind: 'login_method_lost'
      readonly method: AddressMethod['kind']
      readonly value: string
    }
  /** The profile or the login methods are not what they were; a device reads them anew. */
  | { readonly kind: 'profile_changed' }

/** The badge is state: connections get it live, and no inbox keeps it. */
export interface BadgeState {
  readonly kind: 'badge'
  readonly badge: Badge
}

interface EventName {
  /** 22 base64url characters. */
  readonly eventId: string
  readonly sentAtMs: number
}

export type Notice = NoticeBody & EventName

export type BadgeEvent = BadgeState & EventName

export function isSameBadge(one: Badge, other: Badge): boolean {
  return one.friendRequests === other.friendRequests && one.missedCalls === other.missedCalls
}

/** Those that are pushed to devices, whether connected or not (contract 6); those of calls have rules of their own. */
export function isPushed(notice: SharedNotice): boolean {
  switch (notice.kind) {
    case 'friend_request':
    case 'device_added':
    case 'device_list_reset':
    case 'session_started':
    case 'session_ending':
    case 'session_revoked':
    case 'sign_in_waiting':
    case 'login_method_lost':
      return true
    case 'contact_added':
    case 'device_push_lost':
      return notice.isPushed
    default:
      return false
  }
}
