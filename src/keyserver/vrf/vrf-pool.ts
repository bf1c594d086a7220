/**
 * The VRF off the event loop: worker threads that run `vrf-fast.ts`, in front of them a bounded queue and a cache of
 * what they computed. A proof takes 0.2 ms, so this is the whole CPU budget of Register and of a first lookup.
 *
 * Jobs asked for in one turn of the event loop leave together, at most `BATCH_JOBS_MAX` in a message, dealt out evenly.
 * Threads that end are replaced; their jobs are tried once more.
 */
import assert from 'node:assert'

import { messageOf, SignalError } from '../../errors.ts'
import { vrfPublicKey } from '../../log/vrf.ts'
import type { ProvenHash } from '../../log/vrf-suite.ts'
import { VrfCache } from './vrf-cache.ts'
import type { VrfJob, VrfResult } from './vrf-job.ts'
import { type StartWorker, startVrfWorker, VrfThread } from './vrf-thread.ts'

export interface VrfPoolOptions {
  readonly secret: Uint8Array
  readonly threads: number
  /** Results kept in memory, about 170 bytes each; 0 keeps none. */
  readonly cacheEntriesMax: number
  /** Jobs waiting for a thread; one more is refused. */
  readonly queueMax: number
  readonly startWorker?: StartWorker
}

export interface VrfPoolFigures {
  readonly threadsReady: number
  readonly threadsReplaced: number
  /** Jobs waiting for a thread, and jobs a thread has. */
  readonly jobsQueued: number
  readonly jobsInFlight: number
  /** Requests answered by a job that was already under way for another. */
  readonly jobsJoined: number
  readonly hashesComputed: number
  readonly proofsComputed: number
  readonly cacheEntries: number
  readonly cacheHits: number
  readonly cacheMisses: number
}

/** As many proofs take 6 ms, the longest a job waits for its neighbours; a message costs the event loop 70 us each way. */
const BATCH_JOBS_MAX = 32
/** Threads in a row that ended before they were ready: then starting more will not help. */
const START_FAILURES_MAX = 3

export class VrfPool {
  /** The VRF public key, 32 bytes. */
  readonly publicKey: Uint8Array
  /** Resolves when all threads are ready. Rejects with `INTERNAL` when one can't be started; the pool is closed then. */
  readonly ready: Promise<void>
  readonly #secret: Uint8Array
  readonly #startWorker: StartWorker
  readonly #queueMax: number
  readonly #cache: VrfCache
  readonly #threads = new Set<VrfThread<PoolJob>>()
  /** Jobs that wait for a thread, oldest first. */
  readonly #queue: PoolJob[] = []
  /** The job under way for an input, to be joined. */
  readonly #jobs = new Map<string, PoolJob>()
  #isDispatchDue = false
  #isClosed = false
  #startFailures = 0
  #threadsReplaced = 0
  #jobsJoined = 0
  #hashesComputed = 0
  #proofsComputed = 0
  #cacheHits = 0
  #cacheMisses = 0

  /** A pool with all threads ready; as the constructor, and `ready`. */
  static async start(options: VrfPoolOptions): Promise<VrfPool> {
    const pool = new VrfPool(options)
    await pool.ready
    return pool
  }

  /**
   * Starts the threads; requests wait for them. Throws `KEY_INVALID` for a secret that is not a
   * canonical scalar in [1, q-1].
   */
  constructor(options: VrfPoolOptions) {
    assert(Number.isSafeInteger(options.threads) && options.threads > 0, 'vrf pool without threads')
    assert(Number.isSafeInteger(options.queueMax) && options.queueMax > 0, 'vrf pool without a queue')
    this.publicKey = vrfPublicKey(options.secret)
    this.#secret = Uint8Array.from(options.secret)
    this.#startWorker = options.startWorker ?? startVrfWorker
    this.#queueMax = options.queueMax
    this.#cache = new VrfCache(options.cacheEntriesMax)
    this.ready = this.#startThreads(options.threads)
    // Callers that care about a failure await it, perhaps later.
    this.ready.catch(() => undefined)
  }

