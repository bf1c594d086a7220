/**
 * STOMP over plain TCP, for programs on the same machine and for tests of the protocol alone: one listener, the same
 * connections as over WebSocket. There is no TLS and no Origin here, so give it a loopback address.
 *
 * A client that shuts down its sending side has left: frames queued for it until then are still written.
 */

import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { BACKPRESSURE_BYTES_MAX } from '../limits.ts'
import {
  CODE_BROKEN,
  CODE_NONE,
  type ConnectionHost,
  DROPPED,
  QueuedConnection,
} from './queued-connection.ts'
import { networkOf, parseAddress } from './remote-address.ts'

export class StompTcpServer {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  constructor(host: ConnectionHost) {
    this.#server = createServer({ allowHalfOpen: true, noDelay: true, keepAlive: true }, socket => {
      if (host.connections.isFull) socket.destroy()
      else this.#open(host, socket)
    })
  }

  /** Resolves with the port that is listened on; rejects when it is taken. */
  listen(host: string, port: number): Promise<number> {
    const server = this.#server
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen({ host, port }, () => {
        server.off('error', reject)
        resolve((server.address() as AddressInfo).port)
      })
    })
  }

  stopListening(): void {
    this.#server.close()
  }

  /** Ends every connection. */
  close(): void {
    this.stopListening()
    for (const socket of this.#sockets) socket.destroy()
  }

  #open(host: ConnectionHost, socket: Socket): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    new TcpConnection(host, socket).open()
  }
}

class TcpConnection extends QueuedConnection {
  readonly #socket: Socket
  #code = CODE_BROKEN

  constructor(host: ConnectionHost, socket: Socket) {
    super(host, networkOf(parseAddress(socket.remoteAddress ?? '') ?? UNKNOWN_ADDRESS), '')
    this.#socket = socket
    socket.on('data', bytes => this.onInput(bytes))
    socket.once('end', () => this.end(CODE_NONE, ''))
    socket.once('close', () => this.onOver(this.#code))
    // 'close' follows.
    socket.once('error', () => undefined)
  }

  protected write(frames: readonly Uint8Array[]): number {
    const socket = this.#socket
    const last = frames.length - 1
    socket.cork()
    for (let at = 0; at < last; at++) socket.write(frames[at]!)
    socket.write(frames[last]!, this.#onKernelTook)
    socket.uncork()
    const unsentBytes = socket.writableLength
    return unsentBytes > BACKPRESSURE_BYTES_MAX + frames[last]!.length ? DROPPED : unsentBytes
  }

  protected finish(code: number): void {
    this.#code = code
    this.#socket.end()
  }

  protected abort(): void {
    this.#socket.destroy()
  }

  readonly #onKernelTook = (error?: Error | null): void => {
    if (!error) this.onWritten(this.#socket.writableLength)
  }
}

const UNKNOWN_ADDRESS = new Uint8Array(4)
