/** A node's copy of the ledger: filled where it is empty, then kept up with the changes of the writer. */

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from '../../operations/log.ts'
import type { LmdbStore } from '../../store/engine/lmdb-store.ts'
import type { Position } from '../../store/postgres/changes.ts'
import type { Follower } from '../../store/postgres/follower.ts'
import type { PostgresLedger } from '../../store/postgres/ledger.ts'
import type { StoredRow } from '../../store/postgres/snapshot.ts'
import type { WriterState } from '../../store/postgres/writer-row.ts'
import { decodeRows } from '../../store/postgres/written-rows.ts'
import { Watermark } from '../../watermark.ts'
import { openCopy } from '../open-log.ts'
import type { Process } from '../process/process.ts'
import { ConfigError } from '../settings/config.ts'

/** Resolves when the store has all rows of the ledger, as they were a moment ago. Throws as `openLog`. */
export async function openFilledCopy(context: Process, ledger: PostgresLedger): Promise<LmdbStore> {
  const { dataFolder } = context.config
  const database = await openCopy(context)
  const state = database.copyState
  if (state === undefined && database.hasRows) {
    await database.close()
    throw new ConfigError([
      `CALLSIGN_DATA_DIR ${dataFolder} has the store of a server without CALLSIGN_DATABASE_URL: move it with \`migrate --to postgres\`, or name an empty folder`,
    ])
  }
  if (state !== undefined && !state.isFilling) return database
  if (state === undefined) return fill(database, ledger, context.logger)
  // A part of another snapshot.
  await database.close()
  await rm(join(dataFolder, 'store'), { recursive: true })
  return fill(await openCopy(context), ledger, context.logger)
}

async function fill(database: LmdbStore, ledger: PostgresLedger, logger: Logger): Promise<LmdbStore> {
  const { count, position } = await fillRows(database, ledger)
  await database.filled(position.number, position.epoch)
  logger.info({ event: 'copy-filled', rows: count, change: position.number })
  return database
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
  readonly context: Pick<Process, 'logger' | 'fatal'>
  /** Called after changes were applied. */
  readonly onApplied: () => void
  /** Hears twice a second who writes. */
  readonly onWriter: (writer: WriterState) => void
  /** The copy has all that the ledger had at `currentAtMs`, a later time than before. */
  readonly onCurrent: () => void
}

/** Follows the ledger until it is closed. The process ends if ledger and copy differ in their past: the next start fills anew. */
export class CopyFollower {
  readonly #deps: CopyDeps
  readonly #follower: Follower
  /** Number of the last change that the copy has. */
  readonly #applied: Watermark

  constructor(deps: CopyDeps) {
    const { ledger, database, context, onWriter, onCurrent } = deps
    this.#deps = deps
    const { number, epoch } = database.copyState!
    this.#applied = new Watermark(database.lastChange)
    this.#follower = ledger.follow({
      after: { number, epoch },
      onChanges: async changes => {
        await database.apply(changes.map(({ body, ...place }) => ({ ...place, rows: decodeRows(body) })))
        this.#onApplied()
      },
      onWriter,
      onCurrent,
      onFailure: error => context.logger.warn({ event: 'record-not-read', err: error }),
    })
    this.#follower.ended.then(
      end => (end.kind === 'startAnew' ? this.#startAnew(end.reason) : undefined),
      context.fatal,
    )
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

  /** Resolves when the copy has this change. */
  reached(number: number): Promise<void> {
    return this.#applied.wait(number)
  }

  close(): Promise<void> {
    return this.#follower.close()
  }

  #onApplied(): void {
    const { database, onApplied } = this.#deps
    this.#applied.reach(database.lastChange)
    onApplied()
  }

  async #startAnew(reason: string): Promise<void> {
    const { database, context } = this.#deps
    await database.fill([]).catch(context.fatal)
    context.fatal(
      new ConfigError([
        `the copy in CALLSIGN_DATA_DIR does not go on (${reason}): the next start fills it anew`,
      ]),
    )
  }
}

const WRITTEN_BYTES_MIN = 8 * 1_048_576
