/** The bodies of messages to devices (contract 7.3), each checked against the schema that documents it. */

import t from 'tap'
import { Compile } from 'typebox/schema'
import { DEFAULT_SETTINGS } from '../../src/domain/accounts/account.ts'
import type { RoomEntry } from '../../src/domain/calls/call.ts'
import type { CallTopicEvent, ParticipantView } from '../../src/domain/calls/call-notice.ts'
import type { CallId, DeviceId, RequestId, UserId } from '../../src/domain/ids.ts'
import type { BadgeState, NoticeBody } from '../../src/domain/messages/notice.ts'
import { EVENTS as FORMS } from '../../src/schema/event.ts'
import type { EventType } from '../../src/schema/event-form.ts'
import { formatJson } from '../../src/schema/json.ts'
import { unknownMembers } from '../../src/schema/shape.ts'

const [USER, OTHER] = [2n ** 64n - 1n, 12n] as [UserId, UserId]
const DEVICE = 34n as DeviceId
const CALL = 56n as CallId
const REQUEST = 78n as RequestId
const AT_MS = Date.UTC(2026, 10, 20)
const AT = '2026-11-20T00:00:00.000Z'
const KEY = 'a2V5'

const CALLER = { callerId: USER, callerName: 'Annie', displayName: 'Ann', alias: 'Annie', isContact: true }
const OVER = { callId: CALL, version: 4, ...CALLER, isVideo: true, atMs: AT_MS }
const OVER_FIELDS = {
  callId: '56',
  version: 4,
  ...CALLER,
  callerId: `${USER}`,
  isVideo: true,
  at: AT,
}
const PARTICIPANT: ParticipantView = {
  userId: USER,
  displayName: 'Ann',
  state: 'joined',
  isHost: true,
  invitedBy: OTHER,
  invitedAtMs: AT_MS,
  joinedAtMs: AT_MS,
  leftAtMs: undefined,
  deviceId: DEVICE,
  publicKeyHash: 'hash',
  mediaName: `${USER}:Ann`,
  feedIds: [77],
}
const PARTICIPANT_FIELDS = {
  callId: '56',
  version: 4,
  participant: {
    userId: `${USER}`,
    displayName: 'Ann',
    state: 'joined',
    isHost: true,
    invitedBy: '12',
    invitedAt: AT,
    joinedAt: AT,
    deviceId: '34',
    publicKeyHash: 'hash',
    mediaName: `${USER}:Ann`,
    feedIds: [77],
  },
}
const admit = {
  kind: 'janus' as const,
  admissionOf: ({ roomId, gateway, device }: RoomEntry) => ({
    url: `wss://${gateway}.example.org`,
    roomToken: `room ${roomId}`,
    pluginToken: `for ${device.userId}_${device.deviceId}`,
  }),
}
const BADGE = { total: 3, friendRequests: 1, missedCalls: 2 }
const PHONE = { deviceId: DEVICE, name: 'a phone', platform: 'ios', publicKeyHash: 'hash' }

type Event = NoticeBody | BadgeState | CallTopicEvent

/** An event of each kind, and the fields that its body has beside those of all. */
const PROFILE = {
  userId: USER,
  displayName: 'Ann',
  email: undefined,
  phone: undefined,
  emailVerified: false,
  phoneVerified: false,
  primaryMethodId: 5n,
  loginMethods: [],
  device: undefined,
  badge: BADGE,
  createdAt: AT,
  settings: DEFAULT_SETTINGS,
  restriction: undefined,
}

