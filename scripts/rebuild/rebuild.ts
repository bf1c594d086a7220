/**
 * An index rebuilt by a reader who does not trust it: the map over the log's entries, grown from leaf to leaf of the output log,
 * and compared with each. Entries and leaves are checked against the two signed trees before they are used.
 *
 * Where it stands is one state, kept in one step with the rows of its map: how many entries they have, how many leaves were
 * compared, and the right edges of both trees. So a rebuild that was stopped, at any point, goes on from there, and finds out by
 * the edges whether it is still of the two logs.
 */

import { encodeBase64 } from '#primitives'
import { consistencyFromTiles, type FetchTile, type TreeHead } from '../../src/client/tile-consistency.ts'
import { SignalError } from '../../src/errors.ts'
import { parseCheckpoint } from '../../src/log/checkpoint.ts'
import { VRF_HASH_CHARS } from '../../src/log/entry.ts'
import { EMPTY_ROOT, equalHashes, type Hash, hashLeaf } from '../../src/log/hash.ts'
import { type IndexLeaf, indexKeyOfEntry, parseIndexLeaf } from '../../src/log/index-leaf.ts'
import { readNote } from '../../src/log/note.ts'
import { type GrownTree, growTree, type IndexedEntry, type ReadRow } from '../../src/log/patricia-rows.ts'
import { parseBundle, TILE_WIDTH, tileWidth } from '../../src/log/tile.ts'
import { RightEdge } from '../../src/log/tree.ts'

/** A signed tree, and where its tiles and bundles are asked for, each in its width in that tree. */
export interface SignedTree {
  readonly head: TreeHead
  readonly tile: FetchTile
}

export interface RebuildState {
  /** The map has the first so many entries of the log. */
  readonly entries: number
  /** The right edge of the log's tree of that size. */
  readonly entryRoots: readonly Hash[]
  /** So many leaves of the output log were compared. */
  readonly leaves: number
  readonly leafRoots: readonly Hash[]
}

/** The rows of the map, and the state that belongs to them. */
export interface RebuiltMap {
  /** Undefined where nothing was rebuilt yet. */
  readonly state: RebuildState | undefined
  readonly read: ReadRow
  /** Keeps both in one step: a map is never of another state than its own. */
  keep(rows: GrownTree['rows'], state: RebuildState): unknown
}

/**
 * A leaf that no honest index has:
 * - `input`: it is not of its form, or its checkpoint is another log's
 * - `tree`: its checkpoint is not of the log's tree of that size, whether the log signed it or not
 * - `backwards`: it is of a smaller tree than the leaf before it
 * - `root`: the map over its entries has another root
 */
export interface LeafFault {
  readonly kind: 'input' | 'tree' | 'backwards' | 'root'
  /** In the output log. */
  readonly index: number
  readonly leaf: Uint8Array
  readonly detail: string
  /** The tree that it names. */
  readonly input: NamedTree
}

/** The checkpoint in a leaf. Its signature is not looked at: an old one may be of a former key, and counts by its tree. */
export interface NamedTree extends TreeHead {
  readonly note: string
}

/**
 * - `compared`: all leaves up to the end of the output log; `newest` is what the last of those that were new names
 * - `ahead`: the leaf is of a larger tree than the one that is known of the log
 * - `unread`: the files that came are not those of the signed trees
 * - `beyond`: the earlier rebuild has more than these trees
 * - `other`: the earlier rebuild is of another history than these trees
 * - `fault`: see there
 */
export type RebuildOutcome =
  | { readonly kind: 'compared'; readonly newest: NamedTree | undefined }
  | { readonly kind: 'ahead'; readonly index: number; readonly input: NamedTree }
  | { readonly kind: 'unread' | 'beyond' | 'other'; readonly detail: string }
  | { readonly kind: 'fault'; readonly fault: LeafFault }

export class Rebuild {
  readonly #map: RebuiltMap
  /** The log's. */
  readonly #origin: string
  readonly #entriesAtOnce: number
  readonly #onProgress: (entries: number, of: number) => void
  #entries: number
  #entryRoots: readonly Hash[]
  #leafEdge: RightEdge
  #newest: NamedTree | undefined
  #isKept = true

  /**
   * `origin` is the log's. The map takes at most `entriesAtOnce` entries in one step. Throws `MALFORMED` for a state that
   * is none.
   */
  constructor(
    map: RebuiltMap,
    origin: string,
    entriesAtOnce: number,
    onProgress: (entries: number, of: number) => void = () => undefined,
  ) {
    const { entries, entryRoots, leaves, leafRoots } = map.state ?? NOTHING
    this.#map = map
    this.#origin = origin
    this.#entriesAtOnce = entriesAtOnce
    this.#onProgress = onProgress
    this.#entries = entries
    this.#entryRoots = entryRoots
    this.#leafEdge = new RightEdge(leaves, leafRoots)
  }

  get entries(): number {
    return this.#entries
  }

