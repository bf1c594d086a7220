/** Keys that come with the set of devices they are sealed for: at the start, in `keys`, and with an invitation. */

import t from 'tap'
import type { CallDeviceRef } from '../../../src/domain/calls/call.ts'
import type { CallAccepted, CallFacts } from '../../../src/domain/calls/call-command.ts'
import { hashOfMembers } from '../../../src/domain/calls/key-members.ts'
import type { UserId } from '../../../src/domain/ids.ts'
import { CallDriver, deviceOf, inWords, keyFor, keysFor, resultOf } from '../../support/call-driver.ts'
import { memberEntry, memberOctets, membersOf } from '../../support/key-members.ts'

const [HOST, SECOND, THIRD, FOURTH] = [deviceOf(1), deviceOf(2), deviceOf(3), deviceOf(4)]

/** Users 2 and 3 have joined the call, whose start came with a set; the pending ones ring. Each has one device. */
function active({ pending = [] as number[], devices = 1 } = {}): CallDriver {
  const driver = new CallDriver({ devices })
  const callees = [2, 3, ...pending]
  driver.run(startWith(driver, callees), driver.facts(callees))
  for (const user of [2, 3]) driver.join(user)
  return driver
}

function startWith(driver: CallDriver, callees: readonly number[]) {
  const keyMembers = membersOf([HOST, ...callees.flatMap(user => driver.devicesOf(user))])
  return { ...driver.startCommand(callees), keyMembers }
}

function keysWith(driver: CallDriver, by: CallDeviceRef, to: readonly CallDeviceRef[], epoch: number) {
  return { ...driver.keysCommand(by, to, epoch), keyMembers: membersOf([by, ...to]) }
}

/** One map for who is in the call and the callees. */
function inviteWith(
  driver: CallDriver,
  by: CallDeviceRef,
  callees: readonly number[],
  to: readonly CallDeviceRef[],
) {
  const epoch = driver.call.keyEpoch + 1
  return {
    kind: 'invite' as const,
    by,
    calleeIds: callees.map(user => BigInt(user) as UserId),
    encryptedAESKeys: keysFor(to, epoch),
    epoch,
    keyMembers: membersOf([...new Set([by, ...to])]),
  }
}

function noticesOf({ effects }: CallAccepted) {
  return effects.flatMap(effect => {
    if (effect.kind !== 'device') return []
    const { notice, encryptedAESKey } = effect
    return [encryptedAESKey === undefined ? notice : { ...notice, encryptedAESKey }]
  })
}

function hashOf(devices: readonly CallDeviceRef[]): string {
  return Buffer.from(hashOfMembers(memberOctets(devices))).toString('base64')
}

function epochsKept({ call }: CallDriver): number[] {
  return call.keySets.map(({ epoch }) => epoch)
}

t.test('a start has the set of epoch 1, and devices that read the call or come into it see it', async t => {
  const driver = new CallDriver()
  const started = driver.run(startWith(driver, [2, 3]), driver.facts([2, 3]))
  const members = memberOctets([HOST, SECOND, THIRD])
  t.same(driver.call.keySets, [{ epoch: 1, members }])
  t.match(started.reply, { record: { keySets: undefined } })
  t.notOk(
    noticesOf(started).some(notice => 'keySets' in notice),
    'nor is it in an invitation',
  )
  t.match(driver.join(2).reply, { record: { keySets: [{ epoch: 1, members }] } })
  driver.join(3)
  driver.run({ kind: 'leave', by: THIRD })
  driver.run({ kind: 'request-rejoin', by: THIRD })
  t.match(driver.run({ kind: 'rejoin', by: THIRD }).reply, { record: { keySets: [{ epoch: 1, members }] } })
  const ended = driver.run({ kind: 'end', by: HOST })
  t.match(ended.reply, { record: { keySets: undefined } })
  t.same(driver.call.keySets, [], 'a call that is over has none')
})

