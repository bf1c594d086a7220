/**
 * The processes that serve the HTTP port together. The writer, which is their parent, starts them, restarts those that
 * end, and stops them; `src/front.ts` is their program. Each is connected with the writer by a pair of sockets, and
 * what they say to one another over it is `src/fronts/link`.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Socket } from 'node:net'
import { extname } from 'node:path'
import type { Duplex } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { backOffMs } from '../../back-off.ts'
import type { Logger } from '../../operations/log.ts'
import type { World } from '../../runtime/clock.ts'

/** The writer's hold on a front. */
export interface FrontHandle {
  /** Whether the front serves. */
  readonly isReady: boolean
  /** Tells the front to end, once. */
  stop(): void
}

export interface FrontProcessesDeps {
  readonly count: number
  /** The command line of each front, behind its name. */
  readonly args?: readonly string[]
  /** Called with the writer's end of the connection, which closes when the front has ended. */
  readonly onStarted: (socket: Duplex, name: string) => FrontHandle
  /** Called when the process of a front has ended. */
  readonly onEnded?: () => void
  readonly world: Pick<World, 'monotonicMs' | 'every' | 'random'>
  readonly logger: Pick<Logger, 'info' | 'warn'>
  /** Path of what a front runs. */
  readonly program?: string
}

interface Front {
  readonly name: string
  readonly child: ChildProcess
  readonly handle: FrontHandle | undefined
  readonly startedAtMs: number
  /** How many processes of this name ended soon, one after the other, before this one. */
  readonly failures: number
}

export class FrontProcesses {
  readonly #deps: FrontProcessesDeps
  readonly #running = new Set<Front>()
  /** Take back the starts that are due. */
  readonly #cancelStarts = new Set<() => void>()
  #restarts = 0
  #isStopping = false

  constructor(deps: FrontProcessesDeps) {
    this.#deps = deps
    for (let number = 1; number <= deps.count; number++) this.#start(`front-${number}`, 0)
  }

  get figures(): { readonly ready: number; readonly restarts: number } {
    const ready = [...this.#running].filter(({ handle }) => handle?.isReady === true)
    return { ready: ready.length, restarts: this.#restarts }
  }

  /** Tells all to end and kills the rest at the deadline. Resolves when none is left. */
  async stop(deadlineMs: number): Promise<void> {
    this.#isStopping = true
    for (const cancel of this.#cancelStarts) cancel()
    const fronts = [...this.#running]
    const ended = fronts.map(({ child }) => once(child, 'exit'))
    for (const { handle } of fronts) handle?.stop()
    const cancel = this.#after(deadlineMs, () => {
      for (const front of this.#running) this.#kill(front, 'deadline')
    })
    await Promise.all(ended)
    cancel()
  }

  #start(name: string, failures: number): void {
    const { program = PROGRAM, args = [], onStarted, world, logger } = this.#deps
    const child = spawn(process.execPath, [...process.execArgv, program, name, ...args], {
      stdio: ['ignore', 'inherit', 'inherit', 'pipe'],
    })
    const { pid } = child
    const startedAtMs = world.monotonicMs()
    if (pid === undefined) {
      child.once('error', err => {
        logger.warn({ event: 'front-not-started', front: name, err })
        this.#startLater(name, failures + 1)
      })
      return
    }
    logger.info({ event: 'front-started', front: name, pid })
    const socket = child.stdio[FRONT_FD] as Socket
    const front: Front = { name, child, handle: onStarted(socket, name), startedAtMs, failures }
    this.#running.add(front)
    // A front that has lost the writer ends by itself, unless it hangs; then it would still be given connections.
    let cancelKill = () => {}
    socket.once('close', () => {
      if (this.#running.has(front)) cancelKill = this.#after(LOST_MS, () => this.#kill(front, 'hangs'))
    })
    child.on('error', err => logger.warn({ event: 'front-not-killed', front: name, pid, err }))
    child.once('exit', (code, signal) => {
      cancelKill()
      this.#onEnd(front, { code, signal })
    })
  }

  #onEnd(front: Front, how: { code: number | null; signal: NodeJS.Signals | null }): void {
    const { logger, world } = this.#deps
    const { name, child, startedAtMs } = front
    this.#running.delete(front)
    this.#deps.onEnded?.()
    const line = { event: 'front-ended', front: name, pid: child.pid, ...how }
    if (this.#isStopping) return logger.info(line)
    logger.warn(line)
    const wasSteady = world.monotonicMs() - startedAtMs >= STEADY_MS
    this.#startLater(name, wasSteady ? 1 : front.failures + 1)
  }

  #startLater(name: string, failures: number): void {
    if (this.#isStopping) return
    const { world } = this.#deps
    const pauseMs = backOffMs(BACK_OFF, failures, world.random())
    const cancel = this.#after(pauseMs, () => {
      this.#cancelStarts.delete(cancel)
      this.#restarts++
      this.#start(name, failures)
    })
    this.#cancelStarts.add(cancel)
  }

  #kill({ name, child }: Front, reason: 'deadline' | 'hangs'): void {
    this.#deps.logger.warn({ event: 'front-killed', front: name, pid: child.pid, reason })
    child.kill('SIGKILL')
  }

  #after(ms: number, run: () => void): () => void {
    const cancel = this.#deps.world.every(ms, () => {
      cancel()
      run()
    })
    return cancel
  }
}

/**
 * In a front: its connection with the writer. It ends when that does, and leaves to the writer what signals of the
 * terminal or of a supervisor, which reach both, should do.
 */
export function connectToWriter(onLost = () => {}): Socket {
  for (const signal of WRITERS_SIGNALS) process.on(signal, () => undefined)
  const socket = new Socket({ fd: FRONT_FD })
  // It closes next.
  socket.on('error', () => undefined)
  socket.once('close', () => {
    onLost()
    process.exit(1)
  })
  return socket
}

const PROGRAM = fileURLToPath(new URL(`../../front${extname(import.meta.filename)}`, import.meta.url))
/** Where a front finds the connection. */
const FRONT_FD = 3
const WRITERS_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const BACK_OFF = { firstMs: 250, maxMs: 10_000 }
/** After so long without an end, the next one counts as the first. */
const STEADY_MS = 60_000
const LOST_MS = 1_000
