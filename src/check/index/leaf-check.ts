/** The leaves of the index's output log: each has its form, and says the map of a checkpoint that is the log's own. */

import { type Checkpoint, openCheckpoint } from '../../log/checkpoint.ts'
import { equalHashes, type Hash } from '../../log/hash.ts'
import { type IndexLeaf, parseIndexLeaf } from '../../log/index-leaf.ts'
import { readNote, type VerifierKey } from '../../log/note.ts'
import { hashInTile, TILE_WIDTH, tileOfNode } from '../../log/tile.ts'
import { rootHash } from '../../log/tree.ts'
import { LeafBlock } from '../log/entry-block.ts'
import type { Findings } from '../log/fault.ts'
import { attempt, claimIn } from '../log/head-check.ts'
import type { RawLog } from '../log/raw-log.ts'

/** The result of the log's check. */
export interface CheckedLog {
  readonly verifier: VerifierKey | undefined
  readonly treeSize: number
  /** Whether its entries are those that were signed. */
  readonly isProven: boolean
  readonly areTilesWhole: boolean
}

/** One bundle of leaves. */
export class OutputBlock extends LeafBlock {
  /** This bundle's leaves, undefined where they are not sound. */
  readonly leaves: (IndexLeaf | undefined)[] = Array.from({ length: TILE_WIDTH }, () => undefined)

  protected take(entry: Uint8Array, at: number): void {
    this.leaves[at] = undefined
    this.leaves[at] = parseIndexLeaf(entry)
  }
}

export class LeafCheck {
  readonly #raw: RawLog
  readonly #log: CheckedLog
  readonly #findings: Findings
  #newestSize = 0

  constructor(raw: RawLog, log: CheckedLog, findings: Findings) {
    this.#raw = raw
    this.#log = log
    this.#findings = findings
  }

  /** Takes the bundles in order. The map is of the leaf at `lastShown`. */
  addBlock(block: OutputBlock, lastShown: number): void {
    for (let at = 0; at < block.count; at++) {
      const [index, leaf] = [block.firstIndex + at, block.leaves[at]]
      if (block.isSound[at] !== 1 || leaf === undefined) continue
      const fault = this.#faultOf(leaf, index === lastShown)
      if (fault === undefined) continue
      block.isSound[at] = 0
      this.#report(block, at, `leaf ${index}: ${fault}`)
    }
  }

  #faultOf({ inputCheckpoint }: IndexLeaf, isShownLast: boolean): string | undefined {
    const input = claimIn(inputCheckpoint)
    if (input === undefined) return 'its input checkpoint is not one'
    const signer = this.#signerOf(inputCheckpoint, input)
    if (signer === 'nobody') return 'its input checkpoint is not signed by the log'
    const { treeSize } = input
    if (treeSize > this.#log.treeSize)
      return `it is of ${treeSize} entries, and the log has ${this.#log.treeSize}`
    if (treeSize < this.#newestSize)
      return `it is of ${treeSize} entries, and a leaf before it of ${this.#newestSize}`
    this.#newestSize = treeSize
    if ((isShownLast || signer === 'earlier key') && this.#isOfAnother(input))
      return `its input checkpoint is of another log, whose first ${treeSize} entries are others`
    return undefined
  }

  /** A log that has changed its key has leaves that the earlier key signed, which the store does not know. */
  #signerOf(note: string, { origin }: Checkpoint): 'the log' | 'earlier key' | 'nobody' {
    const { verifier } = this.#log
    // Without a key nothing can be said; that is a fault of the log.
    if (verifier === undefined) return 'the log'
    if (origin !== verifier.name) return 'nobody'
    if (attempt(() => openCheckpoint(note, verifier)) !== undefined) return 'the log'
    const ofName = readNote(note).signatures.filter(({ name }) => name === verifier.name)
    const isEarlier = ofName.length > 0 && ofName.every(({ keyId }) => keyId !== verifier.keyId)
    return isEarlier ? 'earlier key' : 'nobody'
  }

  #isOfAnother(input: Checkpoint): boolean {
    const root = this.#rootAt(input.treeSize)
    return root !== undefined && !equalHashes(root, input.rootHash)
  }

  /** The root of the log's first entries; undefined where its tiles are damaged, too. */
  #rootAt(treeSize: number): Hash | undefined {
    if (!this.#log.areTilesWhole) return undefined
    return rootHash(treeSize, nodes =>
      nodes.map(node => {
        const { level, index } = tileOfNode(node)
        return hashInTile(this.#raw.tile(level, index)!, node)
      }),
    )
  }

  #report(block: OutputBlock, at: number, detail: string): void {
    this.#findings.report({
      ...this.#raw.output.entriesAre,
      key: `${block.index}`,
      offset: block.offsets[at]!,
      detail,
      isDerived: false,
    })
  }
}
