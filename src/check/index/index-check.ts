/**
 * The check of the index. Its output log is checked as the log itself is, and each leaf has to have a checkpoint of the log. The
 * map is made anew from the log's entries: every row and the last shown leaf must agree with it. Auditors look at the roots of
 * earlier leaves.
 *
 * A repair corrects rows of the map, tiles, and the state where it disagrees with the last shown leaf. Leaves and checkpoints are
 * signed, and stay as they are.
 */

import { INDEX_STATE, INDEX_TABLES, type IndexState, MAP, SHOWN } from '../../keyserver/index/index-tables.ts'
import { equalHashes, HASH_BYTES, type Hash } from '../../log/hash.ts'
import { type IndexLeaf, indexOriginOf } from '../../log/index-leaf.ts'
import type { VerifierKey } from '../../log/note.ts'
import { TILE_WIDTH } from '../../log/tile.ts'
import { RightEdge } from '../../log/tree.ts'
import { type CheckOutcome, type Findings, INDEX_CHECKS, type IndexCheckName } from '../log/fault.ts'
import {
  attempt,
  checkBundleKeys,
  claimIn,
  decoded,
  type HeadRecord,
  judgeHead,
  parsedKey,
  readHead,
  type StoredHead,
  sizeFromBundles,
} from '../log/head-check.ts'
import type { RawLog } from '../log/raw-log.ts'
import { TreeCheck } from '../log/tree-check.ts'
import { type CheckedLog, LeafCheck, OutputBlock } from './leaf-check.ts'
import { MapCheck, type OnProgress } from './map-check.ts'

/** A leaf, its index, and how many entries its map has. */
interface ShownLeaf extends IndexLeaf {
  readonly index: number
  readonly entries: number
}

export class IndexCheck {
  readonly #raw: RawLog
  readonly #findings: Findings
  readonly #log: CheckedLog
  /** A sentence for each check that was made: its subject. */
  readonly #looked = new Map<IndexCheckName, string>()
  #reason = 'not checked: the state is damaged'

  constructor(raw: RawLog, log: CheckedLog, findings: Findings) {
    this.#raw = raw
    this.#log = log
    this.#findings = findings
  }