  /**
   * The VRF hash of a user and device (uint64 both), 64 bytes, shared by callers: read only. Rejects with
   * `OVERLOADED` when the queue is full, `LOG_UNAVAILABLE` when the pool is closed, `INTERNAL` when the threads fail.
   */
  async hash(userId: bigint, deviceId: bigint): Promise<Uint8Array> {
    const vrfHash = this.#cache.hash(userId, deviceId)
    if (vrfHash !== undefined) {
      this.#cacheHits++
      return vrfHash
    }
    const result = await this.#compute(userId, deviceId, false)
    return result.vrfHash
  }

  /** The VRF hash and its proof, 80 bytes; otherwise as `hash`. */
  async prove(userId: bigint, deviceId: bigint): Promise<ProvenHash> {
    const cached = this.cached(userId, deviceId)
    if (cached !== undefined) return cached
    const result = await this.#compute(userId, deviceId, true)
    assert(result.vrfProof !== undefined, 'vrf thread left out a proof')
    return result
  }

  /** The answer `prove` would give from memory, or undefined. */
  cached(userId: bigint, deviceId: bigint): ProvenHash | undefined {
    const cached = this.#cache.proof(userId, deviceId)
    if (cached !== undefined) this.#cacheHits++
    return cached
  }

  get figures(): VrfPoolFigures {
    let threadsReady = 0
    let jobsInFlight = 0
    for (const thread of this.#threads) {
      if (thread.isReady) threadsReady++
      jobsInFlight += thread.jobsInFlight
    }
    return {
      threadsReady,
      threadsReplaced: this.#threadsReplaced,
      jobsQueued: this.#queue.length,
      jobsInFlight,
      jobsJoined: this.#jobsJoined,
      hashesComputed: this.#hashesComputed,
      proofsComputed: this.#proofsComputed,
      cacheEntries: this.#cache.size,
      cacheHits: this.#cacheHits,
      cacheMisses: this.#cacheMisses,
    }
  }

  /** Rejects every unanswered job with `LOG_UNAVAILABLE` and resolves when the threads have ended. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const job of this.#queue.splice(0)) this.#fail(job, closedError())
    await Promise.all(Array.from(this.#threads, thread => thread.end()))
  }

  #compute(userId: bigint, deviceId: bigint, wantsProof: boolean): Promise<VrfResult> {
    if (this.#isClosed) throw closedError()
    if (this.#threads.size === 0) throw new SignalError('INTERNAL', 'no vrf thread is left')
    this.#cacheMisses++
    const key = `${userId}_${deviceId}`
    const underWay = this.#jobs.get(key)
    if (underWay?.join(wantsProof)) {
      this.#jobsJoined++
      return underWay.result
    }
    if (this.#queue.length >= this.#queueMax) {
      throw new SignalError('OVERLOADED', `vrf queue of ${this.#queueMax} jobs is full`)
    }
    const job = new PoolJob(key, userId, deviceId, wantsProof)
    this.#jobs.set(key, job)
    this.#queue.push(job)
    this.#dispatchAfterTurn()
    return job.result
  }

  #dispatchAfterTurn(): void {
    if (this.#isDispatchDue) return
    this.#isDispatchDue = true
    setImmediate(() => {
      this.#isDispatchDue = false
      this.#dispatch()
    })
  }

  /** Deals the queue out in equal shares, to the thread with the fewest jobs first. */
  #dispatch(): void {
    const share = Math.ceil(this.#queue.length / this.#threads.size)
    while (this.#queue.length > 0) {
      const thread = this.#leastBusyThread()
      if (thread === undefined) return
      const batch = this.#queue.splice(0, Math.min(share, BATCH_JOBS_MAX))
      for (const job of batch) job.isSent = true
      thread.send(batch)
    }
  }

