/**
 * The index of a log, audited: the output log as the log itself, and each of its leaves against the map that the auditor rebuilds
 * from the entries. An operator who leaves an entry out, or changes a key, has signed a wrong root, and this proves it.
 */

import { encodeBase64 } from '#primitives'
import { SignalError } from '../../src/errors.ts'
import { consistencyNodes, proveConsistency } from '../../src/log/consistency.ts'
import { equalHashes, HASH_BYTES, hashLeaf } from '../../src/log/hash.ts'
import { rootFromPath } from '../../src/log/inclusion.ts'
import { indexKeyOfEntry } from '../../src/log/index-leaf.ts'
import { entryInBundle, TILE_WIDTH, tileWidth } from '../../src/log/tile.ts'
import { rootHash, rootNodes } from '../../src/log/tree.ts'
import { type LeafFault, type NamedTree, Rebuild, type RebuildOutcome } from '../rebuild/rebuild.ts'
import { type AuditedLog, UNREAD_MS_MAX } from './audited-log.ts'
import { AuditFailure, alarmOf, pending, proven } from './finding.ts'
import { openHead, type SignedHead } from './history.ts'
import { formatIndexEvidence, type IncludedLeaf, type IndexProof } from './index-evidence.ts'
import { SnapshotMap } from './index-snapshot.ts'
import { readInclusion, readNodes, type TileReader } from './log-reader.ts'

/** The auditor's knowledge of an index, for other readers. */
export interface IndexView {
  readonly origin: string
  /** The newest output checkpoint that holds. */
  readonly held: SignedHead | undefined
  /** So many leaves have the root of the map over the first so many entries. */
  readonly leaves: number
  readonly entries: number
}

export interface IndexAuditOptions {
  /** The file of the map. */
  readonly file: string
  readonly maxAgeMs: number | undefined
  readonly nowMs: () => number
  readonly onProgress: (entries: number, of: number) => void
}

export class IndexAudit implements IndexView {
  readonly #log: AuditedLog
  readonly #output: AuditedLog
  readonly #options: IndexAuditOptions
  #map: SnapshotMap
  #rebuild: Rebuild
  /** The size of the log since when, and how large it was then, that the newest leaf does not reach. */
  #behind: { readonly treeSize: number; readonly sinceMs: number } | undefined

  /** `log` and `output` are the log and the output log of its index. Throws `AuditFailure` where the map's file can't be read. */
  constructor(log: AuditedLog, output: AuditedLog, options: IndexAuditOptions) {
    this.#log = log
    this.#output = output
    this.#options = options
    this.#map = SnapshotMap.open(options.file, this.origin)
    this.#rebuild = this.#rebuildOf(this.#map)
  }

  get origin(): string {
    return this.#output.keys.verifier.name
  }

  get held(): SignedHead | undefined {
    return this.#output.held
  }

  get leaves(): number {
    return this.#rebuild.leaves
  }

  get entries(): number {
    return this.#rebuild.entries
  }

