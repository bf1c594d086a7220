/** One example of every message of the AsyncAPI document; together they are a call of Ann's, and what came before it. */

import type { EventType } from '../../schema/event-form.ts'
import { webhookExampleOf } from './webhook-examples.ts'

/** A message's body by its name in the document. */
export function exampleOf(name: string): object {
  const commands: Readonly<Record<string, object>> = COMMAND_EXAMPLES
  const command = commands[name] ?? webhookExampleOf(name)
  return command ?? { v: 1, type: name, ...ENVELOPE, ...MEMBERS[name as EventType | 'error'] }
}

const ENVELOPE = { eventId: 'q5xPYmBtR0aS2wJ7cVd3Lg', sentAt: 1_795_146_521_983 }
const AT = '2026-11-20T10:08:41.983Z'
const CALL = { callId: '6117204471893025', version: 4 }
const ANN = { userId: '8905371541254727', displayName: 'Ann' }
const BOB = { userId: '1305603940818917', displayName: 'Bob' }
const ANNS_PHONE = '2064266649997366'
const BOBS_PHONE = '7745239016452210'
/** 113 bytes, as they come out of the construction in docs/check/crypto.md. */
const KEY =
  'BClUmWUYfR9Gd2kKrabFImHlU329yH+616LKWSjFKQ/4DpENK1E7xnvD5g2mjMxSqvvZtHk8sdQZNFBe' +
  'tHy3CykFArOos4SLU7eNOA8MY4og3PoPDf8U24e2wFgZzDfh6m3KA0A5uSJhFuPZ4ibmPtY='
const HASH = '3ishaCefXwS0Ykh0XW1kqrQ8fQpQ2xW7mYv6tT9nJ0hCkz5bq8rE1dUuLwSgVnO3iPaFyGxMBDcZsNjRoIeKtA=='

const TOKEN_ENDS_S = 1_795_322_921
const ROOM_TOKEN = `${TOKEN_ENDS_S},janus.plugin.videoroom,room=731909882315227,device=${BOB.userId}_${BOBS_PHONE}:nbSp3sG9VzU4mQ0dXc1RwTfKjLk=`
const PLUGIN_TOKEN = `${TOKEN_ENDS_S},janus,janus.plugin.videoroom,device=${BOB.userId}_${BOBS_PHONE}:Vt7yQwE2rT5uIo8pAsDfGhJkLzM=`

const BOB_IN_CALL = {
  ...BOB,
  state: 'joined',
  isHost: false,
  invitedBy: ANN.userId,
  invitedAt: '2026-11-20T10:08:30.114Z',
  joinedAt: AT,
  deviceId: BOBS_PHONE,
  publicKeyHash: HASH,
  mediaName: `${BOB.userId}:${BOB.displayName}`,
}
const BOB_RINGS = { ...BOB_IN_CALL, state: 'ringing', joinedAt: undefined, deviceId: undefined }
const CALLER = {
  callerId: ANN.userId,
  callerName: 'Annie',
  displayName: ANN.displayName,
  alias: 'Annie',
  isContact: true,
}
const OVER = { ...CALL, ...CALLER, isVideo: true, at: AT }
const DEVICE = { deviceId: BOBS_PHONE, name: 'Bob’s Pixel', platform: 'android', publicKeyHash: HASH }
const BADGE = { total: 2, friendRequests: 1, missedCalls: 1 }

