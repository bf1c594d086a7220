/** Kept rows are those of the store, in every view, however the changes ended. */

import t, { type Test } from 'tap'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { RowCache } from '../../../src/store/engine/row-cache.ts'
import type { Change, View } from '../../../src/store/engine/store.ts'
import { plainTable } from '../../support/plain-tables.ts'
import { randomFrom, seedOf } from '../../support/seed.ts'

const ROWS = plainTable<number>('row-cache-test')
const KEYS = ['a', 'b', 'c', 'd'].map(text => Buffer.from(text))

function openCache(t: Test, rowsMax: number) {
  const database = LmdbStore.open(t.testdir())
  t.teardown(() => database.close())
  const read: string[] = []
  const noting = (view: View): View =>
    new Proxy(view, {
      get: (of, name) => {
        const member = of[name as keyof View] as unknown
        if (typeof member !== 'function') return member
        return (...parameters: unknown[]) => {
          if (name === 'get') read.push(String(parameters[1]))
          return member.apply(of, parameters)
        }
      },
      has: (of, name) => name in of,
    })
  return { database, read, noting, cache: new RowCache(database, ROWS, row => row ?? null, rowsMax) }
}

t.test('a row that changes write and read is never read from the store', async t => {
  const { database, read, noting, cache } = openCache(t, 10)
  const key = KEYS[0]!
  for (const row of [1, 2, 3]) {
    await database.change(change => {
      change.put(ROWS, key, row)
      t.equal(cache.of(noting(change), key), row)
    })
    t.equal(
      database.view(view => cache.of(noting(view), key)),
      row,
    )
  }
  await database.change(change => change.remove(ROWS, key))
  t.equal(
    database.view(view => cache.of(noting(view), key)),
    null,
  )
  t.same(read, [])
})

t.test('until a change is durable, only changes see what it wrote', async t => {
  const { database, cache } = openCache(t, 10)
  const key = KEYS[0]!
  await database.change(change => change.put(ROWS, key, 1))
  const written = database.change(change => change.put(ROWS, key, 2))
  const next = database.change(change => cache.of(change, key))
  t.equal(
    database.view(view => cache.of(view, key)),
    1,
  )
  t.same(await Promise.all([written, next]), [undefined, 2])
})

t.test(
  'it agrees with the store after random changes that succeed, fail, or are taken back in part',
  async t => {
    const seed = seedOf()
    t.comment(`CALLSIGN_SEED=${seed}`)
    const random = randomFrom(seed)
    const draw = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)]!
    const { database, cache } = openCache(t, 3)
    const differing: string[] = []
    const compare = (view: View, where: string) => {
      for (const key of KEYS) {
        const row = view.get(ROWS, key) ?? null
        if (cache.of(view, key) !== row) differing.push(`${where}: ${key}`)
      }
    }
    let rows = 0
    const write = (change: Change) => {
      const key = draw(KEYS)
      if (random() < 0.3) change.remove(ROWS, key)
      else change.put(ROWS, key, ++rows)
      if (random() < 0.5) compare(change, 'in a change')
    }
    const refuse = () => {
      throw new Error('refused')
    }
    const step = (change: Change) => {
      for (let left = 3; left > 0; left--) {
        const kind = draw(['write', 'write', 'write', 'attempt', 'refuse'])
        if (kind === 'attempt') {
          try {
            change.attempt(() => {
              write(change)
              if (random() < 0.5) refuse()
            })
          } catch {
            compare(change, 'after an attempt')
          }
        } else if (kind === 'refuse' && random() < 0.3) refuse()
        else write(change)
      }
      // As LMDB says that the disk is full.
      if (random() < 0.02) throw Object.assign(new Error('no space left'), { code: 28 })
    }
    for (let round = 0; round < 150; round++) {
      const changes = Array.from({ length: 1 + Math.floor(random() * 4) }, () => database.change(step))
      database.view(view => compare(view, 'while changes are written'))
      await Promise.allSettled(changes)
      database.view(view => compare(view, 'after them'))
    }
    t.same(differing, [])
    t.ok(rows > 300, 'the run has written')
  },
)
