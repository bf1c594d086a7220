/** Keys after the start: asking for one and coming back, new ones, emergencies (contract 4.5). */

import t from 'tap'
import type { CallDeviceRef } from '../../../src/domain/calls/call.ts'
import {
  CALL_ID,
  CallDriver,
  deviceOf,
  inWords,
  keyFor,
  keysFor,
  resultOf,
  START_MS,
} from '../../support/call-driver.ts'

const [HOST, SECOND, THIRD, FOURTH] = [deviceOf(1), deviceOf(2), deviceOf(3), deviceOf(4)]

/** 1 to 3 are in the call and stay online; each has two devices. */
function active({ pending = [] as number[] } = {}): CallDriver {
  const driver = new CallDriver({ devices: 2 })
  driver.start([2, 3, ...pending])
  for (const user of [2, 3]) driver.join(user)
  for (const by of [HOST, SECOND, THIRD]) driver.run({ kind: 'device-online', by })
  return driver
}

/** 3 has left and asked for the key. */
function asking(): CallDriver {
  const driver = active()
  driver.run({ kind: 'leave', by: THIRD })
  driver.run({ kind: 'request-rejoin', by: THIRD })
  return driver
}

function answer(by: CallDeviceRef, requester: CallDeviceRef = THIRD, encryptedAESKey = keyFor(requester)) {
  return {
    kind: 'accept-rejoin' as const,
    by,
    encryptedAESKey,
    requesterUserId: requester.userId,
    requesterDeviceId: requester.deviceId,
  }
}

t.test('a device that asks is heard by every other device in the call', async t => {
  const driver = active({ pending: [4] })
  driver.run({ kind: 'leave', by: THIRD })
  driver.nowMs += 1000
  const { effects, reply } = driver.run({ kind: 'request-rejoin', by: deviceOf(3, 2) })
  t.same(reply, { kind: 'asked', asked: 2, expiresInS: 30 })
  t.same(inWords(effects), ['101 participant_request_rejoin', '201 participant_request_rejoin'])
  t.match(effects[0], {
    expiresAtMs: START_MS + 31_000,
    notice: {
      callId: CALL_ID,
      userId: 3n,
      deviceId: 302n,
      displayName: 'User 3',
      publicKeyHash: 'hash of 302',
      expiresAtMs: START_MS + 31_000,
    },
  })
})

t.test('an open ask is not repeated, an expired one is', async t => {
  const driver = asking()
  driver.nowMs += 10_500
  t.match(driver.run({ kind: 'request-rejoin', by: THIRD }), {
    effects: [],
    reply: { asked: 2, expiresInS: 20 },
  })
  driver.nowMs += 19_500
  t.equal(driver.run({ kind: 'request-rejoin', by: THIRD }).effects.length, 2)
  t.equal(driver.call.rejoinAsks.length, 1)
})

t.test('an ask with another nonce takes the place of the open one, and answers count anew', async t => {
  const driver = active()
  driver.run({ kind: 'leave', by: THIRD })
  const ask = (nonce?: string) => driver.run({ kind: 'request-rejoin', by: THIRD, nonce })
  t.match(
    ask('one').effects,
    [SECOND, HOST].map(() => ({ notice: { nonce: 'one' } })),
  )
  driver.run(answer(SECOND))
  t.same(ask('one').effects, [], 'the same one is not repeated')
  driver.nowMs += 10_000
  const { effects, reply } = ask('two')
  t.same(inWords(effects), ['101 participant_request_rejoin', '201 participant_request_rejoin'])
  t.match(effects[0], { notice: { nonce: 'two' } })
  t.match(reply, { asked: 2, expiresInS: 30 })
  t.equal(driver.call.rejoinAsks.length, 1)
  t.same(inWords(driver.run(answer(SECOND)).effects), ['301 participant_accept_rejoin'])
  const [bare] = ask().effects
  t.notOk(bare?.kind === 'device' && 'nonce' in bare.notice, 'none is another one too')
  t.same(ask().effects, [])
})

t.test('a user with another device in the call asks that one too', async t => {
  const driver = active()
  const { effects } = driver.run({ kind: 'request-rejoin', by: deviceOf(2, 2) })
  t.same(
    inWords(effects),
    [101, 201, 301].map(device => `${device} participant_request_rejoin`),
  )
  const moved = driver.run({ kind: 'rejoin', by: deviceOf(2, 2) })
  t.same(inWords(moved.effects), ['201 call_moved', 'topic joined 2'])
  for (const by of [HOST, THIRD]) driver.run({ kind: 'leave', by })
  t.same(driver.run({ kind: 'request-rejoin', by: SECOND }).reply, {
    kind: 'asked',
    asked: 1,
    expiresInS: 30,
  })
})

