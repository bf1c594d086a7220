/** WebSockets over real sockets: who is let in, frames that pass, ends, and hostile peers. */

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import path from 'node:path'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { BACKPRESSURE_BYTES_MAX, FRAME_BYTES_MAX, WEBSOCKET_MESSAGE_BYTES_MAX } from '../../src/limits.ts'
import { dotted } from '../support/bytes.ts'
import { fakeAdmission } from '../support/fake-admission.ts'
import { sendRaw } from '../support/raw-http.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import { countOf, sized } from '../support/size.ts'
import { SocketClient, upgradeRequest, webSocketFrame } from '../support/socket-client.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'
import {
  type Heard,
  joinSockets,
  type RecordedSession,
  type SocketServer,
  serveSockets,
} from '../support/web-sockets.ts'

/** A client and the session that the server made for it. */
async function join({
  port,
  sessions,
}: SocketServer): Promise<Heard & { readonly session: RecordedSession }> {
  const heard = await joinSockets(port)
  return { ...heard, session: sessions.all.at(-1)! }
}

/** The same, with a client that speaks by hand. */
async function joinByHand({ port, sessions }: SocketServer) {
  const { socket } = await SocketClient.open('websocket', port)
  return { socket, session: sessions.all.at(-1)! }
}

/** Whether a new client is still served. */
async function isAlive(server: SocketServer): Promise<boolean> {
  const { socket, session } = await join(server)
  socket.send('alive')
  await session.until(({ text }) => text === 'alive')
  socket.terminate()
  return true
}

/** Sends frames of random sizes and numbers, turn after turn, and finds them all. */
async function exchangeRandomFrames(
  t: Test,
  { messages, socket }: Heard,
  session: RecordedSession,
): Promise<void> {
  const seed = seedOf()
  const random = randomFrom(seed)
  const sizes: number[] = []
  for (let turn = 0; turn < 40; turn++) {
    let bytes = 0
    for (let left = 1 + Math.floor(random() * 20); left > 0 && bytes < 600_000; left--) {
      const size = Math.floor(random() ** 4 * FRAME_BYTES_MAX)
      sizes.push(size)
      bytes += size
      session.connection.send(bytesOf(size, String.fromCharCode(97 + (sizes.length % 26))), true)
    }
    while (messages.length < sizes.length) await once(socket, 'message')
  }
  const wrong = messages.filter(({ text, isBinary }, at) => {
    const letter = String.fromCharCode(97 + ((at + 1) % 26))
    return isBinary || text !== letter.repeat(sizes[at]!)
  })
  t.same([messages.length, wrong.length], [sizes.length, 0], `seed ${seed}`)
}

/** A key and certificate for localhost, and the CA that signed it. */
const TLS_FOLDER = path.join(PROJECT_ROOT, 'test/support/tls')
const TLS = {
  certificateFile: path.join(TLS_FOLDER, 'server.crt'),
  keyFile: path.join(TLS_FOLDER, 'server.key'),
}

const bytesOf = (length: number, fill = 'x') => Buffer.alloc(length, fill)

t.test('the newest sub-protocol that is offered and ours is chosen, and no other is sent back', async t => {
  const { port } = await serveSockets(t)
  const line = (value: string) => `Sec-WebSocket-Protocol: ${value}\r\n`
  const offers: [lines: string, chosen: string | undefined][] = [
    [line('v12.stomp, v11.stomp, v10.stomp'), 'v12.stomp'],
    [line('bogus, v11.stomp'), 'v11.stomp'],
    [line('v10.stomp,v11.stomp'), 'v11.stomp'],
    [line('v10.stomp') + line('v12.stomp'), 'v12.stomp'],
    [line('bogus, eyJhbGciOiJIUzI1NiJ9'), undefined],
    [line('V12.STOMP'), undefined],
    ['', undefined],
  ]
  for (const [lines, chosen] of offers) {
    const { head, socket } = await SocketClient.open('websocket', port, { upgradeLines: lines })
    socket.destroy()
    t.match(head, /^HTTP\/1\.1 101 /, lines)
    t.equal(/^sec-websocket-protocol: (.*)\r$/im.exec(head)?.[1], chosen, lines)
  }
})

