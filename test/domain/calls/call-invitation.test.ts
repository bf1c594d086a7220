/** Whom one may call, with which keys, and how many (contract 4.3, 4.4). */

import t from 'tap'
import { hasPart } from '../../../src/domain/calls/call.ts'
import type { CallEffect, CallFacts } from '../../../src/domain/calls/call-command.ts'
import { refusalOfWatcher } from '../../../src/domain/calls/call-decision.ts'
import { pendingRecord, recordOf } from '../../../src/domain/calls/call-view.ts'
import type { CallId, UserId } from '../../../src/domain/ids.ts'
import {
  CallDriver,
  deviceOf,
  inWords,
  keyFor,
  keysFor,
  resultOf,
  type UntimedCommand,
} from '../../support/call-driver.ts'

type StartCommand = Extract<UntimedCommand, { kind: 'start' }>

const HOST = deviceOf(1)
const CALLEES = [2, 3]

function started(changes: Partial<StartCommand>, facts: Partial<CallFacts> = {}, devices = 1) {
  const driver = new CallDriver({ devices })
  const command = { ...driver.startCommand(CALLEES), ...changes }
  return driver.decide(command, { ...driver.facts(CALLEES), ...facts })
}

function usersFrom(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, at) => first + at)
}

function idsOf(users: readonly number[]): UserId[] {
  return users.map(user => BigInt(user) as UserId)
}

t.test('a caller calls one to thirty-one users, each once', async t => {
  const refusals = [
    [[], '/calleeIds LENGTH'],
    [usersFrom(2, 32), '/calleeIds LENGTH'],
    [[2, 1], '/calleeIds/1 SELF'],
    [[2, 3, 2], '/calleeIds/2 DUPLICATE'],
  ] as const
  for (const [users, fault] of refusals) {
    const decision = started({ calleeIds: idsOf(users) })
    t.equal(resultOf(decision), 'VALIDATION_FAILED')
    t.match(decision, { errors: [{ pointer: fault.split(' ')[0], code: fault.split(' ')[1] }] })
  }
  const driver = new CallDriver()
  t.equal(driver.start(usersFrom(2, 31)).call.participants.length, 32)
})

t.test('all callees may be called, or none is', async t => {
  const { callees } = new CallDriver().facts(CALLEES)
  const stranger = { ...callees[1]!, mayBeCalled: false }
  const wanted = { kind: 'refused', code: 'CALLEE_NOT_CONTACT', members: { calleeIds: ['3'] } }
  t.match(started({}, { callees: [callees[0]!, stranger] }), wanted)
  t.match(started({}, { callees: [callees[0]!] }), wanted, 'nor is one who is no account told apart')
})

t.test('a key for a user who is not called is refused', async t => {
  const decision = started({ encryptedAESKeys: keysFor([deviceOf(2), deviceOf(3), deviceOf(4)]) })
  t.match(decision, { code: 'VALIDATION_FAILED', errors: [{ pointer: '/encryptedAESKeys/4_401' }] })
})

t.test('each active device of each callee gets a key, and no other', async t => {
  const mismatch = (missing: string[], extra: string[]) => ({
    code: 'DEVICE_LIST_MISMATCH',
    members: { missing, extra },
  })
  const devices = [deviceOf(2), deviceOf(2, 2), deviceOf(3), deviceOf(3, 2)]
  const without = started({ encryptedAESKeys: keysFor(devices.slice(1)) }, {}, 2)
  t.match(without, mismatch(['2_201'], []))
  const beyond = started({ encryptedAESKeys: keysFor([...devices, deviceOf(3, 3)]) }, {}, 2)
  t.match(beyond, mismatch([], ['3_303']))
  t.equal(resultOf(started({ encryptedAESKeys: keysFor(devices) }, {}, 2)), 'record')
})

t.test('who calls may add keys for their own devices, as far as they have them', async t => {
  const devices = [deviceOf(2), deviceOf(3)]
  t.equal(resultOf(started({ encryptedAESKeys: keysFor([...devices, HOST]) })), 'record')
  t.match(started({ encryptedAESKeys: keysFor([...devices, deviceOf(1, 2)]) }), {
    code: 'DEVICE_LIST_MISMATCH',
    members: { missing: [], extra: ['1_102'] },
  })
})

