/**
 * PostgreSQL for tests, in a temporary folder and on a free port of loopback. A run of the suite has one server, where each
 * test makes databases of its own; a test that kills or configures the server starts another. Any version from 15 on serves,
 * from Debian's folders or from PATH.
 */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { freePort } from './free-port.ts'
import { PROJECT_ROOT } from './vectors.ts'

/** No error and no log line may have it. */
export const PASSWORD = 'never-in-a-log-line'

let databases = 0

/** A server that others use too. */
export class Postgres {
  readonly port: number

  constructor(port: number) {
    this.port = port
  }

  /** The URL of a new, empty database. */
  async newDatabase(): Promise<string> {
    const name = `test_${process.pid}_${++databases}`
    await this.query(this.urlOf('postgres'), `create database ${name}`)
    return this.urlOf(name)
  }

  urlOf(database: string, port = this.port): string {
    return `postgres://callsign:${PASSWORD}@127.0.0.1:${port}/${database}`
  }

  /** The rows of one statement, on a connection of its own. */
  async query<Row extends object>(
    url: string,
    text: string,
    values: readonly unknown[] = [],
  ): Promise<Row[]> {
    const client = new pg.Client(url)
    client.on('error', () => {})
    await client.connect()
    try {
      return (await client.query<Row>(text, [...values])).rows
    } finally {
      await client.end()
    }
  }

  /** PostgreSQL's output for one statement, such as a verbose one. */
  async saidOf(url: string, text: string): Promise<string[]> {
    const client = new pg.Client(url)
    const said: string[] = []
    client.on('error', () => {})
    client.on('notice', ({ message, detail }) => said.push(`${message} ${detail}`))
    await client.connect()
    try {
      await client.query(text)
    } finally {
      await client.end()
    }
    return said
  }

  /** Runs a statement, such as a lock, whose transaction lasts until the returned function is called. */
  async hold(url: string, text: string): Promise<() => Promise<void>> {
    const client = new pg.Client(url)
    client.on('error', () => {})
    await client.connect()
    await client.query('begin')
    await client.query(text)
    let released: Promise<void> | undefined
    return () => {
      released ??= client.end()
      return released
    }
  }

  /** Resolves when a statement that begins so waits for a lock. */
  async waitsForLock(url: string, applicationName: string, query: string): Promise<void> {
    const waiting = () =>
      this.query(
        url,
        `select from pg_stat_activity
          where datname = current_database() and application_name = $1 and wait_event_type = 'Lock' and ltrim(query, E' \\n') like $2 || '%'`,
        [applicationName, query],
      )
    // Each look is a connection, which is a process of PostgreSQL.
    while ((await waiting()).length === 0) await setTimeout(20)
  }
}

/** A server of a test's own, which can be killed and started again. */
export class PostgresServer extends Postgres {
  readonly #bin: string
  readonly #folder: string
  readonly #settings: readonly string[]
  #process: ChildProcess | undefined

  constructor(bin: string, folder: string, port: number, settings: readonly string[]) {
    super(port)
    this.#bin = bin
    this.#folder = folder
    this.#settings = settings
  }

  get dataFolder(): string {
    return this.#folder
  }

