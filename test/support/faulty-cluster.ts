/**
 * Nodes whose ways to each other and to PostgreSQL can be slow, cut and reset, with a PostgreSQL whose standby has every
 * change before it is acknowledged, or may lag.
 */

import { rmSync } from 'node:fs'
import type { Test } from 'tap'
import { DroppingProxy } from './dropping-proxy.ts'
import { Cluster, type ClusterOptions, type TestNode, until } from './nodes.ts'
import { type PostgresServer, startPostgres, startStandby } from './postgres.ts'

export interface FaultyOptions extends ClusterOptions {
  /** Whether a commit waits for the standby. */
  readonly isSynchronous?: boolean
}

export class FaultyCluster {
  readonly cluster: Cluster
  /** The standby's way to the primary. */
  readonly replication: DroppingProxy
  /** Each node's way to PostgreSQL, whichever server that is. */
  readonly #databases: ReadonlyMap<string, DroppingProxy>
  /** From one node to another, by both names. */
  readonly #links: ReadonlyMap<string, DroppingProxy>
  readonly #t: Test
  readonly #settings: readonly string[]
  #primary: PostgresServer
  #standby: PostgresServer

  private constructor(
    t: Test,
    cluster: Cluster,
    { settings, replication, primary, standby }: Replicated,
    [databases, links]: readonly ReadonlyMap<string, DroppingProxy>[],
  ) {
    this.#t = t
    this.cluster = cluster
    this.replication = replication
    this.#settings = settings
    this.#primary = primary
    this.#standby = standby
    this.#databases = databases!
    this.#links = links!
  }

  /** All end with the test. The nodes run, and are started again whenever they end. */
  static async start(
    t: Test,
    { isSynchronous = true, ...options }: FaultyOptions = {},
  ): Promise<FaultyCluster> {
    const settings = isSynchronous ? SYNCHRONOUS : []
    const primary = await startPostgres(t, settings)
    const replication = await DroppingProxy.open(t, primary.port)
    const standby = await startStandby(t, primary, { settings, port: replication.port })
    const databases = new Map<string, DroppingProxy>()
    const cluster = await Cluster.start(t, {
      ...options,
      postgres: primary,
      running: 0,
      keepsAddresses: true,
      async databasePort({ port }, node) {
        const proxy = await DroppingProxy.open(t, port)
        databases.set(node, proxy)
        return proxy.port
      },
    })
    const links = await openLinks(t, cluster.nodes, databases)
    const made = new FaultyCluster(t, cluster, { settings, replication, primary, standby }, [
      databases,
      links,
    ])
    await made.standbyStreams()
    for (const node of cluster.nodes) {
      await node.start()
      node.supervise()
    }
    return made
  }

  get nodes(): readonly TestNode[] {
    return this.cluster.nodes
  }

  get primary(): PostgresServer {
    return this.#primary
  }

  get standby(): PostgresServer {
    return this.#standby
  }

  /** Rows of one statement at the primary. */
  sql<Row extends object>(text: string): Promise<Row[]> {
    const database = new URL(this.cluster.databaseUrl).pathname.slice(1)
    return this.#primary.query<Row>(this.#primary.urlOf(database), text)
  }

  async writer(): Promise<TestNode | undefined> {
    const [lease] = await this.sql<{ node: string }>(
      'select node from callsign.writer where lease_ends > clock_timestamp()',
    )
    return this.nodes.find(({ name }) => name === lease?.node)
  }

  toDatabase(node: TestNode): DroppingProxy {
    return this.#databases.get(node.name)!
  }

  /** Its ways to the other nodes, and theirs to it. */
  linksOf({ name }: TestNode): readonly DroppingProxy[] {
    return [...this.#links].filter(([ends]) => ends.split(' ').includes(name)).map(([, link]) => link)
  }

  /** Those of its ways to the other nodes by which it sends, and of theirs by which it hears. */
  holdLinks(node: TestNode, direction: 'in' | 'out'): void {
    for (const [ends, link] of this.#links) {
      const [from, to] = ends.split(' ')
      if (from === node.name) link.hold(direction === 'out' ? 'to' : 'from')
      if (to === node.name) link.hold(direction === 'out' ? 'from' : 'to')
    }
  }

  get proxies(): readonly DroppingProxy[] {
    return [...this.#databases.values(), ...this.#links.values()]
  }

  /** The primary is lost and the standby promoted. Where commits wait for one, a new standby follows. */
  async promote(): Promise<void> {
    await this.#primary.kill()
    const promoted = this.#standby
    this.#primary = promoted
    await promoted.query(promoted.urlOf('postgres'), 'select pg_promote()')
    for (const proxy of this.#databases.values()) {
      proxy.target = promoted.port
      proxy.reset()
    }
    this.replication.target = promoted.port
    if (this.#settings !== SYNCHRONOUS) return
    const port = this.replication.port
    this.#standby = await startStandby(this.#t, promoted, { settings: SYNCHRONOUS, port })
  }

  /** The node begins with an empty folder. */
  async refill(node: TestNode): Promise<void> {
    await node.end('SIGKILL')
    rmSync(node.dataFolder, { recursive: true })
    await node.start()
    node.supervise()
  }

  /** Resolves when the standby follows. */
  async standbyStreams(): Promise<void> {
    const primary = this.#primary
    const text = `select from pg_stat_replication where state = 'streaming'`
    await until(async () => (await primary.query(primary.urlOf('postgres'), text)).length > 0)
  }
}

interface Replicated {
  readonly settings: readonly string[]
  readonly replication: DroppingProxy
  readonly primary: PostgresServer
  readonly standby: PostgresServer
}

/** Each node hears from PostgreSQL of the ways that the test opened. */
async function openLinks(
  t: Test,
  nodes: readonly TestNode[],
  databases: ReadonlyMap<string, DroppingProxy>,
): Promise<Map<string, DroppingProxy>> {
  const links = new Map<string, DroppingProxy>()
  for (const from of nodes) {
    const said: [string, string][] = []
    for (const to of nodes) {
      if (from === to) continue
      const link = await DroppingProxy.open(t, to.port)
      links.set(`${from.name} ${to.name}`, link)
      said.push([`127.0.0.1:${to.port}`, `127.0.0.1:${link.port}`])
    }
    databases.get(from.name)!.sayInstead(said)
  }
  return links
}

const SYNCHRONOUS = ['synchronous_standby_names=*']
