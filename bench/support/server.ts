/** Runs the built server as an operator would, in a process of its own, and waits for its ready line. */

import { spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

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
  /** Sends SIGTERM and resolves when the process has ended. */
  end(): Promise<void>
}

export interface ServerOptions {
  readonly dataFolder: string
  readonly environment?: Readonly<Record<string, string>>
  /** Has the server write CPU profiles of its threads there when it ends. */
  readonly profilesFolder?: string | undefined
  /** A built checkout of another commit. */
  readonly checkout?: string | undefined
  /** For Node itself, besides what else it needs. */
  readonly nodeArguments?: readonly string[]
}

/**
 * Starts `src/main.ts` in development mode, on free ports, without request rates (one address makes all the load).
 * Its log lines go to a file, as an operator's would. Rejects with them when it ends before it is ready.
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  mkdirSync(options.dataFolder, { recursive: true })
  const logPath = join(options.dataFolder, SERVER_LOG_FILE)
  const log = openSync(logPath, 'w')
  const startedAtMs = performance.now()
  const child = spawn(process.execPath, [...nodeArgumentsOf(options), mainOf(options), '--dev'], {
    stdio: ['ignore', 'pipe', log],
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      CALLSIGN_DATA_DIR: options.dataFolder,
      CALLSIGN_HTTP_PORT: '0',
      CALLSIGN_GRPC_PORT: '0',
      CALLSIGN_ADMIN_PORT: '0',
      CALLSIGN_RATE_LIMITS: 'off',
      ...options.environment,
    },
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
  const { http, grpc, admin }: { http: string; grpc: string; admin: string } = JSON.parse(line)
  return {
    pid: child.pid ?? -1,
    http,
    grpc,
    admin,
    startMs,
    async end() {
      child.kill('SIGTERM')
      await exited
      process.off('exit', killWithUs)
    },
  }
}

/** The value of a figure without labels in the text that `/metrics` answers. Throws when it is not there. */
export function readMetric(text: string, name: string): number {
  const value = new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]
  if (value === undefined) throw new Error(`the server has no metric ${name}`)
  return Number(value)
}

/** What makes Node write a CPU profile of a process, or nothing. */
export function profileArguments(profilesFolder: string | undefined): readonly string[] {
  return profilesFolder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profilesFolder}`]
}

function nodeArgumentsOf({ profilesFolder, nodeArguments = [] }: ServerOptions): readonly string[] {
  return [
    '--enable-source-maps',
    // As the unit and the image have it.
    '--max-semi-space-size=16',
    ...profileArguments(profilesFolder),
    ...nodeArguments,
  ]
}

function mainOf({ checkout }: ServerOptions): string {
  if (checkout !== undefined) return join(checkout, 'dist/src/main.js')
  return fileURLToPath(new URL('../../src/main.js', import.meta.url))
}
