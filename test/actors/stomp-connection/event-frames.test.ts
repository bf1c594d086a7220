/** MESSAGEs of events: the part that many devices share is put together once, and each gets the octets that it got alone. */

import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { EventFrames } from '../../../actors/stomp-connection/event-frames.ts'
import type { RoomEntry } from '../../../src/domain/calls/call.ts'
import type { DeviceId, UserId } from '../../../src/domain/ids.ts'
import { type NoticeItem, noticeOf } from '../../../src/domain/messages/inbox.ts'
import type { Notice } from '../../../src/domain/messages/notice.ts'
import { EVENTS } from '../../../src/schema/event.ts'
import { formatJson, type IdForm } from '../../../src/schema/json.ts'
import { STOMP_VERSIONS } from '../../../src/stomp/frame.ts'
import { MessageTemplate, SubscriptionHead } from '../../../src/stomp/serializer.ts'
import { NOTICES } from '../../support/any-notice.ts'
import { itemOf } from '../../support/notice-item.ts'
import { profileOf } from '../../support/profile.ts'
import { bySize, sized } from '../../support/size.ts'

type Frame = Parameters<EventFrames['notice']>

const KINDS = Object.keys(NOTICES) as Notice['kind'][]
const EXPIRES_MS = [1_800_000_060_000, 1_800_000_070_000]
const admit = {
  kind: 'livekit' as const,
  keySize: 256 as const,
  admissionOf: ({ roomId, device }: RoomEntry) => ({
    url: 'wss://médias.example.org',
    room: `${roomId}`,
    token: `a token of ${device.userId}_${device.deviceId}`,
  }),
}

/** Whatever might end a string, a header or a frame, or be no character at all. */
const hostile = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '"',
        '\\',
        '\0',
        '\n',
        '\r',
        ':',
        ',',
        '{',
        '}',
        '\u2028',
        '\ud83d',
        '\ude00',
        'é',
        '漢',
        '😀',
      ),
      fc.integer({ min: 0, max: 0xffff }).map(code => String.fromCharCode(code)),
      fc.constantFrom('"eventId":"', ',"badge":', '$1', 'encryptedAESKey', '\\u0000', '</script>'),
    ),
    { maxLength: 12 },
  )
  .map(parts => parts.join(''))

/** Messages of one change: each device has its own key and event id, some another time, or a copy of the body. */
const told = fc
  .record({
    kind: fc.constantFrom(...KINDS),
    name: hostile,
    devices: fc.array(
      fc.record({
        userId: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
        deviceId: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
        key: hostile,
        eventId: fc.string({ minLength: 22, maxLength: 22, unit: fc.constantFrom('a', 'Z', '-', '_', '7') }),
        sentAtMs: fc.constantFrom(1_800_000_000_000, 1_800_000_000_001),
        expiresAtMs: fc.constantFrom(...EXPIRES_MS),
        missedCalls: fc.nat({ max: 200 }),
        isCopy: fc.boolean(),
      }),
      { minLength: 1, maxLength: 4 },
    ),
  })
  .chain(({ kind, name, devices }) =>
    NOTICES[kind].map(members => ({ notice: named({ ...members, kind } as Notice, name), devices })),
  )

/** Each name in it is this one. */
function named(notice: Notice, name: string): Notice {
  const members: Record<string, unknown> = { ...notice }
  for (const each of ['displayName', 'callerName', 'alias', 'name', 'userAgent', 'publicKeyHash', 'nonce'])
    if (each in members) members[each] = name
  if (notice.kind !== 'call_invitation') return members as unknown as Notice
  const participants = notice.participants.map(each => ({ ...each, displayName: name }))
  return { ...members, participants } as unknown as Notice
}

/** The frame of this device alone, from its whole event. */
function expected([place, item, expiresAtMs, device, badge]: Frame, idsAs: IdForm): Buffer {
  const { kind } = item.body
  const user = () => profileOf(device)
  const body = formatJson(EVENTS[kind].body(noticeOf(item), { ...device, badge, admit, user }), idsAs)
  const times = ['timestamp', String(item.sentAtMs), 'expires', String(expiresAtMs)]
  const headers = ['type', kind, ...times, 'content-type', 'application/json']
  const { head, messageId, isRedelivered } = place
  return new MessageTemplate(headers, Buffer.from(body)).encode(head, messageId, isRedelivered)
}

/** One character for each octet. */
function textOf(frame: Buffer): string {
  return frame.toString('latin1')
}

const heads = STOMP_VERSIONS.flatMap(version =>
  [true, false].flatMap(isAcknowledged => [
    new SubscriptionHead(version, 'sub-0', '/user/queue/calls', isAcknowledged),
    new SubscriptionHead(version, 'sub:é\n漢', '/user/queue/calls', isAcknowledged),
  ]),
)

t.test('devices that share a message get the octets that each would get alone', sized(), async () => {
  for (const idsAs of ['string', 'number'] as const) {
    const frames = new EventFrames({ idsAs, admit, userOf: profileOf })
    const messages = fc.array(told, { minLength: 1, maxLength: 12 })
    fc.assert(
      fc.property(messages, fc.constantFrom(...heads), fc.boolean(), (messages, head, isRedelivered) => {
        const sent = messages.flatMap(({ notice, devices }) => {
          const { body } = itemOf(notice)
          return devices.map((device): Frame => {
            const { userId, deviceId, key, eventId, sentAtMs, expiresAtMs, missedCalls, isCopy } = device
            const item: NoticeItem = {
              kind: 'notice',
              body: isCopy ? { ...body } : body,
              encryptedAESKey: 'encryptedAESKey' in notice ? key : undefined,
              eventId,
              sentAtMs,
            }
            const isMissed = body.kind === 'call_cancelled' || body.kind === 'call_missed'
            const badge = isMissed ? { total: missedCalls, friendRequests: 0, missedCalls } : undefined
            const place = { head, messageId: `1z-${missedCalls}`, isRedelivered }
            const reader = { userId: userId as UserId, deviceId: deviceId as DeviceId }
            return [place, item, expiresAtMs, reader, badge]
          })
        })
        // Calls of one moment tell their devices by turns.
        for (const frame of [...sent, ...sent.toReversed()])
          assert.equal(textOf(frames.notice(...frame)), textOf(expected(frame, idsAs)))
      }),
      { numRuns: bySize({ short: 60, long: 3_000 }) },
    )
  }
})
