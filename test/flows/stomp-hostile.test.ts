/**
 * Clients that read nothing, say too much, come in thousands or reach for what is not theirs, each with somebody beside
 * who goes on being served. The server stays up, its memory bounded, its log without faults.
 */

import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import WebSocket from 'ws'
import { befriend, newCallKey, startCall } from '../support/call-people.ts'
import { Innocent } from '../support/wire-innocent.ts'
import { headerOf, type WireFrame, type WirePeer, webSocketFrame } from '../support/wire-peer.ts'
import {
  CARRIERS,
  connectFrame,
  deviceOf,
  disconnect,
  endingOf,
  send,
  sendFrame,
  subscribe,
  type WireDevice,
  WireServer,
} from '../support/wire-server.ts'

const folder = t.testdir({ free: {}, limited: {} })
const server = await WireServer.start(t, { people: 60, dataFolder: join(folder, 'free') })
const limited = await WireServer.start(t, {
  people: 9,
  dataFolder: join(folder, 'limited'),
  environment: { CALLSIGN_RATE_LIMITS: '' },
})

function bodies(frames: readonly WireFrame[]): string[] {
  return frames.filter(({ command }) => command === 'MESSAGE').map(({ body }) => String(body))
}

const SLOW_PER_CARRIER = 4
const SLOW_COUNT = 2 * SLOW_PER_CARRIER
const SLOW_TOPIC = '/topic/dev.slow'
const PIECE_BYTES = 48 * 1024
/** 24 MiB for each of them. */
const PIECES = 512

/** A subscriber with the `ws` library, for much that comes at once. */
class QuickReader {
  readonly #socket = new WebSocket(`${server.running.http.replace('http', 'ws')}/ws`)
  /** What the bodies so far begin with. */
  readonly numbers: number[] = []
  #isSubscribed = false

  static async join({ token }: WireDevice): Promise<QuickReader> {
    const reader = new QuickReader()
    reader.#socket.once('open', () => {
      reader.#socket.send(connectFrame(token))
      reader.#socket.send(`SUBSCRIBE\nid:s\ndestination:${SLOW_TOPIC}\nreceipt:r\n\n\0`)
    })
    reader.#socket.on('message', (data: Buffer) => reader.#onFrame(data))
    await reader.until(() => reader.#isSubscribed)
    return reader
  }

  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await once(this.#socket, 'message')
  }

  leave(): void {
    this.#socket.terminate()
  }

  #onFrame(frame: Buffer): void {
    const command = frame.toString('latin1', 0, 7)
    if (command === 'RECEIPT') this.#isSubscribed = true
    if (command !== 'MESSAGE') return
    this.numbers.push(Number.parseInt(frame.toString('latin1', frame.length - PIECE_BYTES - 1), 10))
  }
}

t.test('I-15: who reads nothing is cut off in time, others are served, memory stays bounded', async t => {
  const [sending, reading, ...lazy] = await server.devices(2 + SLOW_COUNT)
  const quick = await QuickReader.join(reading!)
  const sender = await server.connect('tcp', sending!)
  const slow = await Promise.all(lazy.map((device, at) => server.connect(CARRIERS[at % 2]!, device)))
  for (const peer of slow) {
    await subscribe(peer, SLOW_TOPIC)
    peer.keepTail()
    peer.pause()
  }
  const innocent = await Innocent.join(server, 'websocket')
  const baselineBytes = server.residentBytes()
  let [mostBytes, mostBuffered] = [0, 0]
  for (let sent = 0; sent < PIECES; sent += 8) {
    const pieces = Array.from({ length: 8 }, (_, at) => `${sent + at} `.padEnd(PIECE_BYTES, 'x'))
    sender.write(pieces.map(piece => sendFrame(SLOW_TOPIC, piece)).join(''))
    await quick.until(() => quick.numbers.length === sent + 8)
    await innocent.round()
    mostBytes = Math.max(mostBytes, server.residentBytes())
    mostBuffered = Math.max(mostBuffered, await server.figure('callsign_connection_buffered_bytes'))
  }
  t.ok(mostBuffered < SLOW_COUNT * 1.5 * 1024 * 1024, `${mostBuffered} bytes unsent at most`)
  t.ok(mostBytes - baselineBytes < 96 * 1024 * 1024, `${mostBytes - baselineBytes} bytes more`)
  t.same(quick.numbers, [...quick.numbers.keys()], 'all of it, in order')
  quick.leave()

  await server.figureWhen('callsign_stomp_endings_total{reason="slow"}', figure => figure === SLOW_COUNT)
  await server.figureWhen('callsign_connections', figure => figure === 2)
  t.equal(await server.figure('callsign_connection_buffered_bytes'), 0)
  for (const peer of slow) peer.destroy()
  await disconnect(sender)
  await innocent.leave(t)
})

