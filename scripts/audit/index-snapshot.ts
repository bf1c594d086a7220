/**
 * The map of an index that the auditor rebuilds: in memory, with a copy in a file from which the next run goes on. The file is
 * written now and then, not at each leaf: missing entries are read and rebuilt again.
 *
 * A line of JSON with the state and the number of rows, the rows, each behind its id u48 and its length u32, and SHA-256 over all of
 * that. The file is this auditor's own; whether it is of the log that is audited, the rebuild finds out by its two right edges.
 */

import { createHash } from 'node:crypto'
import { closeSync, openSync, readSync, rmSync } from 'node:fs'
import { messageOf, SignalError } from '../../src/errors.ts'
import { decodeBase64, encodeBase64 } from '../../src/log/base64.ts'
import { HASH_BYTES } from '../../src/log/hash.ts'
import type { GrownTree } from '../../src/log/patricia-rows.ts'
import { RightEdge } from '../../src/log/tree.ts'
import type { RebuildState, RebuiltMap } from '../rebuild/rebuild.ts'
import { replaceDurably } from '../support/checkpoint-state.ts'
import { unchecked } from './finding.ts'

export class SnapshotMap implements RebuiltMap {
  readonly #file: string
  readonly #origin: string
  readonly #rows: Map<number, Uint8Array>
  #state: RebuildState | undefined
  /** As it is in the file. */
  #saved = { entries: 0, leaves: 0 }

  private constructor(file: string, origin: string, rows: Map<number, Uint8Array>, state?: RebuildState) {
    this.#file = file
    this.#origin = origin
    this.#rows = rows
    this.#state = state
    if (state !== undefined) this.#saved = state
  }

  /** Throws `AuditFailure` for a file that can't be read or removed. One that is damaged, or of another log, is one that is not there. */
  static open(file: string, origin: string): SnapshotMap {
    const reader = FileReader.open(file)
    if (reader === undefined) return new SnapshotMap(file, origin, new Map())
    try {
      const [state, rows] = readSnapshot(reader, origin)
      return new SnapshotMap(file, origin, rows, state)
    } catch (error) {
      if (!(error instanceof SignalError)) throw unchecked('state', `${file}: ${messageOf(error)}`)
      return SnapshotMap.begin(file, origin)
    } finally {
      reader.close()
    }
  }

  /** Without entries, and without the file. */
  static begin(file: string, origin: string): SnapshotMap {
    rmSync(file, { force: true })
    return new SnapshotMap(file, origin, new Map())
  }

  get state(): RebuildState | undefined {
    return this.#state
  }

  readonly read = (id: number): Uint8Array | undefined => this.#rows.get(id)

