/** Messages when people join and leave a call (contract 4.2, 4.3, 7.3), with several devices each. */

import t from 'tap'
import { hasPart, isPending } from '../../../src/domain/calls/call.ts'
import type { CallAccepted, CallActor, CallEffect } from '../../../src/domain/calls/call-command.ts'
import { pendingRecord } from '../../../src/domain/calls/call-view.ts'
import type { UserId } from '../../../src/domain/ids.ts'
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

const [HOST, SECOND, THIRD] = [deviceOf(1), deviceOf(2), deviceOf(3)]

/** Each with two devices; users 2 and 3 are called by 1. */
function ringing(callees = [2, 3]): CallDriver {
  const driver = new CallDriver({ devices: 2 })
  driver.start(callees)
  return driver
}

function active(callees = [2, 3]): CallDriver {
  const driver = ringing(callees)
  for (const user of callees) driver.join(user)
  return driver
}

function noticesOf(effects: readonly CallEffect[]) {
  return effects.flatMap(effect => {
    if (effect.kind !== 'device') return []
    const { notice, encryptedAESKey } = effect
    return [encryptedAESKey === undefined ? notice : { ...notice, encryptedAESKey }]
  })
}

function useLedger({ reply }: CallAccepted) {
  if (reply.kind !== 'record') throw new Error(`the reply is ${reply.kind}`)
  return reply.record
}

const NO_KEY = { encryptedAESKey: undefined, keyFromUserId: undefined, keyFromDeviceId: undefined }

t.test('a start invites each device with its own key', async t => {
  const driver = new CallDriver({ devices: 2 })
  const { effects } = driver.start([2, 3])
  const invited = [deviceOf(2), deviceOf(2, 2), deviceOf(3), deviceOf(3, 2)]
  t.same(inWords(effects), [...invited.map(({ deviceId }) => `${deviceId} call_invitation`)])
  t.same(
    noticesOf(effects),
    invited.map(device => ({
      kind: 'call_invitation',
      callId: CALL_ID,
      version: 1,
      callerId: 1n,
      callerName: 'User 1',
      displayName: 'User 1',
      alias: undefined,
      isContact: true,
      roomId: 4711,
      isVideo: true,
      isOnGoing: false,
      keyEpoch: 1,
      expiresAtMs: START_MS + 60_000,
      participants: [1, 2, 3].map(user => ({ userId: BigInt(user), displayName: `User ${user}` })),
      keyFromUserId: 1n,
      keyFromDeviceId: 101n,
      encryptedAESKey: keyFor(device),
    })),
  )
  t.ok(effects.every(effect => effect.kind !== 'device' || effect.expiresAtMs === START_MS + 60_000))
})

t.test('the record of a start', async t => {
  const driver = new CallDriver()
  const record = useLedger(driver.start([2]))
  t.match(record, {
    callId: CALL_ID,
    roomId: 4711,
    status: 'ringing',
    isVideo: true,
    initiatorId: 1n,
    hostUserId: 1n,
    createdAtMs: START_MS,
    startedAtMs: undefined,
    endedAtMs: undefined,
    ringTimeoutIn: 60,
    keyEpoch: 1,
    keyRotationIn: 600,
    maxParticipants: 32,
    isOnGoing: false,
    encryptedAESKey: undefined,
    participants: [
      {
        userId: 1n,
        displayName: 'User 1',
        state: 'joined',
        isHost: true,
        invitedBy: 1n,
        invitedAtMs: START_MS,
        joinedAtMs: START_MS,
        deviceId: HOST.deviceId,
        publicKeyHash: HOST.publicKeyHash,
        mediaName: '1:User 1',
      },
      { userId: 2n, state: 'invited', isHost: false, deviceId: undefined, joinedAtMs: undefined },
    ],
  })
})

t.test('a start that is repeated is answered as before', async t => {
  const driver = new CallDriver()
  const first = driver.start([2, 3])
  const again = driver.start([2, 3])
  t.same(again, { ...first, effects: [] })
  t.equal(resultOf(driver.decide(driver.startCommand([2], 2), driver.facts([2], 2))), 'CALL_ID_TAKEN')
})

