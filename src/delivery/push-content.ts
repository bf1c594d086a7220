/**
 * What a push says (contract 6), before a provider's form is given to it: which notices are pushed, as what, with which
 * members. The words are the app's own, named by `loc-key`, so that they are in the language of the phone.
 */

import type { OverNotice, ShownCaller } from '../domain/calls/call-notice.ts'
import type { DeviceId } from '../domain/ids.ts'
import type { Notice } from '../domain/messages/notice.ts'
import type { LocKey } from './push-words.ts'

export type PushContent = Ring | Silent | Alert

/** Flat members of the payload; ids are decimal texts, times texts of RFC 3339 but for `sentAt`. */
export type PushMembers = Readonly<Record<string, string | number | boolean>> & {
  /** The kind of the push, as the table of contract 6 has it. */
  readonly type: string
}

/** A call comes in: the phone rings. */
export interface Ring extends Words {
  readonly kind: 'ring'
  readonly callId: string
  readonly members: PushMembers
}

/** Reaches the app, not the person: the phone stops ringing. */
export interface Silent {
  readonly kind: 'silent'
  readonly callId: string
  readonly members: PushMembers
}

/** Shown to the person. */
export interface Alert extends Words {
  readonly kind: 'alert'
  readonly badge?: number
  /** Takes the place of what the phone shows of the call. */
  readonly callId?: string
  readonly members: PushMembers
}

interface Words {
  /** Name of the words in the app's resources. */
  readonly locKey: LocKey
  readonly locArgs: readonly string[]
  readonly thread: 'contacts' | 'account' | 'calls'
}

type PlacedWords = Pick<Words, 'locKey' | 'locArgs'>

/** Whom the push is for. */
export interface Addressee {
  readonly deviceId: DeviceId
  /** When the push is of no use any more, milliseconds since 1970. */
  readonly expiresAtMs: number
  /** The user's badge as it is now. */
  readonly badgeOf: () => number
}

/** Undefined when the notice is not pushed. */
export function pushContentOf(notice: Notice, addressee: Addressee): PushContent | undefined {
  switch (notice.kind) {
    case 'call_invitation':
      return ringOf(notice, addressee)
    case 'call_cancelled':
      return silenceOf(notice, 'cancelled', addressee)
    case 'call_answered_elsewhere':
      return silenceOf(notice, elsewhereReasonOf(notice), addressee)
    case 'call_ended':
      return silenceOf(notice, 'ended', addressee)
    case 'call_missed':
      return missedCallOf(notice, addressee)
    case 'friend_request':
    case 'contact_added':
      return contactAlertOf(notice, addressee)
    case 'device_added':
    case 'device_list_reset':
    case 'device_push_lost':
      return deviceAlertOf(notice.kind, notice)
    case 'session_started':
    case 'session_ending':
    case 'session_revoked':
      return sessionAlertOf(notice)
    case 'sign_in_waiting':
    case 'login_method_lost':
      return signInAlertOf(notice)
    default:
      return undefined
  }
}

/**
 * The members without the call's key, for where a payload would be too large with it: the device gets its key with the
 * answer to `join` too.
 */
export function withoutKey(members: PushMembers): PushMembers {
  const { encryptedAESKey: _key, keyFromUserId: _userId, keyFromDeviceId: _deviceId, ...others } = members
  return others
}

/** The notices that a kind is among those of. */
type NoticeOf<Kind extends Notice['kind'], Each = Notice> = Each extends Notice
  ? Kind extends Each['kind']
    ? Each
    : never
  : never

function ringOf(notice: NoticeOf<'call_invitation'>, addressee: Addressee): Ring {
  const { callId, callerName, encryptedAESKey, keyEpoch, roomId, isVideo, isOnGoing } = notice
  const { keyFromUserId, keyFromDeviceId } = notice
  const type = 'call_invitation'
  return {
    kind: 'ring',
    callId: `${callId}`,
    locKey: wordsOf(type, notice),
    locArgs: [callerName],
    thread: 'calls',
    members: {
      type,
      callId: `${callId}`,
      ...callerOf(notice),
      encryptedAESKey,
      keyEpoch,
      keyFromUserId: `${keyFromUserId}`,
      keyFromDeviceId: `${keyFromDeviceId}`,
      roomId,
      isVideo,
      isOnGoing,
      ...envelopeOf(notice, addressee),
    },
  }
}

function silenceOf(
  notice: NoticeOf<'call_cancelled' | 'call_answered_elsewhere' | 'call_ended'>,
  reason: 'cancelled' | 'answered_elsewhere' | 'declined_elsewhere' | 'ended',
  addressee: Addressee,
): Silent {
  const callId = `${notice.callId}`
  const members = {
    type: 'call_cancel',
    reason,
    callId,
    ...(notice.kind === 'call_ended' ? { endReason: notice.endReason } : callOf(notice)),
    ...envelopeOf(notice, addressee),
  }
  return { kind: 'silent', callId, members }
}

function elsewhereReasonOf({ reason }: NoticeOf<'call_answered_elsewhere'>) {
  return reason === 'answered' ? 'answered_elsewhere' : 'declined_elsewhere'
}

