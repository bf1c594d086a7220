/** Several nodes on one PostgreSQL, each the built server in a process of its own that can be killed and stopped. */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Test } from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { settingsFor } from './call-people.ts'
import { freePort } from './free-port.ts'
import { lookUp } from './live-log.ts'
import { productionEnvironment } from './outside-world.ts'
import { type Postgres, sharedPostgres } from './postgres.ts'
import { freshPublicKey, type RunningServer, type StartOptions, startServer } from './server.ts'

type Environment = Readonly<Record<string, string>>

export interface ClusterOptions {
  readonly nodes?: number
  /** How many of them to start. */
  readonly running?: number
  readonly environment?: Environment
  /** Whether a node that starts again listens where it did, for clients that are given addresses once. */
  readonly keepsAddresses?: boolean
  /** The port by which the node reaches PostgreSQL, where it is not PostgreSQL's own. */
  readonly databasePort?: (postgres: Postgres, node: string) => Promise<number>
  /** Another server than the run's, for a test that kills it. */
  readonly postgres?: Postgres
  /** For the data of the nodes. */
  readonly folder?: string
}

export class TestNode {
  readonly name: string
  readonly port: number
  readonly dataFolder: string
  /** The settings that it starts with. */
  readonly environment: Environment
  #server: RunningServer | undefined
  /** Its last process, which may not be ready yet. */
  #spawned: ChildProcess | undefined
  /** The log of its earlier processes. */
  #logged = ''
  #isSupervised = false

  constructor(name: string, port: number, dataFolder: string, environment: Environment) {
    this.name = name
    this.port = port
    this.dataFolder = dataFolder
    this.environment = {
      ...environment,
      CALLSIGN_NODE_NAME: name,
      CALLSIGN_NODE_PORT: String(port),
    }
  }

  /** The last that was ready; it may have ended. */
  get server(): RunningServer {
    if (this.#server === undefined) throw new Error(`node ${this.name} never ran`)
    return this.#server
  }

  /** Resolves when it serves. */
  async start({ environment, ...more }: Partial<StartOptions> = {}): Promise<RunningServer> {
    const server = await startServer({
      dataFolder: this.dataFolder,
      ...more,
      environment: { ...this.environment, ...environment },
      onSpawned: process => {
        this.#spawned = process
      },
    })
    this.#logged = this.log
    this.#server = server
    return server
  }

  /** Starts it again `pauseMs` after it has ended, as a supervisor does, until `release`. */
  supervise(pauseMs = 0): void {
    this.#isSupervised = true
    void this.#keep(pauseMs)
  }

  release(): void {
    this.#isSupervised = false
  }

  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | NodeJS.Signals | undefined> {
    this.release()
    // The supervisor's next one: without its database it may never be ready, nor end.
    if (this.#spawned !== this.#server?.process) this.#spawned?.kill('SIGKILL')
    return await this.#server?.end(signal)
  }

  kill(signal: NodeJS.Signals): void {
    this.server.process.kill(signal)
  }

  /** To the process and its fronts, as to a machine that does not run for a time. */
  signalAll(signal: NodeJS.Signals): void {
    for (const pid of [...this.frontPids, this.server.process.pid!]) {
      try {
        process.kill(pid, signal)
      } catch {
        // A front that has ended.
      }
    }
  }

  /** Its log, with that of its earlier processes. */
  get log(): string {
    return this.#logged + (this.#server?.stderr() ?? '')
  }

  /** The processes of its fronts, oldest first. */
  get frontPids(): readonly number[] {
    return linesOf(this.server, 'front-started').map(({ pid }) => pid as number)
  }

  /** Resolves when its log has so many lines of this event. */
  async said(event: string, times = 1): Promise<void> {
    await until(async () => linesOf(this.server, event).length >= times)
  }

  hasSaid(event: string): boolean {
    return this.saidTimes(event) > 0
  }

  /** How many lines of this event its log has. */
  saidTimes(event: string): number {
    return linesOf(this.server, event).length
  }

  /** A figure for each front, by name. */
  async frontFigures(name: string): Promise<ReadonlyMap<string, number>> {
    const text = await (await fetch(`${this.server.admin}/metrics`)).text()
    const samples = text.matchAll(new RegExp(`^${name}\\{.*front="([^"]*)"\\} (\\S+)$`, 'gm'))
    return new Map(Array.from(samples, ([, front, value]) => [front!, Number(value)]))
  }

  async isReady(): Promise<boolean> {
    return (await fetch(`${this.server.admin}/readyz`)).status === 200
  }

  async #keep(pauseMs: number): Promise<void> {
    const { process } = this.server
    if (process.exitCode === null && process.signalCode === null) await once(process, 'close')
    while (this.#isSupervised) {
      await setTimeout(pauseMs)
      if (!this.#isSupervised) return
      // PostgreSQL may be away, and then it ends before it is ready.
      const started = await this.start().catch(() => undefined)
      if (started !== undefined && this.#isSupervised) return await this.#keep(pauseMs)
      if (started !== undefined) await started.end('SIGKILL')
    }
  }
}

interface LeaseRow {
  readonly node: string
  readonly version: string
  readonly epoch: string
  readonly isHeld: boolean
}

export class Cluster {
  readonly postgres: Postgres
  readonly databaseUrl: string
  readonly nodes: readonly TestNode[]
  private constructor(postgres: Postgres, databaseUrl: string, nodes: readonly TestNode[]) {
    this.postgres = postgres
    this.databaseUrl = databaseUrl
    this.nodes = nodes
  }

  /** The first node is the writer. All end with the test. */
  static async start(
    t: Test,
    {
      nodes = 2,
      running = nodes,
      environment = {},
      keepsAddresses,
      databasePort,
      ...given
    }: ClusterOptions = {},
  ): Promise<Cluster> {
    const postgres = given.postgres ?? (await sharedPostgres(t))
    const databaseUrl = await postgres.newDatabase()
    const database = new URL(databaseUrl).pathname.slice(1)
    const shared = {
      ...productionEnvironment(),
      CALLSIGN_NODE_HOST: '127.0.0.1',
      CALLSIGN_FRONTS: '1',
      ...settingsFor(PEOPLE_MAX),
      ...environment,
    }
    const folder = given.folder ?? t.testdir()
    const made: TestNode[] = []
    for (const name of NAMES.slice(0, nodes)) {
      const url = postgres.urlOf(database, await databasePort?.(postgres, name))
      const ports = keepsAddresses ? await freePorts() : {}
      const environment = { ...shared, ...ports, CALLSIGN_DATABASE_URL: url }
      made.push(new TestNode(name, await freePort(), join(folder, name), environment))
    }
    t.teardown(() => Promise.all(made.map(node => node.end('SIGKILL'))))
    const cluster = new Cluster(postgres, databaseUrl, made)
    for (const node of made.slice(0, running)) await node.start()
    return cluster
  }

  get one(): TestNode {
    return this.nodes[0]!
  }

  get two(): TestNode {
    return this.nodes[1]!
  }

  /** Rows of one statement. */
  sql<Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    return this.postgres.query<Row>(this.databaseUrl, text, values)
  }

  /** From its next lease on, fellows reach the node at this port of loopback. */
  async leadTo(node: TestNode, port: number): Promise<void> {
    await this.sql(`
      create function callsign.detour() returns trigger language plpgsql as
        $$begin new.address := '127.0.0.1:${port}'; return new; end$$`)
    await this.sql(`
      create trigger detour before update on callsign.writer for each row
        when (new.node = '${node.name}') execute function callsign.detour()`)
  }

  /** Undefined while none holds the lease. */
  async writer(): Promise<TestNode | undefined> {
    const { node, isHeld } = await this.lease()
    return isHeld ? this.nodes.find(({ name }) => name === node) : undefined
  }

  async lease(): Promise<LeaseRow> {
    const [row] = await this.sql<LeaseRow>(
      'select node, version, epoch, lease_ends > clock_timestamp() as "isHeld" from callsign.writer',
    )
    return row!
  }
}

async function freePorts(): Promise<Environment> {
  const names = ['HTTP', 'ADMIN', 'GRPC', 'SERVER_API'].map(name => `CALLSIGN_${name}_PORT`)
  const ports = await Promise.all(names.map(freePort))
  return Object.fromEntries(names.map((name, at) => [name, String(ports[at])]))
}

/** Tries until it succeeds: nodes refuse, or do not answer, while the writer changes. */
export async function eventually<Result>(act: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await act()
    } catch {
      await setTimeout(PAUSE_MS)
    }
  }
}

