/**
 * The changes of a store, in the order in which they are asked for. LMDB gets one transaction at a time, with all the
 * changes that came while the one before was written. So no transaction is under way when one fails, and a process whose
 * disk has failed can end before LMDB is entered again: LMDB corrupts the heap when it goes on after some failures.
 */

import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { getSystemErrorName } from 'node:util'
import { ABORT, type RootDatabase } from 'lmdb'
import { messageOf, SignalError } from '../../errors.ts'
import { NotInLedgerError } from './change-ledger.ts'
import type { LmdbChange } from './lmdb-change.ts'
import { writing } from './lmdb-writes.ts'
import type { Change } from './store.ts'
import { causeOf, hasRoom, isAmbiguous, isOfLmdb, isOutOfSpace } from './write-failure.ts'

/** Ends the process, or returns where nothing else would use the store. */
export type OnBroken = (error: SignalError) => void

/** Runs a change's function before it counts, for tests; each run is in a change of its own, with an undo log. */
export type Rehearse = (begin: () => LmdbChange, write: (change: Change) => unknown) => void

interface QueuedChange {
  readonly write: (change: Change) => unknown
  /** Its instant, where the caller gave one. */
  readonly atMs: number | undefined
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
  /** Set when it begins to run. */
  change?: LmdbChange | undefined
  /** How `write` ended. */
  outcome?:
    | { readonly kind: 'written'; readonly result: unknown }
    | { readonly kind: 'thrown'; readonly error: unknown }
    | undefined
}

type Ledger = (changes: readonly LmdbChange[]) => Promise<void>

export interface CommitQueueDeps {
  readonly environment: RootDatabase
  readonly dataFolder: string
  /** `ahead` changes of the same transaction that write are to become durable before it. */
  readonly begin: (atMs: number | undefined, ahead: number, hasUndo: boolean) => LmdbChange
  /**
   * Where changes have a ledger: makes the changes durable that one transaction has tried, which leaves nothing by itself.
   * Rejects as `ChangeLedger.append` does; an error of another kind ends the queue.
   */
  readonly ledger: Ledger | undefined
  /** Called for each durable transaction, before `tell`, with its changes that have written. */
  readonly onCommitted: (written: Iterable<LmdbChange>) => void
  /** Tells the subscribers what a durable change said. */
  readonly tell: (change: LmdbChange) => void
  readonly onBroken: OnBroken
  readonly rehearse?: Rehearse | undefined
}

export class CommitQueue {
  readonly #deps: CommitQueueDeps
  #waiting: QueuedChange[] = []
  /** Called when the changes that were asked for before have ended. */
  #onSettled: (() => void)[] = []
  #isWriting = false
  #isRunning = false
  #broken: SignalError | undefined

  constructor(deps: CommitQueueDeps) {
    this.#deps = deps
  }

