/**
 * Lookups: `POST /api/get-public-keys` (LOG 4.2, its steps quoted below) and `POST /api/get-key-history`.
 * A whole response rests on one checkpoint; one bad target refuses all of it, so no key is given out beside a doubt.
 */

import type { Static } from 'typebox'
import { type ErrorCode, SignalError } from '../errors.ts'
import { LOOKUPS_KEPT_MAX } from '../limits.ts'
import { equalHashes } from '../log/hash.ts'
import { BodyReader } from '../schema/json.ts'
import { BoundedCache } from '../store/engine/bounded-cache.ts'
import type { HttpAnswer, HttpRequest, HttpRoute } from '../transport/route.ts'
import {
  formatKeyHistory,
  formatPublicKeys,
  GetKeyHistoryRequest,
  GetPublicKeysRequest,
  type ProvenKey,
} from './bodies.ts'
import type { IndexReader } from './index/index-reader.ts'
import { indexLookupRoute } from './index/index-route.ts'
import { INDEXED_HASH_BYTES } from './lookup-index.ts'
import { ProofTexts } from './proof-texts.ts'
import type { LoggedKey, PublishedLog, VerifiedHead } from './published-log.ts'

export interface VrfOutput {
  readonly vrfHash: Uint8Array
  readonly vrfProof: Uint8Array
}

export interface Prover {
  cached(userId: bigint, deviceId: bigint): VrfOutput | undefined
  prove(userId: bigint, deviceId: bigint): Promise<VrfOutput>
}

export type LookedUpLog = Pick<PublishedLog, 'verifiedHead' | 'newestKey' | 'history' | 'inclusionPath'>

export type LookedUpIndex = Pick<IndexReader, 'lookUp' | 'lookUpAll'>

/** Proven keys under these hashes: the JSON that answers `POST /api/get-public-keys`. */
export type LookUpKeys = (request: Static<typeof GetPublicKeysRequest>) => string | Promise<string>

export function keyLookups(log: LookedUpLog, vrf: Prover, index: LookedUpIndex): LookUpKeys {
  const lookups = new Lookups(log, vrf, index)
  return request => lookups.publicKeysOf(request)
}

/** Lookups in the log, and in its index. */
export function lookupRoutes(log: LookedUpLog, vrf: Prover, index: LookedUpIndex): readonly HttpRoute[] {
  const lookups = new Lookups(log, vrf, index)
  return [
    indexLookupRoute(index),
    { ...LOOKUP, path: '/api/get-public-keys', handle: request => lookups.getPublicKeys(request) },
    { ...LOOKUP, path: '/api/get-key-history', handle: request => lookups.getKeyHistory(request) },
  ]
}

/** A key that was found in the tree of one head. */
interface FoundKey {
  readonly key: LoggedKey
  readonly publicKeyHash: string
  /** Its proof in that tree as the inside of a JSON string, once it was made. */
  proof: string | undefined
}

class Lookups {
  readonly #log: LookedUpLog
  readonly #vrf: Prover
  readonly #index: LookedUpIndex
  readonly #proofs: ProofTexts
  /** What was found under a hash in the tree of this head, and compared. */
  readonly #found = new BoundedCache<string, FoundKey>(LOOKUPS_KEPT_MAX)
  #foundUnder: VerifiedHead | undefined

  constructor(log: LookedUpLog, vrf: Prover, index: LookedUpIndex) {
    this.#log = log
    this.#vrf = vrf
    this.#index = index
    this.#proofs = new ProofTexts((key, head) => log.inclusionPath(key, head))
  }

  getPublicKeys(request: HttpRequest): HttpAnswer | Promise<HttpAnswer> {
    return answered(this.publicKeysOf(GET_PUBLIC_KEYS.read(request.body, request.contentType)))
  }

  publicKeysOf({ targets, index }: Parameters<LookUpKeys>[0]): string | Promise<string> {
    // 1. Read the current checkpoint and verify its signature.
    const head = this.#log.verifiedHead()
    // 2. For each target: a. look up; b. read the entry; c. parse it.
    const found = targets.map(({ publicKeyHash }, at) => this.#find(publicKeyHash, head, at))
    // d. Recompute the VRF proof; e. compare; f. build the inclusion proof. 3. Return.
    return this.#withVrf(found, outputs =>
      formatPublicKeys(
        found.map((each, at) => this.#prove(each, outputs[at]!, head, at)),
        index ? this.#index.lookUpAll(found.map(({ publicKeyHash }) => publicKeyHash)) : undefined,
      ),
    )
  }

  getKeyHistory(request: HttpRequest): HttpAnswer | Promise<HttpAnswer> {
    const { publicKeyHash } = GET_KEY_HISTORY.read(request.body, request.contentType)
    const head = this.#log.verifiedHead()
    const newest = this.#find(publicKeyHash, head, undefined)
    const found = this.#log.history(newest.key).map(key => ({ key, publicKeyHash, proof: undefined }))
    const text = this.#withVrf(found, outputs => {
      const keys = found.map((each, at) => this.#prove(each, outputs[at]!, head, undefined))
      return formatKeyHistory(keys, head.treeSize)
    })
    return answered(text)
  }