t.test('a joining callee hears nothing, their other devices that it was answered', async t => {
  const driver = ringing()
  driver.nowMs += 5000
  const { effects } = driver.join(2)
  t.same(inWords(effects), [
    '201 withdraw',
    '202 call_answered_elsewhere instead',
    'topic joined 2',
    'topic active',
    'history 2 active',
  ])
  t.same(noticesOf(effects), [
    {
      kind: 'call_answered_elsewhere',
      callId: CALL_ID,
      version: 2,
      callerId: 1n,
      callerName: 'User 1',
      displayName: 'User 1',
      alias: undefined,
      isContact: true,
      isVideo: true,
      atMs: START_MS + 5000,
      reason: 'answered',
    },
  ])
  t.equal(driver.call.startedAtMs, START_MS + 5000)
})

t.test('the device that joins gets its own key, once', async t => {
  const driver = ringing()
  t.equal(pendingRecord(driver.call, SECOND)?.encryptedAESKey, keyFor(SECOND))
  const joined = driver.join(2)
  t.equal(useLedger(joined).encryptedAESKey, keyFor(SECOND))
  t.notOk(JSON.stringify(driver.call, (_, value) => String(value)).includes(keyFor(SECOND)))
  const again = driver.join(2)
  t.same(useLedger(again), { ...useLedger(joined), ...NO_KEY })
  t.same(again.effects, [])
})

t.test('a device that was not invited joins without a key', async t => {
  const driver = ringing()
  t.equal(useLedger(driver.join(2, 7)).encryptedAESKey, undefined)
  t.equal(driver.person(2).attendance?.deviceId, 207n)
})

t.test('a second device moves the call there, with its own key', async t => {
  const driver = active()
  driver.nowMs += 1000
  const moved = driver.join(2, 2)
  t.same(inWords(moved.effects), ['201 call_moved', 'topic joined 2'])
  t.match(noticesOf(moved.effects), [{ callerId: 1n, callerName: 'User 1', atMs: driver.nowMs }])
  t.equal(useLedger(moved).encryptedAESKey, keyFor(deviceOf(2, 2)))
  t.equal(driver.person(2).joinedAtMs, START_MS, 'who moves has been in it all along')
  t.same(driver.join(2, 2).effects, [])
  t.same(
    driver.run({ kind: 'leave', by: SECOND }).effects,
    [],
    'what the first device leaves is not the call',
  )
  t.equal(driver.person(2).state, 'joined')
})

t.test('the initiator moves the call to a device that was given a key, also while it rings', async t => {
  const driver = new CallDriver({ devices: 2 })
  const command = driver.startCommand([2])
  const keys = { ...command.encryptedAESKeys, ...keysFor([deviceOf(1, 2), HOST]) }
  const { effects } = driver.run({ ...command, encryptedAESKeys: keys }, driver.facts([2]))
  t.same(inWords(effects), ['201 call_invitation', '202 call_invitation'])
  const moved = driver.join(1, 2)
  t.same(inWords(moved.effects), ['101 call_moved', 'topic joined 1'])
  t.equal(useLedger(moved).encryptedAESKey, keyFor(deviceOf(1, 2)))
  t.equal(driver.call.status, 'ringing')
})

t.test('a declining callee hears nothing, their other devices that it was declined', async t => {
  const driver = ringing()
  const { effects } = driver.run({ kind: 'decline', by: SECOND })
  t.match(noticesOf(effects), [{ kind: 'call_answered_elsewhere', reason: 'declined' }])
  t.same(inWords(effects), [
    '201 withdraw',
    '202 call_answered_elsewhere instead',
    'topic declined 2',
    'history 2 declined',
  ])
  t.same(driver.run({ kind: 'decline', by: SECOND }).effects, [])
  t.same(driver.run({ kind: 'decline', by: deviceOf(2, 2), reason: 'busy' }).effects, [])
  t.equal(driver.person(2).state, 'declined', 'the first answer counts')
})

