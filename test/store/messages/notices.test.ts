/** Messages to devices: by their inbox in any case, by push where contract 6 says so. */

import t, { type Test } from 'tap'
import { plainNotice } from '../../../src/domain/calls/call-effect.ts'
import type { CallNoticeBody, DeviceEffect, PlainCallNotice } from '../../../src/domain/calls/call-notice.ts'
import type { Device } from '../../../src/domain/devices/device.ts'
import type { CallId, DeviceId, UserId } from '../../../src/domain/ids.ts'
import { noticeOf } from '../../../src/domain/messages/inbox.ts'
import type { Notice, PersonalNoticeBody } from '../../../src/domain/messages/notice.ts'
import { Notices } from '../../../src/store/messages/notices.ts'
import { newDevice, newUser, openWorld } from '../../support/application.ts'

const CALL = 8_000_000_001n as CallId
const CALLER = {
  callerId: 5_000_000_009n as UserId,
  callerName: 'Bob',
  displayName: 'Bob',
  alias: undefined,
  isContact: true,
  isVideo: true,
}
const DAY_MS = 86_400_000

async function open(t: Test) {
  const world = openWorld(t.testdir())
  t.teardown(() => world.database.close())
  const connected = new Set<DeviceId>()
  const notices = new Notices({ ...world, isConnected: (_, deviceId) => connected.has(deviceId) })
  const { userId } = await newUser(world)
  const [phone, tablet] = [await newDevice(world, userId), await newDevice(world, userId)]
  const silent = await newDevice(world, userId, false)
  const nowMs = world.nowMs()
  const inboxOf = ({ deviceId }: Device): Notice[] =>
    world.database
      .view(view => world.inbox.after(view, userId, deviceId, { offset: 0, limit: 100, nowMs }))
      .flatMap(({ item }) => (item.kind === 'notice' ? noticeOf(item) : []))
  const pushed = async () => {
    const sent = await world.takeSent()
    return sent.flatMap(message => (message.channel === 'push' ? [message] : []))
  }
  const tell = (body: PersonalNoticeBody, except?: Device) =>
    world.database.change(change => notices.tell(change, userId, body, except?.deviceId), nowMs)
  const tellDevice = ({ deviceId }: Device, body: CallNoticeBody, more: Partial<DeviceEffect> = {}) => {
    const { encryptedAESKey, ...notice } = { encryptedAESKey: undefined, ...body }
    const effect = {
      ...plainNotice({ userId, deviceId }, notice as PlainCallNotice),
      encryptedAESKey,
      ...more,
    }
    return world.database.change(change => notices.tellDevice(change, effect), nowMs)
  }
  return { world, userId, phone, tablet, silent, connected, nowMs, inboxOf, pushed, tell, tellDevice }
}

function invitation(expiresAtMs: number): CallNoticeBody {
  return {
    kind: 'call_invitation',
    callId: CALL,
    version: 2,
    ...CALLER,
    roomId: 3,
    isOnGoing: false,
    expiresAtMs,
    participants: [],
    keyEpoch: 1,
    keyFromUserId: CALLER.callerId,
    keyFromDeviceId: 5n as DeviceId,
    encryptedAESKey: 'a-key',
  }
}

function over(
  kind: 'call_cancelled' | 'call_missed' | 'call_answered_elsewhere' | 'call_moved',
): CallNoticeBody {
  const body = { callId: CALL, version: 2, ...CALLER, atMs: 7 }
  return kind === 'call_answered_elsewhere' ? { kind, ...body, reason: 'answered' } : { kind, ...body }
}

function ended(nowMs: number): PlainCallNotice {
  return {
    kind: 'call_ended',
    callId: CALL,
    version: 2,
    status: 'ended',
    endReason: 'hangup',
    endedAtMs: nowMs,
  }
}

t.test('for a device with a key for its pushes, and no token, nothing waits to be pushed', async t => {
  const { world, userId, silent, nowMs, tellDevice, pushed, inboxOf } = await open(t)
  const push = { pushKey: `${'A'.repeat(43)}=`, registeredAtMs: {} }
  await world.database.change(change => world.devices.put(change, userId, { ...silent, push }), nowMs)
  await tellDevice(silent, invitation(nowMs + 60_000))
  t.same([inboxOf(silent).length, await pushed()], [1, []])
})