const EVENTS: Readonly<Record<EventType, readonly [Event, object]>> = {
  call_invitation: [
    {
      kind: 'call_invitation',
      callId: CALL,
      version: 4,
      ...CALLER,
      alias: undefined,
      callerName: 'Ann',
      isContact: false,
      roomId: 9,
      isVideo: true,
      isOnGoing: false,
      expiresAtMs: AT_MS,
      keyEpoch: 1,
      keyFromUserId: USER,
      keyFromDeviceId: 78n as DeviceId,
      encryptedAESKey: KEY,
      participants: [{ userId: USER, displayName: 'Ann' }],
    },
    {
      callId: '56',
      version: 4,
      callerId: `${USER}`,
      callerName: 'Ann',
      displayName: 'Ann',
      isContact: false,
      roomId: 9,
      deviceId: '34',
      isVideo: true,
      isOnGoing: false,
      expiresAt: AT,
      keyEpoch: 1,
      keyFromUserId: `${USER}`,
      keyFromDeviceId: '78',
      encryptedAESKey: KEY,
      participants: [{ userId: `${USER}`, displayName: 'Ann' }],
    },
  ],
  call_cancelled: [
    { kind: 'call_cancelled', ...OVER },
    { ...OVER_FIELDS, badge: BADGE },
  ],
  call_missed: [
    { kind: 'call_missed', ...OVER },
    { ...OVER_FIELDS, badge: BADGE },
  ],
  call_answered_elsewhere: [
    { kind: 'call_answered_elsewhere', ...OVER, reason: 'declined' },
    { ...OVER_FIELDS, reason: 'declined' },
  ],
  call_moved: [{ kind: 'call_moved', ...OVER }, OVER_FIELDS],
  call_ended: [
    {
      kind: 'call_ended',
      callId: CALL,
      version: 4,
      status: 'ended',
      endReason: 'hangup',
      endedBy: OTHER,
      endedAtMs: AT_MS,
    },
    { callId: '56', version: 4, status: 'ended', endReason: 'hangup', endedBy: '12', endedAt: AT },
  ],
  participant_request_rejoin: [
    {
      kind: 'participant_request_rejoin',
      callId: CALL,
      version: 4,
      userId: USER,
      deviceId: DEVICE,
      displayName: 'Ann',
      publicKeyHash: 'hash',
      expiresAtMs: AT_MS,
    },
    {
      callId: '56',
      version: 4,
      userId: `${USER}`,
      deviceId: '34',
      displayName: 'Ann',
      publicKeyHash: 'hash',
      expiresAt: AT,
    },
  ],
  participant_accept_rejoin: [
    {
      kind: 'participant_accept_rejoin',
      callId: CALL,
      version: 4,
      keyEpoch: 2,
      encryptedAESKey: KEY,
      fromUserId: USER,
      fromDeviceId: DEVICE,
    },
    {
      callId: '56',
      version: 4,
      keyEpoch: 2,
      encryptedAESKey: KEY,
      fromUserId: `${USER}`,
      fromDeviceId: '34',
    },
  ],
  key_update: [
    {
      kind: 'key_update',
      callId: CALL,
      version: 4,
      epoch: 2,
      reason: 'leave',
      encryptedAESKey: KEY,
      fromUserId: USER,
      fromDeviceId: DEVICE,
      setHash: 'aGFzaA==',
      added: '',
      removed: ['12_34'],
    },
    {
      callId: '56',
      version: 4,
      epoch: 2,
      reason: 'leave',
      encryptedAESKey: KEY,
      fromUserId: `${USER}`,
      fromDeviceId: '34',
      setHash: 'aGFzaA==',
      added: '',
      removed: ['12_34'],
    },
  ],
  key_missing: [
    { kind: 'key_missing', callId: CALL, version: 4, epoch: 2 },
    { callId: '56', version: 4, epoch: 2 },
  ],
  media_ready: [
    { kind: 'media_ready', callId: CALL, version: 4, roomId: 7_001, gateway: 'media' },
    {
      callId: '56',
      version: 4,
      roomId: 7_001,
      media: {
        kind: 'janus',
        state: 'ready',
        url: 'wss://media.example.org',
        roomToken: 'room 7001',
        pluginToken: `for ${USER}_34`,
      },
    },
  ],
  participant_invited: [
    { kind: 'participant_invited', callId: CALL, version: 4, participant: PARTICIPANT },
    PARTICIPANT_FIELDS,
  ],
  participant_ringing: [
    { kind: 'participant_ringing', callId: CALL, version: 4, participant: PARTICIPANT },
    PARTICIPANT_FIELDS,
  ],
  participant_joined: [
    { kind: 'participant_joined', callId: CALL, version: 4, participant: PARTICIPANT },
    PARTICIPANT_FIELDS,
  ],
  participant_left: [
    { kind: 'participant_left', callId: CALL, version: 4, participant: PARTICIPANT },
    PARTICIPANT_FIELDS,
  ],
  participant_declined: [
    { kind: 'participant_declined', callId: CALL, version: 4, participant: PARTICIPANT },
    PARTICIPANT_FIELDS,
  ],
  participant_unreachable: [
    {
      kind: 'participant_unreachable',
      callId: CALL,
      version: 4,
      userId: OTHER,
      hasUnapprovedDevice: true,
    },
    { callId: '56', version: 4, userId: '12', hasUnapprovedDevice: true },
  ],
  media_changed: [
    { kind: 'media_changed', callId: CALL, version: 4, participant: PARTICIPANT },
    PARTICIPANT_FIELDS,
  ],
  host_changed: [
    { kind: 'host_changed', callId: CALL, version: 4, hostUserId: OTHER },
    { callId: '56', version: 4, hostUserId: '12' },
  ],
  call_status: [
    { kind: 'call_status', callId: CALL, version: 4, status: 'active' },
    { callId: '56', version: 4, status: 'active' },
  ],
  friend_request: [
    {
      kind: 'friend_request',
      requestId: REQUEST,
      userId: USER,
      displayName: 'Ann',
      message: 'hello',
      createdAtMs: AT_MS,
    },
    { requestId: '78', userId: `${USER}`, displayName: 'Ann', message: 'hello', createdAt: AT },
  ],
  friend_request_cancelled: [
    { kind: 'friend_request_cancelled', requestId: REQUEST, userId: USER },
    { requestId: '78', userId: `${USER}` },
  ],
  contact_added: [
    {
      kind: 'contact_added',
      userId: USER,
      displayName: 'Ann',
      requestId: REQUEST,
      isPushed: true,
    },
    { userId: `${USER}`, displayName: 'Ann' },
  ],
  contact_removed: [
    { kind: 'contact_removed', userId: USER, displayName: 'Ann', alias: 'Annie' },
    { userId: `${USER}`, displayName: 'Ann', alias: 'Annie' },
  ],
  contact_changed: [
    { kind: 'contact_changed', userId: USER, displayName: 'Ann', alias: undefined },
    { userId: `${USER}`, displayName: 'Ann' },
  ],
  device_added: [
    { kind: 'device_added', ...PHONE },
    { ...PHONE, deviceId: '34' },
  ],
  device_removed: [
    { kind: 'device_removed', ...PHONE },
    { ...PHONE, deviceId: '34' },
  ],
  device_list_changed: [
    { kind: 'device_list_changed', ...PHONE },
    { ...PHONE, deviceId: '34' },
  ],
  device_list_reset: [
    { kind: 'device_list_reset', ...PHONE },
    { ...PHONE, deviceId: '34' },
  ],
  device_push_lost: [
    {
      kind: 'device_push_lost',
      deviceId: DEVICE,
      name: 'a phone',
      platform: 'ios',
      tokens: ['apnsToken', 'apnsVoipToken'],
      isPushed: true,
    },
    { deviceId: '34', name: 'a phone', platform: 'ios', tokens: ['apnsToken', 'apnsVoipToken'] },
  ],
  session_started: [
    {
      kind: 'session_started',
      sessionId: 'A'.repeat(22),
      userAgent: 'curl',
      network: '203.0.113.0/24',
      proof: 'otp',
    },
    { sessionId: 'A'.repeat(22), userAgent: 'curl', network: '203.0.113.0/24', proof: 'otp' },
  ],
  session_ending: [
    { kind: 'session_ending', sessionId: 'A'.repeat(22), endsAtMs: AT_MS },
    { sessionId: 'A'.repeat(22), endsAt: AT },
  ],
  session_revoked: [{ kind: 'session_revoked', reason: 'logout' }, { reason: 'logout' }],
  sign_in_waiting: [
    {
      kind: 'sign_in_waiting',
      id: 'x',
      signInCode: '12345',
      method: 'email',
      userAgent: 'Calls',
      network: '203.0.113.0/24',
      endsAtMs: AT_MS,
    },
    {
      id: 'x',
      signInCode: '12345',
      method: 'email',
      userAgent: 'Calls',
      network: '203.0.113.0/24',
      until: AT,
    },
  ],
  sign_in_ended: [
    { kind: 'sign_in_ended', id: 'x', outcome: 'passed' },
    { id: 'x', outcome: 'passed' },
  ],
  login_method_lost: [
    { kind: 'login_method_lost', method: 'phone', value: '+84 912' },
    { method: 'phone', value: '+84 912' },
  ],
  profile_changed: [
    { kind: 'profile_changed' },
    {
      userId: `${USER}`,
      displayName: 'Ann',
      emailVerified: false,
      phoneVerified: false,
      loginMethods: [],
      createdAt: AT,
      badge: BADGE,
      primaryMethodId: '5',
      settings: DEFAULT_SETTINGS,
    },
  ],
  badge: [{ kind: 'badge', badge: BADGE }, BADGE],
}

function bodyOf(event: Event): Record<string, unknown> {
  const user = () => PROFILE
  const told = { ...event, eventId: 'an-event', sentAtMs: AT_MS }
  return JSON.parse(
    formatJson(
      FORMS[told.kind].body(told, { userId: USER, deviceId: DEVICE, admit, user, badge: BADGE }),
      'string',
    ),
  )
}

for (const [kind, [event, fields]] of Object.entries(EVENTS)) {
  t.test(`${kind} has exactly the fields of its schema`, async t => {
    const body = bodyOf(event)
    t.same(body, { v: 1, type: kind, eventId: 'an-event', sentAt: AT_MS, ...fields })
    const { schema } = FORMS[kind as EventType]
    t.same(Compile(schema).Errors(body)[1], [])
    t.same(unknownMembers(schema, body), [])
  })
}

t.test('members for keeping an event do not get into its body', async t => {
  const stowaway = { ...EVENTS.key_update[0], push: 'token', others: [KEY] }
  t.notMatch(Object.keys(bodyOf(stowaway)).join(), /push|others/)
})