t.test('who is busy is so on all devices', async t => {
  const { effects } = ringing().run({ kind: 'decline', by: SECOND, reason: 'busy' })
  t.match(noticesOf(effects), [{ kind: 'call_answered_elsewhere', reason: 'busy' }])
})

t.test('the last who declines ends the call', async t => {
  const driver = ringing([2])
  const { effects } = driver.run({ kind: 'decline', by: SECOND })
  t.same(inWords(effects), [
    '201 withdraw',
    '202 call_answered_elsewhere instead',
    '101 call_ended',
    'topic declined',
    'history 1 declined',
    'history 2 declined',
  ])
  t.match(noticesOf(effects)[1], {
    status: 'declined',
    endReason: 'declined',
    endedAtMs: START_MS,
    endedBy: undefined,
  })
  const again = driver.run({ kind: 'decline', by: SECOND })
  t.same([again.effects, resultOf(again)], [[], 'done'])
})

t.test('a second device that declines, too, does not hear that the call ended', async t => {
  for (const reason of ['declined', 'busy'] as const) {
    const driver = ringing([2])
    driver.run({ kind: 'decline', by: SECOND, reason })
    t.match(driver.run({ kind: 'decline', by: deviceOf(2, 2) }), { effects: [], reply: { kind: 'done' } })
  }
})

t.test('a device that gave up ringing is answered the same again, even after the call’s end', async t => {
  const driver = ringing([2])
  const first = driver.run({ kind: 'decline', by: SECOND, reason: 'timeout' })
  t.same(inWords(first.effects), [
    '201 withdraw',
    '202 call_missed instead',
    '101 call_ended',
    'topic missed',
    'history 1 missed',
    'history 2 missed',
  ])
  t.match(driver.run({ kind: 'decline', by: SECOND, reason: 'timeout' }), {
    effects: [],
    reply: { kind: 'done' },
  })
  t.equal(resultOf(driver.decide({ kind: 'decline', by: deviceOf(2, 2) })), 'CALL_ENDED')
})

t.test('an unanswered ring is missed on every device', async t => {
  const driver = ringing([2])
  t.same(inWords(driver.wait(65_000).effects), [
    '201 call_missed instead',
    '202 call_missed instead',
    '101 call_ended',
    'topic missed',
    'history 1 missed',
    'history 2 missed',
  ])
})

t.test('one callee misses it while the rest talk', async t => {
  const driver = ringing()
  driver.join(2)
  for (const by of [HOST, SECOND]) driver.run({ kind: 'device-online', by })
  t.same(inWords(driver.wait(65_000).effects), [
    '301 call_missed instead',
    '302 call_missed instead',
    'topic declined 3',
    'history 3 missed',
  ])
  const late = driver.join(3)
  t.same(inWords(late.effects), ['topic joined 3', 'history 3 active'], 'and may still come')
  t.equal(useLedger(late).encryptedAESKey, undefined, 'with the key that the device has')
})

t.test('the initiator who ends takes the rings back', async t => {
  const driver = ringing()
  driver.run({ kind: 'decline', by: THIRD })
  const { effects, reply } = driver.run({ kind: 'end', by: HOST })
  t.same(inWords(effects), [
    '201 call_cancelled instead, missed',
    '202 call_cancelled instead, missed',
    'topic cancelled',
    'history 1 cancelled',
    'history 2 missed',
  ])
  t.match(reply, { kind: 'record', record: { status: 'cancelled', endReason: 'cancelled' } })
  const again = driver.run({ kind: 'end', by: HOST })
  t.same(again, { ...again, effects: [], reply })
})

t.test('a host who ends it from another device hears where the call is', async t => {
  const driver = active([2])
  const { effects } = driver.run({ kind: 'end', by: deviceOf(1, 2) })
  t.same(inWords(effects).slice(0, 2), ['101 call_ended', '201 call_ended'])
  t.match(noticesOf(effects)[0], {
    kind: 'call_ended',
    callId: CALL_ID,
    status: 'ended',
    endReason: 'hangup',
    endedBy: 1n,
    endedAtMs: START_MS,
  })
})