t.test('a start with a set of other devices is refused, and its set tells it from other starts', async t => {
  const driver = new CallDriver({ devices: 2 })
  const command = startWith(driver, [2])
  for (const devices of [
    [HOST, SECOND],
    [SECOND, deviceOf(2, 2)],
    [HOST, ...driver.devicesOf(2), THIRD],
  ]) {
    t.match(driver.decide({ ...command, keyMembers: membersOf(devices) }, driver.facts([2])), {
      code: 'VALIDATION_FAILED',
      errors: [{ pointer: '/keyMembers', code: 'MISMATCH' }],
    })
  }
  driver.run(command, driver.facts([2]))
  t.equal(driver.run(command, driver.facts([2])).call, driver.call)
  const keyMembers = membersOf([HOST, ...driver.devicesOf(2)], 1)
  t.equal(resultOf(driver.decide({ ...command, keyMembers }, driver.facts([2]))), 'CALL_ID_TAKEN')
  t.equal(resultOf(driver.decide(driver.startCommand([2]), driver.facts([2]))), 'CALL_ID_TAKEN')
})

t.test('a withheld callee is in the set like any other', async t => {
  const driver = new CallDriver()
  const facts = withheld(driver.facts([2, 3]), 3)
  t.equal(
    resultOf(driver.decide({ ...driver.startCommand([2, 3]), keyMembers: membersOf([HOST, SECOND]) }, facts)),
    'VALIDATION_FAILED',
  )
  driver.run(startWith(driver, [2, 3]), facts)
  driver.join(2)
  const invite = inviteWith(driver, HOST, [4], [SECOND, THIRD, FOURTH])
  t.same(inWords(driver.run(invite, driver.facts([4])).effects), [
    '401 call_invitation',
    'topic invited 4',
    '201 key_update',
  ])
  t.equal(
    resultOf(driver.decide(inviteWith(driver, HOST, [3], [SECOND, FOURTH]), withheld(driver.facts([3]), 3))),
    'DEVICE_LIST_MISMATCH',
  )
})

t.test('a new key says how its set differs from the one before', async t => {
  const driver = active({ pending: [4] })
  const rotated = noticesOf(driver.run(keysWith(driver, HOST, [SECOND, THIRD], 2)))
  t.equal(rotated.length, 2)
  for (const notice of rotated) {
    t.match(notice, {
      kind: 'key_update',
      epoch: 2,
      setHash: hashOf([HOST, SECOND, THIRD]),
      added: '',
      removed: ['4_401'],
    })
  }
  const added = memberEntry(FOURTH).toString('base64')
  const [again] = noticesOf(driver.run(keysWith(driver, HOST, [SECOND, THIRD, FOURTH], 3)))
  t.match(again, { setHash: hashOf([HOST, SECOND, THIRD, FOURTH]), added, removed: [] })
  t.same(epochsKept(driver), [3, 2], 'the newest two are kept')
})

t.test('a key without a set says nothing of one, nor does the next one say what has changed', async t => {
  const driver = active()
  const [bare] = noticesOf(driver.run(driver.keysCommand(HOST, [SECOND, THIRD], 2)))
  for (const name of ['setHash', 'added', 'removed']) t.notOk(name in bare!, name)
  t.same(epochsKept(driver), [1])
  const [next] = noticesOf(driver.run(keysWith(driver, HOST, [SECOND, THIRD], 3)))
  t.match(next, { setHash: hashOf([HOST, SECOND, THIRD]) })
  for (const name of ['added', 'removed']) t.notOk(name in next!, name)
  t.same(epochsKept(driver), [3, 1])
})

