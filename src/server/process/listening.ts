/** Opens a server's ports. A port that can't be had ends the start with a sentence; in development the next one is taken. */

import { type AddressInfo, createServer } from 'node:net'
import { messageOf } from '../../errors.ts'
import type { Addresses } from '../../fronts/messages.ts'
import { ConfigError, type NamedListener, type NamedListeners } from '../settings/config.ts'

interface Listening {
  /** Resolves with the port. */
  listen(host: string, port: number): Promise<number>
}

export interface PortPolicy {
  /** Whether the next port is tried where another program has one. */
  readonly takesNext: boolean
  /** Called with a sentence when another port is taken than the settings say. */
  readonly say: (sentence: string) => void
}

/** Resolves with `host:port`. Throws `ConfigError` with one line that names setting, port and reason. */
export async function openPort(
  { host, port, settings }: NamedListener,
  server: Listening,
  { takesNext, say }: PortPolicy,
): Promise<string> {
  const name = host.includes(':') ? `[${host}]` : host
  const last = takesNext && port !== 0 ? Math.min(port + NEXT_PORTS_MAX, PORT_MAX) : port
  for (let candidate = port; ; candidate++) {
    try {
      const bound = await server.listen(host, candidate)
      if (bound !== port && port !== 0) {
        say(`port ${port} is taken: using ${bound} (${settings.at(-1)} chooses another)`)
      }
      return `${name}:${bound}`
    } catch (error) {
      const fault = await tryPort(host, candidate)
      if (candidate < last && fault?.isTaken === true) continue
      const reason = fault?.reason ?? `can't be listened on: ${messageOf(error)}`
      throw new ConfigError([`${settings.join(', ')}: ${name}:${candidate} ${reason}`])
    }
  }
}

/** The servers of a process, each with the listener of its settings. */
export interface Ports {
  readonly listeners: NamedListeners
  readonly http: Listening
  readonly grpc: Listening
  readonly admin: Listening
  readonly serverApi: Listening
  readonly stompTcp: Listening | undefined
  /** Whether HTTP is under TLS. */
  readonly isSecure: boolean
}

/** Opens every port, HTTP's last. Throws as `openPort`. */
export async function openPorts(ports: Ports, policy: PortPolicy): Promise<Addresses> {
  const { listeners } = ports
  const grpc = await openPort(listeners.grpc, ports.grpc, policy)
  const admin = `http://${await openPort(listeners.admin, ports.admin, policy)}`
  const serverApi = `http://${await openPort(listeners.serverApi, ports.serverApi, policy)}`
  const stompTcp =
    ports.stompTcp && listeners.stompTcp && (await openPort(listeners.stompTcp, ports.stompTcp, policy))
  const http = `${ports.isSecure ? 'https' : 'http'}://${await openPort(listeners.http, ports.http, policy)}`
  return { http, grpc, admin, serverApi, ...(stompTcp === undefined ? {} : { stompTcp }) }
}

/**
 * Resolves with the port for others to listen on: one that nobody has, where `port` is 0. Rejects where it can't be had.
 */
export function chosenPort(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen({ host, port, exclusive: true }, () => {
      const chosen = (server.address() as AddressInfo).port
      server.close(() => resolve(chosen))
    })
  })
}

export interface PortFault {
  /** Whether another program has the port. */
  readonly isTaken: boolean
  /** The rest of a sentence that begins with the address. */
  readonly reason: string
}

/**
 * Resolves with the address's fault; undefined where it can be listened on. Server libraries say only that it
 * can't, the kernel says why.
 */
export async function tryPort(host: string, port: number): Promise<PortFault | undefined> {
  try {
    await chosenPort(host, port)
    return undefined
  } catch (error) {
    const { code = 'unknown reason' } = error as NodeJS.ErrnoException
    const reason = `${FAULTS[code] ?? "can't be listened on"} (${code})${ADVICE[code] ?? ''}`
    return { isTaken: code === 'EADDRINUSE', reason }
  }
}

/** More programs than a developer runs side by side. */
const NEXT_PORTS_MAX = 20
const PORT_MAX = 65_535
const FAULTS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is taken',
  EACCES: 'is not permitted',
  EADDRNOTAVAIL: 'is not an address of this machine',
  ENOTFOUND: 'is a name that is not known here',
  EAI_AGAIN: 'is a name that can’t be looked up now',
}
const ADVICE: Readonly<Record<string, string>> = {
  EADDRINUSE: ': stop the program that has it, or set another port',
  EACCES: ': ports below 1024 need CAP_NET_BIND_SERVICE (see deploy/callsign.service)',
}