t.test('the end reaches devices in the call, lost ones and asking ones, and stops the rings', async t => {
  const driver = ringing([2, 3, 4, 5, 6])
  for (const user of [2, 3, 4]) driver.join(user)
  for (const by of [HOST, SECOND, deviceOf(4)]) driver.run({ kind: 'device-online', by })
  driver.run({ kind: 'decline', by: deviceOf(5) })
  driver.wait(64_000)
  driver.invite([6], HOST)
  driver.run({ kind: 'leave', by: deviceOf(4) })
  driver.wait(26_000)
  t.equal(driver.person(3).state, 'lost')
  driver.invite([7], HOST)
  driver.run({ kind: 'request-rejoin', by: deviceOf(4, 2) })
  t.same(inWords(driver.run({ kind: 'end', by: HOST }).effects), [
    '701 call_cancelled instead, missed',
    '702 call_cancelled instead, missed',
    '201 call_ended',
    '301 call_ended',
    '402 call_ended',
    'topic ended',
    'history 1 ended',
    'history 2 ended',
    'history 3 ended',
    'history 4 ended',
    'history 7 missed',
  ])
})

t.test('a device that rings and asks for the key hears of the end once', async t => {
  const driver = active([2])
  driver.invite([3], HOST)
  for (const by of [THIRD, deviceOf(3, 7)]) driver.run({ kind: 'request-rejoin', by })
  t.same(inWords(driver.run({ kind: 'end', by: HOST }).effects).slice(0, 4), [
    '301 call_cancelled instead, missed',
    '302 call_cancelled instead, missed',
    '201 call_ended',
    '307 call_ended',
  ])
})

t.test('a ring that is acknowledged is seen by watchers alone, once', async t => {
  const driver = ringing()
  t.same(inWords(driver.run({ kind: 'ringing', by: SECOND }).effects), ['topic ringing 2'])
  t.same(driver.run({ kind: 'ringing', by: SECOND }).effects, [])
  t.same(driver.run({ kind: 'ringing', by: deviceOf(2, 2) }).effects, [])
})

t.test('a participant who leaves is seen to, once, and keeps no key', async t => {
  const driver = active()
  t.ok(driver.person(2).devices.some(({ encryptedAESKey }) => encryptedAESKey !== undefined))
  t.same(inWords(driver.run({ kind: 'leave', by: SECOND }).effects), ['topic left 2'])
  t.same(driver.run({ kind: 'leave', by: SECOND }).effects, [])
  t.same(driver.person(2).devices, [])
})

t.test('the host hands over to who has been in the call for longest', async t => {
  const driver = ringing([2, 3, 4])
  driver.nowMs += 1000
  driver.join(4)
  driver.nowMs += 1000
  driver.join(2)
  driver.join(3)
  t.same(inWords(driver.run({ kind: 'leave', by: HOST }).effects), ['topic left 1', 'topic host 4'])
  t.equal(driver.call.hostUserId, 4n)
  t.same(inWords(driver.run({ kind: 'leave', by: deviceOf(4) }).effects), ['topic left 4', 'topic host 2'])
  t.equal(resultOf(driver.decide({ kind: 'end', by: HOST })), 'NOT_HOST', 'it does not come back by itself')
})

t.test('a returning participant is no longer the one longest in the call', async t => {
  const driver = active([2, 3])
  driver.nowMs += 1000
  driver.run({ kind: 'leave', by: SECOND })
  driver.run({ kind: 'request-rejoin', by: SECOND })
  driver.run({ kind: 'rejoin', by: SECOND })
  driver.run({ kind: 'leave', by: HOST })
  t.equal(driver.call.hostUserId, 3n)
})

/** The same device with an RSA key. */
const rsa = (device: CallActor): CallActor => ({ ...device, keyAlgorithm: 'RSA-2048' })

