/** Centrifugo's client protocol in JSON, as its documentation has it: a frame holds lines, the last without a line feed. */

import type { LineProtocol } from './line-socket.ts'

const CONNECT_ID = 1
const PUBLISH_ID = 2
/** Of the first subscription. */
const SUBSCRIBE_ID = 3

/** The login is a token. */
export const CENTRIFUGO_PROTOCOL: LineProtocol = {
  upgrade: { path: '/connection/websocket' },
  endsWithFrame: true,
  // {"push":, while replies begin with {"id":
  mark: { at: 2, octet: 'p'.charCodeAt(0) },
  bodyBytes: () => 0,
  answerTo: line => (line === PING ? PING : undefined),
  isError: line => line.includes('"error":'),
  signIn: ([token]) => ({
    lines: JSON.stringify({ id: CONNECT_ID, connect: { token } }),
    isDone: isReplyTo(CONNECT_ID),
  }),
  subscribe: subscribings => ({
    lines: subscribings
      .map(({ destination: channel }, at) =>
        JSON.stringify({ id: SUBSCRIBE_ID + at, subscribe: { channel } }),
      )
      .join('\n'),
    isDone: isReplyTo(SUBSCRIBE_ID + subscribings.length - 1),
  }),
  publish: (channel, body) => `{"id":${PUBLISH_ID},"publish":{"channel":"${channel}","data":${body}}}`,
}

function isReplyTo(id: number): (line: string) => boolean {
  return line => line.startsWith(`{"id":${id},`)
}

const PING = '{}'