  get leaves(): number {
    return this.#leafEdge.treeSize
  }

  /** Goes on to the end of the output log. Rejects with whatever a read of a tile rejects with. */
  async follow(log: SignedTree, output: SignedTree): Promise<RebuildOutcome> {
    this.#newest = undefined
    const outcome = await this.#followTo(log, output)
    if (!this.#isKept) await this.#keep([], this.#entries, this.#entryRoots)
    return outcome
  }

  async #followTo(log: SignedTree, output: SignedTree): Promise<RebuildOutcome> {
    try {
      const entryEdge = new RightEdge(this.#entries, this.#entryRoots)
      const strayed = (await strays(entryEdge, log)) ?? (await strays(this.#leafEdge, output))
      if (strayed !== undefined) return strayed
      const entries = new EntryReader(entryEdge, log, this.#entriesAtOnce)
      while (this.leaves < output.head.treeSize) {
        const outcome = await this.#followBundle(entries, log, output)
        if (outcome !== undefined) return outcome
      }
      return { kind: 'compared', newest: this.#newest }
    } catch (error) {
      if (!(error instanceof Unread)) throw error
      return { kind: 'unread', detail: error.message }
    }
  }

  async #followBundle(
    entries: EntryReader,
    log: SignedTree,
    output: SignedTree,
  ): Promise<RebuildOutcome | undefined> {
    const first = this.leaves - (this.leaves % TILE_WIDTH)
    const edge = new RightEdge(this.leaves, this.#leafEdge.roots)
    const leaves = (await readBundle(output, first / TILE_WIDTH)).slice(this.leaves - first)
    for (const leaf of leaves) edge.append(hashLeaf(leaf))
    await assertBeginning(edge, output)
    for (const leaf of leaves) {
      const outcome = await this.#follow(leaf, entries, log.head)
      if (outcome !== undefined) return outcome
      this.#leafEdge.append(hashLeaf(leaf))
      this.#isKept = false
    }
    return undefined
  }

  /** Undefined where the leaf is as it has to be, and the map has its entries. */
  async #follow(
    bytes: Uint8Array,
    entries: EntryReader,
    known: TreeHead,
  ): Promise<RebuildOutcome | undefined> {
    const index = this.leaves
    const { input, leaf } = this.#open(bytes)
    const fault: FaultOf = (kind, detail) => ({
      kind: 'fault',
      fault: { kind, index, leaf: bytes, detail, input },
    })
    if (leaf === undefined) return fault('input', 'it has no checkpoint of the log')
    if (input.treeSize > known.treeSize) return { kind: 'ahead', index, input }
    if (input.treeSize < this.#entries)
      return fault('backwards', `it is of ${input.treeSize} entries, after one of ${this.#entries}`)
    this.#newest = input
    return await this.#growTo(input, leaf.root, entries, fault)
  }

  async #growTo(
    input: TreeHead,
    root: Hash,
    entries: EntryReader,
    fault: FaultOf,
  ): Promise<RebuildOutcome | undefined> {
    for (;;) {
      const keys = await entries.read(input.treeSize)
      const edge = entries.edge
      const isWhole = edge.treeSize === input.treeSize
      if (isWhole && !equalHashes(edge.rootHash(), input.rootHash))
        return fault('tree', `the log's tree of ${input.treeSize} entries has another root than it says`)
      const grown = this.#grown(keys)
      if (isWhole && !equalHashes(grown.root, root)) {
        const detail = `over ${input.treeSize} entries its root is ${encodeBase64(root)}, and rebuilt ${encodeBase64(grown.root)}`
        return fault('root', detail)
      }
      const [size, roots] = [edge.treeSize, edge.roots]
      if (grown.rows.length > 0) await this.#keep(grown.rows, size, roots)
      this.#entries = size
      this.#entryRoots = roots
      this.#onProgress(size, entries.treeSize)
      if (isWhole) return undefined
    }
  }

  #grown(entries: readonly IndexedEntry[]): GrownTree {
    try {
      return growTree(this.#map.read, entries)
    } catch (error) {
      if (error instanceof SignalError && error.code === 'MALFORMED') throw new Unread(error.message)
      throw error
    }
  }

  /** A leaf of another form, or of another log, is undefined. */
  #open(bytes: Uint8Array): { readonly input: NamedTree; readonly leaf: IndexLeaf | undefined } {
    try {
      const leaf = parseIndexLeaf(bytes)
      const note = leaf.inputCheckpoint
      const { origin, treeSize, rootHash } = parseCheckpoint(readNote(note).text)
      const input = { treeSize, rootHash, note }
      return { input, leaf: origin === this.#origin ? leaf : undefined }
    } catch (error) {
      if (!(error instanceof SignalError)) throw error
      return { input: NO_TREE, leaf: undefined }
    }
  }

  async #keep(rows: GrownTree['rows'], entries: number, entryRoots: readonly Hash[]): Promise<void> {
    await this.#map.keep(rows, {
      entries,
      entryRoots,
      leaves: this.leaves,
      leafRoots: this.#leafEdge.roots,
    })
    this.#isKept = true
  }
}

/** The entries of a signed tree in order, some ahead of those asked for, which were found to be in it. */
class EntryReader {
  readonly #log: SignedTree
  readonly #entriesAtOnce: number
  /** Behind the entries that were handed out. */
  #edge: RightEdge
  #ahead: { readonly keys: Uint8Array[]; readonly leafHashes: Hash[] } = { keys: [], leafHashes: [] }
  #at = 0

