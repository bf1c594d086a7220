/**
 * The table of close codes in `docs/protocol/socket.md`, row by row on real sockets. Rows that take a long time, or a fault of
 * ours, have tests elsewhere.
 */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { FRAME_BYTES_MAX, WEBSOCKET_MESSAGE_BYTES_MAX } from '../../src/limits.ts'
import { connectFrame } from '../support/naive-client.ts'
import { type SocketClient, webSocketFrame } from '../support/socket-client.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'
import { deviceOf, WireServer } from '../support/wire-server.ts'

const table = readFileSync(join(PROJECT_ROOT, 'docs/protocol/socket.md'), 'utf8')
  .split('\n')
  .filter(line => /^\| [0-9]{4}/.test(line))
const server = await WireServer.start(t, { people: 30 })

/** Whether a row of that code names the reason. */
function isListed(code: string, reason: string): boolean {
  return table.some(row => row.split('|')[1]!.includes(code) && row.split('|')[2]!.includes(reason))
}

async function signedIn(): Promise<SocketClient> {
  const [device] = await server.devices(1)
  return server.connect('websocket', device!)
}

/** A SEND of so many octets, its NUL left out of the count. */
function sendOf(bytes: number): string {
  const head = 'SEND\ndestination:/topic/dev.x\n\n'
  return `${head}${'x'.repeat(bytes - head.length)}\0`
}

const LATIN1 = Buffer.from('SEND\ndestination:/topic/dev.x\nh:\xff\n\nx\0', 'latin1')
/** The code, what the reason is or `none` for an end without ERROR, what its row says, and what the client did. */
const ENDINGS: readonly [code: string, reason: string, listed: string, act: (peer: SocketClient) => void][] =
  [
    ['1000', 'none', 'DISCONNECT', peer => peer.write('DISCONNECT\n\n\0')],
    ['1002', 'header_missing', 'a rule of STOMP', peer => peer.write('SEND\n\nx\0')],
    ['1002', 'message_unknown', 'a rule of STOMP', peer => peer.write('ACK\nid:x\n\n\0')],
    ['1007', 'invalid_utf8', 'no UTF-8', peer => peer.write(LATIN1, false)],
    ['1009', 'frame_too_large', '256 KiB', peer => peer.write(sendOf(FRAME_BYTES_MAX + 1))],
    ['1009', 'frame_too_large', '512 KiB', peer => peer.write(sendOf(WEBSOCKET_MESSAGE_BYTES_MAX - 1))],
    ['1006', 'none', '512 KiB', peer => peer.write(sendOf(WEBSOCKET_MESSAGE_BYTES_MAX))],
    ['1006', 'none', 'text message', peer => peer.write(LATIN1, true)],
    ['1006', 'none', 'RFC 6455', peer => peer.socket.write(webSocketFrame(0xc1, 'x'))],
    ['1008', 'not_found', 'errors queue', peer => peer.write('SEND\ndestination:/app/x\n\nx\0')],
    [
      '1008',
      'too_many_subscriptions',
      'too_many_',
      peer => {
        for (let id = 0; id < 65; id++) peer.write(`SUBSCRIBE\nid:${id}\ndestination:/topic/dev.x\n\n\0`)
      },
    ],
  ]

for (const [code, reason, listed, act] of ENDINGS) {
  t.test(`${code} ${reason}: ${listed}`, async t => {
    const peer = await signedIn()
    act(peer)
    t.equal(await peer.ending(), `${reason === 'none' ? undefined : reason} ${code}`)
    t.ok(isListed(code, listed), 'the table says so')
  })
}

t.test('bad credentials, and those that were taken back', async t => {
  for (const [frame, reason] of [
    ['CONNECT\naccept-version:1.2\n\n\0', 'token_missing'],
    [connectFrame('kat_nonsense'), 'token_invalid'],
  ] as const) {
    const peer = await server.open('websocket')
    peer.write(frame)
    t.equal(await peer.ending(), `${reason} 4401`)
    t.ok(isListed('4401', reason))
  }
  const person = await server.signIn()
  const peer = await server.connect('websocket', deviceOf(person))
  await person.app.get(204, 'POST /app/api/logout')
  const ending = await peer.ending()
  const [reason = '', code = ''] = ending.split(' ')
  t.ok(isListed(code, reason), ending)
})

t.test('a newer connection of the device', async t => {
  const [device] = await server.devices(1)
  const older = await server.connect('websocket', device!)
  await server.connect('websocket', device!)
  t.equal(await older.ending(), 'replaced 4409')
  t.ok(isListed('4409', 'replaced'))
})
