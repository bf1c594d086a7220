/**
 * A writer that does not run for longer than its lease lasts, as when its machine is paused, and then runs again: it answers
 * nothing from what it last knew, signs nothing, and follows the next writer.
 */

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { signInPerson } from '../support/call-people.ts'
import { checkpointAt } from '../support/node-load.ts'
import { Cluster, eventually, finds, register, until } from '../support/nodes.ts'
import { skipWithoutPostgres } from '../support/postgres.ts'
import { SocketClient } from '../support/socket-client.ts'

/** A connection that a node's front has answered on. */
async function openConnection(http: string): Promise<Socket> {
  const socket = connect(Number(new URL(http).port), '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write('GET /checkpoint HTTP/1.1\r\nHost: h\r\n\r\n')
  await once(socket, 'data')
  return socket
}

/** The status of the answer to `GET /app/api/user`; undefined where the connection ends without one. */
async function statusOf(socket: Socket): Promise<string | undefined> {
  const answered = text(socket).catch(() => '')
  return /HTTP\/1\.1 (\d+)/.exec(await answered)?.[1]
}

function writeRequest(socket: Socket, accessToken: string): void {
  const lines = ['GET /app/api/user HTTP/1.1', 'Host: h', `Authorization: Bearer ${accessToken}`]
  socket.write([...lines, 'Connection: close', '', ''].join('\r\n'))
}

/** Which processes of the node do not run for a time. */
const STOPPED = { 'its process': false, 'its process and its fronts': true }

for (const [what, areFrontsStopped] of Object.entries(STOPPED)) {
  t.test(`a writer is stopped: ${what}`, { skip: skipWithoutPostgres }, async t => {
    const cluster = await Cluster.start(t)
    const { one, two } = cluster
    const { app } = await signInPerson(one.server.http, 0)
    const { accessToken = '' } = app
    const { app: bob } = await signInPerson(one.server.http, 1)
    const connection = await openConnection(one.server.http)
    two.supervise()
    const { socket } = await SocketClient.connect('websocket', one.server.http, bob.accessToken!)
    let isOpen = true
    socket.on('close', () => {
      isOpen = false
    })
    const before = await checkpointAt(one.server)
    const fronts = areFrontsStopped ? one.frontPids : []

    for (const pid of [...fronts, one.server.process.pid!]) process.kill(pid, 'SIGSTOP')
    await two.said('writer')
    await eventually(() => {
      app.http = two.server.http
      return app.get(204, 'POST /app/api/logout', {})
    })
    await register(two)
    writeRequest(connection, accessToken)
    const status = statusOf(connection)
    if (!areFrontsStopped) t.not(await status, '200', 'it does not honour a session that has ended')
    for (const pid of [one.server.process.pid!, ...fronts]) process.kill(pid, 'SIGCONT')
    t.not(await status, '200', 'nor when it runs again')
    await one.said('writer-stepped-down')
    t.ok((await checkpointAt(two.server)).treeSize > before.treeSize, 'the other one goes on')
    const { treeSize } = await checkpointAt(two.server)
    await until(async () => (await checkpointAt(one.server)).treeSize === treeSize)
    t.same(await checkpointAt(one.server), await checkpointAt(two.server))
    t.equal(isOpen, areFrontsStopped, 'its sockets stay where its fronts do')
    await register(one)
    await two.end()
    await one.said('writer', 2)
    await finds(one, [await register(one)])
    t.equal(one.server.process.exitCode, null, 'it has never ended')
  })
}
