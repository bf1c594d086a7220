/** Nodes with a killed, slow or read-only PostgreSQL, and nodes cut off from it or from each other. */

import { once } from 'node:events'
import t, { type Test } from 'tap'
import { signInPerson } from '../support/call-people.ts'
import { DroppingProxy } from '../support/dropping-proxy.ts'
import { Cluster, eventually, finds, register, type TestNode, until } from '../support/nodes.ts'
import { skipWithoutPostgres, startPostgres } from '../support/postgres.ts'
import { SocketClient } from '../support/socket-client.ts'

const isReady = (node: TestNode) => eventually(() => node.isReady())
const areReady = ({ nodes }: Cluster) =>
  until(async () => (await Promise.all(nodes.map(node => node.isReady()))).every(Boolean))

/** All that was registered is found at all nodes, and more can be. */
async function goesOn(cluster: Cluster, keys: Awaited<ReturnType<typeof register>>[]): Promise<void> {
  for (const node of cluster.nodes) keys.push(await register(node))
  for (const node of cluster.nodes) await finds(node, keys)
}

t.test('PostgreSQL is killed, slow, and read-only', { skip: skipWithoutPostgres }, async t => {
  const postgres = await startPostgres(t)
  const cluster = await Cluster.start(t, { postgres })
  const { nodes } = cluster
  for (const node of nodes) node.supervise()
  const keys = [await register(cluster.one)]

  await postgres.kill()
  await postgres.start()
  await goesOn(cluster, keys)
  t.pass('it is killed, and started again')

  await cluster.sql(`
    create function callsign.wait() returns trigger language plpgsql as $$
    begin perform pg_sleep(1); return null; end $$`)
  await cluster.sql(`
    create trigger wait after insert on callsign.changes for each statement execute function callsign.wait()`)
  await goesOn(cluster, keys)
  await cluster.sql('drop trigger wait on callsign.changes')
  t.pass('each commit takes a second')

  await areReady(cluster)
  await postgres.restartAsStandby()
  for (const node of nodes) await until(async () => !(await node.isReady().catch(() => false)))
  t.pass('it is read-only: no node is ready')
  await cluster.sql('select pg_promote()')
  await areReady(cluster)
  await goesOn(cluster, keys)
  t.pass('it takes changes again')
})

async function startWithProxies(t: Test) {
  const proxies = new Map<string, DroppingProxy>()
  const cluster = await Cluster.start(t, {
    async databasePort({ port }, node) {
      const proxy = await DroppingProxy.open(t, port)
      proxies.set(node, proxy)
      return proxy.port
    },
  })
  return { cluster, toDatabase: (node: TestNode) => proxies.get(node.name)! }
}

t.test('nodes are cut off from PostgreSQL', { skip: skipWithoutPostgres }, async t => {
  const { cluster, toDatabase } = await startWithProxies(t)
  const { one, two } = cluster
  const keys = [await register(two)]
  const { app } = await signInPerson(two.server.http, 0)
  for (const node of cluster.nodes) node.supervise()

  const { socket } = await SocketClient.connect('websocket', two.server.http, app.accessToken!)
  const closed = once(socket, 'close')
  toDatabase(two).cut()
  await until(async () => !(await two.isReady()))
  await closed
  t.pass('a node that follows is not ready, and closes its sockets')
  keys.push(await register(one))
  toDatabase(two).mend()
  await until(() => isReady(two))
  await finds(two, keys)
  t.pass('it takes what it has missed')

  toDatabase(one).cut()
  await one.said('writer-stepped-down')
  await until(async () => (await cluster.writer()) === two)
  keys.push(await register(two))
  toDatabase(one).mend()
  await goesOn(cluster, keys)
})

t.test('a node is cut off from the writer', { skip: skipWithoutPostgres }, async t => {
  const cluster = await Cluster.start(t)
  const { one, two } = cluster
  const between = await DroppingProxy.open(t, one.port)
  await cluster.sql('update callsign.writer set address = $1', [`127.0.0.1:${between.port}`])
  await until(async () => two.server.stderr().includes(`"port":${between.port}`))
  const { app } = await signInPerson(one.server.http, 0)
  app.http = two.server.http
  const change = () => app.send('PUT /app/api/user', { displayName: 'Ann' })
  await until(async () => (await change()).status === 200)

  between.cut()
  const refused = await change()
  t.equal(refused.status, 503, 'a change is refused')
  t.ok(refused.headers.get('retry-after'), 'with when to try again')
  await two.said('writer-lost')
  t.match(two.server.stderr(), /"writer-lost".*nothing was heard/, 'because the writer is silent, not late')
  t.equal((await app.send('GET /app/api/user')).status, 200, 'reads go on')
  t.equal(await two.isReady(), true)
  between.mend()
  await until(async () => (await change()).status === 200)
  t.pass('changes go on')
})