t.test('keys are looked at once it is known that all callees may be called', async t => {
  const encryptedAESKeys = { '2_201': Buffer.alloc(32).toString('base64') }
  t.equal(resultOf(started({ encryptedAESKeys }, { callees: [] })), 'CALLEE_NOT_CONTACT')
  t.equal(resultOf(started({ encryptedAESKeys })), 'PLAINTEXT_KEY_SUSPECTED')
})

t.test('a callee without any device is called, and misses it', async t => {
  const { callees } = new CallDriver().facts(CALLEES)
  const driver = new CallDriver()
  const bare = { ...callees[1]!, deviceIds: [] }
  const command = { ...driver.startCommand(CALLEES), encryptedAESKeys: keysFor([deviceOf(2)]) }
  const facts = { ...driver.facts(CALLEES), callees: [callees[0]!, bare] }
  t.same(inWords(driver.run(command, facts).effects), ['201 call_invitation'])
  t.ok(inWords(driver.wait(65_000).effects).includes('history 3 missed'))
})

t.test('a room belongs to one live call', async t => {
  t.match(started({ roomId: 5 }), { kind: 'accepted', call: { roomId: 5 } })
  t.match(started({}), { kind: 'accepted', call: { roomId: 4711 } })
  t.equal(resultOf(started({ roomId: 5 }, { isRoomInUse: true })), 'ROOM_IN_USE')
})

t.test('who is in another call does not start one', async t => {
  t.match(started({}, { otherCallId: 12n as CallId }), {
    code: 'ALREADY_IN_CALL',
    members: { callId: '12' },
  })
})

t.test('an invitation names the room of the call, if any', async t => {
  const driver = new CallDriver()
  driver.start(CALLEES)
  driver.join(2)
  const command = driver.inviteCommand([4], HOST)
  t.match(driver.decide({ ...command, roomId: 1 }, driver.facts([4])), {
    code: 'VALIDATION_FAILED',
    errors: [{ pointer: '/roomId' }],
  })
  t.equal(resultOf(driver.decide({ ...command, roomId: 4711 }, driver.facts([4]))), 'record')
})

/** Facts by which these callees have blocked the caller. */
function withheld(facts: CallFacts, ...users: readonly bigint[]): CallFacts {
  const callees = facts.callees.map(callee => ({ ...callee, isWithheld: users.includes(callee.userId) }))
  return { ...facts, callees }
}

t.test(
  'a callee who has blocked the caller hears nothing, and the caller sees one who does not answer',
  async t => {
    const [blocked, ignored] = [new CallDriver({ devices: 2 }), new CallDriver({ devices: 2 })]
    const answers = [
      blocked.run(blocked.startCommand([2]), withheld(blocked.facts([2]), 2n)),
      ignored.run(ignored.startCommand([2]), ignored.facts([2])),
    ]
    t.same(answers[0]!.reply, answers[1]!.reply)
    t.same(inWords(answers[0]!.effects), [])
    for (const kind of ['join', 'ringing', 'decline', 'leave', 'request-rejoin', 'rejoin', 'end'] as const) {
      t.equal(resultOf(blocked.decide({ kind, by: deviceOf(2) })), 'CALL_NOT_FOUND', kind)
    }
    t.match(refusalOfWatcher(blocked.call, 2n as UserId), { code: 'CALL_NOT_FOUND' })
    t.notOk(hasPart(blocked.call, 2n as UserId) || pendingRecord(blocked.call, deviceOf(2)))
    const ends = [blocked, ignored].map(driver => {
      driver.nowMs += 65_000
      return inWords(driver.run({ kind: 'deadline' }).effects)
    })
    t.same(ends[0], ['101 call_ended', 'topic missed', 'history 1 missed'])
    t.same(
      ends[1]?.filter(word => !/^20|^history 2/.test(word)),
      ends[0],
    )
    t.same(recordOf(blocked.call, deviceOf(1)), recordOf(ignored.call, deviceOf(1)))
  },
)

