/** A call's deadlines (contract 4.2), with their edges, and a restart's effect on them. */

import t from 'tap'
import { nextDeadlineMs, recover } from '../../../src/domain/calls/call-deadline.ts'
import { CallHouse, deviceOf, inWords, resultOf, START_MS } from '../../support/call-house.ts'

const [HOST, SECOND] = [deviceOf(1), deviceOf(2)]
const DAY_MS = 24 * 3_600_000

function ringing(callees = [2]): CallHouse {
  const house = new CallHouse()
  house.start(callees)
  return house
}

function active(callees = [2], online = [1, ...callees]): CallHouse {
  const house = ringing(callees)
  for (const user of callees) house.join(user)
  for (const user of online) house.run({ kind: 'device-online', by: deviceOf(user) })
  return house
}

/** From now until the call's next deadline. */
function dueIn(house: CallHouse): number | undefined {
  const atMs = nextDeadlineMs(house.call)
  return atMs === undefined ? undefined : atMs - house.nowMs
}

function restart(house: CallHouse, downForMs: number): void {
  house.nowMs += downForMs
  house.kept = recover(house.call, { nowMs: house.nowMs, downForMs })
}

t.test('a ring ends 65 seconds after its invitation, each for itself', async t => {
  const house = ringing()
  t.equal(dueIn(house), 65_000)
  house.nowMs += 10_000
  house.invite([3], HOST)
  t.same(house.wait(54_999).effects, [])
  house.wait(1)
  t.same([house.person(2).state, house.person(3).state, house.call.status], ['missed', 'invited', 'ringing'])
  t.equal(dueIn(house), 10_000)
  t.equal(house.wait(10_000).call.status, 'missed')
  t.equal(dueIn(house), undefined)
})

t.test(
  'a deadline that comes late counts from when it was due, and one that comes early does nothing',
  async t => {
    const house = ringing()
    house.nowMs += 65_000
    t.equal(resultOf(house.decide({ kind: 'join', by: SECOND })), 'CALL_ENDED', 'the timer has not fired yet')
    const early = ringing()
    const { call } = early
    t.equal(early.wait(64_999).call, call)
  },
)

t.test('a due deadline is announced before the command’s effects', async t => {
  const house = ringing([2, 3])
  house.join(3)
  for (const by of [HOST, deviceOf(3)]) house.run({ kind: 'device-online', by })
  house.nowMs += 65_000
  t.same(inWords(house.invite([2], HOST).effects), [
    '201 call_missed instead',
    'topic declined 2',
    'history 2 missed',
    '201 call_invitation',
    'topic invited 2',
  ])
})

t.test('a caller who had a socket may be without one for 30 seconds', async t => {
  const house = ringing()
  house.run({ kind: 'device-online', by: HOST })
  t.equal(dueIn(house), 65_000)
  house.nowMs += 1000
  house.run({ kind: 'device-offline', by: HOST })
  t.equal(dueIn(house), 30_000)
  house.nowMs += 20_000
  house.run({ kind: 'device-seen', by: HOST })
  t.equal(dueIn(house), 30_000, 'a request counts as well')
  t.same(house.wait(29_999).effects, [])
  const { call, effects } = house.wait(1)
  t.same([call.status, call.endReason, call.endedBy], ['cancelled', 'caller_lost', undefined])
  t.same(inWords(effects), [
    '201 call_cancelled instead, missed',
    '101 call_ended',
    'topic cancelled',
    'history 1 cancelled',
    'history 2 missed',
  ])
})

t.test('a caller who never had a socket rings on', async t => {
  const house = ringing()
  t.equal(house.wait(64_999).call.status, 'ringing')
})

t.test('a caller who moved to a device without a socket rings on', async t => {
  const house = ringing()
  house.run({ kind: 'device-online', by: HOST })
  house.join(1, 2)
  t.equal(dueIn(house), 65_000)
})