t.test('I-15: who reads again in time is told that it was slow', async t => {
  for (const carrier of CARRIERS) {
    const [sending, lazy] = await server.devices(2)
    const [sender, slow] = [await server.connect('tcp', sending!), await server.connect(carrier, lazy!)]
    await subscribe(slow, SLOW_TOPIC)
    slow.keepTail()
    slow.pause()
    const slowSoFar = () => server.figure('callsign_stomp_endings_total{reason="slow"}')
    const before = await slowSoFar()
    const piece = sendFrame(SLOW_TOPIC, 'x'.repeat(PIECE_BYTES))
    while ((await slowSoFar()) === before) {
      sender.write(piece.repeat(16))
      await send(sender, '/topic/dev.paces', 'x')
    }
    slow.resume()
    await slow.closed()
    const error = slow.tail.subarray(slow.tail.lastIndexOf('ERROR\n'))
    t.match(error.toString('latin1'), /^ERROR\n(?:[^\n]+\n)*reason:slow\nretry:after\nretry-after:0\n/)
    // 4410, behind the frame.
    if (carrier === 'websocket') t.ok(error.subarray(error.indexOf(0)).includes(Buffer.of(0x11, 0x3a)))
    await disconnect(sender)
  }
})

t.test('a sender that floods is stopped at its rate, and others do not notice', async t => {
  for (const carrier of CARRIERS) {
    const [flooding, hearing] = await limited.devices(2)
    const witness = await limited.connect(carrier, hearing!)
    await subscribe(witness, '/topic/dev.flood')
    const innocent = await Innocent.join(limited, carrier)
    const peer = await limited.connect(carrier, flooding!)
    peer.write(Array.from({ length: 10_000 }, (_, at) => sendFrame('/topic/dev.flood', `${at}`)).join(''))
    await innocent.round()
    t.equal(await endingOf(peer), `rate_limited ${carrier === 'tcp' ? 1005 : 1008}`)
    t.match(headerOf(peer.frames.at(-1), 'retry-after'), /^\d+$/)
    await send(witness, '/topic/dev.flood', 'last')
    const came = bodies(await disconnect(witness))
    t.equal(came.pop(), 'last')
    t.same(came.map(Number), [...came.keys()], 'E-29: what came before it was done, in order')
    t.ok(came.length >= 195 && came.length < 400, `${came.length} of them`)
    await innocent.leave(t)
  }
})

/** Why so many CONNECTs with a bad credential were refused, each. */
async function refusals(house: WireServer, count: number): Promise<(string | undefined)[]> {
  const reasons: (string | undefined)[] = []
  for (let at = 0; at < count; at++) {
    const peer = await house.open('tcp')
    peer.write(connectFrame('kat_bad'))
    await peer.closed()
    const [error] = peer.frames
    reasons.push(`${headerOf(error, 'reason')} ${headerOf(error, 'retry-after') !== undefined}`)
  }
  return reasons
}

t.test('C-27: an address with too many bad credentials has to wait; good ones are let in', async t => {
  const reasons = await refusals(limited, 40)
  t.same([...new Set(reasons)], ['token_invalid false', 'rate_limited true'])
  t.ok(reasons.indexOf('rate_limited true') >= 30)
  const [ann] = await limited.devices(1)
  await disconnect(await limited.connect('tcp', ann!))
  t.same([...new Set(await refusals(server, 40))], ['token_invalid false'], 'without rates nobody has to')
})

