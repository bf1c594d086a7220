/** Runs the built server as a process of its own, as an operator would, and speaks to it as a stranger would. */

import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline'
import type { Ready } from '../../src/server/process/running-server.ts'
import { builtProgram, spawnBound, startedProgram } from './programs.ts'

/** A server, in a process of its own or not (`openServer`). */
export interface OpenServer extends Ready {
  /** Everything on stderr so far: log lines and the banner. */
  readonly stderr: () => string
  end(): Promise<unknown>
}

export interface RunningServer extends OpenServer {
  readonly process: ChildProcess
  /** Sends the signal and resolves with the exit code, or the signal that ended it. */
  end(signal?: NodeJS.Signals): Promise<number | NodeJS.Signals>
}

export interface OpenOptions {
  readonly dataFolder: string
  readonly environment?: Readonly<Record<string, string>>
  /** Development unless false. */
  readonly dev?: boolean
}

export interface StartOptions extends OpenOptions {
  /** Further arguments, such as `['--known-checkpoint', FILE]`. */
  readonly args?: readonly string[]
  /** Runs the server under this command, such as `['bash', '-c', 'ulimit -f 100; exec "$@"', '-']`. */
  readonly wrapper?: readonly string[]
  /** The path of another build's program. */
  readonly program?: string
  /** Gets the process before it is ready. */
  readonly onSpawned?: (process: ChildProcess) => void
}

/** Resolves when the server is ready; rejects with its stderr when it ends before. */
export async function startServer(options: StartOptions): Promise<RunningServer> {
  const { process, stderr } = spawnServer(options)
  options.onSpawned?.(process)
  const ready = await new Promise<Ready>((resolve, reject) => {
    createInterface({ input: process.stdout! }).once('line', line => resolve(JSON.parse(line)))
    process.once('close', code => reject(new Error(`the server ended with ${code}: ${stderr()}`)))
  })
  return {
    ...ready,
    process,
    stderr,
    end(signal = 'SIGTERM') {
      process.kill(signal)
      return exitOf(process)
    },
  }
}

/** Resolves with how a server ended that was not meant to become ready. */
export async function startRefused(
  options: StartOptions,
): Promise<{ code: number | NodeJS.Signals; stderr: string }> {
  const { process, stderr } = spawnServer(options)
  process.stdout!.once('data', () => process.kill())
  const code = await exitOf(process)
  return { code, stderr: stderr() }
}

function exitOf(process: ChildProcess): Promise<number | NodeJS.Signals> {
  return new Promise(resolve => {
    if (process.exitCode !== null) resolve(process.exitCode)
    else if (process.signalCode !== null) resolve(process.signalCode)
    else process.once('close', (code, by) => resolve(code ?? by ?? 'SIGKILL'))
  })
}

/** The settings of a server that tests start: any free ports, and no rates in development. */
export function environmentOf({
  dataFolder,
  environment = {},
  dev = true,
}: OpenOptions): Record<string, string> {
  return {
    CALLSIGN_DATA_DIR: dataFolder,
    CALLSIGN_HTTP_PORT: '0',
    CALLSIGN_GRPC_PORT: '0',
    CALLSIGN_ADMIN_PORT: '0',
    CALLSIGN_SERVER_API_PORT: '0',
    ...(dev ? { CALLSIGN_RATE_LIMITS: 'off' } : {}),
    CALLSIGN_FRONTS: process.env.CALLSIGN_FRONTS ?? '0',
    ...environment,
  }
}

export function spawnServer(options: StartOptions) {
  // A module that is loaded before a program, as that option has it, looks for the modules as they were built.
  const isChanged = options.environment?.NODE_OPTIONS !== undefined
  const ours = isChanged ? builtProgram('src/main') : startedProgram('src/main')
  const { dev = true, args = [], wrapper = [], program = ours } = options
  // Without source maps, which take a tenth of a start: what a server says of a fault names the files of `dist`.
  const node = [process.execPath, program]
  const command = [...wrapper, ...node, ...(dev ? ['--dev'] : []), ...args]
  const child = spawnBound(command[0]!, command.slice(1), {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...environmentOf(options) },
  })
  let text = ''
  child.stderr.setEncoding('utf8').on('data', chunk => {
    text += chunk
  })
  return { process: child, stderr: () => text }
}

/** A public key not used before. */
export function freshPublicKey(): string {
  return randomBytes(32).toString('base64')
}

/** `POST` of a JSON value, or of raw bytes as they are. */
export async function postJson<Body>(
  url: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = { 'content-type': 'application/json' },
): Promise<{ status: number; headers: Headers; body: Body }> {
  const isRaw = typeof body === 'string' || body instanceof Uint8Array
  const answer = await fetch(url, { method: 'POST', headers, body: isRaw ? body : JSON.stringify(body) })
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Body }
}