  /** Compares the leaves up to `output`, both trees read whole. Throws `AuditFailure` where that does not come to its end. */
  async compare(known: SignedHead, output: SignedHead): Promise<void> {
    let from = this.leaves
    let outcome = await this.#follow(known, output, this.#log.sources.tiles, this.#output.sources.tiles)
    if (outcome.kind === 'other' || outcome.kind === 'beyond') {
      // The file is of another log of this name, or of a tree that was seen before a late cache showed this one.
      this.#map = SnapshotMap.begin(this.#options.file, this.origin)
      this.#rebuild = this.#rebuildOf(this.#map)
      from = 0
      outcome = await this.#follow(known, output, this.#log.sources.tiles, this.#output.sources.tiles)
    }
    if (outcome.kind === 'unread' && this.#log.sources.mirrors.length > 0) {
      const [entries, leaves] = [this.#log.sources.tilesOfMirrors, this.#output.sources.tilesOfMirrors]
      outcome = await this.#follow(known, output, entries, leaves)
    }
    this.#map.saveIfGrown()
    if (outcome.kind === 'fault') return await this.#accuse(outcome.fault, known, output)
    if (outcome.kind === 'ahead') return await this.#wait(outcome.index, outcome.input, known)
    if (outcome.kind !== 'compared') throw pending('index', outcome.detail)
    // Old ones may be of a former key.
    if (outcome.newest !== undefined && !this.#isSigned(outcome.newest))
      throw pending('index', 'none of the keys of the log signed the checkpoint in the newest leaf')
    this.#output.checks.pass(
      'index',
      `${this.leaves - from} leaves from ${from} on have the root of the map, rebuilt from ${this.entries} entries`,
    )
  }

  /** A wait that is longer than a cache, or a server that is catching up, explains. */
  alarm(isRead: boolean, known: SignedHead | undefined): AuditFailure | undefined {
    const stale = this.#output.alarm(isRead)
    if (stale !== undefined || known === undefined || this.#output.checks.verdict === 1) return stale
    const { maxAgeMs = UNREAD_MS_MAX, nowMs } = this.#options
    if (this.#behind === undefined || this.entries >= this.#behind.treeSize) {
      const isBehind = this.entries < known.treeSize
      this.#behind = isBehind ? { treeSize: known.treeSize, sinceMs: nowMs() } : undefined
    }
    if (this.#behind === undefined || nowMs() - this.#behind.sinceMs <= maxAgeMs) return undefined
    return alarmOf(
      `the index has not taken entries up to ${this.#behind.treeSize}`,
      this.#behind.sinceMs,
      maxAgeMs,
    )
  }

  close(): void {
    this.#output.close()
  }

  #follow(
    known: SignedHead,
    output: SignedHead,
    entries: TileReader,
    leaves: TileReader,
  ): Promise<RebuildOutcome> {
    return this.#rebuild.follow(
      { head: known, tile: tile => entries.tile(tile) },
      { head: output, tile: tile => leaves.tile(tile) },
    )
  }

  #rebuildOf(map: SnapshotMap): Rebuild {
    return new Rebuild(map, this.#log.keys.verifier.name, ENTRIES_AT_ONCE, this.#options.onProgress)
  }

  #isSigned({ note }: NamedTree): boolean {
    try {
      openHead(Buffer.from(note), this.#log.keys.verifiers)
      return true
    } catch (error) {
      if (!(error instanceof SignalError)) throw error
      return false
    }
  }

  /** The log has signed a larger tree, or is said to: it has to show that, or be caught. */
  async #wait(index: number, input: NamedTree, known: SignedHead): Promise<void> {
    if (this.#isSigned(input)) await this.#log.checks.try(() => this.#log.assertSigned('index', input, known))
    throw pending(
      'index',
      `leaf ${index} is of a tree of ${input.treeSize} entries, and the log has shown ${known.treeSize}`,
    )
  }

  /** Throws the fault, with all that proves it. */
  async #accuse(fault: LeafFault, known: SignedHead, output: SignedHead): Promise<void> {
    const { index, leaf, input } = fault
    // The log itself is caught by both notes.
    if (fault.kind === 'tree' && this.#isSigned(input))
      await this.#log.checks.try(() => this.#log.assertSameHistory({ check: 'index' }, known, input))
    const accused = await this.#included(this.#output.sources.tiles, index, leaf, output)
    const proof = await this.#proofOf(fault, known, output)
    const detail = `leaf ${index}: ${fault.detail}`
    const text = formatIndexEvidence({
      verifiers: this.#log.keys.verifiers,
      indexVerifiers: this.#output.keys.verifiers,
      note: output.note,
      ...accused,
      proof,
      time: new Date(this.#options.nowMs()).toISOString(),
      detail,
    })
    const about = [index, encodeBase64(leaf)]
    throw proven('index', detail, { index: String(index), notes: [output.note] }).with({ about, text })
  }

  /** Null where it takes more than a file has room for, or the server does not answer. */
  async #proofOf(fault: LeafFault, known: SignedHead, output: SignedHead): Promise<IndexProof | null> {
    const { kind, index, input } = fault
    try {
      switch (kind) {
        case 'input':
          return { kind: 'leaf' }
        case 'backwards':
          return { kind: 'earlier', ...(await this.#leafBefore(index, output)) }
        case 'tree':
          return await this.#treeProof(input, known)
        case 'root':
          return (await this.#allEntries(input, known)) ?? (await this.#lookup(fault, known, output)) ?? null
      }
    } catch (error) {
      if (error instanceof AuditFailure || error instanceof SignalError) return null
      throw error
    }
  }

  async #leafBefore(index: number, output: SignedHead): Promise<IncludedLeaf> {
    const { tiles } = this.#output.sources
    const leaf = await entryAt(tiles, index - 1, output.treeSize)
    return await this.#included(tiles, index - 1, leaf, output)
  }

  async #treeProof(input: NamedTree, known: SignedHead): Promise<IndexProof> {
    const { tiles } = this.#log.sources
    const [oldSize, newSize] = [input.treeSize, known.treeSize]
    const roots = await readNodes(tiles, rootNodes(oldSize), newSize)
    const isPart = oldSize > 0 && oldSize < newSize
    const nodes = isPart ? await readNodes(tiles, consistencyNodes(oldSize, newSize), newSize) : []
    const hashes = isPart ? proveConsistency(oldSize, newSize, () => nodes) : []
    return { kind: 'tree', note: known.note, oldRoot: rootHash(oldSize, () => roots), hashes }
  }

  async #allEntries({ treeSize }: NamedTree, known: SignedHead): Promise<IndexProof | undefined> {
    const bundles: Uint8Array[] = []
    let bytes = 0
    for (let index = 0; index * TILE_WIDTH < treeSize; index++) {
      const width = tileWidth('entries', index, known.treeSize)
      const bundle = await this.#log.sources.tiles.tile({ level: 'entries', index, width })
      const part = bundle.subarray(0, endOf(bundle, Math.min(width, treeSize - index * TILE_WIDTH)))
      bundles.push(part)
      bytes += part.length
      if (bytes > EVIDENCE_BYTES_MAX) return undefined
    }
    return { kind: 'entries', bundles }
  }

  /**
   * What the server says under the wrong root of one of the newest entries, where that is not so. It proves its answers by the
   * last leaf only.
   */
  async #lookup(
    { index, input, leaf }: LeafFault,
    known: SignedHead,
    output: SignedHead,
  ): Promise<IndexProof | undefined> {
    if (index !== output.treeSize - 1) return undefined
    const { tiles } = this.#log.sources
    const first = Math.max(0, input.treeSize - LOOKUPS_MAX)
    for (let at = input.treeSize - 1; at >= first; at--) {
      const entry = await entryAt(tiles, at, known.treeSize)
      const key = indexKeyOfEntry(entry)
      const answer = await this.#lookedUp(key, leaf)
      if (answer === undefined || answer.value.includes(at)) continue
      // The way up in the tree that the leaf names.
      const path = await readInclusion(partOf(tiles, known.treeSize), at, input.treeSize)
      return { kind: 'lookup', key, ...answer, index: at, leaf: entry, path }
    }
    return undefined
  }