/** Octets of the transport that break it, or nearly do; each connection ends, or goes on as said. */
const GIANTS: readonly {
  readonly what: string
  readonly octets: () => Buffer
  readonly end: number | 'lives'
}[] = [
  {
    what: 'a message that announces 2^62 octets',
    octets: () => Buffer.concat([Buffer.of(0x82, 0xff, 0x40), Buffer.alloc(7), Buffer.alloc(4)]),
    end: 1006,
  },
  {
    what: 'a message above the limit of the library',
    octets: () => webSocketFrame(0x82, Buffer.alloc(600 * 1024, 10)),
    end: 1006,
  },
  {
    what: 'I-10: a frame above our limit and below that of the library',
    octets: () => webSocketFrame(0x82, Buffer.from(sendFrame('/topic/dev.g', 'x'.repeat(300 * 1024)))),
    end: 1009,
  },
  {
    what: 'a header line that does not end',
    octets: () => webSocketFrame(0x82, Buffer.from(`SEND\nk:${'v'.repeat(400 * 1024)}`)),
    end: 1009,
  },
  {
    what: 'fragments without an end',
    octets: () =>
      Buffer.concat([
        webSocketFrame(0x02, Buffer.from('SEND\n')),
        ...Array.from({ length: 700 }, () => webSocketFrame(0x00, Buffer.alloc(1024, 97))),
      ]),
    end: 1006,
  },
  {
    what: 'a frame in ten thousand fragments, pings between them',
    octets: () => {
      const octets = [...Buffer.from(sendFrame('/topic/dev.g', 'x'.repeat(10_000)))]
      const fragments = octets.map((octet, at) =>
        Buffer.concat([
          webSocketFrame((at === octets.length - 1 ? 0x80 : 0) | (at === 0 ? 2 : 0), Buffer.of(octet)),
          ...(at % 1_000 === 0 ? [webSocketFrame(0x89, Buffer.from('ping'))] : []),
        ]),
      )
      return Buffer.concat(fragments)
    },
    end: 'lives',
  },
  {
    what: 'eight million beats',
    octets: () => Buffer.concat(Array(16).fill(webSocketFrame(0x82, Buffer.alloc(512 * 1024, 10)))),
    end: 'lives',
  },
  {
    what: 'a hundred thousand empty messages',
    octets: () => Buffer.alloc(600_000, webSocketFrame(0x82, Buffer.alloc(0))),
    end: 'lives',
  },
]

t.test('giant and fragmented messages end their own connection at most', async t => {
  const devices = await server.devices(GIANTS.length)
  const innocent = await Innocent.join(server, 'websocket')
  for (const [at, { what, octets, end }] of GIANTS.entries()) {
    const peer = await server.connect('websocket', devices[at]!)
    peer.socket.write(octets())
    await innocent.round()
    if (end === 'lives') {
      await send(peer, '/topic/dev.g', 'x')
      t.same(await disconnect(peer), [], what)
    } else {
      t.equal(await peer.closed(), end, what)
    }
  }
  await innocent.leave(t)
})

const CONNECTS = Number(process.env.CALLSIGN_STOMP_CONNECTS ?? 1_000)
const CONNECTS_AT_ONCE = 500

t.test(`${CONNECTS} connections at once, most of them useless`, async t => {
  const [device] = await server.devices(1)
  const innocents = [await Innocent.join(server, 'websocket'), await Innocent.join(server, 'tcp')]
  const first: readonly ((peer: WirePeer) => void)[] = [
    () => undefined,
    peer => peer.write('CONNECT\naccept-ver'),
    peer => peer.write(connectFrame('kat_bad')),
    peer => peer.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'),
    peer => peer.write(connectFrame(device!.token)),
  ]
  const peers: WirePeer[] = []
  let isStorming = true
  const rounds = innocents.map(async innocent => {
    while (isStorming) await innocent.round()
  })
  for (let at = 0; at < CONNECTS; at += CONNECTS_AT_ONCE) {
    const opened = Array.from({ length: Math.min(CONNECTS_AT_ONCE, CONNECTS - at) }, async (_, more) => {
      const peer = await server.open(CARRIERS[(at + more) % 2]!)
      first[(at + more) % first.length]!(peer)
      return peer
    })
    peers.push(...(await Promise.all(opened)))
  }
  const refused = peers.filter((_, at) => at % first.length === 2)
  const endings = new Set(await Promise.all(refused.map(endingOf)))
  t.same([...endings].sort(), ['token_invalid 1005', 'token_invalid 4401'])
  isStorming = false
  await Promise.all(rounds)
  for (const innocent of innocents)
    t.ok(innocent.worstMs < 5_000, `${innocent.rounds} rounds, at most ${innocent.worstMs} ms`)
  for (const peer of peers) peer.destroy()
  await server.figureWhen('callsign_connections', figure => figure === 2)
  await server.figureWhen('callsign_actors_live{kind="stomp-session"}', figure => figure === 2)
  for (const innocent of innocents) await innocent.leave(t)
})

