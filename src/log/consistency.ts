/**
 * Consistency proofs: an old tree is a prefix of a new one (RFC 6962, section 2.1.2; checked as in RFC 9162, section
 * 2.1.4.2). Every tree extends the empty one, and itself, with a proof of no hashes.
 */
import { SignalError } from '../errors.ts'
import { EMPTY_ROOT, equalHashes, HASH_BYTES, type Hash, hashNode } from './hash.ts'
import { assertTreeSize, foldPath, type Node, type Path, pathToRoot, type ReadHashes } from './tree.ts'

/**
 * Every complete subtree of the new tree whose hash the proof needs; `proveConsistency` reads exactly these, in this
 * order. Throws `MALFORMED` when the old tree is the larger one.
 */
export function consistencyNodes(oldSize: number, newSize: number): readonly Node[] {
  return consistencyPath(oldSize, newSize).nodes
}

/** The consistency proof from one size to the other. Throws `MALFORMED` when the old tree is the larger one. */
export function proveConsistency(oldSize: number, newSize: number, readHashes: ReadHashes): Hash[] {
  const path = consistencyPath(oldSize, newSize)
  return foldPath(path, readHashes(path.nodes))
}

/** A consistency proof and the two trees it is held against. */
export interface ConsistencyClaim {
  readonly oldSize: number
  readonly oldRoot: Hash
  readonly newSize: number
  readonly newRoot: Hash
  readonly proof: readonly Hash[]
}

/** Throws `PROOF_INVALID` unless `proof` shows that the new root's tree starts with the old one's. */
export function verifyConsistency(claim: ConsistencyClaim): void {
  const { oldSize, oldRoot, newSize, newRoot, proof } = claim
  if (!isSize(oldSize) || !isSize(newSize) || oldSize > newSize) throw refused(claim, 'sizes do not fit')
  if (oldSize === 0 || oldSize === newSize) {
    if (proof.length !== 0) throw refused(claim, 'no hashes belong in it')
    if (oldSize === 0 && !equalHashes(oldRoot, EMPTY_ROOT)) throw refused(claim, 'the empty root is another')
    if (oldSize === newSize && !equalHashes(oldRoot, newRoot)) throw refused(claim, 'one size has two roots')
    if (oldSize === 0 && newRoot.length !== HASH_BYTES) throw refused(claim, 'the new root is not 32 bytes')
    return
  }
  const implied = impliedRoots(claim)
  if (!equalHashes(implied.oldRoot, oldRoot)) throw refused(claim, 'it does not lead to the old root')
  if (!equalHashes(implied.newRoot, newRoot)) throw refused(claim, 'it does not lead to the new root')
}

/** RFC 9162, section 2.1.4.2, for 0 < oldSize < newSize: both roots as the proof has them. */
function impliedRoots(claim: ConsistencyClaim): { oldRoot: Hash; newRoot: Hash } {
  const { oldSize, oldRoot, newSize, proof } = claim
  // Steps 1 and 2. A complete old tree is itself the first node, and left out of the proof.
  if (proof.length === 0) throw refused(claim, 'it is empty')
  const [first, ...rest] = isPowerOfTwo(oldSize) ? [oldRoot, ...proof] : proof
  if (first?.length !== HASH_BYTES || rest.some(hash => hash.length !== HASH_BYTES)) {
    throw refused(claim, 'a hash is not 32 bytes')
  }
  // Steps 3 and 4. The numbers of both last leaves, then of the node that `first` is.
  let fn = oldSize - 1
  let sn = newSize - 1
  while (fn % 2 === 1) {
    fn = Math.floor(fn / 2)
    sn = Math.floor(sn / 2)
  }
  // Step 5.
  let fr = first
  let sr = first
  // Step 6.
  for (const c of rest) {
    if (sn === 0) throw refused(claim, 'it has too many hashes')
    if (fn % 2 === 1 || fn === sn) {
      fr = hashNode(c, fr)
      sr = hashNode(c, sr)
      while (fn % 2 === 0 && fn !== 0) {
        fn /= 2
        sn = Math.floor(sn / 2)
      }
    } else {
      sr = hashNode(sr, c)
    }
    fn = Math.floor(fn / 2)
    sn = Math.floor(sn / 2)
  }
  // Step 7; the caller compares the roots.
  if (sn !== 0) throw refused(claim, 'it has too few hashes')
  return { oldRoot: fr, newRoot: sr }
}

/**
 * The proof runs up from the largest complete subtree that ends where the old tree ends. When that is the whole old
 * tree (its size a power of two) the verifier knows its hash, otherwise it comes first.
 */
function consistencyPath(oldSize: number, newSize: number): Path {
  assertTreeSize(oldSize)
  assertTreeSize(newSize)
  if (oldSize > newSize) {
    throw new SignalError('MALFORMED', `old size ${oldSize} is above the new size ${newSize}`)
  }
  if (oldSize === 0 || oldSize === newSize) return { nodes: [], foldStart: 0, foldEnd: 0 }
  const start = lastSubtree(oldSize)
  const path = pathToRoot(start, newSize)
  if (start.index === 0) return path
  return { nodes: [start, ...path.nodes], foldStart: path.foldStart + 1, foldEnd: path.foldEnd + 1 }
}

function lastSubtree(treeSize: number): Node {
  let level = 0
  let subtrees = treeSize
  while (subtrees % 2 === 0) {
    subtrees /= 2
    level++
  }
  return { level, index: subtrees - 1 }
}

function isPowerOfTwo(size: number): boolean {
  return lastSubtree(size).index === 0
}

function isSize(size: number): boolean {
  return Number.isSafeInteger(size) && size >= 0
}

function refused({ oldSize, newSize }: ConsistencyClaim, reason: string): SignalError {
  return new SignalError('PROOF_INVALID', `consistency proof from size ${oldSize} to ${newSize}: ${reason}`)
}