  get pid(): number {
    // `kill` takes -1 for every process.
    if (this.#process?.pid === undefined) throw new Error('PostgreSQL does not run')
    return this.#process.pid
  }

  /** Resolves when connections are taken. */
  async start(): Promise<void> {
    for (;;) {
      const log = await this.#startOnce()
      if (log.some(line => READY.test(line))) return
      // Processes of a server that was killed end a moment after it.
      if (!log.some(line => line.includes('is still in use'))) throw new Error(`postgres: ${log.join('\n')}`)
    }
  }

  /** Its log until connections are taken, or until it ends. */
  async #startOnce(): Promise<string[]> {
    const options = [`port=${this.port}`, ...SETTINGS, ...this.#settings].flatMap(setting => ['-c', setting])
    const child = asUnprivileged(join(this.#bin, 'postgres'), ['-D', this.#folder, ...options])
    this.#process = child
    const log: string[] = []
    const lines = createInterface(child.stderr!)
    await new Promise<void>(resolve => {
      child.once('exit', resolve)
      lines.on('line', line => {
        log.push(line)
        if (READY.test(line)) resolve()
      })
    })
    lines.removeAllListeners('line')
    return log
  }

  /** Starts again as a standby, which takes no changes; `select pg_promote()` ends that. */
  async restartAsStandby(): Promise<void> {
    await this.stop()
    const signal = join(this.#folder, 'standby.signal')
    writeFileSync(signal, '')
    own(signal)
    await this.start()
  }

  /** In order: clients are disconnected. */
  stop(): Promise<void> {
    return this.#end('SIGINT')
  }

  /** None of its processes runs, until `resume`. */
  pause(): void {
    signalWithChildren(this.pid, 'SIGSTOP')
  }

  resume(): void {
    signalWithChildren(this.pid, 'SIGCONT')
  }

  /** All its processes at once, as when the machine loses its power, but for the disk. */
  kill(): Promise<void> {
    return this.#end('SIGKILL')
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process
    this.#process = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    if (signal === 'SIGKILL') signalWithChildren(child.pid!, signal)
    else child.kill(signal)
    await ended
  }
}

interface Teardown {
  teardown(run: () => Promise<void>): unknown
}

/** The server of the run, or one that lasts until the end of the test. See `skipWithoutPostgres`. */
export async function sharedPostgres(t: Teardown): Promise<Postgres> {
  const port = process.env[SHARED]
  return port === undefined ? startPostgres(t) : new Postgres(Number(port))
}

/**
 * Starts the server of a run, if PostgreSQL is there. Resolves with the environment of its tests, and a function that
 * ends it.
 */
export async function servePostgres() {
  if (skipWithoutPostgres !== false) return undefined
  const ends: (() => Promise<void>)[] = []
  const server = await startPostgres({ teardown: end => ends.push(end) }, ['max_connections=200'])
  return {
    environment: { [SHARED]: String(server.port) },
    async end() {
      for (const end of ends.toReversed()) await end()
    },
  }
}

/** Runs until the end of the test; `settings` are PostgreSQL's. See `skipWithoutPostgres`. */
export async function startPostgres(t: Teardown, settings: readonly string[] = []): Promise<PostgresServer> {
  const passwordFile = join(mkdtempSync(join(tmpdir(), 'callsign-password-')), 'password')
  writeFileSync(passwordFile, PASSWORD)
  t.teardown(async () => rmSync(dirname(passwordFile), { recursive: true }))
  for (const path of [dirname(passwordFile), passwordFile]) own(path)
  return await startMade(t, settings, (bin, data) =>
    asUnprivileged(join(bin, 'initdb'), [
      ...['-D', data, '-U', 'callsign', '--pwfile', passwordFile],
      ...['-A', 'scram-sha-256', '-E', 'UTF8', '--locale=C', '--no-sync'],
    ]),
  )
}

/** Copies the primary and streams from it, by this port, until it is promoted or ends. */
export function startStandby(
  t: Teardown,
  primary: Postgres,
  { settings = [], port = primary.port }: { settings?: readonly string[]; port?: number } = {},
): Promise<PostgresServer> {
  const url = primary.urlOf('postgres', port)
  return startMade(t, settings, (bin, data) =>
    asUnprivileged(join(bin, 'pg_basebackup'), ['-d', url, '-D', data, '-R', '-c', 'fast', '--no-sync']),
  )
}

/** Starts a server in a folder that this program makes. */
async function startMade(
  t: Teardown,
  settings: readonly string[],
  make: (bin: string, data: string) => ChildProcess,
): Promise<PostgresServer> {
  const bin = binFolder()!
  const folder = mkdtempSync(join(tmpdir(), 'callsign-postgres-'))
  own(folder)
  const data = join(folder, 'data')
  const [certificate, key] = ['server.crt', 'server.key'].map(name => {
    const path = join(folder, name)
    copyFileSync(join(TLS, name), path)
    chmodSync(path, 0o600)
    own(path)
    return path
  })
  const tls = [`ssl_cert_file=${certificate}`, `ssl_key_file=${key}`]
  const server = new PostgresServer(bin, data, await freePort(), [...tls, ...settings])
  t.teardown(async () => {
    await server.kill()
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
  })
  const made = make(bin, data)
  const errors = made.stderr!.toArray()
  const [code] = await once(made, 'exit')
  if (code !== 0) throw new Error(`no server was made: ${code} ${Buffer.concat(await errors)}`)
  await server.start()
  return server
}

/** Gives a file to the user that PostgreSQL runs as. */
function own(path: string): void {
  const owner = unprivileged()
  if (owner !== undefined) chownSync(path, owner.uid, owner.gid)
}

function whyNot(): string | false {
  if (binFolder() === undefined) return 'needs PostgreSQL 15 or newer (Debian package postgresql)'
  if (process.getuid?.() === 0 && unprivileged() === undefined) {
    return 'PostgreSQL does not run as root, and there is no user postgres or nobody'
  }
  return false
}

/** The folder of the newest version's programs. */
export function binFolder(): string | undefined {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).toSorted((a, b) => Number(b) - Number(a)) : []
  const folders = [
    ...versions.map(version => join(DEBIAN, version, 'bin')),
    ...(process.env.PATH ?? '').split(delimiter),
  ]
  return folders.find(folder => versionOf(folder) >= VERSION_MIN)
}

function versionOf(folder: string): number {
  const program = join(folder, 'postgres')
  if (!existsSync(program) || !existsSync(join(folder, 'initdb'))) return 0
  const said = execFileSync(program, ['--version'], { encoding: 'utf8' })
  return Number(/\) (\d+)/.exec(said)?.[1] ?? 0)
}

interface Owner {
  readonly uid: number
  readonly gid: number
}

/** The user that PostgreSQL runs as where the test runs as root. */
export function unprivileged(): Owner | undefined {
  if (process.getuid?.() !== 0) return undefined
  const users = readFileSync('/etc/passwd', 'utf8').split('\n')
  for (const name of ['postgres', 'nobody']) {
    const fields = users.find(line => line.startsWith(`${name}:`))?.split(':')
    if (fields !== undefined) return { uid: Number(fields[2]), gid: Number(fields[3]) }
  }
  return undefined
}

/** It ends with the test, however that ends. `setpriv` sets that after it has become another user, which would undo it. */
export function asUnprivileged(
  file: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): ChildProcess {
  const owner = unprivileged()
  const stdio: ['ignore', 'ignore', 'pipe'] = ['ignore', 'ignore', 'pipe']
  if (!existsSync(SETPRIV)) return spawn(file, args, { stdio, env, cwd: tmpdir(), ...owner })
  const as = owner === undefined ? [] : [`--reuid=${owner.uid}`, `--regid=${owner.gid}`, '--clear-groups']
  return spawn(SETPRIV, [...as, '--pdeathsig', 'KILL', file, ...args], {
    stdio,
    env,
    cwd: tmpdir(),
  })
}

function childrenOf(pid: number): number[] {
  const list = `/proc/${pid}/task/${pid}/children`
  if (!existsSync(list)) return []
  return readFileSync(list, 'utf8').split(' ').filter(Boolean).map(Number)
}

/** A process of PostgreSQL's that serves a connection may outlive the first. */
export function signalWithChildren(first: number, signal: NodeJS.Signals): void {
  for (const pid of [first, ...childrenOf(first)]) {
    try {
      process.kill(pid, signal)
    } catch {
      // It has ended.
    }
  }
}

/** The port of the run's server. */
const SHARED = 'CALLSIGN_TEST_POSTGRES_PORT'
const READY = /ready to accept (read-only )?connections/
const TLS = join(PROJECT_ROOT, 'test/support/tls')
const DEBIAN = '/usr/lib/postgresql'
const SETPRIV = '/usr/bin/setpriv'
const VERSION_MIN = 15
const SETTINGS = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'shared_buffers=64MB',
  'max_connections=60',
  'ssl=on',
]

/** Why a test that needs PostgreSQL is skipped, or false. */
export const skipWithoutPostgres = whyNot()