t.test('a withheld callee is sealed for like any other, and gets no key', async t => {
  const driver = new CallDriver()
  driver.run(driver.startCommand([2, 3]), withheld(driver.facts([2, 3]), 3n))
  driver.join(2)
  const keys = driver.keysCommand(HOST, [deviceOf(2), deviceOf(3)], 2)
  t.same(inWords(driver.run(keys).effects), ['201 key_update'])
  const again = driver.run(driver.inviteCommand([3], HOST), withheld(driver.facts([3]), 3n))
  t.same(inWords(again.effects), [], 'also when invited again')
  const rung = driver.run(driver.inviteCommand([3], deviceOf(2)), driver.facts([3]))
  t.match(inWords(rung.effects)[0], /^301 call_invitation/, 'another contact rings them')
  t.equal(resultOf(driver.decide({ kind: 'join', by: deviceOf(3) })), 'record')
})

t.test('a member who has blocked the inviter since stays what they are', async t => {
  const driver = new CallDriver()
  driver.start([2, 3])
  driver.join(2)
  driver.join(3)
  driver.run({ kind: 'leave', by: deviceOf(3) })
  const before = driver.call
  driver.run(driver.inviteCommand([3], HOST), withheld(driver.facts([3]), 3n))
  t.same(driver.call.participants, before.participants)
})

t.test('an invitation is held to the same rules as a start', async t => {
  const driver = new CallDriver()
  driver.start([2])
  driver.join(2)
  const facts = driver.facts([3])
  const strangers = { ...facts, callees: facts.callees.map(callee => ({ ...callee, mayBeCalled: false })) }
  t.equal(resultOf(driver.decide(driver.inviteCommand([3], HOST), strangers)), 'CALLEE_NOT_CONTACT')
  t.equal(resultOf(driver.decide(driver.inviteCommand([3], HOST), driver.facts([3, 4]))), 'record')
  t.equal(resultOf(driver.decide(driver.inviteCommand([], HOST), facts)), 'VALIDATION_FAILED')
})

t.test('an invitation says for itself whether it is with video', async t => {
  const driver = new CallDriver()
  driver.start([2])
  driver.join(2)
  const { effects } = driver.run({ ...driver.inviteCommand([3], HOST), isVideo: false }, driver.facts([3]))
  t.match(effects[0], { notice: { isVideo: false } })
  t.match(driver.invite([4], HOST).effects[0], { notice: { isVideo: true } }, 'or is as the call')
  t.match(driver.run({ kind: 'end', by: HOST }).effects[0], {
    notice: { kind: 'call_cancelled', isVideo: false },
  })
  t.equal(driver.call.isVideo, true)
})

t.test('devices with the same message share it', async t => {
  const driver = new CallDriver({ devices: 2 })
  const facts = driver.facts([2, 3, 4])
  const callees = facts.callees.map(callee =>
    callee.userId === 3n ? { ...callee, caller: { isContact: true, alias: 'Annie' } } : callee,
  )
  for (const { effects } of [
    driver.run(driver.startCommand([2, 3, 4]), { ...facts, callees }),
    driver.run({ kind: 'end', by: HOST }),
  ]) {
    const told = new Map<object, bigint[]>()
    for (const effect of effects) {
      if (effect.kind === 'device')
        told.set(effect.notice, [...(told.get(effect.notice) ?? []), effect.userId])
    }
    t.same(
      [...told.values()],
      [
        [2n, 2n, 4n, 4n],
        [3n, 3n],
      ],
      'but for who calls the caller otherwise',
    )
  }
})

t.test('thirty-two are in a call, those invited counted', async t => {
  const driver = new CallDriver()
  driver.start(usersFrom(2, 31))
  driver.join(2)
  const decide = (users: number[]) =>
    resultOf(driver.decide(driver.inviteCommand(users, HOST), driver.facts(users)))
  t.equal(decide([40]), 'CALL_FULL')
  t.equal(decide([2, 3]), 'record', 'but they may be invited once more')
  driver.run({ kind: 'decline', by: deviceOf(3) })
  t.equal(decide([40, 41]), 'CALL_FULL')
  t.equal(decide([40]), 'record')
})

