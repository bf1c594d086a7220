/** A node that lags behind the ledger: its clients never read anything older than they have written. */

import { once } from 'node:events'
import t, { type Test } from 'tap'
import { signInPerson } from '../support/call-people.ts'
import { DroppingProxy } from '../support/dropping-proxy.ts'
import { Cluster, eventually, register, type TestNode, until } from '../support/nodes.ts'
import { skipWithoutPostgres as skip } from '../support/postgres.ts'
import { Rename } from '../support/rename.ts'
import { SocketClient } from '../support/socket-client.ts'

t.test('a node that hears nothing from PostgreSQL', { skip }, async t => {
  const { one, two, toDatabase } = await startCluster(t)
  const { app } = await signInPerson(two.server.http, 1)
  const { socket } = await SocketClient.connect('websocket', two.server.http, app.accessToken!)
  const closed = once(socket, 'close')
  const rename = await Rename.begin(t, one, two)
  await rename.more(5)
  toDatabase.cut()
  await closed
  await until(async () => !(await two.isReady()))
  await rename.more(20)
  toDatabase.mend()
  await until(() => two.isReady())
  await rename.more(5)
  await rename.end()
  t.same(rename.stale, [])
})

t.test('a front that stands still', { skip }, async t => {
  const { one, two, toDatabase } = await startCluster(t)
  // A write that did not wait for the node's only front is answered long before the copy has it.
  toDatabase.slow(150)
  const rename = await Rename.begin(t, one, two)
  await rename.more(5)
  let front = 0
  // On a busy machine one may have ended, and the next not be there yet.
  await until(async () => {
    front = two.frontPids.at(-1)!
    return sendSignal(front, 'SIGSTOP')
  })
  await rename.during(10_000)
  // The server may have ended it.
  sendSignal(front, 'SIGCONT')
  await rename.more(20)
  await rename.end()
  t.same(rename.stale, [])
})

t.test('no node shows a smaller tree once another has shown the next one', { skip }, async t => {
  const { one, two } = await startCluster(t)
  const sizeAt = (node: TestNode) =>
    eventually(async () => {
      const answer = await fetch(`${node.server.http}/checkpoint`)
      if (!answer.ok) throw new Error('not now')
      return Number((await answer.text()).split('\n')[1])
    })
  for (const [stopped, asked] of [
    [two, one],
    [one, two],
  ] as const) {
    await register(one)
    const before = await sizeAt(asked)
    const front = stopped.frontPids.at(-1)!
    process.kill(front, 'SIGSTOP')
    const registered = register(one)
    await until(async () => (await sizeAt(asked)) > before)
    // It waits in the front's socket, before whatever the writer has said since.
    const late = sizeAt(stopped)
    process.kill(front, 'SIGCONT')
    t.ok((await late) > before)
    await registered
  }
})

/** False for a process that has ended. */
function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}

/** Two nodes, and the second one's way to PostgreSQL. */
async function startCluster(t: Test) {
  let toDatabase: DroppingProxy | undefined
  const cluster = await Cluster.start(t, {
    async databasePort({ port }, node) {
      if (node === 'one') return port
      toDatabase = await DroppingProxy.open(t, port)
      return toDatabase.port
    },
  })
  return { one: cluster.one, two: cluster.two, toDatabase: toDatabase! }
}
