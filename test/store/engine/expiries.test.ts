/** Endings: in order of their time, a bounded number at once, given more time where something lives on. */

import { statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { EXPIRY, Expiries } from '../../../src/store/engine/expiries.ts'
import { idInKey, idsKey, timeBytes } from '../../../src/store/engine/keys.ts'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { plainTable } from '../../support/plain-tables.ts'
import { countOf, sized } from '../../support/size.ts'

const ROWS = plainTable<number>('rows')
const RECORDS = plainTable<object>('records')
const KIND = EXPIRY.session

function open(t: Test, folder = t.testdir()) {
  const database = LmdbStore.open(folder)
  t.teardown(() => database.close())
  const faults: unknown[] = []
  return { database, expiries: new Expiries(fault => faults.push(fault)), folder, faults }
}

t.test('due rows end in order of their time, and no row early', async t => {
  const { database, expiries } = open(t)
  const ended: bigint[] = []
  expiries.define(KIND, (_, key) => void ended.push(idInKey(key, 0)))
  await database.change(change => {
    for (const atMs of [50, 10, 40, 20, 30]) expiries.add(change, KIND, atMs, idsKey(BigInt(atMs)))
  })
  t.equal(await expiries.sweep(database, 9, 100), 0)
  t.equal(await expiries.sweep(database, 30, 100), 3)
  t.same(ended, [10n, 20n, 30n])
  t.equal(await expiries.sweep(database, 30, 100), 0, 'once')
  t.equal(await expiries.sweep(database, 1_000, 100), 2)
  t.same(ended, [10n, 20n, 30n, 40n, 50n])
})

t.test('a sweep stops at its bound', async t => {
  const { database, expiries } = open(t)
  let ended = 0
  expiries.define(KIND, () => void ended++)
  await database.change(change => {
    for (let id = 0n; id < 25n; id++) expiries.add(change, KIND, 5, idsKey(id))
  })
  t.same([await expiries.sweep(database, 10, 10), ended], [10, 10])
  t.same([await expiries.sweep(database, 10, 10), ended], [10, 20])
  t.same([await expiries.sweep(database, 10, 10), ended], [5, 25])
})

t.test('rows of a table whose keys begin with a time end by their age, in the same bound', async t => {
  const { database, expiries } = open(t)
  const ended: string[] = []
  expiries.define(KIND, (_, key) => void ended.push(`ending ${idInKey(key, 0)}`))
  expiries.defineAged(ROWS, 100, (change, key) => {
    ended.push(`row ${Buffer.from(key).readUIntBE(0, 6)}`)
    change.remove(ROWS, key)
  })
  await database.change(change => {
    for (const atMs of [50, 10, 40]) change.put(ROWS, timeBytes(atMs), atMs)
    for (const id of [1n, 2n]) expiries.add(change, KIND, 120, idsKey(id))
  })
  t.equal(await expiries.sweep(database, 109, 100), 0)
  t.equal(await expiries.sweep(database, 110, 100), 1)
  t.same(ended.splice(0), ['row 10'])
  t.equal(await expiries.sweep(database, 1_000, 2), 2, 'endings first')
  t.equal(await expiries.sweep(database, 1_000, 1), 1)
  t.equal(await expiries.sweep(database, 1_000, 2), 1)
  t.same(ended, ['ending 1', 'ending 2', 'row 40', 'row 50'])
  t.equal(await expiries.sweep(database, 1_000, 2), 0)
})

t.test('a prolonged row ends at its later time, once', async t => {
  const { database, expiries } = open(t)
  const calls: number[] = []
  let endsAtMs = 200
  expiries.define(KIND, ({ nowMs }) => {
    calls.push(nowMs)
    return nowMs < endsAtMs ? endsAtMs : undefined
  })
  await database.change(change => expiries.add(change, KIND, 100, idsKey(1n)))
  await expiries.sweep(database, 100, 10)
  endsAtMs = 300
  t.equal(await expiries.sweep(database, 199, 10), 0)
  await expiries.sweep(database, 250, 10)
  t.equal(await expiries.sweep(database, 299, 10), 0)
  await expiries.sweep(database, 300, 10)
  t.same(calls, [100, 250, 300])
  t.equal(await expiries.sweep(database, 9_999, 10), 0)
})

t.test('a later time that has passed already does not keep a sweep busy for ever', async t => {
  const { database, expiries } = open(t)
  expiries.define(KIND, () => 1)
  await database.change(change => expiries.add(change, KIND, 100, idsKey(1n)))
  t.equal(await expiries.sweep(database, 500, 10), 1)
  t.equal(await expiries.sweep(database, 500, 10), 0)
  t.equal(await expiries.sweep(database, 501, 10), 1)
})

t.test('endings of one key and of one moment do not hide each other', async t => {
  const { database, expiries } = open(t)
  const ended: string[] = []
  expiries.define(EXPIRY.session, (_, key) => void ended.push(`session ${idInKey(key, 0)}`))
  expiries.define(EXPIRY.code, (_, key) => void ended.push(`code ${idInKey(key, 0)}`))
  await database.change(change => {
    expiries.add(change, EXPIRY.code, 5, idsKey(1n))
    expiries.add(change, EXPIRY.session, 5, idsKey(1n))
    expiries.add(change, EXPIRY.session, 5, idsKey(2n))
    expiries.add(change, EXPIRY.session, 6, idsKey(1n))
  })
  await expiries.sweep(database, 10, 10)
  t.same(ended, ['session 1', 'session 2', 'code 1', 'session 1'])
})

t.test('endings are there after a restart', async t => {
  const folder = t.testdir()
  const before = LmdbStore.open(folder)
  await before.change(change => new Expiries().add(change, KIND, 5, idsKey(7n)))
  await before.close()
  const { database, expiries } = open(t, folder)
  const ended: bigint[] = []
  expiries.define(KIND, (_, key) => void ended.push(idInKey(key, 0)))
  await expiries.sweep(database, 10, 10)
  t.same(ended, [7n])
})

t.test('a row’s end may write in the change that ends it', async t => {
  const { database, expiries } = open(t)
  expiries.define(KIND, (change, key) => void change.remove(ROWS, key))
  await database.change(change => {
    change.put(ROWS, idsKey(1n), 1)
    expiries.add(change, KIND, 5, idsKey(1n))
  })
  await expiries.sweep(database, 10, 10)
  t.notOk(database.view(view => view.has(ROWS, idsKey(1n))))
})

t.test('a failing ending is reported, holds up no other, and is tried again in a minute', async t => {
  const { database, expiries, faults } = open(t)
  const ended: bigint[] = []
  let isBroken = true
  expiries.define(KIND, (_, key) => {
    const id = idInKey(key, 0)
    if (isBroken && id !== 3n) throw new Error(`broken ${id}`)
    ended.push(id)
  })
  await database.change(change => {
    for (const id of [1n, 2n, 3n]) expiries.add(change, KIND, Number(id), idsKey(id))
  })
  t.equal(await expiries.sweep(database, 10, 100), 3)
  t.same(ended, [3n])
  t.match(faults, [{ message: 'broken 2' }], 'once for each kind')
  t.equal(await expiries.sweep(database, 60_009, 100), 0)
  isBroken = false
  t.equal(await expiries.sweep(database, 60_010, 100), 2)
  t.same([ended, faults.length], [[3n, 1n, 2n], 1])
})

t.test('an ending of an unknown kind is reported, and not lost', async t => {
  const { database, expiries, faults } = open(t)
  await database.change(change => expiries.add(change, 200, 5, idsKey(1n)))
  t.equal(await expiries.sweep(database, 10, 100), 1)
  t.match(faults, [{ message: /expiry kind 200 is one of ours/ }])
  const ended: bigint[] = []
  expiries.define(200, (_, key) => void ended.push(idInKey(key, 0)))
  await expiries.sweep(database, 60_010, 100)
  t.same(ended, [1n])
})

t.test('an ending may have its key end again at the same moment', async t => {
  const { database, expiries } = open(t)
  let count = 0
  expiries.define(KIND, (change, key) => {
    count++
    if (count === 1) expiries.add(change, KIND, 5, key)
  })
  await database.change(change => expiries.add(change, KIND, 5, idsKey(1n)))
  await expiries.sweep(database, 10, 100)
  await expiries.sweep(database, 10, 100)
  t.equal(count, 2)
})

t.test('a kind is defined once', async t => {
  const { expiries } = open(t)
  expiries.define(KIND, () => undefined)
  t.throws(() => expiries.define(KIND, () => undefined), /defined once/)
})

t.test('the numbers of the kinds differ, as rows of them are in stores', async t => {
  const numbers = Object.values(EXPIRY)
  t.equal(new Set(numbers).size, numbers.length)
})

/** `CALLSIGN_EXPIRIES` says how many rows; a million take a minute. */
const ROW_COUNT = countOf('CALLSIGN_EXPIRIES', { short: 10_000, long: 40_000 })
const ROUNDS = 10

t.test('rows that come and go leave neither file nor memory larger', sized({ timeout: 600_000 }), async t => {
  const { database, expiries, folder } = open(t)
  expiries.define(KIND, (change, key) => void change.remove(RECORDS, key))
  const sizes: number[] = []
  const heaps: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    for (let from = 0; from < ROW_COUNT / ROUNDS; from += 1_000) {
      await database.change(change => {
        for (let id = from; id < from + 1_000; id++) {
          const key = idsKey(BigInt(id))
          change.put(RECORDS, key, { round, to: 'ann@example.org', hash: Buffer.alloc(32) })
          expiries.add(change, KIND, round * 1_000, key)
        }
      })
    }
    while ((await expiries.sweep(database, round * 1_000, 1_000)) > 0);
    sizes.push(statSync(join(folder, 'store', 'data.mdb')).size)
    heaps.push(process.memoryUsage().heapUsed)
  }
  t.equal(
    database.view(view => view.count(RECORDS)),
    0,
  )
  const [settledBytes, lastBytes] = [sizes[2]!, sizes.at(-1)!]
  t.ok(lastBytes <= settledBytes * 1.5, `the file has ${settledBytes} bytes, then ${lastBytes}`)
  const grownBytes = Math.min(...heaps.slice(-3)) - Math.min(...heaps.slice(0, 3))
  t.ok(grownBytes < 32 * 1024 * 1024, `the heap has ${grownBytes} bytes more`)
})