t.test('a full call takes no one back', async t => {
  const driver = new CallDriver()
  driver.start(usersFrom(2, 31))
  for (const user of usersFrom(2, 29)) driver.join(user)
  driver.run({ kind: 'decline', by: deviceOf(31), reason: 'timeout' })
  driver.run({ kind: 'leave', by: deviceOf(2) })
  driver.run({ kind: 'request-rejoin', by: deviceOf(2) })
  driver.invite([40, 41], HOST)
  t.equal(resultOf(driver.decide({ kind: 'join', by: deviceOf(31) })), 'CALL_FULL')
  t.equal(resultOf(driver.decide({ kind: 'rejoin', by: deviceOf(2) })), 'CALL_FULL')
  t.equal(resultOf(driver.decide({ kind: 'join', by: deviceOf(32) })), 'record', 'but whom it has invited')
})

t.test('sixty-four ever have a part in one call', async t => {
  const driver = new CallDriver()
  driver.start(usersFrom(2, 31))
  driver.join(2)
  for (const user of usersFrom(3, 30)) driver.run({ kind: 'decline', by: deviceOf(user) })
  driver.invite(usersFrom(33, 30), HOST)
  for (const user of usersFrom(33, 30)) driver.run({ kind: 'decline', by: deviceOf(user) })
  driver.invite([63, 64], HOST)
  t.equal(driver.call.participants.length, 64)
  t.equal(resultOf(driver.decide(driver.inviteCommand([65], HOST), driver.facts([65]))), 'CALL_FULL')
  t.equal(resultOf(driver.decide(driver.inviteCommand([5], HOST), driver.facts([5]))), 'record')
})

t.test('keys of an invitation are for its own callees', async t => {
  const driver = new CallDriver()
  driver.start([2])
  driver.join(2)
  const { effects } = driver.invite([3, 4], HOST)
  const notices = effects.flatMap(effect => (effect.kind === 'device' ? [effect] : []))
  t.same(
    notices.map(({ deviceId, encryptedAESKey }) => [deviceId, encryptedAESKey]),
    [deviceOf(3), deviceOf(4)].map(device => [device.deviceId, keyFor(device)]),
  )
})

/** A call after its callees joined, and after its end where `isEnded`. */
function lived(isEnded: boolean): CallDriver {
  const driver = new CallDriver({ devices: 2 })
  driver.start(CALLEES)
  for (const user of CALLEES) driver.join(user)
  if (isEnded) driver.run({ kind: 'end', by: HOST })
  return driver
}

const TAKEN = { kind: 'refused', code: 'CALL_ID_TAKEN', detail: /./ }

for (const isEnded of [false, true]) {
  const when = isEnded ? 'has ended' : 'is live'

  t.test(`a start again while its call ${when} is answered with the call`, async t => {
    const driver = lived(isEnded)
    const command = driver.startCommand(CALLEES)
    const decision = driver.decide(command, driver.facts(CALLEES))
    t.match(decision, { kind: 'accepted', effects: [], reply: { kind: 'record' } })
    t.same(decision, {
      kind: 'accepted',
      call: driver.call,
      effects: [],
      reply: { kind: 'record', record: recordOf(driver.call, HOST) },
    })
    const turned = Object.fromEntries(Object.entries(command.encryptedAESKeys).reverse())
    t.equal(resultOf(driver.decide({ ...command, encryptedAESKeys: turned })), 'record', 'in any order')
    const renamed = { ...driver.facts(CALLEES), displayName: 'Renamed' }
    t.equal(resultOf(driver.decide(command, renamed)), 'record', 'the name is no part')
  })

  t.test(`any other start with the id of a call that ${when} hears of nothing but the id`, async t => {
    const driver = lived(isEnded)
    const command = driver.startCommand(CALLEES)
    const others: Record<string, Partial<StartCommand>> = {
      'the same user on another device': { by: deviceOf(1, 2) },
      'a member': { by: deviceOf(2) },
      'a stranger': { by: deviceOf(9) },
      'a device of the same id of another user': { by: { ...HOST, userId: 9n as UserId } },
      'other callees': { calleeIds: idsOf([3, 2]) },
      'other keys': { encryptedAESKeys: { ...command.encryptedAESKeys, '2_201': keyFor(deviceOf(2), 2) } },
      'without video': { isVideo: false },
      'a room': { roomId: 4711 },
      'no callee': { calleeIds: [] },
    }
    const refusals = Object.entries(others).map(([name, changes]) => {
      const refusal = driver.decide({ ...command, ...changes }, driver.facts(CALLEES))
      t.match(refusal, TAKEN, name)
      return JSON.stringify(refusal)
    })
    t.equal(new Set(refusals).size, 1, 'all hear the same')
    t.same(Object.keys(JSON.parse(refusals[0]!)), ['kind', 'code', 'detail'])
  })
}

