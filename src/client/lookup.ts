/**
 * Checks one result of `POST /api/get-public-keys` as c2sp.org/tlog-proof says, trusting nothing but the two public
 * keys of the log: the VRF proof too, so that an entry of another user or device cannot stand in for the one asked
 * about.
 */
import { decodeBase64, encodeBase64, isCanonicalBase64 } from '#primitives'
import { formatEntry, VRF_HASH_BYTES } from '../log/entry.ts'
import { type Hash, hashLeaf } from '../log/hash.ts'
import { verifyInclusion } from '../log/inclusion.ts'
import { type Proof, parseProof } from '../log/proof.ts'
import { vrfInput } from '../log/vrf-suite.ts'
import { verifyVrf } from '../log/vrf-verify.ts'
import type { Completeness } from './index-proof.ts'
import type { LogKeys } from './log-keys.ts'
import { openSignedCheckpoint, type SignedCheckpoint, treeHeadOf } from './signed-checkpoint.ts'
import { type Check, CheckFailed, during, type Refusal, settle } from './verdict.ts'

/** A uint64: as a bigint, or as the decimal text that JSON carries. A number would lose digits above 2^53. */
export type Uint64 = bigint | string

/** The device with this key. */
export interface Identity {
  readonly userId: Uint64
  readonly deviceId: Uint64
}

/** The facts the app knows before it reads the answer. */
export interface LookupClaim extends Identity {
  /** The hash that was asked for, base64 of 64 bytes. */
  readonly vrfHash?: string
  /** The key the app holds for this device, base64, when it has one: its own, or one pinned earlier. */
  readonly publicKey?: string
}

/** One result of the answer (LOG 2.5). */
export interface LookupResult {
  readonly publicKey: string
  readonly vrfHash: string
  readonly proof: string
}

/**
 * The log holds this key for this user and device, at leaf `index` of the tree of `checkpoint`. `complete` says whether it is
 * proved to be the newest one.
 */
export type VerifiedKey = Completeness & {
  readonly kind: 'verified'
  readonly publicKey: string
  readonly vrfHash: string
  readonly index: number
  readonly checkpoint: SignedCheckpoint
}

/** A check that held, for a readable account. */
export interface CheckPassed {
  readonly check: Check
  readonly detail: string
}

/**
 * Checks a result in this order: form, origin and signature of the checkpoint, index, VRF proof and its hash, the
 * entry's path to the root, and last the key the app holds. `onPassed` hears of each check that held. Whether the
 * checkpoint fits those seen before is for `CheckpointPin` to say, and whether the answer is complete for the log's index. Throws `RangeError` for an id that is no uint64.
 */
export function verifyLookup(
  keys: LogKeys,
  claim: LookupClaim,
  result: LookupResult,
  onPassed: (passed: CheckPassed) => void = ignore,
): VerifiedKey | Refusal {
  const input = inputOf(claim)
  return settle(() => {
    const { publicKey, vrfHash, proof } = readResult(result)
    onPassed({ check: 'proof', detail: `leaf ${proof.index} with a path of ${proof.path.length} hashes` })

    const checkpoint = openSignedCheckpoint(keys, proof.checkpoint)
    onPassed({ check: 'signature', detail: `${checkpoint.origin} signed tree size ${checkpoint.treeSize}` })
    assertIndex(proof.index, checkpoint)
    onPassed({ check: 'index', detail: `leaf ${proof.index} is below tree size ${checkpoint.treeSize}` })

    const provenHash = proveHash(keys, input, proof)
    onPassed({ check: 'vrf', detail: `the VRF proof holds for ${claim.userId}_${claim.deviceId}` })
    assertHash(provenHash, vrfHash, claim.vrfHash)
    onPassed({ check: 'vrfHash', detail: 'it proves the hash of the answer' })

    assertIncluded(provenHash, publicKey, proof, checkpoint)
    onPassed({ check: 'inclusion', detail: `hash and key are leaf ${proof.index} under the signed root` })
    if (claim.publicKey !== undefined) {
      assertKey(claim.publicKey, publicKey)
      onPassed({ check: 'publicKey', detail: 'it is the key that was expected' })
    }
    return { kind: 'verified', publicKey, vrfHash, index: proof.index, checkpoint, complete: 'unindexed' }
  })
}

