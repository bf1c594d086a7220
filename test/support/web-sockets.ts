/** A server of WebSockets or plain TCP whose sessions write down what they hear, and a client with the `ws` library. */

import { once } from 'node:events'
import type { Test } from 'tap'
import WebSocket from 'ws'
import type { Connection, ConnectionEvents } from '../../src/transport/connection.ts'
import { HttpServer } from '../../src/transport/http.ts'
import type { HttpServerDeps } from '../../src/transport/http-deps.ts'
import { OpenConnections, type OpenConnectionsOptions } from '../../src/transport/open-connections.ts'

/** The server's side of a connection. */
export class RecordedSession implements ConnectionEvents {
  readonly connection: Connection
  readonly chunks: string[] = []
  drains = 0
  readonly codes: number[] = []
  /** Runs besides recording. */
  act: (text: string) => void = () => {}
  actOnDrain: () => void = () => {}
  actOnClosed: () => void = () => {}
  #onNews: (() => void)[] = []

  constructor(connection: Connection) {
    this.connection = connection
  }

  get text(): string {
    return this.chunks.join('')
  }

  onBytes(bytes: Uint8Array): void {
    const text = Buffer.from(bytes).toString('latin1')
    this.chunks.push(text)
    this.act(text)
    this.#tellNews()
  }

  onDrain(): void {
    this.drains++
    this.actOnDrain()
    this.#tellNews()
  }

  onClosed(code: number): void {
    this.codes.push(code)
    this.actOnClosed()
    this.#tellNews()
  }

  /** Resolves when `isSo`, which is asked whenever the session hears something. */
  async until(isSo: (session: this) => boolean): Promise<void> {
    while (!isSo(this)) await new Promise<void>(resolve => this.#onNews.push(resolve))
  }

  /** Resolves with the code of the close. */
  async closed(): Promise<number> {
    await this.until(({ codes }) => codes.length > 0)
    return this.codes[0]!
  }

  #tellNews(): void {
    for (const resolve of this.#onNews.splice(0)) resolve()
  }
}

/** Sessions in the order of their connections. */
export class Sessions {
  readonly all: RecordedSession[] = []
  /** Called with each new session. */
  onAccept: (session: RecordedSession) => void = () => {}
  #onNew: (() => void)[] = []

  readonly accept = (connection: Connection): ConnectionEvents => {
    const session = new RecordedSession(connection)
    this.all.push(session)
    this.onAccept(session)
    for (const resolve of this.#onNew.splice(0)) resolve()
    return session
  }

  /** The session number `index`, when it is there. */
  async at(index: number): Promise<RecordedSession> {
    while (this.all.length <= index) await new Promise<void>(resolve => this.#onNew.push(resolve))
    return this.all[index]!
  }
}

export interface SocketServer {
  readonly port: number
  readonly sessions: Sessions
  readonly connections: OpenConnections
  readonly faults: unknown[]
  readonly refusals: string[]
  readonly server: HttpServer
}

interface SocketServerOptions {
  readonly parts?: Partial<HttpServerDeps>
  readonly publicUrl?: () => string
  readonly hasSockets?: boolean
  readonly open?: OpenConnectionsOptions
}

export async function serveSockets(t: Test, options: SocketServerOptions = {}): Promise<SocketServer> {
  const { parts, publicUrl, hasSockets = true, open } = options
  const sessions = new Sessions()
  const connections = new OpenConnections(open)
  const faults: unknown[] = []
  const refusals: string[] = []
  const webSocket = {
    accept: sessions.accept,
    connections,
    ...(publicUrl === undefined ? {} : { publicUrl }),
  }
  const server = new HttpServer({
    routes: [],
    ...(hasSockets ? { webSocket } : {}),
    onRefused: code => refusals.push(code),
    onFault: error => faults.push(error),
    ...parts,
  })
  t.teardown(() => server.close())
  const port = await server.listen('127.0.0.1', 0)
  return { port, sessions, connections, faults, refusals, server }
}

/** A client's received messages. */
export interface Heard {
  readonly socket: WebSocket
  readonly messages: { readonly text: string; readonly isBinary: boolean }[]
  /** Resolves with code and reason of the close. */
  readonly closed: Promise<readonly [code: number, reason: string]>
}

/** A well-behaved client; resolves when it is connected. With a CA's certificate it speaks TLS. */
export async function joinSockets(port: number, ca?: Buffer): Promise<Heard> {
  const url = ca === undefined ? `ws://127.0.0.1:${port}/ws` : `wss://localhost:${port}/ws`
  const socket = new WebSocket(url, ['v12.stomp'], ca === undefined ? {} : { ca })
  const messages: { text: string; isBinary: boolean }[] = []
  socket.on('message', (data, isBinary) => messages.push({ text: String(data), isBinary }))
  socket.on('error', () => {})
  const closed = once(socket, 'close').then(([code, reason]) => [code, String(reason)] as const)
  await once(socket, 'open')
  return { socket, messages, closed }
}
