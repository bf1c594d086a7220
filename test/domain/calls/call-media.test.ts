/** Which devices the room at the media gateway lets in, as the call notes it. */

import t from 'tap'
import { limitAtMs } from '../../../src/domain/calls/call-deadline.ts'
import { entryOf, mediaOf } from '../../../src/domain/calls/call-media.ts'
import { CallHouse, deviceOf, inWords } from '../../support/call-house.ts'

const [ANN, BOB] = [deviceOf(1), deviceOf(2)]
const PENDING = { isReady: false, entry: undefined }

function begun(): CallHouse {
  const house = new CallHouse({ devices: 2 })
  house.start([2, 3])
  return house
}

function admitted(house: CallHouse, devices = [ANN], answered: typeof devices = []): string[] {
  return inWords(house.run({ kind: 'media-admitted', devices, answered }).effects)
}

t.test(
  'a device in the call has its entry once it is admitted, the rest know that there is a room',
  async t => {
    const house = begun()
    t.same(mediaOf(house.call, ANN), PENDING)
    t.same(admitted(house), ['101 media_ready'])
    t.match(mediaOf(house.call, ANN), { isReady: true, entry: { roomId: 4711 } })
    t.same(mediaOf(house.call, BOB), { isReady: true, entry: undefined })
    house.join(2)
    t.same(mediaOf(house.call, BOB), PENDING, 'it waits for its own admission')
  },
)

t.test('a device that reads it in a reply gets no message, and none gets a second one', async t => {
  const house = begun()
  t.same(admitted(house, [ANN], [ANN]), [])
  t.same(admitted(house), [])
})

t.test('a device that is not in the call, or in it no more, is not admitted', async t => {
  const house = begun()
  t.same(admitted(house, [BOB]), [])
  t.same(mediaOf(house.call, BOB), PENDING)
  house.join(2)
  admitted(house, [BOB])
  house.run({ kind: 'join', by: deviceOf(2, 2) })
  t.equal(mediaOf(house.call, BOB).entry, undefined, 'the call moved')
  t.same(mediaOf(house.call, deviceOf(2, 2)), PENDING)
})

t.test('a room that is gone is pending again, and told of when it is back', async t => {
  const house = begun()
  house.join(2)
  admitted(house, [ANN, BOB])
  t.same(inWords(house.run({ kind: 'media-lost' }).effects), [])
  t.same(mediaOf(house.call, ANN), PENDING)
  t.same(admitted(house, [ANN, BOB]), ['101 media_ready', '201 media_ready'])
})

t.test('a call that has ended admits no device', async t => {
  const house = begun()
  house.run({ kind: 'end', by: ANN })
  t.same(admitted(house), [])
})

t.test('an entry outlasts the call', async t => {
  const house = begun()
  house.wait(60_000)
  house.join(2)
  t.ok(entryOf(house.call, BOB).untilS * 1000 > limitAtMs(house.call))
})
