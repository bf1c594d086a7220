/**
 * The leaves of an index's output log, and the keys of its map. A leaf says that the map over the entries of a checkpoint of the
 * log has a root: `{"input_log_cp": base64, "index_root": [32 numbers]}`, as transparency.dev's verifiable index has it.
 */
import { decodeBase64, encodeBase64, sha256 } from '#primitives'
import { SignalError } from '../errors.ts'
import { VRF_HASH_CHARS } from './entry.ts'
import { HASH_BYTES, type Hash } from './hash.ts'
import { decodeUtf8 } from './utf8.ts'

export interface IndexLeaf {
  /** A signed note of the log. */
  readonly inputCheckpoint: string
  /** Root of the map over all entries of that tree. */
  readonly root: Hash
}

/** The origin of the output log of a log's index. */
export function indexOriginOf(origin: string): string {
  return `${origin}/index`
}

/** The key of an entry, or of a bundle's part that begins with one: SHA-256 of the base64 text of its VRF hash. */
export function indexKeyOfEntry(entry: Uint8Array): Uint8Array {
  if (entry.length < VRF_HASH_CHARS) throw new SignalError('MALFORMED', 'entry does not begin with a hash')
  return sha256(entry.subarray(0, VRF_HASH_CHARS))
}

/** The same for a VRF hash, in base64. */
export function indexKeyOf(vrfHash: string): Uint8Array {
  const bytes = new Uint8Array(vrfHash.length)
  for (let at = 0; at < bytes.length; at++) bytes[at] = vrfHash.charCodeAt(at)
  return indexKeyOfEntry(bytes)
}

/** The value under a key: SHA-256 over the indexes of its entries, ascending, each as u64 big-endian. */
export function indexValueOf(indexes: readonly number[]): Hash {
  const bytes = new Uint8Array(INDEX_BYTES * indexes.length)
  let end = 0
  for (const index of indexes) {
    end += INDEX_BYTES
    let rest = index
    for (let at = end - 1; rest > 0; at--) {
      bytes[at] = rest % 256
      rest = Math.floor(rest / 256)
    }
  }
  return sha256(bytes)
}

export function formatIndexLeaf({ inputCheckpoint, root }: IndexLeaf): Uint8Array {
  const input = encodeBase64(encoder.encode(inputCheckpoint))
  return encoder.encode(`{"input_log_cp":"${input}","index_root":[${root.join()}]}`)
}

/** Throws `MALFORMED` for octets that `formatIndexLeaf` would not write. */
export function parseIndexLeaf(bytes: Uint8Array): IndexLeaf {
  if (bytes.length > LEAF_BYTES_MAX) throw malformed('is too long')
  let text = ''
  for (const octet of bytes) text += String.fromCharCode(octet)
  const [, input, numbers] = LEAF.exec(text) ?? []
  if (input === undefined || numbers === undefined) throw malformed('is not of its form')
  const root = Uint8Array.from(numbers.split(','), Number)
  if (root.length !== HASH_BYTES || root.join() !== numbers)
    throw malformed('has a root that is not 32 octets')
  return { inputCheckpoint: decodeUtf8(decodeBase64(input)), root }
}

function malformed(reason: string): SignalError {
  return new SignalError('MALFORMED', `leaf of the index ${reason}`)
}

const INDEX_BYTES = 8
const encoder = new TextEncoder()
const LEAF = /^\{"input_log_cp":"([A-Za-z0-9+/=]*)","index_root":\[([0-9,]*)\]\}$/
/** An entry of a log of this kind has at most as many. */
const LEAF_BYTES_MAX = 65_535