t.test('every device finds a notice in its inbox but the one that did it, under one event id', async t => {
  const { phone, tablet, silent, nowMs, inboxOf, pushed, tell, world } = await open(t)
  await tell({ kind: 'session_revoked', reason: 'logout' }, phone)
  const [[ofTablet], [ofSilent]] = [inboxOf(tablet), inboxOf(silent)]
  t.match(ofTablet, { kind: 'session_revoked', reason: 'logout', sentAtMs: nowMs })
  t.match(ofTablet?.eventId, /^[A-Za-z0-9_-]{22}$/)
  t.same(ofSilent, ofTablet)
  t.same(inboxOf(phone), [])
  t.same(world.news.map(([, deviceId]) => deviceId).sort(), [tablet.deviceId, silent.deviceId].sort())
  const [push, ...others] = await pushed()
  t.same(
    [push?.deviceId, push?.notice, others],
    [tablet.deviceId, ofTablet, []],
    'and who has a token is pushed to',
  )
  t.equal(push?.expiresAtMs, nowMs + DAY_MS)
})

t.test(
  'what a change tells many devices is one event, sealed once, and each is done with it alone',
  async t => {
    const { world, userId, phone, tablet, inboxOf } = await open(t)
    const { database, inbox, notices } = world
    const body = ended(world.nowMs())
    await database.change(change => {
      for (const { deviceId } of [phone, tablet])
        notices.tellDevice(change, plainNotice({ userId, deviceId }, body))
    })
    t.equal(database.rowCount(database.storedRows('inbox-groups')), 1)
    t.same(inboxOf(phone), inboxOf(tablet))
    await database.change(change => inbox.settle(change, userId, phone.deviceId, [1]))
    t.same(inboxOf(phone), [])
    t.match(inboxOf(tablet), [{ kind: 'call_ended' }])
    await database.change(change =>
      notices.tellDevice(change, plainNotice({ userId, deviceId: phone.deviceId }, body)),
    )
    t.not(inboxOf(phone)[0]!.eventId, inboxOf(tablet)[0]!.eventId, 'another change tells another event')
  },
)

t.test('a notice without a push waits in the inbox alone', async t => {
  const { phone, silent, inboxOf, pushed, tell } = await open(t)
  await tell({ kind: 'profile_changed' })
  t.same([inboxOf(phone).length, inboxOf(silent).length, (await pushed()).length], [1, 1, 0])
})

t.test('a removed device hears nothing', async t => {
  const { world, userId, phone, tablet, nowMs, inboxOf, pushed, tell, tellDevice } = await open(t)
  await world.database.change(change => world.devices.remove(change, userId, phone.deviceId), nowMs)
  await tell({ kind: 'session_revoked', reason: 'logout' })
  await tellDevice(phone, invitation(nowMs + 60_000), { expiresAtMs: nowMs + 60_000 })
  t.same([inboxOf(phone), (await pushed()).map(({ deviceId }) => deviceId)], [[], [tablet.deviceId]])
})

t.test(
  'an invitation is told and pushed to its device alone, as long as it rings, socket or not',
  async t => {
    const { phone, tablet, connected, nowMs, inboxOf, pushed, tellDevice } = await open(t)
    connected.add(phone.deviceId)
    const expiresAtMs = nowMs + 60_000
    await tellDevice(phone, invitation(expiresAtMs), { expiresAtMs })
    const [notice] = inboxOf(phone)
    t.match(notice, { kind: 'call_invitation', encryptedAESKey: 'a-key', sentAtMs: nowMs })
    t.same(inboxOf(tablet), [])
    const [push, ...others] = await pushed()
    t.same(
      [push?.deviceId, push?.notice, push?.expiresAtMs, others],
      [phone.deviceId, notice, expiresAtMs, []],
    )
  },
)

t.test('the end of ringing is pushed for half a minute, to devices without a socket', async t => {
  const { phone, tablet, connected, nowMs, inboxOf, pushed, tellDevice } = await open(t)
  connected.add(tablet.deviceId)
  for (const body of [over('call_cancelled'), over('call_answered_elsewhere'), ended(nowMs)]) {
    for (const device of [phone, tablet]) await tellDevice(device, body, { replaces: 'invitation' })
    const pushes = await pushed()
    t.same(
      pushes.map(({ deviceId, notice, expiresAtMs }) => [deviceId, notice.kind, expiresAtMs]),
      [[phone.deviceId, body.kind, nowMs + 30_000]],
      body.kind,
    )
  }
  t.same([inboxOf(phone).length, inboxOf(tablet).length], [3, 3])
})

