/** Any notice of each kind, for tests that hold for all. */

import fc from 'fast-check'
import type { Notice } from '../../src/domain/messages/notice.ts'

const id = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })
const name = fc.string({ unit: 'grapheme', maxLength: 60 }).filter(text => Buffer.byteLength(text) <= 200)
const key = fc
  .uint8Array({ minLength: 64, maxLength: 1_024 })
  .map(bytes => Buffer.from(bytes).toString('base64'))
const time = fc.integer({ min: 0, max: 4_000_000_000_000 })
const over = {
  callId: id,
  version: fc.nat(),
  callerId: id,
  callerName: name,
  displayName: name,
  alias: fc.option(name, { nil: undefined }),
  isContact: fc.boolean(),
  isVideo: fc.boolean(),
  atMs: time,
}
const given = { encryptedAESKey: key, callId: id, version: fc.nat(), fromUserId: id, fromDeviceId: id }
const device = { deviceId: id, name, platform: name, publicKeyHash: name }

/** Their members beside the event's. */
export const NOTICES: Record<Notice['kind'], fc.Arbitrary<object>> = {
  call_invitation: fc.record({
    ...over,
    encryptedAESKey: key,
    roomId: fc.maxSafeNat(),
    isOnGoing: fc.boolean(),
    expiresAtMs: time,
    participants: fc.array(fc.record({ userId: id, displayName: name })),
    keyEpoch: fc.nat(),
    keyFromUserId: id,
    keyFromDeviceId: id,
  }),
  call_cancelled: fc.record(over),
  call_missed: fc.record(over),
  call_answered_elsewhere: fc.record({ ...over, reason: fc.constantFrom('answered', 'declined', 'busy') }),
  call_moved: fc.record(over),
  call_ended: fc.record({
    callId: id,
    version: fc.nat(),
    status: fc.constant('ended'),
    endReason: name,
    endedAtMs: time,
  }),
  participant_request_rejoin: fc.record({
    ...device,
    callId: id,
    version: fc.nat(),
    userId: id,
    displayName: name,
    expiresAtMs: time,
  }),
  participant_accept_rejoin: fc.record({ ...given, keyEpoch: fc.nat() }),
  key_update: fc.record({
    ...given,
    epoch: fc.nat(),
    reason: fc.constant('leave'),
    setHash: key,
    added: key,
    removed: fc.array(name),
  }),
  key_missing: fc.record({ callId: id, version: fc.nat(), epoch: fc.nat() }),
  media_ready: fc.record({ callId: id, version: fc.nat(), roomId: fc.maxSafeNat() }),
  friend_request: fc.record({ requestId: id, userId: id, displayName: name, createdAtMs: time }),
  friend_request_cancelled: fc.record({ requestId: id, userId: id }),
  contact_added: fc.record({ userId: id, displayName: name, requestId: id, isPushed: fc.boolean() }),
  contact_changed: fc.record({ userId: id, displayName: name, alias: name }),
  contact_removed: fc.record({ userId: id, displayName: name, alias: name }),
  device_added: fc.record(device),
  device_removed: fc.record(device),
  device_list_changed: fc.record(device),
  device_list_reset: fc.record(device),
  device_push_lost: fc.record({ deviceId: id, name, platform: name }),
  session_started: fc.record(
    { sessionId: name, userAgent: name, network: name, proof: name },
    { requiredKeys: ['sessionId', 'userAgent', 'proof'] },
  ),
  session_ending: fc.record({ sessionId: name, endsAtMs: time }),
  session_revoked: fc.record({ reason: name }),
  sign_in_waiting: fc.record({
    id: name,
    signInCode: name,
    method: fc.constant('phone'),
    userAgent: name,
    endsAtMs: time,
  }),
  sign_in_ended: fc.record({ id: name, outcome: fc.constant('refused') }),
  login_method_lost: fc.record({ method: fc.constant('phone'), value: name }),
  profile_changed: fc.record({}),
}

/** Any notice of any kind, as this event. */
export function anyNotice(event: Pick<Notice, 'eventId' | 'sentAtMs'>): fc.Arbitrary<Notice> {
  return fc
    .constantFrom(...(Object.keys(NOTICES) as Notice['kind'][]))
    .chain(kind => NOTICES[kind].map(members => ({ ...members, kind, ...event }) as Notice))
}
