/** A node's warnings and figures about a PostgreSQL that may lose changes, as it starts and later. */

import t from 'tap'
import { Metrics } from '../../../src/operations/metrics.ts'
import { watchDatabase } from '../../../src/server/node/database-watch.ts'
import type { Durability, KeptBy } from '../../../src/store/postgres/durability.ts'
import { FakeWorld } from '../../support/world.ts'

const WELL: Durability = {
  hasFsync: true,
  hasFullPageWrites: true,
  waitsForStandby: true,
  standbys: 1,
  isReadOnly: false,
}

async function watch(durability: Durability, databaseKeptBy: KeptBy = 'standbys') {
  const world = new FakeWorld()
  const metrics = new Metrics()
  const told: { fault: string; advice: string }[] = []
  const ledger = { durability: async () => durability }
  const logger = { warn: (line: object) => void told.push(line as (typeof told)[number]) }
  await watchDatabase({ world, metrics, logger: logger as never }, ledger, { databaseKeptBy })
  return {
    faults: () => told.splice(0).map(({ fault }) => fault),
    advice: () => told.map(({ advice }) => advice).join(),
    async later(next: () => Promise<Durability>) {
      ledger.durability = next
      world.advance(10_000)
      await world.settle()
    },
    async figures() {
      const lines = (await metrics.text()).matchAll(/^callsign_database_(\w+) (\S+)$/gm)
      return Object.fromEntries([...lines].map(([, name, value]) => [name, value]))
    },
  }
}

t.test('a database that could keep nothing is refused, unless someone else keeps it', async t => {
  const unsafe = { ...WELL, hasFsync: false }
  await t.rejects(watch(unsafe), /fsync is off.*CALLSIGN_DATABASE_KEPT_BY/)
  await t.rejects(
    watch({ ...WELL, hasFullPageWrites: false }),
    /full_page_writes is off.*CALLSIGN_DATABASE_KEPT_BY/,
  )
  for (const keptBy of ['storage', 'disk'] as const) t.same((await watch(unsafe, keptBy)).faults(), [])
})

t.test(
  'a fault that would lose or hold back changes is logged once, and again when it comes back',
  async t => {
    const watching = await watch({ ...WELL, waitsForStandby: false, standbys: 0 })
    t.match(watching.advice(), /synchronous_standby_names is empty/)
    t.same(watching.faults(), ['standby-not-awaited'])
    await watching.later(async () => ({ ...WELL, standbys: 0, isReadOnly: true }))
    t.match(watching.advice(), /no synchronous standby is connected.*default_transaction_read_only is on/)
    t.same(watching.faults(), ['standby-missing', 'read-only'])
    await watching.later(async () => ({ ...WELL, standbys: 0 }))
    t.same(watching.faults(), [])
    await watching.later(async () => ({ ...WELL, standbys: undefined }))
    t.match(watching.advice(), /grant it pg_monitor/)
    t.same(watching.faults(), ['standby-hidden'])
    await watching.later(async () => WELL)
    await watching.later(async () => ({ ...WELL, standbys: 0 }))
    t.same(watching.faults(), ['standby-missing'])
  },
)

t.test('figures: an unknown one is no number', async t => {
  const watching = await watch({ ...WELL, standbys: 2 })
  const well = {
    fsync: '1',
    full_page_writes: '1',
    standby_awaited: '1',
    synchronous_standbys: '2',
    read_only: '0',
  }
  t.same(await watching.figures(), well)
  await watching.later(async () => ({ ...WELL, standbys: undefined }))
  t.same(await watching.figures(), { ...well, synchronous_standbys: 'Nan' })
  await watching.later(async () => ({ ...WELL, hasFsync: false, standbys: 0, isReadOnly: true }))
  t.same(await watching.figures(), { ...well, fsync: '0', synchronous_standbys: '0', read_only: '1' })
  await watching.later(() => Promise.reject(new Error('away')))
  const none = { fsync: 'Nan', full_page_writes: 'Nan', standby_awaited: 'Nan', synchronous_standbys: 'Nan' }
  t.same(await watching.figures(), { ...none, read_only: 'Nan' })
  t.same(await (await watch(WELL, 'storage')).figures(), { ...none, read_only: '0' })
})
