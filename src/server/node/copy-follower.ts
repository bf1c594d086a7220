/** A node's copy of the ledger: filled where it is empty, then kept up with the changes of the writer. */

import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { messageOf, SignalError } from '../../errors.ts'
import { INDEX_HEAD } from '../../keyserver/index/index-tables.ts'
import { HEAD, headIn, LogStore } from '../../keyserver/log-store.ts'
import type { ShownHeads } from '../../keyserver/shown-heads.ts'
import type { LogHead } from '../../log/checkpoint.ts'
import type { LmdbStore } from '../../store/engine/lmdb-store.ts'
import type { LedgerChange, Position } from '../../store/postgres/changes.ts'
import type { Follower } from '../../store/postgres/follower.ts'
import type { PostgresLedger } from '../../store/postgres/ledger.ts'
import type { StoredRow } from '../../store/postgres/snapshot.ts'
import type { WriterState } from '../../store/postgres/writer-row.ts'
import { decodeRows } from '../../store/postgres/written-rows.ts'
import { Watermark } from '../../watermark.ts'
import { openCopy } from '../open-log.ts'
import type { Process } from '../process/process.ts'
import { ConfigError } from '../settings/config.ts'

/**
 * Resolves when the store has all rows of the ledger, as they were a moment ago. A copy that the ledger does not go on from
 * is kept until the new one is known to extend what this node has shown. Throws as `openLog`; `CHECKPOINT_INVALID` where
 * the ledger has lost that.
 */
export async function openFilledCopy(
  context: Process,
  ledger: PostgresLedger,
  shownHeads: ShownHeads,
): Promise<LmdbStore> {
  const { dataFolder } = context.config
  const database = await openCopy(context)
  const state = database.copyState
  if (state === undefined && database.hasRows) {
    await database.close()
    throw new ConfigError([
      `CALLSIGN_DATA_DIR ${dataFolder} has the store of a server without CALLSIGN_DATABASE_URL: move it with \`migrate --to postgres\`, or name an empty folder`,
    ])
  }
  if (state !== undefined && !state.isFilling) {
    await rm(join(dataFolder, EARLIER_STORE), { recursive: true, force: true })
    await recordHead(new LogStore(database), shownHeads)
    return database
  }
  if (state === undefined) return fill(context, database, ledger, shownHeads)
  // A part of another snapshot.
  await database.close()
  await rm(join(dataFolder, STORE), { recursive: true })
  return fill(context, await openCopy(context), ledger, shownHeads)
}

async function fill(
  { config: { dataFolder }, logger }: Process,
  database: LmdbStore,
  ledger: PostgresLedger,
  shownHeads: ShownHeads,
): Promise<LmdbStore> {
  const filled = await fillRows(database, ledger)
  const position = await catchUp(database, ledger, filled.position, logger)
  const log = new LogStore(database)
  try {
    shownHeads.assertExtendedBy(log)
  } catch (error) {
    await database.close()
    await rm(join(dataFolder, STORE), { recursive: true })
    await rename(join(dataFolder, EARLIER_STORE), join(dataFolder, STORE)).catch(ignoreAbsent)
    throw error
  }
  await recordHead(log, shownHeads)
  await database.filled(position.number, position.epoch)
  await rm(join(dataFolder, EARLIER_STORE), { recursive: true, force: true })
  logger.info({ event: 'copy-filled', rows: filled.count, change: position.number })
  return database
}

/**
 * The changes since the snapshot: PostgreSQL has the rows of a change a moment later than the change itself, and among those
 * may be the head that this node has shown. Resolves with the last of them; rejects where the ledger no longer has them.
 */
async function catchUp(
  database: LmdbStore,
  ledger: PostgresLedger,
  after: Position,
  logger: Process['logger'],
): Promise<Position> {
  let onCurrent = () => {}
  const current = new Promise<void>(resolve => {
    onCurrent = resolve
  })
  const follower = ledger.follow({
    after,
    onChanges: changes => database.fill(changes.flatMap(({ body }) => decodeRows(body))),
    onCurrent,
    onFailure: error => logger.warn({ event: 'record-not-read', err: error }),
  })
  const ended = follower.ended.then(end => {
    const reason = end.kind === 'startAnew' ? end.reason : 'it was closed'
    throw new SignalError('STORE_UNAVAILABLE', `the copy could not be filled: ${reason}`)
  })
  try {
    await Promise.race([current, ended])
    return follower.position
  } finally {
    ended.catch(() => {})
    await follower.close()
  }
}

/** The node shows the copy's head from its start on, and later changes need not have a newer head. */
async function recordHead(log: LogStore, shownHeads: ShownHeads): Promise<void> {
  const head = log.head()
  if (head !== undefined) await shownHeads.record(head)
}

function ignoreAbsent(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error
}

/** Puts all rows of the ledger into an empty store, which counts as one that lacks rows until `filled` says otherwise. */
export async function fillRows(
  database: LmdbStore,
  ledger: PostgresLedger,
): Promise<{ readonly count: number; readonly position: Position }> {
  let count = 0
  let rows: StoredRow[] = []
  let bytes = 0
  const write = async () => {
    await database.fill(rows)
    count += rows.length
    rows = []
    bytes = 0
  }
  await write()
  const position = await ledger.snapshot(async portion => {
    for (const row of portion) {
      rows.push(row)
      bytes += row.key.length + row.value.length
    }
    // Each write waits for the disk.
    if (bytes >= WRITTEN_BYTES_MIN) await write()
  })
  await write()
  return { count, position }
}

