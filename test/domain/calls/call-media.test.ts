/** Which devices the room at the media gateway lets in, as the call notes it. */

import t from 'tap'
import { mediaOf } from '../../../src/domain/calls/call-media.ts'
import { recordOf } from '../../../src/domain/calls/call-view.ts'
import { CallDriver, deviceOf, inWords } from '../../support/call-driver.ts'

const [ANN, BOB] = [deviceOf(1), deviceOf(2)]
const PENDING = { isReady: false, entry: undefined }

function begun(): CallDriver {
  const driver = new CallDriver({ devices: 2 })
  driver.start([2, 3])
  return driver
}

function admitted(driver: CallDriver, devices = [ANN], answered: typeof devices = []): string[] {
  return inWords(driver.run({ kind: 'media-admitted', devices, answered }).effects)
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

/** The feeds of each person, by user id. */
function feedsOf(driver: CallDriver): Record<string, readonly number[] | undefined> {
  const { participants } = recordOf(driver.call, ANN)
  return Object.fromEntries(participants.map(({ userId, feedIds }) => [userId, feedIds]))
}

t.test('feeds of a device that is in the call are in the record and told, each change once', async t => {
  const driver = begun()
  driver.join(2)
  const fed = (device: typeof ANN, ...feedIds: readonly number[]) =>
    inWords(driver.run({ kind: 'media-feeds', device, feedIds }).effects)
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
    driver.run({ kind: 'media-feeds', device, feedIds: [feed] })
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
