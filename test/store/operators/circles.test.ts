/** Circles in the store: the cost of finding a common circle, and a cache that follows each change. */

import t from 'tap'
import type { UserId } from '../../../src/domain/ids.ts'
import type { View } from '../../../src/store/engine/store.ts'
import { openWorld } from '../../support/application.ts'

const [ANN, BOB, CID] = [7n, 8n, 9n] as [UserId, UserId, UserId]

function open(folder: string) {
  const world = openWorld(folder, undefined, { rehearses: false })
  t.teardown(() => world.database.close())
  const { circles, contacts, database } = world
  return { world, circles, database, have: contacts.haveCircle }
}

/** The view, and a count of its reads. */
function counted(view: View): { readonly view: View; readonly rows: () => number } {
  let rows = 0
  const each = function* <Of>(found: Iterable<Of>) {
    for (const one of found) {
      rows += 1
      yield one
    }
  }
  const counting: View = {
    ...view,
    get(table, key) {
      rows += 1
      return view.get(table, key)
    },
    keys: (table, range) => each(view.keys(table, range)),
    range: (table, range) => each(view.range(table, range)),
    has: (table, key) => view.has(table, key),
    count: (table, range) => view.count(table, range),
    getVolatile: (table, key) => view.getVolatile(table, key),
  }
  return { view: counting, rows: () => rows }
}

t.test('a common circle is found by the circles of two users, however many members it has', async t => {
  const { circles, database, have } = open(t.testdir())
  await database.change(change => {
    for (let at = 1; at <= 3_000; at++) circles.add(change, 'crowd', BigInt(at + 100) as UserId)
    for (let at = 1; at < 32; at++) {
      circles.add(change, `of Ann ${at}`, ANN)
      circles.add(change, `of Bob ${at}`, BOB)
    }
    circles.add(change, 'crowd', ANN)
    circles.add(change, 'crowd', BOB)
  })
  const ask = (one: UserId, other: UserId) =>
    database.view(view => {
      const counting = counted(view)
      return [have(counting.view, one, other), counting.rows()]
    })
  t.same(ask(ANN, BOB), [true, 65], '32 ids of each, and whether the circle is gone')
  t.same(ask(BOB, ANN), [true, 1], 'the ids are kept')
  t.same(ask(ANN, CID), [false, 0])
  t.same(ask(CID, BOB), [false, 0], 'nor is anything read of who is in none')
})

t.test('the cache follows each change, also within it and where it fails', async t => {
  const { circles, database, have } = open(t.testdir())
  const isCommon = () => database.view(view => have(view, ANN, BOB))
  t.notOk(isCommon())
  await database.change(change => {
    circles.add(change, 'team', ANN)
    t.notOk(have(change, ANN, BOB))
    circles.add(change, 'team', BOB)
    t.ok(have(change, ANN, BOB), 'within the change')
  })
  t.ok(isCommon())
  const failed = database.change(change => {
    circles.remove(change, 'team', BOB)
    t.notOk(have(change, ANN, BOB))
    throw new Error('ordered by the test')
  })
  await t.rejects(failed, { message: 'ordered by the test' })
  t.ok(isCommon())
  await database.change(change => circles.end(change, 'team'))
  t.notOk(isCommon())
  t.same(
    database.view(view => circles.namesOf(view, ANN)),
    [],
  )
})

t.test('members of a large circle that is gone go some at a time, and the circle counts no more', async t => {
  const { world, circles, database } = open(t.testdir())
  const members = Array.from({ length: 450 }, (_, at) => BigInt(at + 100) as UserId)
  await database.change(change => {
    for (const userId of members) circles.add(change, 'crowd', userId)
    for (let at = 1; at < 32; at++) circles.add(change, `circle ${at}`, members[0]!)
    circles.end(change, 'crowd')
    t.ok(circles.add(change, 'one more', members[0]!), 'of a user who was in as many as there may be')
    circles.add(change, 'crowd', ANN)
  })
  const count = () => database.rowCount(database.storedRows('circle-members'))
  t.equal(count(), 450 + 31 + 2)
  let largest = 0
  const { change } = database
  database.change = (write, nowMs) => {
    const before = count()
    return change.call(database, write, nowMs).then(result => {
      largest = Math.max(largest, before - count())
      return result as never
    })
  }
  await world.advance(10_000)
  t.equal(count(), 31 + 2)
  t.equal(largest, 200)
  t.same(
    database.view(view => circles.readMembers(view, 'crowd', { limit: 10 }).map(({ id }) => id)),
    [ANN],
    'the next circle of that id has its own',
  )
})
