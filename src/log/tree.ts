/**
 * The shape of the Merkle tree (RFC 6962, section 2.1) and its right edge.
 *
 * A tree is described by its complete subtrees: only their hashes never change, so only they are stored. The store
 * answers `ReadHashes`; roots and proofs are computed here and beside, with no idea of disks or tiles. Sizes and
 * indexes go up to 2^53 - 1, so they are divided and multiplied by powers of two, which is exact, and never shifted.
 */
import { SignalError } from '../errors.ts'
import { EMPTY_ROOT, type Hash, hashNode } from './hash.ts'

/** The complete subtree over the leaves from index * 2^level up to, not including, (index + 1) * 2^level. */
export interface Node {
  readonly level: number
  readonly index: number
}

/** Gives the hashes of nodes, in the order asked for. Every node asked for is complete in the tree in question. */
export type ReadHashes = (nodes: readonly Node[]) => readonly Hash[]

/** Throws `MALFORMED` unless `treeSize` is a whole number from 0 to 2^53 - 1. */
export function assertTreeSize(treeSize: number): void {
  if (!Number.isSafeInteger(treeSize) || treeSize < 0) {
    throw new SignalError('MALFORMED', `tree size ${treeSize} is not a number from 0 to 2^53 - 1`)
  }
}

/** The complete subtrees a tree consists of, largest and leftmost first: one per bit that is set in the size. */
export function rootNodes(treeSize: number): Node[] {
  assertTreeSize(treeSize)
  const nodes: Node[] = []
  pushRangeNodes(nodes, 0, treeSize, LEVEL_MAX)
  return nodes
}

/** The hash over subtrees that stand side by side, largest first: RFC 6962's root when they are `rootNodes`. */
export function foldRoots(hashes: readonly Hash[]): Hash {
  let hash = hashes.at(-1)
  if (hash === undefined) return EMPTY_ROOT
  for (let at = hashes.length - 2; at >= 0; at--) hash = hashNode(hashes[at]!, hash)
  return hash
}

/** The root hash of the tree of that size. */
export function rootHash(treeSize: number, readHashes: ReadHashes): Hash {
  return foldRoots(readHashes(rootNodes(treeSize)))
}

/**
 * The nodes to read for the way from a node up to the root, in order. Those from `foldStart` up to, not including,
 * `foldEnd` fold into one hash. At most one sibling on the way is an incomplete subtree, the right end of the tree,
 * which has to be folded from the complete ones in it.
 */
export interface Path {
  readonly nodes: readonly Node[]
  readonly foldStart: number
  readonly foldEnd: number
}

/** The siblings on the way from a node that is complete in the tree up to the root, lowest first. */
export function pathToRoot({ level, index }: Node, treeSize: number): Path {
  const nodes: Node[] = []
  let foldStart = 0
  let foldEnd = 0
  let height = level
  let position = index
  for (let leaves = 2 ** level; leaves < treeSize; leaves *= 2) {
    const sibling = position % 2 === 0 ? position + 1 : position - 1
    if ((sibling + 1) * leaves <= treeSize) {
      nodes.push({ level: height, index: sibling })
    } else if (sibling * leaves < treeSize) {
      foldStart = nodes.length
      pushRangeNodes(nodes, sibling * leaves, treeSize, height - 1)
      foldEnd = nodes.length
    }
    // Otherwise nothing stands to the right: at this height the node is its own parent.
    height++
    position = Math.floor(position / 2)
  }
  return { nodes, foldStart, foldEnd }
}

/** The hashes of `path.nodes` as a proof gives them, one per sibling. */
export function foldPath({ foldStart, foldEnd }: Path, hashes: readonly Hash[]): Hash[] {
  const proof: Hash[] = []
  for (let at = 0; at < hashes.length; at++) {
    if (at !== foldStart || foldEnd === foldStart) {
      proof.push(hashes[at]!)
      continue
    }
    proof.push(foldRoots(hashes.slice(foldStart, foldEnd)))
    at = foldEnd - 1
  }
  return proof
}

/**
 * The right edge of a growing tree: the hashes of its `rootNodes`, which are all that is needed to append
 * (a compact range). It keeps at most 53 hashes; the ones it is given must not be written to afterwards.
 */
export class RightEdge {
  #treeSize: number
  readonly #roots: Hash[]

  /** `roots` as `rootNodes(treeSize)` names them. Throws `MALFORMED` when there are too many or too few. */
  constructor(treeSize: number, roots: readonly Hash[]) {
    const wanted = rootNodes(treeSize).length
    if (roots.length !== wanted) {
      throw new SignalError('MALFORMED', `tree size ${treeSize} has ${wanted} roots, not ${roots.length}`)
    }
    this.#treeSize = treeSize
    this.#roots = [...roots]
  }

  get treeSize(): number {
    return this.#treeSize
  }

  /** A copy of the list, largest first; the hashes themselves are shared. */
  get roots(): readonly Hash[] {
    return [...this.#roots]
  }

  /**
   * Adds one leaf. `onNode` hears of each subtree of level 1 and up that this leaf completes, lowest first; the
   * node's index is the leaf's index divided by 2^level, rounded down.
   */
  append(leafHash: Hash, onNode?: (level: number, hash: Hash) => void): void {
    assertTreeSize(this.#treeSize + 1)
    let hash = leafHash
    let level = 0
    // A set bit in the old size is a subtree of that level waiting for its right half.
    for (let size = this.#treeSize; size % 2 === 1; size = (size - 1) / 2) {
      hash = hashNode(this.#roots.pop()!, hash)
      level++
      if (onNode !== undefined) onNode(level, hash)
    }
    this.#roots.push(hash)
    this.#treeSize++
  }

  rootHash(): Hash {
    return foldRoots(this.#roots)
  }
}

/**
 * Adds the complete subtrees of the leaves from `start` to `end`, largest first, none of them above `levelMax`.
 * `start` has to be a multiple of the smallest power of two that is not below `end - start`, like every subtree's
 * start.
 */
function pushRangeNodes(nodes: Node[], start: number, end: number, levelMax: number): void {
  let from = start
  let leaves = 2 ** levelMax
  for (let level = levelMax; from < end; level--) {
    if (leaves <= end - from) {
      nodes.push({ level, index: from / leaves })
      from += leaves
    }
    leaves /= 2
  }
}

/** The level of the largest complete subtree below 2^53 leaves. */
const LEVEL_MAX = 52
