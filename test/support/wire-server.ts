/** The built server with STOMP over TCP beside WebSocket, people whose devices have signed in to it, and its figures. */

import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import type { Test } from 'tap'
import { newPublicKey } from './app.ts'
import { type Person, settingsFor, signInAgain, signInPerson } from './call-people.ts'
import { sendFrame } from './naive-client.ts'
import { openServer } from './open-server.ts'
import { type OpenOptions, type OpenServer, type RunningServer, startServer } from './server.ts'
import { type Carrier, SocketClient, type UpgradeOptions } from './socket-client.ts'

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

/** `Running` is an `OpenServer` for a server in the test's process. */
export class WireServer<Running extends OpenServer = OpenServer> {
  readonly running: Running
  #signInCount = 0
  /** By user id, the number that they sign in with. */
  readonly #numbers = new Map<string, number>()

  private constructor(running: Running) {
    this.running = running
  }

  static async start(t: Test, options: WireServerOptions): Promise<WireServer<RunningServer>> {
    const running = await startServer(openOptions(t, options))
    t.teardown(() => running.end('SIGKILL'))
    return new WireServer(running)
  }

  /** As `start`, in the test's process where it has no fronts: see `openServer`. */
  static async open(t: Test, options: WireServerOptions): Promise<WireServer> {
    const running = await openServer(openOptions(t, options))
    t.teardown(() => running.end())
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
  open(carrier: Carrier, upgrade?: UpgradeOptions): Promise<SocketClient> {
    return SocketClient.open(carrier, this.#address(carrier), upgrade)
  }

  /** A client that has signed in, with its CONNECTED taken; `lines` are further headers of its CONNECT. */
  connect(carrier: Carrier, { token }: WireDevice, version?: string, lines?: string): Promise<SocketClient> {
    return SocketClient.connect(carrier, this.#address(carrier), token, version, lines)
  }

  /**
   * A figure of the operator's, by its whole name such as `callsign_actors_live{kind="stomp-connection"}`; 0 for none. With
   * fronts it is the sum over all processes.
   */
  async figure(name: string): Promise<number> {
    const text = await (await fetch(`${this.running.admin}/metrics`)).text()
    const lines = text
      .split('\n')
      .map(line => line.replace(/\{process="[^"]*"(?:,|(\}))/, (_, end) => (end ? '' : '{')))
    const figures = lines
      .filter(line => line.startsWith(`${name} `))
      .map(line => Number(line.slice(name.length + 1)))
    return figures.reduce((sum, each) => sum + each, 0)
  }

  /** Resolves with a figure when it is `isSo`; asks for it again and again. */
  async figureWhen(name: string, isSo: (figure: number) => boolean): Promise<number> {
    const untilMs = performance.now() + FIGURE_MS_MAX
    for (;;) {
      const figure = await this.figure(name)
      if (isSo(figure)) return figure
      if (performance.now() > untilMs) throw new Error(`${name} is ${figure}`)
      await setTimeout(PAUSE_MS)
    }
  }

  #address(carrier: Carrier): string {
    return carrier === 'tcp' ? this.running.stompTcp! : this.running.http
  }

  /** Lines of the log that say that something failed which must not. */
  faults(): string[] {
    return this.running
      .stderr()
      .split('\n')
      .filter(line => /"event":"(?:fault|actor-failed|fatal)"|^callsign:|UnhandledPromise/.test(line))
  }
}

/** Bytes of memory that the server's process has resident. */
export function residentBytes({ running }: WireServer<RunningServer>): number {
  const status = readFileSync(`/proc/${running.process.pid}/status`, 'latin1')
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)![1]) * 1024
}

function openOptions(t: Test, options: WireServerOptions): OpenOptions {
  const { people, environment = {}, dataFolder = t.testdir() } = options
  return {
    dataFolder,
    environment: { CALLSIGN_STOMP_TCP_PORT: '0', ...settingsFor(people), ...environment },
  }
}

export function deviceOf({ app, userId, deviceId }: Person): WireDevice {
  return { token: app.accessToken!, userId, deviceId }
}

/** A client that is served while other ones misbehave: its messages to itself come back, and nothing else does. */
export class Innocent {
  readonly #peer: SocketClient
  readonly #topic: string
  rounds = 0

  static async join(server: WireServer, carrier: Carrier): Promise<Innocent> {
    const [device] = await server.devices(1)
    const topic = `/topic/dev.innocent-${device!.userId}`
    const peer = await server.connect(carrier, device!)
    await peer.subscribe(topic)
    return new Innocent(peer, topic)
  }

  private constructor(peer: SocketClient, topic: string) {
    this.#peer = peer
    this.#topic = topic
  }

  async round(): Promise<void> {
    const said = `${++this.rounds}`
    this.#peer.write(sendFrame(this.#topic, said))
    const { body } = await this.#peer.message()
    if (String(body) !== said) throw new Error(`${body} instead of ${said}`)
  }

  /** Says goodbye; nothing came that was not meant for them. */
  async leave(t: Test): Promise<void> {
    await this.round()
    t.same(await this.#peer.disconnect(), [], 'who did nothing noticed nothing')
  }
}

const FIGURE_MS_MAX = 120_000
/** All figures are computed for each answer. */
const PAUSE_MS = 20