t.test('an RSA device makes its user no host while a device that makes keys is in the call', async t => {
  const driver = ringing([2, 3, 4])
  driver.run({ kind: 'join', by: rsa(SECOND) })
  driver.nowMs += 1000
  driver.join(3)
  t.same(inWords(driver.run({ kind: 'leave', by: HOST }).effects), ['topic left 1', 'topic host 3'])
  t.same(inWords(driver.run({ kind: 'leave', by: THIRD }).effects), ['topic left 3', 'topic host 2'], 'alone')
  driver.nowMs += 1000
  const { effects } = driver.run({ kind: 'join', by: deviceOf(4) })
  t.ok(inWords(effects).includes('topic host 4'), inWords(effects).join())
})

t.test('a host who moves to an RSA device hands over; one who has started on it stays host', async t => {
  const moved = active([2])
  const { effects } = moved.run({ kind: 'join', by: rsa(deviceOf(1, 2)) })
  t.ok(inWords(effects).includes('topic host 2'), inWords(effects).join())

  const started = new CallDriver({ devices: 2 })
  started.run({ ...started.startCommand([2], 1), by: rsa(HOST) }, started.facts([2], 1))
  started.join(2)
  t.equal(started.call.hostUserId, 1n)
})

t.test('an empty call keeps its host until another participant comes in', async t => {
  const driver = active([2])
  driver.run({ kind: 'leave', by: SECOND })
  driver.run({ kind: 'leave', by: HOST })
  t.equal(driver.call.hostUserId, 1n)
  t.same(inWords(driver.run({ kind: 'rejoin', by: SECOND }).effects), ['topic joined 2', 'topic host 2'])
})

t.test('either of two ends the call, of three only the host', async t => {
  const two = active([2])
  t.equal(two.run({ kind: 'end', by: SECOND }).call.status, 'ended')
  const three = active([2, 3])
  t.equal(resultOf(three.decide({ kind: 'end', by: SECOND })), 'NOT_HOST')
})

t.test('one who was ever invited makes three', async t => {
  const driver = active([2])
  driver.invite([3], SECOND)
  driver.run({ kind: 'decline', by: THIRD })
  t.equal(resultOf(driver.decide({ kind: 'end', by: SECOND })), 'NOT_HOST')
})

t.test('the callee in a call of two ends it by declining', async t => {
  const driver = ringing([2])
  const { call, reply } = driver.run({ kind: 'end', by: SECOND })
  t.same([call.status, driver.person(2).state], ['declined', 'declined'])
  t.match(reply, { kind: 'record', record: { status: 'declined' } })
})

t.test('the host removes joined, lost and invited participants', async t => {
  const driver = active([2, 3])
  driver.invite([4], HOST)
  const removed = driver.run({ kind: 'remove', by: HOST, userId: SECOND.userId })
  t.same(inWords(removed.effects), ['201 call_ended', 'topic left 2', 'history 2 ended'])
  t.match(noticesOf(removed.effects), [{ status: 'ended', endReason: 'removed', endedBy: 1n }])
  t.same(driver.run({ kind: 'remove', by: HOST, userId: SECOND.userId }).effects, [])
  t.same(inWords(driver.run({ kind: 'remove', by: HOST, userId: 4n as UserId }).effects), [
    '401 call_cancelled instead',
    '402 call_cancelled instead',
    'topic left 4',
    'history 4 missed',
  ])
  t.notOk(hasPart(driver.call, SECOND.userId))
  t.equal(resultOf(driver.decide({ kind: 'remove', by: HOST, userId: HOST.userId })), 'VALIDATION_FAILED')
  t.equal(resultOf(driver.decide({ kind: 'remove', by: HOST, userId: 9n as UserId })), 'USER_NOT_FOUND')
})

t.test('a removal that ends the call is answered the same again', async t => {
  const driver = ringing([2, 3])
  driver.run({ kind: 'decline', by: SECOND })
  const command = { kind: 'remove', by: HOST, userId: THIRD.userId } as const
  const first = driver.run(command)
  t.equal(first.call.status, 'declined')
  t.same(driver.run(command), { ...first, effects: [] })
  t.equal(resultOf(driver.decide({ ...command, userId: SECOND.userId })), 'CALL_ENDED')
  t.equal(resultOf(driver.decide({ ...command, by: SECOND })), 'CALL_ENDED')
})

