/**
 * The log's tables: entry bundles, hash tiles, identities, the lookup index and the signed checkpoint. One batch is
 * one change, so what a checkpoint covers is durable before anyone can see the checkpoint.
 *
 * Reads see committed rows.
 */

import { unpack } from 'msgpackr'
import { assert, messageOf, SignalError } from '../errors.ts'
import { type Checkpoint, type LogHead, openCheckpoint } from '../log/checkpoint.ts'
import { VRF_HASH_BYTES, VRF_HASH_CHARS } from '../log/entry.ts'
import type { Integration, TailBytes } from '../log/integrate.ts'
import type { VerifierKey } from '../log/note.ts'
import { parseBundle, TILE_WIDTH, tileWidth } from '../log/tile.ts'
import type { WrittenRow } from '../store/engine/change-ledger.ts'
import { KIND, NUMBER } from '../store/engine/key-parts.ts'
import { indexKey, tileKey } from '../store/engine/keys.ts'
import { bytes, count, object, type RowOf, text } from '../store/engine/row-form.ts'
import type { Change, ReadStore, Store, View } from '../store/engine/store.ts'
import { bytesTable, type Table, textKeyTable } from '../store/engine/table.ts'
import { isOfLmdb } from '../store/engine/write-failure.ts'
import { IdentityTable, type LoggedIdentity, type PendingWrites } from './identity-table.ts'
import { LookupIndex } from './lookup-index.ts'
import type { Alongside } from './registration.ts'
import { damaged, readRightEdge, type StoredLog } from './right-edge.ts'
import { TiledLog } from './tiled-log.ts'

/** The names of the tables. */
export const LOG_TABLES = {
  maker: 'log-maker',
  head: 'log-head',
  bundles: 'log-bundles',
  tiles: 'log-tiles',
  identities: 'log-identities',
  lookup: 'log-lookup',
} as const

export const TILES = bytesTable(LOG_TABLES.tiles, { level: KIND, index: NUMBER }, bytes(), {
  holds: 'up to 256 hashes',
})
export const BUNDLES = bytesTable(LOG_TABLES.bundles, { index: NUMBER }, bytes(), {
  holds: 'up to 256 entries',
})
export const IDENTITIES = bytesTable(LOG_TABLES.identities, { block: NUMBER }, bytes(), {
  holds: 'user and device of each entry of a block',
})
export const LOOKUP = bytesTable(LOG_TABLES.lookup, { node: NUMBER }, bytes(), {
  holds: 'a node of the index by VRF hash',
})
const HEAD_KEY = Buffer.from('head')
const LOG_HEAD = object({ treeSize: count, checkpoint: text })
export const HEAD = textKeyTable(LOG_TABLES.head, '`head` or `shown`', LOG_HEAD, {
  holds: 'the signed checkpoint, and the one that was shown last',
})

/** Origin and key that the store was made with; others must not write to it. */
export type LogMaker = RowOf<typeof LOG_MAKER>
const LOG_MAKER = object({
  /** `STORE_FORM` of the program that made it. */
  storeForm: count,
  vkey: text,
  vrfPublicKey: text,
})
export const MAKER = textKeyTable(LOG_TABLES.maker, '`maker`', LOG_MAKER, {
  holds: 'origin and keys that the store was made with',
})

/** The last head in that table which these rows of a ledger's change have, if any. */
export function headIn(
  { name }: Pick<Table<LogHead, string>, 'name'>,
  rows: readonly WrittenRow[],
): LogHead | undefined {
  const row = rows.findLast(({ table, key }) => table === name && Buffer.compare(key, HEAD_KEY) === 0)
  return row?.value === undefined ? undefined : asHead(unpack(row.value))
}

/** The key of the head that was shown last, beside `head`, where witnesses cosign. */
export const SHOWN = 'shown'

/** The log's own signed checkpoint. Throws `CHECKPOINT_INVALID` with the reason when it is not of this log and size. */
export function openHead(head: LogHead, verifier: VerifierKey): Checkpoint {
  try {
    const checkpoint = openCheckpoint(head.checkpoint, verifier)
    if (checkpoint.treeSize === head.treeSize) return checkpoint
    throw new Error(`it is of size ${checkpoint.treeSize}, recorded as ${head.treeSize}`)
  } catch (cause) {
    const reason = messageOf(cause)
    throw new SignalError('CHECKPOINT_INVALID', `the log's signed checkpoint does not hold: ${reason}`, {
      cause,
    })
  }
}