  /**
   * Throws `UNKNOWN_PUBLIC_KEY_HASH`, or `IDENTITY_MISMATCH` when the entry found is not under the hash asked for.
   * `target` is its position in the request, undefined where there is but one.
   */
  #find(publicKeyHash: string, head: VerifiedHead, target: number | undefined): FoundKey {
    if (head !== this.#foundUnder) {
      this.#found.clear()
      this.#foundUnder = head
    }
    const kept = this.#found.get(publicKeyHash)
    if (kept !== undefined) return kept
    const vrfHash = Buffer.from(publicKeyHash, 'base64')
    const key = this.#log.newestKey(vrfHash, head.treeSize)
    if (key === undefined) throw unknownHash(target)
    if (equalHashes(key.vrfHash, vrfHash)) {
      const found: FoundKey = { key, publicKeyHash, proof: undefined }
      this.#found.set(publicKeyHash, found)
      return found
    }
    // The index knows a hash by its first bytes: an entry that shares them is an honest answer to another question.
    const isNeighbour = key.vrfHash.subarray(0, INDEXED_HASH_BYTES).every((byte, at) => byte === vrfHash[at])
    throw isNeighbour ? unknownHash(target) : identityMismatch(target)
  }

  /**
   * Runs `answer` with the VRF output of each key: at once when all are at hand, else when the worker threads have
   * made them. A text stands for an output that was compared before: it is the proof, or its start.
   */
  #withVrf(
    found: readonly FoundKey[],
    answer: (outputs: readonly (VrfOutput | string)[]) => string,
  ): string | Promise<string> {
    const outputs: (VrfOutput | string)[] = []
    for (const { key, proof } of found) {
      const { userId, deviceId } = key.identity
      const output = proof ?? this.#proofs.startOf(key.index) ?? this.#vrf.cached(userId, deviceId)
      if (output === undefined) return this.#computeVrf(found).then(answer)
      outputs.push(output)
    }
    return answer(outputs)
  }

  #computeVrf(found: readonly FoundKey[]): Promise<VrfOutput[]> {
    return Promise.all(found.map(({ key }) => this.#vrf.prove(key.identity.userId, key.identity.deviceId)))
  }

  #prove(
    found: FoundKey,
    output: VrfOutput | string,
    head: VerifiedHead,
    target: number | undefined,
  ): ProvenKey {
    const { key, publicKeyHash } = found
    found.proof ??= this.#proofs.inJson(key, comparedProof(key, output, target), head)
    return { index: key.index, publicKey: key.publicKey, vrfHash: publicKeyHash, proof: found.proof }
  }
}

/** The second check of LOG 1.4: the hash re-derived from the stored user and device is the hash in the log. */
function comparedProof(
  key: LoggedKey,
  output: VrfOutput | string,
  target: number | undefined,
): string | Uint8Array {
  if (typeof output === 'string') return output
  if (!equalHashes(key.vrfHash, output.vrfHash)) throw identityMismatch(target)
  return output.vrfProof
}

/** At once where the text is at hand. */
function answered(text: string | Promise<string>): HttpAnswer | Promise<HttpAnswer> {
  return typeof text === 'string' ? jsonAnswer(text) : text.then(jsonAnswer)
}

function jsonAnswer(body: string): HttpAnswer {
  return { status: 200, contentType: 'application/json; charset=utf-8', body, noStore: true }
}

function unknownHash(target: number | undefined): SignalError {
  return refusal('UNKNOWN_PUBLIC_KEY_HASH', 'no key is logged under this hash', target)
}

function identityMismatch(target: number | undefined): SignalError {
  return refusal(
    'IDENTITY_MISMATCH',
    'the log entry is not of the identity that this hash stands for',
    target,
  )
}

function refusal(code: ErrorCode, detail: string, target: number | undefined): SignalError {
  const pointer = target === undefined ? '/publicKeyHash' : `/targets/${target}/publicKeyHash`
  return new SignalError(code, detail, { errors: [{ pointer, code, detail }] })
}

const GET_PUBLIC_KEYS = new BodyReader(GetPublicKeysRequest)
const GET_KEY_HISTORY = new BodyReader(GetKeyHistoryRequest)
/** Anyone may ask, and is answered alike; a crowd of signed-in people behind one address is counted one by one. */
const LOOKUP = { method: 'POST', isLookup: true, countsFor: 'good-token' } as const
