/**
 * STOMP 1.2 as an app needs it: one frame in each text message of a WebSocket. `src/stomp` reads octets, in three versions,
 * and is several times this size.
 */

import { CallsignError } from '../callsign-error.ts'

export interface StompFrame {
  readonly command: string
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

/** Headers and body have no NUL, and those of CONNECT, which is never escaped, no line end. */
export function formatFrame(command: string, headers: Readonly<Record<string, string>>, body = ''): string {
  const escaped = (text: string) =>
    command === 'CONNECT' ? text : text.replace(/[\\\n\r:]/g, each => ESCAPES.get(each)!)
  const lines = Object.entries(headers).map(([name, value]) => `${escaped(name)}:${escaped(value)}\n`)
  return `${command}\n${lines.join('')}\n${body}\0`
}

/** Throws `ANSWER_INVALID`. The NUL may be missing: React Native takes it away. */
export function parseFrame(text: string): StompFrame {
  const headEnd = text.indexOf('\n\n')
  if (headEnd < 0) throw malformed()
  const [command = '', ...lines] = text.slice(0, headEnd).split('\n')
  const plain = (text: string) => (command === 'CONNECTED' ? text : text.replace(/\\.?/gs, unescaped))
  const headers = new Map<string, string>()
  for (const line of lines) {
    const colon = line.indexOf(':')
    if (colon < 1) throw malformed()
    const name = plain(line.slice(0, colon))
    // The first of repeated headers counts.
    if (!headers.has(name)) headers.set(name, plain(line.slice(colon + 1)))
  }
  const [body = ''] = text.slice(headEnd + 2).split('\0', 1)
  return { command, headers, body }
}

function unescaped(sequence: string): string {
  const text = UNESCAPES.get(sequence)
  if (text === undefined) throw malformed()
  return text
}

function malformed(): CallsignError {
  return new CallsignError('ANSWER_INVALID', 'The server sent a frame that is not STOMP.')
}

const ESCAPES = new Map([
  ['\\', '\\\\'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  [':', '\\c'],
])
const UNESCAPES = new Map([...ESCAPES].map(([text, sequence]) => [sequence, text]))