t.test('who was removed is invited again by the host alone', async t => {
  const driver = active([2, 3])
  driver.run({ kind: 'remove', by: HOST, userId: SECOND.userId })
  for (const users of [[2], [4, 2]]) {
    t.equal(resultOf(driver.decide(driver.inviteCommand(users, THIRD), driver.facts(users, 3))), 'NOT_HOST')
  }
  t.same(inWords(driver.invite([2], HOST).effects), [
    '201 call_invitation',
    '202 call_invitation',
    'topic invited 2',
    'history 2 active',
  ])
  driver.join(2)
  t.ok(hasPart(driver.call, SECOND.userId))
})

t.test('an invitation into an active call says so, and comes from who invites', async t => {
  const driver = active([2])
  driver.nowMs += 7000
  const { effects } = driver.invite([3], SECOND)
  t.same(inWords(effects), ['301 call_invitation', '302 call_invitation', 'topic invited 3'])
  t.match(noticesOf(effects), [
    { isOnGoing: true, callerId: 2n, callerName: 'User 2', expiresAtMs: driver.nowMs + 60_000 },
    { isOnGoing: true },
  ])
  t.equal(useLedger(driver.join(3)).isOnGoing, true)
  t.equal(useLedger(driver.join(2)).isOnGoing, false)
})

t.test('an invitation that is repeated rings nowhere twice', async t => {
  const driver = active([2])
  const first = driver.invite([3], HOST)
  t.same(driver.invite([3], HOST), { ...first, effects: [] })
  t.same(driver.invite([3], SECOND).effects, [], 'nor one of somebody else')
  driver.join(3)
  t.same(driver.invite([3], HOST).effects, [], 'nor one of somebody who is there')
})

t.test('an invitation that is repeated rings on devices that are new', async t => {
  const driver = active([2])
  driver.invite([3], HOST)
  const command = driver.inviteCommand([3], HOST)
  const facts = driver.facts([3])
  const callees = facts.callees.map(callee => ({
    ...callee,
    deviceIds: [...callee.deviceIds, deviceOf(3, 3).deviceId],
  }))
  const encryptedAESKeys = { ...command.encryptedAESKeys, ...keysFor([deviceOf(3, 3)]) }
  const { effects } = driver.run({ ...command, encryptedAESKeys }, { ...facts, callees })
  t.same(inWords(effects), ['303 call_invitation'])
})

t.test('who invites may give a key to their own other device', async t => {
  const driver = active([2])
  driver.run(driver.keysCommand(HOST, [SECOND], 2))
  const command = driver.inviteCommand([3], SECOND)
  const encryptedAESKeys = { ...command.encryptedAESKeys, ...keysFor([deviceOf(2, 2)], 2) }
  driver.run({ ...command, encryptedAESKeys }, driver.facts([3], 2))
  t.equal(useLedger(driver.join(2, 2)).encryptedAESKey, keyFor(deviceOf(2, 2), 2))
})

t.test('an invitation that is repeated gives a key to who had none of the present epoch', async t => {
  const driver = active([2])
  driver.invite([3], HOST)
  driver.run(driver.keysCommand(HOST, [SECOND], 2))
  t.equal(pendingRecord(driver.call, THIRD)?.encryptedAESKey, undefined)
  t.same(driver.invite([3], SECOND).effects, [])
  t.equal(pendingRecord(driver.call, THIRD)?.encryptedAESKey, keyFor(THIRD, 2))
})