/** One batch: everything that a checkpoint of the new size rests on, and the checkpoint. */
export interface LogBatch {
  readonly firstIndex: number
  /** In the order of their indexes. */
  readonly entries: readonly BatchEntry[]
  readonly integration: Integration
  readonly checkpoint: string
}

/** The tables' part of an entry; its text is in the integration. */
export interface BatchEntry extends LoggedIdentity {
  readonly vrfHash: Uint8Array
  readonly alongside?: Alongside | undefined
}

/** The tables as every process reads them. */
export class LogReader extends TiledLog {
  protected identities: IdentityTable
  protected lookup: LookupIndex
  readonly #store: ReadStore

  constructor(store: ReadStore) {
    super(store, { tiles: TILES, bundles: BUNDLES })
    this.#store = store
    this.identities = new IdentityTable(store, IDENTITIES)
    this.lookup = new LookupIndex(store, LOOKUP)
  }

  /** The maker of this store, or undefined for a new one. */
  maker(): LogMaker | undefined {
    return this.#store.view(view => view.get(MAKER, 'maker'))
  }

  /** The last committed checkpoint, or undefined before the first. Throws `CHECKPOINT_INVALID` for another record. */
  head(): LogHead | undefined {
    return this.#store.view(readHead)
  }

  /**
   * The head shown last, with its cosignatures: durable entries beyond it wait for witnesses. Without witnesses
   * it is the last committed one. Throws `CHECKPOINT_INVALID` for another record.
   */
  shownHead(): LogHead | undefined {
    return this.#store.view(view => {
      const head = readHead(view)
      const shown = asHead(view.get(HEAD, SHOWN))
      if (shown === undefined || head === undefined || shown.treeSize <= head.treeSize) return shown ?? head
      throw damaged('a larger tree was shown than is there')
    })
  }

  /** Whether a committed head is not shown by that alone. */
  get keepsShown(): boolean {
    return this.#store.view(view => view.get(HEAD, SHOWN)) !== undefined
  }

  /** Takes in what another process, which writes to the same tables, has appended by `treeSize`, once that is durable. */
  follow(treeSize: number): void {
    this.addToLookup(treeSize, ({ release }) => release())
  }

  /**
   * The newest leaf index whose VRF hash begins like this one, in batches being written too; undefined for none.
   * The index holds 16 bytes of a hash, so the caller compares the entry.
   */
  newestIndex(vrfHash: Uint8Array): number | undefined {
    return this.lookup.newest(vrfHash)
  }

  /** The identity behind a leaf, in batches being written too. */
  identity(index: number): LoggedIdentity | undefined {
    return this.identities.read(index)
  }

  /**
   * Adds entries that are in the bundles and not in the index. Departure from `parseEntry`: it looks only at each
   * entry's hash, in memory reused for each bundle. Garbage of 65,000 entries would stay resident, 20 MB of it
   * (`bench/startup.ts`).
   */
  protected addToLookup(treeSize: number, onAdded: (pending: PendingWrites) => void): void {
    const hashes = Array.from({ length: TILE_WIDTH }, () => Buffer.allocUnsafe(VRF_HASH_BYTES))
    while (this.lookup.nextIndex < treeSize) {
      const firstIndex = this.lookup.nextIndex
      const bundleIndex = Math.floor(firstIndex / TILE_WIDTH)
      const width = tileWidth('entries', bundleIndex, treeSize)
      // Views of a Buffer are Buffers.
      const bundle = parseBundle(this.readBundle(bundleIndex)) as Buffer[]
      const entries = bundle.slice(firstIndex % TILE_WIDTH, width)
      if (firstIndex + entries.length < Math.min(treeSize, (bundleIndex + 1) * TILE_WIDTH)) {
        throw damaged(`entry bundle ${bundleIndex} ends before the tree`)
      }
      onAdded(
        this.lookup.add(
          firstIndex,
          entries.map((entry, at) => readHash(entry, hashes[at]!)),
        ),
      )
    }
  }
}

/** The tables of the writer, and of who puts them right. */
export class LogStore extends LogReader {
  readonly #store: Store

  constructor(store: Store) {
    super(store)
    this.#store = store
  }

  /** Resolves when the head, which has cosignatures and is about to be shown, will be shown after a crash too. */
  async keepShown(head: LogHead): Promise<void> {
    await this.#store.change(change => change.put(HEAD, SHOWN, head))
  }

  /** From here on each committed head is shown. */
  async forgetShown(): Promise<void> {
    if (!this.keepsShown) return
    await this.#store.change(change => change.remove(HEAD, SHOWN))
  }

