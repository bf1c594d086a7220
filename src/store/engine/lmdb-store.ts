/**
 * One LMDB environment in the data directory, with named tables. Nothing outside this folder uses LMDB.
 *
 * Durability: with `overlappingSync: false` a commit's promise resolves after its fdatasync, so its effects may leave
 * as soon as it resolves. Writes go through `change` only, in the order of the calls.
 */

import { mkdirSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { open, type RootDatabase } from 'lmdb'
import { assert, messageOf, SignalError } from '../../errors.ts'
import {
  type ChangeLedger,
  type LedgerChange,
  NotInLedgerError,
  type PutRow,
  type WrittenRow,
} from './change-ledger.ts'
import { formatChangedRows } from './changed-rows.ts'
import { CommitQueue, type OnBroken, type Rehearse } from './commit-queue.ts'
import { closeToOthers } from './file-modes.ts'
import { lockFolder } from './folder-lock.ts'
import { COPY_STATE, type CopyState, LedgerCopy, STATE_KEY } from './ledger-copy.ts'
import { LmdbChange, LmdbView, type OpenTableOf, type StoreFigures } from './lmdb-change.ts'
import { OpenTables } from './open-tables.ts'
import { Snapshot, type StoredTable } from './snapshot.ts'
import type {
  Change,
  FollowedCommit,
  Happening,
  HappeningOf,
  RowWatcher,
  SharedStore,
  View,
  WatchedRow,
} from './store.ts'
import { assertReadable, assertWhole, assertWritable } from './store-files.ts'
import { Subscribers } from './subscribers.ts'
import type { Table } from './table.ts'
import {
  assertSynced,
  markUnsynced,
  mayHaveLostWrites,
  readBootId,
  syncMarked,
  syncStore,
} from './unsynced-mark.ts'

interface Writer {
  readonly lock: RootDatabase
  readonly isClosed: boolean
}

export interface StoreOptions {
  /** Milliseconds since 1970: the instant of changes. */
  readonly nowMs?: () => number
  /**
   * Called with the first write that failed for anything but a full disk, before LMDB is entered again. Where it returns,
   * all later changes are refused.
   */
  readonly onBroken?: OnBroken
  /** Called with the error of a subscriber; the rest still hear. */
  readonly onFault?: (error: unknown) => void
  /** Looks at the store's file before anything is read from it; what it throws is thrown by `open`. */
  readonly inspect?: (path: string) => void
  /** Whether its changes have a ledger, and the store is a copy. */
  readonly hasLedger?: boolean
  /**
   * Called where the machine has stopped since `writeUnsynced`: the store may lack any part, and was removed. Without it
   * `open` throws.
   */
  readonly onLost?: () => void
  /** Hears that `open` waits for a process of another container to leave the folder. */
  readonly onWait?: (sentence: string) => void
  /** For tests. */
  readonly rehearse?: Rehearse
}

export class LmdbStore implements SharedStore {
  readonly #environment: RootDatabase
  readonly #changes: CommitQueue
  readonly #folder: string
  readonly #lock: RootDatabase | undefined
  readonly #onFault: (error: unknown) => void
  /** Whether nobody else on the machine can look into its folder; not looked at where it is opened for reading only. */
  readonly isClosedToOthers: boolean
  readonly #tables: OpenTables
  readonly #subscribers = new Subscribers()
  readonly #followers = new Set<(change: FollowedCommit) => void>()
  readonly #figures: StoreFigures = { commits: 0, puts: 0, removes: 0, reads: 0 }
  readonly #view: View
  readonly #copies: LedgerCopy
  /** Undefined until this process may change what all nodes share. */
  #ledger: ChangeLedger | undefined
  #lastChange = 0

  private constructor(environment: RootDatabase, folder: string, options: StoreOptions, writer?: Writer) {
    const { nowMs = Date.now, onBroken = () => undefined, onFault = rethrow } = options
    const { hasLedger = false, rehearse } = options
    this.#environment = environment
    this.#folder = folder
    this.#lock = writer?.lock
    this.#onFault = onFault
    this.isClosedToOthers = writer?.isClosed ?? true
    this.#tables = new OpenTables(environment)
    const openTable: OpenTableOf = table => this.#tables.open(table)
    this.#view = new LmdbView(openTable, this.#figures)
    if (writer !== undefined) this.openTables()
    this.#copies = new LedgerCopy(environment, this.#tables)
    if (hasLedger) this.#lastChange = this.copyState?.number ?? 0
    this.#changes = new CommitQueue({
      environment,
      dataFolder: folder,
      begin: (atMs = nowMs(), ahead, hasUndo) => {
        const number = this.#lastChange + ahead + 1
        return new LmdbChange(openTable, this.#figures, { nowMs: atMs, number, hasUndo, hasLedger })
      },
      ledger: hasLedger ? changes => this.#writeToLedger(changes) : undefined,
      onCommitted: written => {
        this.#figures.commits += 1
        if (this.#followers.size > 0) this.#tellFollowersOf([...written])
      },
      tell: change => this.#tell(change),
      onBroken,
      rehearse,
    })
  }

  /**
   * Opens the store below `folder`, creating it when it is not there. Throws `STORE_UNAVAILABLE` when another process
   * has it open for writing, when its making was cut short, or when the machine stopped while it was written without syncs,
   * and `CHECKPOINT_INVALID` when its file is no store.
   */
  static open(folder: string, options: StoreOptions = {}): LmdbStore {
    const firstMade = mkdirSync(folder, { recursive: true, mode: 0o700 })
    assertWritable(folder)
    if (options.onLost === undefined) assertSynced(folder)
    if (!mayHaveLostWrites(folder))
      assertWhole(join(folder, 'store', 'data.mdb'), 'CHECKPOINT_INVALID', MEND_STORE)
    const lock = lockFolder(folder, options.onWait)
    // Only now: no other process can make it anew.
    if (options.onLost !== undefined && mayHaveLostWrites(folder)) {
      rmSync(join(folder, 'store'), { recursive: true })
      options.onLost()
    }
    mkdirSync(join(folder, 'store'), { recursive: true, mode: 0o700 })
    const environment = open({
      path: join(folder, 'store'),
      overlappingSync: false,
      maxDbs: TABLES_MAX,
      encoding: 'binary',
    })
    environment.readerCheck()
    syncStore(resolve(folder), firstMade)
    const isClosed = closeToOthers(folder)
    options.inspect?.(join(folder, 'store', 'data.mdb'))
    return new LmdbStore(environment, folder, options, { lock, isClosed })
  }

  /**
   * Opens the store below `folder` for reading only, also beside the process that writes to it: it takes neither its
   * lock nor its turn to write. Throws `STORE_UNAVAILABLE` when there is none, or the machine stopped while it was written
   * without syncs, and `CHECKPOINT_INVALID` when its file is no store. One that begins as a store and is damaged can end the process.
   */
  static openReadOnly(folder: string): LmdbStore {
    const path = join(folder, 'store')
    assertReadable(folder)
    assertSynced(folder)
    assertWhole(join(path, 'data.mdb'), 'CHECKPOINT_INVALID', MEND_STORE)
    const options = {
      readOnly: true,
      overlappingSync: false,
      maxDbs: TABLES_MAX,
      encoding: 'binary',
    } as const
    const environment = open({ path, ...options })
    return new LmdbStore(environment, folder, {})
  }

  /** Opens every table described so far, if it exists. */
  openTables(): void {
    this.#tables.openAll()
  }

  /** Later views see all that another process has made durable. */
  refresh(): void {
    this.#environment.resetReadTxn()
  }

  /**
   * For when another process that reads the store was killed: what its last view saw is used again, and the file does not
   * grow for its sake.
   */
  dropDeadReaders(): void {
    this.#environment.readerCheck()
  }

  /** The names of the tables that there are. One that is not there can't be opened for reading only. */
  tableNames(): string[] {
    return [...this.#environment.getKeys()].map(String)
  }

  /** How many rows the table has now. */
  rowCount(table: StoredTable): number {
    return (table.getStats() as { readonly entryCount: number }).entryCount
  }

  /** One unchanging view of all open tables. */
  snapshot(): Snapshot {
    return new Snapshot(this.#environment.useReadTransaction())
  }

  /**
   * Writes a copy of one moment's store into the empty folder `to`, without the pages that are free, and resolves when
   * it is written, though not yet durable. Writers go on. Rejects with `STORE_UNAVAILABLE` when it can't be.
   */
  async copyTo(to: string): Promise<void> {
    try {
      await this.#environment.backup(to, true)
    } catch (cause) {
      // LMDB says neither what it wrote nor where.
      const reason = `the copy could not be written into ${to}: ${messageOf(cause)}`
      throw new SignalError('STORE_UNAVAILABLE', reason, { cause })
    }
  }

  /** Returns a function that ends it. */
  watch({ name }: Pick<Table<never>, 'name'>, watcher: RowWatcher): () => void {
    const watchers = this.#tables.watchersOf(name)
    watchers.push(watcher)
    return () => void watchers.splice(watchers.indexOf(watcher), 1)
  }

  /** The rows of a table as they are stored, whatever they are, for what checks or counts them. */
  storedRows(name: string, keys: 'bytes' | 'text' = 'bytes'): StoredTable {
    return this.#tables.raw(name, keys)
  }

  change<Result>(write: (change: Change) => Result, atMs?: number): Promise<Result> {
    return this.#changes.add(write, atMs)
  }

  view<Result>(read: (view: View) => Result): Result {
    assert(!this.#changes.isRunning, 'a change reads by itself')
    return read(this.#view)
  }

  /**
   * Lets changes be made, each first in `ledger`; without one they are refused. This store must have the ledger's last
   * change.
   */
  useLedger(ledger: ChangeLedger | undefined): void {
    this.#ledger = ledger
  }

  /** Whether any table has a row. */
  get hasRows(): boolean {
    return this.tableNames().some(name => this.rowCount(this.storedRows(name)) > 0)
  }

  /**
   * Writes the copy without syncs: after a crash of the machine, the ledger has the missing changes. A killed
   * process loses nothing. Does nothing on a system without a boot id, since a crash would go unnoticed.
   */
  writeUnsynced(): void {
    const bootId = readBootId()
    if (bootId === undefined) return
    markUnsynced(this.#folder, bootId)
    this.#copies.isUnsynced = true
  }

  /** Ends `writeUnsynced`: a machine that stops later loses nothing of the copy. */
  writeSynced(): void {
    if (this.#copies.isUnsynced) syncMarked(this.#folder)
    this.#copies.isUnsynced = false
  }

  /** Undefined where it is no copy of a ledger. */
  get copyState(): CopyState | undefined {
    return this.#view.get(COPY_STATE, STATE_KEY)
  }

  /**
   * All rows of one moment, but for how far a copy has come: by table, then by key, as their octets compare. Copies.
   * Tables are those that exist.
   */
  *rowsInOrder(): Iterable<PutRow> {
    const names = this.tableNames().filter(name => name !== COPY_STATE.name)
    const tables = names
      .map(name => ({ name, rows: this.storedRows(name) }))
      .toSorted((one, other) => Buffer.compare(Buffer.from(one.name), Buffer.from(other.name)))
    const moment = this.snapshot()
    try {
      for (const { name, rows } of tables) {
        for (const { key, value } of moment.rows(rows)) yield { table: name, key: key as Uint8Array, value }
      }
    } finally {
      moment.end()
    }
  }

  /** Puts rows of a snapshot of the ledger into an empty store; the copy can't be used until `filled` resolves. */
  fill(rows: readonly WrittenRow[]): Promise<void> {
    return this.#copy(rows, { number: 0, epoch: 0, isFilling: true })
  }

  /** All rows of the snapshot, which is of this change, were put. */
  async filled(number: number, epoch: number): Promise<void> {
    await this.#copy([], { number, epoch, isFilling: false })
    this.#lastChange = number
  }

  /** As `filled`, but no node may use it: only the move to one machine by this lease goes on from it. */
  moved(number: number, epoch: number): Promise<void> {
    return this.#copy([], { number, epoch, isFilling: true })
  }

  /** Makes it the store of one machine, no longer a copy. */
  async detach(): Promise<void> {
    await this.#copies.forget()
  }

  /** Makes the next changes of the ledger, which another node has made, durable here. Followers hear of all their rows. */
  async apply(changes: readonly LedgerChange[]): Promise<void> {
    const last = changes.at(-1)
    if (last === undefined) return
    assert(changes[0]!.number === this.#lastChange + 1, 'a copy gets each change, in order')
    await this.#copyChanges(changes)
    for (const { number, rows } of changes) {
      this.#lastChange = number
      for (const { table, key } of rows) {
        for (const watcher of this.#tables.watchersOf(table)) watcher.onReplaced(key)
      }
      if (this.#followers.size > 0) this.#tellFollowers(number, number, rows)
    }
  }

  async #writeToLedger(changes: readonly LmdbChange[]): Promise<void> {
    const ledger = this.#ledger
    if (ledger === undefined) throw new NotInLedgerError('another node is the writer')
    const recorded = changes.map(({ number, ledgerRows }) => ({
      number,
      epoch: ledger.epoch,
      rows: ledgerRows,
    }))
    await ledger.append(recorded)
    await this.#copyChanges(recorded)
  }

  #copyChanges(changes: readonly LedgerChange[]): Promise<void> {
    const { number, epoch } = changes.at(-1)!
    return this.#copy(
      changes.flatMap(({ rows }) => rows),
      { number, epoch, isFilling: false },
    )
  }

  #copy(rows: readonly WrittenRow[], state: CopyState): Promise<void> {
    return this.#copies.write(rows, state)
  }

  /** Returns a function that ends it. */
  subscribe<Kind extends Happening['kind']>(
    kind: Kind,
    listener: (happening: HappeningOf<Kind>) => void,
  ): () => void {
    return this.#subscribers.add(kind, listener)
  }

  /**
   * Calls `listener` once for the changes that become durable together, in order, before their subscribers hear and their
   * promises resolve. Returns a function that ends that. Its rows are those of tables watched here, so a follower watches no
   * others.
   */
  follow(listener: (change: FollowedCommit) => void): () => void {
    this.#followers.add(listener)
    return () => void this.#followers.delete(listener)
  }

  /** The number of the last durable change; 0 where there was none. */
  get lastChange(): number {
    return this.#lastChange
  }

  get figures(): Readonly<StoreFigures> {
    return this.#figures
  }

  #tell(change: LmdbChange): void {
    if (change.hasWritten) this.#lastChange = change.number
    this.#subscribers.tell(change.happenings, this.#onFault)
  }

  #tellFollowersOf(changes: readonly LmdbChange[]): void {
    const [first, last] = [changes[0], changes.at(-1)]
    if (first === undefined || last === undefined) return
    this.#lastChange = last.number
    this.#tellFollowers(
      first.number,
      last.number,
      changes.flatMap(change => change.watchedRows()),
    )
  }

  #tellFollowers(first: number, number: number, rows: readonly WatchedRow[]): void {
    const followed: FollowedCommit = { first, number, rows: formatChangedRows(rows) }
    for (const listener of this.#followers) {
      try {
        listener(followed)
      } catch (error) {
        this.#onFault(error)
      }
    }
  }

  /** Removes every row of a table in one change; resolves when that is durable. */
  async clear(table: Table<never, never>): Promise<void> {
    await this.change(() => void this.#tables.open(table)?.lmdb.clearAsync())
  }

  /** Resolves when the changes that were asked for so far have ended. */
  settled(): Promise<void> {
    return this.#changes.settled()
  }

  /** Does nothing to a store that a failed write has broken: it ends with its process. */
  async close(): Promise<void> {
    if (this.#changes.isBroken) return
    await this.#environment.close()
    this.writeSynced()
    await this.#lock?.close()
  }
}

const MEND_STORE = 'if nothing was ever in it, remove it, else restore a backup'
/** Room for tables to come. */
export const TABLES_MAX = 128

function rethrow(error: unknown): never {
  throw error
}
