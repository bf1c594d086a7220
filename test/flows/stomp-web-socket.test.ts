/** STOMP over WebSocket as it is on the wire: upgrades, kinds of messages, fragments, and the ends of connections. */

import t from 'tap'
import { connectFrame, sendFrame } from '../support/naive-client.ts'
import { headerOf } from '../support/naive-stomp.ts'
import { type SocketClient, webSocketFrame } from '../support/socket-client.ts'
import { WireServer } from '../support/wire-server.ts'

const server = await WireServer.start(t, { people: 20 })
const [ann, innocent] = await server.devices(2)
const TOPIC = '/topic/dev.ws'

/** A client that has signed in and hears itself. */
async function join(): Promise<SocketClient> {
  const peer = await server.connect('websocket', ann!)
  await peer.subscribe(TOPIC)
  return peer
}

t.test(
  'I-01 to I-04: the newest sub-protocol that is offered and ours, or none, and STOMP works',
  async t => {
    const offers = [
      ['v12.stomp, v11.stomp, v10.stomp', 'v12.stomp'],
      ['v10.stomp,v11.stomp', 'v11.stomp'],
      ['bogus, v11.stomp', 'v11.stomp'],
      ['bogus', undefined],
      [undefined, undefined],
      ['v12.stomp.evil, xv12.stomp, V12.STOMP', undefined],
    ] as const
    for (const [offered, chosen] of offers) {
      const upgradeLines = offered === undefined ? '' : `Sec-WebSocket-Protocol: ${offered}\r\n`
      const peer = await server.open('websocket', { upgradeLines })
      t.match(peer.head, /^HTTP\/1\.1 101 /)
      t.equal(/^sec-websocket-protocol: (.*)\r$/im.exec(peer.head)?.[1], chosen, offered ?? 'no offer')
      peer.write(connectFrame(ann!.token))
      t.equal(headerOf(await peer.frame(() => true), 'version'), '1.2')
      await peer.disconnect()
    }
  },
)

t.test('every path of the contract speaks STOMP', async t => {
  for (const path of ['/ws', '/app/ws', '/stomp', '/ws/websocket']) {
    const peer = await server.open('websocket', { path })
    peer.write(connectFrame(ann!.token))
    t.equal((await peer.frame(() => true)).command, 'CONNECTED', path)
    await peer.disconnect()
  }
})

t.test('I-05, I-16: text, binary and empty messages in turn', async t => {
  const peer = await join()
  for (const [at, isText] of [true, false, false, true].entries()) {
    peer.write('', isText)
    peer.write(sendFrame(TOPIC, `${at}`), isText)
    peer.write('\n', !isText)
  }
  for (const expected of ['0', '1', '2', '3']) t.equal(String((await peer.message()).body), expected)
  t.same(await peer.disconnect(), [])
})

t.test('I-06, I-07: JSON comes as text, octets as binary, one frame in each', async t => {
  const peer = await join()
  const kinds = [
    ['application/json', '{"a":1}', true],
    ['application/json;charset=utf-8', '"é"', true],
    ['text/plain', 'text', true],
    ['application/octet-stream', 'abc', false],
  ] as const
  for (const [contentType, body, isText] of kinds) {
    peer.write(sendFrame(TOPIC, body, `content-type:${contentType}\n`))
    t.equal((await peer.message()).isText, isText, contentType)
  }
  peer.write(`${sendFrame(TOPIC, '1')}${sendFrame(TOPIC, '2')}${sendFrame(TOPIC, '3')}`)
  for (const expected of ['1', '2', '3']) t.equal(String((await peer.message()).body), expected)
  await peer.disconnect()
})

t.test('I-09: a frame in three fragments with a ping between them', async t => {
  const peer = await join()
  const octets = Buffer.from(sendFrame(TOPIC, 'whole'))
  peer.socket.write(webSocketFrame(0x01, octets.subarray(0, 9)))
  peer.socket.write(webSocketFrame(0x00, octets.subarray(9, 20)))
  peer.socket.write(webSocketFrame(0x89, 'ping'))
  await peer.until(() => peer.pongs === 1)
  peer.socket.write(webSocketFrame(0x80, octets.subarray(20)))
  t.equal(String((await peer.message()).body), 'whole')
  await peer.disconnect()
})

/** Breaches of RFC 6455; each fails the connection, with any code. */
const BREACHES: Readonly<Record<string, Buffer>> = {
  'I-11: text that is not UTF-8': webSocketFrame(0x81, Buffer.from([0xff, 0xfe, 0])),
  'I-11: text cut inside a character': webSocketFrame(0x81, Buffer.from([0xc3])),
  'I-12: no mask': Buffer.from([0x81, 1, 10]),
  'I-12: a reserved bit': webSocketFrame(0xc1, '\n'),
  'I-12: a reserved opcode': webSocketFrame(0x83, '\n'),
  'I-12: a continuation of nothing': webSocketFrame(0x80, '\n'),
  'I-12: a new message inside another': Buffer.concat([
    webSocketFrame(0x01, 'SEND'),
    webSocketFrame(0x81, '\n'),
  ]),
  'I-12: a ping in fragments': webSocketFrame(0x09, 'p'),
  'I-12: a ping of 126 octets': webSocketFrame(0x89, Buffer.alloc(126)),
}

t.test('I-11, I-12: a breach of WebSocket’s rules ends only its own connection', async t => {
  const other = await server.connect('websocket', innocent!)
  await other.subscribe(TOPIC)
  for (const [what, octets] of Object.entries(BREACHES)) {
    const peer = await join()
    peer.socket.write(octets)
    peer.socket.write(webSocketFrame(0x81, sendFrame(TOPIC, 'behind it')))
    t.match(String(await peer.closed()), /^100[267]$/, what)
    t.same(peer.take(), [], what)
  }
  await other.send(TOPIC, 'still here')
  t.equal(String((await other.message()).body), 'still here')
  t.same(await other.disconnect(), [])
})

t.test('I-13: a page of a foreign origin does not get in', async t => {
  for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1.evil.example']) {
    const peer = await server.open('websocket', { upgradeLines: `Origin: ${origin}\r\n` })
    t.match(peer.head, /^HTTP\/1\.1 403 /, origin)
    t.match(peer.head, /application\/problem\+json/)
    peer.destroy()
  }
  const own = await server.open('websocket', { upgradeLines: `Origin: ${server.running.http}\r\n` })
  t.match(own.head, / 101 /)
  own.destroy()
})

t.test('I-14: a plain GET hears which protocols are spoken here; other framings do not', async t => {
  const plain = await fetch(`${server.running.http}/ws`)
  t.equal(plain.status, 426)
  t.match(await plain.json(), { code: 'UPGRADE_REQUIRED', status: 426 })
  const sockJs = await fetch(`${server.running.http}/ws/123/abcdefgh/xhr`, { method: 'POST' })
  t.equal(sockJs.status, 404)
})

t.test('the server closes with the code, and answers the close of a client', async t => {
  const peer = await join()
  peer.socket.write(webSocketFrame(0x88, Buffer.from([0x03, 0xe9])))
  t.equal(await peer.closed(), 1001, 'the client’s own code comes back')
  await server.figureWhen('callsign_connections', figure => figure === 0)
  t.same(server.faults(), [])
})