t.test('each path of the contract upgrades, with a trailing slash too, and no other', async t => {
  const { port } = await serveSockets(t)
  const statusOf = async (path: string) => {
    const { head, socket } = await SocketClient.open('websocket', port, { path })
    socket.destroy()
    return head.slice(9, 12)
  }
  for (const path of ['/ws', '/app/ws', '/stomp', '/ws/websocket', '/ws/', '/ws?token=x']) {
    t.equal(await statusOf(path), '101', path)
  }
  for (const path of ['/', '/wss', '/ws/info', '/ws/123/abc/websocket']) {
    t.equal(await statusOf(path), '404', path)
  }
})

t.test('without parts for WebSockets there are none', async t => {
  const { port } = await serveSockets(t, { hasSockets: false })
  const { head, socket } = await SocketClient.open('websocket', port)
  socket.destroy()
  t.match(head, /^HTTP\/1\.1 404 /)
})

t.test('a request for no WebSocket, or another version, hears which protocols are spoken here', async t => {
  const { port, sessions } = await serveSockets(t)
  for (const path of ['/ws', '/app/ws', '/stomp/', '/ws/websocket']) {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`)
    t.match(await answer.json(), { status: 426, code: 'UPGRADE_REQUIRED' }, path)
    t.equal(answer.headers.get('content-type'), 'application/problem+json')
    t.equal(answer.headers.get('upgrade'), 'websocket')
  }
  const { head, socket } = await SocketClient.open('websocket', port, {
    upgradeLines: 'Sec-WebSocket-Version: 8\r\n',
  })
  socket.destroy()
  t.match(head, /^HTTP\/1\.1 426 /)
  t.match(head, /^Sec-WebSocket-Version: 13\r$/m)
  t.equal((await fetch(`http://127.0.0.1:${port}/ws`, { method: 'POST' })).status, 405)
  t.same(sessions.all, [])
})

t.test('pages connect from listed origins, from the server itself and from its public URL only', async t => {
  const answers: string[] = []
  const onAnswer = (route: string, status: number) => answers.push(`${route} ${status}`)
  const { port, refusals } = await serveSockets(t, {
    parts: { corsOrigins: ['https://app.example'], onAnswer },
    publicUrl: () => 'https://call.example/base',
  })
  const origins: [origin: string, host: string, status: string][] = [
    ['https://app.example', '127.0.0.1', '101'],
    ['https://call.example', '127.0.0.1', '101'],
    ['http://127.0.0.1', '127.0.0.1', '101'],
    ['http://localhost:8080', 'localhost:8080', '101'],
    ['https://other.example', 'other.example:443', '101'],
    ['https://evil.example', '127.0.0.1', '403'],
    ['https://app.example.evil.example', '127.0.0.1', '403'],
    ['http://app.example', '127.0.0.1', '403'],
    ['http://call.example', '127.0.0.1', '403'],
    ['http://localhost:8081', 'localhost:8080', '403'],
    ['null', '127.0.0.1', '403'],
    ['file://', '', '403'],
    ['nonsense', 'nonsense', '403'],
  ]
  for (const [origin, host, status] of origins) {
    const text = upgradeRequest('/ws', `Origin: ${origin}\r\nConnection: close\r\n`)
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    socket.write(text.replace('Host: 127.0.0.1', `Host: ${host}`))
    const [answer] = await once(socket, 'data')
    socket.destroy()
    t.equal(String(answer).slice(9, 12), status, `${origin} at ${host}`)
  }
  t.equal(refusals.filter(code => code === 'ORIGIN_NOT_ALLOWED').length, 8)
  t.same([...new Set(answers)], ['/ws 403'], 'metrics see the refusals')
})

t.test('an address that asks too often, and everybody when there is no room, has to wait', async t => {
  const waits = [0, 7, 0, 0, 0]
  const asked: string[] = []
  const admission = fakeAdmission((network, what) => {
    asked.push(`${dotted(network)} ${what}`)
    return waits.shift() ?? 0
  })
  const { port, sessions, refusals } = await serveSockets(t, {
    parts: { admission, trustedProxies: ['127.0.0.1'] },
    open: { connectionsMax: 2 },
  })
  const ask = () => SocketClient.open('websocket', port, { upgradeLines: 'X-Forwarded-For: 192.0.2.7\r\n' })
  const first = await ask()
  const limited = await ask()
  t.match(limited.head, /^HTTP\/1\.1 429 /)
  t.match(limited.head, /^Retry-After: 7\r$/m)
  await ask()
  const full = await ask()
  t.match(full.head, /^HTTP\/1\.1 503 /)
  t.match(full.head, /^Retry-After: \d+\r$/m)
  first.socket.destroy()
  await sessions.all[0]!.closed()
  t.match((await ask()).head, /^HTTP\/1\.1 101 /)
  t.same([...new Set(asked)], ['192.0.2.7 socket'])
  t.same(refusals, ['RATE_LIMITED', 'OVERLOADED'])
})

t.test('the session knows the address and the Authorization header', async t => {
  const { port, sessions } = await serveSockets(t, { parts: { trustedProxies: ['127.0.0.1'] } })
  await SocketClient.open('websocket', port, {
    upgradeLines: 'X-Forwarded-For: 192.0.2.1\r\nAuthorization: Bearer abc\r\n',
  })
  await SocketClient.open('websocket', port)
  const [one, other] = sessions.all.map(({ connection }) => connection)
  t.same([one?.authorization, other?.authorization], ['Bearer abc', ''])
  t.same([dotted(one!.network), dotted(other!.network)], ['192.0.2.1', '127.0.0.1'])
  t.not(one?.id, other?.id)
})

t.test('text and binary messages come in alike, and empty ones not at all', async t => {
  const server = await serveSockets(t)
  const { socket, session } = await join(server)
  const sent = ['one', Buffer.from('two'), '', Buffer.alloc(0), 'three', Buffer.from('four')]
  for (const message of sent) socket.send(message)
  await session.until(({ text }) => text.endsWith('four'))
  t.same(session.chunks, ['one', 'two', 'three', 'four'])
})

t.test('a message in fragments comes in whole, and a ping between them is answered', async t => {
  const server = await serveSockets(t)
  const { socket, session } = await joinByHand(server)
  socket.write(webSocketFrame(0x01, 'one '))
  socket.write(webSocketFrame(0x89, 'ping'))
  socket.write(webSocketFrame(0x00, 'two '))
  socket.write(webSocketFrame(0x80, 'three'))
  const [pong] = await once(socket, 'data')
  t.same(pong, Buffer.concat([Buffer.from([0x8a, 4]), Buffer.from('ping')]))
  await session.until(({ text }) => text !== '')
  t.same(session.chunks, ['one two three'])
})

t.test('each frame is one message of its kind, in order', async t => {
  const server = await serveSockets(t)
  const { session, messages, closed } = await join(server)
  for (const isText of [true, false, true, true, false]) {
    session.connection.send(Buffer.from(isText ? 'text é' : 'binary'), isText)
  }
  await endOfTurn()
  session.connection.send(Buffer.from('alone'), true)
  session.connection.end(1000, '')
  await closed
  t.same(
    messages.map(({ isBinary }) => isBinary),
    [false, true, false, false, true, false],
  )
  t.same([messages[0]?.text, messages[5]?.text], ['text é', 'alone'])
})

for (const isTls of [false, true]) {
  const how = isTls ? 'with TLS' : 'without TLS'
  t.test(`frames of any size and number in one turn arrive whole, ${how}`, async t => {
    const server = await serveSockets(t, isTls ? { parts: { tls: TLS } } : {})
    const heard = await joinSockets(
      server.port,
      isTls ? readFileSync(path.join(TLS_FOLDER, 'ca.crt')) : undefined,
    )
    await exchangeRandomFrames(t, heard, server.sessions.all[0]!)
  })
}

t.test('a client that speaks in binary messages is answered in them, though it beats in text', async t => {
  const { socket, messages, session, closed } = await join(await serveSockets(t))
  socket.send('\n')
  socket.send(Buffer.from('CONNECT'))
  await session.until(({ text }) => text === '\nCONNECT')
  session.connection.send(Buffer.from('CONNECTED'), true)
  socket.send('\n')
  await session.until(({ text }) => text === '\nCONNECT\n')
  for (const frame of ['RECEIPT', '\n']) session.connection.send(Buffer.from(frame), true)
  session.connection.end(1000, '')
  await closed
  t.same(
    messages.map(({ text, isBinary }) => [text, isBinary]),
    [
      ['CONNECTED', true],
      ['RECEIPT', true],
      ['\n', true],
    ],
  )
})

t.test('an end carries code and reason, behind everything sent before it', async t => {
  const server = await serveSockets(t)
  const { session, socket, messages, closed } = await join(server)
  session.act = () => {
    session.connection.send(Buffer.from('last words'), true)
    session.connection.end(4409, 'replaced')
    session.connection.send(Buffer.from('too late'), true)
  }
  socket.send('one')
  socket.send('two')
  t.same(await closed, [4409, 'replaced'])
  t.same(
    messages.map(({ text }) => text),
    ['last words'],
  )
  t.same([session.codes, session.chunks], [[4409], ['one']], 'what came after the end is not heard')
})

t.test('the session hears how the client left, once', async t => {
  const server = await serveSockets(t)
  const leave: [(heard: Heard) => void, number][] = [
    [({ socket }) => socket.close(4001, 'bye'), 4001],
    [({ socket }) => socket.close(1000), 1000],
    [({ socket }) => socket.close(), 1005],
    [({ socket }) => socket.terminate(), 1006],
  ]
  for (const [act, code] of leave) {
    const heard = await join(server)
    act(heard)
    t.equal(await heard.session.closed(), code)
    heard.session.connection.send(Buffer.from('late'), true)
    heard.session.connection.end(1000, '')
    heard.session.connection.close()
    t.equal(heard.session.connection.bufferedBytes(), 0)
  }
  await endOfTurn()
  t.same(
    server.sessions.all.map(({ codes }) => codes.length),
    [1, 1, 1, 1],
  )
  t.equal(server.connections.size, 0)
})

t.test('a close is seen as a broken connection', async t => {
  const server = await serveSockets(t)
  const { session, socket, closed } = await join(server)
  session.act = () => session.connection.close()
  socket.send('go')
  t.same(await closed, [1006, ''])
  t.same(session.codes, [1006])
})

t.test('a session that fails ends its own connection and no other', async t => {
  const server = await serveSockets(t)
  const { session, socket, closed } = await join(server)
  session.act = () => {
    throw new Error('broken session')
  }
  socket.send('go')
  t.equal((await closed)[0], 1011)
  t.match(server.faults, [{ message: 'broken session' }])
  server.sessions.onAccept = () => {
    throw new Error('refuses')
  }
  t.equal((await (await joinSockets(server.port)).closed)[0], 1011)
  server.sessions.onAccept = () => {}
  t.ok(await isAlive(server))
})

t.test(
  'a message above the limit of a frame still reaches the session; above twice that nothing does',
  async t => {
    const server = await serveSockets(t)
    const { socket, session, closed } = await join(server)
    socket.send(bytesOf(WEBSOCKET_MESSAGE_BYTES_MAX))
    await session.until(({ text }) => text.length === WEBSOCKET_MESSAGE_BYTES_MAX)
    socket.send(bytesOf(WEBSOCKET_MESSAGE_BYTES_MAX + 1))
    t.equal((await closed)[0], 1006)
    t.equal(session.text.length, WEBSOCKET_MESSAGE_BYTES_MAX)
    t.ok(await isAlive(server))
  },
)

t.test('a breach of WebSocket’s rules ends its connection, and the server lives', async t => {
  const server = await serveSockets(t)
  const violations: [string, Buffer][] = [
    ['text that is not UTF-8', webSocketFrame(0x81, Buffer.from([0xc3, 0x28]))],
    [
      'the same across fragments',
      Buffer.concat([webSocketFrame(0x01, '\xff'), webSocketFrame(0x80, Buffer.from([0xff]))]),
    ],
    ['a reserved bit', webSocketFrame(0xc1, 'x')],
    ['a reserved opcode', webSocketFrame(0x83, 'x')],
    ['a reserved control opcode', webSocketFrame(0x8b, 'x')],
    ['a control frame in fragments', webSocketFrame(0x09, 'x')],
    ['a control frame of 126 bytes', webSocketFrame(0x89, bytesOf(126))],
    ['a continuation of nothing', webSocketFrame(0x80, 'x')],
    ['a length of 2^63', Buffer.from([0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])],
  ]
  for (const [name, bytes] of violations) {
    const { socket, session } = await joinByHand(server)
    socket.resume().write(bytes)
    t.equal(await session.closed(), 1006, name)
    t.equal(session.text, '', name)
    socket.destroy()
  }
  t.ok(await isAlive(server))
})

t.test('a client may break off at any point of a connection', async t => {
  const server = await serveSockets(t)
  const message = webSocketFrame(0x81, bytesOf(1_000))
  const stream = Buffer.concat([Buffer.from(upgradeRequest()), message, webSocketFrame(0x88, '\x03\xe8')])
  for (let cut = 1; cut <= stream.length; cut += 37) {
    const socket = connect(server.port, '127.0.0.1').on('error', () => {})
    await once(socket, 'connect')
    await new Promise(resolve => socket.write(stream.subarray(0, cut), resolve))
    if (cut % 2 === 0) socket.resetAndDestroy()
    else socket.destroy()
  }
  t.ok(await isAlive(server))
  for (const session of server.sessions.all) await session.closed()
  t.equal(server.connections.size, 0)
  t.same(server.faults, [])
})

t.test('a client may break off while it is being written to, or ended', async t => {
  const server = await serveSockets(t)
  for (const isEnded of [false, true]) {
    const { socket, session } = await joinByHand(server)
    socket.pause()
    const send = () => {
      const { connection } = session
      while (session.codes.length === 0 && connection.bufferedBytes() < FRAME_BYTES_MAX) {
        connection.send(bytesOf(65_536), false)
      }
    }
    session.actOnClosed = send
    for (let turn = 0; turn < 100 && session.connection.bufferedBytes() === 0; turn++) {
      send()
      await endOfTurn()
    }
    t.ok(session.connection.bufferedBytes() > 0)
    if (isEnded) session.connection.end(1012, 'draining')
    await endOfTurn()
    socket.resetAndDestroy()
    t.equal(await session.closed(), 1006)
  }
  await endOfTurn()
  t.same([server.connections.size, server.connections.bufferedBytes], [0, 0])
  t.ok(await isAlive(server))
})

/** Sends frames until so many bytes do not leave. */
async function fillUp({ connection }: RecordedSession, bytes: number): Promise<number> {
  let frames = 0
  while (connection.bufferedBytes() < bytes) {
    connection.send(bytesOf(16_384), false)
    frames++
    await endOfTurn()
  }
  return frames
}

t.test('a client that reads again in time gets everything, then the close', async t => {
  const server = await serveSockets(t)
  const { socket, session, messages, closed } = await join(server)
  socket.pause()
  const frames = await fillUp(session, 256 * 1024)
  session.connection.send(Buffer.from('ERROR'), true)
  session.connection.end(4410, 'slow')
  await endOfTurn()
  t.same(session.codes, [], 'the end waits')
  socket.resume()
  t.same(await closed, [4410, 'slow'])
  t.equal(messages.length, frames + 1)
  t.equal(messages.at(-1)?.text, 'ERROR')
  t.same(session.codes, [4410])
})

t.test('a client that never reads again is cut off at the deadline', async t => {
  const server = await serveSockets(t, { open: { lingerMs: 20 } })
  const { socket, session } = await join(server)
  socket.pause()
  await fillUp(session, 256 * 1024)
  session.connection.end(4410, 'slow')
  t.equal(await session.closed(), 1006)
  t.equal(server.connections.bufferedBytes, 0)
  socket.terminate()
})

t.test('a session hears when bytes leave, and can go on from there', async t => {
  const server = await serveSockets(t)
  const { socket, session, messages } = await join(server)
  socket.pause()
  let sent = await fillUp(session, 256 * 1024)
  session.actOnDrain = () => {
    for (; session.connection.bufferedBytes() < 128 * 1024 && sent < 2_000; sent++) {
      session.connection.send(bytesOf(16_384), false)
    }
  }
  socket.resume()
  while (messages.length < 2_000) await once(socket, 'message')
  t.ok(session.drains > 1)
  t.equal(messages.length, 2_000)
  t.equal(session.connection.bufferedBytes(), 0)
})

t.test('24 MiB for a client that does not read stay a megabyte, and disturb no other', async t => {
  for (const framesPerTurn of [1, 3]) {
    const server = await serveSockets(t)
    const [slow, quick] = [await join(server), await join(server)]
    slow.socket.pause()
    const frame = bytesOf(64 * 1024)
    let most = 0
    let sent = 0
    for (; sent < 24 * 16; sent += framesPerTurn) {
      for (let i = 0; i < framesPerTurn; i++) slow.session.connection.send(frame, false)
      quick.session.connection.send(Buffer.from('tick'), true)
      await endOfTurn()
      most = Math.max(most, server.connections.bufferedBytes)
    }
    t.ok(most <= BACKPRESSURE_BYTES_MAX + 4 * frame.length, `${most} bytes at most`)
    t.same(slow.session.codes, [1006], 'it was closed rather than given a gap')
    while (quick.messages.length < sent / framesPerTurn) await once(quick.socket, 'message')
    t.equal(server.connections.bufferedBytes, 0)
    slow.socket.terminate()
  }
})

t.test('more in one turn than a connection takes closes it, and nothing comes behind the gap', async t => {
  const server = await serveSockets(t)
  const { session, messages, closed } = await join(server)
  for (let at = 0; at < 24 * 16; at++) session.connection.send(bytesOf(64 * 1024, `${at} `), true)
  t.equal((await closed)[0], 1006)
  t.ok(messages.length < 24 * 16)
  t.equal(messages.filter(({ text }, at) => Number.parseInt(text, 10) !== at).length, 0)
})

t.test('when all slow clients together have too much, the worst of them goes', async t => {
  const server = await serveSockets(t, { open: { bufferedBytesMax: 600 * 1024 } })
  const clients = [await join(server), await join(server), await join(server)]
  for (const { socket } of clients) socket.pause()
  const [small, large, medium] = clients.map(({ session }) => session)
  await fillUp(small!, 64 * 1024)
  await fillUp(large!, 320 * 1024)
  t.same(server.connections.worst(1), [large!.connection])
  await fillUp(medium!, 240 * 1024)
  t.same([small!.codes, large!.codes, medium!.codes], [[], [1006], []])
  t.equal(server.connections.shedCount, 1)
  for (const { socket } of clients) socket.terminate()
})

t.test('many clients that come and go leave nothing behind', sized(), async t => {
  const server = await serveSockets(t)
  const count = countOf('CALLSIGN_TEST_CONNECTIONS', { short: 200, long: 500 })
  server.sessions.onAccept = session => {
    session.act = text => {
      session.connection.send(Buffer.from(text), true)
      if (text === 'end') session.connection.end(1000, '')
    }
  }
  let echoes = 0
  const comeAndGo = async (number: number) => {
    const { head, socket } = await SocketClient.open('websocket', server.port)
    t.match(head, / 101 /)
    socket.write(webSocketFrame(0x81, number % 3 === 0 ? 'end' : 'hello'))
    const [answer] = await once(socket, 'data')
    if (/end|hello/.test(String(answer))) echoes++
    if (number % 3 === 1) socket.resetAndDestroy()
    else socket.destroy()
  }
  for (let done = 0; done < count; done += 50) {
    await Promise.all(Array.from({ length: Math.min(50, count - done) }, (_, at) => comeAndGo(done + at)))
  }
  for (const session of server.sessions.all) await session.closed()
  t.equal(echoes, count)
  t.same([server.connections.size, server.connections.bufferedBytes], [0, 0])
  t.same(server.faults, [])
})

t.test('a server that closes tells its sessions, and takes no more connections', async t => {
  const server = await serveSockets(t)
  const clients = [await join(server), await join(server)]
  server.server.stopListening()
  const { socket, session } = clients[0]!
  socket.send('still here')
  await session.until(({ text }) => text === 'still here')
  t.equal(await sendRaw(server.port, upgradeRequest()), '')
  server.server.close()
  for (const { session } of clients) t.equal(await session.closed(), 1006)
  for (const { closed } of clients) t.equal((await closed)[0], 1006)
  t.equal(server.connections.size, 0)
})
