/**
 * Connections as they come and go, over real sockets against the built server: who a connection belongs to, causes of
 * its end, and effects that outlive it. Cases of sections B to H that octets alone do not tell.
 */

import { readdirSync } from 'node:fs'
import t from 'tap'
import { befriend, startCall } from '../support/call-people.ts'
import { type ClientFrame, connectFrame, sendFrame } from '../support/naive-client.ts'
import { headerOf } from '../support/naive-stomp.ts'
import type { SocketClient } from '../support/socket-client.ts'
import { CARRIERS, deviceOf, type WireDevice, WireServer } from '../support/wire-server.ts'

const PEOPLE = 60
const dataFolder = t.testdir()
const server = await WireServer.start(t, { people: PEOPLE, dataFolder })
const QUEUE = '/user/queue/dev.t'
/** Much on an idle machine, and sooner than missed heart-beats would end the connection. */

function bodies(frames: readonly ClientFrame[]): string[] {
  return frames.filter(({ command }) => command === 'MESSAGE').map(({ body }) => String(body))
}

/** Takes so many MESSAGEs, and returns their bodies. */
async function takeBodies(peer: SocketClient, count: number): Promise<string[]> {
  const taken: ClientFrame[] = []
  while (taken.length < count) taken.push(await peer.message())
  return bodies(taken)
}

t.test('B-15: each receiver gets headers as its version writes them', async t => {
  const [ann, bob] = await server.devices(2)
  const in12 = await server.connect('websocket', ann!)
  const in10 = await server.connect('tcp', bob!, '1.0')
  for (const peer of [in12, in10]) await peer.subscribe('/topic/dev.b15')
  in12.write(sendFrame('/topic/dev.b15', 'x', 'k:a\\nb\n'))
  t.match((await in12.message()).octets.toString(), '\nk:a\\nb\n')
  t.match((await in10.message()).octets.toString(), '\nk:a b\n')
  for (const peer of [in12, in10]) await peer.disconnect()
})

t.test('C-20, C-21: the upgrade may carry the token, and CONNECT’s token counts more', async t => {
  const [ann, bob] = await server.devices(2)
  const upgradeLines = `Authorization: Bearer ${ann!.token}\r\n`
  for (const [expected, frame] of [
    [ann, 'CONNECT\naccept-version:1.2\n\n\0'],
    [bob, connectFrame(bob!.token)],
  ] as const) {
    const peer = await server.open('websocket', { upgradeLines })
    peer.write(frame)
    t.equal(headerOf(await peer.frame(() => true), 'user-name'), expected!.userId)
    await peer.disconnect()
  }
})

t.test('C-25: the newest connection of a device replaces the older, on whatever it came', async t => {
  const [ann] = await server.devices(1)
  const topic = '/topic/dev.c25'
  const older = await server.connect('websocket', ann!)
  await older.subscribe(topic)
  await older.subscribe(QUEUE, 'q', 'ack:client\n')
  const newer = await server.connect('tcp', ann!)
  t.equal(await older.ending(), 'replaced 4409')
  for (const destination of [topic, QUEUE]) await newer.subscribe(destination, destination)
  for (const destination of [topic, QUEUE]) await newer.send(destination, destination)
  t.same(bodies(await newer.disconnect()).sort(), [topic, QUEUE].sort(), 'once each')
  t.same(bodies(older.take()), [])
})

t.test('C-26: a session that is ended takes its connection with it', async t => {
  for (const carrier of CARRIERS) {
    const ann = await server.signIn()
    const peer = await server.connect(carrier, deviceOf(ann))
    await peer.subscribe('/user/queue/account')
    t.equal(await ann.app.outcome('POST /app/api/logout', {}), '204')
    t.equal(await peer.ending(), `session_revoked ${carrier === 'tcp' ? 1005 : 4401}`)
    const again = await server.open(carrier)
    again.write(connectFrame(ann.app.accessToken!))
    t.match(await again.ending(), /^token_invalid/)
    t.equal(headerOf(again.frames[0], 'retry'), 'false')
  }
})

