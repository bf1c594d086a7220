/**
 * Connections between nodes: only who has the secret of all nodes gets through, at either end, and under TLS also a certificate
 * of their authority.
 */

import { randomBytes } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import t, { type Test } from 'tap'
import { linkKeyOf, type NodeProof } from '../../../src/fronts/link/link-proof.ts'
import {
  connectToNode,
  type NodePlace,
  NodeServer,
  type NodeTls,
} from '../../../src/fronts/link/node-sockets.ts'
import { tlsFile } from '../../support/tls.ts'

const pem = (name: string) => Buffer.from(tlsFile(name))
const tlsOf = (name: string): NodeTls => ({
  certificate: pem(`${name}.crt`),
  key: pem(`${name}.key`),
  authority: pem('ca.crt'),
})
const secret = randomBytes(32)
const proofOf = (name: string, of = secret): NodeProof => ({ name, key: linkKeyOf(of) })
const FRONT = proofOf('two/front-1')
const OTHER_SECRET = { message: /different CALLSIGN_SECRET/ }

async function openServer(t: Test, tls?: NodeTls, host = 'localhost') {
  const accepted: Socket[] = []
  const refused: string[] = []
  const news = new EventEmitter()
  const server = new NodeServer(
    tls,
    proofOf('one'),
    ({ socket }) => {
      accepted.push(socket)
      socket.on('data', data => socket.write(data))
    },
    why => {
      refused.push(why)
      news.emit('refused')
    },
  )
  t.teardown(() => server.close())
  /** Resolves when it has refused so many. */
  const hasRefused = async (count: number) => {
    while (refused.length < count) await once(news, 'refused')
  }
  return { accepted, refused, hasRefused, place: { host, port: await server.listen(host, 0) } }
}

async function echoOf(connected: ReturnType<typeof connectToNode>): Promise<string> {
  const { socket } = await connected
  socket.write('hello')
  const [data] = await once(socket, 'data')
  socket.destroy()
  return String(data)
}

