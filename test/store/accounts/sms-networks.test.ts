/**
 * Requests for short messages out of one IPv6 prefix, however wide, use up its own share of a country's budget, and no
 * more.
 */

import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { SmsStop } from '../../../src/domain/accounts/sms-budget.ts'
import { shownNetwork } from '../../../src/domain/network.ts'
import { type PaidMessage, SmsBudget } from '../../../src/store/accounts/sms-budget.ts'
import { Expiries } from '../../../src/store/engine/expiries.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import type { Change } from '../../../src/store/engine/store.ts'
import { atMoment } from '../../support/at-moment.ts'
import { checkProperty } from '../../support/property.ts'

const START_MS = Date.UTC(2026, 0, 1)
const MINUTE_MS = 60_000
const BUDGETS = { rangeHourly: 30, networkHourly: 30, callingCodeHourly: 200, daily: 10_000 }
/** The attacker's, 2001:db8::/32. */
const PREFIX = [0x20, 0x01, 0x0d, 0xb8]
const HOME_V4 = network(198, 51, 100, 7)
const HOME_V6 = network(0x2a, 0x00, 0x12, 0x34, 0, 0, 0, 1)

function network(...bytes: readonly number[]): string {
  return Buffer.from(bytes).toString('latin1')
}

/** The number of this count; two hundred ranges, so that no range stops first. */
function vietnamese(at: number): string {
  return `+849${1000 + (at % 900)}${String(Math.floor(at / 900)).padStart(4, '0')}`
}

/** The /64 of this count in a /48 or a /32. */
function networkIn(width: 48 | 32, at: number): string {
  const low = [(at >> 8) & 255, at & 255]
  // Neighbours are in different /40s: the hardest to tell from many.
  return width === 48 ? network(...PREFIX, 0, 7, ...low) : network(...PREFIX, at & 255, (at >> 8) & 255, 0, 1)
}

interface Stage {
  readonly stops: SmsStop[]
  /** Runs in one change. */
  readonly run: <Result>(act: (budget: SmsBudget, change: Change) => Result) => Promise<Result>
}

function openStage(t: Test, folder = t.testdir()): Stage {
  const database = LmdbStore.open(folder)
  t.teardown(() => database.close())
  const stops: SmsStop[] = []
  const budget = new SmsBudget(database, new Expiries(), BUDGETS, stop => stops.push(stop))
  return { stops, run: act => database.change(change => act(budget, change), START_MS) }
}

/** Has the message sent unless it is stopped. */
function ask(budget: SmsBudget, change: Change, message: PaidMessage): SmsStop | undefined {
  const stop = budget.stopOf(change, message)
  if (stop === undefined) budget.countSent(change, message)
  return stop
}

for (const width of [48, 32] as const) {
  for (const count of [200, 2_000, 20_000]) {
    t.test(`${count} requests from one /${width} stop no newcomer from elsewhere`, async t => {
      const { run, stops } = openStage(t)
      const turnedAway: number[] = []
      let sent = 0
      await run((budget, change) => {
        for (let at = 0; at < count; at++) {
          // All in one hour; a newcomer every minute, on either kind of address.
          const nowMs = START_MS + Math.floor((at * 60 * MINUTE_MS) / count)
          const then = atMoment(change, nowMs)
          const message = { number: vietnamese(at), network: networkIn(width, at) }
          if (ask(budget, then, message) === undefined) sent++
          if (at % Math.ceil(count / 60) > 0) continue
          for (const home of [HOME_V4, HOME_V6]) {
            const newcomer = { number: vietnamese(20_000 + at), network: home }
            if (budget.stopOf(then, newcomer) !== undefined) turnedAway.push(at)
          }
        }
      })
      t.same(turnedAway, [])
      t.ok(sent >= Math.min(count, 30), 'the prefix has a share')
      t.notOk(stops.some(({ scope }) => scope === 'calling-code' || scope === 'all'))
      t.match(stops[0], { scope: 'network' })
    })
  }
}

t.test('requests from a /48 leave the rest of its /32 alone', async t => {
  const { run, stops } = openStage(t)
  await run((budget, change) => {
    for (let at = 0; at < 20_000; at++)
      ask(budget, change, { number: vietnamese(at), network: networkIn(48, at) })
    const neighbour = { number: vietnamese(20_001), network: network(...PREFIX, 0, 8, 0, 1) }
    t.equal(ask(budget, change, neighbour), undefined)
  })
  const names = stops.map(({ name }) => shownNetwork(name))
  t.ok(names.includes('2001:db8:7::/48'))
  t.same(
    names.filter(name => !name.startsWith('2001:db8:7:')),
    [],
  )
})

