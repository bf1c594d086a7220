/** The lease: one node holds it, and a node that has lost it changes nothing any more. */

import { inspect } from 'node:util'
import t from 'tap'
import { refusalOfForm, STORE_FORM } from '../../../src/store/engine/store-form.ts'
import { LeaseLost } from '../../../src/store/postgres/failure.ts'
import type { WriteLease } from '../../../src/store/postgres/write-lease.ts'
import { freePort } from '../../support/free-port.ts'
import { PASSWORD, sharedPostgres, skipWithoutPostgres } from '../../support/postgres.ts'
import { acquireNext, bytesOf, changesIn, openLedger } from '../../support/record.ts'

t.test('the lease', { skip: skipWithoutPostgres }, async t => {
  const server = await sharedPostgres(t)

  t.test('nodes that race for the lease: one gets it, and all see which', async t => {
    const url = await server.newDatabase()
    const names = ['one', 'two', 'three', 'four', 'five', 'six']
    // Each makes the tables, too.
    const records = await Promise.all(
      names.map(name => openLedger(t, url, { node: { name, address: `${name}:1`, version: '0.2.0' } })),
    )
    let epoch = 0
    for (let round = 0; round < 5; round++) {
      const leases = await Promise.all(records.map(record => record.acquire()))
      const held = leases.filter(lease => lease !== undefined)
      t.equal(held.length, 1, 'one lease')
      t.ok(held[0]!.epoch > epoch, 'a new epoch')
      epoch = held[0]!.epoch
      const holder = names[leases.indexOf(held[0])]
      const states = await Promise.all(records.map(record => record.writer()))
      for (const state of states) {
        t.same(state, {
          state: 'open',
          epoch,
          last: round,
          holder: { name: holder, address: `${holder}:1`, version: '0.2.0' },
        })
      }
      await held[0]!.append(round + 1, [bytesOf(String(round))])
      await held[0]!.release()
      t.match(await records[0]!.writer(), { epoch, last: round + 1, holder: undefined })
    }
  })

  t.test('a lease that is renewed lasts, and one that is not is taken over', async t => {
    const url = await server.newDatabase()
    const [one, two] = [
      await openLedger(t, url, { leaseMs: 300 }),
      await openLedger(t, url, { leaseMs: 300 }),
    ]
    const lease = await acquireNext(one)
    const endsAtMs = lease.lastsUntilMs
    let next: WriteLease | undefined
    // A machine that stalls may let the lease run out early.
    while (performance.now() < endsAtMs + 300 && next === undefined) {
      await lease.renew()
      next = await two.acquire()
    }
    next ??= await acquireNext(two)
    t.ok(lease.lastsUntilMs > endsAtMs)
    t.ok(next.epoch > lease.epoch)
    t.ok(performance.now() > lease.lastsUntilMs, 'the first lease had run out')
    await t.rejects(lease.renew(), { name: 'LeaseLost', code: 'STORE_UNAVAILABLE', outcome: 'not written' })
    t.equal(lease.isLost, true)
  })

  t.test('a lease that was taken over appends nothing, whatever it knows of the ledger', async t => {
    const url = await server.newDatabase()
    const [one, two] = [await openLedger(t, url, { leaseMs: 100 }), await openLedger(t, url)]
    const lease = await acquireNext(one)
    await lease.append(1, [bytesOf('a'), bytesOf('b')])
    const next = await acquireNext(two)
    t.equal(next.last, 2)
    t.match(await refusalOf(lease.append(3, [bytesOf('late')])), { outcome: 'not written' })
    const { last } = await one.writer()
    t.match(await refusalOf(lease.append(last + 1, [bytesOf('late')])), { outcome: 'not written' })
    await next.append(3, [bytesOf('c')])
    t.match(await refusalOf(lease.append(4, [bytesOf('late')])), { outcome: 'not written' })
    t.match(await refusalOf(lease.setHead(undefined, bytesOf('head'))), { outcome: 'not written' })
    const bodies = (await changesIn(server, url)).map(({ number, epoch, body }) => [number, epoch, body])
    t.same(bodies, [
      [1, lease.epoch, 'a'],
      [2, lease.epoch, 'b'],
      [3, next.epoch, 'c'],
    ])
  })

  t.test('a lease that has run out, and that no node has acquired, appends', async t => {
    const url = await server.newDatabase()
    const record = await openLedger(t, url, { leaseMs: 0 })
    const lease = await acquireNext(record)
    t.equal((await record.writer()).holder, undefined)
    await lease.append(1, [bytesOf('a')])
    t.equal((await changesIn(server, url)).length, 1)
  })

  t.test('a released lease appends nothing', async t => {
    const url = await server.newDatabase()
    const lease = await acquireNext(await openLedger(t, url))
    await lease.append(1, [bytesOf('a')])
    await lease.release()
    await t.rejects(lease.append(2, [bytesOf('b')]), { name: 'LeaseLost' })
    t.equal((await changesIn(server, url)).length, 1)
  })

  t.test('the head is set where it is what the writer knows, and by the writer alone', async t => {
    const url = await server.newDatabase()
    const [one, two] = [await openLedger(t, url, { leaseMs: 100 }), await openLedger(t, url)]
    t.equal(await two.head(), undefined)
    const lease = await acquireNext(one)
    await lease.setHead(undefined, bytesOf('first'))
    t.same(await two.head(), bytesOf('first'))
    await t.rejects(lease.setHead(undefined, bytesOf('second')), { code: 'CHECKPOINT_INVALID' })
    await t.rejects(lease.setHead(bytesOf('zeroth'), bytesOf('second')), { code: 'CHECKPOINT_INVALID' })
    await lease.setHead(bytesOf('first'), bytesOf('second'))
    const next = await acquireNext(two)
    t.same(next.head, bytesOf('second'))
    await t.rejects(lease.setHead(bytesOf('second'), bytesOf('third')), { name: 'LeaseLost' })
    t.same(await two.head(), bytesOf('second'))
    await next.setHead(bytesOf('second'), bytesOf('fourth'))
    t.same(await one.head(), bytesOf('fourth'))
  })

  t.test('an append of no change, out of turn or beside a second append is a defect', async t => {
    const url = await server.newDatabase()
    const lease = await acquireNext(await openLedger(t, url))
    await t.rejects(lease.append(2, [bytesOf('a')]), /follows the last/)
    await t.rejects(lease.append(1, []), /has a change/)
    const appended = lease.append(1, [bytesOf('a')])
    await t.rejects(lease.append(2, [bytesOf('b')]), /one append is in flight/)
    await appended
  })

  t.test('tables of another program are refused, and left as they are', async t => {
    const url = await server.newDatabase()
    await openLedger(t, url)
    const refusal = { code: 'STORE_UNAVAILABLE', message: refusalOfForm(0, 'the database')! }
    for (const change of ['set version = version + 1', 'set version = 0']) {
      await server.query(url, `update callsign.schema_version ${change}`)
      await t.rejects(openLedger(t, url), refusal)
    }
    await server.query(url, 'delete from callsign.schema_version')
    await t.rejects(openLedger(t, url), refusal)
    await server.query(url, `insert into callsign.schema_version values (${STORE_FORM})`)
    const record = await openLedger(t, url)
    t.match(await record.writer(), { state: 'open', last: 0 })
    await server.query(url, 'delete from callsign.writer')
    await t.rejects(record.writer(), { code: 'STORE_UNAVAILABLE', message: /has lost its row/ })
  })

  t.test('failures to connect have a reason, and never the password', async t => {
    const url = await server.newDatabase()
    const failures = [
      url.replace('postgres:', 'mysql:'),
      url.replace('/test', '/none'),
      url.replace('callsign:', 'nobody:'),
      url.replace(':never', ':always-never'),
      url.replace('127.0.0.1', 'unknown.invalid'),
      url.replace(`:${server.port}`, `:${await freePort()}`),
      url.replace(`:${server.port}`, ':70000'),
      url.replace('@127', '@%zz'),
      `${url}?sslmode=verify-full`,
      `${url}?sslmode=verify-full&sslrootcert=/none`,
    ]
    for (const wrong of failures) {
      const error = await openLedger(t, wrong).then(
        () => undefined,
        (error: unknown) => error,
      )
      const name = wrong.replaceAll(PASSWORD, '…')
      t.match(error, { code: 'STORE_UNAVAILABLE', message: /\w+: \w|begin with/ }, name)
      t.notMatch(inspect(error, { depth: 10, showHidden: true }), PASSWORD, name)
    }
  })
})

async function refusalOf(write: Promise<void>): Promise<LeaseLost> {
  try {
    await write
  } catch (error) {
    if (error instanceof LeaseLost) return error
    throw error
  }
  throw new Error('the write was not refused')
}