/** A socket without a proof. */
async function strangerAt(t: Test, place: NodePlace): Promise<Socket> {
  const socket = connect(place)
  socket.on('error', () => undefined)
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** Resolves when the other end has closed it. */
async function closed(socket: Socket): Promise<void> {
  socket.resume()
  if (!socket.closed) await once(socket, 'close')
}

t.test('two nodes of one authority speak', async t => {
  const { place } = await openServer(t, tlsOf('server'))
  t.equal(await echoOf(connectToNode(place, tlsOf('client'), FRONT)), 'hello')
})

t.test('on loopback they may do so without certificates', async t => {
  const { place } = await openServer(t)
  t.equal(await echoOf(connectToNode(place, undefined, FRONT)), 'hello')
})

t.test('who has no certificate, or one of another authority, is not accepted', async t => {
  const { place, accepted } = await openServer(t, tlsOf('server'))
  for (const tls of [undefined, { ...tlsOf('client'), ...ofStranger() }])
    await t.rejects(connectToNode(place, tls, FRONT))
  t.same(accepted, [])
})

t.test('a server of another authority, or of another name, is not spoken to', async t => {
  const other = await openServer(t, { ...tlsOf('server'), ...ofStranger() })
  await t.rejects(connectToNode(other.place, tlsOf('client'), FRONT))
  const elsewhere = await openServer(t, tlsOf('server'), '127.0.0.2')
  await t.rejects(connectToNode(elsewhere.place, tlsOf('client'), FRONT))
})

t.test('nodes of different secrets refuse each other, and both say why', async t => {
  for (const tls of [false, true]) {
    const { place, accepted, refused, hasRefused } = await openServer(t, tls ? tlsOf('server') : undefined)
    const connected = connectToNode(place, tls ? tlsOf('client') : undefined, proofOf('two', randomBytes(32)))
    await t.rejects(connected, OTHER_SECRET)
    await hasRefused(1)
    t.same([accepted, refused], [[], ['other secret']])
  }
})

t.test('a stranger is refused, whatever it says', async t => {
  const { place, accepted, refused } = await openServer(t)
  const front = Buffer.from('callsign link front'.padEnd(24))
  const said: Record<string, Buffer> = {
    'a request of HTTP': Buffer.alloc(4_096, 'GET / HTTP/1.1\r\n'),
    'a hello without a proof': Buffer.concat([front, randomBytes(128), Buffer.alloc(32)]),
    'much more than a hello': Buffer.concat([front, randomBytes(1_000_000)]),
  }
  for (const [name, octets] of Object.entries(said)) {
    const socket = await strangerAt(t, place)
    socket.write(octets)
    await closed(socket)
    t.same(accepted, [], name)
  }
  t.same(refused, ['no node', 'other secret', 'other secret'])
})

t.test('a proof that is sent back, or is of another connection, proves nothing', async t => {
  const { place, accepted, refused } = await openServer(t)
  const mirror = await strangerAt(t, place)
  mirror.on('data', octets => mirror.write(octets))
  await closed(mirror)
  t.same(refused, ['no node'], 'its own hello')

  const mirrored = await strangerAt(t, place)
  const front = Buffer.from('callsign link front'.padEnd(24))
  mirrored.write(Buffer.concat([front, randomBytes(128)]))
  let heard = Buffer.alloc(0)
  mirrored.on('data', octets => {
    heard = Buffer.concat([heard, octets])
    if (heard.length === 152 + 32) mirrored.write(heard.subarray(152))
  })
  await closed(mirrored)
  t.same(refused, ['no node', 'other secret'], "the writer's own proof")

  const recorded: Buffer[] = []
  const relay = await openRelay(t, place, octets => {
    recorded.push(octets)
    return octets
  })
  t.equal(await echoOf(connectToNode(relay, undefined, FRONT)), 'hello')
  const replayed = await strangerAt(t, place)
  replayed.write(Buffer.concat(recorded))
  await closed(replayed)
  t.equal(refused.at(-1), 'other secret', 'of an earlier connection')
  t.equal(accepted.length, 1)
})

t.test('who stands between two nodes is refused, with a certificate of their authority too', async t => {
  const { place, accepted } = await openServer(t, tlsOf('server'))
  const between = createTlsServer(
    { cert: pem('server.crt'), key: pem('server.key'), ca: [pem('ca.crt')], requestCert: true },
    near => {
      const far = connectTls({
        ...place,
        cert: pem('client.crt'),
        key: pem('client.key'),
        ca: [pem('ca.crt')],
      })
      for (const socket of [near, far]) socket.on('error', () => undefined)
      near.pipe(far).pipe(near)
    },
  )
  t.teardown(() => between.close())
  between.listen(0, 'localhost')
  await once(between, 'listening')
  const { port } = between.address() as { port: number }
  const connected = connectToNode({ host: 'localhost', port }, tlsOf('client'), FRONT)
  await t.rejects(connected, OTHER_SECRET)
  t.same(accepted, [])
})

t.test('one that changes a hello on its way is refused', async t => {
  const { place, accepted, refused, hasRefused } = await openServer(t)
  const relay = await openRelay(t, place, octets => {
    const changed = Buffer.from(octets)
    // In the name.
    if (changed.length >= 152) changed[60]! ^= 1
    return changed
  })
  await t.rejects(connectToNode(relay, undefined, FRONT), OTHER_SECRET)
  await hasRefused(1)
  t.same([accepted, refused], [[], ['other secret']])
})

t.test('one that says nothing is let go, and many of them keep no node out', async t => {
  const { place, accepted, refused } = await openServer(t)
  const strangers: Socket[] = []
  for (let count = 0; count < 100; count++) strangers.push(await strangerAt(t, place))
  t.equal(await echoOf(connectToNode(place, undefined, FRONT)), 'hello')
  for (const socket of strangers) await closed(socket)
  t.equal(accepted.length, 1)
  t.same(new Set(refused), new Set(['closed', 'silent']), 'the oldest at once, the rest in time')
})

t.test('a server that is no node is not spoken to', async t => {
  const stranger = createServer(socket => {
    socket.on('error', () => undefined)
    socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'.repeat(10))
  })
  t.teardown(() => stranger.close())
  stranger.listen(0, '127.0.0.1')
  await once(stranger, 'listening')
  const { port } = stranger.address() as { port: number }
  await t.rejects(connectToNode({ host: '127.0.0.1', port }, undefined, FRONT), {
    message: /not what a node/,
  })
})

/** Passes octets on as they are, but those of the front as `change` returns them. */
async function openRelay(t: Test, place: NodePlace, change: (octets: Buffer) => Buffer): Promise<NodePlace> {
  const relay = createServer(near => {
    const far = connect(place)
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.on('error', () => undefined)
      one.once('close', () => other.destroy())
    }
    near.on('data', octets => far.write(change(octets)))
    far.on('data', octets => near.write(octets))
  })
  t.teardown(() => relay.close())
  relay.listen(0, '127.0.0.1')
  await once(relay, 'listening')
  return { host: '127.0.0.1', port: (relay.address() as { port: number }).port }
}

function ofStranger(): Pick<NodeTls, 'certificate' | 'key'> {
  return { certificate: pem('stranger.crt'), key: pem('stranger.key') }
}
