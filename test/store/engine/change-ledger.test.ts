/** A store whose changes go into a ledger first: what the ledger has taken is in it, and in every copy, byte for byte. */

import { join } from 'node:path'
import t, { type Test } from 'tap'
import {
  type ChangeLedger,
  type LedgerChange,
  NotInLedgerError,
  type WrittenRow,
} from '../../../src/store/engine/change-ledger.ts'
import { readChangedRows } from '../../../src/store/engine/changed-rows.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { walkPages } from '../../../src/store/engine/page-walk.ts'
import type { Change } from '../../../src/store/engine/store.ts'
import { WatchedCache } from '../../../src/store/engine/watched-cache.ts'
import { plainBytesTable, plainTable, plainTextKeyTable } from '../../support/plain-tables.ts'
import { randomFrom, seedOf } from '../../support/seed.ts'
import { countOf, sized } from '../../support/size.ts'

const RECORDS = plainTable<unknown>('recorded-records', [['a', 'b']])
const BYTES = plainBytesTable('recorded-bytes')
const TEXTS = plainTextKeyTable<number>('recorded-texts')
const COUNTERS = plainTextKeyTable<number>('recorded-counters')
const KEYS = Array.from({ length: 8 }, (_, at) => Buffer.from([at, 200 + at]))
const ROUNDS = countOf('CALLSIGN_RECORD_ROUNDS', { short: 20, long: 60 })

/** Keeps changes in memory, in the form in which they leave the process, and refuses when it is told to. */
class MemoryRecord implements ChangeLedger {
  readonly epoch = 3
  readonly changes: LedgerChange[] = []
  outcome: 'taken' | 'not taken' | 'lost' = 'taken'

  append(changes: readonly LedgerChange[]): Promise<void> {
    if (this.outcome === 'not taken') return Promise.reject(new NotInLedgerError('it is away'))
    if (this.outcome === 'lost') return Promise.reject(new Error('another node is the writer'))
    this.changes.push(...structuredClone(changes))
    return Promise.resolve()
  }
}

function openRecorded(t: Test, options: Parameters<typeof LmdbStore.open>[1] = {}, folder = t.testdir()) {
  const database = LmdbStore.open(folder, { ...options, hasLedger: true })
  t.teardown(() => database.close())
  return { database, folder }
}

/** Every row of every table, as LMDB has it; without how far the copy has come. */
function rowsOf(database: LmdbStore): string[] {
  return database
    .tableNames()
    .filter(name => name !== 'copy-state')
    .flatMap(name =>
      [...database.storedRows(name).getRange()].map(
        ({ key, value }) =>
          `${name} ${Buffer.from(key).toString('hex')} ${Buffer.from(value).toString('hex')}`,
      ),
    )
    .toSorted()
}

function snapshotOf(database: LmdbStore): WrittenRow[] {
  return database
    .tableNames()
    .filter(name => name !== 'copy-state')
    .flatMap(table =>
      [...database.storedRows(table).getRange()].map(({ key, value }) => ({
        table,
        key: Uint8Array.from(key as Uint8Array),
        value: Uint8Array.from(value),
      })),
    )
}

function writeAtRandom(random: () => number): (change: Change) => void {
  const draw = (below: number) => Math.floor(random() * below)
  // Drawn before the change, which may run twice.
  const steps = Array.from({ length: draw(5) }, () => [draw(5), draw(KEYS.length), draw(1_000)] as const)
  const throws = random() < 0.2
  return change => {
    for (const [kind, at, number] of steps) {
      const key = KEYS[at]!
      if (kind === 0) change.put(RECORDS, key, { a: number, b: 'text' })
      else if (kind === 1) change.put(RECORDS, key, { other: number })
      else if (kind === 2) change.put(BYTES, key, Buffer.alloc(number % 50, number))
      else if (kind === 3) change.put(TEXTS, `name ${at}`, number)
      else {
        change.remove(RECORDS, key)
        try {
          change.attempt(() => {
            change.put(BYTES, key, Buffer.from('taken back'))
            throw new Error('attempted')
          })
        } catch {
          change.remove(BYTES, key)
        }
      }
    }
    if (throws) throw new Error('thrown')
  }
}

