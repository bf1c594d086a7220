/**
 * The checks of the kill test find losses: PostgreSQL gives a node other changes or rows than acknowledged, and the
 * checks name each kind of loss.
 */

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { LOG_TABLES } from '../../src/keyserver/log-store.ts'
import { decodeRows, encodeRows } from '../../src/store/postgres/written-rows.ts'
import { NodeLoad } from '../support/node-load.ts'
import { Cluster, until } from '../support/nodes.ts'
import { skipWithoutPostgres } from '../support/postgres.ts'
import { randomFrom, seedOf } from '../support/seed.ts'

const { bundles, identities, lookup } = LOG_TABLES
const ACKNOWLEDGED = 50
const OF_INBOXES = "tbl like 'inbox%'"
const LOST_TABLES = [identities, lookup, 'calls', 'calls-ended']

/** Without the rows of these tables, and with another last entry of the log. */
function robbed(body: Uint8Array): Uint8Array {
  const rows = decodeRows(body).filter(({ table }) => !LOST_TABLES.includes(table))
  // A character of the key, before its end.
  for (const { table, value } of rows)
    if (table === bundles && value !== undefined) value[value.length - 4] = other(value[value.length - 4]!)
  return encodeRows(rows)
}

/** A character of base64 that is not this one. */
function other(character: number): number {
  return character === 0x41 ? 0x42 : 0x41
}

function assertFound(t: Test, faults: readonly string[], wanted: readonly RegExp[]): void {
  for (const fault of wanted)
    t.ok(
      faults.some(each => fault.test(each)),
      `${fault}`,
      { faults: faults.slice(0, 20) },
    )
}

t.test('a loss of anything acknowledged is found', { skip: skipWithoutPostgres }, async t => {
  const cluster = await Cluster.start(t, { environment: { CALLSIGN_RATE_LIMITS: 'off' } })
  const { one, two } = cluster
  const load = await NodeLoad.start(cluster.nodes, randomFrom(seedOf()))
  await load.acknowledged(ACKNOWLEDGED)
  await two.end()
  const [{ last } = { last: '' }] = await cluster.sql<{ last: string }>(
    'select max(number) as last from callsign.changes',
  )
  // A loss of the log is found where there are later entries: the load is random.
  const { registered } = load.counts
  do await load.acknowledged(ACKNOWLEDGED)
  while (load.counts.registered === registered)
  await load.stop()
  const later = await cluster.sql<{ number: string; body: Buffer }>(
    'select number, body from callsign.changes where number > $1',
    [last],
  )
  for (const { number, body } of later)
    await cluster.sql('update callsign.changes set body = $2 where number = $1', [number, robbed(body)])
  await two.start()
  assertFound(t, await load.lostAt(two), [
    /^entry \d+ is not what was answered/,
    /^a lookup does not find entry/,
    /^call \S+ answers/,
    /^another checkpoint of size \d+ was shown/,
  ])

  await load.leaveMessages()
  await until(async () => {
    const [row] = await cluster.sql<{ isSettled: boolean }>(
      'select number = (select max(number) from callsign.changes) as "isSettled" from callsign.applied',
    )
    return row!.isSettled
  })
  await cluster.sql(`create table callsign.earlier as select * from callsign.rows where ${OF_INBOXES}`)
  t.same(await load.messageFaults(), [], 'these come, and are settled')
  await load.leaveMessages()
  await two.end('SIGKILL')
  await one.end()
  await cluster.sql(`delete from callsign.rows where ${OF_INBOXES}`)
  await cluster.sql('insert into callsign.rows select * from callsign.earlier')
  rmSync(join(two.dataFolder, 'store'), { recursive: true })
  await two.start()
  assertFound(t, await load.messageFaults(), [
    /^message \d+ of \S+ does not come/,
    /^message \d+ of \S+ came again/,
  ])
})