  keep(rows: GrownTree['rows'], state: RebuildState): void {
    for (const [id, bytes] of rows) this.#rows.set(id, bytes)
    this.#state = state
    const entries = state.entries - this.#saved.entries
    if (entries >= Math.max(ENTRIES_BETWEEN_SAVES, this.#saved.entries / 2)) this.save()
  }

  /** Saves what it would take some work to rebuild. */
  saveIfGrown(): void {
    const { entries, leaves } = this.#state ?? this.#saved
    const isGrown =
      (entries - this.#saved.entries) * GROWTH > this.#saved.entries ||
      leaves - this.#saved.leaves > LEAVES_BETWEEN_SAVES
    if (isGrown) this.save()
  }

  /** Durable when this returns. Throws `AuditFailure` where it can't be written. */
  save(): void {
    const state = this.#state
    if (state === undefined) return
    try {
      replaceDurably(this.#file, this.#parts(state))
    } catch (error) {
      throw unchecked('state', `the map of the index can't be written: ${messageOf(error)}`)
    }
    this.#saved = state
  }

  *#parts({ entries, entryRoots, leaves, leafRoots }: RebuildState): Generator<Uint8Array> {
    const digest = createHash('sha256')
    const [entryEdge, leafEdge] = [entryRoots, leafRoots].map(roots => roots.map(encodeBase64))
    const header = { format: FORMAT, origin: this.#origin, entries, entryEdge, leaves, leafEdge }
    let block: Uint8Array[] = [Buffer.from(`${JSON.stringify({ ...header, rows: this.#rows.size })}\n`)]
    let bytes = 0
    for (const [id, row] of this.#rows) {
      const head = Buffer.alloc(ROW_HEAD_BYTES)
      head.writeUIntBE(id, 0, ID_BYTES)
      head.writeUInt32BE(row.length, ID_BYTES)
      block.push(head, row)
      bytes += row.length
      if (bytes < BLOCK_BYTES) continue
      const part = Buffer.concat(block)
      digest.update(part)
      yield part
      block = []
      bytes = 0
    }
    const part = Buffer.concat(block)
    digest.update(part)
    yield part
    yield digest.digest()
  }
}

/** Throws `MALFORMED` where it is not of its form, or not whole. */
function readSnapshot(reader: FileReader, origin: string): readonly [RebuildState, Map<number, Uint8Array>] {
  const header = parseHeader(reader.line())
  if (header.format !== FORMAT || header.origin !== origin) throw malformed('is of another log')
  const { entries, leaves, rows: rowsInAll } = header as Record<string, number>
  const [entryRoots, leafRoots] = [header.entryEdge, header.leafEdge].map(rootsIn)
  const rows = new Map<number, Uint8Array>()
  for (let row = 0; row < rowsInAll!; row++) {
    const head = reader.take(ROW_HEAD_BYTES)
    rows.set(head.readUIntBE(0, ID_BYTES), Uint8Array.from(reader.take(head.readUInt32BE(ID_BYTES))))
  }
  reader.assertEnd()
  // They fit their sizes.
  new RightEdge(entries!, entryRoots!)
  new RightEdge(leaves!, leafRoots!)
  return [{ entries: entries!, entryRoots: entryRoots!, leaves: leaves!, leafRoots: leafRoots! }, rows]
}

function parseHeader(line: string): Record<string, unknown> {
  try {
    const header: unknown = JSON.parse(line)
    if (typeof header === 'object' && header !== null) return header as Record<string, unknown>
  } catch {
    // Said below, as for other JSON.
  }
  throw malformed('has no header')
}

function rootsIn(value: unknown): Uint8Array[] {
  if (!Array.isArray(value)) throw malformed('has no right edges')
  return value.map(text => decodeBase64(String(text)))
}

/** Reads a file from its beginning, a block at a time, and hashes it. */
class FileReader {
  readonly #descriptor: number
  readonly #digest = createHash('sha256')
  #block = Buffer.alloc(0)

  private constructor(descriptor: number) {
    this.#descriptor = descriptor
  }

  /** Throws `AuditFailure` for one that is there and can't be opened. */
  static open(file: string): FileReader | undefined {
    try {
      return new FileReader(openSync(file, 'r'))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw unchecked('state', `${file} can't be read: ${messageOf(error)}`)
    }
  }

  line(): string {
    while (!this.#block.includes(NEWLINE)) {
      if (this.#block.length > HEADER_BYTES_MAX) throw malformed('has no header')
      this.#fill(this.#block.length + 1)
    }
    return this.take(this.#block.indexOf(NEWLINE) + 1).toString()
  }

  /** Until the next one is taken. */
  take(bytes: number): Buffer {
    if (bytes > ROW_BYTES_MAX) throw malformed('has a row that is too long')
    if (bytes > this.#block.length) this.#fill(bytes)
    const taken = this.#block.subarray(0, bytes)
    this.#block = this.#block.subarray(bytes)
    this.#digest.update(taken)
    return taken
  }

  /** Throws `MALFORMED` unless everything up to here has the digest at the file's end, and nothing follows. */
  assertEnd(): void {
    const digest = this.#digest.digest()
    this.#fill(HASH_BYTES)
    if (!this.#block.equals(digest)) throw malformed('is damaged')
  }

  close(): void {
    closeSync(this.#descriptor)
  }

  #fill(bytes: number): void {
    while (this.#block.length < bytes) {
      const more = Buffer.alloc(BLOCK_BYTES)
      const read = readSync(this.#descriptor, more, 0, BLOCK_BYTES, null)
      if (read === 0) throw malformed('is cut off')
      this.#block = Buffer.concat([this.#block, more.subarray(0, read)])
    }
  }
}

function malformed(reason: string): SignalError {
  return new SignalError('MALFORMED', `map of the index ${reason}`)
}

const FORMAT = 'callsign index map v1'
const ID_BYTES = 6
const ROW_HEAD_BYTES = ID_BYTES + 4
const NEWLINE = 0x0a
const BLOCK_BYTES = 1024 * 1024
/** A page of the most keys, each with the most indexes. */
const ROW_BYTES_MAX = 16 * 1024 * 1024
const HEADER_BYTES_MAX = 16_384
/** Half a minute of work, against a tenth of a gigabyte to write where the log has a million. */
const ENTRIES_BETWEEN_SAVES = 131_072
const LEAVES_BETWEEN_SAVES = 4_096
/** Saved when there is a sixteenth more. */
const GROWTH = 16
