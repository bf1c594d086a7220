/**
 * The Merkle Patricia tree and its proofs as the head comment of `filippo.io/torchwood/mpt` describes them: slow, by lists of
 * pairs and BigInts, and sharing nothing with `src/log`. The oracle for roots and for what a verifier may take.
 */
import { sha256 } from './naive-tree.ts'

export type Pair = readonly [key: Uint8Array, value: Uint8Array]

/** A key is followed by a zero byte and then by bytes of ones. */
function bitOf(key: Uint8Array, position: bigint): number {
  const at = position / 8n
  const byte = at < key.length ? key[Number(at)]! : at === BigInt(key.length) ? 0 : 0xff
  return (byte >> (7 - Number(position % 8n))) & 1
}

function varint(value: bigint): Uint8Array {
  return value < 128n
    ? Uint8Array.of(Number(value))
    : Uint8Array.of(Number(value % 128n) + 128, ...varint(value / 128n))
}

function leafHash([key, value]: Pair): Uint8Array {
  const [keyLength, valueLength] = [key.length, value.length].map(length => varint(BigInt(length)))
  return sha256(Uint8Array.of(0), keyLength!, key, valueLength!, value)
}

function nodeHash(bit: bigint, left: Uint8Array, right: Uint8Array): Uint8Array {
  return sha256(Uint8Array.of(1), varint(bit), left, right)
}

/** The hash of the tree of these pairs. No two keys are the same. */
export function naivePatriciaHash(pairs: readonly Pair[], from = 0n): Uint8Array {
  if (pairs.length === 0) return sha256()
  if (pairs.length === 1) return leafHash(pairs[0]!)
  for (let bit = from; ; bit++) {
    const left = pairs.filter(([key]) => bitOf(key, bit) === 0)
    if (left.length === 0 || left.length === pairs.length) continue
    const right = pairs.filter(([key]) => bitOf(key, bit) === 1)
    return nodeHash(bit, naivePatriciaHash(left, bit + 1n), naivePatriciaHash(right, bit + 1n))
  }
}

/** Whether torchwood's `VerifyLookup` takes a claim, line for line. */
export function naiveVerify(
  root: Uint8Array,
  key: Uint8Array,
  value: Uint8Array | undefined,
  proof: Uint8Array,
): boolean {
  if (value === undefined && proof.length === 0) return isSame(root, sha256())
  const octets = [...proof]
  const end = value === undefined ? [cutBytes(octets), cutBytes(octets)] : [key, value]
  const [endKey, endValue] = end
  if (endKey === undefined || endValue === undefined) return false
  if (value === undefined && isSame(endKey, key)) return false
  let hash = leafHash([endKey, endValue])
  let above = 1n << 30n
  while (octets.length > 0) {
    const bit = cutVarint(octets)
    if (bit === undefined || bit >= above || octets.length < 32) return false
    above = bit
    const sibling = Uint8Array.from(octets.splice(0, 32))
    if (bitOf(key, bit) !== bitOf(endKey, bit)) return false
    hash = bitOf(key, bit) === 0 ? nodeHash(bit, hash, sibling) : nodeHash(bit, sibling, hash)
  }
  return isSame(hash, root)
}

function cutBytes(octets: number[]): Uint8Array | undefined {
  const length = cutVarint(octets)
  if (length === undefined || length > octets.length) return undefined
  return Uint8Array.from(octets.splice(0, Number(length)))
}

/** As Go's `binary.Uvarint`. */
function cutVarint(octets: number[]): bigint | undefined {
  let value = 0n
  for (let at = 0; at < 10; at++) {
    const octet = octets.shift()
    if (octet === undefined || (at === 9 && octet > 1)) return undefined
    value |= BigInt(octet & 0x7f) << BigInt(7 * at)
    if (octet < 0x80) return value
  }
  return undefined
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0
}
