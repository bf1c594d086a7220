/**
 * Filling a node takes longer than changes are kept: here each change is old at once, and every portion of the rows takes as long
 * as some changes and the deletion of the old ones.
 */

import t, { type Test } from 'tap'
import { assert } from '../../../src/errors.ts'
import type { WrittenRow } from '../../../src/store/engine/change-ledger.ts'
import type { Position } from '../../../src/store/postgres/changes.ts'
import type { PostgresLedger, PostgresLedgerDeps } from '../../../src/store/postgres/ledger.ts'
import type { StoredRow } from '../../../src/store/postgres/snapshot.ts'
import type { WriteLease } from '../../../src/store/postgres/write-lease.ts'
import { decodeRows, encodeRows } from '../../../src/store/postgres/written-rows.ts'
import { CUTS, CuttingProxy } from '../../support/cutting-proxy.ts'
import { type PostgresServer, skipWithoutPostgres, startPostgres } from '../../support/postgres.ts'
import { acquireNext, bytesOf, openLedger, RowModel, rowsIn } from '../../support/record.ts'
import { sized } from '../../support/size.ts'

const NEVER_MS = 3_600_000
const PORTIONS = 4

/** A writer that keeps no change longer than it must, and the rows of its ledger. */
class Writing {
  readonly url: string
  readonly model = new RowModel()
  last = 0
  readonly #server: PostgresServer
  readonly #lease: WriteLease
  /** The change before. */
  #turn = Promise.resolve()

  private constructor(server: PostgresServer, url: string, lease: WriteLease) {
    this.url = url
    this.#server = server
    this.#lease = lease
  }

  /** With rows for so many portions of a snapshot. */
  static async begin(t: Test, server: PostgresServer): Promise<Writing> {
    const url = await server.newDatabase()
    const ledger = await openLedger(t, url, {
      rowsEveryMs: NEVER_MS,
      changesKeptMs: 0,
      leaseMs: NEVER_MS,
    })
    const writing = new Writing(server, url, await acquireNext(ledger))
    const keys = Array.from({ length: PORTIONS * 500 }, (_, at) => `${at}`.padStart(4, '0'))
    await writing.change(keys.map(key => put(key, 'before')))
    return writing
  }

  /** Writes a change and its rows, and deletes old changes. */
  change(rows: readonly WrittenRow[] = [put('0000', `${this.last}`)]): Promise<void> {
    this.#turn = this.#turn.then(() => this.#change(rows))
    return this.#turn
  }

  async #change(rows: readonly WrittenRow[]): Promise<void> {
    this.last += 1
    await this.#lease.append(this.last, [encodeRows(rows)])
    this.#lease.rowsBehind.add(this.last, rows)
    this.model.add(rows)
    await this.#lease.rowsBehind.settle()
  }

  get heldBack(): number {
    return this.#lease.rowsBehind.heldBack
  }

  /** The first change that is there. */
  async first(): Promise<number> {
    const [row] = await this.#server.query<{ first: number }>(
      this.url,
      'select min(number)::integer as first from callsign.changes',
    )
    return row!.first
  }

  async holds(): Promise<number> {
    return (await this.#server.query(this.url, 'select from callsign.holds')).length
  }

  /** As if so much time had passed. */
  async passHolds(seconds: number): Promise<void> {
    await this.#server.query(
      this.url,
      'update callsign.holds set ends = ends - $1::integer * interval $$1 second$$',
      [seconds],
    )
  }
}

