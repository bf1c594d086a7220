/**
 * Grows the map in a process of its own, which reads the store beside the writer. It can be killed at any moment: nothing is written
 * there, and the step is made again. It is started by the first step that has entries, and ends after a while without one, so
 * that its memory goes back.
 */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SignalError } from '../../errors.ts'
import type { GrowRequest, GrowthEnd } from './index-growth.ts'
import type { MapRows } from './index-store.ts'

/** To the process: a step, or that its next rows may come. */
export type MessageToIndexer =
  | { readonly kind: 'grow'; readonly request: GrowRequest }
  | { readonly kind: 'next' }

export type MessageOfIndexer =
  | { readonly kind: 'rows'; readonly rows: MapRows }
  | { readonly kind: 'end'; readonly end: GrowthEnd }
  | { readonly kind: 'failed'; readonly reason: string }

export interface IndexProcessTimes {
  /** Without a step; then the process ends. */
  readonly idleMs: number
  /** For each message of a step; then the process is killed. */
  readonly answerMs: number
}

interface Step {
  readonly child: ChildProcess
  readonly onRows: (rows: MapRows) => Promise<void> | undefined
  readonly resolve: (end: GrowthEnd) => void
  readonly reject: (error: unknown) => void
}

export class IndexProcess {
  readonly #dataFolder: string
  readonly #onKilled: () => void
  readonly #times: IndexProcessTimes
  readonly #program: string
  /** The one that takes the next step. */
  #child: ChildProcess | undefined
  /** With those that were killed and have not ended. */
  readonly #living = new Set<ChildProcess>()
  #step: Step | undefined
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  /** `onKilled` is called when the process did not end by itself: LMDB then still keeps what it read last. */
  constructor(
    dataFolder: string,
    onKilled: () => void,
    times: Partial<IndexProcessTimes> = {},
    program = PROGRAM,
  ) {
    this.#dataFolder = dataFolder
    this.#onKilled = onKilled
    this.#times = { ...TIMES, ...times }
    this.#program = program
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** See `Grow`. One step is under way at a time. */
  readonly grow = (request: GrowRequest, onRows: Step['onRows']): Promise<GrowthEnd> => {
    if (this.#isClosed) return Promise.reject(ended('the server stops'))
    return new Promise((resolve, reject) => {
      const child = this.#child ?? this.#start()
      this.#step = { child, onRows, resolve, reject }
      this.#send(child, { kind: 'grow', request })
    })
  }

  /** Resolves when there is no process any more, and `onKilled` was called for those there were: then the store may be closed. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    const ended = [...this.#living].map(child => once(child, 'exit'))
    for (const child of this.#living) child.kill('SIGKILL')
    await Promise.all(ended)
    if (ended.length > 0) this.#onKilled()
  }

  #start(): ChildProcess {
    const child = fork(this.#program, [this.#dataFolder], {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      serialization: 'advanced',
    })
    this.#child = child
    if (child.pid !== undefined) this.#living.add(child)
    child.on('message', (message: MessageOfIndexer) => void this.#onMessage(child, message))
    child.once('error', error => this.#onEnd(child, ended(error.message)))
    child.once('exit', (code, signal) => {
      this.#living.delete(child)
      this.#onEnd(child, ended(`it ended (${signal ?? code})`))
      // After `close` the store may be closed.
      if (code !== 0 && !this.#isClosed) this.#onKilled()
    })
    return child
  }

  /** A failure to send needs no care: the process has ended then, which is heard of. */
  #send(child: ChildProcess, message: MessageToIndexer): void {
    if (child.connected) child.send(message, () => undefined)
    this.#after(this.#times.answerMs, () => child.kill('SIGKILL'))
  }

  async #onMessage(child: ChildProcess, message: MessageOfIndexer): Promise<void> {
    const step = this.#step
    if (step?.child !== child) return
    if (message.kind === 'rows') {
      // The rows may wait for the disk for as long as they like.
      clearTimeout(this.#timer)
      try {
        await step.onRows(message.rows)
      } catch (error) {
        // Its other rows are not needed, and the next step has another process.
        child.kill('SIGKILL')
        this.#child = undefined
        return this.#settle(step, ({ reject }) => reject(error))
      }
      return this.#send(child, { kind: 'next' })
    }
    this.#after(this.#times.idleMs, () => {
      // A step that comes before it has ended has another process.
      if (this.#child === child) this.#child = undefined
      child.disconnect()
    })
    if (message.kind === 'end') this.#settle(step, ({ resolve }) => resolve(message.end))
    else this.#settle(step, ({ reject }) => reject(ended(message.reason)))
  }

  #onEnd(child: ChildProcess, reason: SignalError): void {
    if (this.#child === child) {
      this.#child = undefined
      clearTimeout(this.#timer)
    }
    if (this.#step?.child === child) this.#settle(this.#step, ({ reject }) => reject(reason))
  }

  #settle(step: Step, how: (step: Step) => void): void {
    if (this.#step === step) this.#step = undefined
    how(step)
  }

  #after(ms: number, run: () => void): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(run, ms)
    this.#timer.unref()
  }
}

function ended(reason: string): SignalError {
  return new SignalError('STORE_UNAVAILABLE', `the process that builds the index gave no map: ${reason}`)
}

const TIMES: IndexProcessTimes = { idleMs: 60_000, answerMs: 120_000 }
const PROGRAM = fileURLToPath(new URL(`./index-program${extname(import.meta.filename)}`, import.meta.url))