/** Names under which somebody might hope to find what another user gets. */
function spellingsOf(userId: string, deviceId: string, callId: string): string[] {
  const queues = ['calls', 'contacts', 'account', 'errors', 'signalling', 'dev.t']
  return [
    ...queues.map(queue => `/user/${userId}/queue/${queue}`),
    ...[`/topic/user.${userId}`, `/topic/user.${userId}.calls`, `/topic/user/${userId}`],
    ...[`/queue/calls-user${deviceId}`, `/queue/calls.${userId}`, `/queue/${userId}/calls`],
    ...[`/queue/user.${userId}.calls`, `/user/queue/calls-user${deviceId}`, `/user/queue/calls/${userId}`],
    ...[
      `/user/0/../${userId}/queue/calls`,
      `/user/${userId}%2Fqueue%2Fcalls`,
      `/user/%2F${userId}/queue/calls`,
    ],
    ...[`/user//${userId}/queue/calls`, `//user/${userId}/queue/calls`, `/USER/${userId}/queue/calls`],
    ...[`/user/ ${userId}/queue/calls`, `/user/0${userId}/queue/calls`, `/user/+${userId}/queue/calls`],
    ...[`/user/${userId}\\n/queue/calls`, `/user/${userId}/queue/calls/`, `/user/*/queue/calls`],
    ...[`/user/${userId}/queue/*`, '/user/>/queue/calls', '/topic/#', '/topic/user.*', '/queue/*', '/*'],
    ...[`/topic/call.${callId}`, `/topic/call/${callId}`, `/topic/call.0${callId}`, `/topic/call.${callId}.`],
    ...[`/app/call/${callId}`, `/app/user/${userId}`, `/exchange/calls/${userId}`, `/amq/queue/${userId}`],
    ...[
      `/temp-queue/${userId}`,
      `/reply-queue/${userId}`,
      `${userId}`,
      '/',
      '/user',
      '/user/queue',
      '/queue',
    ],
    ...[
      '__proto__',
      '/topic/__proto__',
      '/queue/constructor',
      '/user/queue/toString',
      '/user/__proto__/queue/calls',
    ],
  ]
}

t.test('E-09: nobody hears what is another’s, by any name, nor can say it in their place', async t => {
  const [ann, bob, eve] = [await server.signIn(), await server.signIn(), await server.signIn()]
  await befriend(ann, bob)
  const victim = await server.connect('websocket', deviceOf(bob))
  for (const queue of ['calls', 'contacts', 'account']) await subscribe(victim, `/user/queue/${queue}`, queue)
  const { callId } = (await startCall(ann, [bob])).body
  await victim.frame(frame => headerOf(frame, 'type') === 'call_invitation')

  const thief = await server.connect('tcp', deviceOf(eve))
  await subscribe(thief, '/user/queue/errors', 'errors')
  const names = spellingsOf(bob.userId, bob.deviceId, callId)
  const nobodys = spellingsOf('123456789', '987654321', '5555555555')
  const answers = async (destinations: readonly string[], frame: (destination: string) => string) => {
    const found: string[] = []
    for (const destination of destinations) {
      thief.write(frame(destination))
      const answer = await thief.message()
      const { problem } = JSON.parse(String(answer.body))
      found.push(`${headerOf(answer, 'type')} ${problem.status} ${problem.code}`)
    }
    return found
  }
  const listen = (destination: string) =>
    `SUBSCRIBE\nid:${destination}\ndestination:${destination}\nreceipt:no\n\n\0`
  const heard = await answers(names, listen)
  t.same([...new Set(heard)].sort(), [
    'error 403 DESTINATION_FORBIDDEN',
    'error 404 CALL_NOT_FOUND',
    'error 404 NOT_FOUND',
  ])
  t.same(await answers(nobodys, listen), heard, 'alike whether there is something or not')
  const said = await answers(names, destination => sendFrame(destination, '{}', 'receipt:no\n'))
  t.same([...new Set(said)].sort(), ['error 403 DESTINATION_FORBIDDEN', 'error 404 NOT_FOUND'])
  const forged = {
    'accept-rejoin': {
      encryptedAESKey: newCallKey(),
      requesterUserId: bob.userId,
      requesterDeviceId: bob.deviceId,
    },
    keys: {
      epoch: 2,
      reason: 'rotation',
      encryptedAESKeys: { [`${bob.userId}_${bob.deviceId}`]: newCallKey() },
    },
    ringing: { eventId: 'AAAAAAAAAAAAAAAAAAAAAA' },
    decline: {},
    leave: {},
  }
  for (const [command, body] of Object.entries(forged)) {
    const refused = await answers([`/app/call/${callId}/${command}`], to =>
      sendFrame(to, JSON.stringify(body)),
    )
    t.same(refused, ['error 404 CALL_NOT_FOUND'], command)
  }

  await bob.app.get(200, `POST /app/api/call/${callId}/join`)
  await ann.app.get(200, `POST /app/api/call/${callId}/end`)
  await victim.frame(frame => headerOf(frame, 'type') === 'call_ended')
  t.same(await disconnect(thief), [], 'nothing but refusals')
  const calls = (await disconnect(victim)).filter(frame => headerOf(frame, 'subscription') === 'calls')
  t.same(calls, [], 'and nothing reached the other')
})

