/** Starts brokers, each with its own data folder, on loopback; one that is not installed is named once and left out. */

import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { skipWithoutPostgres, startPostgres } from '../../../test/support/postgres.ts'
import type { BenchmarkContext } from '../benchmark.ts'
import type { BrokerAddress } from '../durable-load.ts'
import { childrenOf } from '../machine.ts'
import { findPeer, freePort, startPeer } from '../peer.ts'
import { openRabbitMq } from '../rabbitmq.ts'

export interface Broker {
  /** With its version, and what it does not promise. */
  readonly name: string
  readonly address: BrokerAddress
  /** Its processes now. */
  pids(): readonly number[]
}

export async function openBrokers(context: BenchmarkContext): Promise<readonly Broker[]> {
  if (!context.hasPeers) return []
  const opened = [await openRedis(context), await openPostgres(context), await openNats(context)]
  const rabbitMq = (await openRabbitMq(context)).map(({ name, pid, port, login }) => ({
    name: `${name}, quorum queues`,
    address: { kind: 'rabbitmq', port, login } as const,
    pids: () => [pid],
  }))
  return [...opened.filter(broker => broker !== undefined), ...rabbitMq]
}

/** The file of commands is synced before any client hears of what it holds. */
async function openRedis(context: BenchmarkContext): Promise<Broker | undefined> {
  const path = findPeer({ name: 'Redis', paths: ['/usr/bin/redis-server'], aptPackage: 'redis-server' })
  if (path === undefined) return undefined
  const [folder, port] = [folderOf(context, 'redis'), await freePort()]
  const settings = {
    ...{ bind: '127.0.0.1', port: String(port), dir: folder },
    ...{ save: '', appendonly: 'yes', appendfsync: 'always', 'auto-aof-rewrite-percentage': '0' },
  }
  const commandArguments = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])
  const pid = await started(context, { path, commandArguments, folder, port })
  const version = /v=([\d.]+)/.exec(execFileSync(path, ['--version'], { encoding: 'latin1' }))?.[1]
  return { name: `Redis ${version}, streams`, address: { kind: 'redis', port }, pids: () => [pid] }
}

/** Before 2.10 no setting has it sync for each message. */
async function openNats(context: BenchmarkContext): Promise<Broker | undefined> {
  const paths = ['/usr/sbin/nats-server', '/usr/bin/nats-server']
  const path = findPeer({ name: 'NATS', paths, aptPackage: 'nats-server' })
  if (path === undefined) return undefined
  const [folder, port] = [folderOf(context, 'nats'), await freePort()]
  const version = /v([\d.]+)/.exec(execFileSync(path, ['--version'], { encoding: 'latin1' }))?.[1] ?? ''
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const syncs = major > 2 || minor >= 10
  const settings = join(folder, 'nats.conf')
  const lines = [`store_dir: "${folder}"`, ...(syncs ? ['sync_interval: always'] : [])]
  writeFileSync(settings, `listen: "127.0.0.1:${port}"\njetstream {\n${lines.join('\n')}\n}\n`)
  const pid = await started(context, { path, commandArguments: ['-c', settings], folder, port })
  const name = `NATS ${version}, JetStream${syncs ? '' : ' (syncs every two minutes)'}`
  return { name, address: { kind: 'nats', port }, pids: () => [pid] }
}

async function openPostgres(context: BenchmarkContext): Promise<Broker | undefined> {
  if (skipWithoutPostgres !== false) {
    process.stderr.write(`PostgreSQL is not measured: ${skipWithoutPostgres}\n`)
    return undefined
  }
  // A process that ends takes its share of the processor time with it.
  const settings = ['fsync=on', 'synchronous_commit=on', 'autovacuum=off']
  const teardown = (end: () => Promise<void>) => void context.after(end)
  const server = await startPostgres({ teardown }, settings)
  const url = await server.newDatabase()
  const [{ server_version: version }] = (await server.query(url, 'show server_version')) as [
    { server_version: string },
  ]
  return {
    name: `PostgreSQL ${version.split(' ')[0]}, a table and NOTIFY`,
    address: { kind: 'postgres', url },
    pids: () => [server.pid, ...childrenOf(server.pid)],
  }
}

function folderOf(context: BenchmarkContext, name: string): string {
  const folder = join(context.folder, name)
  mkdirSync(folder)
  return folder
}

async function started(
  context: BenchmarkContext,
  {
    path,
    commandArguments,
    folder,
    port,
  }: { path: string; commandArguments: readonly string[]; folder: string; port: number },
): Promise<number> {
  const logPath = join(folder, 'log')
  const { pid, end } = await startPeer({ path, commandArguments, environment: {}, logPath, port })
  context.after(end)
  return pid
}
