/** Rows behind the changes: always those of some change, as a snapshot with its number shows them. */

import t from 'tap'
import type { WrittenRow } from '../../../src/store/engine/change-ledger.ts'
import type { StoredRow } from '../../../src/store/postgres/snapshot.ts'
import type { WriteLease } from '../../../src/store/postgres/write-lease.ts'
import { decodeRows, encodeRows } from '../../../src/store/postgres/written-rows.ts'
import { type PostgresServer, skipWithoutPostgres, startPostgres } from '../../support/postgres.ts'
import { acquireNext, bytesOf, openLedger, RowModel, rowsIn } from '../../support/record.ts'
import { randomFrom, seedOf } from '../../support/seed.ts'
import { countOf, sized } from '../../support/size.ts'

const CHANGES = countOf('CALLSIGN_RECORD_CHANGES', { short: 150, long: 400 })
const NEVER_MS = 1_000_000

t.test('rows behind', sized({ skip: skipWithoutPostgres }), async t => {
  const server = await startPostgres(t)

  t.test('of a row that many changes write, one value is kept and written', async t => {
    const url = await server.newDatabase()
    const lease = await acquireNext(await openLedger(t, url, { rowsEveryMs: NEVER_MS }))
    const model = new RowModel()
    for (let number = 1; number <= 100; number++) {
      await write(lease, model, number, [
        put('inbox', 'head', String(number)),
        put('inbox', `${number % 7}`, 'm'),
      ])
    }
    t.equal(lease.rowsBehind.waiting, 8)
    t.same(await rowsIn(server, url), [])
    await write(lease, model, 101, [remove('inbox', '3'), remove('inbox', 'none'), put('calls', '3', '')])
    await lease.rowsBehind.settle()
    t.equal(lease.rowsBehind.waiting, 0)
    t.equal(lease.rowsBehind.applied, 101)
    t.same(await rowsIn(server, url), model.rows)
    await write(lease, model, 102, [remove('calls', '3'), put('calls', '4', 'x')])
    await lease.rowsBehind.settle()
    t.same(await rowsIn(server, url), model.rows)
  })

  t.test('a new writer catches up with the changes whose rows the one before did not write', async t => {
    const url = await server.newDatabase()
    const one = await openLedger(t, url, { rowsEveryMs: NEVER_MS, leaseMs: 100 })
    const lease = await acquireNext(one)
    const model = new RowModel()
    await write(lease, model, 1, [put('calls', 'a', '1'), put('calls', 'b', '1')])
    await lease.rowsBehind.settle()
    await write(lease, model, 2, [put('calls', 'a', '2'), remove('calls', 'b')])
    await write(lease, model, 3, [put('calls', 'c', '3')])
    const next = await acquireNext(await openLedger(t, url, { rowsEveryMs: NEVER_MS }))
    await write(next, model, 4, [put('calls', 'a', '4')])
    t.equal(next.rowsBehind.waiting, 1)
    await next.rowsBehind.settle()
    t.equal(next.rowsBehind.applied, 4)
    t.same(await rowsIn(server, url), model.rows)
    await t.rejects(lease.rowsBehind.settle(), { name: 'LeaseLost' }, 'the one before writes none any more')
    t.same(await rowsIn(server, url), model.rows)
  })

  t.test(
    'a lease whose rows another one writes writes none, with a new connection or an old one',
    async t => {
      const url = await server.newDatabase()
      const model = new RowModel()
      const one = await acquireNext(await openLedger(t, url, { rowsEveryMs: NEVER_MS, leaseMs: 100 }))
      await write(one, model, 1, [put('calls', 'a', '1')])
      const two = await acquireNext(await openLedger(t, url, { rowsEveryMs: NEVER_MS }))
      await two.rowsBehind.settle()
      await t.rejects(one.rowsBehind.settle(), { name: 'LeaseLost' })
      await write(two, model, 2, [put('calls', 'b', '2')])
      await two.rowsBehind.settle()
      t.same(await rowsIn(server, url), model.rows)
      await two.append(3, [encodeRows([put('calls', 'c', '3')])])
      two.rowsBehind.add(3, [put('calls', 'c', '3')])
      await server.query(url, 'update callsign.applied set epoch = epoch + 1')
      await t.rejects(two.rowsBehind.settle(), { name: 'LeaseLost' })
      t.same(await rowsIn(server, url), model.rows)
    },
  )

  t.test('PostgreSQL fails while rows are written: they are read back from the changes', async t => {
    const url = await server.newDatabase()
    let onFailure: () => void = () => {}
    const failed = new Promise<void>(resolve => {
      onFailure = resolve
    })
    const record = await openLedger(t, url, { rowsEveryMs: 20, leaseMs: 60_000, onFailure })
    const lease = await acquireNext(record)
    const model = new RowModel()
    await write(lease, model, 1, [put('calls', 'a', '1')])
    await lease.rowsBehind.settle()
    await server.kill()
    await failed
    await t.rejects(lease.rowsBehind.settle(), { code: 'STORE_UNAVAILABLE' })
    await server.start()
    await write(lease, model, 2, [put('calls', 'a', '2')])
    await lease.rowsBehind.settle()
    t.equal(lease.rowsBehind.applied, 2)
    t.same(await rowsIn(server, url), model.rows)
  })

  t.test('a snapshot beside a writer, and the changes behind it, are the rows', async t => {
    const seed = seedOf()
    const random = randomFrom(seed)
    const url = await server.newDatabase()
    const record = await openLedger(t, url, { rowsEveryMs: 5 })
    const front = await openLedger(t, url)
    const lease = await acquireNext(record)
    const model = new RowModel()
    const copies: Promise<{ copy: RowModel; follow: Promise<void> }>[] = []
    for (let number = 1; number <= CHANGES; number++) {
      const rows = Array.from({ length: Math.floor(random() * 6) }, () => {
        const [table, key] = [`table${Math.floor(random() * 5)}`, `${Math.floor(random() * 400)}`]
        return random() < 0.3
          ? remove(table, key)
          : put(table, key, `${number} ${'v'.repeat(random() * 300)}`)
      })
      await write(lease, model, number, rows)
      if (number % Math.floor(CHANGES / 4) === 1) copies.push(copyAndFollow())
    }
    async function copyAndFollow() {
      const copy = new RowModel()
      const position = await front.snapshot(rows => copy.add(rows))
      const follow = new Promise<void>(resolve => {
        if (position.number === CHANGES) resolve()
        front.follow({
          after: position,
          onChanges: changes => {
            for (const { body } of changes) copy.add(decodeRows(body))
            if (changes.at(-1)!.number === CHANGES) resolve()
          },
        })
      })
      return { copy, follow }
    }
    for (const { copy, follow } of await Promise.all(copies)) {
      await follow
      t.same(copy.rows, model.rows, `CALLSIGN_SEED=${seed}`)
    }
    await lease.rowsBehind.settle()
    t.same(await rowsIn(server, url), model.rows)
  })

  t.test('a snapshot of more rows than a portion has is whole, and of one moment', async t => {
    const url = await server.newDatabase()
    const record = await openLedger(t, url, { rowsEveryMs: NEVER_MS })
    const lease = await acquireNext(record)
    const model = new RowModel()
    await write(
      lease,
      model,
      1,
      Array.from({ length: 3_000 }, (_, at) => put('calls', `${at}`, `value ${at}`)),
    )
    await lease.rowsBehind.settle()
    const before = model.rows
    const copy = new RowModel()
    let portions = 0
    const position = await record.snapshot(async (rows: readonly StoredRow[]) => {
      portions += 1
      copy.add(rows)
      await write(lease, model, portions + 1, [
        put('calls', '2999', 'later'),
        put('calls', `new ${portions}`, ''),
      ])
      await lease.rowsBehind.settle()
    })
    t.same(position, { number: 1, epoch: lease.epoch })
    t.ok(portions > 1)
    t.same(copy.rows, before)
    t.same(await rowsIn(server, url), model.rows)
  })

  t.test('changes are deleted when they are old and their rows are written', async t => {
    const url = await server.newDatabase()
    const record = await openLedger(t, url, { rowsEveryMs: NEVER_MS, changesKeptMs: 60_000 })
    const lease = await acquireNext(record)
    const model = new RowModel()
    for (let number = 1; number <= 2_500; number += 500) {
      const rows = Array.from({ length: 500 }, (_, at) => [put('calls', `${number + at}`, 'x')])
      await lease.append(number, rows.map(encodeRows))
      for (const [at, each] of rows.entries()) lease.rowsBehind.add(number + at, each)
      model.add(rows.flat())
    }
    await age(server, url, 2_300)
    await lease.append(2_501, [encodeRows([])])
    await lease.rowsBehind.settle()
    t.same(await numbersOf(server, url), [2_300, 2_501], 'from the newest old one on')
    await age(server, url, 2_501)
    await lease.append(2_502, [encodeRows([])])
    await lease.rowsBehind.settle()
    t.same(await numbersOf(server, url), [2_500, 2_502], 'rows of 2501 are not written yet')
    t.same(await rowsIn(server, url), model.rows)
  })
})

function put(table: string, key: string, value: string): WrittenRow {
  return { table, key: bytesOf(key), value: bytesOf(value) }
}

function remove(table: string, key: string): WrittenRow {
  return { table, key: bytesOf(key), value: undefined }
}

async function write(
  lease: WriteLease,
  model: RowModel,
  number: number,
  rows: readonly WrittenRow[],
): Promise<void> {
  await lease.append(number, [encodeRows(rows)])
  lease.rowsBehind.add(number, rows)
  model.add(rows)
}

async function age(server: PostgresServer, url: string, upTo: number): Promise<void> {
  await server.query(url, `update callsign.changes set at = at - interval '2 minutes' where number <= $1`, [
    upTo,
  ])
}

/** The first and the last. */
async function numbersOf(server: PostgresServer, url: string): Promise<number[]> {
  const [row] = await server.query<{ first: number; last: number }>(
    url,
    'select min(number)::integer as first, max(number)::integer as last from callsign.changes',
  )
  return [row!.first, row!.last]
}
