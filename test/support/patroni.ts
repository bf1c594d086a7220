/**
 * PostgreSQL as `deploy/patroni` has it: three members under Patroni, three of etcd and HAProxy before the primary, from Debian's
 * packages. Ports, folders and passwords are the test's own.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chownSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Test } from 'tap'
import { freePort } from './free-port.ts'
import {
  asUnprivileged,
  binFolder,
  PASSWORD,
  Postgres,
  signalWithChildren,
  unprivileged,
} from './postgres.ts'
import { skipWithout } from './programs.ts'
import { PROJECT_ROOT } from './vectors.ts'

export const skipWithoutPatroni = skipWithout(
  ['/usr/bin/patroni', '/usr/lib/python3/dist-packages/etcd', '/usr/bin/etcd', '/usr/sbin/haproxy'],
  'patroni, python3-etcd, etcd-server and haproxy',
)

type Role = 'leader' | 'sync_standby' | 'replica'

interface SeenMember {
  readonly name: string
  readonly role: Role
  readonly state: string
}

export class Member {
  readonly name: string
  readonly port: number
  readonly rest: number
  readonly #environment: NodeJS.ProcessEnv
  readonly #start: string
  readonly #dataFolder: string
  #patroni: ChildProcess | undefined

  constructor(at: number, ports: readonly [number, number], folder: string, shared: NodeJS.ProcessEnv) {
    this.name = `patroni-${at}`
    this.port = ports[0]
    this.rest = ports[1]
    this.#start = join(folder, 'patroni/start.sh')
    this.#dataFolder = join(folder, this.name)
    this.#environment = {
      ...shared,
      PATRONI_NAME: this.name,
      PATRONI_RESTAPI_LISTEN: `127.0.0.1:${this.rest}`,
      PATRONI_RESTAPI_CONNECT_ADDRESS: `127.0.0.1:${this.rest}`,
      PATRONI_POSTGRESQL_LISTEN: `127.0.0.1:${this.port}`,
      PATRONI_POSTGRESQL_CONNECT_ADDRESS: `127.0.0.1:${this.port}`,
      PATRONI_POSTGRESQL_DATA_DIR: this.#dataFolder,
      PATRONI_POSTGRESQL_BIN_DIR: binFolder(),
      PATRONI_POSTGRESQL_PGPASS: join(folder, `${this.name}.pgpass`),
    }
  }

  get pidFile(): string {
    return join(this.#dataFolder, 'postmaster.pid')
  }

  start(): void {
    this.#patroni = asUnprivileged('/bin/sh', [this.#start], this.#environment)
    this.#patroni.stderr!.resume()
  }

  /** PostgreSQL goes on. */
  async killPatroni(): Promise<void> {
    const patroni = this.#patroni
    if (patroni === undefined || patroni.exitCode !== null || patroni.signalCode !== null) return
    const ended = once(patroni, 'exit')
    patroni.kill('SIGKILL')
    await ended
  }

  /** As when its machine loses its power, but for the disk. */
  async kill(): Promise<void> {
    const pid = existsSync(this.pidFile) ? Number(readFileSync(this.pidFile, 'utf8').split('\n')[0]) : 0
    await this.killPatroni()
    if (pid > 0) signalWithChildren(pid, 'SIGKILL')
  }

  /** How it sees all members. */
  async cluster(): Promise<readonly SeenMember[]> {
    const answer = await fetch(`http://127.0.0.1:${this.rest}/cluster`)
    const { members } = (await answer.json()) as { members: SeenMember[] }
    return members
  }
}

/** Its port is HAProxy's. It has one database, for the nodes, which Patroni has made. */
export class PatroniCluster extends Postgres {
  readonly members: readonly Member[]

  constructor(port: number, members: readonly Member[]) {
    super(port)
    this.members = members
  }

  /** Until the end of the test. Resolves when the primary has its synchronous standby. */
  static async start(t: Test): Promise<PatroniCluster> {
    const folder = mkdtempSync(join(tmpdir(), 'callsign-patroni-'))
    cpSync(join(PROJECT_ROOT, 'deploy/patroni'), join(folder, 'patroni'), { recursive: true })
    const settings = join(folder, 'patroni/patroni.yaml')
    writeFileSync(
      settings,
      readFileSync(settings, 'utf8').replace('/usr/share/callsign-patroni', join(folder, 'patroni')),
    )
    giveAway(folder)
    const etcdHosts = await startEtcd(t, folder)
    const shared = {
      PATH: '/usr/sbin:/usr/bin:/bin',
      LANG: 'C.UTF-8',
      HOME: folder,
      PATRONI_ETCD3_HOSTS: etcdHosts.join(','),
      PATRONI_SUPERUSER_PASSWORD: PASSWORD,
      PATRONI_REPLICATION_PASSWORD: PASSWORD,
      CALLSIGN_DATABASE_PASSWORD: PASSWORD,
    }
    const members: Member[] = []
    for (const at of MEMBERS) {
      members.push(new Member(at, [await freePort(), await freePort()], folder, shared))
    }
    const endAll = bindToTest(members)
    t.teardown(async () => {
      await Promise.all(members.map(member => member.kill()))
      await endAll()
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
    })
    for (const member of members) member.start()
    const cluster = new PatroniCluster(await startProxy(t, folder, members), members)
    await cluster.settled()
    return cluster
  }

