/** Several media gateways: which one gets a call and keeps it, and the loss of one. */

import t from 'tap'
import type { CallId } from '../../src/domain/ids.ts'
import type { MediaGateway } from '../../src/media/gateway.ts'
import { inRendezvousOrder } from '../../src/media/gateway-choice.ts'
import { GatewayHealth } from '../../src/media/gateway-health.ts'
import { callsAt } from '../../src/media/gateway-host.ts'
import { GatewayPool, type PoolMember } from '../../src/media/gateway-pool.ts'
import { Deferred } from '../support/deferred.ts'

interface Weights {
  readonly [name: string]: number
}

/** Gateways that answer each look, but for those that are `away`, and calls that the test starts and moves. */
function openPool(weights: Weights) {
  let nowMs = 0
  const away = new Set<string>()
  const sweeps: string[] = []
  const turns: string[] = []
  /** Told of each second until they are elsewhere. */
  const homeless = new Map<CallId, string>()
  const givenUp: string[] = []
  /** By call, the gateway that lets its devices in. */
  const calls = new Map<CallId, string | undefined>()
  const gateways = () => {
    const counts = new Map<string, number>()
    for (const name of calls.values()) if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1)
    return counts
  }
  const pool = new GatewayPool({
    index: {
      rooms: () => [...calls].map(([callId, gateway]) => ({ callId, roomId: Number(callId), gateway })),
      isLive: callId => calls.has(callId),
      gatewayOf: callId => calls.get(callId),
      gateways,
    },
    monotonicMs: () => nowMs,
    onHomeless: (callId, gateway) => void homeless.set(callId, gateway),
    onGivenUp: (gateway, count) => void givenUp.push(`${gateway} ${count}`),
  })
  const memberOf = (name: string, isNewcomer = false): PoolMember => {
    const turned = (isUp: boolean, reason: string) => void turns.push(`${name} ${isUp ? 'back' : reason}`)
    const health = new GatewayHealth(() => nowMs, turned, isNewcomer)
    const look = async () => (away.has(name) ? health.failed('network') : health.answered())
    const host = {
      ...{ name, look, roomCount: 0, gateway: {} as MediaGateway, present: () => [] },
      sweep: async () => void sweeps.push(name),
    }
    return { host, health, weight: weights[name] ?? 1, isDraining: false }
  }
  pool.replace(Object.keys(weights).map(name => memberOf(name)))
  /** Lets it pass second by second. */
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      nowMs += 1_000
      pool.tick()
      await Promise.resolve()
      await Promise.resolve()
    }
  }
  const choose = (callId: CallId) => pool.choose(callId, calls.get(callId), undefined)
  /** Starts it, and has it let in where it is sent. */
  const start = (callId: CallId) => {
    calls.set(callId, undefined)
    const name = choose(callId)
    calls.set(callId, name)
    return name
  }
  /** As the media rooms do: each homeless call loses its gateway, and is let in at another. */
  const move = () => {
    for (const [callId, gateway] of homeless) calls.set(callId, pool.choose(callId, gateway, gateway))
    homeless.clear()
  }
  return {
    pool,
    calls,
    gateways,
    away,
    sweeps,
    turns,
    homeless,
    givenUp,
    memberOf,
    pass,
    choose,
    start,
    move,
  }
}

function callIds(count: number, first = 1n): readonly CallId[] {
  // Ids of calls have their time in the high bits.
  return Array.from({ length: count }, (_, at) => ((first + BigInt(at)) << 20n) as CallId)
}

/** The names of gateways whose share of the calls is off by more than a tenth, and by more than one call. */
function unfair(weights: Weights, counts: ReadonlyMap<string, number>): string[] {
  const sum = (values: Iterable<number>) => [...values].reduce((all, each) => all + each, 0)
  const [weightOfAll, calls] = [sum(Object.values(weights)), sum(counts.values())]
  return Object.entries(weights).flatMap(([name, weight]) => {
    const fair = (calls * weight) / weightOfAll
    const off = Math.abs((counts.get(name) ?? 0) - fair)
    return off > Math.max(fair / 10, 1) ? [`${name} has ${counts.get(name)} of ${fair}`] : []
  })
}

const FOUR = { a: 1, b: 1, c: 1, d: 1 }
const SKEWED = { a: 1, b: 2, c: 3, d: 10 }