t.test('C-26: a removed device is cut off, its user’s other devices hear of it', async t => {
  const ann = await server.signIn()
  const tablet = await server.anotherDevice(ann)
  const [onPhone, onTablet] = [
    await server.connect('websocket', deviceOf(ann)),
    await server.connect('tcp', deviceOf(tablet)),
  ]
  await onTablet.subscribe('/user/queue/account')
  t.equal(await tablet.app.outcome(`DELETE /app/api/devices/${ann.deviceId}`), '204')
  t.equal(await onPhone.ending(), 'device_removed 4403')
  const told = await onTablet.frame(frame => headerOf(frame, 'type') === 'device_removed')
  t.equal(JSON.parse(String(told.body)).deviceId, ann.deviceId)
  await onTablet.disconnect()
})

t.test('H-04: what came before a DISCONNECT is stored when its receipt arrives', async t => {
  for (const carrier of CARRIERS) {
    const [ann] = await server.devices(1)
    const peer = await server.connect(carrier, ann!)
    const sends = Array.from({ length: 500 }, (_, at) => sendFrame(QUEUE, `${at}`))
    peer.write(`${sends.join('')}DISCONNECT\nreceipt:bye\n\n\0`)
    await peer.closed()
    t.same(
      peer.take().map(frame => headerOf(frame, 'receipt-id')),
      ['bye'],
    )
    t.same(
      await storedBodies(ann!, 500),
      Array.from({ length: 500 }, (_, at) => `${at}`),
    )
  }
})

/** The queue's waiting messages, read by a new connection that leaves them there. */
async function storedBodies(device: WireDevice, count: number): Promise<string[]> {
  const peer = await server.connect('websocket', device)
  await peer.subscribe(QUEUE, 'q', 'ack:client\nprefetch-count:256\n')
  const found: string[] = []
  while (found.length < count) {
    const frames = await Promise.all(
      Array.from({ length: Math.min(250, count - found.length) }, () => peer.message()),
    )
    found.push(...bodies(frames))
    peer.write(`ACK\nid:${headerOf(frames.at(-1), 'ack')}\n\n\0`)
  }
  const more = bodies(await peer.disconnect())
  return [...found, ...more]
}

t.test(
  'H-05: a client that breaks off in a burst leaves the first of it, in order, and nothing else',
  async t => {
    for (const carrier of CARRIERS) {
      const [ann] = await server.devices(1)
      const peer = await server.connect(carrier, ann!)
      const sends = Array.from({ length: 500 }, (_, at) => sendFrame(QUEUE, `${at}`, `receipt:${at}\n`))
      for (const frame of sends) peer.write(frame)
      await peer.receipt('0')
      peer.destroy()
      const next = await server.connect(carrier, ann!)
      await next.subscribe(QUEUE, 'q', 'ack:client\nprefetch-count:256\n')
      await next.send('/topic/dev.other', 'x')
      const [first] = await takeBodies(next, 1)
      t.equal(first, '0')
      const kept = [first, ...bodies(await next.disconnect())]
      t.same(
        kept,
        kept.map((_, at) => `${at}`),
      )
    }
  },
)

t.test('H-06: a client that reads slowly gets its ERROR whole, and before the close', async t => {
  for (const carrier of CARRIERS) {
    const [ann, bob] = await server.devices(2)
    const [slow, sender] = [await server.connect(carrier, ann!), await server.connect(carrier, bob!)]
    await slow.subscribe('/topic/dev.h06')
    slow.pause()
    while ((await server.figure('callsign_connection_buffered_bytes')) === 0) {
      sender.write(sendFrame('/topic/dev.h06', 'x'.repeat(60_000)).repeat(7))
      await sender.send('/topic/dev.h06', 'x')
    }
    const before = await server.figure('callsign_stomp_endings_total{reason="header_missing"}')
    slow.write('SEND\nreceipt:last\n\nx\0')
    await server.figureWhen(
      'callsign_stomp_endings_total{reason="header_missing"}',
      figure => figure > before,
    )
    await readSlowly(slow)
    const error = slow.frames.at(-1)
    t.equal(error?.command, 'ERROR')
    t.equal(headerOf(error, 'receipt-id'), 'last')
    t.equal(Number(headerOf(error, 'content-length')), error?.body.length)
    t.equal(slow.closeCode, carrier === 'tcp' ? 1005 : 1002)
    await sender.disconnect()
  }
})

