/** One worker thread of the VRF pool as the event loop sees it: batches of jobs go in, their results come back. */
import assert from 'node:assert'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'

import type { VrfKey } from '../../log/vrf-fast.ts'
import { packJobs, unpackResults, type VrfJob, type VrfResult } from './vrf-job.ts'

/** Starts the worker of `vrf-worker.ts`. Tests give their own to end threads at will. */
export type StartWorker = (key: VrfKey) => Worker

export const startVrfWorker: StartWorker = ({ secret, publicKey }) =>
  new Worker(PROGRAM, { name: 'vrf', workerData: { secret, publicKey } })

/** Beside this file, compiled or not. */
const PROGRAM = new URL(`./vrf-worker${extname(import.meta.filename)}`, import.meta.url)
const THREAD_BATCHES_MAX = 2

export interface ThreadEvents<Job extends VrfJob> {
  readonly onReady: () => void
  readonly onResults: (jobs: readonly Job[], results: readonly VrfResult[]) => void
  /** `jobs` are those it leaves unanswered. Called once, whether or not the thread was ever ready. */
  readonly onEnd: (jobs: readonly Job[], cause: unknown) => void
}

/**
 * One worker and the batches sent to it. At most two: one in work and one waiting, so that it never idles and most
 * jobs stay free for any thread. It answers in order, so a message belongs to the oldest batch.
 */
export class VrfThread<Job extends VrfJob> {
  isReady = false
  jobsInFlight = 0
  readonly #worker: Worker
  readonly #events: ThreadEvents<Job>
  readonly #batches: Job[][] = []
  #error: unknown = new Error('vrf thread ended')
  #isEnding = false

  constructor(worker: Worker, events: ThreadEvents<Job>) {
    this.#worker = worker
    this.#events = events
    // The first message says that it is ready. One listener for both: adding a second one would ref the worker again.
    worker.on('message', (message: Uint8Array) => {
      // It would be let go, and the process with it, before it has ended.
      if (this.#isEnding) return
      if (this.isReady) this.#onResults(message)
      else this.#onReady()
    })
    worker.on('error', error => {
      this.#error = error
    })
    worker.once('exit', () => events.onEnd(this.#batches.flat(), this.#error))
  }

  get canTake(): boolean {
    return this.isReady && this.#batches.length < THREAD_BATCHES_MAX
  }

  send(jobs: Job[]): void {
    // A thread holds the process up only while someone waits for its answer.
    if (this.#batches.length === 0) this.#worker.ref()
    this.#batches.push(jobs)
    this.jobsInFlight += jobs.length
    const words = packJobs(jobs)
    this.#worker.postMessage(words, [words.buffer])
  }

  async end(): Promise<void> {
    this.#isEnding = true
    await this.#worker.terminate()
  }

  #onReady(): void {
    this.isReady = true
    this.#worker.unref()
    this.#events.onReady()
  }

  #onResults(results: Uint8Array): void {
    const jobs = this.#batches.shift()
    assert(jobs !== undefined, 'vrf thread answered what it was not sent')
    this.jobsInFlight -= jobs.length
    if (this.#batches.length === 0) this.#worker.unref()
    this.#events.onResults(jobs, unpackResults(jobs, results))
  }
}
