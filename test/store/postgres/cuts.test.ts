/**
 * Appends through failures: whatever becomes of the connection, or of PostgreSQL, the ledger has each change once that a
 * writer was told is there, in order, and none that a writer was told is not.
 *
 * `CALLSIGN_RECORD_CUTS` is the number of cut connections.
 */

import t from 'tap'
import { assert } from '../../../src/errors.ts'
import { LeaseLost } from '../../../src/store/postgres/failure.ts'
import type { PostgresLedger } from '../../../src/store/postgres/ledger.ts'
import type { WriteLease } from '../../../src/store/postgres/write-lease.ts'
import { CUTS, CuttingProxy } from '../../support/cutting-proxy.ts'
import { type PostgresServer, skipWithoutPostgres, startPostgres } from '../../support/postgres.ts'
import { acquireNext, bytesOf, changesIn, openLedger } from '../../support/record.ts'
import { randomFrom, seedOf } from '../../support/seed.ts'
import { countOf, long } from '../../support/size.ts'

const CUTS_WANTED = countOf('CALLSIGN_RECORD_CUTS', { short: 8, long: 24 })

/** The outcomes that writers were given. */
class Told {
  readonly #written = new Map<string, number>()
  readonly #refused = new Set<string>()
  readonly #unknown = new Set<string>()
  readonly #reasons: string[] = []
  #count = 0
  #waiting: { readonly count: number; readonly resolve: () => void } | undefined

  /** Appends some changes and keeps the outcome. Returns whether the lease goes on. */
  async append(lease: WriteLease, last: number, count: number): Promise<boolean> {
    const bodies = Array.from({ length: count }, () => `body ${++this.#count}`)
    try {
      await lease.append(last + 1, bodies.map(bytesOf))
      for (const [at, body] of bodies.entries()) this.#written.set(body, last + 1 + at)
      if (this.#waiting !== undefined && this.written >= this.#waiting.count) this.#waiting.resolve()
      return true
    } catch (error) {
      if (!(error instanceof LeaseLost)) throw error
      this.#reasons.push(error.message)
      for (const body of bodies) (error.outcome === 'unknown' ? this.#unknown : this.#refused).add(body)
      return false
    }
  }

  /** Why leases were lost. */
  get reasons(): readonly string[] {
    return this.#reasons
  }

  get written(): number {
    return this.#written.size
  }

  /** Resolves when so many are written. */
  atLeast(count: number): Promise<void> {
    return new Promise(resolve => {
      this.#waiting = { count, resolve }
    })
  }

  /** Contradictions between the ledger and the outcomes. */
  async faults(server: PostgresServer, url: string): Promise<string[]> {
    const faults: string[] = []
    const numbers = new Map<string, number>()
    for (const [at, { number, body }] of (await changesIn(server, url)).entries()) {
      if (number !== at + 1) faults.push(`number ${number} at ${at + 1}`)
      if (numbers.has(body)) faults.push(`${body} is there twice`)
      if (this.#refused.has(body)) faults.push(`${body} is there, and was refused`)
      numbers.set(body, number)
    }
    for (const [body, number] of this.#written) {
      if (numbers.get(body) !== number) faults.push(`${body} is not at ${number}`)
    }
    const known = this.#written.size + this.#unknown.size
    if (numbers.size > known) faults.push(`${numbers.size} changes, at most ${known} expected`)
    return faults
  }
}

t.test('appends through failures', long({ skip: skipWithoutPostgres }), async t => {
  const server = await startPostgres(t)

  for (const cut of CUTS) {
    t.test(`a connection that is cut (${cut}) in an append: the change is there once`, async t => {
      const url = await server.newDatabase()
      const proxy = await CuttingProxy.open(t, server.port)
      const lease = await acquireNext(await openLedger(t, through(proxy, url)))
      const told = new Told()
      for (let number = 1; number <= 5; number++) {
        if (number % 2 === 0) proxy.arm('append', cut)
        t.ok(await told.append(lease, number - 1, 1), `append ${number}`)
      }
      t.equal(proxy.cuts, 2)
      t.same(await told.faults(server, url), [])
      proxy.arm('set_head', cut)
      await lease.setHead(undefined, bytesOf('first'))
      await lease.setHead(bytesOf('first'), bytesOf('second'))
      t.equal(proxy.cuts, 3)
    })
  }

  t.test('nodes that lose connections and leases to each other', async t => {
    const seed = seedOf()
    const random = randomFrom(seed)
    const url = await server.newDatabase()
    const told = new Told()
    let cuts = 0
    const nodes = await Promise.all(
      ['one', 'two', 'three'].map(async name => {
        const proxy = await CuttingProxy.open(t, server.port)
        const node = { name, address: `${name}:1`, version: '1' }
        return { proxy, record: await openLedger(t, through(proxy, url), { node, leaseMs: 250 }) }
      }),
    )
    const write = async ({ proxy, record }: (typeof nodes)[number]) => {
      while (cuts < CUTS_WANTED) {
        const lease = await acquired(record)
        for (let last = lease?.last ?? 0, goesOn = lease !== undefined; goesOn && cuts < CUTS_WANTED; ) {
          assert(lease !== undefined, 'a lease goes on')
          if (random() < 0.1) {
            proxy.arm('append', CUTS[Math.floor(random() * CUTS.length)]!)
            cuts += 1
          }
          const count = 1 + Math.floor(random() * 3)
          goesOn = await told.append(lease, last, count)
          if (goesOn) last += count
          if (random() < 0.3) await lease.renew().catch(() => {})
        }
      }
    }
    await Promise.all(nodes.map(write))
    await Promise.all(nodes.map(({ record }) => record.close()))
    t.same(await told.faults(server, url), [], `CALLSIGN_SEED=${seed}`)
    t.ok(told.written > CUTS_WANTED, `${told.written} changes`)
  })

  t.test('PostgreSQL is killed and started again in the middle of appends', async t => {
    const url = await server.newDatabase()
    const lease = await acquireNext(await openLedger(t, url, { leaseMs: 60_000 }))
    const told = new Told()
    let isOver = false
    const writing = (async () => {
      for (let last = 0; !isOver && !lease.isLost; last++) await told.append(lease, last, 1)
    })()
    for (let kills = 0; kills < 2; kills++) {
      await Promise.race([told.atLeast(told.written + 50), writing])
      await server.kill()
      await server.start()
    }
    isOver = true
    await writing
    t.same(told.reasons, [])
    t.same(await told.faults(server, url), [])
  })

  t.test('an append that stays unknown until its lease has run out is final', async t => {
    const url = await server.newDatabase()
    const lease = await acquireNext(await openLedger(t, url, { leaseMs: 500 }))
    await lease.append(1, [bytesOf('a')])
    await server.kill()
    await t.rejects(lease.append(2, [bytesOf('b')]), { name: 'LeaseLost' })
    t.ok(performance.now() >= lease.lastsUntilMs)
    await server.start()
    await t.rejects(lease.append(2, [bytesOf('b')]), { name: 'LeaseLost', outcome: 'not written' })
  })
})

function through(proxy: CuttingProxy, url: string): string {
  const { pathname, username, password } = new URL(url)
  return `postgres://${username}:${password}@127.0.0.1:${proxy.port}${pathname}`
}

/** Undefined too where the connection was cut. */
async function acquired(record: PostgresLedger): Promise<WriteLease | undefined> {
  return await record.acquire().catch(() => undefined)
}