t.test('an ask in an otherwise empty call finds no device', async t => {
  const driver = active()
  for (const by of [SECOND, THIRD]) driver.run({ kind: 'leave', by })
  t.equal(resultOf(driver.decide({ kind: 'request-rejoin', by: HOST })), 'NO_ACTIVE_PARTICIPANT')
  driver.run({ kind: 'leave', by: HOST })
  t.equal(resultOf(driver.decide({ kind: 'request-rejoin', by: SECOND })), 'NO_ACTIVE_PARTICIPANT')
  t.same(inWords(driver.run({ kind: 'rejoin', by: SECOND }).effects), ['topic joined 2', 'topic host 2'])
})

t.test('an answer goes to the device that asked, and to no other', async t => {
  const driver = asking()
  const { effects, reply } = driver.run(answer(SECOND))
  t.equal(reply.kind, 'done')
  t.same(inWords(effects), ['301 participant_accept_rejoin'])
  t.match(effects[0], {
    expiresAtMs: START_MS + 60_000,
    encryptedAESKey: keyFor(THIRD),
    notice: {
      callId: CALL_ID,
      keyEpoch: 1,
      fromUserId: 2n,
      fromDeviceId: SECOND.deviceId,
    },
  })
  t.notOk(JSON.stringify(driver.call, (_, value) => String(value)).includes(keyFor(THIRD)), 'it is not kept')
})

t.test('each device answers once, and five answers are passed on', async t => {
  const driver = new CallDriver()
  driver.start([2, 3, 4, 5, 6, 7, 8])
  for (const user of [2, 3, 4, 5, 6, 7, 8]) driver.join(user)
  driver.run({ kind: 'leave', by: THIRD })
  driver.run({ kind: 'request-rejoin', by: THIRD })
  const told = [1, 2, 2, 4, 5, 6, 7, 8].map(user => driver.run(answer(deviceOf(user))).effects.length)
  t.same(told, [1, 1, 0, 1, 1, 1, 0, 0])
})

t.test('answers count until thirty seconds are over, or the device is back', async t => {
  const late = asking()
  late.nowMs += 29_999
  t.equal(late.run(answer(SECOND)).effects.length, 1)
  late.nowMs += 1
  t.match(late.run(answer(HOST)), { effects: [], reply: { kind: 'done' } })
  const back = asking()
  back.run({ kind: 'rejoin', by: THIRD })
  t.match(back.run(answer(SECOND)), { effects: [], reply: { kind: 'done' } })
})

t.test('an answer to a device that did not ask goes nowhere', async t => {
  const driver = asking()
  for (const device of [SECOND, deviceOf(3, 2), FOURTH, deviceOf(9)]) {
    t.match(driver.run(answer(HOST, device)), { effects: [], reply: { kind: 'done' } })
  }
})

t.test('only a device in the call answers, and only with an encrypted key', async t => {
  const driver = asking()
  for (const by of [deviceOf(2, 2), THIRD]) t.equal(resultOf(driver.decide(answer(by))), 'NOT_PARTICIPANT')
  t.equal(resultOf(driver.decide(answer(deviceOf(9)))), 'CALL_NOT_FOUND')
  const plain = Buffer.alloc(32).toString('base64')
  t.equal(resultOf(driver.decide(answer(HOST, THIRD, plain))), 'PLAINTEXT_KEY_SUSPECTED')
  t.equal(resultOf(driver.decide(answer(HOST, THIRD, 'x'))), 'VALIDATION_FAILED')
})

t.test('who asked rejoins, for a minute', async t => {
  const driver = asking()
  driver.wait(59_999)
  const { effects, reply } = driver.run({ kind: 'rejoin', by: THIRD })
  t.same(inWords(effects), ['topic joined 3'])
  t.match(reply, { kind: 'record', record: { roomId: 4711, encryptedAESKey: undefined } })
  t.match(driver.run({ kind: 'rejoin', by: THIRD }), { effects: [], reply })
  const late = asking()
  late.nowMs += 60_000
  t.equal(resultOf(late.decide({ kind: 'rejoin', by: THIRD })), 'REJOIN_REQUIRED')
  t.equal(late.wait(0).call.rejoinAsks.length, 0)
})

t.test('only the device that asked rejoins', async t => {
  const driver = asking()
  t.equal(resultOf(driver.decide({ kind: 'rejoin', by: deviceOf(3, 2) })), 'REJOIN_REQUIRED')
})

