/** The rehearsals of changes find what they are for: a change that another run would write differently. */

import t from 'tap'
import { LmdbStore } from '../../../src/store/engine/lmdb-store.ts'
import { plainTable } from '../../support/plain-tables.ts'
import { Rehearsals } from '../../support/rehearsal-store.ts'

const ROWS = plainTable<number>('rows')

t.test(
  'rehearsals accept a change of the state alone, and name the row of one that counts by itself',
  async t => {
    const rehearsals = new Rehearsals()
    rehearsals.faultEvery = 1
    const database = LmdbStore.open(t.testdir(), { rehearse: rehearsals.rehearse })
    t.teardown(() => database.close())
    const key = Buffer.of(1)
    const add = (more: () => number) =>
      database.change(change => {
        change.put(ROWS, key, (change.get(ROWS, key) ?? 0) + more())
        change.put(ROWS, Buffer.of(2), 5)
      })
    await add(() => 1)
    await add(() => rehearsals.randomBytes(1)[0]!)
    t.same(rehearsals.faults, [])
    t.same([rehearsals.changes, rehearsals.injected], [2, 4], 'each write of each change failed once')
    let count = 0
    await add(() => ++count)
    t.match(rehearsals.faults.splice(0), [/^two runs of a change differ: rows 01$/])
  },
)
