/** Which devices the room at the media gateway lets in, as the call notes it. */

import t from 'tap'
import { mediaOf, recordOf } from '../../../src/domain/calls/call-view.ts'
import { CallDriver, deviceOf, inWords } from '../../support/call-driver.ts'
import { membersOf } from '../../support/key-members.ts'

const [ANN, BOB] = [deviceOf(1), deviceOf(2)]
const PENDING = { isReady: false, entry: undefined }

function begun(): CallDriver {
  const driver = new CallDriver({ devices: 2 })
  driver.start([2, 3])
  return driver
}

function admitted(driver: CallDriver, devices = [ANN], answered: typeof devices = []): string[] {
  return inWords(driver.run({ kind: 'media-admitted', gateway: 'janus', devices, answered }).effects)
}

t.test(
  'a device in the call has its entry once it is admitted, the rest know that there is a room',
  async t => {
    const driver = begun()
    t.same(mediaOf(driver.call, ANN), PENDING)
    t.same(admitted(driver), ['101 media_ready'])
    t.match(mediaOf(driver.call, ANN), { isReady: true, entry: { roomId: 4711 } })
    t.same(mediaOf(driver.call, BOB), { isReady: true, entry: undefined })
    driver.join(2)
    t.same(mediaOf(driver.call, BOB), PENDING, 'it waits for its own admission')
  },
)

t.test('a device that reads it in a reply gets no message, and none gets a second one', async t => {
  const driver = begun()
  t.same(admitted(driver, [ANN], [ANN]), [])
  t.same(admitted(driver), [])
})

t.test('a device that is not in the call, or in it no more, is not admitted', async t => {
  const driver = begun()
  t.same(admitted(driver, [BOB]), [])
  t.same(mediaOf(driver.call, BOB), PENDING)
  driver.join(2)
  admitted(driver, [BOB])
  driver.run({ kind: 'join', by: deviceOf(2, 2) })
  t.equal(mediaOf(driver.call, BOB).entry, undefined, 'the call moved')
  t.same(mediaOf(driver.call, deviceOf(2, 2)), PENDING)
})

t.test('a room that is gone is pending again, and told of when it is back', async t => {
  const driver = begun()
  driver.join(2)
  admitted(driver, [ANN, BOB])
  t.same(inWords(driver.run({ kind: 'media-lost' }).effects), [])
  t.same(mediaOf(driver.call, ANN), PENDING)
  t.same(admitted(driver, [ANN, BOB]), ['101 media_ready', '201 media_ready'])
})

t.test(
  'devices that are let in at another gateway hear of it, also where nothing was said of a loss',
  async t => {
    const driver = begun()
    driver.join(2)
    admitted(driver, [ANN, BOB])
    t.equal(driver.call.gateway, 'janus')
    const devices = [ANN]
    const { effects } = driver.run({ kind: 'media-admitted', gateway: 'two', devices, answered: [] })
    t.match(effects, [{ userId: ANN.userId, notice: { kind: 'media_ready', roomId: 4711, gateway: 'two' } }])
    t.match(mediaOf(driver.call, ANN), { isReady: true, entry: { gateway: 'two' } })
    t.same(mediaOf(driver.call, BOB), PENDING, 'not let in there yet')
    const ofFeed = { kind: 'media-feeds', device: ANN, feedIds: [7] } as const
    driver.run({ ...ofFeed, gateway: 'janus' })
    t.equal(feedsOf(driver)['1'], undefined, 'the one before says nothing of the room')
    driver.run({ ...ofFeed, gateway: 'two' })
    t.same(feedsOf(driver)['1'], [7])
    driver.run({ kind: 'media-lost' })
    t.equal(driver.call.gateway, undefined)
  },
)

/** The feeds of each person, by user id. */
function feedsOf(driver: CallDriver): Record<string, readonly number[] | undefined> {
  const { participants } = recordOf(driver.call, ANN)
  return Object.fromEntries(participants.map(({ userId, feedIds }) => [userId, feedIds]))
}

t.test('feeds of a device that is in the call are in the record and told, each change once', async t => {
  const driver = begun()
  driver.join(2)
  admitted(driver)
  const fed = (device: typeof ANN, ...feedIds: readonly number[]) =>
    inWords(driver.run({ kind: 'media-feeds', gateway: 'janus', device, feedIds }).effects)
  t.same(fed(BOB, 7), ['topic media_changed 2'])
  t.same(fed(BOB, 7), [])
  t.same(fed(deviceOf(2, 2), 8), [], 'another device of theirs')
  t.same(fed(deviceOf(3), 9), [], 'rings still')
  t.same(fed(BOB, 8, 7), ['topic media_changed 2'])
  t.same(feedsOf(driver), { 1: undefined, 2: [8, 7], 3: undefined })
  t.same(fed(ANN, 7), ['topic media_changed 1', 'topic media_changed 2'], 'a feed is of one device')
  t.same(feedsOf(driver), { 1: [7], 2: [8], 3: undefined })
  driver.run({ kind: 'join', by: deviceOf(2, 2) })
  t.same(feedsOf(driver), { 1: [7], 2: undefined, 3: undefined }, 'the call moved')
})

