/**
 * A checkpoint in the fewest octets that still prove that the log has signed it:
 *
 *     tree size u64 big-endian  root hash 32  key id 4  Ed25519 signature 64
 *
 * Both ends have pinned the log, and so its origin.
 */
import { decodeBase64, encodeBase64 } from '#primitives'
import { HASH_BYTES } from '../log/hash.ts'
import type { SignedCheckpoint } from './signed-checkpoint.ts'

/** Undefined where the log's own signature is not in the note. */
export function packCheckpoint({
  origin,
  treeSize,
  rootHash,
  note,
}: SignedCheckpoint): Uint8Array | undefined {
  const begin = lineOf(origin)
  const signatures = note
    .split('\n')
    .filter(line => line.startsWith(begin))
    .map(line => decodeBase64(line.slice(begin.length)))
  // Witnesses have lines of another length.
  const signature = signatures.find(({ length }) => length === SIGNATURE_BYTES)
  if (signature === undefined) return undefined
  const bytes = new Uint8Array(PACKED_BYTES)
  new DataView(bytes.buffer).setBigUint64(0, BigInt(treeSize))
  bytes.set(decodeBase64(rootHash), ROOT_AT)
  bytes.set(signature, SIGNATURE_AT)
  return bytes
}

/** The note, with the log's signature alone; undefined for octets of another form. Verified by who takes it. */
export function readCheckpoint(bytes: Uint8Array, origin: string): string | undefined {
  if (bytes.length !== PACKED_BYTES) return undefined
  const treeSize = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0)
  const root = encodeBase64(bytes.slice(ROOT_AT, SIGNATURE_AT))
  return `${origin}\n${treeSize}\n${root}\n\n${lineOf(origin)}${encodeBase64(bytes.slice(SIGNATURE_AT))}\n`
}

function lineOf(origin: string): string {
  return `— ${origin} `
}

const ROOT_AT = 8
const SIGNATURE_AT = ROOT_AT + HASH_BYTES
/** In a signed note's line, for an Ed25519 key: 4 octets of key id, and the signature. */
const SIGNATURE_BYTES = 68
const PACKED_BYTES = SIGNATURE_AT + SIGNATURE_BYTES
