/**
 * The hashes of the Merkle tree (RFC 6962, section 2.1): SHA-256 with a first byte that keeps leaves and inner nodes
 * apart. Hashes handed out are the caller's own; inputs are only read.
 */
import { sha256 } from '#primitives'
import { SignalError } from '../errors.ts'

/** 32 bytes: a leaf hash, the hash of an inner node or a root hash. */
export type Hash = Uint8Array

export const HASH_BYTES = 32

/** The root hash of the tree without entries: SHA-256 of nothing. Shared: not to be written to. */
export const EMPTY_ROOT: Hash = sha256(new Uint8Array(0))

/** The leaf hash of an entry: SHA-256(0x00 || entry). The length an entry bundle puts before it is no part of it. */
export function hashLeaf(entry: Uint8Array): Hash {
  const bytes = entry.length + 1
  const input = bytes <= leafInput.length ? leafInput.subarray(0, bytes) : new Uint8Array(bytes)
  input.set(entry, 1)
  return sha256(input)
}

/** The hash of an inner node: SHA-256(0x01 || left || right). Throws `MALFORMED` unless both are 32 bytes. */
export function hashNode(left: Hash, right: Hash): Hash {
  // A short hash would leave bytes of an earlier call in place and give a plausible, wrong result.
  if (left.length !== HASH_BYTES || right.length !== HASH_BYTES) {
    throw new SignalError('MALFORMED', 'hash of a child node is not 32 bytes')
  }
  nodeInput.set(left, 1)
  nodeInput.set(right, 1 + HASH_BYTES)
  return sha256(nodeInput)
}

/** `hashNode` of the two hashes that lie side by side in `hashes` from byte `offset` on, as in a tile. */
export function hashNodeAt(hashes: Uint8Array, offset: number): Hash {
  const children = hashes.subarray(offset, offset + 2 * HASH_BYTES)
  if (children.length !== 2 * HASH_BYTES) {
    throw new SignalError('MALFORMED', `no two hashes at byte ${offset} of ${hashes.length}`)
  }
  nodeInput.set(children, 1)
  return sha256(nodeInput)
}

/** Whether two hashes are the same bytes. Not constant-time: nothing in the tree is secret. */
export function equalHashes(a: Hash, b: Hash): boolean {
  if (a.length !== b.length) return false
  for (let at = 0; at < a.length; at++) {
    if (a[at] !== b[at]) return false
  }
  return true
}

// Inputs are put together in place: an array above 64 bytes costs 0.3 us to make, as much as the hash itself.
// leafInput[0] stays 0, and longer entries than a Register takes get an array of their own.
const leafInput = new Uint8Array(2048)
const nodeInput = new Uint8Array(1 + 2 * HASH_BYTES)
nodeInput[0] = 1
