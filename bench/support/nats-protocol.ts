/** NATS's client protocol, as its documentation has it; over WebSocket the same lines come in binary frames. */

import type { LineProtocol } from './line-socket.ts'

const PING = 'PING\r'
const PONG = 'PONG\r'

/** The login is the options of CONNECT, as JSON. */
export const NATS_PROTOCOL: LineProtocol = {
  upgrade: { path: '/' },
  endsWithFrame: false,
  mark: { at: 0, octet: 'M'.charCodeAt(0) },
  bodyBytes: line => Number(line.slice(line.lastIndexOf(' ') + 1, -1)) + '\r\n'.length,
  answerTo: line => (line === PING ? `${PONG}\n` : undefined),
  isError: line => line.startsWith('-ERR'),
  signIn: ([options]) => ({ lines: `CONNECT ${options}\r\n${PING}\n`, isDone: line => line === PONG }),
  subscribe: subscribings => ({
    lines: `${subscribings.map(({ destination }, at) => `SUB ${destination} ${at + 1}\r\n`).join('')}${PING}\n`,
    isDone: line => line === PONG,
  }),
  publish: (destination, body) => `PUB ${destination} ${body.length}\r\n${body}\r\n`,
}