t.test('a set of other devices than those of the keys is refused', async t => {
  const driver = active()
  const command = driver.keysCommand(HOST, [SECOND, THIRD], 2)
  for (const devices of [
    [SECOND, THIRD],
    [HOST, SECOND],
    [HOST, SECOND, THIRD, FOURTH],
  ]) {
    t.match(driver.decide({ ...command, keyMembers: membersOf(devices) }), {
      code: 'VALIDATION_FAILED',
      errors: [{ pointer: '/keyMembers', code: 'MISMATCH' }],
    })
  }
})

t.test('keys that come again are those with the same set and the same devices left out', async t => {
  const driver = active()
  const command = { ...keysWith(driver, HOST, [SECOND], 2), without: ['3_301'] }
  driver.run(command)
  t.same(driver.run(command).effects, [])
  for (const other of [
    { keyMembers: membersOf([HOST, SECOND], 1) },
    { keyMembers: undefined },
    { without: [] },
  ]) {
    t.equal(resultOf(driver.decide({ ...command, ...other })), 'EPOCH_CONFLICT')
  }
})

t.test('a new key may leave devices in the call out, which hear of it', async t => {
  const driver = active({ pending: [4] })
  const command = { ...keysWith(driver, HOST, [SECOND], 2), without: ['3_301'] }
  const { effects } = driver.run(command)
  t.same(inWords(effects), ['201 key_update', '301 key_missing'])
  t.match(effects[1], { expiresAtMs: (effects[0] as { expiresAtMs?: number }).expiresAtMs })
  t.match(noticesOf({ effects } as CallAccepted)[1], {
    callId: driver.call.callId,
    version: driver.call.version,
    epoch: 2,
  })
  t.match(noticesOf({ effects } as CallAccepted)[0], { removed: ['3_301', '4_401'] })
  t.same(
    inWords(driver.run({ ...driver.keysCommand(HOST, [SECOND], 3), without: ['3_301'] }).effects),
    ['201 key_update', '301 key_missing'],
    'also without a set',
  )
})

t.test('only other devices in the call are left out, each once, and get no key besides', async t => {
  const driver = active({ pending: [4] })
  const command = driver.keysCommand(HOST, [SECOND, THIRD], 2)
  for (const name of ['1_101', '4_401', '2_202', '9_901', 'x', '']) {
    t.match(driver.decide({ ...command, without: ['3_301', name] }), {
      code: 'VALIDATION_FAILED',
      errors: [{ pointer: '/without/1', code: 'NOT_JOINED' }],
    })
  }
  t.match(driver.decide({ ...driver.keysCommand(HOST, [SECOND], 2), without: ['3_301', '3_301'] }), {
    code: 'VALIDATION_FAILED',
    errors: [{ pointer: '/without/1', code: 'DUPLICATE' }],
  })
  t.match(driver.decide({ ...command, without: ['3_301'] }), {
    code: 'DEVICE_LIST_MISMATCH',
    members: { missing: [], extra: ['3_301'] },
  })
})

t.test('the present key goes again to devices of its set alone', async t => {
  const driver = active({ pending: [4] })
  driver.run({ ...keysWith(driver, HOST, [SECOND], 2), without: ['3_301'] })
  const emergency = (to: readonly CallDeviceRef[]) => driver.keysCommand(SECOND, to, 2, 'emergency')
  t.match(driver.decide(emergency([HOST, THIRD])), {
    code: 'DEVICE_LIST_MISMATCH',
    members: { extra: ['3_301'] },
  })
  t.match(driver.decide(emergency([HOST, FOURTH])), {
    code: 'DEVICE_LIST_MISMATCH',
    members: { extra: ['4_401'] },
  })
  t.match(driver.decide(emergency([])), { code: 'DEVICE_LIST_MISMATCH', members: { missing: ['1_101'] } })
  const [sent] = noticesOf(driver.run(emergency([HOST])))
  t.match(sent, { kind: 'key_update', epoch: 2, setHash: hashOf([HOST, SECOND]) })
  for (const name of ['added', 'removed']) t.notOk(name in sent!, name)
  t.same(driver.run({ ...emergency([]), without: ['1_101'] }).effects, [], 'whom it leaves out keeps the key')
})

