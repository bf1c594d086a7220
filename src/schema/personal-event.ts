/** Events of contacts, devices, sessions and the user. */

import Type from 'typebox'
import type { BadgeState, PersonalNoticeBody } from '../domain/messages/notice.ts'
import { assert } from '../errors.ts'
import { Badge, Proof, SessionId, UserView } from './account.ts'
import { Alias } from './contact.ts'
import { type EventForm, type EventReader, eventForm, VERSION as v } from './event-form.ts'
import { oneOf } from './one-of.ts'
import { AskedBy, NetworkPrefix, SignInId } from './sign-in.ts'
import { Time, timeText } from './time.ts'
import { Uint64Text } from './uint64.ts'

function contactForm(kind: 'contact_changed' | 'contact_removed', summary: string): EventForm {
  return eventForm(
    kind,
    summary,
    { userId: Uint64Text, displayName: Type.String(), alias: Type.Optional(Alias) },
    ({ kind: type, eventId, sentAtMs: sentAt, userId, displayName, alias }) => ({
      v,
      type,
      eventId,
      sentAt,
      userId,
      displayName,
      alias,
    }),
  )
}

function deviceForm(
  kind: 'device_added' | 'device_removed' | 'device_list_changed' | 'device_list_reset',
  summary: string,
): EventForm {
  return eventForm(
    kind,
    summary,
    { deviceId: Uint64Text, name: Type.String(), platform: Type.String(), publicKeyHash: Type.String() },
    ({ kind: type, eventId, sentAtMs: sentAt, deviceId, name, platform, publicKeyHash }) => ({
      v,
      type,
      eventId,
      sentAt,
      deviceId,
      name,
      platform,
      publicKeyHash,
    }),
  )
}