  /** See `Store.change`. */
  add<Result>(write: (change: Change) => Result, atMs: number | undefined): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      if (this.#broken !== undefined) return reject(this.#broken)
      this.#waiting.push({ write, atMs, resolve: resolve as QueuedChange['resolve'], reject })
      if (!this.#isWriting) void this.#writeAll()
    })
  }

  /** Resolves when the changes that were asked for so far have ended. */
  async settled(): Promise<void> {
    if (this.#isWriting) await new Promise<void>(resolve => this.#onSettled.push(resolve))
  }

  /** Whether LMDB must not be used any more. */
  get isBroken(): boolean {
    return this.#broken !== undefined
  }

  /** Whether the function of a change runs. */
  get isRunning(): boolean {
    return this.#isRunning
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true
    try {
      while (this.#waiting.length + this.#onSettled.length > 0) {
        const onSettled = this.#onSettled.splice(0)
        if (this.#waiting.length > 0) await this.#writeTogether()
        for (const resolve of onSettled) resolve()
      }
    } finally {
      this.#isWriting = false
    }
  }

  async #writeTogether(): Promise<void> {
    const { environment, ledger } = this.#deps
    let changes: readonly QueuedChange[] = []
    let fault: unknown
    const runAll = () => {
      changes = this.#waiting
      this.#waiting = []
      fault = this.#runTogether(changes)
    }
    try {
      if (ledger === undefined) await writing(environment.transaction(runAll))
      else {
        // Changes that are asked for in this turn of the event loop come along.
        await setImmediate()
        runAll()
      }
      // A transaction in which LMDB failed has failed, even where it says otherwise.
      if (fault !== undefined) throw fault
    } catch (error) {
      return this.#fail(changes, fault ?? (await causeOf(error)))
    }
    try {
      if (ledger !== undefined) await this.#append(changes, ledger)
    } catch (error) {
      if (error instanceof NotInLedgerError) return this.#refuse(changes, error)
      if (error instanceof SignalError && error.code === 'OUTCOME_UNKNOWN') return this.#end(changes, error)
      return this.#break(changes, error, '')
    }
    this.#deps.onCommitted(writtenIn(changes))
    for (const change of changes) this.#settle(change)
  }

  async #append(changes: readonly QueuedChange[], ledger: Ledger): Promise<void> {
    const written = [...writtenIn(changes)]
    if (written.length > 0) await ledger(written)
  }

  /** Runs the changes, up to the first that LMDB fails, and returns why it did. */
  #runTogether(changes: readonly QueuedChange[]): unknown {
    let fault: unknown
    let isSpoilt = false
    this.#inTransaction(() => {
      fault = this.#run(changes, false)
      isSpoilt =
        fault === undefined &&
        changes.some(({ change, outcome }) => outcome?.kind === 'thrown' && change?.mustBeTakenBack)
      return !isSpoilt && fault === undefined
    })
    if (!isSpoilt) return fault
    for (const queued of changes) {
      queued.change?.settle(false)
      queued.change = undefined
      queued.outcome = undefined
    }
    this.#inTransaction(() => {
      fault = this.#run(changes, true)
      return fault === undefined
    })
    return fault
  }

  /** Takes back what `run` has written unless it returns true, and in any case where changes have a ledger. */
  #inTransaction(run: () => boolean): void {
    const { environment, ledger } = this.#deps
    // LMDB can take back a child alone.
    if (ledger === undefined) void environment.childTransaction(() => (run() ? undefined : ABORT))
    else {
      environment.transactionSync(() => {
        run()
        return ABORT
      })
    }
  }

  #run(changes: readonly QueuedChange[], hasUndo: boolean): unknown {
    let ahead = 0
    this.#isRunning = true
    try {
      for (const queued of changes) {
        this.#deps.rehearse?.(() => this.#deps.begin(queued.atMs, ahead, true), queued.write)
        queued.change = this.#deps.begin(queued.atMs, ahead, hasUndo)
        try {
          queued.outcome = { kind: 'written', result: queued.change.run(queued.write) }
          if (queued.change.hasWritten) ahead += 1
        } catch (error) {
          if (isOfLmdb(error)) return error
          queued.outcome = { kind: 'thrown', error }
          // Without the undo log, later changes would run on writes that will be taken back.
          if (queued.change.mustBeTakenBack) return undefined
        }
      }
    } finally {
      this.#isRunning = false
    }
    return undefined
  }

  #settle({ change, outcome, resolve, reject }: QueuedChange): void {
    change?.settle(outcome?.kind === 'written')
    if (change === undefined || outcome === undefined) return reject(undefined)
    if (outcome.kind === 'thrown') return reject(outcome.error)
    this.#deps.tell(change)
    resolve(outcome.result)
  }

  #fail(changes: readonly QueuedChange[], cause: unknown): void {
    if (this.#mayGoOn(cause)) this.#refuse(changes, cause)
    else this.#break(changes, cause, DISK_FAILED)
  }

  #refuse(changes: readonly QueuedChange[], cause: unknown): void {
    this.#end(changes, new SignalError('STORE_UNAVAILABLE', 'the store could not write', { cause }))
  }

  #break(changes: readonly QueuedChange[], cause: unknown, why: string): void {
    const reason = `the store could not write (${nameOf(cause)}): the server ends${why}; the next start has all that was acknowledged`
    this.#broken = new SignalError('STORE_UNAVAILABLE', reason, { cause })
    this.#deps.onBroken(this.#broken)
    this.#end([...changes, ...this.#waiting.splice(0)], this.#broken)
  }

  #end(changes: readonly QueuedChange[], refusal: SignalError): void {
    for (const { change, outcome, reject } of changes) {
      change?.settle(false)
      // What a `write` threw is its reason, whatever became of the others.
      reject(outcome?.kind === 'thrown' ? outcome.error : refusal)
    }
  }

  /** Whether the disk was only full, and LMDB can still be used. */
  #mayGoOn(cause: unknown): boolean {
    if (!isOutOfSpace(cause) || (isAmbiguous(cause) && hasRoom(join(this.#deps.dataFolder, 'store'))))
      return false
    try {
      // When a meta page did not fit, every later use of LMDB fails, and a transaction that can't begin never ends.
      this.#deps.environment.resetReadTxn()
      this.#deps.environment.get('any')
      return true
    } catch {
      return false
    }
  }
}

function* writtenIn(changes: readonly QueuedChange[]): Iterable<LmdbChange> {
  for (const { change, outcome } of changes)
    if (change?.hasWritten && outcome?.kind === 'written') yield change
}

const DISK_FAILED = ', because the disk may have failed'

/** The system's short name for what went wrong; LMDB's own errors have none. */
function nameOf(error: unknown): string {
  return isOfLmdb(error) && error.code > 0 ? getSystemErrorName(-error.code) : messageOf(error)
}