  #leastBusyThread(): VrfThread<PoolJob> | undefined {
    let least: VrfThread<PoolJob> | undefined
    for (const thread of this.#threads) {
      if (thread.canTake && (least === undefined || thread.jobsInFlight < least.jobsInFlight)) least = thread
    }
    return least
  }

  async #startThreads(threads: number): Promise<void> {
    try {
      await Promise.all(Array.from({ length: threads }, () => this.#startThread()))
    } catch (cause) {
      await this.close()
      const reason = messageOf(cause)
      throw new SignalError('INTERNAL', `vrf thread did not start: ${reason}`, { cause })
    }
  }

  #startThread(): Promise<void> {
    return new Promise((resolve, reject) => {
      const thread: VrfThread<PoolJob> = new VrfThread(
        this.#startWorker({ secret: this.#secret, publicKey: this.publicKey }),
        {
          onReady: () => {
            this.#startFailures = 0
            this.#dispatch()
            resolve()
          },
          onResults: (jobs, results) => this.#onResults(jobs, results),
          onEnd: (jobs, cause) => {
            this.#threads.delete(thread)
            if (thread.isReady) this.#onThreadLost(jobs, cause)
            reject(cause)
          },
        },
      )
      this.#threads.add(thread)
    })
  }

  #onResults(jobs: readonly PoolJob[], results: readonly VrfResult[]): void {
    for (const [index, job] of jobs.entries()) {
      const result = results[index]!
      if (job.wantsProof) this.#proofsComputed++
      else this.#hashesComputed++
      this.#cache.put(job.userId, job.deviceId, result)
      this.#forget(job)
      job.resolve(result)
    }
    this.#dispatch()
  }

  #onThreadLost(jobs: readonly PoolJob[], cause: unknown): void {
    const retries: PoolJob[] = []
    for (const job of jobs) {
      if (this.#isClosed) this.#fail(job, closedError())
      else if (job.retry()) retries.push(job)
      else this.#fail(job, new SignalError('INTERNAL', 'vrf thread ended twice on one job', { cause }))
    }
    if (this.#isClosed) return
    this.#queue.unshift(...retries)
    this.#replaceThread()
    this.#dispatch()
  }

  #replaceThread(): void {
    this.#threadsReplaced++
    this.#startThread().catch(cause => this.#onStartFailed(cause))
  }

  /** Tries again a few times, then goes on with the threads there are; the figures show how many. */
  #onStartFailed(cause: unknown): void {
    if (this.#isClosed) return
    this.#startFailures++
    if (this.#startFailures < START_FAILURES_MAX) {
      this.#replaceThread()
    } else if (this.#threads.size === 0) {
      const error = new SignalError('INTERNAL', 'no vrf thread is left', { cause })
      for (const job of this.#queue.splice(0)) this.#fail(job, error)
    }
  }

  #fail(job: PoolJob, error: SignalError): void {
    this.#forget(job)
    job.reject(error)
  }

  /** The input may have a newer job: a hash under way does not answer a request for a proof. */
  #forget(job: PoolJob): void {
    if (this.#jobs.get(job.key) === job) this.#jobs.delete(job.key)
  }
}

class PoolJob implements VrfJob {
  readonly key: string
  readonly userId: bigint
  readonly deviceId: bigint
  readonly result: Promise<VrfResult>
  resolve!: (result: VrfResult) => void
  reject!: (error: SignalError) => void
  wantsProof: boolean
  isSent = false
  #isRetried = false

  constructor(key: string, userId: bigint, deviceId: bigint, wantsProof: boolean) {
    this.key = key
    this.userId = userId
    this.deviceId = deviceId
    this.wantsProof = wantsProof
    this.result = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
  }

  /** Whether this job will answer one more request; while it waits, a hash can still become a proof. */
  join(wantsProof: boolean): boolean {
    if (wantsProof && !this.isSent) this.wantsProof = true
    return this.wantsProof || !wantsProof
  }

  /** Whether the job may be sent a second time; there is no third. */
  retry(): boolean {
    if (this.#isRetried) return false
    this.#isRetried = true
    this.isSent = false
    return true
  }
}

function closedError(): SignalError {
  return new SignalError('LOG_UNAVAILABLE', 'vrf pool is closed')
}