export const PERSONAL_EVENTS = {
  friend_request: eventForm(
    'friend_request',
    'A user asks to be a contact',
    {
      requestId: Uint64Text,
      userId: Uint64Text,
      displayName: Type.String(),
      message: Type.Optional(Type.String()),
      createdAt: Time,
    },
    ({ kind: type, eventId, sentAtMs: sentAt, requestId, userId, displayName, message, createdAtMs }) => ({
      v,
      type,
      eventId,
      sentAt,
      requestId,
      userId,
      displayName,
      message,
      createdAt: timeText(createdAtMs),
    }),
  ),
  friend_request_cancelled: eventForm(
    'friend_request_cancelled',
    'The request was taken back',
    { requestId: Uint64Text, userId: Uint64Text },
    ({ kind: type, eventId, sentAtMs: sentAt, requestId, userId }) => ({
      v,
      type,
      eventId,
      sentAt,
      requestId,
      userId,
    }),
  ),
  contact_added: eventForm(
    'contact_added',
    'The two are contacts now',
    { userId: Uint64Text, displayName: Type.String() },
    ({ kind: type, eventId, sentAtMs: sentAt, userId, displayName }) => ({
      v,
      type,
      eventId,
      sentAt,
      userId,
      displayName,
    }),
  ),
  contact_changed: contactForm(
    'contact_changed',
    'A contact has another name, or another device of this user gave them one: both names as they are now',
  ),
  contact_removed: contactForm('contact_removed', 'The two are contacts no more'),
  device_added: deviceForm(
    'device_added',
    'Another device signed in as this user: show it. Once the user agrees, sign a device list that names it too',
  ),
  device_removed: deviceForm('device_removed', 'A device of this user was removed'),
  device_list_changed: deviceForm(
    'device_list_changed',
    'The user has another device list, which this device signed: fetch and judge it',
  ),
  device_list_reset: deviceForm(
    'device_list_reset',
    'The user started over with a device list that this device signed and no listed one: show it as an alarm',
  ),
  device_push_lost: eventForm(
    'device_push_lost',
    'Another device took over the push tokens of this one, which calls do not wake any more: show it',
    {
      deviceId: { ...Uint64Text, description: 'The device that is pushed to no more' },
      name: Type.String(),
      platform: Type.String(),
      tokens: Type.Array(oneOf(['apnsToken', 'apnsVoipToken', 'fcmToken', 'webPush']), {
        description: 'What another device has sent as its own',
      }),
    },
    ({ kind: type, eventId, sentAtMs: sentAt, deviceId, name, platform, tokens }) => ({
      v,
      type,
      eventId,
      sentAt,
      deviceId,
      name,
      platform,
      tokens,
    }),
  ),
  session_started: eventForm(
    'session_started',
    'The user, or an intruder, signed in to this account: show it, with the way to end that session',
    {
      sessionId: SessionId,
      userAgent: Type.String({
        description: 'What signed in, in its own words, cut and without odd characters',
      }),
      network: Type.Optional(NetworkPrefix),
      proof: Proof,
    },
    ({ kind: type, eventId, sentAtMs: sentAt, sessionId, userAgent, network, proof }) => ({
      v,
      type,
      eventId,
      sentAt,
      sessionId,
      userAgent,
      network,
      proof,
    }),
  ),
  session_ending: eventForm(
    'session_ending',
    'The session of this device ends then: ask the user to sign in again before',
    { sessionId: SessionId, endsAt: Time },
    ({ kind: type, eventId, sentAtMs: sentAt, sessionId, endsAtMs }) => ({
      v,
      type,
      eventId,
      sentAt,
      sessionId,
      endsAt: timeText(endsAtMs),
    }),
  ),
  session_revoked: eventForm(
    'session_revoked',
    'Sessions of this user were ended, and why',
    { reason: Type.String() },
    ({ kind: type, eventId, sentAtMs: sentAt, reason }) => ({ v, type, eventId, sentAt, reason }),
  ),
  sign_in_waiting: eventForm(
    'sign_in_waiting',
    'A device entered a right code and waits: show it, with the code, and answer it once the user has compared both screens',
    {
      id: SignInId,
      signInCode: Type.String({ description: 'Twenty digits, which the screen that waits shows, too' }),
      method: AskedBy,
      userAgent: Type.String(),
      network: Type.Optional(NetworkPrefix),
      until: { ...Time, description: 'Then it goes through without an answer' },
    },
    ({ kind: type, eventId, sentAtMs: sentAt, id, signInCode, method, userAgent, network, endsAtMs }) => ({
      v,
      type,
      eventId,
      sentAt,
      id,
      signInCode,
      method,
      userAgent,
      network,
      until: timeText(endsAtMs),
    }),
  ),
  sign_in_ended: eventForm(
    'sign_in_ended',
    'A sign-in waits no more: take it off the screen',
    { id: SignInId, outcome: oneOf(['approved', 'refused', 'replaced', 'passed', 'expired']) },
    ({ kind: type, eventId, sentAtMs: sentAt, id, outcome }) => ({ v, type, eventId, sentAt, id, outcome }),
  ),
  login_method_lost: eventForm(
    'login_method_lost',
    'An address of this user opens another account now: show it',
    { method: oneOf(['email', 'phone']), value: Type.String() },
    ({ kind: type, eventId, sentAtMs: sentAt, method, value }) => ({
      v,
      type,
      eventId,
      sentAt,
      method,
      value,
    }),
  ),
  profile_changed: eventForm(
    'profile_changed',
    'The profile as it is now',
    UserView.properties,
    ({ kind: type, eventId, sentAtMs: sentAt }, reader) => ({ v, type, eventId, sentAt, ...userOf(reader) }),
    'all',
  ),
  badge: eventForm(
    'badge',
    "The app's badge as it should be: live only, sent on SUBSCRIBE and when it changes",
    Badge.properties,
    ({ kind: type, eventId, sentAtMs: sentAt, badge: { total, friendRequests, missedCalls } }) => ({
      v,
      type,
      eventId,
      sentAt,
      total,
      friendRequests,
      missedCalls,
    }),
  ),
} satisfies Record<(PersonalNoticeBody | BadgeState)['kind'], EventForm>

function userOf({ user }: EventReader) {
  assert(user !== undefined, 'a changed profile is written for its user')
  return user()
}
