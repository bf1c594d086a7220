/** A call's deadlines (contract 4.2), with their edges, and a restart's effect on them. */

import t from 'tap'
import { nextDeadlineMs, recover } from '../../../src/domain/calls/call-deadline.ts'
import { CallDriver, deviceOf, inWords, resultOf, START_MS } from '../../support/call-driver.ts'

const [HOST, SECOND] = [deviceOf(1), deviceOf(2)]
const DAY_MS = 24 * 3_600_000

function ringing(callees = [2]): CallDriver {
  const driver = new CallDriver()
  driver.start(callees)
  return driver
}

function active(callees = [2], online = [1, ...callees]): CallDriver {
  const driver = ringing(callees)
  for (const user of callees) driver.join(user)
  for (const user of online) driver.run({ kind: 'device-online', by: deviceOf(user) })
  return driver
}

/** From now until the call's next deadline. */
function dueIn(driver: CallDriver): number | undefined {
  const atMs = nextDeadlineMs(driver.call)
  return atMs === undefined ? undefined : atMs - driver.nowMs
}

function restart(driver: CallDriver, downForMs: number): void {
  driver.nowMs += downForMs
  driver.kept = recover(driver.call, { nowMs: driver.nowMs, downForMs })
}

t.test('a ring ends 65 seconds after its invitation, each for itself', async t => {
  const driver = ringing()
  t.equal(dueIn(driver), 65_000)
  driver.nowMs += 10_000
  driver.invite([3], HOST)
  t.same(driver.wait(54_999).effects, [])
  driver.wait(1)
  t.same(
    [driver.person(2).state, driver.person(3).state, driver.call.status],
    ['missed', 'invited', 'ringing'],
  )
  t.equal(dueIn(driver), 10_000)
  t.equal(driver.wait(10_000).call.status, 'missed')
  t.equal(dueIn(driver), undefined)
})

t.test(
  'a deadline that comes late counts from when it was due, and one that comes early does nothing',
  async t => {
    const driver = ringing()
    driver.nowMs += 65_000
    t.equal(
      resultOf(driver.decide({ kind: 'join', by: SECOND })),
      'CALL_ENDED',
      'the timer has not fired yet',
    )
    const early = ringing()
    const { call } = early
    t.equal(early.wait(64_999).call, call)
  },
)

t.test('a due deadline is announced before the command’s effects', async t => {
  const driver = ringing([2, 3])
  driver.join(3)
  for (const by of [HOST, deviceOf(3)]) driver.run({ kind: 'device-online', by })
  driver.nowMs += 65_000
  t.same(inWords(driver.invite([2], HOST).effects), [
    '201 call_missed instead',
    'topic declined 2',
    'history 2 missed',
    '201 call_invitation',
    'topic invited 2',
  ])
})

t.test('a caller who had a socket may be without one for 30 seconds', async t => {
  const driver = ringing()
  driver.run({ kind: 'device-online', by: HOST })
  t.equal(dueIn(driver), 65_000)
  driver.nowMs += 1000
  driver.run({ kind: 'device-offline', by: HOST })
  t.equal(dueIn(driver), 30_000)
  driver.nowMs += 20_000
  driver.run({ kind: 'device-seen', by: HOST })
  t.equal(dueIn(driver), 30_000, 'a request counts as well')
  t.same(driver.wait(29_999).effects, [])
  const { call, effects } = driver.wait(1)
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
  const driver = ringing()
  t.equal(driver.wait(64_999).call.status, 'ringing')
})

t.test('a caller who moved to a device without a socket rings on', async t => {
  const driver = ringing()
  driver.run({ kind: 'device-online', by: HOST })
  driver.join(1, 2)
  t.equal(dueIn(driver), 65_000)
})

t.test('a caller who is back in time rings on', async t => {
  const driver = ringing()
  driver.run({ kind: 'device-online', by: HOST })
  driver.run({ kind: 'device-offline', by: HOST })
  driver.wait(29_999)
  driver.run({ kind: 'device-online', by: HOST })
  t.equal(dueIn(driver), 65_000 - 29_999)
})

t.test('whose device says nothing for 90 seconds is lost', async t => {
  const driver = active([2, 3], [1, 2])
  t.same(driver.wait(89_999).effects, [])
  t.same(inWords(driver.wait(1).effects), ['topic left 3'])
  t.equal(driver.person(3).state, 'lost')
  driver.run({ kind: 'device-offline', by: HOST })
  t.same(inWords(driver.wait(90_000).effects), ['topic left 1', 'topic host 2'], 'the host as well')
})

t.test('any request keeps a device without a socket in the call', async t => {
  const driver = active([2, 3], [1, 2])
  for (const kind of ['device-seen', 'join', 'ringing'] as const) {
    driver.wait(80_000)
    driver.run({ kind, by: deviceOf(3) })
  }
  t.same(driver.wait(89_999).effects, [])
  t.same(inWords(driver.wait(1).effects), ['topic left 3'])
})

t.test('the presence of a device that is not in the call does not matter', async t => {
  const driver = active([2, 3], [1, 2])
  const { call } = driver
  for (const kind of ['device-online', 'device-offline', 'device-seen'] as const) {
    t.equal(driver.run({ kind, by: deviceOf(3, 2) }).call, call)
  }
})

