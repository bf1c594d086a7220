/**
 * Clients that break the transport, come in thousands, send frames that have killed other servers, or reach for
 * another user's data, each beside a witness that is still served. The server stays up, its log without faults.
 */

import t from 'tap'
import { befriend, newCallKey, startCall } from '../support/call-people.ts'
import { connectFrame, sendFrame } from '../support/naive-client.ts'
import { headerOf } from '../support/naive-stomp.ts'
import { countOf, sized } from '../support/size.ts'
import { type SocketClient, webSocketFrame } from '../support/socket-client.ts'
import { CARRIERS, deviceOf, Innocent, WireServer } from '../support/wire-server.ts'

const server = await WireServer.start(t, { people: 30 })

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
    octets: () => webSocketFrame(0x82, sendFrame('/topic/dev.g', 'x'.repeat(300 * 1024))),
    end: 1009,
  },
  {
    what: 'a header line that does not end',
    octets: () => webSocketFrame(0x82, `SEND\nk:${'v'.repeat(400 * 1024)}`),
    end: 1009,
  },
  {
    what: 'fragments without an end',
    octets: () =>
      Buffer.concat([
        webSocketFrame(0x02, 'SEND\n'),
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
          ...(at % 1_000 === 0 ? [webSocketFrame(0x89, 'ping')] : []),
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
      await peer.send('/topic/dev.g', 'x')
      t.same(await peer.disconnect(), [], what)
    } else {
      t.equal(await peer.closed(), end, what)
    }
  }
  await innocent.leave(t)
})

const CONNECTS = countOf('CALLSIGN_STOMP_CONNECTS', { short: 300, long: 1_000 })
const CONNECTS_AT_ONCE = 500

t.test(`${CONNECTS} connections at once, most of them useless`, sized(), async t => {
  const [device] = await server.devices(1)
  const innocents = [await Innocent.join(server, 'websocket'), await Innocent.join(server, 'tcp')]
  const first: readonly ((peer: SocketClient) => void)[] = [
    () => undefined,
    peer => peer.write('CONNECT\naccept-ver'),
    peer => peer.write(connectFrame('kat_bad')),
    peer => peer.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'),
    peer => peer.write(connectFrame(device!.token)),
  ]
  const peers: SocketClient[] = []
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
  const endings = new Set(await Promise.all(refused.map(peer => peer.ending())))
  t.same([...endings].sort(), ['token_invalid 1005', 'token_invalid 4401'])
  isStorming = false
  await Promise.all(rounds)
  for (const innocent of innocents)
    t.ok(innocent.rounds >= CONNECTS / CONNECTS_AT_ONCE, `${innocent.rounds} rounds`)
  for (const peer of peers) peer.destroy()
  await server.figureWhen('callsign_connections', figure => figure === 2)
  await server.figureWhen('callsign_actors_live{kind="stomp-connection"}', figure => figure === 2)
  for (const innocent of innocents) await innocent.leave(t)
})

/** Names that an attacker might try for another user's messages. */
function spellingsOf(userId: string, deviceId: string, callId: string): string[] {
  const queues = ['calls', 'contacts', 'account', 'errors', 'signalling', 'dev.t']
  return [
    ...queues.map(queue => `/user/${userId}/queue/${queue}`),
    `/topic/user.${userId}`,
    `/topic/user.${userId}.calls`,
    `/topic/user/${userId}`,
    `/queue/calls-user${deviceId}`,
    `/queue/calls.${userId}`,
    `/queue/${userId}/calls`,
    `/queue/user.${userId}.calls`,
    `/user/queue/calls-user${deviceId}`,
    `/user/queue/calls/${userId}`,
    `/user/0/../${userId}/queue/calls`,
    `/user/${userId}%2Fqueue%2Fcalls`,
    `/user/%2F${userId}/queue/calls`,
    `/user//${userId}/queue/calls`,
    `//user/${userId}/queue/calls`,
    `/USER/${userId}/queue/calls`,
    `/user/ ${userId}/queue/calls`,
    `/user/0${userId}/queue/calls`,
    `/user/+${userId}/queue/calls`,
    `/user/${userId}\\n/queue/calls`,
    `/user/${userId}/queue/calls/`,
    `/user/*/queue/calls`,
    `/user/${userId}/queue/*`,
    '/user/>/queue/calls',
    '/topic/#',
    '/topic/user.*',
    '/queue/*',
    '/*',
    `/topic/call.${callId}`,
    `/topic/call/${callId}`,
    `/topic/call.0${callId}`,
    `/topic/call.${callId}.`,
    `/app/call/${callId}`,
    `/app/user/${userId}`,
    `/exchange/calls/${userId}`,
    `/amq/queue/${userId}`,
    `/temp-queue/${userId}`,
    `/reply-queue/${userId}`,
    `${userId}`,
    '/',
    '/user',
    '/user/queue',
    '/queue',
    '__proto__',
    '/topic/__proto__',
    '/queue/constructor',
    '/user/queue/toString',
    '/user/__proto__/queue/calls',
  ]
}

t.test('E-09: no user reads another’s messages by any name, nor sends in their place', async t => {
  const [ann, bob, eve] = [await server.signIn(), await server.signIn(), await server.signIn()]
  await befriend(ann, bob)
  const victim = await server.connect('websocket', deviceOf(bob))
  for (const queue of ['calls', 'contacts', 'account']) await victim.subscribe(`/user/queue/${queue}`, queue)
  const { callId } = (await startCall(ann, [bob])).body
  await victim.frame(frame => headerOf(frame, 'type') === 'call_invitation')

  const thief = await server.connect('tcp', deviceOf(eve))
  await thief.subscribe('/user/queue/errors', 'errors')
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
  t.same(await thief.disconnect(), [], 'nothing but refusals')
  const calls = (await victim.disconnect()).filter(frame => headerOf(frame, 'subscription') === 'calls')
  t.same(calls, [], 'and nothing reached the other')
})

/** Short frames that have killed some server, or might. */
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

t.test('the server logged no fault', async t => {
  t.same(server.faults(), [])
})