t.test('feeds go with the room and with who leaves', async t => {
  const driver = begun()
  for (const user of [2, 3]) driver.join(user)
  admitted(driver, [ANN, BOB])
  for (const [device, feed] of [
    [ANN, 7],
    [BOB, 8],
    [deviceOf(3), 9],
  ] as const)
    driver.run({ kind: 'media-feeds', gateway: 'janus', device, feedIds: [feed] })
  driver.run({ kind: 'leave', by: BOB })
  t.same(feedsOf(driver), { 1: [7], 2: undefined, 3: [9] })
  t.same(inWords(driver.run({ kind: 'media-lost' }).effects), [
    'topic media_changed 1',
    'topic media_changed 3',
  ])
  t.same(feedsOf(driver), { 1: undefined, 2: undefined, 3: undefined })
})

t.test('a call that has ended admits no device', async t => {
  const driver = begun()
  driver.run({ kind: 'end', by: ANN })
  t.same(admitted(driver), [])
})

t.test('a device that stays in the room gets newer tokens, and not at each admission', async t => {
  const driver = begun()
  driver.join(2)
  for (const by of [ANN, BOB]) driver.run({ kind: 'device-online', by })
  const both = ['101 media_ready', '201 media_ready']
  t.same(admitted(driver, [ANN, BOB]), both)
  driver.wait(14 * 60_000)
  t.same(admitted(driver, [ANN, BOB]), [])
  driver.wait(60_000)
  t.same(admitted(driver, [ANN, BOB]), both)
  t.same(admitted(driver, [ANN, BOB]), [])
})

/** Users 2 and 3 are in the call with Ann; the start came with a set of these users' devices. */
function entered({ inSet = [1, 2, 3], roomId }: { inSet?: readonly number[]; roomId?: number } = {}) {
  const driver = new CallDriver()
  const keyMembers = membersOf(inSet.map(user => deviceOf(user)))
  const start = { ...driver.startCommand([2, 3]), ...(inSet.length > 0 && { keyMembers }) }
  driver.run({ ...start, roomId }, driver.facts([2, 3]))
  for (const user of [2, 3]) driver.join(user)
  return driver
}

/** Told when the host removes the user; room 99 is free. */
function removed(driver: CallDriver, user: number): string[] {
  const { userId } = deviceOf(user)
  const facts = { ...driver.facts([]), freeRoomId: 99 }
  return inWords(driver.run({ kind: 'remove', by: ANN, userId }, facts).effects)
}

t.test('after a removal the call has another room, which lets in those who are left', async t => {
  const driver = entered()
  const everybody = [ANN, BOB, deviceOf(3)]
  admitted(driver, everybody)
  driver.run({ kind: 'media-feeds', gateway: 'janus', device: BOB, feedIds: [7] })
  t.ok(removed(driver, 3).includes('topic media_changed 2'))
  t.equal(driver.call.roomId, 99)
  t.same(mediaOf(driver.call, BOB), PENDING)
  t.same(feedsOf(driver), { 1: undefined, 2: undefined, 3: undefined }, 'feeds were of the room before')
  const { effects } = driver.run({
    kind: 'media-admitted',
    gateway: 'janus',
    devices: everybody,
    answered: [],
  })
  t.match(effects, [
    { userId: ANN.userId, notice: { kind: 'media_ready', roomId: 99 } },
    { userId: BOB.userId, notice: { kind: 'media_ready', roomId: 99 } },
  ])
  t.match(mediaOf(driver.call, BOB), { isReady: true, entry: { roomId: 99 } })
  t.same(removed(driver, 3), [], 'once')
})

t.test('a removal after the device left changes the room, too', async t => {
  const driver = entered()
  admitted(driver, [ANN, BOB, deviceOf(3)])
  driver.run({ kind: 'leave', by: BOB })
  removed(driver, 2)
  t.equal(driver.call.roomId, 99)
})

t.test('the room stays where a client would not follow, and where it was never entered', async t => {
  for (const [why, driver, user, isEntered] of [
    ['the start named it', entered({ roomId: 5 }), 3, true],
    ['no set of devices', entered({ inSet: [] }), 3, true],
    ['no gateway', entered(), 3, false],
  ] as const) {
    const { roomId } = driver.call
    if (isEntered) admitted(driver, [ANN, BOB, deviceOf(3)])
    removed(driver, user)
    t.equal(driver.call.roomId, roomId, why)
  }
})

t.test('the room stays for a device that is in no set, and for one that never joined', async t => {
  const driver = entered()
  admitted(driver, [ANN, BOB, deviceOf(3)])
  driver.invite([4, 5], ANN)
  removed(driver, 5)
  t.equal(driver.call.roomId, 4711, 'user 5 was never in it')
  driver.join(4)
  removed(driver, 3)
  t.equal(driver.call.roomId, 4711, 'user 4 is in no set')
  driver.run({ kind: 'leave', by: deviceOf(4) })
  removed(driver, 4)
  t.equal(driver.call.roomId, 99)
})
