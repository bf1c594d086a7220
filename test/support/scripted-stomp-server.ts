/** A server of STOMP that says what a test has it say, and an app that is signed in to it. */

import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { type WebSocket, WebSocketServer } from 'ws'
import { Server, type ServerOptions } from '../../src/app/session/server.ts'
import { Session } from '../../src/app/session/session.ts'
import { memoryStorage } from '../../src/app/storage/storage.ts'

/** Called with the text of each message of a client, CONNECT first; `at` numbers the connections. */
export type Says = (socket: WebSocket, text: string, at: number) => void

/** Returns its address. It ends with the test. */
export async function serveStomp(t: Test, says: Says): Promise<string> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', path: '/ws' })
  let connections = 0
  server.on('connection', socket => {
    const at = connections++
    socket.on('error', () => {})
    socket.on('message', data => says(socket, String(data), at))
  })
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of server.clients) socket.terminate()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

export const CONNECTED = 'CONNECTED\nversion:1.2\nuser-name:1\ndevice:2\n\n\0'

/** Answers CONNECT and each frame with a receipt as a server would. */
export function answerWell(socket: WebSocket, text: string): void {
  const receipt = /\nreceipt:(\d+)\n/.exec(text)?.[1]
  if (text.startsWith('CONNECT\n')) socket.send(CONNECTED)
  if (receipt !== undefined) socket.send(`RECEIPT\nreceipt-id:${receipt}\n\n\0`)
}

export async function signedInApp(url: string, platform: NonNullable<ServerOptions['platform']>) {
  const server = new Server({ url, platform })
  const storage = memoryStorage()
  const never = Date.now() + 1e9
  const tokens = { sessionId: '1', accessToken: 'kat_1', refreshToken: 'krt_1', challenge: '' }
  const times = { renewAtMs: never, expiresAtMs: never }
  await storage.put('session', { kind: 'signed-in', userId: '1', ...tokens, ...times })
  return { server, session: await Session.open(server, storage), storage }
}
