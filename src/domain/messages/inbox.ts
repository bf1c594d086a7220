/**
 * What waits for a device (contract 7.1): in which queue a subscription finds it, and how long it is kept.
 */

import type { KeyedNotice } from '../calls/call-notice.ts'
import type { CallId, UserId } from '../ids.ts'
import type { BadgeState, Notice, SharedNotice } from './notice.ts'

/** A notice in the inbox of one device. */
export interface NoticeItem {
  readonly kind: 'notice'
  /** The same object for all devices that a change tells the same. Never changed. */
  readonly body: SharedNotice
  /** The device's slice of the call's key; with a keyed notice alone. */
  readonly encryptedAESKey: string | undefined
  readonly eventId: string
  readonly sentAtMs: number
}

export type InboxItem =
  | NoticeItem
  /** A message sent to a queue of the development surface; the queue is named `dev.…`. */
  | {
      readonly kind: 'dev'
      readonly queue: string
      readonly headers: readonly (readonly [name: string, value: string])[]
      readonly body: Uint8Array
    }

export type NoticeQueue = 'calls' | 'contacts' | 'account'

/** The whole notice of a device. */
export function noticeOf({ body, encryptedAESKey, eventId, sentAtMs }: NoticeItem): Notice {
  // In this order: V8 takes ten times as long to add members after a spread (`invitations` in `bench/`).
  if (encryptedAESKey === undefined) return { eventId, sentAtMs, ...(body as UnkeyedNotice) }
  return { eventId, sentAtMs, encryptedAESKey, ...(body as KeyedNotice) }
}

/** The queue of an item, as it follows `/user/queue/`. */
export function queueOf(item: InboxItem): string {
  return item.kind === 'dev' ? item.queue : queueOfNotice(item.body.kind)
}

export function queueOfNotice(kind: (Notice | BadgeState)['kind']): NoticeQueue {
  return QUEUES[kind]
}

/** Whether a device that the user's list does not name hears of it, too. */
export function isForAnyDevice(kind: Notice['kind']): boolean {
  return queueOfNotice(kind) === 'account' && !FOR_LISTED_DEVICES.has(kind)
}

/** The call that an item invites to; undefined for everything else. */
export function callInvitedTo(item: InboxItem): CallId | undefined {
  return item.kind === 'notice' && item.body.kind === 'call_invitation' ? item.body.callId : undefined
}

/** The notice that replaces an unfetched invitation; undefined for other notices. */
export function missedInsteadOf(notice: SharedNotice): SharedNotice | undefined {
  if (notice.kind !== 'call_invitation') return undefined
  const { callId, version, callerId, callerName, displayName, alias, isContact, isVideo } = notice
  const caller = { callerId, callerName, displayName, alias, isContact }
  return { kind: 'call_missed', callId, version, ...caller, isVideo, atMs: notice.expiresAtMs }
}

/** Whether the device needs the older item no more once it has the newer: both say how one contact is called. */
export function isOutdatedBy(older: InboxItem | undefined, newer: InboxItem): boolean {
  const [was, is] = [contactNamedIn(older), contactNamedIn(newer)]
  return was !== undefined && was === is
}

type UnkeyedNotice = Exclude<SharedNotice, KeyedNotice>

function contactNamedIn(item: InboxItem | undefined): UserId | undefined {
  return item?.kind === 'notice' && item.body.kind === 'contact_changed' ? item.body.userId : undefined
}

/** Messages of one device; beyond it the oldest goes (contract 7.1). */
export const INBOX_MESSAGES_MAX = 500
/** Unfetched messages are dropped after this time (contract 7.1). */
export const INBOX_KEPT_MS = 7 * 86_400_000

/** They say who else signs in, and an address. */
const FOR_LISTED_DEVICES: ReadonlySet<Notice['kind']> = new Set([
  'sign_in_waiting',
  'sign_in_ended',
  'login_method_lost',
])

const QUEUES: Record<(Notice | BadgeState)['kind'], NoticeQueue> = {
  call_invitation: 'calls',
  call_cancelled: 'calls',
  call_missed: 'calls',
  call_answered_elsewhere: 'calls',
  call_moved: 'calls',
  call_ended: 'calls',
  participant_request_rejoin: 'calls',
  participant_accept_rejoin: 'calls',
  key_update: 'calls',
  key_missing: 'calls',
  media_ready: 'calls',
  friend_request: 'contacts',
  friend_request_cancelled: 'contacts',
  contact_added: 'contacts',
  contact_changed: 'contacts',
  contact_removed: 'contacts',
  device_added: 'account',
  device_removed: 'account',
  device_list_changed: 'account',
  device_list_reset: 'account',
  device_push_lost: 'account',
  session_started: 'account',
  session_ending: 'account',
  session_revoked: 'account',
  sign_in_waiting: 'account',
  sign_in_ended: 'account',
  login_method_lost: 'account',
  profile_changed: 'account',
  badge: 'account',
}
