/**
 * Events that the operator's own services hear of by webhook: what happened, told by ids. No names, addresses, keys or tokens:
 * the server API has the rest, and an erasure there leaves no name in an event.
 */

import type { CallEndReason, CallStatus, Participant } from '../calls/call.ts'
import type { CallId, DeviceId, UserId } from '../ids.ts'

export type WebhookEvent =
  | { readonly kind: 'user.created'; readonly userId: UserId }
  /** `changed` names members that differ, not what they are now. */
  | {
      readonly kind: 'user.changed'
      readonly userId: UserId
      readonly changed: readonly ChangedMember[]
      /** When the account will be erased, if that is planned. */
      readonly erasesAtMs?: number | undefined
    }
  /** The account is erased: nothing of the user is left but entries of the log. */
  | { readonly kind: 'user.ended'; readonly userId: UserId }
  | {
      readonly kind: 'user.suspended'
      readonly userId: UserId
      readonly reason: string
      readonly untilMs?: number | undefined
    }
  | { readonly kind: 'user.unsuspended'; readonly userId: UserId }
  | {
      readonly kind: 'session.started'
      readonly userId: UserId
      readonly sessionId: Uint8Array
      readonly deviceId?: DeviceId | undefined
    }
  | {
      readonly kind: 'device.added'
      readonly userId: UserId
      readonly deviceId: DeviceId
      readonly platform: string
    }
  | {
      readonly kind: 'call.started'
      readonly callId: CallId
      readonly callerId: UserId
      readonly calleeIds: readonly UserId[]
      readonly isVideo: boolean
    }
  /** The user was called, and has come in for the first time. */
  | {
      readonly kind: 'call.answered'
      readonly callId: CallId
      readonly callerId: UserId
      readonly userId: UserId
      readonly deviceId: DeviceId
      readonly rangMs: number
    }
  | {
      readonly kind: 'call.missed'
      readonly callId: CallId
      readonly callerId: UserId
      readonly userId: UserId
      readonly reason: MissedReason
    }
  | {
      readonly kind: 'call.declined'
      readonly callId: CallId
      readonly callerId: UserId
      readonly userId: UserId
    }
  | {
      readonly kind: 'call.ended'
      readonly callId: CallId
      readonly callerId: UserId
      readonly status: CallStatus
      readonly reason: CallEndReason
      readonly endedBy?: UserId | undefined
      readonly isVideo: boolean
      /** Since the first callee came in; 0 for an unanswered call. */
      readonly talkedMs: number
      readonly participants: readonly EndedParticipant[]
    }
  /** No event names the reporter. */
  | {
      readonly kind: 'report.created'
      readonly reportId: string
      /** The reported user. */
      readonly userId: UserId
      readonly callId?: CallId | undefined
      readonly reason: string
    }
  | ContactEvent

/** The one with the lower id first, so that all events of a pair are of one subject. */
export interface ContactEvent {
  readonly kind: 'contact.added' | 'contact.removed'
  readonly userIds: readonly [UserId, UserId]
}

export interface EndedParticipant {
  readonly userId: UserId
  readonly state: Participant['state']
  readonly talkedMs: number
}

export type WebhookEventKind = WebhookEvent['kind']

/** Members of a user that `user.changed` names. */
export type ChangedMember =
  | 'displayName'
  | 'settings'
  | 'externalId'
  | 'contactData'
  | 'loginMethods'
  | 'erasesAt'

/** `cancelled`: the caller gave up first; `removed`: the host took the invitation back. */
export type MissedReason = 'unanswered' | 'cancelled' | 'busy' | 'removed'

/** `expired`: not taken for three days; `crowded`: too many waited; `too-large`, `unreadable`: it can't be sent. */
export type DeathReason = 'expired' | 'crowded' | 'too-large' | 'unreadable'

/** Whom or what an event is about. Events of one subject come in their order. */
export type WebhookSubject =
  | { readonly kind: 'user'; readonly id: UserId }
  | { readonly kind: 'call'; readonly id: CallId }

export function subjectOf(event: WebhookEvent): WebhookSubject {
  switch (event.kind) {
    case 'call.started':
    case 'call.answered':
    case 'call.missed':
    case 'call.declined':
    case 'call.ended':
      return { kind: 'call', id: event.callId }
    case 'contact.added':
    case 'contact.removed':
      return { kind: 'user', id: event.userIds[0] }
    default:
      return { kind: 'user', id: event.userId }
  }
}

/** As it stands in an event, such as `user:42`. */
export function subjectText({ kind, id }: WebhookSubject): string {
  return `${kind}:${id}`
}

/** All users whom the event names, each once. */
export function usersIn(event: WebhookEvent): ReadonlySet<UserId> {
  switch (event.kind) {
    case 'call.started':
      return new Set([event.callerId, ...event.calleeIds])
    case 'call.answered':
    case 'call.missed':
    case 'call.declined':
      return new Set([event.callerId, event.userId])
    case 'call.ended':
      return new Set([
        event.callerId,
        ...(event.endedBy === undefined ? [] : [event.endedBy]),
        ...event.participants.map(({ userId }) => userId),
      ])
    case 'contact.added':
    case 'contact.removed':
      return new Set(event.userIds)
    default:
      return new Set([event.userId])
  }
}

/** Two people became contacts, or are none any more. */
export function contactEvent(kind: ContactEvent['kind'], one: UserId, other: UserId): ContactEvent {
  return { kind, userIds: one < other ? [one, other] : [other, one] }
}