t.test('who declined, missed it or left may be invited again', async t => {
  for (const way of ['decline', 'leave'] as const) {
    const driver = active([2, 3, 4])
    driver.run({ kind: 'leave', by: SECOND })
    driver.invite([5], HOST)
    if (way === 'decline') driver.run({ kind: 'decline', by: deviceOf(5) })
    const user = way === 'decline' ? 5 : 2
    const { effects } = driver.invite([user], THIRD)
    t.same(inWords(effects), [
      `${user}01 call_invitation`,
      `${user}02 call_invitation`,
      `topic invited ${user}`,
    ])
    t.ok(isPending(driver.person(user)))
    t.same(inWords(driver.join(user).effects).includes(`topic joined ${user}`), true)
  }
})

t.test('a device that is removed leaves the call, and another user goes on', async t => {
  const driver = active([2, 3])
  t.same(inWords(driver.run({ kind: 'device-removed', by: SECOND }).effects), ['topic left 2'])
  t.same(driver.run({ kind: 'device-removed', by: SECOND }).effects, [])
  const ring = ringing([2])
  t.same(ring.run({ kind: 'device-removed', by: SECOND }).effects, [])
  t.same(
    ring.person(2).devices.map(({ deviceId }) => deviceId),
    [202n],
  )
  const last = ring.run({ kind: 'device-removed', by: deviceOf(2, 2) })
  t.same([last.call.status, ring.person(2).state], ['missed', 'missed'])
  const caller = ringing([2])
  const { call } = caller.run({ kind: 'device-removed', by: HOST })
  t.same([call.status, call.endReason], ['cancelled', 'caller_lost'])
})

t.test(
  'a device that is signed out leaves the call it is in; one that rings may still be signed in',
  async t => {
    const driver = active([2, 3])
    t.same(
      driver.run({ kind: 'device-signed-out', by: deviceOf(2, 2) }).effects,
      [],
      'the other one is in the call',
    )
    t.same(inWords(driver.run({ kind: 'device-signed-out', by: SECOND }).effects), ['topic left 2'])
    t.same(driver.run({ kind: 'device-signed-out', by: SECOND }).effects, [])
    const ring = ringing([2])
    const before = ring.call
    t.equal(ring.run({ kind: 'device-signed-out', by: SECOND }).call, before)
    const { call } = ring.run({ kind: 'device-signed-out', by: HOST })
    t.same([call.status, call.endedBy], ['cancelled', HOST.userId])
  },
)

t.test('a block declines the blocked user’s invitation on all devices, and no other', async t => {
  const blocked = (user: number, inviter: number) =>
    ({
      kind: 'inviter-blocked',
      userId: BigInt(user) as UserId,
      inviterId: BigInt(inviter) as UserId,
    }) as const
  const driver = ringing([2, 3])
  const before = driver.call
  for (const [user, inviter] of [
    [2, 3],
    [1, 2],
    [9, 1],
  ] as const) {
    t.equal(driver.run(blocked(user, inviter)).call, before, `${user} blocks ${inviter}`)
  }
  const { effects } = driver.run(blocked(2, 1))
  t.same(inWords(effects), [
    '201 call_answered_elsewhere instead',
    '202 call_answered_elsewhere instead',
    'topic declined 2',
    'history 2 declined',
  ])
  t.equal(driver.run(blocked(3, 1)).call.status, 'declined', 'nobody else rings')
  const going = active([2])
  t.equal(going.run(blocked(2, 1)).call, going.call, 'who has answered stays')
})

t.test('deleting an account declines its pending invitations, by any inviter', async t => {
  const accountEnded = (user: number) => ({ kind: 'account-ended', userId: BigInt(user) as UserId }) as const
  const driver = ringing([2, 3])
  t.same(inWords(driver.run(accountEnded(2)).effects), [
    '201 call_answered_elsewhere instead',
    '202 call_answered_elsewhere instead',
    'topic declined 2',
    'history 2 declined',
  ])
  t.equal(driver.run(accountEnded(3)).call.status, 'declined', 'nobody else rings')
  const going = active([2])
  t.equal(going.run(accountEnded(2)).call, going.call, 'who has answered leaves as a device')
})

