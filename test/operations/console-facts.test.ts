/** The console's account of events: as much as may be shown, within bounds. */

import t from 'tap'
import {
  callFactOf,
  type DecidedEffect,
  letterFactOf,
  pushFactOf,
} from '../../src/operations/console/facts.ts'
import { LiveView } from '../../src/operations/console/live-view.ts'

const CALL = {
  callId: 2n ** 64n - 1n,
  status: 'ringing',
  endedAtMs: undefined,
  participants: [
    { userId: 1n, displayName: 'Ann', state: 'joined', devices: [{ encryptedAESKey: 'SECRET' }] },
    { userId: 2n, displayName: 'Bob', state: 'ringing', devices: [{ encryptedAESKey: 'SECRET' }] },
  ],
}

t.test(
  'a decision is told with who made it, how the call is and who was told what, and without keys',
  async t => {
    const effects = [
      {
        kind: 'device',
        userId: 2n,
        deviceId: 20n,
        notice: { kind: 'call_invitation', encryptedAESKey: 'SECRET' },
      },
      { kind: 'withdraw', userId: 2n, deviceId: 21n },
      { kind: 'topic', event: { kind: 'participant_invited' } },
      { kind: 'history', userId: 1n },
    ]
    const command = {
      kind: 'start',
      by: { userId: 1n, deviceId: 10n },
      encryptedAESKeys: { '2_20': 'SECRET' },
    }
    const fact = callFactOf(command, CALL, effects)
    t.same(fact, {
      type: 'call',
      command: 'start',
      userId: '1',
      deviceId: '10',
      callId: '18446744073709551615',
      status: 'ringing',
      participants: [
        { userId: '1', displayName: 'Ann', status: 'joined' },
        { userId: '2', displayName: 'Bob', status: 'ringing' },
      ],
      told: [{ userId: '2', deviceId: '20', type: 'call_invitation' }],
      watchersTold: ['participant_invited'],
    })
  },
)

t.test('the room’s own timer is no user’s command', async t => {
  const fact = callFactOf({ kind: 'deadline' }, CALL, [{ kind: 'history', userId: 1n }])
  t.equal(fact?.command, 'deadline')
  t.notOk(fact && 'userId' in fact)
})

t.test('the console skips commands that changed nothing', async t => {
  const by = { userId: 1n, deviceId: 10n }
  for (const kind of ['device-seen', 'device-online', 'device-offline']) {
    t.equal(callFactOf({ kind, by }, CALL, []), undefined, kind)
  }
  for (const kind of ['deadline', 'inviter-blocked']) t.equal(callFactOf({ kind }, CALL, []), undefined)
  t.ok(callFactOf({ kind: 'join', by }, CALL, []), 'what a person asked for is told')
})

t.test('of very many devices the first are named and the rest is counted', async t => {
  const effects: DecidedEffect[] = Array.from({ length: 320 }, (_, at) => ({
    kind: 'device',
    userId: BigInt(at),
    deviceId: BigInt(at),
    notice: { kind: 'call_ended' },
  }))
  const fact = callFactOf({ kind: 'deadline' }, CALL, effects)
  t.equal(fact?.told.length, 64)
  t.equal(fact?.toldCount, 320)
})

t.test('a push says how much of its limit it takes', async t => {
  const push = { channel: 'push', kind: 'call_invitation', userId: 1n, deviceId: 2n } as const
  const payload = { text: 'ü' }
  const bytesMaxOf = (provider: string, headers: Record<string, string>) =>
    pushFactOf({ ...push, provider, headers, payload }).bytesMax
  t.equal(bytesMaxOf('apns', { 'apns-push-type': 'voip' }), 5_120)
  t.equal(bytesMaxOf('apns', { 'apns-push-type': 'alert' }), 4_096)
  t.equal(bytesMaxOf('fcm', { priority: 'high' }), 4_096)
  const fact = pushFactOf({ ...push, provider: 'fcm', headers: {}, payload })
  t.match(fact, { type: 'push', userId: '1', deviceId: '2', bytes: 13 })
})

t.test('a push is shown without the key that it carries, which counts', async t => {
  const payload = { aps: {}, data: { encryptedAESKey: 'S'.repeat(152), type: 'call_invitation' } }
  const push = { channel: 'push', kind: 'call_invitation', userId: 1n, deviceId: 2n } as const
  const fact = pushFactOf({ ...push, provider: 'apns', headers: {}, payload })
  t.same(fact.payload, { aps: {}, data: { encryptedAESKey: '(152 characters)', type: 'call_invitation' } })
  t.equal(fact.bytes, JSON.stringify(payload).length)
})

t.test('the console shows a letter with its code, if it has one', async t => {
  const letter = { channel: 'sms', to: '+15550100', text: 'hello' } as const
  t.same(letterFactOf({ ...letter, otp: undefined }), { type: 'letter', ...letter })
  t.same(letterFactOf({ ...letter, otp: '123456' }), { type: 'letter', ...letter, otp: '123456' })
})

t.test('the live view shows the newest first, forgets ended calls and stays small', async t => {
  let nowMs = 0
  const view = new LiveView(() => nowMs++)
  for (let id = 0n; id < 10_000n; id++) {
    view.putDevice(id, id, true)
    view.putCall({ ...CALL, callId: id })
  }
  const full = view.newest()
  t.same([full.deviceCount, full.callCount], [10_000, 5_000])
  t.same([full.devices.length, full.calls.length], [500, 200])
  t.match(full.devices[0], { userId: 9_999n, connectedAtMs: 9_999 })
  t.equal(full.calls[0]?.callId, 9_999n)
  t.notMatch(
    JSON.stringify(full.calls, (_, value) => `${value}`),
    'SECRET',
  )
  for (let id = 0n; id < 10_000n; id++) {
    view.putDevice(id, id, false)
    view.putCall({ ...CALL, callId: id, status: 'ended', endedAtMs: 1 })
  }
  t.same(view.newest(), { devices: [], deviceCount: 0, calls: [], callCount: 0 })
})