  /** Makes a new log in one change: its maker and its checkpoint of size 0. */
  async create(maker: LogMaker, checkpoint: string): Promise<void> {
    await this.#store.change(change => {
      assert(readHead(change) === undefined, 'a log is made once')
      change.put(MAKER, 'maker', maker)
      change.put(HEAD, 'head', { treeSize: 0, checkpoint })
    })
  }

  /** From here on the log is that of another key, which has signed the newest checkpoint, too. */
  async changeMaker(maker: LogMaker): Promise<void> {
    await this.#store.change(change => change.put(MAKER, 'maker', maker))
  }

  /**
   * Drops what earlier, perhaps failed, batches left in memory and returns the right edge at the committed size.
   * Throws `CHECKPOINT_INVALID` when the tables do not hold what a tree of that size needs, or hold more.
   */
  openTail(treeSize: number): TailBytes {
    try {
      this.identities = new IdentityTable(this.#store, IDENTITIES)
      const tail = readRightEdge(this.#storedLog, treeSize)
      this.lookup = new LookupIndex(this.#store, LOOKUP)
      this.#refillLookup(treeSize)
      return tail
    } catch (error) {
      if (!(error instanceof SignalError) || error.code === 'CHECKPOINT_INVALID') throw error
      throw damaged(error.message, error)
    }
  }

  /**
   * Writes a batch in one change and resolves when it is durable. The change compares the committed size
   * with the batch's first index before it writes anything, so a batch whose predecessor failed changes nothing.
   */
  async append(batch: LogBatch): Promise<void> {
    const identities = this.identities.add(batch.firstIndex, batch.entries)
    const lookup = this.lookup.add(
      batch.firstIndex,
      batch.entries.map(({ vrfHash }) => vrfHash),
    )
    await this.#store.change(change => {
      const committedSize = readHead(change)?.treeSize
      assert(
        committedSize === batch.firstIndex,
        `batch at ${batch.firstIndex} meets a tree of ${committedSize}`,
      )
      for (const { index, bytes } of batch.integration.bundles) change.put(BUNDLES, indexKey(index), bytes)
      for (const { level, index, bytes } of batch.integration.tiles) {
        change.put(TILES, tileKey(level, index), bytes)
      }
      for (const { key, value } of identities.writes) change.put(IDENTITIES, key, value)
      for (const { key, value } of lookup.writes) change.put(LOOKUP, key, value)
      change.put(HEAD, 'head', { treeSize: batch.integration.treeSize, checkpoint: batch.checkpoint })
      for (const { alongside } of batch.entries) {
        if (alongside !== undefined) writeAlongside(change, alongside)
      }
    })
    identities.release()
    lookup.release()
  }

  get #storedLog(): StoredLog {
    return {
      tile: (level, index) => this.#store.view(view => view.getVolatile(TILES, tileKey(level, index))),
      bundle: index => this.#store.view(view => view.getVolatile(BUNDLES, indexKey(index))),
      identityBlock: block => this.#store.view(view => view.getVolatile(IDENTITIES, indexKey(block))),
      readHashes: this.readHashes,
    }
  }

  /** Adds again what the index kept in memory when the process ended. */
  #refillLookup(treeSize: number): void {
    this.addToLookup(treeSize, ({ writes }) => {
      // The index's own rows were written with their batch, so there is nothing left to write.
      if (writes.length > 0) throw damaged('the lookup index lags behind the entries')
    })
    if (this.lookup.coveredSize !== treeSize) throw damaged('the lookup index is of another tree')
  }
}

/** One caller's refusal takes back that caller's rows, and leaves the batch. */
function writeAlongside(change: Change, write: Alongside): void {
  try {
    change.attempt(() => write(change))
  } catch (error) {
    if (isOfLmdb(error)) throw error
  }
}

function readHead(view: View): LogHead | undefined {
  return asHead(view.get(HEAD, 'head'))
}

function asHead(head: LogHead | undefined): LogHead | undefined {
  if (head === undefined) return undefined
  if (Number.isSafeInteger(head.treeSize) && head.treeSize >= 0 && typeof head.checkpoint === 'string')
    return head
  throw damaged('the record of the signed checkpoint is not one')
}

/** Decodes the hash of an entry into `hash`, without a look at its key. */
function readHash(entry: Buffer, hash: Buffer): Buffer {
  const isWhole = entry.length > VRF_HASH_CHARS && entry[VRF_HASH_CHARS] === NEWLINE
  if (isWhole && hash.write(entry.toString('latin1', 0, VRF_HASH_CHARS), 'base64') === hash.length)
    return hash
  throw damaged('an entry does not begin with a hash')
}

const NEWLINE = 0x0a