t.test('the present key comes with its own set or none', async t => {
  const driver = active()
  const command = driver.keysCommand(SECOND, [HOST, THIRD], 1, 'emergency')
  const kept = membersOf([HOST, SECOND, THIRD])
  for (const keyMembers of [membersOf([HOST, SECOND, THIRD], 1), membersOf([HOST, SECOND]), `${kept}=`, '']) {
    t.match(driver.decide({ ...command, keyMembers }), {
      code: 'VALIDATION_FAILED',
      errors: [{ pointer: '/keyMembers', code: 'MISMATCH' }],
    })
  }
  driver.run({ ...command, keyMembers: kept })
  t.same(epochsKept(driver), [1])
  driver.run(driver.keysCommand(HOST, [SECOND, THIRD], 2))
  const bare = { ...driver.keysCommand(SECOND, [HOST, THIRD], 2, 'emergency'), keyMembers: kept }
  t.equal(resultOf(driver.decide(bare)), 'VALIDATION_FAILED', 'an epoch without a set has none')
})

t.test(
  'an invitation with a set gives a new key to all in the call and rings the callees, in one change',
  async t => {
    const driver = active({ pending: [4] })
    const command = inviteWith(driver, SECOND, [5], [HOST, THIRD, FOURTH, deviceOf(5)])
    const { version } = driver.call
    const invited = driver.run(command, driver.facts([5], 2))
    t.same(inWords(invited.effects), [
      '501 call_invitation',
      'topic invited 5',
      '101 key_update',
      '301 key_update',
      '401 key_update',
    ])
    const [ring, ...updates] = noticesOf(invited)
    t.match(ring, {
      keyEpoch: 2,
      encryptedAESKey: keyFor(deviceOf(5), 2),
      keyFromUserId: 2n,
      callerId: 2n,
      version: version + 1,
    })
    const added = memberEntry(deviceOf(5)).toString('base64')
    const setHash = hashOf([HOST, SECOND, THIRD, FOURTH, deviceOf(5)])
    for (const update of updates) {
      t.match(update, {
        kind: 'key_update',
        reason: 'invite',
        epoch: 2,
        fromUserId: 2n,
        setHash,
        added,
        removed: [],
      })
    }
    t.match(invited.reply, { record: { keyEpoch: 2, keySets: undefined } })
    t.same(epochsKept(driver), [2, 1])
    t.match(driver.join(4).reply, { record: { encryptedAESKey: keyFor(FOURTH, 2), keyFromUserId: 2n } })
    t.match(driver.join(5).reply, { record: { encryptedAESKey: keyFor(deviceOf(5), 2) } })
  },
)

t.test('a new epoch for an invitation may also be made while the call rings', async t => {
  const driver = new CallDriver()
  driver.run(startWith(driver, [2]), driver.facts([2]))
  const invited = driver.run(inviteWith(driver, HOST, [3], [SECOND, THIRD]), driver.facts([3]))
  t.same(
    inWords(invited.effects).filter(word => !word.startsWith('topic')),
    ['301 call_invitation', '201 key_update'],
  )
  const outsider = inviteWith(driver, SECOND, [4], [HOST, THIRD, FOURTH])
  t.equal(resultOf(driver.decide(outsider, driver.facts([4], 2))), 'NOT_PARTICIPANT')
})