t.test('a user who was lost, declined or missed it comes in with a key from another device', async t => {
  for (const way of ['lost', 'declined', 'missed', 'invited']) {
    const driver = active({ pending: [4] })
    if (way === 'lost') {
      driver.join(4)
      driver.wait(90_000)
    } else if (way !== 'invited') {
      driver.run({ kind: 'decline', by: FOURTH, reason: way === 'missed' ? 'timeout' : 'declined' })
    }
    t.equal(driver.person(4).state, way)
    driver.run({ kind: 'request-rejoin', by: FOURTH })
    t.equal(driver.run(answer(HOST, FOURTH)).effects.length, 1)
    const words = inWords(driver.run({ kind: 'rejoin', by: FOURTH }).effects)
    t.ok(words.includes('topic joined 4'), way)
    t.equal(words.includes('402 call_answered_elsewhere instead'), way === 'invited', way)
  }
})

t.test('who was removed has nothing to ask for, nor keeps what they asked', async t => {
  const driver = asking()
  driver.run({ kind: 'remove', by: HOST, userId: THIRD.userId })
  t.same(driver.call.rejoinAsks, [])
  t.equal(resultOf(driver.decide({ kind: 'request-rejoin', by: THIRD })), 'NOT_PARTICIPANT')
  t.match(driver.run(answer(SECOND)), { effects: [] })
})

t.test('a new key reaches each device in the call but the one that made it', async t => {
  const driver = active()
  const { effects, reply } = driver.run(driver.keysCommand(HOST, [SECOND, THIRD], 2))
  t.equal(reply.kind, 'done')
  t.same(inWords(effects), ['201 key_update', '301 key_update'])
  t.match(
    effects,
    [SECOND, THIRD].map(device => ({
      expiresAtMs: START_MS + 24 * 3_600_000,
      encryptedAESKey: keyFor(device, 2),
      notice: {
        callId: CALL_ID,
        epoch: 2,
        reason: 'rotation',
        fromUserId: 1n,
        fromDeviceId: HOST.deviceId,
      },
    })),
  )
  t.equal(driver.call.keyEpoch, 2)
})

t.test('the map names exactly the devices in the call, and any that still ring', async t => {
  const driver = active({ pending: [4, 5] })
  driver.run({ kind: 'decline', by: deviceOf(5) })
  const both = [SECOND, THIRD]
  const wrong = [
    [SECOND],
    [],
    [...both, HOST],
    [...both, deviceOf(2, 2)],
    [...both, deviceOf(5)],
    [...both, deviceOf(9)],
  ]
  for (const devices of wrong) {
    t.equal(resultOf(driver.decide(driver.keysCommand(HOST, devices, 2))), 'DEVICE_LIST_MISMATCH')
  }
  for (const devices of [both, [...both, FOURTH], [...both, FOURTH, deviceOf(4, 2)]]) {
    t.equal(resultOf(driver.decide(driver.keysCommand(HOST, devices, 2))), 'done')
  }
})

t.test('a device that still rings gets the new key with its next look, or none', async t => {
  const driver = active({ pending: [4, 5] })
  const { effects } = driver.run(driver.keysCommand(HOST, [SECOND, THIRD, FOURTH], 2))
  t.same(inWords(effects), ['201 key_update', '301 key_update', '401 key_update'])
  t.match(driver.join(4).reply, { record: { keyEpoch: 2, encryptedAESKey: keyFor(FOURTH, 2) } })
  const { reply } = driver.join(5)
  t.match(reply, { record: { keyEpoch: 2, encryptedAESKey: undefined } }, 'an old one would be of no use')
})

t.test('keys are of the next epoch and from the host', async t => {
  const driver = active()
  const both = [SECOND, THIRD]
  for (const epoch of [0, 1, 3, 100]) {
    t.match(driver.decide(driver.keysCommand(HOST, both, epoch)), {
      code: 'EPOCH_CONFLICT',
      members: { keyEpoch: 1 },
    })
  }
  t.equal(resultOf(driver.decide(driver.keysCommand(SECOND, [HOST, THIRD], 2))), 'NOT_HOST')
  t.equal(resultOf(driver.decide(driver.keysCommand(deviceOf(1, 2), [HOST, ...both], 2))), 'NOT_PARTICIPANT')
  t.equal(resultOf(driver.decide(driver.keysCommand(HOST, both, 2, 'leave'))), 'done')
})

t.test('in an emergency any participant sends the present key again', async t => {
  const driver = active({ pending: [4] })
  const { effects } = driver.run(driver.keysCommand(SECOND, [HOST, THIRD], 1, 'emergency'))
  t.same(inWords(effects), ['101 key_update', '301 key_update'])
  t.equal(driver.call.keyEpoch, 1)
  t.equal(resultOf(driver.decide(driver.keysCommand(SECOND, [HOST, THIRD], 2, 'emergency'))), 'NOT_HOST')
  t.equal(
    resultOf(driver.decide(driver.keysCommand(SECOND, [HOST, THIRD], 3, 'emergency'))),
    'EPOCH_CONFLICT',
  )
  t.match(
    driver.join(4).reply,
    { record: { encryptedAESKey: keyFor(FOURTH) } },
    'keys that wait go on waiting',
  )
  const next = driver.run(driver.keysCommand(HOST, [SECOND, THIRD, FOURTH], 2, 'emergency'))
  t.equal(next.call.keyEpoch, 2, 'the host may make a new one of it')
})