t.test('seven /64 of different owners do not stop a country either', async t => {
  const { run } = openStage(t)
  await run((budget, change) => {
    for (let at = 0; at < 210; at++)
      ask(budget, change, { number: vietnamese(at), network: network(0x24, at % 7, 0, 0, 0, 0, 0, 1) })
    t.equal(ask(budget, change, { number: vietnamese(999), network: HOME_V6 }), undefined)
  })
})

t.test('a prefix may ask as often as it stands for clients', async t => {
  // So many are confirmed that the country's budget lasts longer.
  const { run } = openStage(t)
  await run((budget, change) => {
    for (let at = 0; at < 200; at++) {
      const confirmed = { number: vietnamese(20_000 + at), network: HOME_V4 }
      budget.countSent(change, confirmed)
      budget.countConfirmed(change, confirmed)
    }
    const sentFrom = (of: (at: number) => string) => {
      let at = 0
      while (ask(budget, change, { number: vietnamese(at), network: of(at) }) === undefined) at++
      return at
    }
    const below = (second: number, ...tail: readonly number[]) => network(0x26, second, ...tail)
    t.equal(
      sentFrom(() => below(1, 0, 0, 0, 0, 0, 0)),
      30,
    )
    t.equal(
      sentFrom(at => below(2, 0, 0, 0, 0, 0, at & 255)),
      120,
    )
    t.equal(
      sentFrom(at => below(3, 0, 0, 0, 0, at & 255, 0)),
      480,
    )
  })
})

t.test('an honest provider with one /32 for all its customers is not slowed', async t => {
  const { run, stops } = openStage(t)
  await run((budget, change) => {
    const waiting: PaidMessage[] = []
    for (let at = 0; at < 5_000; at++) {
      const then = atMoment(change, START_MS + at * 720)
      const message = { number: vietnamese(at), network: networkIn(32, at) }
      ask(budget, then, message)
      // Forty seconds until the code is typed; one in six never is.
      if (at % 6 > 0) waiting.push(message)
      if (at >= 55 && waiting.length > 45) budget.countConfirmed(then, waiting.shift()!)
    }
  })
  t.same(stops, [])
})

t.test('a range that is pumped from many networks is stopped as a range', async t => {
  const { run, stops } = openStage(t)
  await run((budget, change) => {
    for (let at = 0; at < 2_000; at++) {
      const number = `+8491007${String(at).padStart(4, '0')}`
      ask(budget, change, { number, network: network(0x28, at & 255, at >> 8, 0, 0, 0, 0, 1) })
    }
    t.equal(ask(budget, change, { number: vietnamese(1), network: HOME_V4 }), undefined)
  })
  t.match(stops, [{ scope: 'range', name: '+8491007' }])
})

t.test('the budget of all countries is not one prefix’s to use up', async t => {
  const { run } = openStage(t)
  await run((budget, change) => {
    const codes = ['+49151', '+33612', '+39347', '+34612', '+48512', '+46701', '+84912', '+66812']
    for (let hour = 0; hour < 24; hour++) {
      const then = atMoment(change, START_MS + hour * 60 * MINUTE_MS)
      for (let at = 0; at < 1_200; at++) {
        const number = `${codes[at % codes.length]}${String((at * 7_919) % 10_000_000).padStart(7, '0')}`
        ask(budget, then, { number, network: networkIn(32, at) })
      }
      t.equal(ask(budget, then, { number: vietnamese(hour), network: HOME_V4 }), undefined, `hour ${hour}`)
    }
  })
})

t.test('whatever one /32 asks for, in whatever order, a newcomer from elsewhere is served', async t => {
  interface Step {
    readonly count: number
    readonly networks: number
    readonly afterMs: number
    readonly isConfirmed: boolean
  }
  const asked: fc.Arbitrary<Step> = fc.record({
    count: fc.integer({ min: 1, max: 120 }),
    /** Each of its networks again and again, or ever new ones. */
    networks: fc.integer({ min: 1, max: 300 }),
    afterMs: fc.integer({ min: 0, max: 20 * MINUTE_MS }),
    isConfirmed: fc.boolean(),
  })
  const { run } = openStage(t)
  let tries = 0
  await run((budget, change) => {
    const isServed = (steps: readonly Step[]) => {
      // Days apart: nothing of the last one counts.
      let nowMs = START_MS + ++tries * 5 * 86_400_000
      let at = 0
      for (const { count, networks, afterMs, isConfirmed } of steps) {
        nowMs += afterMs
        const then = atMoment(change, nowMs)
        for (let nth = 0; nth < count; nth++, at++) {
          const message = { number: vietnamese(at), network: networkIn(32, at % networks) }
          if (ask(budget, then, message) === undefined && isConfirmed && nth % 20 === 0)
            budget.countConfirmed(then, message)
        }
        if (budget.stopOf(then, { number: vietnamese(20_000), network: HOME_V4 }) !== undefined) return false
      }
      return true
    }
    checkProperty(t, [fc.array(asked, { minLength: 1, maxLength: 30 })], isServed, 30)
  })
})