t.test('a fill that takes longer than changes are kept', sized({ skip: skipWithoutPostgres }), async t => {
  const server = await startPostgres(t)

  t.test('ends, and its copy is the ledger', async t => {
    const writing = await Writing.begin(t, server)
    const filler = await openFiller(t, writing.url)
    const { copy, position } = await fill(filler, () => writing.change())
    t.same(position.number, 1)
    t.equal(writing.last, 1 + PORTIONS)
    t.equal(await writing.first(), 1, 'its changes are kept')
    t.equal(writing.heldBack, PORTIONS)
    await catchUp(filler, copy, position, writing.last)
    t.same(copy.rows, writing.model.rows)
    t.same(await rowsIn(server, writing.url), writing.model.rows)
    t.equal(await writing.holds(), 0)
    await writing.change()
    t.equal(await writing.first(), writing.last, 'then they are deleted')
    t.equal(writing.heldBack, 0)
  })

  t.test('keeps its hold for as long as rows come, and for the changes behind them', async t => {
    const writing = await Writing.begin(t, server)
    let nowMs = 0
    const filler = await openFiller(t, writing.url, { monotonicMs: () => nowMs })
    const passMinute = async () => {
      await writing.change()
      await writing.passHolds(60)
      nowMs += 60_000
    }
    const { copy, position } = await fill(filler, passMinute)
    t.equal(await writing.first(), 1)
    await passMinute()
    await catchUp(filler, copy, position, writing.last)
    t.same(copy.rows, writing.model.rows)
  })

  t.test('of a process that is killed holds for two minutes more at most', async t => {
    const writing = await Writing.begin(t, server)
    const killed = await openFiller(t, writing.url)
    await t.rejects(
      fill(killed, () => Promise.reject(new Error('killed'))),
      /killed/,
    )
    await killed.close()
    await writing.change()
    t.equal(await writing.first(), 1)
    await writing.passHolds(120)
    await writing.change()
    t.equal(await writing.first(), writing.last)
    const { copy, position } = await fill(await openFiller(t, writing.url), () => writing.change())
    t.equal(position.number, 3)
    t.equal(await writing.holds(), 1, 'the next filler removes what is over')
    t.ok(copy.rows.length > 0)
  })

  t.test('beside another one: each keeps what it needs', async t => {
    const writing = await Writing.begin(t, server)
    const [early, late] = [await openFiller(t, writing.url), await openFiller(t, writing.url)]
    const second: { filled?: Promise<Filled> } = {}
    const first = await fill(early, async () => {
      await writing.change()
      second.filled ??= fill(late, () => writing.change())
    })
    const { copy, position } = await second.filled!
    t.equal(first.position.number, 1)
    t.ok(position.number > 1)
    await catchUp(early, first.copy, first.position, writing.last)
    await writing.change()
    t.ok((await writing.first()) <= position.number, 'the other one still needs them')
    t.ok((await writing.first()) > 1)
    await catchUp(late, copy, position, writing.last)
    t.same(copy.rows, writing.model.rows)
    await writing.change()
    t.equal(await writing.first(), writing.last)
  })

  t.test('goes on where the connection of its hold is lost, and can begin anew after its own', async t => {
    const writing = await Writing.begin(t, server)
    const proxy = await CuttingProxy.open(t, server.port)
    let nowMs = 0
    const url = writing.url.replace(`:${server.port}`, `:${proxy.port}`)
    const failures: unknown[] = []
    const filler = await openFiller(t, url, {
      monotonicMs: () => nowMs,
      onFailure: error => failures.push(error),
    })
    for (const cut of CUTS) {
      const { copy, position } = await fill(filler, async () => {
        await writing.change()
        nowMs += 60_000
        proxy.arm('hold_changes', cut)
      })
      await catchUp(filler, copy, position, writing.last)
      t.same(copy.rows, writing.model.rows, cut)
    }
    t.ok(proxy.cuts >= CUTS.length)
    t.match(failures, Array(failures.length).fill({ code: 'STORE_UNAVAILABLE' }))
    await t.rejects(
      fill(filler, async () => proxy.cutAll()),
      { code: 'STORE_UNAVAILABLE' },
    )
    await writing.change()
    const { copy, position } = await fill(filler, () => writing.change())
    await catchUp(filler, copy, position, writing.last)
    t.same(copy.rows, writing.model.rows)
  })

  t.test('a follower that lacks changes keeps them until it has caught up', async t => {
    const writing = await Writing.begin(t, server)
    const filler = await openFiller(t, writing.url)
    const { copy, position } = await fill(filler, async () => {})
    for (let count = 0; count < 10; count++) await writing.change()
    await filler.close()
    const again = await openFiller(t, writing.url, { node: { name: 'three', address: '', version: '' } })
    let portions = 0
    await catchUp(again, copy, position, writing.last + 1, async () => {
      if (++portions > 1) return
      await server.query(writing.url, `delete from callsign.holds where node = 'two'`)
      await writing.change()
    })
    t.ok(portions > 1)
    t.same(copy.rows, writing.model.rows)
  })
})

function openFiller(t: Test, url: string, deps: Partial<PostgresLedgerDeps> = {}): Promise<PostgresLedger> {
  return openLedger(t, url, { node: { name: 'two', address: '127.0.0.1:2', version: '0.1.0' }, ...deps })
}

interface Filled {
  readonly copy: RowModel
  readonly position: Position
}

/** A new copy; each portion of its rows takes as long as `act`. */
async function fill(filler: PostgresLedger, act: () => Promise<void>): Promise<Filled> {
  const copy = new RowModel()
  const position = await filler.snapshot(async (rows: readonly StoredRow[]) => {
    copy.add(rows)
    await act()
  })
  return { copy, position }
}

/** Resolves when the copy has the change `until` and its follower is current. */
async function catchUp(
  filler: PostgresLedger,
  copy: RowModel,
  after: Position,
  until: number,
  act: () => Promise<void> = async () => {},
): Promise<void> {
  let isCurrent = false
  const end = await new Promise<unknown>((resolve, reject) => {
    const follower = filler.follow({
      after,
      portionBytesMax: 1,
      onChanges: async changes => {
        for (const { body } of changes) copy.add(decodeRows(body))
        await act()
      },
      // A poll is asked when the one before has been dealt with.
      onWriter: () => {
        if (isCurrent && follower.position.number >= until) return resolve(undefined)
        isCurrent = follower.currentAtMs !== undefined
        setImmediate(() => follower.poll())
      },
    })
    follower.ended.then(resolve, reject)
  })
  assert(end === undefined, 'a follower goes on')
}

function put(key: string, value: string): WrittenRow {
  return { table: 'calls', key: bytesOf(key), value: bytesOf(value) }
}