t.test('a gateway whose sweep takes long is in no other’s way', async t => {
  const { pool, memberOf, sweeps } = openPool({ a: 1, b: 1 })
  const slow = memberOf('a')
  const begun = new Deferred<void>()
  const sweep = async () => {
    sweeps.push('a')
    await begun
  }
  pool.replace([{ ...slow, host: { ...slow.host, sweep } }, memberOf('b')])
  const first = pool.sweep()
  await new Promise(setImmediate)
  await pool.sweep()
  t.same(sweeps, ['a', 'b', 'b'])
  begun.resolve()
  await first
  await pool.sweep()
  t.same(sweeps.slice(3), ['a', 'b'])
})

t.test('1,000 calls spread within a tenth of each weight', async t => {
  for (const weights of [{ a: 1 }, { a: 1, b: 1 }, FOUR, SKEWED, { a: 100, b: 1, c: 1 }]) {
    for (const first of [1n, 2_000n, 30_000n, 400_000n, 5_000_000n, 999_999_999_999n]) {
      const { gateways, start, pass } = openPool(weights)
      await pass(2)
      for (const callId of callIds(1_000, first)) start(callId)
      t.same(unfair(weights, gateways()), [], JSON.stringify(weights))
    }
  }
})

t.test('calls that start at once count before they are let in', t => {
  const { calls, gateways, choose } = openPool(SKEWED)
  const ids = callIds(1_000)
  for (const callId of ids) calls.set(callId, undefined)
  const chosen = ids.map(callId => [callId, choose(callId)] as const)
  t.same(
    ids.map(callId => [callId, choose(callId)]),
    chosen,
    'and stay where they were sent',
  )
  for (const [callId, name] of chosen) calls.set(callId, name)
  t.same(unfair(SKEWED, gateways()), [])
  t.end()
})

t.test('a call has its own order of gateways, which the loss of one leaves as it is', t => {
  const all = Object.entries(SKEWED).map(([name, weight]) => ({ name, weight }))
  const firsts = new Map<string, number>()
  for (const callId of callIds(4_000)) {
    const names = inRendezvousOrder(callId, all).map(({ name }) => name)
    t.same(
      inRendezvousOrder(callId, all.toReversed()).map(({ name }) => name),
      names,
    )
    const without = inRendezvousOrder(
      callId,
      all.filter(({ name }) => name !== 'c'),
    )
    t.same(
      without.map(({ name }) => name),
      names.filter(name => name !== 'c'),
    )
    firsts.set(names[0]!, (firsts.get(names[0]!) ?? 0) + 1)
  }
  for (const { name, weight } of all) {
    const share = (4_000 * weight) / 16
    t.ok(Math.abs(firsts.get(name)! - share) < 5 * Math.sqrt(share), `${name} comes first by its weight`)
  }
  t.end()
})

t.test('ten seconds without an answer: its calls move, and no other call does', async t => {
  const house = openPool(FOUR)
  const { calls, gateways, away, homeless, givenUp, turns, start, pass, move } = house
  await pass(4)
  for (const callId of callIds(1_000)) start(callId)
  const before = new Map(calls)
  away.add('b')
  await pass(8)
  t.same([homeless.size, turns], [0, ['b network']])
  t.notOk([...callIds(200, 5_000n)].map(start).includes('b'), 'no further call from the first failure on')
  for (const callId of callIds(200, 5_000n)) calls.delete(callId)
  await pass(3)
  t.equal(homeless.size, before.size - [...before.values()].filter(name => name !== 'b').length)
  t.match(givenUp, [/^b 2\d\d$/])
  move()
  await pass(1)
  t.equal(homeless.size, 0, 'told of no more')
  const { b, ...others } = FOUR
  t.same(unfair(others, gateways()), [])
  for (const [callId, name] of before) if (name !== 'b') t.equal(calls.get(callId), name)
})

t.test('one that is back is swept at once, and gets calls after half a minute without a failure', async t => {
  const { away, calls, sweeps, turns, start, pass, move } = openPool({ a: 1, b: 1 })
  const [first, ...later] = callIds(400)
  await pass(4)
  away.add(start(first!)!)
  const lost = calls.get(first!)!
  await pass(12)
  move()
  t.not(calls.get(first!), lost)
  t.same(sweeps, [])
  away.delete(lost)
  await pass(3)
  t.same(sweeps, [lost])
  t.same(turns, [`${lost} network`, `${lost} back`])
  await pass(20)
  away.add(lost)
  await pass(3)
  away.delete(lost)
  await pass(28)
  const begun = later.splice(0, 100).map(start)
  t.notOk(begun.includes(lost), 'it failed once meanwhile')
  await pass(6)
  t.ok(later.map(start).includes(lost))
  t.not(calls.get(first!), lost, 'the call that went stays where it is')
})