function missedCallOf(notice: NoticeOf<'call_missed'>, addressee: Addressee): Alert {
  const { callId, callerName, atMs } = notice
  const type = 'missed_call'
  const badge = addressee.badgeOf()
  return {
    kind: 'alert',
    locKey: wordsOf(type, notice),
    locArgs: [callerName],
    thread: 'calls',
    badge,
    callId: `${callId}`,
    members: {
      type,
      callId: `${callId}`,
      ...callOf(notice),
      at: timeText(atMs),
      badge,
      ...envelopeOf(notice, addressee),
    },
  }
}

function contactAlertOf(notice: NoticeOf<'friend_request' | 'contact_added'>, { badgeOf }: Addressee): Alert {
  const type = notice.kind === 'friend_request' ? 'newFriendRequested' : 'acceptFriendRequested'
  const { requestId, userId, displayName } = notice
  const badge = badgeOf()
  const ids = { ...(requestId !== undefined && { requestId: `${requestId}` }), userId: `${userId}` }
  return {
    kind: 'alert',
    locKey: type,
    locArgs: [displayName],
    thread: 'contacts',
    badge,
    members: { type, ...ids, displayName, badge, ...eventOf(notice) },
  }
}

function sessionAlertOf(notice: NoticeOf<'session_started' | 'session_ending' | 'session_revoked'>): Alert {
  const alert = { kind: 'alert', locKey: notice.kind, locArgs: [], thread: 'account' } as const
  const event = eventOf(notice)
  switch (notice.kind) {
    case 'session_started': {
      const { kind: type, sessionId, userAgent, network, proof } = notice
      const place = network === undefined ? {} : { network }
      const members = { type, sessionId, userAgent, ...place, proof, ...event }
      return { ...alert, ...placedWords(type, userAgent || network), members }
    }
    case 'session_ending': {
      const { kind: type, sessionId, endsAtMs } = notice
      return { ...alert, members: { type, sessionId, endsAt: timeText(endsAtMs), ...event } }
    }
    case 'session_revoked':
      return { ...alert, members: { type: notice.kind, reason: notice.reason, ...event } }
  }
}

function signInAlertOf(notice: NoticeOf<'sign_in_waiting' | 'login_method_lost'>): Alert {
  const { kind: type, method } = notice
  const alert = { kind: 'alert', locKey: type, locArgs: [], thread: 'account' } as const
  // Without the address: the provider of pushes need not learn it.
  if (type === 'login_method_lost') return { ...alert, members: { type, method, ...eventOf(notice) } }
  const { id, signInCode, userAgent, network, endsAtMs } = notice
  const place = network === undefined ? {} : { network }
  const until = timeText(endsAtMs)
  const members = { type, id, signInCode, method, userAgent, ...place, until, ...eventOf(notice) }
  return { ...alert, ...placedWords(type, userAgent || network), members }
}

/** A browser may hide what it is, and a proxy where it is. */
function placedWords(type: 'session_started' | 'sign_in_waiting', place: string | undefined): PlacedWords {
  return place ? { locKey: type, locArgs: [place] } : { locKey: `${type}_unknown`, locArgs: [] }
}

function deviceAlertOf(
  type: 'device_added' | 'device_list_reset' | 'device_push_lost',
  notice: NoticeOf<typeof type>,
): Alert {
  const { deviceId, name, platform } = notice
  const key = notice.kind === 'device_push_lost' ? {} : { publicKeyHash: notice.publicKeyHash }
  const members = { type, deviceId: `${deviceId}`, name, platform, ...key, ...eventOf(notice) }
  return { kind: 'alert', locKey: type, locArgs: [name], thread: 'account', members }
}

function callOf(notice: Omit<OverNotice<unknown>, 'kind'>) {
  return { isVideo: notice.isVideo, ...callerOf(notice) }
}

function callerOf({ callerId, callerName, displayName, alias, isContact }: ShownCaller) {
  const own = alias === undefined ? {} : { alias }
  return { callerId: `${callerId}`, callerName, displayName, ...own, isContact }
}

/** A stranger may have chosen a contact's name, so the alert has to say that the caller is a stranger. */
function wordsOf(type: 'call_invitation' | 'missed_call', { isContact }: ShownCaller): LocKey {
  return isContact ? type : `${type}_stranger`
}

/** Common to all call pushes: lets the device see that the push is for it, new to it, and in time. */
function envelopeOf({ eventId, sentAtMs }: Notice, { deviceId, expiresAtMs }: Addressee) {
  return { eventId, sentAt: sentAtMs, deviceId: `${deviceId}`, expiresAt: timeText(expiresAtMs) }
}

function eventOf({ eventId, sentAtMs }: Notice) {
  return { eventId, sentAt: sentAtMs }
}

/** Devices with the same notice have the same times. */
let lastTime = { atMs: 0, text: '1970-01-01T00:00:00.000Z' }

function timeText(atMs: number): string {
  if (lastTime.atMs !== atMs) lastTime = { atMs, text: new Date(atMs).toISOString() }
  return lastTime.text
}
