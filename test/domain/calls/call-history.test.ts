/** A call as each of its people remembers it (contract 4.6). */

import t from 'tap'
import {
  activeRowOf,
  type CallHistoryRow,
  isMissedBy,
  pastRowOf,
  peersIn,
} from '../../../src/domain/calls/call-history.ts'
import type { UserId } from '../../../src/domain/ids.ts'
import { CALL_ID, CallDriver, deviceOf, START_MS, type UntimedCommand } from '../../support/call-driver.ts'

const HOST = deviceOf(1)

/** Keeps the rows as a store would, and lists them as the server does. */
class HistoryDriver extends CallDriver {
  readonly rows = new Map<number, CallHistoryRow>()

  override run(command: UntimedCommand, facts = this.facts([])) {
    const decision = super.run(command, facts)
    for (const effect of decision.effects) {
      if (effect.kind !== 'history') continue
      const { call, memories, back } = effect
      for (const userId of back) this.rows.delete(Number(userId))
      for (const memory of memories) {
        const row = pastRowOf(call, memory, !isMissedBy(call, memory))
        this.rows.set(Number(memory.userId), row)
      }
    }
    return decision
  }

  row(user: number): CallHistoryRow {
    const row = this.#rowOf(user)
    if (row === undefined) throw new Error(`user ${user} has no row`)
    return row
  }

  statuses(...users: number[]): (string | undefined)[] {
    return users.map(user => this.#rowOf(user)?.status)
  }

  #rowOf(user: number): CallHistoryRow | undefined {
    const [past, active] = [this.rows.get(user), activeRowOf(this.call!, BigInt(user) as UserId)]
    if (past !== undefined && active !== undefined) throw new Error(`user ${user} has two rows`)
    return past ?? active
  }
}

t.test('the caller has a row from the start, a callee once they answered', async t => {
  const driver = new HistoryDriver()
  driver.start([2, 3])
  t.same(driver.statuses(1, 2, 3), ['active', undefined, undefined])
  t.same(driver.row(1), {
    callId: CALL_ID,
    direction: 'outgoing',
    status: 'active',
    isVideo: true,
    isGroup: true,
    people: [1n, 2n, 3n],
    createdAtMs: START_MS,
    startedAtMs: undefined,
    endedAtMs: undefined,
    talkedMs: undefined,
    seen: true,
  })
  driver.nowMs += 4000
  driver.join(3)
  t.same(driver.statuses(1, 2, 3), ['active', undefined, 'active'])
  t.match(driver.row(1), { startedAtMs: START_MS + 4000 })
  t.match(driver.row(3), {
    direction: 'incoming',
    seen: true,
    startedAtMs: START_MS + 4000,
    people: [1n, 3n, 2n],
  })
})

t.test('a call of two is no group', async t => {
  const driver = new HistoryDriver()
  driver.start([2])
  t.equal(driver.row(1).isGroup, false)
})

t.test('the end writes everybody their time in the call', async t => {
  const driver = new HistoryDriver()
  driver.start([2, 3, 4])
  driver.nowMs += 10_000
  driver.join(2)
  driver.nowMs += 20_000
  driver.join(3)
  driver.nowMs += 5_000
  driver.run({ kind: 'leave', by: deviceOf(3) })
  t.equal(driver.row(3).status, 'active', 'they may come back')
  driver.nowMs += 5_000
  driver.run({ kind: 'request-rejoin', by: deviceOf(3) })
  driver.run({ kind: 'rejoin', by: deviceOf(3) })
  driver.nowMs += 7_000
  driver.run({ kind: 'leave', by: deviceOf(3) })
  driver.nowMs += 3_000
  driver.run({ kind: 'end', by: HOST })
  t.same(driver.statuses(1, 2, 3, 4), ['ended', 'ended', 'ended', 'missed'])
  t.same(
    [1, 2, 3].map(user => driver.row(user).talkedMs),
    [40_000, 40_000, 12_000],
    'ringing is not talking',
  )
  t.same(
    [1, 3, 4].map(user => driver.row(user).endedAtMs),
    [START_MS + 50_000, START_MS + 47_000, START_MS + 50_000],
  )
  t.match(driver.row(4), { startedAtMs: undefined, talkedMs: undefined, seen: false })
})

