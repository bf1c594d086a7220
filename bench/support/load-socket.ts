/** Sockets of load clients: plain, or TLS to a server with a self-signed certificate. */

import { connect, type OnReadOpts, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** Where a load client connects to, on this machine. */
export interface LoadTarget {
  readonly port: number
  readonly isTls?: boolean
}

export function targetOf(url: string): LoadTarget {
  const { port, protocol } = new URL(url)
  return { port: Number(port), isTls: protocol === 'https:' }
}

/** Each TLS connection makes a full handshake. Bytes written before its end wait. */
export function connectTo({ port, isTls = false }: LoadTarget, onread?: OnReadOpts): Socket {
  // No address of its own: to bind one has the kernel look for a port without any use, and that takes longer
  // than everything else when many are taken.
  const options = { port, host: '127.0.0.1', ...(onread === undefined ? {} : { onread }) }
  const socket = isTls ? connectTls({ ...options, rejectUnauthorized: false }) : connect(options)
  return socket.setNoDelay(true)
}

/** Cuts a connection. Its port can be used again at once where it is a plain one. */
export function cut(socket: Socket): void {
  // Node can't reset a connection through TLS.
  if ('encrypted' in socket) socket.destroy()
  else socket.resetAndDestroy()
}
