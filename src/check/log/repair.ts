/**
 * Puts the derived tables of a log right: tiles, the lookup table, the earlier keys in identity records, and the map of the
 * index, all from the entries; the tiles of the index from its leaves. It never writes entries, leaves, signed checkpoints, or
 * user and device ids, which stand nowhere else in the store.
 *
 * A crash midway leaves some rows repaired and the rest as they were. The lookup table is emptied and filled anew:
 * until it is full again it lags behind the entries, and the server does not start. Another repair continues after any
 * crash.
 */

import { assert, SignalError } from '../../errors.ts'
import { BLOCK_RECORDS, RECORD_BYTES, readRecord, writeRecord } from '../../keyserver/identity-table.ts'
import { INDEX_ROWS, INDEX_STATE, INDEX_TILES, MAP } from '../../keyserver/index/index-tables.ts'
import { HEAD, IDENTITIES, LOOKUP, TILES } from '../../keyserver/log-store.ts'
import { LookupIndex } from '../../keyserver/lookup-index.ts'
import { parseEntry } from '../../log/entry.ts'
import { parseBundle, TILE_WIDTH } from '../../log/tile.ts'
import { indexKey } from '../../store/engine/keys.ts'
import type { LmdbStore } from '../../store/engine/lmdb-store.ts'
import type { Change, View } from '../../store/engine/store.ts'
import { type Correction, INDEX_CHECKS, type LogReport } from './fault.ts'
import { checkLog } from './log-check.ts'
import { RawLog } from './raw-log.ts'

/** Why that log's entries can't be trusted to derive tables from; undefined when they can. */
export function reasonAgainstRepair(report: LogReport): string | undefined {
  const broken = report.outcomes
    .filter(({ check }) => NOT_DERIVED.has(check))
    .find(({ lasting }) => lasting > 0)
  if (broken !== undefined) return `${broken.check} can't be derived from anything: restore a backup`
  if (!report.isProven) return 'the entries are not the tree that was signed: restore a backup'
  const faulty = report.outcomes.filter(({ faults }) => faults > 0)
  const isSignedOnly = faulty.every(({ check, faults, lasting }) => OF_INDEX.has(check) && faults === lasting)
  return faulty.length > 0 && isSignedOnly ? OF_SIGNED_INDEX : undefined
}

/**
 * Repairs the log in a database that is open for writing, with no other user. `report` is that of a check just made.
 * Resolves when everything is durable; only another check tells how far the repair came. Throws `STORE_UNAVAILABLE`
 * when the log has changed since the check.
 */
export async function repairLog(database: LmdbStore, report: LogReport): Promise<void> {
  // Not through `LogStore`: it refuses a damaged lookup table.
  const treeSize = database.view(view => view.get(HEAD, 'head'))?.treeSize
  if (treeSize !== report.treeSize) {
    throw new SignalError('STORE_UNAVAILABLE', 'the log has grown since it was checked: check it again')
  }
  const repair = new LogRepair(database)
  try {
    await repair.applyCorrections()
    const lookup = report.outcomes.find(({ check }) => check === 'lookup')
    if (lookup !== undefined && lookup.faults > 0) await repair.rebuildLookup(treeSize)
  } finally {
    repair.end()
  }
}

class LogRepair {
  readonly #database: LmdbStore
  readonly #raw: RawLog
  #corrections: Correction[] = []

  constructor(database: LmdbStore) {
    this.#database = database
    this.#raw = new RawLog(database)
  }

  /** Checks the log once more, and writes its corrections a few at a time. */
  async applyCorrections(): Promise<void> {
    await checkLog(this.#raw, {
      onCorrection: correction => void this.#corrections.push(correction),
      onProgress: () => this.#write(),
    })
    await this.#write()
  }

  async rebuildLookup(treeSize: number): Promise<void> {
    await this.#database.clear(LOOKUP)
    const index = new LookupIndex(this.#database, LOOKUP)
    const bundles = Math.ceil(treeSize / TILE_WIDTH)
    for (let first = 0; first < bundles; first += BUNDLES_PER_COMMIT) {
      const vrfHashes: Uint8Array[] = []
      for (let at = first; at < Math.min(first + BUNDLES_PER_COMMIT, bundles); at++) {
        for (const entry of parseBundle(this.#raw.bundle(at)!)) vrfHashes.push(parseEntry(entry).vrfHash)
      }
      const pending = index.add(first * TILE_WIDTH, vrfHashes)
      await this.#database.change(change => {
        for (const { key, value } of pending.writes) change.put(LOOKUP, key, value)
      })
      pending.release()
    }
  }

  end(): void {
    this.#raw.end()
  }

  async #write(): Promise<void> {
    if (this.#corrections.length === 0) return
    const corrections = this.#corrections
    this.#corrections = []
    await this.#database.change(change => {
      for (const [block, bytes] of correctedBlocks(change, corrections)) {
        change.put(IDENTITIES, indexKey(block), bytes)
      }
      for (const correction of corrections) {
        if (correction.kind === 'row') writeRow(change, correction)
        if (correction.kind === 'index-state') change.put(INDEX_STATE, MAP, correction.state)
      }
    })
  }
}

function writeRow(change: Change, { table, key, value }: Extract<Correction, { kind: 'row' }>): void {
  const derived = DERIVED.find(({ name }) => name === table)
  assert(derived !== undefined, 'rows of no other table are corrected')
  if (value === undefined) change.remove(derived, key)
  else change.put(derived, key, value)
}

/** The identity blocks that the corrections change, as stored and as corrected. */
function correctedBlocks(view: View, corrections: readonly Correction[]): Map<number, Buffer> {
  const blocks = new Map<number, Buffer>()
  for (const correction of corrections) {
    if (correction.kind !== 'identity') continue
    const block = Math.floor(correction.index / BLOCK_RECORDS)
    const at = (correction.index % BLOCK_RECORDS) * RECORD_BYTES
    const bytes = blocks.get(block) ?? Buffer.from(view.get(IDENTITIES, indexKey(block))!)
    const { previousIndex, earlierKeys } = correction
    writeRecord(bytes, at, { ...readRecord(bytes, at), previousIndex, earlierKeys })
    blocks.set(block, bytes)
  }
  return blocks
}

/** Tables of whole rows that are derived. */
const DERIVED = [TILES, INDEX_TILES, INDEX_ROWS]
const OF_INDEX: ReadonlySet<string> = new Set(INDEX_CHECKS)
const OF_SIGNED_INDEX =
  'what is damaged of the index is signed: restore a backup, or begin another index under a new KT_INDEX_PRIVATE_KEY'
const NOT_DERIVED = new Set(['maker', 'checkpoint', 'entries'])
/** 16,384 entries: a change of a megabyte or two. */
const BUNDLES_PER_COMMIT = 64
