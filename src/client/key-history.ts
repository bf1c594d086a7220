/**
 * The own-key monitor: every key that was ever logged under a device's hash (`POST /api/get-key-history`, contract
 * 9), proven entry by entry and held against the keys the device itself has made. A second key under one hash is a
 * legal tree; only its owner can tell that it is foreign.
 */
import { isOfSameHash } from '../log/vrf-verify.ts'
import type { LogKeys } from './log-keys.ts'
import {
  assertHash,
  assertIncluded,
  assertIndex,
  type Identity,
  inputOf,
  type ParsedResult,
  proveHash,
  readResult,
} from './lookup.ts'
import { openSignedCheckpoint, type SignedCheckpoint } from './signed-checkpoint.ts'
import { CheckFailed, type Refusal, settle } from './verdict.ts'

/** The answer: entries oldest first, numbers as decimal texts. */
export interface KeyHistory {
  readonly entries: readonly KeyHistoryEntry[]
  readonly treeSize: string
}

export interface KeyHistoryEntry {
  readonly index: string
  readonly publicKey: string
  readonly proof: string
}

/** The device with this history. */
export interface HistoryClaim extends Identity {
  /** The hash that was asked for, base64 of 64 bytes. */
  readonly vrfHash: string
}

/** A key and the leaf that holds it. */
export interface LoggedKey {
  readonly index: number
  readonly publicKey: string
}

/**
 * Each of these entries, at least one, is in the log under the one hash; only the server vouches that there are no
 * more.
 */
export interface VerifiedHistory {
  readonly kind: 'verified'
  readonly entries: readonly LoggedKey[]
  readonly checkpoint: SignedCheckpoint
}

/** A device's findings about the keys logged in its name. */
export type OwnKeys =
  | { readonly kind: 'clean' }
  | {
      readonly kind: 'alert'
      /** Logged, but not by this device: someone can be calling in its name. */
      readonly foreign: readonly LoggedKey[]
      /** Made by this device, but not logged: other users get no key, or an older one. */
      readonly missing: readonly string[]
      /** Own, but not the newest own key, although other users get it. */
      readonly outdated: readonly LoggedKey[]
    }

/**
 * Checks a history: one checkpoint, ascending leaves, and for each entry the VRF proof of `claim`, the same hash and
 * the path to the root. Refused at `history` for an answer that is no such list, else at the check that failed.
 * Throws `RangeError` for an id that is no uint64.
 */
export function verifyKeyHistory(
  keys: LogKeys,
  claim: HistoryClaim,
  history: KeyHistory,
): VerifiedHistory | Refusal {
  const input = inputOf(claim)
  return settle(() => {
    const results = readHistory(history, claim.vrfHash)
    const checkpoint = openSignedCheckpoint(keys, oneCheckpoint(results))
    if (history.treeSize !== `${checkpoint.treeSize}`) {
      throw new CheckFailed(
        'history',
        `it says tree size ${history.treeSize}, its proofs ${checkpoint.treeSize}`,
      )
    }
    assertHashes(keys, input, results, claim.vrfHash)
    for (const { publicKey, proof } of results) {
      assertIndex(proof.index, checkpoint)
      assertIncluded(claim.vrfHash, publicKey, proof, checkpoint)
    }
    const entries = results.map(({ publicKey, proof }) => ({ index: proof.index, publicKey }))
    return { kind: 'verified', entries, checkpoint }
  })
}

/**
 * Compares the entries logged in a device's name with the keys it has made, oldest first, the last being the one in
 * use. `given` is the key that lookups return to other users: the newest entry, unless an answer shows otherwise.
 */
export function compareOwnKeys(
  entries: readonly LoggedKey[],
  ownKeys: readonly string[],
  given: LoggedKey | undefined = entries.at(-1),
): OwnKeys {
  const logged = new Set(entries.map(({ publicKey }) => publicKey))
  const foreign = entries.filter(({ publicKey }) => !ownKeys.includes(publicKey))
  const missing = ownKeys.filter(publicKey => !logged.has(publicKey))
  const isOutdated =
    given !== undefined && ownKeys.includes(given.publicKey) && given.publicKey !== ownKeys.at(-1)
  const outdated = isOutdated ? [{ index: given.index, publicKey: given.publicKey }] : []
  if (foreign.length + missing.length + outdated.length === 0) return { kind: 'clean' }
  return { kind: 'alert', foreign, missing, outdated }
}

/** The answer is a stranger's JSON until it is checked. */
function readHistory(history: unknown, vrfHash: string): ParsedResult[] {
  const { entries, treeSize }: Partial<KeyHistory> = { ...(history as object) }
  if (!Array.isArray(entries) || entries.length === 0 || typeof treeSize !== 'string') {
    throw new CheckFailed('history', 'the answer has no entries')
  }
  let previous = -1
  return entries.map((entry: unknown) => {
    const result = readResult({ ...(entry as object), vrfHash })
    const { index } = result.proof
    if ((entry as KeyHistoryEntry).index !== `${index}`) {
      throw new CheckFailed('history', `an entry has the proof of leaf ${index} and another index`)
    }
    if (index <= previous) throw new CheckFailed('history', `leaf ${index} comes after leaf ${previous}`)
    previous = index
    return result
  })
}

function oneCheckpoint(results: readonly ParsedResult[]): string {
  const notes = new Set(results.map(({ proof }) => proof.checkpoint))
  if (notes.size > 1) throw new CheckFailed('history', 'its entries rest on several checkpoints')
  return results[0]!.proof.checkpoint
}

/**
 * Verifies one VRF proof, which takes milliseconds, and checks only that the rest have the same hash. A server can
 * make any number of different proofs for one hash, so to verify each would let it keep a phone busy.
 */
function assertHashes(
  keys: LogKeys,
  input: Uint8Array,
  results: readonly ParsedResult[],
  vrfHash: string,
): void {
  const { proof: first } = results[0]!
  assertHash(proveHash(keys, input, first), vrfHash)
  for (const { proof } of results) {
    if (isOfSameHash(first.extra, proof.extra)) continue
    throw new CheckFailed('vrf', `the VRF proof of leaf ${proof.index} is not of the hash that was asked for`)
  }
}