t.test('every device in the call and of the callees needs the new key, or nothing happens', async t => {
  const driver = active({ pending: [4], devices: 2 })
  const callee = driver.devicesOf(5)
  const all = [SECOND, THIRD, ...callee]
  const facts = driver.facts([5])
  const wrong = [
    [all.slice(1), ['2_201'], []],
    [all.slice(0, -1), ['5_502'], []],
    [[...all, deviceOf(2, 2)], [], ['2_202']],
    [[...all, deviceOf(6)], [], ['6_601']],
    [[...all, HOST], [], ['1_101']],
  ] as const
  for (const [to, missing, extra] of wrong) {
    t.match(driver.decide(inviteWith(driver, HOST, [5], to), facts), {
      code: 'DEVICE_LIST_MISMATCH',
      members: { missing, extra },
    })
  }
  for (const more of [[], driver.devicesOf(4), [FOURTH], [deviceOf(1, 2)]]) {
    t.equal(resultOf(driver.decide(inviteWith(driver, HOST, [5], [...all, ...more]), facts)), 'record')
  }
  const listed = facts.callees.map(callee => ({
    ...callee,
    deviceList: { seq: 3, deviceIds: [...callee.deviceIds, deviceOf(5, 3).deviceId] },
  }))
  t.equal(
    resultOf(
      driver.decide(inviteWith(driver, HOST, [5], [...all, deviceOf(5, 3)]), { ...facts, callees: listed }),
    ),
    'record',
  )
})

t.test('a device that rings and gets no new key has none that waits', async t => {
  const driver = active({ pending: [4, 5] })
  driver.run(inviteWith(driver, HOST, [6], [SECOND, THIRD, FOURTH, deviceOf(6)]), driver.facts([6]))
  t.match(driver.join(5).reply, { record: { keyEpoch: 2, encryptedAESKey: undefined } })
  t.match(driver.join(4).reply, { record: { encryptedAESKey: keyFor(FOURTH, 2) } })
})

t.test('a callee who rings already is rung on new devices and gets the key on known ones', async t => {
  const driver = active({ pending: [4] })
  const facts = new CallDriver({ devices: 2 }).facts([4])
  const invited = driver.run(inviteWith(driver, HOST, [4], [SECOND, THIRD, FOURTH, deviceOf(4, 2)]), facts)
  t.same(inWords(invited.effects), [
    '402 call_invitation',
    '201 key_update',
    '301 key_update',
    '401 key_update',
  ])
  const again = driver.run(inviteWith(driver, HOST, [3], [SECOND, THIRD, FOURTH]), driver.facts([3]))
  t.same(inWords(again.effects), ['201 key_update', '301 key_update', '401 key_update'], 'a joined one stays')
  t.match(driver.join(4, 2).reply, { record: { encryptedAESKey: undefined } })
})

t.test(
  "the inviter's other devices get the new key when they take over, and hear nothing before",
  async t => {
    const driver = active({ devices: 2 })
    const tablet = deviceOf(1, 2)
    const command = inviteWith(driver, HOST, [4], [SECOND, THIRD, tablet, ...driver.devicesOf(4)])
    t.notOk(inWords(driver.run(command, driver.facts([4])).effects).some(word => word.startsWith('102')))
    t.match(driver.join(1, 2).reply, { record: { encryptedAESKey: keyFor(tablet, 2) } })
  },
)

t.test('an invitation with a set says its epoch, which is the next one', async t => {
  const driver = active()
  const command = inviteWith(driver, SECOND, [4], [HOST, THIRD, FOURTH])
  const facts = driver.facts([4], 2)
  t.match(driver.decide({ ...command, epoch: undefined }, facts), {
    code: 'VALIDATION_FAILED',
    errors: [{ pointer: '/epoch', code: 'REQUIRED' }],
  })
  for (const epoch of [1, 3, 65_535]) {
    t.match(driver.decide({ ...command, epoch }, facts), { code: 'EPOCH_CONFLICT', members: { keyEpoch: 1 } })
  }
  const keyMembers = membersOf([SECOND, HOST, THIRD])
  t.match(driver.decide({ ...command, keyMembers }, facts), {
    errors: [{ pointer: '/keyMembers', code: 'MISMATCH' }],
  })
})

