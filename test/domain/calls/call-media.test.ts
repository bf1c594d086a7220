/** Which devices the room at the media gateway lets in, as the call notes it. */

import t from 'tap'
import { limitAtMs } from '../../../src/domain/calls/call-deadline.ts'
import { entryOf, mediaOf } from '../../../src/domain/calls/call-media.ts'
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

t.test('a call that has ended admits no device', async t => {
  const driver = begun()
  driver.run({ kind: 'end', by: ANN })
  t.same(admitted(driver), [])
})

t.test('an entry outlasts the call', async t => {
  const driver = begun()
  driver.wait(60_000)
  driver.join(2)
  t.ok(entryOf(driver.call, BOB).untilS * 1000 > limitAtMs(driver.call))
})
