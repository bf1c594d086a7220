/**
 * Program: a WebSocket server that answers every message with one frame to every connection, by `publish` of bare
 * uWebSockets.js or through the project's own connections.
 */

import uWS from 'uWebSockets.js'
import type { Connection } from '../../src/transport/connection.ts'
import { HttpServer } from '../../src/transport/http.ts'
import { OpenConnections } from '../../src/transport/open-connections.ts'
import { serveParent } from './program.ts'

export interface FanOutServerProtocol {
  readonly setup: { readonly by: 'publish' | 'connections'; readonly frameBytes: number }
  readonly request: 'port'
  readonly answer: number
}

serveParent<FanOutServerProtocol>(async ({ by, frameBytes }) => {
  const frame = Buffer.alloc(frameBytes, 'x')
  const port = await (by === 'publish' ? listenBare(frame) : listenOurs(frame))
  return () => port
})

function listenBare(frame: Buffer): Promise<number> {
  const app = uWS.App().ws('/ws', {
    idleTimeout: 60,
    maxBackpressure: 1024 * 1024,
    open: ws => void ws.subscribe('all'),
    message: () => void app.publish('all', frame, false),
  })
  return new Promise((resolve, reject) => {
    app.listen('127.0.0.1', 0, token =>
      token ? resolve(uWS.us_socket_local_port(token)) : reject(new Error('no port to listen on')),
    )
  })
}

function listenOurs(frame: Buffer): Promise<number> {
  const receivers: Connection[] = []
  const accept = (connection: Connection) => {
    receivers.push(connection)
    return {
      onBytes() {
        for (const receiver of receivers) receiver.send(frame, true)
      },
      onDrain() {},
      onClosed() {
        receivers.splice(receivers.indexOf(connection), 1)
      },
    }
  }
  const fatal = (error: unknown) => {
    throw error
  }
  const webSocket = { accept, connections: new OpenConnections() }
  return new HttpServer({ routes: [], webSocket, onRefused: fatal, onFault: fatal }).listen('127.0.0.1', 0)
}