t.test('with no other one the calls stay, and with one on probation they go there', async t => {
  const { away, calls, homeless, start, pass, move, choose } = openPool({ a: 1, b: 1 })
  const [callId, other] = callIds(2) as [CallId, CallId]
  await pass(4)
  const first = start(callId)!
  const second = first === 'a' ? 'b' : 'a'
  away.add('a').add('b')
  await pass(14)
  t.equal(homeless.size, 0)
  t.equal(choose(callId), first, 'it is asked again and again')
  calls.set(other, undefined)
  t.equal(choose(other), undefined)
  away.delete(second)
  await pass(3)
  move()
  t.equal(calls.get(callId), second)
  t.equal(choose(other), second)
})

t.test('one that drains keeps its calls and gets none; all drain: none gets any', async t => {
  const { pool, calls, gateways, homeless, start, pass, choose } = openPool({ a: 1, b: 1 })
  await pass(2)
  for (const callId of callIds(100)) start(callId)
  const before = gateways().get('a')
  const drain = (...names: string[]) =>
    pool.replace(pool.members.map(each => ({ ...each, isDraining: names.includes(each.host.name) })))
  drain('a')
  await pass(2)
  for (const callId of callIds(100, 500n)) t.equal(start(callId), 'b')
  t.same([gateways().get('a'), homeless.size], [before, 0])
  drain('a', 'b')
  calls.set(callIds(1, 900n)[0]!, undefined)
  t.equal(choose(callIds(1, 900n)[0]!), undefined)
})

t.test(
  'one that is gone from the list gives its calls away at once; a new one waits for half a minute',
  async t => {
    const { pool, calls, homeless, memberOf, pass, start, move } = openPool({ a: 1, b: 1 })
    await pass(2)
    for (const callId of callIds(100)) start(callId)
    const [kept] = pool.members.filter(({ host }) => host.name === 'b')
    pool.replace([kept!, memberOf('c', true)])
    const ofA = [...calls].filter(([, name]) => name === 'a')
    t.same([...homeless], ofA)
    move()
    t.same(new Set(calls.values()), new Set(['b']))
    await pass(28)
    t.ok(
      callIds(50, 500n).every(callId => start(callId) === 'b'),
      'another process may not know it yet',
    )
    await pass(6)
    t.ok(callIds(100, 700n).map(start).includes('c'))
  },
)

t.test('one that refuses the secrets gets no call, and keeps those that it has', async t => {
  const { pool, homeless, start, pass } = openPool({ a: 1, b: 1 })
  await pass(2)
  for (const callId of callIds(100)) start(callId)
  pool.of('a')!.health.tookSecrets(false)
  t.notOk(pool.of('a')!.health.isUp)
  await pass(20)
  t.equal(homeless.size, 0)
  t.ok(callIds(100, 500n).every(callId => start(callId) === 'b'))
  pool.of('a')!.health.tookSecrets(true)
  t.ok(callIds(100, 900n).map(start).includes('a'))
})

t.test('a look that hangs holds up no other look, and not the loss', async t => {
  const { pool, away, homeless, memberOf, start, pass } = openPool({ a: 1, b: 1 })
  const [callId] = callIds(1)
  const hanging = memberOf('a')
  let looks = 0
  const look = () => {
    looks++
    hanging.health.failed('timeout')
    return new Promise<void>(() => undefined)
  }
  pool.replace([memberOf('b'), { ...hanging, host: { ...hanging.host, look } }])
  away.add('b')
  t.equal(start(callId!), start(callId!))
  away.delete('b')
  await pass(14)
  t.equal(looks, 1)
  t.ok(pool.of('b')!.health.isUp)
  t.ok(pool.of('a')!.health.isLost)
  t.notOk([...homeless.values()].includes('b'))
})

t.test('a room is a stranger at every gateway but one: its call has it there', t => {
  const gateways = new Map<number, string | undefined>([
    [1, 'a'],
    [2, 'b'],
    [3, undefined],
  ])
  const index = {
    rooms: () =>
      [...gateways].map(([id, gateway]) => ({ callId: BigInt(id) as CallId, roomId: id, gateway })),
    callInRoom: (roomId: number) => (gateways.has(roomId) ? (BigInt(roomId) as CallId) : undefined),
    gatewayOf: (callId: CallId) => gateways.get(Number(callId)),
  }
  const atA = callsAt(index, 'a')
  t.same(
    [...atA.rooms()].map(({ roomId }) => roomId),
    [1, 3],
  )
  t.same([1, 2, 3, 4].map(atA.callInRoom), [1n, undefined, 3n, undefined])
  t.end()
})