t.test(
  'the key that waits for a callee is not replaced by what a member says is the present one',
  async t => {
    const driver = active({ pending: [4] })
    const sent = (by: typeof HOST, others: readonly (typeof HOST)[], epoch: number) => {
      const encryptedAESKeys = keysFor([...others, FOURTH], 7)
      return { ...driver.keysCommand(by, others, epoch, 'emergency'), encryptedAESKeys }
    }
    const { effects } = driver.run(sent(SECOND, [HOST, THIRD], 1))
    t.same(inWords(effects), ['101 key_update', '301 key_update', '401 key_update'])
    t.match(driver.join(4).reply, {
      record: { encryptedAESKey: keyFor(FOURTH), keyFromDeviceId: HOST.deviceId },
    })

    const other = active({ pending: [4] })
    other.run(sent(HOST, [SECOND, THIRD], 1))
    t.match(other.join(4).reply, { record: { encryptedAESKey: keyFor(FOURTH, 7) } }, 'but by its sealer')
  },
)

t.test('keys that are sent again are not passed on again', async t => {
  const driver = active()
  const command = driver.keysCommand(HOST, [SECOND, THIRD], 2)
  const first = driver.run(command)
  t.same(driver.run(command), { ...first, effects: [] })
  const reversed = Object.fromEntries(Object.entries(command.encryptedAESKeys).reverse())
  t.same(driver.run({ ...command, encryptedAESKeys: reversed }).effects, [])
  driver.run({ kind: 'leave', by: THIRD })
  t.same(driver.run(command).effects, [], 'nor are they held against who is in the call by then')
  const others = keysFor([SECOND, THIRD], 7)
  t.equal(resultOf(driver.decide({ ...command, encryptedAESKeys: others })), 'EPOCH_CONFLICT')
  const emergency = driver.keysCommand(SECOND, [HOST], 2, 'emergency')
  t.equal(driver.run(emergency).effects.length, 1)
  t.equal(driver.run(emergency).effects.length, 0)
  t.same(driver.run(command).effects, [], 'whatever others have sent since')
})

t.test('keys of the wrong form are refused', async t => {
  const driver = active()
  const plain = Buffer.alloc(32).toString('base64')
  const command = driver.keysCommand(HOST, [SECOND, THIRD], 2)
  const encryptedAESKeys = { ...command.encryptedAESKeys, '2_201': plain }
  t.equal(resultOf(driver.decide({ ...command, encryptedAESKeys })), 'PLAINTEXT_KEY_SUSPECTED')
})

t.test('a call drops each key once no device waits for it', async t => {
  const driver = active({ pending: [4, 5] })
  const keysIn = () =>
    driver.call.participants.flatMap(({ devices }) => devices).map(({ deviceId }) => deviceId)
  t.same(keysIn(), [202n, 302n, 401n, 402n, 501n, 502n])
  driver.run({ kind: 'leave', by: SECOND })
  driver.run({ kind: 'decline', by: FOURTH })
  t.same(keysIn(), [302n, 501n, 502n])
  driver.run({ kind: 'end', by: HOST })
  t.same(keysIn(), [])
  t.equal(driver.call.lastKeys, undefined)
})

t.test('an answer with a key of another epoch is refused, also one that would be dropped', async t => {
  const driver = asking()
  driver.run(driver.keysCommand(HOST, [SECOND], 2))
  const refusal = { kind: 'refused', code: 'EPOCH_CONFLICT', members: { keyEpoch: 2 } }
  for (const epoch of [1, 3]) t.match(driver.decide({ ...answer(SECOND), epoch }), refusal)
  t.equal(resultOf(driver.decide({ ...answer(FOURTH), epoch: 1 })), 'CALL_NOT_FOUND', 'not to a stranger')
  t.equal(resultOf(driver.decide({ ...answer(THIRD), epoch: 1 })), 'NOT_PARTICIPANT', 'nor to who left')
  t.same(inWords(driver.run({ ...answer(HOST), epoch: 2 }).effects), ['301 participant_accept_rejoin'])
  t.same(inWords(driver.run(answer(SECOND)).effects), ['301 participant_accept_rejoin'], 'unsaid, as before')
  t.match(driver.decide({ ...answer(SECOND), epoch: 1 }), refusal, 'sent again')
  driver.wait(31_000)
  t.match(driver.decide({ ...answer(SECOND), epoch: 1 }), refusal, 'late')
  t.same(inWords(driver.run({ ...answer(SECOND), epoch: 2 }).effects), [])
})