t.test('a caller who is back in time rings on', async t => {
  const house = ringing()
  house.run({ kind: 'device-online', by: HOST })
  house.run({ kind: 'device-offline', by: HOST })
  house.wait(29_999)
  house.run({ kind: 'device-online', by: HOST })
  t.equal(dueIn(house), 65_000 - 29_999)
})

t.test('whose device says nothing for 90 seconds is lost', async t => {
  const house = active([2, 3], [1, 2])
  t.same(house.wait(89_999).effects, [])
  t.same(inWords(house.wait(1).effects), ['topic left 3'])
  t.equal(house.person(3).state, 'lost')
  house.run({ kind: 'device-offline', by: HOST })
  t.same(inWords(house.wait(90_000).effects), ['topic left 1', 'topic host 2'], 'the host as well')
})

t.test('any request keeps a device without a socket in the call', async t => {
  const house = active([2, 3], [1, 2])
  for (const kind of ['device-seen', 'join', 'ringing'] as const) {
    house.wait(80_000)
    house.run({ kind, by: deviceOf(3) })
  }
  t.same(house.wait(89_999).effects, [])
  t.same(inWords(house.wait(1).effects), ['topic left 3'])
})

t.test('the presence of a device that is not in the call does not matter', async t => {
  const house = active([2, 3], [1, 2])
  const { call } = house
  for (const kind of ['device-online', 'device-offline', 'device-seen'] as const) {
    t.equal(house.run({ kind, by: deviceOf(3, 2) }).call, call)
  }
})

t.test('a device that is online again after it was lost has to rejoin', async t => {
  const house = active([2, 3], [1, 2])
  house.wait(90_000)
  house.run({ kind: 'device-online', by: deviceOf(3) })
  t.equal(house.person(3).state, 'lost')
})

t.test('an empty call waits for 30 seconds', async t => {
  const house = active()
  house.run({ kind: 'leave', by: HOST })
  house.run({ kind: 'leave', by: SECOND })
  t.equal(dueIn(house), 30_000)
  const back = { ...house.call }
  const { call, effects } = house.wait(30_000)
  t.same([call.status, call.endReason], ['ended', 'empty'])
  t.same(inWords(effects), ['topic ended', 'history 1 ended', 'history 2 ended'])
  house.kept = back
  house.nowMs -= 1
  house.run({ kind: 'rejoin', by: SECOND })
  t.equal(dueIn(house), 90_000, 'somebody is back')
})

t.test('a lone participant waits for 300 seconds, from when no callee is pending', async t => {
  const house = active()
  house.invite([3], HOST)
  house.run({ kind: 'leave', by: SECOND })
  house.wait(65_000)
  t.equal(house.person(3).state, 'missed')
  t.equal(dueIn(house), 300_000)
  t.same(house.wait(299_999).effects, [])
  const { call, effects } = house.wait(1)
  t.same([call.status, call.endReason], ['ended', 'alone'])
  t.same(inWords(effects).slice(0, 1), ['101 call_ended'])
})

t.test('a second person ends the wait', async t => {
  const house = active()
  house.run({ kind: 'leave', by: SECOND })
  house.wait(299_999)
  house.run({ kind: 'request-rejoin', by: SECOND })
  house.run({ kind: 'rejoin', by: SECOND })
  house.run({ kind: 'device-online', by: SECOND })
  t.equal(house.wait(1000).call.status, 'active')
  house.run({ kind: 'leave', by: SECOND })
  t.equal(dueIn(house), 300_000)
})

t.test('a call ends after a day', async t => {
  const house = active()
  t.equal(dueIn(house), DAY_MS)
  t.equal(house.wait(DAY_MS - 1).call.status, 'active')
  const { call } = house.wait(1)
  t.same([call.status, call.endReason, call.endedAtMs], ['ended', 'limit', house.nowMs])
})