  /** The one there is, which is not empty for a second time. */
  override async newDatabase(): Promise<string> {
    return this.urlOf('callsign')
  }

  /** The address of one member's database, whatever its role. */
  urlAt({ port }: Member): string {
    return this.urlOf('callsign', port)
  }

  /** The member that has this role, as any of them sees it. */
  async memberAs(role: Role): Promise<Member | undefined> {
    for (const member of this.members) {
      const seen = await member.cluster().catch(() => [])
      const found = seen.find(each => each.role === role && RUNNING.has(each.state))
      if (found !== undefined) return this.members.find(({ name }) => name === found.name)
    }
    return undefined
  }

  /** Resolves when there are a primary, a synchronous standby and a third member. */
  async settled(): Promise<void> {
    for (;;) {
      const seen = await this.members[0]!.cluster().catch(() => [])
      const roles = seen.filter(({ state }) => RUNNING.has(state)).map(({ role }) => role)
      if (roles.toSorted().join() === 'leader,replica,sync_standby') return
      await setTimeout(PAUSE_MS)
    }
  }
}

/** Where clients reach each of its members. */
async function startEtcd(t: Test, folder: string): Promise<string[]> {
  const members: { name: string; peer: string; client: string }[] = []
  for (const at of MEMBERS) {
    const [peer, client] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`]
    members.push({ name: `etcd-${at}`, peer, client })
  }
  const all = members.map(({ name, peer }) => `${name}=http://${peer}`).join(',')
  for (const { name, peer, client } of members) {
    start(t, '/usr/bin/etcd', [], {
      ETCD_NAME: name,
      ETCD_DATA_DIR: join(folder, name),
      ETCD_LISTEN_PEER_URLS: `http://${peer}`,
      ETCD_INITIAL_ADVERTISE_PEER_URLS: `http://${peer}`,
      ETCD_LISTEN_CLIENT_URLS: `http://${client}`,
      ETCD_ADVERTISE_CLIENT_URLS: `http://${client}`,
      ETCD_INITIAL_CLUSTER: all,
    })
  }
  return members.map(({ client }) => client)
}

/** The port of HAProxy with the file of `deploy/patroni`. */
async function startProxy(t: Test, folder: string, members: readonly Member[]): Promise<number> {
  const port = await freePort()
  const file = join(folder, 'patroni/haproxy.cfg')
  let text = readFileSync(file, 'utf8').replace('bind :5432', `bind 127.0.0.1:${port}`)
  for (const { name, port, rest } of members) {
    text = text.replace(` ${name}:5432`, ` 127.0.0.1:${port} port ${rest}`)
  }
  writeFileSync(file, text)
  start(t, '/usr/sbin/haproxy', ['-db', '-f', file])
  return port
}

function start(t: Test, file: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): void {
  const child = asUnprivileged(file, args, env)
  child.stderr!.resume()
  const ended = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
}

/**
 * Patroni's PostgreSQL outlives it, and would outlive a test that is killed: a shell waits for the end of its input, which comes
 * with the end of the test's process. The returned function ends it.
 */
function bindToTest(members: readonly Member[]): () => Promise<unknown> {
  const script = 'cat >/dev/null; for file; do test ! -e "$file" || kill -9 "$(head -n 1 "$file")"; done'
  const args = ['-c', script, '-', ...members.map(({ pidFile }) => pidFile)]
  const shell = spawn('/bin/sh', args, { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  const ended = once(shell, 'exit')
  return () => {
    shell.stdin.end()
    return ended
  }
}

function giveAway(folder: string): void {
  const owner = unprivileged()
  if (owner === undefined) return
  const inside = readdirSync(folder, { recursive: true }).map(name => join(folder, String(name)))
  for (const path of [folder, ...inside]) chownSync(path, owner.uid, owner.gid)
}

/** Newer versions say of a standby that it is streaming. */
const RUNNING = new Set(['running', 'streaming'])
const MEMBERS = [1, 2, 3]
const PAUSE_MS = 200
