/** Plain TCP connections: the same promises as over WebSocket, on a stream. */

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { BACKPRESSURE_BYTES_MAX } from '../../src/limits.ts'
import { OpenConnections, type OpenConnectionsOptions } from '../../src/transport/open-connections.ts'
import { StompTcpServer } from '../../src/transport/stomp-tcp.ts'
import { dotted } from '../support/bytes.ts'
import { type RecordedSession, Sessions } from '../support/web-sockets.ts'

interface TcpServer {
  readonly port: number
  readonly sessions: Sessions
  readonly connections: OpenConnections
  readonly faults: unknown[]
  readonly server: StompTcpServer
}

async function serve(t: Test, open?: OpenConnectionsOptions): Promise<TcpServer> {
  const sessions = new Sessions()
  const connections = new OpenConnections(open)
  const faults: unknown[] = []
  const onFault = (error: unknown) => faults.push(error)
  const server = new StompTcpServer({ accept: sessions.accept, connections, onFault })
  t.teardown(() => server.close())
  const port = await server.listen('127.0.0.1', 0)
  return { port, sessions, connections, faults, server }
}

interface Client {
  readonly socket: Socket
  readonly session: RecordedSession
  /** Resolves with all the bytes, when the connection has ended. */
  readonly heard: Promise<string>
}

async function join({ port, sessions }: TcpServer): Promise<Client> {
  const index = sessions.all.length
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  let text = ''
  socket.on('data', bytes => {
    text += bytes.toString('latin1')
  })
  socket.on('error', () => {})
  const heard = once(socket, 'close').then(() => text)
  return { socket, heard, session: await sessions.at(index) }
}

/** Sends frames until so many bytes do not leave. */
async function fillUp({ connection }: RecordedSession, bytes: number): Promise<number> {
  let frames = 0
  while (connection.bufferedBytes() < bytes) {
    connection.send(Buffer.alloc(16_384, 'x'), false)
    frames++
    await endOfTurn()
  }
  return frames
}

t.test('bytes come in as they are and frames go out in order, whatever their kind', async t => {
  const server = await serve(t)
  const { socket, session, heard } = await join(server)
  socket.write('CONNECT\n\n\0SEND\n')
  await session.until(({ text }) => text === 'CONNECT\n\n\0SEND\n')
  t.equal(dotted(session.connection.network), '127.0.0.1')
  t.equal(session.connection.authorization, '')
  for (const frame of ['one', 'two', 'three']) session.connection.send(Buffer.from(frame), frame === 'two')
  session.connection.end(1000, 'bye')
  session.connection.send(Buffer.from('late'), true)
  t.equal(await heard, 'onetwothree')
  t.equal(await session.closed(), 1000)
  t.equal(server.connections.size, 0)
})

t.test('a client that shuts its side gets the frames sent by then, and is gone', async t => {
  const server = await serve(t)
  const { socket, session, heard } = await join(server)
  session.act = () => session.connection.send(Buffer.from('answer'), true)
  socket.end('question')
  t.equal(await heard, 'answer')
  t.equal(await session.closed(), 1005)
})

t.test('a connection that breaks is reported as 1006, once', async t => {
  const server = await serve(t)
  const { socket, session } = await join(server)
  socket.resetAndDestroy()
  t.equal(await session.closed(), 1006)
  session.connection.send(Buffer.from('late'), true)
  session.connection.end(1000, '')
  session.connection.close()
  await endOfTurn()
  t.same(session.codes, [1006])
  t.equal(session.connection.bufferedBytes(), 0)
})

t.test('a close ends the connection at once', async t => {
  const server = await serve(t)
  const { session, heard } = await join(server)
  session.connection.send(Buffer.from('lost'), true)
  session.connection.close()
  t.same(session.codes, [1006])
  t.equal(await heard, '')
})

t.test('a client that stays after the end is cut off', async t => {
  const server = await serve(t, { lingerMs: 20 })
  const socket = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true })
  const session = await server.sessions.at(0)
  session.connection.end(1008, 'policy')
  await once(socket.resume(), 'end')
  t.equal(await session.closed(), 1006)
  t.equal(server.connections.size, 0)
  socket.destroy()
})

t.test('a client that reads again in time gets everything; one that does not is cut off', async t => {
  const server = await serve(t, { lingerMs: 500 })
  const [late, never] = [await join(server), await join(server)]
  const frames = await Promise.all(
    [late, never].map(({ socket, session }) => {
      socket.pause()
      return fillUp(session, 256 * 1024)
    }),
  )
  t.same(server.connections.worst(3).length, 2)
  for (const { session } of [late, never]) {
    session.connection.send(Buffer.from('ERROR'), true)
    session.connection.end(4410, 'slow')
  }
  late.socket.resume()
  const text = await late.heard
  t.equal(text.length, frames[0]! * 16_384 + 5)
  t.equal(await late.session.closed(), 4410)
  t.equal(await never.session.closed(), 1006)
  t.equal(server.connections.bufferedBytes, 0)
})

t.test('a session hears when its unsent bytes have left', async t => {
  const server = await serve(t)
  const { socket, session } = await join(server)
  socket.pause()
  await fillUp(session, 256 * 1024)
  t.equal(session.drains, 0)
  socket.resume()
  await session.until(({ connection }) => connection.bufferedBytes() === 0)
  t.ok(session.drains > 0)
})

t.test('24 MiB for a client that does not read stay a megabyte', async t => {
  const server = await serve(t)
  const { socket, session } = await join(server)
  socket.pause()
  const frame = Buffer.alloc(64 * 1024)
  let most = 0
  for (let sent = 0; sent < 24 * 1024 * 1024; sent += frame.length) {
    session.connection.send(frame, false)
    await endOfTurn()
    most = Math.max(most, server.connections.bufferedBytes)
  }
  t.ok(most <= BACKPRESSURE_BYTES_MAX + 2 * frame.length, `${most} bytes at most`)
  t.same(session.codes, [1006])
  t.equal(server.connections.bufferedBytes, 0)
  socket.destroy()
})

t.test('one connection too many is closed', async t => {
  const server = await serve(t, { connectionsMax: 1 })
  const { socket, session } = await join(server)
  const refused = connect(server.port, '127.0.0.1').on('error', () => {})
  await once(refused, 'close')
  t.equal(server.sessions.all.length, 1)
  socket.destroy()
  await session.closed()
  await join(server)
})

t.test('a session that fails ends its own connection and no other', async t => {
  const server = await serve(t)
  const [one, other] = [await join(server), await join(server)]
  one.session.act = () => {
    throw new Error('broken session')
  }
  one.socket.write('go')
  await one.heard
  t.equal(await one.session.closed(), 1011)
  t.match(server.faults, [{ message: 'broken session' }])
  other.socket.write('alive')
  await other.session.until(({ text }) => text === 'alive')
})

t.test('a taken port is refused', async t => {
  const { port } = await serve(t)
  const connections = new OpenConnections()
  const second = new StompTcpServer({ accept: new Sessions().accept, connections, onFault() {} })
  await t.rejects(second.listen('127.0.0.1', port), { code: 'EADDRINUSE' })
})

t.test('a server that closes tells its sessions', async t => {
  const server = await serve(t)
  const clients = [await join(server), await join(server)]
  server.server.stopListening()
  const { socket, session } = clients[0]!
  socket.write('still here')
  await session.until(({ text }) => text === 'still here')
  server.server.close()
  for (const { session } of clients) t.equal(await session.closed(), 1006)
  t.equal(server.connections.size, 0)
})
