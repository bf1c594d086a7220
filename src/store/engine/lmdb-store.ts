/**
 * One LMDB environment in the data directory, with named tables. Nothing else in the project opens LMDB.
 *
 * Durability: with `overlappingSync: false` a commit's promise resolves after its fdatasync, so what rests on it may
 * be told as soon as it resolves. Writes go through `change` only, in the order of the calls.
 */

import { mkdirSync, rmSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { type Database as LmdbTable, open, type RootDatabase, type Transaction } from 'lmdb'
import { Encoder } from 'msgpackr'
import { assert, type ErrorCode, messageOf, SignalError } from '../../errors.ts'
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
import { rangeOf } from './keys.ts'
import { COPY_STATE, type CopyState, LedgerCopy, STATE_KEY } from './ledger-copy.ts'
import { LmdbChange, LmdbView, type OpenTable, type StoreFigures } from './lmdb-change.ts'
import type {
  Change,
  FollowedChange,
  Happening,
  HappeningOf,
  Row,
  RowWatcher,
  Store,
  View,
  WatchedRow,
} from './store.ts'
import { assertReadable, assertWritable, hasMetaPages } from './store-files.ts'
import { Subscribers } from './subscribers.ts'
import { DESCRIBED_TABLES, type Key, type Table } from './table.ts'
import { markUnsynced, mayHaveLostWrites, readBootId, syncMarked, syncNow } from './unsynced-mark.ts'

/** A table with its rows as they are stored. */
export type StoredTable = Pick<LmdbTable<Uint8Array, Key>, 'get' | 'getKeys' | 'getRange' | 'getStats'>

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
  /** Whether its changes have a ledger, of which the store is a copy. */
  readonly hasLedger?: boolean
  /**
   * Called where the machine has stopped since `writeUnsynced`: the store may lack any part, and was removed. Without it
   * `open` throws.
   */
  readonly onLost?: () => void
  /** For tests. */
  readonly rehearse?: Rehearse
}

export class LmdbStore implements Store {
  readonly #environment: RootDatabase
  readonly #changes: CommitQueue
  readonly #folder: string
  readonly #lock: RootDatabase | undefined
  readonly #nowMs: () => number
  readonly #onFault: (error: unknown) => void
  /** Whether nobody else on the machine can look into its folder; not looked at where it is opened for reading only. */
  readonly isClosedToOthers: boolean
  readonly #openTables = new Map<Table<never, never>, OpenTable>()
  /** By table name: one table may have several descriptions. */
  readonly #watchers = new Map<string, RowWatcher[]>()
  readonly #subscribers = new Subscribers()
  readonly #followers = new Set<(change: FollowedChange) => void>()
  readonly #figures: StoreFigures = { commits: 0, puts: 0, removes: 0, reads: 0 }
  readonly #view: View
  readonly #copies: LedgerCopy
  /** Undefined until this process may change what all nodes share. */
  #ledger: ChangeLedger | undefined
  #lastChange = 0