t.test('an invitation with a set that comes again does nothing, whatever happened since', async t => {
  const driver = active()
  const command = inviteWith(driver, SECOND, [4], [HOST, THIRD, FOURTH])
  const facts = driver.facts([4], 2)
  driver.run(command, facts)
  t.match(driver.run(command, facts), { effects: [], reply: { kind: 'record', record: { keyEpoch: 2 } } })
  driver.join(4)
  t.same(driver.run(command, facts).effects, [])
  t.equal(resultOf(driver.decide({ ...command, isVideo: false }, facts)), 'EPOCH_CONFLICT')
  t.equal(resultOf(driver.decide({ ...command, by: THIRD }, facts)), 'EPOCH_CONFLICT')
  driver.run(driver.keysCommand(FOURTH, [HOST, SECOND, THIRD], 2, 'emergency'))
  t.same(driver.run(command, facts).effects, [], 'the keys that made the present epoch are known')
})

t.test('two people who invite at the same moment make one epoch', async t => {
  const driver = active()
  const one = inviteWith(driver, HOST, [4], [SECOND, THIRD, FOURTH])
  const other = inviteWith(driver, SECOND, [5], [HOST, THIRD, deviceOf(5)])
  driver.run(one, driver.facts([4]))
  t.match(driver.decide(other, driver.facts([5], 2)), { code: 'EPOCH_CONFLICT', members: { keyEpoch: 2 } })
  t.equal(driver.call.participants.length, 4)
})

t.test('an invitation without a set is for its callees alone, as the call has no new key', async t => {
  const driver = active()
  t.equal(
    resultOf(
      driver.decide(
        { ...driver.inviteCommand([4], SECOND), encryptedAESKeys: keysFor([FOURTH, HOST]) },
        driver.facts([4], 2),
      ),
    ),
    'VALIDATION_FAILED',
  )
  driver.invite([4], SECOND)
  t.equal(driver.call.keyEpoch, 1)
  t.same(epochsKept(driver), [1])
})

function withheld(facts: CallFacts, user: number): CallFacts {
  const callees = facts.callees.map(callee =>
    callee.userId === BigInt(user) ? { ...callee, isWithheld: true } : callee,
  )
  return { ...facts, callees }
}

t.test('a device that has asked may have the next key, and not the present one', async t => {
  const driver = active()
  driver.run({ kind: 'leave', by: THIRD })
  driver.run(keysWith(driver, HOST, [SECOND], 2))
  const next = keysWith(driver, HOST, [SECOND, THIRD], 3)
  t.match(driver.decide(next), { code: 'DEVICE_LIST_MISMATCH', members: { extra: ['3_301'] } })
  driver.run({ kind: 'request-rejoin', by: THIRD })
  t.match(driver.decide({ ...driver.keysCommand(HOST, [SECOND, THIRD], 2), reason: 'emergency' }), {
    code: 'DEVICE_LIST_MISMATCH',
  })
  const told = noticesOf(driver.run(next)).filter(({ kind }) => kind === 'key_update')
  t.equal(told.length, 2)
  driver.run({ kind: 'rejoin', by: THIRD })
  t.equal(driver.call.participants.find(({ userId }) => userId === THIRD.userId)?.state, 'joined')
})

t.test('where the host’s device does not have the key, a device that has it may make the next', async t => {
  const driver = active()
  t.equal(resultOf(driver.decide(keysWith(driver, SECOND, [HOST, THIRD], 2))), 'NOT_HOST')
  const moved = deviceOf(1, 2)
  driver.run({ kind: 'join', by: moved })
  t.equal(driver.decide(keysWith(driver, moved, [SECOND, THIRD], 2)).kind, 'accepted')
  driver.run(keysWith(driver, SECOND, [moved, THIRD], 2))
  t.equal(driver.call.keyEpoch, 2)
  t.equal(resultOf(driver.decide(keysWith(driver, SECOND, [moved, THIRD], 3))), 'NOT_HOST', 'now it has')
})
