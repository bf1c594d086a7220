/**
 * The commits of a store, in the order in which they are asked for. LMDB gets one transaction at a time, with all that
 * has come while the one before was written. So none is under way when one fails, and a process whose disk has failed
 * can end before LMDB is entered again: LMDB corrupts the heap when it goes on after some failures.
 */

import { join } from 'node:path'
import { getSystemErrorName } from 'node:util'
import type { RootDatabase } from 'lmdb'
import { messageOf, SignalError } from '../errors.ts'
import { causeOf, hasRoom, isAmbiguous, isOfLmdb, isOutOfSpace } from './write-failure.ts'

/** Ends the process, or returns where nothing else would use the store. */
export type OnBroken = (error: SignalError) => void

interface Commit {
  readonly write: () => unknown
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
  /** To run in the transaction, when `write` has ended. */
  readonly endings: (() => void)[]
  /** To run once it is durable. */
  readonly effects: (() => void)[]
  /** To run once it is durable or has failed. */
  readonly settled: (() => void)[]
  /** How `write` ended. */
  outcome?: { readonly result: unknown } | { readonly error: unknown }
}

export class CommitQueue {
  readonly #environment: RootDatabase
  readonly #storeFolder: string
  readonly #onBroken: OnBroken
  #waiting: Commit[] = []
  #isWriting = false
  /** The one whose `write` runs. */
  #current: Commit | undefined
  #broken: SignalError | undefined

  constructor(environment: RootDatabase, dataFolder: string, onBroken: OnBroken = () => undefined) {
    this.#environment = environment
    this.#storeFolder = join(dataFolder, 'store')
    this.#onBroken = onBroken
  }

  /** See `Database.commit`. */
  add<Result>(write: () => Result): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      if (this.#broken !== undefined) return reject(this.#broken)
      const effects = { endings: [], effects: [], settled: [] }
      this.#waiting.push({ write, resolve: resolve as Commit['resolve'], reject, ...effects })
      if (!this.#isWriting) void this.#writeAll()
    })
  }

  /** Whether LMDB must not be used any more. */
  get isBroken(): boolean {
    return this.#broken !== undefined
  }

  /** In a transaction: it, as an object of its own. */
  get current(): Pick<Commit, 'endings' | 'effects' | 'settled'> {
    if (this.#current === undefined) throw new Error('no transaction runs')
    return this.#current
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true
    while (this.#waiting.length > 0) await this.#writeTogether()
    this.#isWriting = false
  }

  async #writeTogether(): Promise<void> {
    let commits: readonly Commit[] = []
    let fault: unknown
    try {
      await this.#environment.transaction(() => {
        commits = this.#waiting
        this.#waiting = []
        fault = this.#run(commits)
      })
      // A transaction in which LMDB failed has failed, even where it says otherwise.
      if (fault !== undefined) throw fault
    } catch (error) {
      return this.#fail(commits, fault ?? (await causeOf(error)))
    }
    for (const commit of commits) settle(commit)
  }

  /** In a transaction: runs what is to be written, up to the first that LMDB fails, and returns why it did. */
  #run(commits: readonly Commit[]): unknown {
    try {
      for (const commit of commits) {
        this.#current = commit
        try {
          commit.outcome = runToEnd(commit)
        } catch (error) {
          if (isOfLmdb(error)) return error
          commit.outcome = { error }
        }
      }
    } finally {
      this.#current = undefined
    }
    return undefined
  }

  #fail(commits: readonly Commit[], cause: unknown): void {
    let refusal = new SignalError('STORE_UNAVAILABLE', 'the store could not write', { cause })
    if (!this.#mayGoOn(cause)) {
      const reason = `the store could not write (${nameOf(cause)}): ${ADVICE}`
      refusal = this.#broken = new SignalError('STORE_UNAVAILABLE', reason, { cause })
      this.#onBroken(refusal)
      commits = [...commits, ...this.#waiting.splice(0)]
    }
    for (const commit of commits) {
      // What a `write` threw is its reason, whatever became of the others.
      const reason =
        commit.outcome !== undefined && 'error' in commit.outcome ? commit.outcome.error : refusal
      for (const tell of commit.settled) tell()
      commit.reject(reason)
    }
  }

  /** Whether the disk was only full, and LMDB can still be used. */
  #mayGoOn(cause: unknown): boolean {
    if (!isOutOfSpace(cause) || (isAmbiguous(cause) && hasRoom(this.#storeFolder))) return false
    try {
      // When a meta page did not fit, every later use of LMDB fails, and a transaction that can't begin never ends.
      this.#environment.resetReadTxn()
      this.#environment.get('any')
      return true
    } catch {
      return false
    }
  }
}

const ADVICE =
  'the server ends, because the disk may have failed; the next start has all that was acknowledged'

/** The system's short name for what went wrong; LMDB's own errors have none. */
function nameOf(error: unknown): string {
  return isOfLmdb(error) && error.code > 0 ? getSystemErrorName(-error.code) : messageOf(error)
}

/** Also the endings of a `write` that threw: what it has put stays. */
function runToEnd({ write, endings }: Commit): { readonly result: unknown } {
  try {
    return { result: write() }
  } finally {
    for (const end of endings) end()
  }
}

/** Of a commit that is durable. */
function settle({ outcome, effects, settled, resolve, reject }: Commit): void {
  for (const tell of settled) tell()
  if (outcome === undefined || 'error' in outcome) return reject(outcome?.error)
  try {
    for (const effect of effects) effect()
    resolve(outcome.result)
  } catch (error) {
    reject(error)
  }
}
