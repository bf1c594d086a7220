/** The kinds of fault that a round of the drill has: what it does to a cluster, and undoes. Each resolves once it is undone. */

import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import type { DroppingProxy } from './dropping-proxy.ts'
import type { FaultyCluster } from './faulty-cluster.ts'
import { type TestNode, until } from './nodes.ts'

export interface Victims {
  readonly cluster: FaultyCluster
  readonly writer: TestNode
  readonly other: TestNode
  readonly random: () => number
}

type Fault = (victims: Victims) => Promise<void>

export const FAULT_KINDS: Readonly<Record<string, Fault>> = {
  'the writer is killed': ({ writer }) => end([writer], 'SIGKILL'),
  'another node is killed': ({ other }) => end([other], 'SIGKILL'),
  "the writer's front is killed": async ({ writer }) =>
    void process.kill(writer.frontPids.at(-1)!, 'SIGKILL'),
  'the writer is stopped in order': ({ writer }) => end([writer], 'SIGTERM'),
  'all nodes are killed': ({ cluster: { nodes } }) => end(nodes, 'SIGKILL'),
  'all nodes are stopped in order': ({ cluster: { nodes } }) => end(nodes, 'SIGTERM'),
  'the writer is paused for 1 s': ({ writer }) => pause(writer, 1),
  'the writer is paused for 3 s': ({ writer }) => pause(writer, 3),
  'the writer is paused for 9 s': ({ writer }) => pause(writer, 9),
  'the process of the writer is paused for 9 s, its fronts run': async ({ writer }) => {
    const { process } = writer.server
    process.kill('SIGSTOP')
    await setTimeout(9_000)
    process.kill('SIGCONT')
  },
  'another node is paused for 4 s': ({ other }) => pause(other, 4),
  'another node has a link slower by 100 ms': ({ cluster, other }) => slow(cluster.linksOf(other), 100),
  'another node has a link slower by 400 ms': ({ cluster, other }) => slow(cluster.linksOf(other), 400),
  'another node has a link slower by 1 s': ({ cluster, other }) => slow(cluster.linksOf(other), 1_000),
  'nothing comes in by the links of another node': ({ cluster, other }) => holdLinks(cluster, other, 'in'),
  'nothing goes out by the links of another node': ({ cluster, other }) => holdLinks(cluster, other, 'out'),
  'the links of another node come and go': async ({ cluster, other, random }) => {
    for (let time = 0; time < 6; time++) {
      for (const link of cluster.linksOf(other)) link.cut()
      await setTimeout(1_500 * random())
      for (const link of cluster.linksOf(other)) link.mend()
      await setTimeout(1_500 * random())
    }
  },
  'the writer is cut off from PostgreSQL': ({ cluster, writer }) => cut([cluster.toDatabase(writer)]),
  'another node is cut off from PostgreSQL': ({ cluster, other }) => cut([cluster.toDatabase(other)]),
  'the writer hears nothing from PostgreSQL': ({ cluster, writer }) =>
    hold([cluster.toDatabase(writer)], 'from'),
  'PostgreSQL hears nothing from the writer': ({ cluster, writer }) =>
    hold([cluster.toDatabase(writer)], 'to'),
  'PostgreSQL is slower by 1 s for the writer': ({ cluster, writer }) =>
    slow([cluster.toDatabase(writer)], 1_000),
  'PostgreSQL is slower by 1 s for all': ({ cluster }) =>
    slow(
      cluster.nodes.map(node => cluster.toDatabase(node)),
      1_000,
    ),
  'PostgreSQL is restarted': async ({ cluster: { primary } }) => {
    await primary.stop()
    await primary.start()
  },
  'PostgreSQL is killed and started again': async ({ cluster: { primary } }) => {
    await primary.kill()
    await primary.start()
  },
  'PostgreSQL is paused for 3 s': async ({ cluster: { primary } }) => {
    primary.pause()
    await setTimeout(3_000)
    primary.resume()
  },
  'the standby is paused for 3 s': async ({ cluster: { standby } }) => {
    standby.pause()
    await setTimeout(3_000)
    standby.resume()
  },
  'the standby is promoted': ({ cluster }) => cluster.promote(),
  'the standby is promoted as the writer is killed': async ({ cluster, writer }) => {
    await end([writer], 'SIGKILL')
    await cluster.promote()
  },
  'all connections are reset': async ({ cluster }) => {
    for (const proxy of cluster.proxies) proxy.reset()
  },
  'the connections to PostgreSQL are reset, again and again': async ({ cluster, random }) => {
    for (let time = 0; time < 8; time++) {
      for (const node of cluster.nodes) cluster.toDatabase(node).reset()
      await setTimeout(800 * random())
    }
  },
  'the folder of another node is emptied': ({ cluster, other }) => cluster.refill(other),
  'the lease is ended by hand': ({ cluster }) => force(cluster, `lease_ends = '-infinity'`),
  'the lease is given to another node by hand': ({ cluster, other }) =>
    force(
      cluster,
      `epoch = epoch + 1, node = '${other.name}', lease_ends = clock_timestamp() + interval '1 s'`,
    ),
  'the writer and PostgreSQL are killed': async ({ cluster: { primary }, writer }) => {
    await end([writer], 'SIGKILL')
    await primary.kill()
    await primary.start()
  },
}

/** Resolves when their processes have ended; they are started again. */
async function end(nodes: readonly TestNode[], signal: NodeJS.Signals): Promise<void> {
  const ends = nodes.map(({ server }) => once(server.process, 'close'))
  for (const node of nodes) node.kill(signal)
  await Promise.all(ends)
}

async function pause(node: TestNode, seconds: number): Promise<void> {
  node.signalAll('SIGSTOP')
  await setTimeout(seconds * 1_000)
  node.signalAll('SIGCONT')
}

async function slow(proxies: readonly DroppingProxy[], delayMs: number): Promise<void> {
  for (const proxy of proxies) proxy.slow(delayMs)
  await mendLater(proxies)
}

async function cut(proxies: readonly DroppingProxy[]): Promise<void> {
  for (const proxy of proxies) proxy.cut()
  await mendLater(proxies)
}

async function hold(proxies: readonly DroppingProxy[], direction: 'to' | 'from'): Promise<void> {
  for (const proxy of proxies) proxy.hold(direction)
  await mendLater(proxies)
}

async function holdLinks(cluster: FaultyCluster, node: TestNode, direction: 'in' | 'out'): Promise<void> {
  cluster.holdLinks(node, direction)
  await mendLater(cluster.linksOf(node))
}

async function mendLater(proxies: readonly DroppingProxy[]): Promise<void> {
  await setTimeout(DISTURBED_MS)
  for (const proxy of proxies) proxy.mend()
}

/** The writer may renew a lease that was ended before another node sees that. */
async function force(cluster: FaultyCluster, sql: string): Promise<void> {
  const epochNow = async () =>
    (await cluster.sql<{ epoch: string }>('select epoch from callsign.writer'))[0]!.epoch
  const before = await epochNow()
  await until(async () => {
    await cluster.sql(`update callsign.writer set ${sql} where epoch = ${before}`)
    return (await epochNow()) !== before
  })
}

/** Longer than a lease lasts. */
const DISTURBED_MS = 9_000