/** Each way to say no, or nothing, and what one's own row says. */
t.test('what a callee did not answer, could not or did not want to', async t => {
  const driver = new HistoryDriver()
  driver.start([2, 3, 4, 5, 6])
  driver.join(2)
  driver.run({ kind: 'decline', by: deviceOf(3) })
  driver.run({ kind: 'decline', by: deviceOf(4), reason: 'busy' })
  driver.run({ kind: 'decline', by: deviceOf(5), reason: 'timeout' })
  driver.run({ kind: 'remove', by: HOST, userId: 6n as UserId })
  t.same(driver.statuses(2, 3, 4, 5, 6), ['active', 'declined', 'missed', 'missed', 'missed'])
  t.same(
    [2, 3, 4, 5, 6].map(user => !driver.row(user).seen),
    [false, false, true, true, true],
  )
  const before = new Map(driver.rows)
  driver.run({ kind: 'end', by: HOST })
  for (const user of [3, 4, 5, 6]) t.equal(driver.row(user), before.get(user), 'the end does not change it')
})

t.test('the caller is never to be told of a call that they missed', async t => {
  const driver = new HistoryDriver()
  driver.start([2])
  driver.wait(65_000)
  t.match(driver.row(1), { status: 'missed', seen: true, endedAtMs: START_MS + 65_000 })
  t.match(driver.row(2), { status: 'missed', seen: false })
  t.ok(driver.row(1).seen)
})

t.test('a call that its caller gave up is cancelled to them and missed to the callee', async t => {
  const driver = new HistoryDriver()
  driver.start([2, 3])
  driver.run({ kind: 'decline', by: deviceOf(3) })
  driver.run({ kind: 'end', by: HOST })
  t.same(driver.statuses(1, 2, 3), ['cancelled', 'missed', 'declined'])
})

t.test('who comes late has not missed it', async t => {
  const driver = new HistoryDriver()
  driver.start([2, 3])
  driver.join(2)
  driver.wait(65_000)
  t.notOk(driver.row(3).seen)
  driver.join(3)
  t.match(driver.row(3), { status: 'active', seen: true })
})

t.test('a user who is called again and misses it again hears of it again', async t => {
  const driver = new HistoryDriver()
  driver.start([2, 3])
  driver.join(2)
  driver.run({ kind: 'decline', by: deviceOf(3), reason: 'timeout' })
  driver.rows.delete(3)
  driver.invite([3], HOST)
  t.same(driver.statuses(3), [undefined])
  driver.run({ kind: 'decline', by: deviceOf(3), reason: 'timeout' })
  t.notOk(driver.row(3).seen)
})

t.test('a user removed after joining has an ended call', async t => {
  const driver = new HistoryDriver()
  driver.start([2, 3])
  driver.join(2)
  driver.nowMs += 9000
  driver.run({ kind: 'remove', by: HOST, userId: 2n as UserId })
  t.match(driver.row(2), { status: 'ended', talkedMs: 9000, endedAtMs: START_MS + 9000 })
  driver.nowMs += 9000
  driver.join(3)
  driver.run({ kind: 'end', by: HOST })
  t.match(driver.row(2), { status: 'ended', talkedMs: 9000 })
})

t.test('time after a device was lost is not counted', async t => {
  const driver = new HistoryDriver()
  driver.start([2, 3])
  driver.join(2)
  driver.run({ kind: 'device-online', by: HOST })
  driver.wait(90_000)
  driver.nowMs += 5000
  driver.run({ kind: 'remove', by: HOST, userId: 2n as UserId })
  t.match(driver.row(2), { status: 'ended', talkedMs: 90_000, endedAtMs: START_MS + 90_000 })
})

t.test('peers are the other participants, earliest first, thirty-one at most', async t => {
  const driver = new HistoryDriver()
  driver.start(Array.from({ length: 31 }, (_, at) => at + 2))
  driver.join(20)
  for (let user = 2; user <= 31; user++) {
    if (user !== 20) driver.run({ kind: 'decline', by: deviceOf(user) })
  }
  driver.invite([50, 51], HOST)
  driver.run({ kind: 'end', by: HOST })
  const peers = peersIn(driver.row(1), 1n as UserId)
  t.same([peers.length, peers[0], new Set(peers).size], [31, 20n, 31])
})

t.test('nothing of a key is in history', async t => {
  const driver = new HistoryDriver()
  driver.start([2, 3])
  driver.join(2)
  driver.run({ kind: 'end', by: HOST })
  const members = new Set([...driver.rows.values()].flatMap(row => Object.keys(row)))
  t.same(
    [...members].filter(name => /key|aes|device|hash/i.test(name)),
    [],
  )
})
