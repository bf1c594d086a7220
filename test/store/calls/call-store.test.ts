/** Calls on a real store: one decision's writes, in one change, and the remains of an ended call. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Call, Participant } from '../../../src/domain/calls/call.ts'
import type { CallEffect } from '../../../src/domain/calls/call-command.ts'
import { keyedNotice } from '../../../src/domain/calls/call-effect.ts'
import type { HistoryEffect } from '../../../src/domain/calls/call-history.ts'
import type { CallId, DeviceId, UserId } from '../../../src/domain/ids.ts'
import { idsKey } from '../../../src/store/engine/keys.ts'
import type { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { newDevice, newUser, openWorld, type TestWorld } from '../../support/application.ts'
import { historyEffect } from '../../support/history-effect.ts'
import { storedTable } from '../../support/stored-table.ts'

const CALL = 8_000_000_001n as CallId
const [ANN, BOB, EVE] = [5_000_000_001n as UserId, 5_000_000_002n as UserId, 5_000_000_003n as UserId]
const PHONE = 6_000_000_001n as DeviceId
const KEY_OCTETS = Buffer.from('the-encrypted-key-of-one-device')
const KEY = KEY_OCTETS.toString('base64')
const DAY_MS = 86_400_000

async function open(t: Test, folder = t.testdir(), secret = 7) {
  let changes = 0
  const counted = (store: LmdbStore) =>
    new Proxy(store, {
      get: (database, name) => {
        if (name === 'change') changes += 1
        const member = Reflect.get(database, name)
        return typeof member === 'function' ? member.bind(database) : member
      },
    })
  const world = openWorld(folder, undefined, { secret, around: counted })
  t.teardown(() => world.database.close())
  const { calls, history } = world
  const read = (callId: bigint = CALL) => world.database.view(view => calls.read(view, callId))
  return { world, history, calls, read, folder, changes: () => changes }
}

function participant(userId: UserId, changes: Partial<Participant> = {}): Participant {
  return {
    userId,
    displayName: `user ${userId}`,
    state: 'invited',
    invitedBy: ANN,
    invitedAtMs: 1_000,
    inviter: { isContact: true },
    isVideo: false,
    isOnGoing: false,
    devices: [{ deviceId: PHONE, encryptedAESKey: KEY, sealedBy: { userId: ANN, deviceId: PHONE } }],
    attendance: undefined,
    joinedAtMs: undefined,
    leftAtMs: undefined,
    talkedMs: 0,
    declinedOn: undefined,
    ...changes,
  }
}

function call(changes: Partial<Call> = {}): Call {
  return {
    callId: CALL,
    version: 2,
    roomId: 123_456_789,
    isRoomNamed: false,
    gateway: 'janus',
    timeLine: [],
    status: 'ringing',
    isVideo: false,
    initiatorId: ANN,
    hostUserId: ANN,
    createdAtMs: 1_000,
    startedAtMs: undefined,
    endedAtMs: undefined,
    endReason: undefined,
    endedBy: undefined,
    startedWith: { deviceId: PHONE, digest: Uint8Array.of(1, 2) },
    keyEpoch: 1,
    epochKeys: undefined,
    keySets: [{ epoch: 1, members: Uint8Array.of(0, 1, 255) }],
    lastKeys: { epoch: 1, userId: ANN, deviceId: PHONE, digest: Uint8Array.of(0, 7, 255) },
    participants: [participant(ANN, { state: 'joined', devices: [] }), participant(BOB)],
    rejoinAsks: [],
    quiet: undefined,
    ...changes,
  }
}

function over(endedAtMs: number): Call {
  const removed = participant(EVE, { state: 'removed' })
  const participants = [...call().participants, removed]
  return call({ status: 'cancelled', endedAtMs, endReason: 'cancelled', endedBy: ANN, participants })
}

function invitationTo(userId: UserId, deviceId: DeviceId, expiresAtMs: number): CallEffect {
  const notice = {
    kind: 'call_invitation' as const,
    callId: CALL,
    version: 2,
    callerId: ANN,
    callerName: 'Ann',
    displayName: 'Ann',
    alias: undefined,
    isContact: true,
    roomId: 123_456_789,
    isVideo: false,
    isOnGoing: false,
    expiresAtMs,
    participants: [],
    keyEpoch: 1,
    keyFromUserId: ANN,
    keyFromDeviceId: PHONE,
  }
  return keyedNotice({ userId, deviceId, encryptedAESKey: KEY }, notice, expiresAtMs)
}

function cancelledFor(userId: UserId, deviceId: DeviceId): CallEffect {
  return {
    kind: 'device',
    userId,
    deviceId,
    notice: {
      kind: 'call_cancelled',
      callId: CALL,
      version: 2,
      callerId: ANN,
      callerName: 'Ann',
      displayName: 'Ann',
      alias: undefined,
      isContact: true,
      isVideo: false,
      atMs: 5,
    },
    encryptedAESKey: undefined,
    expiresAtMs: undefined,
    replaces: 'invitation',
  }
}

function missed(userId: UserId, createdAtMs: number, callId = CALL): HistoryEffect {
  return historyEffect(userId, { callId, createdAtMs, status: 'missed', people: [ANN] })
}

function rowCount({ database }: TestWorld, table: string): number {
  return database.rowCount(database.storedRows(table))
}

async function callee(world: TestWorld) {
  const { userId } = await newUser(world)
  const { deviceId } = await newDevice(world, userId)
  const kinds = () =>
    world.database
      .view(view =>
        world.inbox.after(view, userId, deviceId, { offset: 0, limit: 100, nowMs: world.nowMs() }),
      )
      .map(({ item }) => (item.kind === 'notice' ? item.body.kind : item.queue))
  return { userId, deviceId, kinds }
}

t.test('a call is read as it was written, by this process and the next', async t => {
  const folder = t.testdir()
  const { world, calls, read } = await open(t, folder)
  const other = call({ callId: 9n as CallId, status: 'active', startedAtMs: 2_000 })
  await calls.apply({ call: call(), effects: [] }, 1_000)
  await calls.apply({ call: other, effects: [] }, 2_000)
  t.same(read(), call())
  t.equal(read(7n), undefined)
  await world.database.close()
  const next = await open(t, folder)
  t.same(next.calls.live(), [other, call()])
})

t.test('a live call is written by its changes, and now and then whole', async t => {
  const folder = t.testdir()
  const { world, calls, read } = await open(t, folder)
  const rows = () =>
    world.database.view(view => ({
      whole: view.get(storedTable('calls'), idsKey(CALL)),
      changes: view.get(storedTable('call-changes'), idsKey(CALL)),
    }))
  let now = call()
  await calls.apply({ call: now, effects: [] }, 1_000)
  const first = rows()
  t.equal(first.changes, undefined)
  let wholes = 1
  let [{ whole }, longest] = [first, 0]
  for (let version = 3; version < 60; version++) {
    const timeLine = [...now.timeLine, { atMs: version, kind: 'ringing' as const, userIds: [BOB] }]
    const participants = now.participants.map((one, at) => (at === 1 ? { ...one, talkedMs: version } : one))
    now = { ...now, version, timeLine, participants }
    await calls.apply({ call: now, effects: [] }, 1_000)
    const { whole: after, changes } = rows()
    if (Buffer.compare(whole!, after!) === 0) longest = Math.max(longest, changes!.length)
    else {
      wholes += 1
      t.equal(changes, undefined)
    }
    whole = after
    t.same([read(), calls.live()], [now, [now]])
  }
  t.ok(wholes > 2 && wholes < 12, `${wholes} of 58 are whole`)
  t.ok(longest > 1_000 && longest < 2_000, `${longest} octets at most`)
  await world.database.close()
  const next = await open(t, folder)
  t.same(next.read(), now, 'as the next process reads it')
  const over = { ...now, status: 'ended' as const, endedAtMs: next.world.nowMs() }
  await next.calls.apply({ call: over, effects: [] }, 1_000)
  t.same(next.read(), over)
  t.same(
    ['calls', 'call-changes'].map(table => rowCount(next.world, table)),
    [0, 0],
  )
})

t.test('changes behind another whole call are not taken for its own', async t => {
  const { world, calls, read } = await open(t)
  await calls.apply({ call: call(), effects: [] }, 1_000)
  const table = storedTable('calls')
  const whole = world.database.view(view => view.get(table, idsKey(CALL)))!
  const later = call({ keyEpoch: 2 })
  await calls.apply({ call: later, effects: [] }, 1_000)
  await calls.apply({ call: { ...later, version: 3 }, effects: [] }, 1_000)
  t.equal(rowCount(world, 'call-changes'), 1)
  t.match(read(), { keyEpoch: 2, version: 3 })
  await world.database.change(change => change.put(table, idsKey(CALL), whole))
  t.equal(read(), undefined)
})

t.test('a decision is one change: call, inboxes, pushes, history and reply', async t => {
  const { world, history, calls, read, changes } = await open(t)
  const [one, other] = [await callee(world), await callee(world)]
  const nowMs = world.nowMs()
  const effects: CallEffect[] = [
    invitationTo(one.userId, one.deviceId, nowMs + 60_000),
    invitationTo(other.userId, other.deviceId, nowMs + 60_000),
    { kind: 'topic', event: { kind: 'call_status', callId: CALL, version: 2, status: 'ringing' } },
    missed(one.userId, nowMs),
  ]
  const request = { scope: 'startCall 7', key: 'k', hash: Buffer.alloc(32, 1) }
  await calls.apply({ call: call(), effects }, nowMs, {
    kept: { request, reply: '{"status":201}' },
  })
  t.equal(changes(), 1)
  t.same(read(), call())
  t.same([one.kinds(), other.kinds()], [['call_invitation'], ['call_invitation']])
  t.equal((await world.takeSent()).length, 2)
  const { database, idempotency } = world
  const remembered = database.view(view => history.list(view, one.userId, { limit: 9 }, nowMs))
  t.match(remembered, [{ callId: CALL, status: 'missed', createdAtMs: nowMs, seen: false }])
  t.equal(
    database.view(view => idempotency.find(view, request)),
    '{"status":201}',
  )
  t.same(
    world.news.map(([userId]) => userId),
    [one.userId, other.userId],
  )
})

t.test(
  'the word of a room replaces the invitation that waits; one that answered itself has none',
  async t => {
    const { world, calls } = await open(t)
    const [one, other] = [await callee(world), await callee(world)]
    const nowMs = world.nowMs()
    const invitations = [one, other].map(({ userId, deviceId }) =>
      invitationTo(userId, deviceId, nowMs + 60_000),
    )
    await calls.apply({ call: call(), effects: invitations }, nowMs)
    const { userId, deviceId } = other
    const effects: CallEffect[] = [
      cancelledFor(one.userId, one.deviceId),
      { kind: 'withdraw', userId, deviceId },
    ]
    await calls.apply({ call: over(nowMs), effects }, nowMs)
    t.same([one.kinds(), other.kinds()], [['call_cancelled'], []])
    world.database.view(view => world.inbox.assertConsistent(view))
  },
)

t.test('an ended call is known for a day', async t => {
  const { world, calls, read } = await open(t)
  await calls.apply({ call: call(), effects: [] }, world.nowMs())
  const endedAtMs = world.nowMs()
  await calls.apply({ call: over(endedAtMs), effects: [] }, endedAtMs)
  t.same([read(), calls.live()], [over(endedAtMs), []])
  await world.advance(DAY_MS - 1)
  t.same(read(), over(endedAtMs))
  await calls.apply({ call: over(endedAtMs), effects: [] }, world.nowMs())
  t.same(read(), over(endedAtMs), 'whatever else is said of it')
  await world.advance(1)
  t.equal(read(), undefined)
  t.equal(rowCount(world, 'expiries'), 0)
})

t.test('no key of a call can be read in the file, not even while it rings', async t => {
  const { world, calls, folder } = await open(t)
  const { userId, deviceId } = await callee(world)
  const effects = [invitationTo(userId, deviceId, world.nowMs() + 60_000)]
  await calls.apply({ call: call(), effects }, world.nowMs())
  const file = readFileSync(join(folder, 'store', 'data.mdb'))
  t.same([file.includes(KEY), file.includes(KEY_OCTETS)], [false, false])
})

t.test('a call that another secret sealed is no call, and is removed at the next start', async t => {
  const folder = t.testdir()
  const before = await open(t, folder, 1)
  await before.calls.apply({ call: call(), effects: [] }, 1_000)
  await before.world.database.close()
  const { world, calls, read } = await open(t, folder, 2)
  t.equal(read(), undefined)
  t.same(calls.live(), [])
  await world.database.change(() => undefined)
  t.equal(rowCount(world, 'calls'), 0)
})

t.test('where a defect stops a decision half way, the call has not moved on', async t => {
  const { world, calls } = await open(t)
  const { userId, deviceId, kinds } = await callee(world)
  const nowMs = world.nowMs()
  await calls.apply({ call: call(), effects: [missed(userId, nowMs)] }, nowMs)
  world.news.length = 0
  const impossible = missed(userId, nowMs, (2n ** 64n) as CallId)
  const effects = [invitationTo(userId, deviceId, nowMs + 60_000), impossible]
  await t.rejects(calls.apply({ call: over(nowMs), effects }, nowMs))
  t.same([calls.open(CALL), world.news], [call(), []])
  await calls.apply({ call: over(nowMs), effects: effects.slice(0, 1) }, nowMs)
  t.same([kinds(), world.news.length], [['call_invitation'], 1], 'and it is told again, once')
})

t.test('decisions that are made before their change begins land in one', async t => {
  const { world, calls, read, changes } = await open(t)
  const { userId, deviceId, kinds } = await callee(world)
  const nowMs = world.nowMs()
  const keptAs = (key: string) => ({
    kept: { request: { scope: 'invite 7', key, hash: Buffer.alloc(32, 1) }, reply: `{"as":"${key}"}` },
  })
  const counted = changes()
  const ringing = calls.apply({ call: call(), effects: [] }, nowMs, keptAs('one'))
  const invited = [invitationTo(userId, deviceId, nowMs + 60_000)]
  const asked = [
    ringing,
    calls.apply({ call: call({ keyEpoch: 2 }), effects: invited }, nowMs + 1, keptAs('two')),
    calls.apply({ call: call({ keyEpoch: 3 }), effects: [] }, nowMs + 2),
  ]
  await Promise.all(asked)
  t.equal(changes() - counted, 1)
  t.same([read(), kinds()], [call({ keyEpoch: 3 }), ['call_invitation']])
  const { database, keptReplies } = world
  const replyOf = (key: string) => database.view(view => keptReplies.find(view, keptAs(key).kept.request))
  t.same(['one', 'two'].map(replyOf), ['{"as":"one"}', '{"as":"two"}'])
  await Promise.all([
    calls.apply({ call: call({ keyEpoch: 4 }), effects: [] }, nowMs + 3),
    calls.apply({ call: over(nowMs + 4), effects: [missed(userId, nowMs + 4)] }, nowMs + 4),
  ])
  t.equal(changes() - counted, 2, 'what comes later has another')
  t.same([read(), calls.live()], [over(nowMs + 4), []])
})

t.test('a call that a second call ends takes no more decisions into its change', async t => {
  const { calls, read, changes } = await open(t)
  const other = call({ callId: 9n as CallId })
  await calls.apply({ call: call(), effects: [] }, 1_000)
  const counted = changes()
  const before = calls.apply({ call: call({ keyEpoch: 2 }), effects: [] }, 1_000)
  const ending = calls.apply({ call: other, effects: [], ended: { call: over(1_000), effects: [] } }, 1_000)
  const after = calls.apply({ call: over(1_000), effects: [] }, 1_000)
  const next = calls.apply({ call: { ...other, keyEpoch: 2 }, effects: [] }, 1_000)
  await Promise.all([before, ending, after, next])
  t.equal(changes() - counted, 4)
  t.same([read(), read(9n)], [over(1_000), { ...other, keyEpoch: 2 }])
})

t.test('a write that builds on a failed one is not made, until the call is opened anew', async t => {
  const { world, calls, read } = await open(t)
  const { userId, deviceId } = await callee(world)
  const first = call()
  await calls.apply({ call: first, effects: [] }, 1_000)
  // Made of the first call, they are written as changes.
  const withEpoch = (keyEpoch: number) => ({ ...first, keyEpoch })
  const broken = { ...missed(userId, 1_000), memories: undefined as unknown as HistoryEffect['memories'] }
  const effects = [invitationTo(userId, deviceId, world.nowMs() + 60_000)]
  const failed = calls.apply({ call: withEpoch(2), effects: [broken] }, 1_000)
  const beside = calls.apply({ call: withEpoch(3), effects }, 1_000)
  await Promise.all([t.rejects(failed), t.rejects(beside)])
  await t.rejects(calls.apply({ call: withEpoch(3), effects }, 1_000), { code: 'STORE_UNAVAILABLE' })
  t.equal(world.database.view(view => world.inbox.head(view, userId, deviceId)).count, 0)
  await t.rejects(calls.apply({ call: withEpoch(4), effects: [] }, 1_000))
  t.equal(calls.open(CALL)?.keyEpoch, 1)
  await calls.apply({ call: withEpoch(2), effects: [] }, 1_000)
  t.equal(read()?.keyEpoch, 2)
})

t.test('nothing is written behind an end that failed', async t => {
  const { world, calls, read } = await open(t)
  const nowMs = world.nowMs()
  await calls.apply({ call: call(), effects: [] }, nowMs)
  const broken = { kept: { request: undefined as never, reply: '{}' } }
  await t.rejects(calls.apply({ call: over(nowMs), effects: [] }, nowMs, broken), TypeError)
  const unavailable = { code: 'STORE_UNAVAILABLE' }
  await t.rejects(calls.confirm(CALL), unavailable)
  await t.rejects(calls.apply({ call: over(nowMs), effects: [] }, nowMs), unavailable)
  t.equal(read()?.status, 'ringing')
  t.equal(calls.open(CALL)?.status, 'ringing')
  const ending = calls.apply({ call: over(nowMs), effects: [] }, nowMs)
  await Promise.all([ending, calls.confirm(CALL)])
  t.same([read(), await calls.confirm(CALL)], [over(nowMs), undefined])
})