  /** The value and proof under a key, where the answer rests on that leaf. */
  async #lookedUp(
    key: Uint8Array,
    leaf: Uint8Array,
  ): Promise<{ readonly value: readonly number[]; readonly proof: Uint8Array } | undefined> {
    const path = `lookup/${Buffer.from(key).toString('hex')}`
    const body = await this.#output.file(path, LOOKUP_BYTES_MAX)
    if (body === undefined) return undefined
    try {
      const answer = JSON.parse(Buffer.from(body).toString())
      const isOfLeaf = Buffer.from(answer.output_log_leaf, 'base64').equals(leaf)
      const value: unknown = answer.index_value
      if (!isOfLeaf || !Array.isArray(value)) return undefined
      return { value, proof: Uint8Array.from(Buffer.from(answer.index_proof, 'base64')) }
    } catch {
      // No answer of that form proves nothing.
      return undefined
    }
  }

  /** Throws `AuditFailure` unless the leaf is in the signed tree: only then its owner signed it. */
  async #included(
    tiles: TileReader,
    index: number,
    leaf: Uint8Array,
    { treeSize, rootHash: root }: SignedHead,
  ): Promise<IncludedLeaf> {
    const path = await readInclusion(tiles, index, treeSize)
    if (equalHashes(rootFromPath(hashLeaf(leaf), index, treeSize, path), root)) return { index, leaf, path }
    throw pending('index', `leaf ${index} was read, and is not the one in the tree`, { index: String(index) })
  }
}

/** Tiles of a beginning of the tree of that size, cut from those of the whole. */
function partOf(tiles: TileReader, treeSize: number): TileReader {
  return {
    async tile(tile) {
      const width = tileWidth(tile.level, tile.index, treeSize)
      return (await tiles.tile({ ...tile, width })).subarray(0, tile.width * HASH_BYTES)
    },
  }
}

async function entryAt(tiles: TileReader, index: number, treeSize: number): Promise<Uint8Array> {
  const bundle = Math.floor(index / TILE_WIDTH)
  const width = tileWidth('entries', bundle, treeSize)
  const bytes = await tiles.tile({ level: 'entries', index: bundle, width })
  return entryInBundle(bytes, index % TILE_WIDTH)
}

/** Where the first so many entries of a bundle end. */
function endOf(bundle: Uint8Array, entries: number): number {
  if (entries === 0) return 0
  const last = entryInBundle(bundle, entries - 1)
  return last.byteOffset - bundle.byteOffset + last.length
}

/** One step of some hundred milliseconds. */
const ENTRIES_AT_ONCE = 65_536
/** In base64 it has eleven megabytes. */
const EVIDENCE_BYTES_MAX = 8 * 1024 * 1024
const LOOKUPS_MAX = 64
const LOOKUP_BYTES_MAX = 2 * 1024 * 1024
