/**
 * Peers: servers that people would take for a part of the job, installed from the system's packages, which the bench
 * starts and stops itself. One that is not installed is not measured, and is named once on standard error.
 */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'

export interface PeerPackage {
  readonly name: string
  /** Where its program may be. */
  readonly paths: readonly string[]
  /** The package's name in Debian. */
  readonly aptPackage: string
}

/** The program's path; undefined when it is not installed. */
export function findPeer({ name, paths, aptPackage }: PeerPackage): string | undefined {
  const path = paths.find(existsSync)
  if (path === undefined && !missing.has(name)) {
    missing.add(name)
    process.stderr.write(`${name} is not installed and so not measured: apt-get install -y ${aptPackage}\n`)
  }
  return path
}

export interface PeerProcess {
  readonly pid: number
  /** Ends it with all processes of its group; may be asked again. */
  end(): Promise<void>
}

export interface PeerCommand {
  readonly path: string
  readonly commandArguments: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  readonly logPath: string
  /** It is ready when it listens there. */
  readonly port: number
}

/** Rejects with what it wrote when it ends before it is ready. */
export async function startPeer(command: PeerCommand): Promise<PeerProcess> {
  const { path, commandArguments, environment, logPath, port } = command
  const log = openSync(logPath, 'w')
  const child = spawn(path, commandArguments, {
    stdio: ['ignore', log, log],
    env: { PATH: process.env.PATH, ...environment },
    detached: true,
  })
  closeSync(log)
  const pid = child.pid ?? -1
  let isRunning = true
  const exited = new Promise<void>(resolve => {
    for (const event of ['exit', 'error']) child.once(event, () => resolve())
  }).then(() => {
    isRunning = false
  })
  const killWithUs = () => signalGroup(pid, 'SIGKILL')
  process.once('exit', killWithUs)
  let isEnded = false
  const end = async () => {
    // The number may belong to another process.
    if (isEnded) return
    isEnded = true
    signalGroup(pid, 'SIGTERM')
    await exited
    // Processes that outlive their parent.
    signalGroup(pid, 'SIGKILL')
    process.off('exit', killWithUs)
  }
  try {
    await untilListening(port, () => isRunning)
  } catch (error) {
    await end()
    throw new Error(`${path} does not listen: ${readFileSync(logPath, 'utf8')}`, { cause: error })
  }
  return { pid, end }
}

/** A free port of 127.0.0.1, for programs that cannot say which one they were given. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port to listen on')
  return address.port
}

async function untilListening(port: number, isRunning: () => boolean): Promise<void> {
  const endMs = performance.now() + READY_WITHIN_MS
  while (isRunning() && performance.now() < endMs) {
    const socket = connect(port, '127.0.0.1')
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (isOpen) return
    await new Promise(resolve => setTimeout(resolve, ASKED_EVERY_MS))
  }
  throw new Error(isRunning() ? `nobody listens on port ${port}` : 'it has ended')
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal)
  } catch {
    // The group is empty.
  }
}

const missing = new Set<string>()
const READY_WITHIN_MS = 60_000
const ASKED_EVERY_MS = 50