t.test(
  'copies that apply what the ledger has end as the writer did, however changes fail',
  sized(),
  async t => {
    const seed = seedOf()
    t.comment(`CALLSIGN_SEED=${seed}`)
    const random = randomFrom(seed)
    const { database: writer } = openRecorded(t)
    const record = new MemoryRecord()
    writer.useLedger(record)
    const { database: copy } = openRecorded(t, {}, t.testdir({ copy: {} }))
    let before = rowsOf(writer)
    for (let round = 0; round < ROUNDS; round++) {
      record.outcome = random() < 0.2 ? 'not taken' : 'taken'
      const taken = record.changes.length
      const together = Array.from({ length: 1 + Math.floor(random() * 6) }, () => writeAtRandom(random))
      const ended = await Promise.allSettled(together.map(write => writer.change(write)))
      if (record.outcome === 'not taken') {
        t.same(rowsOf(writer), before, 'nothing is there that the ledger has not taken')
        const reasons = ended.flatMap(each =>
          each.status === 'rejected' ? [(each.reason as Error).message] : [],
        )
        for (const reason of reasons) t.match(reason, /^(thrown|the store could not write)$/)
      }
      before = rowsOf(writer)
      await copy.apply(record.changes.slice(taken))
      if (round % 10 === 0) t.same(rowsOf(copy), before)
    }
    t.same(rowsOf(copy), before)
    t.same(
      record.changes.map(({ number }) => number),
      record.changes.map((_, at) => at + 1),
      'each has its number',
    )
    t.same(copy.copyState, { number: record.changes.length, epoch: 3, isFilling: false })
    t.same(writer.copyState, copy.copyState)

    const { database: late } = openRecorded(t, {}, t.testdir({ late: {} }))
    await late.fill(snapshotOf(writer))
    t.match(late.copyState, { isFilling: true })
    await late.filled(record.changes.length, 3)
    t.same(rowsOf(late), before)
    t.equal(
      late.view(view => view.get(TEXTS, 'name 1')),
      writer.view(view => view.get(TEXTS, 'name 1')),
    )
  },
)

t.test('a change that the ledger has refused for good ends the store', async t => {
  const broken: string[] = []
  const { database } = openRecorded(t, { onBroken: ({ message }) => broken.push(message) })
  const record = new MemoryRecord()
  await t.rejects(
    database.change(change => change.put(COUNTERS, 'a', 1)),
    { code: 'STORE_UNAVAILABLE' },
    'before this process may change anything',
  )
  database.useLedger(record)
  await database.change(change => change.put(COUNTERS, 'a', 1))
  record.outcome = 'lost'
  const [first, second] = await Promise.allSettled([
    database.change(change => change.put(COUNTERS, 'a', 2)),
    database.change(change => change.put(COUNTERS, 'b', 2)),
  ])
  t.match([first, second], [{ status: 'rejected' }, { status: 'rejected' }])
  t.match(broken, [/another node is the writer/])
  record.outcome = 'taken'
  await t.rejects(
    database.change(change => change.put(COUNTERS, 'a', 3)),
    { code: 'STORE_UNAVAILABLE' },
  )
  t.equal(record.changes.length, 1)
})

t.test('a copy has rows under texts of any length once, and in order', async t => {
  const { database, folder } = openRecorded(t)
  const names = ['84', 'all', '1', '380', 'a', 'shown', '84', 'all', '7', '380', '1', 'heads', '49']
  for (const [at, name] of names.entries()) {
    const row = { table: TEXTS.name, key: Buffer.from(name), value: Buffer.from([at]) }
    await database.apply([{ number: at + 1, epoch: 3, rows: [row] }])
  }
  const sorted = [...new Set(names)].toSorted()
  t.same(
    database.view(view => [...view.keys(TEXTS)]),
    sorted,
  )
  t.same(
    sorted.map(name => database.view(view => view.get(TEXTS, name))),
    sorted.map(name => names.lastIndexOf(name)),
  )
  await database.close()
  walkPages(join(folder, 'store', 'data.mdb'))
})

t.test('a change that writes nothing has no place in the order', async t => {
  const { database } = openRecorded(t)
  const record = new MemoryRecord()
  database.useLedger(record)
  t.equal(await database.change(change => change.get(COUNTERS, 'a') ?? 'none'), 'none')
  t.equal(database.lastChange, 0)
  await database.change(change => change.put(COUNTERS, 'a', 1))
  t.equal(database.lastChange, 1)
})

t.test('a store that is opened again goes on behind its last change, and says what it lacks', async t => {
  const record = new MemoryRecord()
  const first = openRecorded(t)
  first.database.useLedger(record)
  for (const number of [1, 2, 3]) await first.database.change(change => change.put(COUNTERS, 'a', number))
  await first.database.close()
  const { database } = openRecorded(t, {}, first.folder)
  t.equal(database.lastChange, 3)
  await t.rejects(database.apply([{ number: 5, epoch: 3, rows: [] }]), /each change/)
  const told: unknown[] = []
  database.follow(({ number, rows }) =>
    readChangedRows(rows, (table, key) => told.push([number, table, [...key]])),
  )
  const cache = new WatchedCache(database, [RECORDS], key => Buffer.from(key).toString('hex'), 10)
  const read = () =>
    database.view(view => cache.of('0a', () => view.get(RECORDS, Buffer.from([10])) ?? 'none'))
  t.equal(read(), 'none')
  await database.apply([
    {
      number: 4,
      epoch: 4,
      rows: [{ table: RECORDS.name, key: Buffer.from([10]), value: Buffer.from([7]) }],
    },
  ])
  t.equal(read(), 7, 'what was kept is forgotten')
  t.same(told, [[4, RECORDS.name, [10]]])
})
