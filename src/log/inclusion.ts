/**
 * Inclusion proofs: an entry is in the tree (RFC 6962, section 2.1.1; checked as in RFC 9162, section 2.1.3.2, which
 * gives the same answers step by step).
 */
import { SignalError } from '../errors.ts'
import { equalHashes, HASH_BYTES, type Hash, hashNode } from './hash.ts'
import { assertTreeSize, foldPath, type Node, type Path, pathToRoot, type ReadHashes } from './tree.ts'

/**
 * Every complete subtree whose hash the proof needs; `proveInclusion` reads exactly these, in this order. Throws
 * `MALFORMED` unless `index` is below `treeSize`.
 */
export function inclusionNodes(index: number, treeSize: number): readonly Node[] {
  return inclusionPath(index, treeSize).nodes
}

/**
 * The inclusion proof of the leaf: the hashes from its sibling up to the root's child, none for a tree of one leaf.
 * Throws `MALFORMED` unless `index` is below `treeSize`.
 */
export function proveInclusion(index: number, treeSize: number, readHashes: ReadHashes): Hash[] {
  const path = inclusionPath(index, treeSize)
  return foldPath(path, readHashes(path.nodes))
}

/**
 * The root implied by an inclusion proof (RFC 9162, section 2.1.3.2). `path` runs from the leaf's sibling up to the
 * root's child. Throws `MALFORMED` when its length cannot belong to that leaf of a tree of `treeSize`, or a hash is
 * not 32 bytes. The caller compares the result with a signed root.
 */
export function rootFromPath(leaf: Hash, index: number, treeSize: number, path: readonly Hash[]): Hash {
  assertIndex(index, treeSize)
  if (leaf.length !== HASH_BYTES) throw new SignalError('MALFORMED', 'leaf hash is not 32 bytes')
  // Steps 2 and 3. The numbers of the leaf and of the last leaf, divided by two on every level.
  let fn = index
  let sn = treeSize - 1
  let r = leaf
  // Step 4.
  for (const p of path) {
    if (sn === 0) throw wrongLength(index, treeSize, path)
    if (fn % 2 === 1 || fn === sn) {
      r = hashNode(p, r)
      // Levels on which the node stands alone at the right end have no hash in the proof.
      while (fn % 2 === 0 && fn !== 0) {
        fn /= 2
        sn = Math.floor(sn / 2)
      }
    } else {
      r = hashNode(r, p)
    }
    fn = Math.floor(fn / 2)
    sn = Math.floor(sn / 2)
  }
  // Step 5.
  if (sn !== 0) throw wrongLength(index, treeSize, path)
  return r
}

/** An inclusion proof and all that it is held against. */
export interface InclusionClaim {
  readonly leafHash: Hash
  readonly index: number
  readonly treeSize: number
  readonly path: readonly Hash[]
  readonly rootHash: Hash
}

/** Throws `PROOF_INVALID` unless `path` shows the leaf at `index` of the tree with that size and root. */
export function verifyInclusion({ leafHash, index, treeSize, path, rootHash }: InclusionClaim): void {
  let implied: Hash
  try {
    implied = rootFromPath(leafHash, index, treeSize, path)
  } catch (cause) {
    throw new SignalError('PROOF_INVALID', `inclusion proof of leaf ${index} is malformed`, { cause })
  }
  if (!equalHashes(implied, rootHash)) {
    throw new SignalError('PROOF_INVALID', `leaf ${index} does not lead to the root of size ${treeSize}`)
  }
}

function inclusionPath(index: number, treeSize: number): Path {
  assertIndex(index, treeSize)
  return pathToRoot({ level: 0, index }, treeSize)
}

function assertIndex(index: number, treeSize: number): void {
  assertTreeSize(treeSize)
  if (!Number.isSafeInteger(index) || index < 0 || index >= treeSize) {
    throw new SignalError('MALFORMED', `index ${index} is not in a tree of size ${treeSize}`)
  }
}

function wrongLength(index: number, treeSize: number, path: readonly Hash[]): SignalError {
  return new SignalError('MALFORMED', `path of ${path.length} does not fit leaf ${index} of ${treeSize}`)
}
