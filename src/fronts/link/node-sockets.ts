/**
 * Connections between nodes: both ends prove that they have the secret of all nodes, over TLS with a certificate at both ends,
 * of an authority that vouches for nodes and nothing else. On loopback TLS may be left out.
 */

import { connect as connectTcp, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { type LinkMacs, LinkUnproven, type NodeProof, proveLink, type Unproven } from './link-proof.ts'

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

/** Both ends are known to be nodes of one cluster. */
export interface NodeSocket {
  readonly socket: Socket
  readonly macs: LinkMacs
}

/** Rejects with the reason where no node of this cluster answers. */
export async function connectToNode(
  { host, port }: NodePlace,
  tls: NodeTls | undefined,
  proof: NodeProof,
): Promise<NodeSocket> {
  const socket = await new Promise<Socket>((resolve, reject) => {
    const socket =
      tls === undefined
        ? connectTcp({ host, port })
        : connectTls({ host, port, ...optionsOf(tls), rejectUnauthorized: true })
    const tooLate = setTimeout(() => socket.destroy(new Error('no answer in time')), CONNECT_MS_MAX)
    socket.once(tls === undefined ? 'connect' : 'secureConnect', () => {
      clearTimeout(tooLate)
      socket.on('error', () => undefined)
      socket.setNoDelay(true)
      resolve(socket)
    })
    socket.once('error', error => {
      clearTimeout(tooLate)
      reject(error)
    })
  })
  return { socket, macs: await proveLink(socket, 'front', proof) }
}

/** Where other nodes connect. */
export class NodeServer {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** Oldest first. */
  readonly #unproven = new Set<Socket>()
  readonly #proof: NodeProof
  readonly #accept: (node: NodeSocket) => void
  readonly #onRefused: (why: Unproven, address: string | undefined) => void

  constructor(
    tls: NodeTls | undefined,
    proof: NodeProof,
    accept: (node: NodeSocket) => void,
    onRefused: (why: Unproven, address: string | undefined) => void,
  ) {
    this.#proof = proof
    this.#accept = accept
    this.#onRefused = onRefused
    const onSocket = (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
      socket.on('error', () => undefined)
      socket.setNoDelay(true)
      void this.#prove(socket)
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

  async #prove(socket: Socket): Promise<void> {
    const { remoteAddress } = socket
    this.#unproven.add(socket)
    // The oldest goes: a node needs milliseconds, so strangers who wait can't keep it out.
    const [oldest] = this.#unproven
    if (this.#unproven.size > UNPROVEN_MAX) oldest?.destroy()
    try {
      const macs = await proveLink(socket, 'writer', this.#proof)
      this.#accept({ socket, macs })
    } catch (error) {
      if (!(error instanceof LinkUnproven)) throw error
      this.#onRefused(error.why, remoteAddress)
    } finally {
      this.#unproven.delete(socket)
    }
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
const UNPROVEN_MAX = 64