/** Asks until this is so. */
export async function until(isSo: () => Promise<boolean>): Promise<void> {
  await eventually(async () => {
    if (!(await isSo())) throw new Error('not yet')
  })
}

/** A key that Register has answered for. */
export interface RegisteredKey {
  readonly publicKey: string
  readonly vrfHash: string
}

/** Registers a fresh key at the node, once that can be done. `keyBegin` makes it longer. */
export function register(node: TestNode, keyBegin = ''): Promise<RegisteredKey> {
  return eventually(async () => {
    const client = new RegisterClient(node.server.grpc)
    const publicKey = keyBegin + freshPublicKey()
    try {
      const { vrfHash } = await client.register(BigInt(++lastUser), 1n, publicKey)
      return { publicKey, vrfHash }
    } finally {
      client.close()
    }
  })
}

/** Resolves when the node finds all of these keys. */
export async function finds(node: TestNode, keys: readonly RegisteredKey[]): Promise<void> {
  for (let from = 0; from < keys.length; from += LOOKUPS_MAX) {
    const wanted = keys.slice(from, from + LOOKUPS_MAX)
    const hashes = wanted.map(({ vrfHash }) => vrfHash)
    await until(async () => {
      const found = await lookUp(node.server.http, hashes)
      return wanted.every(({ publicKey }, at) => found[at]?.publicKey === publicKey)
    })
  }
}

function linesOf(server: RunningServer, event: string): Record<string, unknown>[] {
  const wanted = `"event":"${event}"`
  return server
    .stderr()
    .split('\n')
    .filter(line => line.includes(wanted) && line.endsWith('}'))
    .map(line => JSON.parse(line))
}

let lastUser = 2_000_000
const NAMES = ['one', 'two', 'three']
const LOOKUPS_MAX = 64
const PEOPLE_MAX = 200
const PAUSE_MS = 20