const MEMBERS: Readonly<Record<EventType | 'error', object>> = {
  call_invitation: {
    ...CALL,
    ...CALLER,
    encryptedAESKey: KEY,
    roomId: 731_909_882_315_227,
    isVideo: true,
    isOnGoing: false,
    deviceId: BOBS_PHONE,
    expiresAt: '2026-11-20T10:09:41.983Z',
    participants: [ANN, BOB],
    keyEpoch: 1,
    keyFromUserId: ANN.userId,
    keyFromDeviceId: ANNS_PHONE,
  },
  call_cancelled: { ...OVER, badge: BADGE },
  call_missed: { ...OVER, badge: BADGE },
  call_answered_elsewhere: { ...OVER, reason: 'declined' },
  call_moved: OVER,
  call_ended: { ...CALL, status: 'ended', endReason: 'hangup', endedBy: ANN.userId, endedAt: AT },
  participant_request_rejoin: {
    ...CALL,
    ...BOB,
    deviceId: BOBS_PHONE,
    publicKeyHash: HASH,
    expiresAt: '2026-11-20T10:09:11.983Z',
    nonce: 'm0Xc7tQeTq2Vb1rJ5sYw8A==',
  },
  participant_accept_rejoin: {
    ...CALL,
    encryptedAESKey: KEY,
    keyEpoch: 1,
    fromUserId: ANN.userId,
    fromDeviceId: ANNS_PHONE,
  },
  key_update: {
    ...CALL,
    epoch: 2,
    reason: 'rotation',
    encryptedAESKey: KEY,
    fromUserId: ANN.userId,
    fromDeviceId: ANNS_PHONE,
    setHash: 'pUo5bFvTQ0w2m7rXyN1cZ8eJd4hSgKa6iLVtOqBEWfM=',
    added: '',
    removed: [`1402772039127411_4510925518337028`],
  },
  key_missing: { ...CALL, epoch: 2 },
  media_ready: {
    ...CALL,
    roomId: 731_909_882_315_227,
    media: {
      kind: 'janus',
      state: 'ready',
      url: 'wss://media.example.org',
      roomToken: ROOM_TOKEN,
      pluginToken: PLUGIN_TOKEN,
    },
  },
  participant_invited: { ...CALL, participant: { ...BOB_RINGS, state: 'invited' } },
  participant_ringing: { ...CALL, participant: BOB_RINGS },
  // As with LiveKit; the other events are those of a call by Janus.
  participant_joined: { ...CALL, participant: { ...BOB_IN_CALL, identity: 'q3Zt0vJm8sXKc1YwPbL5eR' } },
  participant_left: { ...CALL, participant: { ...BOB_IN_CALL, state: 'left', leftAt: AT } },
  participant_declined: { ...CALL, participant: { ...BOB_RINGS, state: 'declined' } },
  participant_unreachable: { ...CALL, userId: BOB.userId, hasUnapprovedDevice: true },
  media_changed: { ...CALL, participant: { ...BOB_IN_CALL, feedIds: [5_635_983_684_674_327] } },
  host_changed: { ...CALL, hostUserId: BOB.userId },
  call_status: { ...CALL, status: 'active' },
  friend_request: { requestId: '3328838268883991', ...BOB, message: 'It is Bob', createdAt: AT },
  friend_request_cancelled: { requestId: '3328838268883991', userId: BOB.userId },
  contact_added: BOB,
  contact_changed: { ...BOB, alias: 'Bobby' },
  contact_removed: BOB,
  device_added: DEVICE,
  device_removed: DEVICE,
  device_list_changed: DEVICE,
  device_list_reset: DEVICE,
  device_push_lost: { deviceId: BOBS_PHONE, name: 'Bob’s Pixel', platform: 'android', tokens: ['fcmToken'] },
  session_started: {
    sessionId: 'Vh5o0cHqQ7-2mXzR9tBf1w',
    userAgent: 'Calls/214 CFNetwork/1496.0.7 Darwin/23.5.0',
    network: '203.0.113.0/24',
    proof: 'otp',
  },
  session_ending: { sessionId: 'Vh5o0cHqQ7-2mXzR9tBf1w', endsAt: '2027-11-20T10:08:41.983Z' },
  session_revoked: { reason: 'logout' },
  sign_in_waiting: {
    id: 'q1Zk3mXbT0m8f2hJ9uYw5A',
    signInCode: '40317 99251 08846 51920',
    method: 'phone',
    userAgent: 'Calls/1.4 (iPhone15,2; iOS 18.4)',
    until: '2026-07-04T09:15:00.000Z',
  },
  sign_in_ended: { id: 'q1Zk3mXbT0m8f2hJ9uYw5A', outcome: 'refused' },
  login_method_lost: { method: 'phone', value: '+84 912 345 678' },
  profile_changed: {
    ...ANN,
    email: 'ann@example.org',
    emailVerified: true,
    phoneVerified: false,
    primaryMethodId: '4417330098152364',
    loginMethods: [
      {
        id: '4417330098152364',
        kind: 'email',
        value: 'ann@example.org',
        verified: true,
        primary: true,
        addedAt: AT,
        lastUsedAt: AT,
      },
    ],
    device: { deviceId: ANNS_PHONE, publicKeyHash: HASH },
    badge: BADGE,
    createdAt: AT,
    settings: { discoverableByEmail: true, discoverableByPhone: true, callsFromContactsOnly: true },
  },
  badge: BADGE,
  error: {
    destination: `/app/call/${CALL.callId}/keys`,
    receiptId: 'keys-2',
    problem: {
      type: 'urn:problem:epoch-conflict',
      title: 'Another key epoch',
      status: 409,
      code: 'EPOCH_CONFLICT',
      detail: 'the call has epoch 2, not 1',
      requestId: 'cbV0eJk5wqRzXg',
      keyEpoch: 2,
    },
  },
}

const COMMAND_EXAMPLES = {
  ringing: { eventId: ENVELOPE.eventId, wasLowered: false },
  decline: { reason: 'busy' },
  leave: {},
  acceptRejoin: {
    requesterUserId: BOB.userId,
    requesterDeviceId: BOBS_PHONE,
    encryptedAESKey: KEY,
    epoch: 1,
  },
  keys: { epoch: 2, reason: 'rotation', encryptedAESKeys: { [`${BOB.userId}_${BOBS_PHONE}`]: KEY } },
}
