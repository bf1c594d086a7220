/**
 * D8: clients that are gone before they have read their lists leave no reader of the store behind. A reader that stays
 * keeps what it sees from being overwritten, so that the file grows, and there is room for only so many.
 */

import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { open } from 'lmdb'
import t, { type Test } from 'tap'
import { meetPeople, type Person, settingsFor, startCall } from '../support/call-people.ts'
import { forcedLmdb, type LmdbFault } from '../support/forced-lmdb.ts'
import { type RunningServer, startServer } from '../support/server.ts'
import { SocketClient } from '../support/socket-client.ts'

const ABORTED = 200
const QUEUE = '/user/queue/dev.readers'
const LISTS = [
  'friend?limit=200',
  'friend-request?direction=incoming',
  'call/history',
  'call/pending',
  'devices',
  'share-token',
  'block',
  'user',
].map(path => `/app/api/${path}`)

/** How many transactions of a server are reading its store at this moment. */
async function readersOf(dataFolder: string): Promise<number> {
  const store = open({ path: join(dataFolder, 'store'), readOnly: true, overlappingSync: false })
  const lines = store.readerList().match(/^\s*\d+\s+[0-9a-f]+\s+\d+$/gm) ?? []
  await store.close()
  return lines.length
}

/** Asks for a list and is gone, at once or when the first octets have come. */
async function abortList(server: RunningServer, { app }: Person, at: number): Promise<void> {
  const { hostname, port } = new URL(server.http)
  const socket = connect({ host: hostname, port: Number(port) })
  socket.on('error', () => undefined)
  const path = LISTS[at % LISTS.length]
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${app.accessToken}\r\n\r\n`)
  await once(socket, at % 2 === 0 ? 'connect' : 'data')
  socket.resetAndDestroy()
}

/** Has its inbox given and is gone. */
async function abortInbox(server: RunningServer, { app }: Person): Promise<void> {
  const client = await SocketClient.connect('tcp', server.stompTcp!, app.accessToken!)
  client.write(`SUBSCRIBE\nid:all\ndestination:${QUEUE}\nack:client\n\n\0`)
  await client.message()
  client.destroy()
}

/** The readers before all these aborted reads, with writes among them, and after. */
async function readersAround(t: Test, fault?: LmdbFault): Promise<readonly [before: number, after: number]> {
  const dataFolder = t.testdir()
  const environment = { CALLSIGN_STOMP_TCP_PORT: '0', CALLSIGN_LOG_LEVEL: 'error', ...settingsFor(8) }
  const server = await startServer({
    dataFolder,
    environment: { ...environment, ...(fault && forcedLmdb(fault)) },
  })
  t.teardown(() => server.end())
  const [ann, bob] = await meetPeople(server.http, 8)
  await startCall(ann!, [bob!])
  const writer = await SocketClient.connect('tcp', server.stompTcp!, ann!.app.accessToken!)
  const keeper = await SocketClient.connect('tcp', server.stompTcp!, bob!.app.accessToken!)
  for (let at = 0; at < 100; at++) await keeper.send(QUEUE, `${at}`.padEnd(500))
  const before = await readersOf(dataFolder)
  for (let at = 0; at < ABORTED; at += 8) {
    const lists = Array.from({ length: 7 }, (_, more) => abortList(server, ann!, at + more))
    await Promise.all([...lists, abortInbox(server, bob!), writer.send(QUEUE, 'x')])
  }
  // This answer comes after all of those.
  await ann!.app.get(200, 'GET /app/api/friend')
  await writer.send(QUEUE, 'x')
  return [before, await readersOf(dataFolder)]
}

t.test(`${ABORTED} aborted reads leave no reader behind`, async t => {
  const [before, after] = await readersAround(t)
  // One belongs to the present reads.
  t.ok(before <= 1 && after <= 1, `${before} before, ${after} after`)
})

t.test('positive control: readers that are left behind are seen', async t => {
  const [before, after] = await readersAround(t, { isLeaky: true })
  t.ok(after > before + 10, `${before} before, ${after} after`)
})