  constructor(edge: RightEdge, log: SignedTree, entriesAtOnce: number) {
    this.#edge = edge
    this.#log = log
    this.#entriesAtOnce = entriesAtOnce
  }

  get edge(): RightEdge {
    return this.#edge
  }

  /** How many there are to read. */
  get treeSize(): number {
    return this.#log.head.treeSize
  }

  /** The next entries, up to that size of the tree, or fewer: at most `entriesAtOnce`. */
  async read(treeSize: number): Promise<IndexedEntry[]> {
    if (this.#edge.treeSize < treeSize && this.#at === this.#ahead.keys.length) await this.#readAhead()
    const end = Math.min(treeSize, this.#edge.treeSize + this.#entriesAtOnce)
    const entries: IndexedEntry[] = []
    for (; this.#edge.treeSize < end && this.#at < this.#ahead.keys.length; this.#at++) {
      entries.push({ key: this.#ahead.keys[this.#at]!, index: this.#edge.treeSize })
      this.#edge.append(this.#ahead.leafHashes[this.#at]!)
    }
    return entries
  }

  async #readAhead(): Promise<void> {
    const start = this.#edge.treeSize
    const first = Math.floor(start / TILE_WIDTH)
    const end = Math.min(Math.ceil(this.#log.head.treeSize / TILE_WIDTH), first + BUNDLES_AT_ONCE)
    const edge = new RightEdge(start, this.#edge.roots)
    const [keys, leafHashes]: [Uint8Array[], Hash[]] = [[], []]
    for (let group = first; group < end; group += FILES_AT_ONCE) {
      const indexes = Array.from({ length: Math.min(FILES_AT_ONCE, end - group) }, (_, at) => group + at)
      const bundles = await Promise.all(indexes.map(index => readBundle(this.#log, index)))
      const entries = bundles.flat().slice(Math.max(0, start - group * TILE_WIDTH))
      for (const entry of entries) {
        if (entry.length < VRF_HASH_CHARS) throw new Unread('an entry of the log is not of its form')
        keys.push(indexKeyOfEntry(entry))
        const hash = hashLeaf(entry)
        leafHashes.push(hash)
        edge.append(hash)
      }
    }
    await assertBeginning(edge, this.#log)
    this.#ahead = { keys, leafHashes }
    this.#at = 0
  }
}

/** A file is not part of the signed tree: a cache may garble it. */
class Unread extends Error {}

/** Why an edge that was kept is no beginning of the tree; undefined where it is. */
async function strays(edge: RightEdge, tree: SignedTree): Promise<RebuildOutcome | undefined> {
  if (edge.treeSize > tree.head.treeSize)
    return { kind: 'beyond', detail: `the tree has ${tree.head.treeSize} leaves, after ${edge.treeSize}` }
  const found = await consistencyFromTiles(tree.tile, headOf(edge), tree.head)
  if (found.kind === 'consistent') return undefined
  return { kind: found.check === 'tiles' ? 'unread' : 'other', detail: found.detail }
}

/** Throws `Unread`. */
async function assertBeginning(edge: RightEdge, { head, tile }: SignedTree): Promise<void> {
  const found = await consistencyFromTiles(tile, headOf(edge), head)
  if (found.kind !== 'consistent')
    throw new Unread(`leaves up to ${edge.treeSize} are not those of the tree of size ${head.treeSize}`)
}

/** Throws `Unread` for a bundle that is cut off, or has another number of entries than the tree. */
async function readBundle({ head, tile }: SignedTree, index: number): Promise<Uint8Array[]> {
  const width = tileWidth('entries', index, head.treeSize)
  const bytes = await tile({ level: 'entries', index, width })
  try {
    const entries = parseBundle(bytes)
    if (entries.length === width) return entries
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
  }
  throw new Unread(`bundle ${index} has not the ${width} entries of the tree`)
}

function headOf(edge: RightEdge): TreeHead {
  return { treeSize: edge.treeSize, rootHash: edge.rootHash() }
}

type FaultOf = (kind: LeafFault['kind'], detail: string) => RebuildOutcome

const NO_TREE: NamedTree = { treeSize: 0, rootHash: EMPTY_ROOT, note: '' }
const NOTHING: RebuildState = { entries: 0, entryRoots: [], leaves: 0, leafRoots: [] }
/** 65,536 entries: some 13 MB, and a second of work. */
const BUNDLES_AT_ONCE = 256
const FILES_AT_ONCE = 16
