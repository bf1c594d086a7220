/** Each role of a process, built for real: what it can do, and that by type and by run it can do no more. */

import { join } from 'node:path'
import pg from 'pg'
import pino from 'pino'
import t, { type Test } from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import type { Role, ServerInRole } from '../../src/server/role.ts'
import { readConfig } from '../../src/server/settings/config.ts'
import { start } from '../../src/server/start.ts'
import { freePort } from '../support/free-port.ts'
import { Cluster, until } from '../support/nodes.ts'
import { skipWithoutPostgres } from '../support/postgres.ts'
import { environmentOf, freshPublicKey } from '../support/server.ts'
import { long } from '../support/size.ts'

type Kind = Role['kind']
type InRole<K extends Kind> = Extract<Role, { kind: K }>

/** The role, which has to be of this kind. */
function inRole<K extends Kind>({ role }: ServerInRole, kind: K): InRole<K> {
  if (role.kind !== kind) throw new Error(`it is ${role.kind}, not ${kind}`)
  return role as Role as InRole<K>
}

async function run(
  t: Test,
  environment: Readonly<Record<string, string>>,
  dev = true,
  folder = t.testdir(),
): Promise<ServerInRole> {
  const dataFolder = join(folder, 'data')
  const config = readConfig(
    environmentOf({
      dataFolder,
      environment: { CALLSIGN_LOG_LEVEL: 'silent', ...environment },
      dev,
    }),
    { dev, lanAddress: undefined },
  )
  const say = () => undefined
  const logger = pino({ level: 'silent' })
  const server = await start(config, { logger, say, knownCheckpoint: undefined, onReset: say })
  t.teardown(() => server.stop('the test has ended'))
  return server
}

async function register(t: Test, server: ServerInRole): Promise<bigint> {
  const client = new RegisterClient(server.ready.grpc)
  t.teardown(() => client.close())
  const { index } = await client.register(7n, 1n, freshPublicKey())
  return BigInt(index)
}

t.test(
  'a process that is alone writes and serves; stopped, it has nothing left to do either with',
  async t => {
    const server = await run(t, { CALLSIGN_FRONTS: '0' })
    const role = inRole(server, 'alone')
    t.equal(await register(t, server), 0n)
    t.equal(role.writer.log.published.size, 1)
    // @ts-expect-error: it has no fronts that it could stop or tell of the writer
    t.equal(role.fronts, undefined)
    // @ts-expect-error: nor desks for them
    t.equal(role.desks, undefined)
    const { http } = server.ready
    await server.stop('a test')
    const { kind, ...members } = inRole(server, 'stopped')
    t.same([kind, members], ['stopped', {}])
    await t.rejects(fetch(`${http}/checkpoint`))
  },
)

t.test('a writer with fronts writes, and has no port of its own for clients', async t => {
  const server = await run(t, { CALLSIGN_FRONTS: '1' })
  const role = inRole(server, 'writer')
  t.equal(await register(t, server), 0n)
  t.equal(role.desks.head.treeSize, 1)
  t.same(role.fronts.processes.figures, { ready: 1, restarts: 0 })
  // @ts-expect-error: its fronts listen
  t.equal(role.http, undefined)
  // @ts-expect-error: no lease: no other process may write
  t.equal(role.lease, undefined)
  t.match(await (await fetch(`${server.ready.http}/checkpoint`)).text(), /\n1\n/)
  await role.fronts.stop()
  await t.rejects(fetch(`${server.ready.http}/checkpoint`), 'without fronts nobody answers')
})

t.test(
  'a node follows, acquires and writes, and registers nothing while it can’t',
  long({ skip: skipWithoutPostgres }),
  async t => {
    const folder = t.testdir()
    const cluster = await Cluster.start(t, { running: 1, folder })
    const server = await run(
      t,
      { ...cluster.two.environment, CALLSIGN_NODE_PORT: String(await freePort()) },
      false,
      folder,
    )
    const following = inRole(server, 'following node')
    // @ts-expect-error: it has nothing to write with
    t.equal(following.writer, undefined)
    // @ts-expect-error: and no lease
    t.equal(following.lease, undefined)
    t.equal(await register(t, server), 0n, 'the writer has registered the key')
    // The row is locked, so that the lease can't be acquired by anyone.
    const lock = new pg.Client(cluster.databaseUrl)
    await lock.connect()
    t.teardown(() => lock.end())
    await lock.query('begin')
    await lock.query('select * from callsign.writer for update')
    await cluster.one.end('SIGKILL')
    await until(async () => server.role.kind === 'acquiring')
    const acquiring = inRole(server, 'acquiring')
    t.equal(acquiring.lease, undefined)
    // @ts-expect-error: it has nothing to write with yet
    t.equal(acquiring.writer, undefined)
    await t.rejects(register(t, server), 'no node writes')
    await lock.query('rollback')
    await until(async () => server.role.kind === 'writing node')
    const writing = inRole(server, 'writing node')
    // @ts-expect-error: what it writes it does not follow
    t.equal(writing.follower, undefined)
    t.equal(await register(t, server), 1n)
    await server.stop('a test')
    t.same(inRole(server, 'stopped'), { kind: 'stopped' })
    t.equal((await cluster.lease()).isHeld, false, 'another node may write at once')
  },
)