t.test('a device that is online again after it was lost has to rejoin', async t => {
  const driver = active([2, 3], [1, 2])
  driver.wait(90_000)
  driver.run({ kind: 'device-online', by: deviceOf(3) })
  t.equal(driver.person(3).state, 'lost')
})

t.test('an empty call waits for 30 seconds', async t => {
  const driver = active()
  driver.run({ kind: 'leave', by: HOST })
  driver.run({ kind: 'leave', by: SECOND })
  t.equal(dueIn(driver), 30_000)
  const back = { ...driver.call }
  const { call, effects } = driver.wait(30_000)
  t.same([call.status, call.endReason], ['ended', 'empty'])
  t.same(inWords(effects), ['topic ended', 'history 1 ended', 'history 2 ended'])
  driver.kept = back
  driver.nowMs -= 1
  driver.run({ kind: 'rejoin', by: SECOND })
  t.equal(dueIn(driver), 90_000, 'somebody is back')
})

t.test('a lone participant waits for 300 seconds, from when no callee is pending', async t => {
  const driver = active()
  driver.invite([3], HOST)
  driver.run({ kind: 'leave', by: SECOND })
  driver.wait(65_000)
  t.equal(driver.person(3).state, 'missed')
  t.equal(dueIn(driver), 300_000)
  t.same(driver.wait(299_999).effects, [])
  const { call, effects } = driver.wait(1)
  t.same([call.status, call.endReason], ['ended', 'alone'])
  t.same(inWords(effects).slice(0, 1), ['101 call_ended'])
})

t.test('a second person ends the wait', async t => {
  const driver = active()
  driver.run({ kind: 'leave', by: SECOND })
  driver.wait(299_999)
  driver.run({ kind: 'request-rejoin', by: SECOND })
  driver.run({ kind: 'rejoin', by: SECOND })
  driver.run({ kind: 'device-online', by: SECOND })
  t.equal(driver.wait(1000).call.status, 'active')
  driver.run({ kind: 'leave', by: SECOND })
  t.equal(dueIn(driver), 300_000)
})

t.test('a call ends after a day', async t => {
  const driver = active()
  t.equal(dueIn(driver), DAY_MS)
  t.equal(driver.wait(DAY_MS - 1).call.status, 'active')
  const { call } = driver.wait(1)
  t.same([call.status, call.endReason, call.endedAtMs], ['ended', 'limit', driver.nowMs])
})

t.test('a call that rings for a day ends, too', async t => {
  const driver = ringing()
  driver.kept = { ...driver.call, createdAtMs: START_MS - DAY_MS + 60_000 }
  t.equal(dueIn(driver), 60_000)
  const { call } = driver.wait(60_000)
  t.same([call.status, call.endReason], ['missed', 'limit'])
})

t.test('of two deadlines, the earlier one happens first', async t => {
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
  const driver = active([2, 3], [1])
  driver.wait(DAY_MS / 2)
  t.same([driver.person(2).state, driver.person(3).state, driver.call.status], ['lost', 'lost', 'active'])
  t.equal(dueIn(driver), 300_000)
})

t.test('a restart gives online devices a new start, and takes nothing from the rest', async t => {
  const driver = active([2, 3], [1])
  driver.wait(50_000)
  restart(driver, 600_000)
  t.equal(dueIn(driver), 40_000, 'who had said nothing for 50 seconds')
  driver.wait(40_000)
  t.same([driver.person(2).state, driver.person(1).state], ['lost', 'joined'])
  t.equal(dueIn(driver), 50_000, 'who was online until the server went')
})

t.test('a restart does not make a caller absent', async t => {
  const driver = ringing([2])
  driver.run({ kind: 'device-online', by: HOST })
  driver.nowMs += 5000
  restart(driver, 20_000)
  t.equal(dueIn(driver), 30_000)
  const never = ringing([2])
  restart(never, 20_000)
  t.equal(dueIn(never), 45_000, 'one that never had a socket has no deadline')
})

t.test('a ring goes on ringing while the server is down', async t => {
  const driver = ringing()
  restart(driver, 70_000)
  t.equal(dueIn(driver), -5000)
  t.equal(driver.wait(0).call.status, 'missed')
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
  const driver = active([2, 3], [1])
  driver.nowMs += 10_000
  driver.kept = recover(driver.call, { nowMs: driver.nowMs, downForMs: 10 * DAY_MS })
  t.equal(dueIn(driver), 90_000)
})

t.test('a clock that was set back while the server was down prolongs no ring by as much', async t => {
  const driver = ringing()
  driver.nowMs -= 3_600_000
  restart(driver, 0)
  t.equal(dueIn(driver), 65_000)
  t.equal(driver.wait(65_000).call.status, 'missed')
})

t.test('nor the time for which the answers to who asks for the key count', async t => {
  const driver = active([2, 3], [1])
  driver.run({ kind: 'leave', by: SECOND })
  driver.run({ kind: 'request-rejoin', by: SECOND })
  driver.nowMs -= 3_600_000
  restart(driver, 0)
  driver.wait(60_000)
  t.same(driver.call.rejoinAsks, [])
})

t.test('an ended call stays as it was', async t => {
  const driver = active()
  const { call } = driver.run({ kind: 'end', by: HOST })
  t.equal(recover(call, { nowMs: driver.nowMs + 1, downForMs: 1 }), call)
})