t.test('a call that was given up is pushed as missed, too, with or without a socket', async t => {
  const { phone, tablet, connected, nowMs, inboxOf, pushed, tellDevice } = await open(t)
  connected.add(tablet.deviceId)
  for (const device of [phone, tablet]) {
    await tellDevice(device, over('call_cancelled'), { replaces: 'invitation', isMissed: true })
  }
  const pushes = await pushed()
  t.same(
    pushes.map(({ deviceId, notice, expiresAtMs }) => [deviceId, notice.kind, expiresAtMs - nowMs]),
    [
      [phone.deviceId, 'call_missed', DAY_MS],
      [tablet.deviceId, 'call_missed', DAY_MS],
      [phone.deviceId, 'call_cancelled', 30_000],
    ],
  )
  t.equal(new Set(pushes.map(({ notice }) => notice.eventId)).size, 3, 'each is a push of its own')
  t.same(
    [phone, tablet].map(device => inboxOf(device).map(({ kind }) => kind)),
    [['call_cancelled'], ['call_cancelled']],
    'a socket tells of it once',
  )
})

t.test('a missed call is pushed for a day, socket or not', async t => {
  const { phone, connected, nowMs, pushed, tellDevice } = await open(t)
  connected.add(phone.deviceId)
  await tellDevice(phone, over('call_missed'), { replaces: 'invitation' })
  t.same(
    (await pushed()).map(({ notice, expiresAtMs }) => [notice.kind, expiresAtMs]),
    [['call_missed', nowMs + DAY_MS]],
  )
})

t.test('a participant hears of a call by its socket only', async t => {
  const { phone, nowMs, inboxOf, pushed, tellDevice } = await open(t)
  const from = {
    fromUserId: CALLER.callerId,
    fromDeviceId: 4n as DeviceId,
    encryptedAESKey: 'a-key',
    callId: CALL,
    version: 2,
  }
  const bodies: CallNoticeBody[] = [
    ended(nowMs),
    over('call_moved'),
    { kind: 'key_update', epoch: 2, reason: 'rotation', ...from },
    { kind: 'participant_accept_rejoin', keyEpoch: 1, ...from },
  ]
  for (const body of bodies) await tellDevice(phone, body)
  t.same(
    inboxOf(phone).map(({ kind }) => kind),
    bodies.map(({ kind }) => kind),
  )
  t.same(await pushed(), [])
})

t.test('what replaces an invitation leaves the device with one of the two', async t => {
  const { world, userId, phone, nowMs, inboxOf, tellDevice } = await open(t)
  const expiresAtMs = nowMs + 60_000
  await tellDevice(phone, invitation(expiresAtMs), { expiresAtMs })
  await tellDevice(phone, over('call_cancelled'), { replaces: 'invitation' })
  t.same(
    inboxOf(phone).map(({ kind }) => kind),
    ['call_cancelled'],
  )
  await tellDevice(phone, invitation(expiresAtMs), { expiresAtMs })
  await world.database.change(change => world.devices.remove(change, userId, phone.deviceId), nowMs)
  await tellDevice(phone, over('call_cancelled'), { replaces: 'invitation' })
  t.same(
    inboxOf(phone).map(({ kind }) => kind),
    ['call_cancelled'],
    'a removed device loses the invitation too',
  )
  world.database.view(view => world.inbox.assertConsistent(view))
})

t.test('a notice that ends is not shown after its time', async t => {
  const { world, userId, phone, nowMs, tellDevice } = await open(t)
  const body: CallNoticeBody = {
    kind: 'participant_request_rejoin',
    callId: CALL,
    version: 2,
    userId: CALLER.callerId,
    deviceId: 4n as DeviceId,
    displayName: 'Bob',
    publicKeyHash: 'hash',
    expiresAtMs: nowMs + 30_000,
  }
  await tellDevice(phone, body, { expiresAtMs: nowMs + 30_000 })
  const count = (atMs: number) =>
    world.database.view(view =>
      world.inbox.after(view, userId, phone.deviceId, { offset: 0, limit: 10, nowMs: atMs }),
    ).length
  t.same([count(nowMs + 29_999), count(nowMs + 30_000)], [1, 0])
})
