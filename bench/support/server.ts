/** Runs the built server in a process of its own, as an operator would, and waits for its ready line. */

import { spawn } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { developmentKeys } from '../../src/server/development/development-keys.ts'

/** Where the server's log lines go, in its data folder; written anew at each start. */
export const SERVER_LOG_FILE = 'server.log'

export interface RunningServer {
  readonly pid: number
  /** Addresses of the ready line. */
  readonly http: string
  readonly grpc: string
  readonly admin: string
  /** From the start of the process to its ready line. */
  readonly startMs: number
  /** Sends SIGTERM and resolves when the process has ended. Rejects when it began over damaged rows. May be asked again. */
  end(): Promise<void>
}

/**
 * All are production. `production` is the server's own program; `without-rates` has no request rates (`production-server.ts`),
 * and `with-test-topics` has topics of any name besides, as development has.
 */
export type ServerMode = 'without-rates' | 'with-test-topics' | 'production'

export interface ServerOptions {
  readonly dataFolder: string
  /** `without-rates` unless it is given. */
  readonly mode?: ServerMode
  readonly environment?: Readonly<Record<string, string>>
  /** Has the server write CPU profiles of its threads there when it ends. */
  readonly profilesFolder?: string | undefined
  /** A built checkout of another commit. */
  readonly checkout?: string | undefined
  /** For Node itself, besides what else it needs. */
  readonly nodeArguments?: readonly string[]
}

/**
 * Starts the server on free ports. Its log lines go to a file, as an operator's would. Rejects with them when it ends before
 * it is ready.
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  mkdirSync(options.dataFolder, { recursive: true })
  const logPath = join(options.dataFolder, SERVER_LOG_FILE)
  const log = openSync(logPath, 'w')
  const env = { ...environmentOf(options), ...options.environment }
  const startedAtMs = performance.now()
  const child = spawn(process.execPath, [...nodeArgumentsOf(options), ...commandOf(options)], {
    stdio: ['ignore', 'pipe', log],
    env,
  })
  closeSync(log)
  const exited = new Promise<number | null>(resolve => child.once('close', resolve))
  const killWithUs = () => child.kill('SIGKILL')
  process.once('exit', killWithUs)
  const line = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout! }).once('line', resolve)
    void exited.then(code =>
      reject(new Error(`the server ended with ${code}: ${readFileSync(logPath, 'utf8')}`)),
    )
  })
  const startMs = performance.now() - startedAtMs
  const end = async () => {
    child.kill('SIGTERM')
    await exited
    process.off('exit', killWithUs)
    if (options.checkout === undefined) assertRowsWhole(logPath)
  }
  let ended: Promise<void> | undefined
  const { http, grpc, admin }: { http: string; grpc: string; admin: string } = JSON.parse(line)
  return {
    pid: child.pid ?? -1,
    http,
    grpc,
    admin,
    startMs,
    end: () => (ended ??= end()),
  }
}

/**
 * Throws when the server found a row damaged as it started. It reads rows by the rules of `fsck`, those of a smoke run all,
 * so no filled store has a form that the product's own never has.
 */
function assertRowsWhole(logPath: string): void {
  const log = openSync(logPath, 'r')
  const beginning = Buffer.alloc(LOG_BEGINNING_BYTES)
  const length = readSync(log, beginning)
  closeSync(log)
  const lines = beginning.toString('utf8', 0, length).split('\n')
  const damaged = lines.find(line => line.includes('"store-row-damaged"'))
  if (damaged !== undefined) throw new Error(`a server began over a damaged store: ${damaged}`)
}

/** The value of a figure without labels in the text that `/metrics` answers. Throws when it is not there. */
export function readMetric(text: string, name: string): number {
  const value = new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]
  if (value === undefined) throw new Error(`the server has no metric ${name}`)
  return Number(value)
}

/** Arguments that have Node write a CPU profile of a process, or none. */
export function profileArguments(profilesFolder: string | undefined): readonly string[] {
  return profilesFolder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profilesFolder}`]
}

/** As the unit and the image have them. */
function nodeArgumentsOf({ checkout, profilesFolder, nodeArguments = [] }: ServerOptions): readonly string[] {
  return [
    ...(existsSync(joinedIn(checkout)) ? [] : ['--enable-source-maps']),
    '--max-semi-space-size=16',
    ...profileArguments(profilesFolder),
    ...nodeArguments,
  ]
}

function commandOf({ checkout, mode = 'without-rates' }: ServerOptions): readonly string[] {
  const built = (program: string) => join(checkout ?? OURS, 'dist', program)
  if (mode !== 'production')
    return [built(PRODUCTION_SERVER), ...(mode === 'with-test-topics' ? [TEST_TOPICS] : [])]
  return [existsSync(joinedIn(checkout)) ? joinedIn(checkout) : built('src/main.js')]
}

/** The program that operators start; another checkout may be older than it. */
function joinedIn(checkout: string | undefined): string {
  return join(checkout ?? OURS, 'dist', 'joined', 'src', 'main.js')
}

function environmentOf({ dataFolder, checkout }: ServerOptions): NodeJS.ProcessEnv {
  return {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    CALLSIGN_DATA_DIR: dataFolder,
    CALLSIGN_HTTP_PORT: '0',
    CALLSIGN_GRPC_PORT: '0',
    CALLSIGN_ADMIN_PORT: '0',
    // A checkout may be older than the setting.
    ...(hasServerApi(checkout) && { CALLSIGN_SERVER_API_PORT: '0' }),
    ...productionEnvironment(dataFolder),
  }
}

function hasServerApi(checkout = OURS): boolean {
  return existsSync(join(checkout, 'dist/src/api/server-api'))
}

/** The keys stay where a development server keeps its own, so that both kinds of server can go on with a store. */
function productionEnvironment(dataFolder: string): NodeJS.ProcessEnv {
  const { origin, ktPrivateKey, vrfPrivateKey, secret } = developmentKeys(dataFolder).keys
  return {
    CALLSIGN_ORIGIN: origin,
    KT_PRIVATE_KEY: ktPrivateKey,
    VRF_PRIVATE_KEY: vrfPrivateKey,
    CALLSIGN_SECRET: secret,
    CALLSIGN_HTTP_HOST: '127.0.0.1',
    CALLSIGN_FRONTS: '0',
    CALLSIGN_PUBLIC_URL: 'https://call.example.org',
    // Nothing leaves by it: addresses that sign in have fixed codes.
    CALLSIGN_SMTP_URL: 'smtp://127.0.0.1:25',
    CALLSIGN_MAIL_FROM: 'Callsign <no-reply@example.org>',
  }
}

/** The start's lines are among them. */
const LOG_BEGINNING_BYTES = 65_536
const OURS = fileURLToPath(new URL('../../..', import.meta.url))
/** Has `production-server.ts` know topics of any name. */
const TEST_TOPICS = '--test-topics'
const PRODUCTION_SERVER = 'bench/support/production-server.js'
