/** Lists of ids: order, pages, counts. */

import t, { type Test } from 'tap'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { IdLists, LIST, type ListEntry } from '../../../src/store/tables/id-lists.ts'

async function openLists(t: Test, entries: readonly ListEntry[]) {
  const database = LmdbStore.open(t.testdir())
  t.teardown(() => database.close())
  const lists = new IdLists()
  await database.change(change => {
    for (const entry of entries) lists.add(change, 1n, LIST.contacts, entry)
    // Neighbours on both sides.
    for (const atMs of [0, 2 ** 47]) {
      lists.add(change, 0n, LIST.contacts, { atMs, id: 7n })
      lists.add(change, 2n, LIST.contacts, { atMs, id: 7n })
      lists.add(change, 1n, LIST.blocks, { atMs, id: 7n })
    }
  })
  return { database, lists }
}

const ENTRIES: readonly ListEntry[] = [
  { atMs: 5, id: 2n ** 64n - 1n },
  { atMs: 5, id: 0n },
  { atMs: 7, id: 3n },
  { atMs: 300, id: 1n },
  { atMs: 1_800_000_000_000, id: 2n ** 53n },
]
const NEWEST_FIRST = [
  { atMs: 1_800_000_000_000, id: 2n ** 53n },
  { atMs: 300, id: 1n },
  { atMs: 7, id: 3n },
  { atMs: 5, id: 2n ** 64n - 1n },
  { atMs: 5, id: 0n },
]

t.test('a list is read newest first, without its neighbours', async t => {
  const { database, lists } = await openLists(t, ENTRIES)
  t.same(
    database.view(view => lists.read(view, 1n, LIST.contacts, { limit: 100 })),
    NEWEST_FIRST,
  )
  t.same(
    database.view(view => lists.all(view, 1n, LIST.contacts)),
    NEWEST_FIRST.toReversed(),
  )
  t.equal(
    database.view(view => lists.count(view, 1n, LIST.contacts)),
    5,
  )
  t.same(
    database.view(view => lists.read(view, 3n, LIST.contacts, { limit: 100 })),
    [],
  )
})

t.test('pages of every size make up the whole list', async t => {
  const { database, lists } = await openLists(t, ENTRIES)
  for (let limit = 1; limit <= 6; limit++) {
    const read: ListEntry[] = []
    for (
      let page = database.view(view => lists.read(view, 1n, LIST.contacts, { limit }));
      page.length > 0;
    ) {
      t.ok(page.length <= limit)
      read.push(...page)
      page = database.view(view => lists.read(view, 1n, LIST.contacts, { limit, after: read.at(-1)! }))
      if (page.length < limit) t.equal(read.length + page.length, 5, 'only the last page is not full')
    }
    t.same(read, NEWEST_FIRST)
  }
})

t.test('a page goes on behind an entry that is gone', async t => {
  const { lists, database } = await openLists(t, ENTRIES)
  await database.change(change => lists.remove(change, 1n, LIST.contacts, NEWEST_FIRST[1]!))
  const page = database.view(view =>
    lists.read(view, 1n, LIST.contacts, { limit: 2, after: NEWEST_FIRST[1]! }),
  )
  t.same(page, NEWEST_FIRST.slice(2, 4))
})

t.test('entries older than a time are neither read nor counted', async t => {
  const { database, lists } = await openLists(t, ENTRIES)
  for (const [sinceMs, count] of [
    [5, 5],
    [6, 3],
    [7, 3],
    [8, 2],
    [1_800_000_000_001, 0],
  ] as const) {
    t.equal(
      database.view(view => lists.count(view, 1n, LIST.contacts, sinceMs)),
      count,
    )
    t.same(
      database.view(view => lists.read(view, 1n, LIST.contacts, { limit: 9, sinceMs })),
      NEWEST_FIRST.slice(0, count),
    )
  }
})

t.test('an entry added in a change is counted in it', async t => {
  const { lists, database } = await openLists(t, [])
  const counts = await database.change(change => {
    lists.add(change, 1n, LIST.contacts, ENTRIES[0]!)
    const added = lists.count(change, 1n, LIST.contacts)
    lists.remove(change, 1n, LIST.contacts, ENTRIES[0]!)
    return [added, lists.count(change, 1n, LIST.contacts)]
  })
  t.same(counts, [1, 0])
})
