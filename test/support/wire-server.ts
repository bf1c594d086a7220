/** The built server with STOMP over TCP beside WebSocket, people whose devices have signed in to it, and its figures. */

import { readFileSync } from 'node:fs'
import type { Test } from 'tap'
import { newPublicKey } from './app.ts'
import { type Person, settingsFor, signInAgain, signInPerson } from './call-people.ts'
import { type RunningServer, startServer } from './server.ts'
import { headerOf, type WireFrame, type WireOptions, WirePeer } from './wire-peer.ts'

export type Carrier = WireOptions['carrier']
export const CARRIERS: readonly Carrier[] = ['websocket', 'tcp']

export interface WireServerOptions {
  /** How many people may sign in. */
  readonly people: number
  readonly environment?: Readonly<Record<string, string>>
  readonly dataFolder?: string
}

/** A device as a STOMP client needs to know it. */
export interface WireDevice {
  readonly token: string
  readonly userId: string
  readonly deviceId: string
}

export class WireServer {
  readonly running: RunningServer
  #signInCount = 0
  /** By user id, the number that they sign in with. */
  readonly #numbers = new Map<string, number>()

  private constructor(running: RunningServer) {
    this.running = running
  }

  static async start(t: Test, options: WireServerOptions): Promise<WireServer> {
    const { people, environment = {}, dataFolder = t.testdir() } = options
    const running = await startServer({
      dataFolder,
      environment: { CALLSIGN_STOMP_TCP_PORT: '0', ...settingsFor(people), ...environment },
    })
    t.teardown(() => running.end('SIGKILL'))
    return new WireServer(running)
  }

  /** Signs in a new person. */
  async signIn(): Promise<Person> {
    const number = this.#signInCount++
    const person = await signInPerson(this.running.http, number)
    this.#numbers.set(person.userId, number)
    return person
  }

  /** Signs in so many people at once. */
  async devices(count: number): Promise<WireDevice[]> {
    const people = await Promise.all(Array.from({ length: count }, () => this.signIn()))
    return people.map(deviceOf)
  }

  /** Another device of the person. */
  async anotherDevice({ userId }: Person): Promise<Person> {
    const app = await signInAgain(this.running.http, this.#numbers.get(userId)!)
    const publicKey = newPublicKey('P-256 X9.63')
    const device = await app.get(201, 'POST /app/api/register_device', { publicKey })
    return { app, userId, deviceId: device.deviceId, publicKey, publicKeyHash: device.publicKeyHash }
  }

  /** A connection on which nothing was said yet. */
  open(carrier: Carrier, rest: Partial<WireOptions> = {}): Promise<WirePeer> {
    const address = carrier === 'tcp' ? this.running.stompTcp! : this.running.http
    return WirePeer.open({ carrier, port: Number(address.split(':').at(-1)), ...rest })
  }

  /** A client that has signed in, with its CONNECTED taken; `lines` are further headers of its CONNECT. */
  async connect(carrier: Carrier, { token }: WireDevice, version = '1.2', lines = ''): Promise<WirePeer> {
    const peer = await this.open(carrier)
    peer.write(connectFrame(token, version, lines))
    await peer.frame(({ command }) => command === 'CONNECTED')
    return peer
  }

  /** A figure of the operator's, by its whole name such as `callsign_actors_live{kind="stomp-connection"}`; 0 for none. */
  async figure(name: string): Promise<number> {
    const text = await (await fetch(`${this.running.admin}/metrics`)).text()
    const line = text.split('\n').find(each => each.startsWith(`${name} `))
    return line === undefined ? 0 : Number(line.slice(name.length + 1))
  }

  /** Resolves with a figure when it is `isSo`; asks for it again and again. */
  async figureWhen(name: string, isSo: (figure: number) => boolean): Promise<number> {
    const untilMs = performance.now() + FIGURE_MS_MAX
    for (;;) {
      const figure = await this.figure(name)
      if (isSo(figure)) return figure
      if (performance.now() > untilMs) throw new Error(`${name} is ${figure}`)
    }
  }

  /** Bytes of memory that the process has resident. */
  residentBytes(): number {
    const status = readFileSync(`/proc/${this.running.process.pid}/status`, 'latin1')
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)![1]) * 1024
  }

  /** Lines of the log that say that something failed which must not. */
  faults(): string[] {
    return this.running
      .stderr()
      .split('\n')
      .filter(line => /"event":"(?:fault|actor-failed|fatal)"|^callsign:|UnhandledPromise/.test(line))
  }
}

export function deviceOf({ app, userId, deviceId }: Person): WireDevice {
  return { token: app.accessToken!, userId, deviceId }
}

export function connectFrame(token: string, version = '1.2', lines = ''): string {
  const accepted = version === '1.0' ? '' : `accept-version:${version}\nhost:h\n`
  return `CONNECT\n${accepted}${lines}Authorization:Bearer ${token}\n\n\0`
}

export function subscribeFrame(destination: string, id: string, lines = ''): string {
  return `SUBSCRIBE\nid:${id}\ndestination:${destination}\n${lines}receipt:sub-${id}\n\n\0`
}

/** Resolves when the subscription is there; `lines` are further headers. */
export async function subscribe(
  peer: WirePeer,
  destination: string,
  id = 's',
  lines = '',
): Promise<WireFrame> {
  peer.write(subscribeFrame(destination, id, lines))
  return peer.receipt(`sub-${id}`)
}

export function sendFrame(destination: string, body: string, lines = ''): string {
  return `SEND\ndestination:${destination}\n${lines}\n${body}\0`
}

/** Resolves when the server says that it has done it. */
export async function send(peer: WirePeer, destination: string, body: string, lines = ''): Promise<void> {
  const id = `send-${++sendCount}`
  peer.write(sendFrame(destination, body, `${lines}receipt:${id}\n`))
  await peer.receipt(id)
}

/** Says goodbye; resolves when everything before it was handled, with the frames that came meanwhile. */
export async function disconnect(peer: WirePeer): Promise<WireFrame[]> {
  peer.write('DISCONNECT\nreceipt:bye\n\n\0')
  await peer.closed()
  const frames = peer.take()
  const last = frames.pop()
  if (headerOf(last, 'receipt-id') !== 'bye') throw new Error(`ended with ${last?.octets}`)
  return frames
}

/** Octets, bodies and codes of ERROR frames in short: `<reason> <close code>`. */
export async function endingOf(peer: WirePeer): Promise<string> {
  await peer.closed()
  const error = peer.frames.find(({ command }) => command === 'ERROR')
  return `${headerOf(error, 'reason')} ${peer.closeCode}`
}

let sendCount = 0
const FIGURE_MS_MAX = 15_000