t.test('a call keeps no key of its start beyond its end', async t => {
  const driver = lived(true)
  const { startedWith } = driver.call
  t.equal(startedWith.digest.length, 32)
  t.notOk(JSON.stringify(driver.call, textOf).includes(keyFor(deviceOf(2))))
})

function textOf(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}

t.test('an invitation with a key of another epoch is refused, and one that does not say is not', async t => {
  const driver = new CallDriver()
  driver.start([2])
  driver.join(2)
  driver.run(driver.keysCommand(HOST, [deviceOf(2)], 2))
  const invite = (epoch: number | undefined) =>
    driver.decide({ ...driver.inviteCommand([3], HOST), epoch }, driver.facts([3]))
  for (const epoch of [1, 3]) {
    t.match(invite(epoch), { kind: 'refused', code: 'EPOCH_CONFLICT', members: { keyEpoch: 2 } })
  }
  for (const epoch of [2, undefined]) t.equal(resultOf(invite(epoch)), 'record')
  const outside = driver.decide({ ...driver.inviteCommand([3], deviceOf(4)), epoch: 1 }, driver.facts([3]))
  t.equal(resultOf(outside), 'CALL_NOT_FOUND', 'a stranger hears of no epoch')
})

/** Whom each invitation names as its key's sealer, by invited device. */
function sealersIn(effects: readonly CallEffect[]): (readonly [bigint, string])[] {
  return effects.flatMap(effect => {
    if (effect.kind !== 'device' || effect.notice.kind !== 'call_invitation') return []
    const { keyFromUserId, keyFromDeviceId } = effect.notice
    return [[effect.deviceId, `${keyFromUserId}_${keyFromDeviceId}`] as const]
  })
}

t.test('an invitation names the device that sealed its key: the starter, then the inviter', async t => {
  const driver = new CallDriver()
  t.same(sealersIn(driver.start([2, 3]).effects), [
    [201n, '1_101'],
    [301n, '1_101'],
  ])
  driver.join(2)
  t.same(sealersIn(driver.invite([4], deviceOf(2)).effects), [[401n, '2_201']])
  t.match(pendingRecord(driver.call, deviceOf(3)), { keyFromUserId: 1n, keyFromDeviceId: 101n })
  t.match(pendingRecord(driver.call, deviceOf(4)), { keyFromUserId: 2n, keyFromDeviceId: 201n })
})

t.test('pending and join name who sealed the key last, and no device once it is handed over', async t => {
  const driver = new CallDriver()
  driver.start([2, 3])
  driver.join(2)
  driver.run({ kind: 'leave', by: HOST })
  driver.run(driver.keysCommand(deviceOf(2), [deviceOf(3)], 2))
  const wanted = { encryptedAESKey: keyFor(deviceOf(3), 2), keyFromUserId: 2n, keyFromDeviceId: 201n }
  t.match(pendingRecord(driver.call, deviceOf(3)), wanted, 'the host of now sealed it')
  t.match(driver.join(3).reply, { record: wanted })
  const none = { encryptedAESKey: undefined, keyFromUserId: undefined, keyFromDeviceId: undefined }
  t.match(driver.join(3).reply, { record: none })
})

t.test('a key of an old epoch goes with the name of who sealed it', async t => {
  const driver = new CallDriver()
  driver.start([2, 3])
  driver.join(2)
  driver.run(driver.keysCommand(HOST, [deviceOf(2)], 2))
  const none = { encryptedAESKey: undefined, keyFromUserId: undefined, keyFromDeviceId: undefined }
  t.match(pendingRecord(driver.call, deviceOf(3)), none)
  driver.invite([3], deviceOf(2))
  t.match(pendingRecord(driver.call, deviceOf(3)), { keyFromUserId: 2n, keyFromDeviceId: 201n })
})