/** Short frames, each of which some server has died of, or might. */
const POISONS: readonly string[] = [
  'SUBSCRIBE\nid:s1\n\n\0',
  'SUBSCRIBE\nid:__proto__\ndestination:/topic/dev.p\nack:client\nsince:__proto__\n\n\0',
  'SUBSCRIBE\nid:constructor\ndestination:/topic/dev.__proto__\n\n\0SEND\ndestination:/topic/dev.__proto__\n\nx\0',
  'SUBSCRIBE\nid:q\ndestination:/user/queue/dev.__proto__\nsince:99999999999999999999-1\n\n\0',
  'SUBSCRIBE\nid:q\ndestination:/user/queue/calls\nprefetch-count:99999999999999999999\n\n\0',
  'SEND\ndestination:/topic/dev.p\n__proto__:x\nconstructor:y\nhasOwnProperty:z\n\nb\0',
  'SEND\ndestination:/topic/dev.p\nk\\tx:v\n\nx\0',
  'SEND\ndestination:/topic/dev.p\nreceipt:__proto__\ntransaction:__proto__\n\nx\0',
  'BEGIN\ntransaction:__proto__\n\n\0COMMIT\ntransaction:__proto__\n\n\0ABORT\ntransaction:constructor\n\n\0',
  'ACK\nid:__proto__\n\n\0',
  'NACK\nid:0-0\nmessage-id:\nsubscription:\n\n\0',
  'UNSUBSCRIBE\nid:toString\n\n\0',
  'SEND\ndestination:/app/call/99999999999999999999/leave\n\nx\0',
  'SEND\ndestination:/app/call/1/leave\n\n{"__proto__":{"x":1}}\0',
  'SEND\ndestination:/app/call/1/keys\ncontent-length:4\n\n\xff\xfe\0\0\0',
  'CONNECT\naccept-version:1.2\nheart-beat:99999999999999999999,1\n\n\0',
  'DISCONNECT\nreceipt:\n\n\0',
  '\0\0\0\r\n\r\n\0A',
]

t.test('E-04, A-36, B-09: no short frame ends more than its own connection', async t => {
  const [device] = await server.devices(1)
  for (const carrier of CARRIERS) {
    const innocent = await Innocent.join(server, carrier)
    for (const poison of POISONS) {
      for (const isSignedIn of [true, false]) {
        const peer = isSignedIn ? await server.connect(carrier, device!) : await server.open(carrier)
        peer.write(Buffer.from(poison, 'latin1'), false)
        peer.write('DISCONNECT\n\n\0')
        peer.write('x')
        await peer.closed()
        const odd = peer.take().filter(({ command }) => !/^(ERROR|MESSAGE|RECEIPT)$/.test(command))
        if (odd.length > 0 || peer.closeCode === 1006 || peer.closeCode === 1011)
          t.fail(`${poison}: ${peer.closeCode}`)
        await innocent.round()
      }
    }
    await innocent.leave(t)
  }
})

t.test('nothing failed meanwhile', async t => {
  t.same([...server.faults(), ...limited.faults()], [])
})