  private constructor(
    environment: RootDatabase,
    folder: string,
    {
      nowMs = Date.now,
      onBroken = () => undefined,
      onFault = rethrow,
      hasLedger = false,
      rehearse,
    }: StoreOptions,
    writer?: Writer,
  ) {
    this.#environment = environment
    this.#folder = folder
    this.#lock = writer?.lock
    this.#nowMs = nowMs
    this.#onFault = onFault
    this.isClosedToOthers = writer?.isClosed ?? true
    const openTable = (table: Table<never, never>) => this.#openTable(table)
    this.#view = new LmdbView(openTable, this.#figures)
    if (writer !== undefined) this.openTables()
    this.#copies = new LedgerCopy(
      environment,
      name => this.#rawTable(name),
      // Not yet: a damaged store that is opened for reading could end the process.
      () => this.#openTable(COPY_STATE)?.lmdb as LmdbTable<unknown, string>,
    )
    if (hasLedger) this.#lastChange = this.copyState?.number ?? 0
    this.#changes = new CommitQueue({
      environment,
      dataFolder: folder,
      begin: (atMs, ahead, hasUndo) =>
        new LmdbChange(openTable, this.#figures, {
          nowMs: atMs ?? this.#nowMs(),
          number: this.#lastChange + ahead + 1,
          hasUndo,
          hasLedger,
        }),
      ledger: hasLedger ? changes => this.#writeToLedger(changes) : undefined,
      onCommitted: () => {
        this.#figures.commits += 1
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
    const lock = lockFolder(folder)
    // Only now: no other process makes it anew meanwhile.
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

  /** Opens every table that is described by now, so far as it is there. */
  openTables(): void {
    for (const table of DESCRIBED_TABLES) this.#openTable(table)
  }

  /** Later views see what another process has made durable by now. */
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

  /** One unchanging view of all tables that are open by now. */
  snapshot(): Snapshot {
    return new Snapshot(this.#environment.useReadTransaction())
  }

  /**
   * Writes a copy of one moment's store into the empty folder `to`, without the pages that are free, and resolves when
   * it is written, though not yet durable. Writers go on meanwhile. Rejects with `STORE_UNAVAILABLE` when it can't be.
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

  watch({ name }: Pick<Table<never>, 'name'>, watcher: RowWatcher): void {
    this.#watchersOf(name).push(watcher)
  }

  /** The rows of a table as they are stored, whatever they are, for what checks or counts them. */
  storedRows(name: string, keys: 'bytes' | 'text' = 'bytes'): StoredTable {
    return this.#rawTable(name, keys)
  }

  #rawTable<RowKey extends Key>(
    name: string,
    keys: 'bytes' | 'text' = 'bytes',
  ): LmdbTable<Uint8Array, RowKey> {
    const keyEncoding = keys === 'bytes' ? { keyEncoding: 'binary' as const } : {}
    return this.#environment.openDB<Uint8Array, RowKey>(name, { encoding: 'binary', ...keyEncoding })
  }

  change<Result>(write: (change: Change) => Result, atMs?: number): Promise<Result> {
    return this.#changes.add(write, atMs)
  }

  view<Result>(read: (view: View) => Result): Result {
    assert(!this.#changes.isRunning, 'a change reads by itself')
    return read(this.#view)
  }

  /** From now on changes are made, each first in `ledger`, whose last change this store must have. */
  useLedger(ledger: ChangeLedger): void {
    this.#ledger = ledger
  }

  /** Whether any table has a row. */
  get hasRows(): boolean {
    return this.tableNames().some(name => this.rowCount(this.storedRows(name)) > 0)
  }

  /**
   * From now on the copy is written without syncs: what is missing after a crash of the machine is in the ledger. A killed
   * process loses nothing. Does nothing on a system without a boot id, since a crash would go unnoticed.
   */
  writeUnsynced(): void {
    const bootId = readBootId()
    if (bootId === undefined) return
    markUnsynced(this.#folder, bootId)
    this.#copies.isUnsynced = true
  }

  /** Undefined where it is no copy of a ledger. */
  get copyState(): CopyState | undefined {
    return this.#view.get(COPY_STATE, STATE_KEY)
  }

  /**
   * All rows of one moment, but for how far a copy has come: by table, then by key, as their octets compare. Copies.
   * Tables are those that are there by now.
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

  /** It is the store of one machine from now on, and no copy any more. */
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
        for (const watcher of this.#watchers.get(table) ?? NONE) watcher.onReplaced(key)
      }
      this.#tellFollowers(number, rows)
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

  subscribe<Kind extends Happening['kind']>(
    kind: Kind,
    listener: (happening: HappeningOf<Kind>) => void,
  ): void {
    this.#subscribers.add(kind, listener)
  }

  /**
   * Calls `listener` once for each durable change from now on, in order, before its subscribers hear and its promise
   * resolves. Returns what ends that. Its rows are those of tables watched here, so a follower watches no others.
   */
  follow(listener: (change: FollowedChange) => void): () => void {
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
    if (change.hasWritten) {
      this.#lastChange = change.number
      if (this.#followers.size > 0) this.#tellFollowers(change.number, change.watchedRows())
    }
    this.#subscribers.tell(change.happenings, this.#onFault)
  }

  #tellFollowers(number: number, rows: readonly WatchedRow[]): void {
    if (this.#followers.size === 0) return
    const followed: FollowedChange = { number, rows: formatChangedRows(rows) }
    for (const listener of this.#followers) {
      try {
        listener(followed)
      } catch (error) {
        this.#onFault(error)
      }
    }
  }

  #openTable(table: Table<never, never>): OpenTable | undefined {
    const known = this.#openTables.get(table)
    if (known !== undefined) return known
    const { name, codec, keys, shapes } = table
    const isMsgpack = codec === 'msgpack'
    // lmdb-js takes an encoder, though its types do not say so.
    const lmdb = this.#environment.openDB<unknown, Key>(name, {
      ...(isMsgpack && keys === 'bytes' ? { encoder: rowEncoder(shapes) } : {}),
      ...(keys === 'text' ? { encoding: isMsgpack ? 'msgpack' : 'binary' } : {}),
      ...(keys === 'bytes' ? { keyEncoding: 'binary' } : {}),
      ...(keys === 'bytes' && !isMsgpack ? { encoding: 'binary' } : {}),
    }) as LmdbTable<unknown, Key> | undefined
    if (lmdb === undefined) return undefined
    const opened = { name, lmdb, watchers: this.#watchersOf(name) }
    this.#openTables.set(table, opened)
    return opened
  }

  #watchersOf(table: string): RowWatcher[] {
    const watchers = this.#watchers.get(table) ?? []
    this.#watchers.set(table, watchers)
    return watchers
  }

  /** Removes every row of a table in one change; resolves when that is durable. */
  async clear(table: Table<never, never>): Promise<void> {
    await this.change(() => void this.#openTable(table)?.lmdb.clearAsync())
  }

  /** Resolves when the changes that were asked for so far have ended. */
  settled(): Promise<void> {
    return this.#changes.settled()
  }

  /** Does nothing to a store that a failed write has broken: it ends with its process. */
  async close(): Promise<void> {
    if (this.#changes.isBroken) return
    await this.#environment.close()
    if (this.#copies.isUnsynced) syncMarked(this.#folder)
    await this.#lock?.close()
  }
}

/** Writes and reads the rows of a `table` of these shapes. */
export function rowEncoder(shapes: readonly (readonly string[])[] = []): Encoder {
  return new Encoder({
    copyBuffers: true,
    // Marked so, they are what they were again after a record that brings names of its own under the same position.
    structures: shapes.map(shape => Object.assign([...shape], { isShared: true })),
    maxSharedStructures: shapes.length,
  })
}

/** As long as it is not ended, writers can't use again what it still sees, and the file grows. */
export class Snapshot {
  readonly #transaction: Transaction

  constructor(transaction: Transaction) {
    this.#transaction = transaction
  }

  /** A copy of the value. */
  read(table: StoredTable, key: Key): Uint8Array | undefined {
    return table.get(key, { transaction: this.#transaction })
  }

  keys(table: StoredTable): Iterable<Key> {
    return table.getKeys({ transaction: this.#transaction })
  }

  /** Keys and copies of values, in order: all of them, or those whose key begins with `prefix`. */
  rows(table: StoredTable, prefix?: Uint8Array): Iterable<Row<Uint8Array, Key>> {
    const range = prefix === undefined ? {} : rangeOf(prefix)
    return table.getRange({ ...range, transaction: this.#transaction })
  }

  end(): void {
    this.#transaction.done()
  }
}

/**
 * A process that was killed in a commit leaves what it wrote visible, but perhaps not yet durable; whoever opens the
 * store tells others what it reads there. And a new file is found after a power cut only if the folders on the way to it
 * are durable, of which `firstMade` is the topmost new one.
 */
function syncStore(folder: string, firstMade: string | undefined): void {
  const topmost = firstMade === undefined ? folder : dirname(firstMade)
  syncMarked(folder)
  syncNow(folder)
  for (let path = folder; path !== topmost; ) {
    path = dirname(path)
    syncNow(path)
  }
}

/** Throws where the machine has stopped while the store was written without syncs. */
function assertSynced(folder: string): void {
  if (!mayHaveLostWrites(folder)) return
  throw new SignalError(
    'STORE_UNAVAILABLE',
    `the store in ${folder} is a node's copy, and the machine stopped before it was on disk: remove ${join(folder, 'store')}, and the node's next start fills it anew`,
  )
}

/**
 * The lock is a reader slot in an LMDB environment of its own: the kernel frees it when its process ends in any way,
 * so it can't go stale. Two processes that start together see each other and both refuse.
 */
function lockFolder(folder: string): RootDatabase {
  const path = join(folder, 'lock')
  const advice = `nothing is kept there: remove ${path} while no server runs`
  assertWhole(join(path, 'data.mdb'), 'STORE_UNAVAILABLE', advice)
  mkdirSync(path, { recursive: true, mode: 0o700 })
  const lock = open({ path, overlappingSync: false })
  lock.readerCheck()
  lock.get('held')
  const holders = lock.readerList().matchAll(/^\s*(\d+)\s/gm)
  for (const [, pid] of holders) {
    if (pid === String(process.pid)) continue
    void lock.close()
    throw new SignalError('STORE_UNAVAILABLE', `data directory ${folder} is in use by process ${pid}`)
  }
  return lock
}

/** Runs `act` while no other process uses the data directory. Throws `STORE_UNAVAILABLE` where one does. */
export async function withFolderLock(folder: string, act: () => Promise<void>): Promise<void> {
  const lock = lockFolder(folder)
  try {
    await act()
  } finally {
    await lock.close()
  }
}

/**
 * LMDB ends the process over a file without its two first pages, which it writes as it makes one, and over one where they are
 * something else. Choice: it is refused, not made anew, because a log that begins again by itself would be another log under
 * the same key. `damaged` is the code for a file that was never or is no longer LMDB's.
 */
function assertWhole(path: string, damaged: ErrorCode, advice: string): void {
  const bytes = statSync(path, { throwIfNoEntry: false })?.size
  if (bytes === undefined) return
  if (bytes < STORE_BYTES_MIN) {
    throw new SignalError(
      'STORE_UNAVAILABLE',
      `${path} has ${bytes} bytes, fewer than an empty store: its making was cut short, or it was damaged; ${advice}`,
    )
  }
  if (!hasMetaPages(path)) {
    throw new SignalError(damaged, `${path} does not begin as a store does: it was damaged; ${advice}`)
  }
}

const NONE: readonly RowWatcher[] = []
const MEND_STORE = 'if nothing was ever in it, remove it, else restore a backup'
/** Two pages. */
const STORE_BYTES_MIN = 8_192
/** Room for tables to come. */
const TABLES_MAX = 64

function rethrow(error: unknown): never {
  throw error
}