export interface CopyDeps {
  readonly ledger: PostgresLedger
  readonly database: LmdbStore
  readonly shownHeads: ShownHeads
  /** The index's heads; a reader sees each with its change. */
  readonly indexHeads?: ShownHeads | undefined
  readonly context: Pick<Process, 'config' | 'logger' | 'fatal' | 'world'>
  /** Called after changes were applied. */
  readonly onApplied: () => void
  /** Hears twice a second who writes. */
  readonly onWriter: (writer: WriterState) => void
  /** The copy has all that the ledger had at `currentAtMs`, a later time than before. */
  readonly onCurrent: () => void
}

/**
 * Follows the ledger until it is closed. Where ledger and copy differ in their past, the process ends, and the next start
 * fills anew; but not from a ledger that has lost a head this node has shown, which is only asked again.
 */
export class CopyFollower {
  readonly #deps: CopyDeps
  #follower: Follower
  /** Number of the last change that the copy has. */
  readonly #applied: Watermark
  #stopWaiting = () => {}
  #isClosed = false

  constructor(deps: CopyDeps) {
    this.#deps = deps
    this.#applied = new Watermark(deps.database.lastChange)
    this.#follower = this.#follow()
  }

  /** When the ledger was last known to answer, in the monotonic clock; undefined before it has. */
  get heardAtMs(): number | undefined {
    return this.#follower.heardAtMs
  }

  /** The copy has all that the ledger had then, in the monotonic clock; undefined before it has. */
  get currentAtMs(): number | undefined {
    return this.#follower.currentAtMs
  }

  /** Asks the ledger now whether the copy is current. */
  poll(): void {
    this.#follower.poll()
  }

  /** Resolves when the copy has this change; rejects with `DEADLINE_EXCEEDED` where that takes longer. */
  async reached(number: number, withinMs: number): Promise<void> {
    const tooLate = new AbortController()
    const late = setTimeout(withinMs, undefined, { signal: tooLate.signal }).then(() => {
      throw new SignalError('DEADLINE_EXCEEDED', `the copy still lacked changes after ${withinMs} ms`)
    })
    try {
      await Promise.race([this.#applied.wait(number), late])
    } finally {
      tooLate.abort()
    }
  }

  close(): Promise<void> {
    this.#isClosed = true
    this.#stopWaiting()
    return this.#follower.close()
  }

  #follow(): Follower {
    const { ledger, database, context, onWriter, onCurrent } = this.#deps
    const { number, epoch } = database.copyState!
    const follower = ledger.follow({
      after: { number, epoch },
      onChanges: changes => this.#apply(changes),
      onWriter,
      onCurrent,
      onFailure: error => context.logger.warn({ event: 'record-not-read', err: error }),
    })
    follower.ended
      .then(end => (end.kind === 'startAnew' ? this.#startAnew(end.reason) : undefined))
      .catch(context.fatal)
    return follower
  }

  async #apply(changes: readonly LedgerChange[]): Promise<void> {
    const { database, shownHeads, onApplied } = this.#deps
    const read = changes.map(({ body, ...place }) => ({ ...place, rows: decodeRows(body) }))
    const rows = read.flatMap(change => change.rows)
    // First: from then on a front may show it.
    const head = headIn(HEAD, rows)
    if (head !== undefined) await shownHeads.record(head)
    await this.#recordOfIndex(headIn(INDEX_HEAD, rows))
    await database.apply(read)
    this.#applied.reach(database.lastChange)
    onApplied()
  }

  /** The node goes on without it, and as the writer would hold the index. */
  async #recordOfIndex(head: LogHead | undefined): Promise<void> {
    const { indexHeads, context } = this.#deps
    if (head === undefined) return
    await indexHeads
      ?.record(head)
      .catch(error => context.logger.error({ event: 'index-head-not-recorded', reason: messageOf(error) }))
  }

  async #startAnew(reason: string): Promise<void> {
    const { ledger, database, shownHeads, context } = this.#deps
    const head = await ledger.head().catch(() => 'unknown' as const)
    if (head === 'unknown') return this.#followLater()
    try {
      shownHeads.assertNotBehind(head && Buffer.from(head).toString())
    } catch (error) {
      context.logger.error({ event: 'ledger-refused', reason: messageOf(error) })
      return this.#followLater()
    }
    const { dataFolder } = context.config
    // It may be the way back, also where the machine stops before the next copy is known to be as good.
    database.writeSynced()
    await rename(join(dataFolder, STORE), join(dataFolder, EARLIER_STORE))
    context.fatal(
      new ConfigError([
        `the copy in CALLSIGN_DATA_DIR does not go on (${reason}): the next start fills it anew`,
      ]),
    )
  }

  #followLater(): void {
    if (this.#isClosed) return
    this.#stopWaiting = this.#deps.context.world.every(ASKED_AGAIN_MS, () => {
      this.#stopWaiting()
      this.#follower = this.#follow()
    })
  }
}

/** An operator may have put PostgreSQL right. */
const ASKED_AGAIN_MS = 10_000
const STORE = 'store'
/** The copy that the ledger did not go on from, while the next one is filled. */
const EARLIER_STORE = 'store-earlier'
const WRITTEN_BYTES_MIN = 8 * 1_048_576