  /** Returns one outcome where the store has no index. So many entries' keys are in memory at a time. */
  async run(entriesPerRange: number, onProgress: OnProgress): Promise<CheckOutcome[]> {
    if (!hasIndex(this.#raw)) return [this.#findings.outcome('index', 'the store has no index', false)]
    await this.#check(entriesPerRange, onProgress)
    await onProgress(1)
    return INDEX_CHECKS.map(check => {
      const detail = this.#looked.get(check)
      return this.#findings.outcome(check, detail ?? this.#reason, detail !== undefined)
    })
  }

  async #check(entriesPerRange: number, onProgress: OnProgress): Promise<void> {
    const state = this.#readState()
    if (state === undefined) return
    const isBuilt = state.leaves > 0
    if (!isBuilt) this.#judgeBuilding(state)
    this.#reason = 'not checked: there is no leaf yet'
    // An index that is begun anew still has rows of the earlier one, and no checkpoint.
    if (!isBuilt && isEmpty(this.#raw.recordKeys(INDEX_TABLES.head))) return
    const head = readHead(this.#raw, INDEX_HEAD, parsedKey(state.vkey))
    const leaf = await this.#checkOutput(head, done => onProgress(OUTPUT_SHARE * done))
    this.#reason = 'not compared: the map is being built'
    if (!isBuilt) return
    this.#reason = 'not compared: the last leaf that is shown is damaged'
    if (leaf === undefined) return
    this.#judgeState(state, { entries: leaf.entries, leaves: leaf.index + 1 })
    this.#reason = 'not compared: the log’s entries are damaged'
    if (!this.#log.isProven) return
    const map = new MapCheck(this.#raw, leaf.entries, this.#findings)
    const root = await map.run(entriesPerRange, done => onProgress(OUTPUT_SHARE + (1 - OUTPUT_SHARE) * done))
    this.#looked.set('index-map', `${map.rows} rows of the map over ${leaf.entries} entries, made anew`)
    this.#judgeRoot(leaf, root)
  }

  /** Undefined where it says nothing that the rest could be held against. */
  #readState(): IndexState | undefined {
    for (const key of this.#raw.recordKeys(INDEX_TABLES.state)) {
      if (key !== MAP) this.#reportState('no such record belongs here', false, key)
    }
    const state = attempt(() => decoded(this.#raw, INDEX_TABLES.state, MAP))
    if (!isState(state)) {
      this.#reportState('record is missing or can’t be decoded', false)
      return undefined
    }
    const key = parsedKey(state.vkey)
    const fault = key === undefined ? 'record has no whole verifier key' : this.#faultOfKey(key)
    if (fault !== undefined) {
      this.#reportState(fault, false)
      return undefined
    }
    const { entries, leaves, isHeld } = state
    const held = isHeld ? '; it is held: nothing is appended to it, and lookups go on without it' : ''
    this.#looked.set(
      'index',
      `the state: the map of ${leaves} leaves, over ${entries} of ${this.#log.treeSize} entries${held}`,
    )
    return state
  }

  #faultOfKey({ name }: VerifierKey): string | undefined {
    const { verifier } = this.#log
    const wanted = verifier && indexOriginOf(verifier.name)
    return wanted === undefined || name === wanted ? undefined : `its key is of ${name}, not of ${wanted}`
  }

  #judgeBuilding(state: IndexState): void {
    const { entries } = state
    const { treeSize } = this.#log
    this.#looked.set('index', `the map is being built: ${entries} of ${treeSize} entries`)
    if (Number.isSafeInteger(entries) && entries <= treeSize) return
    this.#reportState(`the map is said to have ${entries} entries, and the log has ${treeSize}`, true)
    this.#findings.correct({ kind: 'index-state', state: { ...state, entries: 0 } })
  }

  #judgeState(state: IndexState, { entries, leaves }: Pick<IndexState, 'entries' | 'leaves'>): void {
    if (state.entries === entries && state.leaves === leaves) return
    const said = `${state.leaves} leaves and a map of ${state.entries} entries`
    this.#reportState(`the state says ${said}; what is shown has ${leaves} and ${entries}`, true)
    this.#findings.correct({ kind: 'index-state', state: { ...state, entries, leaves } })
  }

  /** Returns the last leaf that is shown, if it is sound. */
  async #checkOutput(head: StoredHead, onProgress: OnProgress): Promise<ShownLeaf | undefined> {
    const { output } = this.#raw
    const treeSize = head.verified?.treeSize ?? sizeFromBundles(output)
    const signedRoot = (head.verified ?? head.claimed)?.rootHash
    this.#looked.set('index-checkpoint', 'signature, size and root of its checkpoint, and of the one shown')
    this.#looked.set('index-leaves', `${treeSize} leaves: their form, and whose checkpoint each is of`)
    this.#looked.set('index-tiles', `the hash tiles of ${treeSize} leaves, computed anew`)
    checkBundleKeys(output, treeSize, this.#findings)
    this.#findings.holdBack()
    const tree = new TreeCheck(output, treeSize, signedRoot, this.#findings)
    const leaves = new LeafCheck(this.#raw, this.#log, this.#findings)
    const block = new OutputBlock()
    const shown = new ShownTree(head.shown?.treeSize ?? 0)
    for (let index = 0; index * TILE_WIDTH < treeSize; index++) {
      block.read(output, index, treeSize, this.#findings)
      tree.addBlock(block)
      leaves.addBlock(block, shown.lastIndex)
      shown.addBlock(block)
      if (index % BLOCKS_PER_PROGRESS === 0) await onProgress((index * TILE_WIDTH) / treeSize)
    }
    const rootHash = tree.finish()
    judgeHead(this.#raw, head, { treeSize, rootHash }, this.#findings)
    this.#judgeShown(head, treeSize, shown.rootHash)
    const isSigned = rootHash !== undefined && signedRoot !== undefined && equalHashes(rootHash, signedRoot)
    // Tiles are derived only from leaves that were signed.
    this.#findings.letGo(isSigned && head.verified !== undefined)
    return shown.leaf
  }

  #judgeShown({ shown }: StoredHead, treeSize: number, root: Hash): void {
    const fault = (key: string, detail: string) =>
      this.#findings.report({ ...INDEX_HEAD, key, detail, isDerived: false })
    const isShown = this.#raw.recordBytes(INDEX_TABLES.head, SHOWN) !== undefined
    // The first leaf may wait for witnesses.
    if (!isShown && treeSize > 1) fault(SHOWN, 'record is missing')
    if (shown === undefined || shown.treeSize > treeSize) return
    // Leaves that are damaged have another root in any case.
    if (!this.#findings.has('index-leaves') && !equalHashes(shown.rootHash, root))
      fault(SHOWN, 'the signed root is not that of the leaves')
    const waiting = treeSize - shown.treeSize
    if (waiting > 1) fault(INDEX_HEAD.key, `${waiting} leaves wait for witnesses, where one may`)
  }

  #judgeRoot({ index, entries, root }: ShownLeaf, made: Hash): void {
    if (equalHashes(made, root)) return
    this.#findings.report({
      ...this.#raw.output.entriesAre,
      key: `${Math.floor(index / TILE_WIDTH)}`,
      detail: `leaf ${index} says another root than the map over its ${entries} entries has`,
      isDerived: false,
    })
  }

  #reportState(detail: string, isDerived: boolean, key = MAP): void {
    this.#findings.report({ check: 'index', table: INDEX_TABLES.state, key, detail, isDerived })
  }
}

/** The tree of the leaves that are shown, and its last leaf. */
class ShownTree {
  readonly lastIndex: number
  readonly #edge = new RightEdge(0, [])
  #leaf: ShownLeaf | undefined

  constructor(treeSize: number) {
    this.lastIndex = treeSize - 1
  }

  get rootHash(): Hash {
    return this.#edge.rootHash()
  }

  /** Undefined where it is not sound. */
  get leaf(): ShownLeaf | undefined {
    return this.#leaf
  }

  addBlock(block: OutputBlock): void {
    for (let at = 0; at < block.count && block.firstIndex + at <= this.lastIndex; at++)
      this.#edge.append(block.leafHashes.slice(at * HASH_BYTES, (at + 1) * HASH_BYTES))
    const at = this.lastIndex - block.firstIndex
    const leaf = block.isSound[at] === 1 ? block.leaves[at] : undefined
    if (leaf !== undefined)
      this.#leaf = { ...leaf, index: this.lastIndex, entries: claimIn(leaf.inputCheckpoint)!.treeSize }
  }
}

/** Whether the store has any row of an index. */
export function hasIndex(raw: RawLog): boolean {
  const { head, state, ...rows } = INDEX_TABLES
  const keys = [
    ...[head, state].map(name => raw.recordKeys(name)),
    ...Object.values(rows).map(name => raw.keys(name)),
  ]
  return !keys.every(isEmpty)
}

function isEmpty(keys: Iterable<unknown>): boolean {
  for (const _ of keys) return false
  return true
}

function isState(record: unknown): record is IndexState {
  return INDEX_STATE.row.fits(record)
}

const INDEX_HEAD: HeadRecord = { check: 'index-checkpoint', table: INDEX_TABLES.head, key: 'head' }
/** Its part of the progress. */
const OUTPUT_SHARE = 0.2
const BLOCKS_PER_PROGRESS = 64