t.test('a call that rings for a day ends, too', async t => {
  const house = ringing()
  house.kept = { ...house.call, createdAtMs: START_MS - DAY_MS + 60_000 }
  t.equal(dueIn(house), 60_000)
  const { call } = house.wait(60_000)
  t.same([call.status, call.endReason], ['missed', 'limit'])
})

t.test('of two that are due, what was due first happens first', async t => {
  const cancelledFirst = ringing()
  cancelledFirst.run({ kind: 'device-online', by: HOST })
  cancelledFirst.run({ kind: 'device-offline', by: HOST })
  t.equal(cancelledFirst.wait(DAY_MS).call.status, 'cancelled')
  const missedFirst = ringing()
  missedFirst.run({ kind: 'device-online', by: HOST })
  missedFirst.nowMs += 40_000
  missedFirst.run({ kind: 'device-offline', by: HOST })
  t.equal(missedFirst.wait(DAY_MS).call.status, 'missed')
})

t.test('quiet that begins late is waited for in full', async t => {
  const house = active([2, 3], [1])
  house.wait(DAY_MS / 2)
  t.same([house.person(2).state, house.person(3).state, house.call.status], ['lost', 'lost', 'active'])
  t.equal(dueIn(house), 300_000)
})

t.test('a restart gives online devices a new start, and takes nothing from the rest', async t => {
  const house = active([2, 3], [1])
  house.wait(50_000)
  restart(house, 600_000)
  t.equal(dueIn(house), 40_000, 'who had said nothing for 50 seconds')
  house.wait(40_000)
  t.same([house.person(2).state, house.person(1).state], ['lost', 'joined'])
  t.equal(dueIn(house), 50_000, 'who was online until the server went')
})

t.test('a restart does not make a caller absent', async t => {
  const house = ringing([2])
  house.run({ kind: 'device-online', by: HOST })
  house.nowMs += 5000
  restart(house, 20_000)
  t.equal(dueIn(house), 30_000)
  const never = ringing([2])
  restart(never, 20_000)
  t.equal(dueIn(never), 45_000, 'one that never had a socket has no deadline')
})

t.test('a ring goes on ringing while the server is down', async t => {
  const house = ringing()
  restart(house, 70_000)
  t.equal(dueIn(house), -5000)
  t.equal(house.wait(0).call.status, 'missed')
})

t.test('quiet is not counted while the server is down', async t => {
  const alone = active()
  alone.run({ kind: 'leave', by: SECOND })
  alone.wait(100_000)
  restart(alone, 600_000)
  alone.run({ kind: 'device-online', by: HOST })
  t.equal(dueIn(alone), 200_000)
  const empty = active()
  for (const by of [HOST, SECOND]) empty.run({ kind: 'leave', by })
  empty.wait(10_000)
  restart(empty, 600_000)
  t.equal(dueIn(empty), 20_000)
})

t.test('a clock that is wrong about the time down does not put absence into the future', async t => {
  const house = active([2, 3], [1])
  house.nowMs += 10_000
  house.kept = recover(house.call, { nowMs: house.nowMs, downForMs: 10 * DAY_MS })
  t.equal(dueIn(house), 90_000)
})

t.test('a clock that was set back while the server was down prolongs no ring by as much', async t => {
  const house = ringing()
  house.nowMs -= 3_600_000
  restart(house, 0)
  t.equal(dueIn(house), 65_000)
  t.equal(house.wait(65_000).call.status, 'missed')
})

t.test('nor the time for which the answers to who asks for the key count', async t => {
  const house = active([2, 3], [1])
  house.run({ kind: 'leave', by: SECOND })
  house.run({ kind: 'request-rejoin', by: SECOND })
  house.nowMs -= 3_600_000
  restart(house, 0)
  house.wait(60_000)
  t.same(house.call.rejoinAsks, [])
})

t.test('an ended call stays as it was', async t => {
  const house = active()
  const { call } = house.run({ kind: 'end', by: HOST })
  t.equal(recover(call, { nowMs: house.nowMs + 1, downForMs: 1 }), call)
})
