/** Followers: every change arrives once, in order, or the follower is sent for a snapshot. */

import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import type { LedgerChange, Position } from '../../../src/store/postgres/changes.ts'
import type { Follower, Following } from '../../../src/store/postgres/follower.ts'
import type { PostgresLedger } from '../../../src/store/postgres/ledger.ts'
import type { WriterState } from '../../../src/store/postgres/writer-row.ts'
import { CUTS, CuttingProxy } from '../../support/cutting-proxy.ts'
import { skipWithoutPostgres, startPostgres } from '../../support/postgres.ts'
import { acquireNext, bytesOf, openLedger } from '../../support/record.ts'
import { randomFrom, seedOf } from '../../support/seed.ts'
import { countOf, sized } from '../../support/size.ts'

const CHANGES = countOf('CALLSIGN_RECORD_CHANGES', { short: 150, long: 400 })
const START: Position = { number: 0, epoch: 0 }

/** Keeps the changes that a follower brings. */
class Taken {
  readonly changes: LedgerChange[] = []
  readonly portions: number[] = []
  #waiting: { readonly count: number; readonly resolve: () => void } | undefined

  readonly onChanges = (changes: readonly LedgerChange[]): void => {
    this.changes.push(...changes)
    this.portions.push(changes.length)
    if (this.#waiting !== undefined && this.changes.length >= this.#waiting.count) this.#waiting.resolve()
  }

  /** Resolves when so many have come. */
  atLeast(count: number): Promise<void> {
    return new Promise(resolve => {
      if (this.changes.length >= count) resolve()
      else this.#waiting = { count, resolve }
    })
  }

  get texts(): string[] {
    return this.changes.map(({ number, epoch, body }) => `${number} ${epoch} ${body}`)
  }
}

t.test('followers', sized({ skip: skipWithoutPostgres }), async t => {
  const server = await startPostgres(t)

  t.test('changes arrive in order, from where the follower stands, in portions that fit', async t => {
    const url = await server.newDatabase()
    const record = await openLedger(t, url)
    const lease = await acquireNext(record)
    const bodies = Array.from({ length: 10 }, (_, at) => Buffer.alloc(10_000, 0x61 + at))
    await lease.append(1, bodies)
    const taken = new Taken()
    const follower = record.follow({ after: START, onChanges: taken.onChanges, portionBytesMax: 35_000 })
    await taken.atLeast(10)
    t.same(
      taken.texts,
      bodies.map((body, at) => `${at + 1} ${lease.epoch} ${body}`),
    )
    t.same(taken.portions, [4, 4, 2])
    await lease.append(11, [bytesOf('eleven')])
    await taken.atLeast(11)
    await follower.close()
    t.same(follower.position, { number: 11, epoch: lease.epoch })

    const later = new Taken()
    record.follow({ after: { number: 10, epoch: lease.epoch }, onChanges: later.onChanges })
    await later.atLeast(1)
    t.same(later.texts, [`11 ${lease.epoch} eleven`])
  })

  t.test('no more changes come before the ones before are taken', async t => {
    const record = await openLedger(t, await server.newDatabase())
    const lease = await acquireNext(record)
    const started: number[] = []
    let release: () => void = () => {}
    let onStarted: () => void = () => {}
    const first = new Promise<void>(resolve => {
      onStarted = resolve
    })
    const follower = record.follow({
      after: START,
      onChanges: changes => {
        started.push(...changes.map(({ number }) => number))
        onStarted()
        return new Promise(resolve => {
          release = resolve
        })
      },
    })
    await lease.append(1, [bytesOf('a')])
    await first
    const other = new Taken()
    record.follow({ after: START, onChanges: other.onChanges })
    await lease.append(2, [bytesOf('b')])
    await other.atLeast(2)
    t.same(started, [1])
    t.equal(follower.position.number, 0)
    const second = new Promise<void>(resolve => {
      onStarted = resolve
    })
    release()
    await second
    t.same(started, [1, 2])
    release()
  })

  t.test('a follower is current once it has taken what a poll found', async t => {
    const record = await openLedger(t, await server.newDatabase())
    const lease = await acquireNext(record)
    for (const number of [1, 2, 3]) await lease.append(number, [bytesOf('a')])
    const seen: (number | undefined)[] = []
    const taken = new Taken()
    const follower = record.follow({
      after: START,
      portionBytesMax: 1,
      onChanges: changes => {
        seen.push(follower.currentAtMs)
        taken.onChanges(changes)
      },
    })
    await taken.atLeast(3)
    t.same(seen, [undefined, undefined, undefined])
    while (follower.currentAtMs === undefined) await setImmediate()
    t.ok(follower.currentAtMs <= performance.now())
  })

  t.test('what takes the changes fails: the follower ends with it', async t => {
    const record = await openLedger(t, await server.newDatabase())
    const lease = await acquireNext(record)
    const onChanges = () => Promise.reject(new Error('no room'))
    const follower = record.follow({ after: START, onChanges })
    await Promise.all([t.rejects(follower.ended, /no room/), lease.append(1, [bytesOf('a')])])
  })

  t.test('a follower hears who writes, and when PostgreSQL last answered', async t => {
    const url = await server.newDatabase()
    const [record, front] = [await openLedger(t, url), await openLedger(t, url)]
    const states: WriterState[] = []
    let onState: () => void = () => {}
    const follower = front.follow({
      after: START,
      onChanges: () => {},
      onWriter: state => {
        states.push(state)
        onState()
      },
    })
    const until = async (isSo: (state: WriterState) => boolean) => {
      while (!states.some(isSo))
        await new Promise<void>(resolve => {
          onState = resolve
        })
    }
    await until(({ holder }) => holder === undefined)
    const heardAtMs = follower.heardAtMs!
    t.equal(follower.currentAtMs, heardAtMs, 'it has all that there is')
    t.ok(heardAtMs <= performance.now())
    const lease = await acquireNext(record)
    await until(({ holder, epoch }) => holder?.name === 'one' && epoch === lease.epoch)
    t.ok(follower.heardAtMs! > heardAtMs)
    await lease.append(1, [bytesOf('a')])
    await until(({ last }) => last === 1)
    states.length = 0
    await lease.release()
    await until(({ holder, last }) => holder === undefined && last === 1)
  })

  t.test('a follower starts anew where its changes are gone or differ', async t => {
    const url = await server.newDatabase()
    const record = await openLedger(t, url, { changesKeptMs: 0 })
    const lease = await acquireNext(record)
    const { epoch } = lease
    await lease.append(1, ['a', 'b', 'c', 'd'].map(bytesOf))
    t.match(await endOf(record, { number: 5, epoch }), { kind: 'startAnew', reason: /ends with change 4/ })
    t.match(await endOf(record, { number: 4, epoch: epoch - 1 }), {
      kind: 'startAnew',
      reason: /another one/,
    })
    for (let number = 1; number <= 4; number++) lease.rowsBehind.add(number, [])
    await lease.rowsBehind.settle()
    t.match(await endOf(record, { number: 2, epoch }), {
      kind: 'startAnew',
      reason: /no longer has change 2/,
    })
    t.match(await endOf(record, START), { kind: 'startAnew', reason: /change 1 is missing/ })
    const taken = new Taken()
    await lease.append(5, [bytesOf('e')])
    record.follow({ after: { number: 4, epoch }, onChanges: taken.onChanges })
    await taken.atLeast(1)
    t.same(taken.texts, [`5 ${epoch} e`], 'the newest change is kept')
  })

  t.test('each change arrives once, through cut connections and restarts of PostgreSQL', async t => {
    const seed = seedOf()
    const random = randomFrom(seed)
    const url = await server.newDatabase()
    const proxy = await CuttingProxy.open(t, server.port)
    const record = await openLedger(t, url, { leaseMs: 60_000 })
    const front = await openLedger(t, url.replace(`:${server.port}`, `:${proxy.port}`))
    const lease = await acquireNext(record)
    const taken = new Taken()
    const following: Following = { after: START, onChanges: taken.onChanges, portionBytesMax: 40 }
    const follower = front.follow(following)
    const expected: string[] = []
    for (let number = 1; number <= CHANGES; ) {
      const count = Math.min(1 + Math.floor(random() * 4), CHANGES + 1 - number)
      const bodies = Array.from({ length: count }, (_, at) => `change ${number + at}`)
      await lease.append(number, bodies.map(bytesOf))
      for (const body of bodies) expected.push(`${number++} ${lease.epoch} ${body}`)
      const what = random()
      if (what < 0.02) proxy.cutAll()
      else if (what < 0.1) {
        const statement = ['read_changes', 'writer_and', 'listen'][Math.floor(random() * 3)]!
        proxy.arm(statement, CUTS[Math.floor(random() * 3)]!)
      } else if (what < 0.11) {
        await server.kill()
        await server.start()
      } else if (what < 0.3) await taken.atLeast(number - 1)
    }
    await taken.atLeast(CHANGES)
    t.same(taken.texts, expected, `CALLSIGN_SEED=${seed}`)
    await follower.close()
    t.same(await follower.ended, { kind: 'closed' })
  })
})

function endOf(record: PostgresLedger, after: Position): Promise<unknown> {
  const follower: Follower = record.follow({ after, onChanges: () => {} })
  return follower.ended
}
