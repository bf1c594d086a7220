/** A server's frames, each one WebSocket message (STOMP 1.2); the server's own parser reads only clients. */

import { decodeHeader } from '../../src/stomp/escape.ts'
import { headerOf } from '../../src/stomp/frame.ts'

export interface ServerFrame {
  readonly command: string
  /** The first header of that name. */
  header(name: string): string | undefined
  readonly body: string
}

/** Undefined for a beat. Throws for octets that are no frame. */
export function parseServerFrame(octets: Buffer): ServerFrame | undefined {
  if (octets.length === 1 && octets[0] === LF) return undefined
  const headEnd = octets.indexOf('\n\n')
  if (headEnd < 0 || octets.at(-1) !== 0) throw new Error('a message of the server is no STOMP frame')
  const [command = '', ...lines] = octets.toString('utf8', 0, headEnd).split('\n')
  const headers: string[] = []
  for (const line of lines) {
    const colon = line.indexOf(':')
    headers.push(unescaped(command, line.slice(0, colon)), unescaped(command, line.slice(colon + 1)))
  }
  return {
    command,
    header: name => headerOf(headers, name),
    body: octets.toString('utf8', headEnd + 2, octets.length - 1),
  }
}

function unescaped(command: string, text: string): string {
  const decoded = command === 'CONNECTED' ? text : decodeHeader(text, '1.2')
  if (decoded === undefined) throw new Error('the server writes an undefined escape')
  return decoded
}

const LF = 0x0a
