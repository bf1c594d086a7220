/**
 * Connections between nodes: TLS with a certificate at both ends, of an authority that vouches for nodes and nothing else.
 * On loopback TLS may be left out.
 */

import { connect as connectTcp, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'

/** PEM. */
export interface NodeTls {
  readonly certificate: Uint8Array
  readonly key: Uint8Array
  readonly authority: Uint8Array
}

export interface NodePlace {
  readonly host: string
  readonly port: number
}

/** Resolves with a connection on which both ends are known to be nodes. */
export function connectToNode({ host, port }: NodePlace, tls: NodeTls | undefined): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket =
      tls === undefined
        ? connectTcp({ host, port })
        : connectTls({ host, port, ...optionsOf(tls), rejectUnauthorized: true })
    const tooLate = setTimeout(() => socket.destroy(new Error('no answer in time')), CONNECT_MS_MAX)
    socket.once(tls === undefined ? 'connect' : 'secureConnect', () => {
      clearTimeout(tooLate)
      socket.off('error', reject)
      socket.setNoDelay(true)
      resolve(socket)
    })
    socket.once('error', error => {
      clearTimeout(tooLate)
      reject(error)
    })
  })
}

/** Where other nodes connect. */
export class NodeServer {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  /** `accept` takes a connection of a node. */
  constructor(tls: NodeTls | undefined, accept: (socket: Socket) => void) {
    const onSocket = (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
      socket.on('error', () => undefined)
      socket.setNoDelay(true)
      accept(socket)
    }
    this.#server =
      tls === undefined
        ? createTcpServer(onSocket)
        : createTlsServer(
            {
              ...optionsOf(tls),
              requestCert: true,
              rejectUnauthorized: true,
              handshakeTimeout: CONNECT_MS_MAX,
            },
            onSocket,
          )
    this.#server.maxConnections = CONNECTIONS_MAX
  }

  /** Resolves with the port; rejects where it can't be had. */
  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen({ host, port }, () => {
        this.#server.off('error', reject)
        this.#server.on('error', () => undefined)
        const address = this.#server.address()
        resolve(typeof address === 'object' && address !== null ? address.port : port)
      })
    })
  }

  /** Ends every connection. */
  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }
}

function optionsOf({ certificate, key, authority }: NodeTls) {
  return {
    cert: Buffer.from(certificate),
    key: Buffer.from(key),
    ca: [Buffer.from(authority)],
    minVersion: 'TLSv1.3' as const,
  }
}

const CONNECT_MS_MAX = 3_000
/** More fronts than any cluster has. */
const CONNECTIONS_MAX = 1_024