t.test('a device that is removed asks for no key any more', async t => {
  const driver = active([2, 3])
  const asking = [deviceOf(2, 2), deviceOf(2, 3), deviceOf(3, 2)]
  for (const by of asking) driver.run({ kind: 'request-rejoin', by })
  driver.run({ kind: 'device-removed', by: asking[0]! })
  t.same(
    driver.call.rejoinAsks.map(({ deviceId }) => deviceId),
    [203n, 302n],
  )
})

t.test('a device’s pending calls are its unanswered invitations', async t => {
  const driver = ringing([2, 3])
  t.match(pendingRecord(driver.call, SECOND), { status: 'ringing', encryptedAESKey: keyFor(SECOND) })
  t.match(pendingRecord(driver.call, deviceOf(2, 9)), { encryptedAESKey: undefined })
  t.equal(pendingRecord(driver.call, HOST), undefined)
  t.equal(pendingRecord(driver.call, deviceOf(9)), undefined)
  driver.run({ kind: 'ringing', by: SECOND })
  t.ok(pendingRecord(driver.call, SECOND))
  driver.run({ kind: 'decline', by: SECOND })
  t.equal(pendingRecord(driver.call, SECOND), undefined)
  driver.run({ kind: 'end', by: HOST })
  t.equal(pendingRecord(driver.call, THIRD), undefined)
})

t.test('only the device that is in the call invites', async t => {
  const driver = active([2, 3])
  const from = deviceOf(2, 2)
  t.equal(resultOf(driver.decide(driver.inviteCommand([4], from), driver.facts([4], 2))), 'NOT_PARTICIPANT')
})

const suspended = (user: number) => ({ kind: 'account-suspended', userId: BigInt(user) as UserId }) as const

t.test('a suspended user is out of a call of three, which goes on', async t => {
  const driver = active([2, 3])
  driver.run({ kind: 'request-rejoin', by: deviceOf(1, 2) })
  const { effects } = driver.run(suspended(1))
  t.match(driver.call, { status: 'active', hostUserId: 2n, rejoinAsks: [] })
  t.equal(driver.person(1).state, 'left')
  t.notOk(JSON.stringify(inWords(effects)).includes('ended'), 'nothing tells the others why')
  t.same(driver.run(suspended(1)).effects, [], 'and once')
  t.same(driver.run(suspended(9)).effects, [], 'who has no part in it')
})

t.test('a call of two ends with a suspension, as if its user had hung up', async t => {
  const driver = active([2])
  const { effects } = driver.run(suspended(2))
  t.match(driver.call, { status: 'ended', endReason: 'suspended', endedBy: 2n })
  const told = effects.flatMap(effect => (effect.kind === 'device' ? [effect] : []))
  t.match(told, [
    { userId: 1n, notice: { kind: 'call_ended', endReason: 'hangup', endedBy: 2n } },
    { userId: 2n, notice: { kind: 'call_ended', endReason: 'suspended' } },
  ])
  t.equal(useLedger(driver.run({ kind: 'end', by: HOST })).endReason, 'hangup')
  t.equal(useLedger(driver.run({ kind: 'end', by: SECOND })).endReason, 'suspended')
})

t.test('the ring of a suspended caller is given up, and one at a suspended user is missed', async t => {
  const caller = ringing([2, 3])
  const { effects } = caller.run(suspended(1))
  t.match(caller.call, { status: 'cancelled', endReason: 'suspended', endedBy: 1n })
  t.ok(inWords(effects).includes('201 call_cancelled instead, missed'))
  const callee = ringing([2, 3])
  t.same(inWords(callee.run(suspended(2)).effects), [
    '201 call_missed instead',
    '202 call_missed instead',
    'topic declined 2',
    'history 2 missed',
  ])
  t.equal(callee.run(suspended(3)).call.status, 'missed', 'nobody else rings')
  const withheld = new CallDriver({ devices: 2 })
  const facts = withheld.facts([2])
  const callees = facts.callees.map(one => ({ ...one, isWithheld: true }))
  withheld.run(withheld.startCommand([2]), { ...facts, callees })
  t.equal(withheld.run(suspended(2)).call, withheld.call, 'an invitation that they never heard of')
})