t.test('a sweep does not look at rows that are not due, however many', sized(), async t => {
  const { database, expiries } = open(t)
  let looked = 0
  expiries.define(KIND, () => void looked++)
  for (let from = 0; from < ROW_COUNT; from += 2_000) {
    await database.change(change => {
      for (let id = from; id < from + 2_000; id++)
        expiries.add(change, KIND, 1_000_000 + id, idsKey(BigInt(id)))
    })
  }
  const before = process.cpuUsage()
  for (let nowMs = 0; nowMs < 1_000; nowMs++) await expiries.sweep(database, nowMs, 100)
  const eachMs = process.cpuUsage(before).user / 1_000 / 1_000
  t.equal(looked, 0)
  t.ok(eachMs < 1, `a sweep of nothing takes ${eachMs} ms`)
})

t.test('an ending that throws in its middle leaves nothing of what it wrote', async t => {
  const database = LmdbStore.open(t.testdir())
  t.teardown(() => database.close())
  const faults: unknown[] = []
  const expiries = new Expiries(fault => faults.push(fault))
  const key = Buffer.of(1)
  expiries.define(200, change => {
    change.put(ROWS, key, 2)
    change.happened({ kind: 'inbox-dropped', reason: 'full' })
    throw new Error('in its middle')
  })
  const heard: string[] = []
  database.subscribe('inbox-dropped', ({ kind }) => heard.push(kind))
  await database.change(change => {
    change.put(ROWS, key, 1)
    expiries.add(change, 200, 10, key)
  })
  t.equal(await expiries.sweep(database, 20, 10), 1)
  t.equal(
    database.view(view => view.get(ROWS, key)),
    1,
  )
  t.same([heard, faults.length], [[], 1])
})

t.test('what another ending of the sweep says and collects outlives one that throws', async t => {
  const database = LmdbStore.open(t.testdir())
  t.teardown(() => database.close())
  const expiries = new Expiries(() => undefined)
  const owner = {}
  expiries.define(201, (change, [number]) => {
    const collected = change.local(owner, () => {
      const numbers: number[] = []
      change.atEnd(() => {
        for (const each of numbers) change.put(ROWS, Buffer.of(each), each)
      })
      return numbers
    })
    collected.push(number!)
    if (number === 1) throw new Error('the first ending fails')
    return undefined
  })
  await database.change(change => {
    expiries.add(change, 201, 10, Buffer.of(1))
    expiries.add(change, 201, 11, Buffer.of(2))
  })
  await expiries.sweep(database, 20, 10)
  t.same([...database.view(view => [...view.range(ROWS)].map(({ value }) => value))], [2])
})