/** A result taken apart. `extra`, the VRF proof, is there. */
export interface ParsedResult {
  readonly publicKey: string
  readonly vrfHash: string
  readonly proof: Proof & { readonly extra: Uint8Array }
}

/** Throws `CheckFailed` at `proof` for whatever is not three texts of their forms: it comes from a stranger's JSON. */
export function readResult(result: unknown): ParsedResult {
  return during('proof', () => {
    const { publicKey, vrfHash, proof }: Partial<Record<string, unknown>> = { ...(result as object) }
    if (typeof publicKey !== 'string' || typeof vrfHash !== 'string' || typeof proof !== 'string') {
      throw new CheckFailed('proof', 'the answer lacks its publicKey, vrfHash or proof')
    }
    if (publicKey === '' || !isCanonicalBase64(publicKey)) {
      throw new CheckFailed('proof', 'publicKey is not base64')
    }
    if (decodeBase64(vrfHash).length !== VRF_HASH_BYTES)
      throw new CheckFailed('proof', 'vrfHash is not 64 bytes')
    const { extra, ...parsed } = parseProof(proof)
    if (extra === undefined) throw new CheckFailed('proof', 'the proof lacks its VRF proof')
    return { publicKey, vrfHash, proof: { ...parsed, extra } }
  })
}

/** The VRF hash, base64, that the proof proves for `input`. Throws `CheckFailed` at `vrf`. */
export function proveHash(
  keys: LogKeys,
  input: Uint8Array,
  { extra }: { readonly extra: Uint8Array },
): string {
  const proven = provenOf.get(keys) ?? new Map<string, string>()
  provenOf.set(keys, proven)
  const name = `${encodeBase64(input)} ${encodeBase64(extra)}`
  const known = proven.get(name)
  if (known !== undefined) return known
  const hash = encodeBase64(during('vrf', () => verifyVrf(keys.vrfPublicKey, input, extra)))
  if (proven.size >= PROVEN_MAX) proven.clear()
  proven.set(name, hash)
  return hash
}

/**
 * Hashes that were proven, by input and proof: a proof is the larger part of a lookup's work, and an app looks the
 * same devices up for each call.
 */
const provenOf = new WeakMap<LogKeys, Map<string, string>>()
const PROVEN_MAX = 500

/** Throws `CheckFailed` at `index` for a leaf beyond the tree. */
export function assertIndex(index: number, { treeSize }: SignedCheckpoint): void {
  if (index >= treeSize) throw new CheckFailed('index', `leaf ${index} is not in a tree of size ${treeSize}`)
}

/** Throws `CheckFailed` at `vrfHash`. */
export function assertHash(provenHash: string, statedHash: string, askedHash = statedHash): void {
  if (provenHash !== statedHash)
    throw new CheckFailed('vrfHash', 'the proof is of another hash than the answer states')
  if (provenHash !== askedHash) throw new CheckFailed('vrfHash', 'another hash was asked for')
}

/** Rebuilds the entry from hash and key and follows its path to the root. Throws `CheckFailed` at `inclusion`. */
export function assertIncluded(
  vrfHash: string,
  publicKey: string,
  { index, path }: { readonly index: number; readonly path: readonly Hash[] },
  checkpoint: SignedCheckpoint,
): void {
  const leafHash = hashLeaf(formatEntry(decodeBase64(vrfHash), publicKey))
  during('inclusion', () => verifyInclusion({ leafHash, index, path, ...treeHeadOf(checkpoint) }))
}

/** The VRF input of an identity. Throws `RangeError` for an id that is no uint64 in decimal. */
export function inputOf({ userId, deviceId }: Identity): Uint8Array {
  return vrfInput(parseUint64(userId), parseUint64(deviceId))
}

function assertKey(expected: string, publicKey: string): void {
  if (publicKey !== expected) throw new CheckFailed('publicKey', 'the log holds another key for this device')
}

function parseUint64(id: Uint64): bigint {
  if (typeof id === 'bigint') return id
  if (typeof id !== 'string' || !DECIMAL.test(id)) throw new RangeError(`${id} is not a uint64 in decimal`)
  return BigInt(id)
}

function ignore(): void {}

const DECIMAL = /^(?:0|[1-9][0-9]{0,19})$/