/** Lets the kernel's buffer empty a little in each turn of the loop, until the connection ends. */
async function readSlowly(peer: SocketClient): Promise<void> {
  const onData = () => {
    peer.pause()
    setImmediate(() => peer.resume())
  }
  peer.socket.on('data', onData)
  peer.resume()
  await peer.closed()
}

t.test('H-11: a thousand short connections, every receipt, and nothing is left', async t => {
  const devices = await server.devices(8)
  const comeAndGo = async (device: WireDevice, times: number) => {
    for (let at = 0; at < times; at++) {
      const peer = await server.connect(CARRIERS[at % 2]!, device)
      await peer.send('/topic/dev.h11', 'x')
      await peer.disconnect()
    }
  }
  await comeAndGo(devices[0]!, 2)
  const [bytesBefore, topicsBefore, filesBefore] = await figures()
  await Promise.all(devices.map(device => comeAndGo(device, 125)))
  await server.figureWhen('callsign_connections', figure => figure === 0)
  await server.figureWhen('callsign_actors_live{kind="stomp-connection"}', figure => figure === 0)
  const [bytes, topics, files] = await figures()
  t.same([bytes, topics], [bytesBefore, topicsBefore])
  t.ok(files <= filesBefore, `${files} open files, ${filesBefore} before`)
})

async function figures(): Promise<[bufferedBytes: number, topics: number, files: number]> {
  return [
    await server.figure('callsign_connection_buffered_bytes'),
    await server.figure('callsign_actors_live{kind="dev-topic"}'),
    readdirSync(`/proc/${server.running.process.pid}/fd`).length,
  ]
}

t.test('the server logged no fault', async t => {
  t.same(server.faults(), [])
})

t.test('E-23, H-10: changes answered before kill -9 survive; a server that stops says so', async t => {
  const [ann, bob] = [await server.signIn(), await server.signIn()]
  await befriend(ann, bob)
  const peer = await server.connect('tcp', deviceOf(ann))
  const sends = ['1', '2', '3'].map(body => sendFrame(QUEUE, body, `receipt:r${body}\n`))
  peer.write(sends.join(''))
  await peer.receipt('r1')
  await peer.receipt('r2')
  await server.running.end('SIGKILL')

  const second = await WireServer.start(t, { people: PEOPLE, dataFolder })
  for (const { app } of [ann, bob]) app.http = second.running.http
  const onPhone = await second.connect('websocket', deviceOf(ann))
  await onPhone.subscribe(QUEUE, 'q', 'ack:client\n')
  t.same(await takeBodies(onPhone, 2), ['1', '2'])
  const { callId } = (await startCall(ann, [bob])).body
  await onPhone.subscribe(`/topic/call.${callId}`)
  t.ok(bodies(onPhone.take()).length <= 1, 'the third is there or not')

  const peers = [onPhone, await second.connect('tcp', deviceOf(bob))]
  const end = second.running.end('SIGTERM')
  t.same(await Promise.all(peers.map(peer => peer.ending())), ['draining 1012', 'draining 1005'])
  for (const peer of peers) t.match(headerOf(peer.frames.at(-1), 'retry-after'), /^\d{4,5}$/)
  t.equal(await end, 0)
  t.same(second.faults(), [])

  const third = await WireServer.start(t, { people: PEOPLE, dataFolder })
  for (const { app } of [ann, bob]) app.http = third.running.http
  t.match(await ann.app.get(200, `GET /app/api/call/${callId}`), { status: 'ringing' })
  const again = await third.connect('tcp', deviceOf(bob))
  await again.subscribe('/user/queue/calls', 'calls', 'ack:client\n')
  t.equal(headerOf(await again.message(), 'type'), 'call_invitation')
  await again.disconnect()
})
