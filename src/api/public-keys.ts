/**
 * Lookups: `POST /api/get-public-keys` (LOG 4.2, its steps quoted below) and `POST /api/get-key-history`.
 * A whole response rests on one checkpoint; one bad target refuses all of it, so no key is given out beside a doubt.
 */

import { SignalError } from '../errors.ts'
import type { Hash } from '../log/hash.ts'
import { equalHashes } from '../log/hash.ts'
import { BodyReader } from '../schema/json.ts'
import {
  escapeForJson,
  formatKeyHistory,
  formatPublicKeys,
  GetKeyHistoryRequest,
  GetPublicKeysRequest,
  type ProvenKey,
} from '../schema/log.ts'
import type { LoggedKey, VerifiedHead } from '../store/published-log.ts'
import type { HttpAnswer, HttpRequest, HttpRoute } from '../transport/http.ts'
import { PathLines } from './path-lines.ts'

export interface VrfOutput {
  readonly vrfHash: Uint8Array
  readonly vrfProof: Uint8Array
}

export interface PublicKeysWorld {
  readonly log: {
    verifiedHead(): VerifiedHead
    newestKey(vrfHash: Uint8Array, treeSize: number): LoggedKey | undefined
    history(newest: LoggedKey): readonly LoggedKey[]
    inclusionPath(key: LoggedKey, head: VerifiedHead): readonly Hash[]
  }
  readonly vrf: {
    cached(userId: bigint, deviceId: bigint): VrfOutput | undefined
    prove(userId: bigint, deviceId: bigint): Promise<VrfOutput>
  }
}

export function publicKeyRoutes(world: PublicKeysWorld): readonly HttpRoute[] {
  const lookups = new Lookups(world)
  return [
    { method: 'POST', path: '/api/get-public-keys', handle: request => lookups.getPublicKeys(request) },
    { method: 'POST', path: '/api/get-key-history', handle: request => lookups.getKeyHistory(request) },
  ]
}

/** A key that a target asked for; `pointer` names the target in errors. */
interface FoundKey {
  readonly key: LoggedKey
  readonly pointer: string
}

class Lookups {
  readonly #log: PublicKeysWorld['log']
  readonly #vrf: PublicKeysWorld['vrf']
  readonly #pathLines: PathLines
  #checkpoint = ''
  #checkpointInJson = ''

  constructor({ log, vrf }: PublicKeysWorld) {
    this.#log = log
    this.#vrf = vrf
    this.#pathLines = new PathLines((key, head) => log.inclusionPath(key, head))
  }

  getPublicKeys(request: HttpRequest): HttpAnswer | Promise<HttpAnswer> {
    const { targets } = GET_PUBLIC_KEYS.read(request.body, request.contentType)
    // 1. Read the current checkpoint and verify its signature.
    const head = this.#log.verifiedHead()
    // 2. For each target: a. look up; b. read the entry; c. parse it.
    const found = targets.map((target, at) =>
      this.#find(target.publicKeyHash, head, `/targets/${at}/publicKeyHash`),
    )
    // d. Recompute the VRF proof; e. compare; f. build the inclusion proof. 3. Return.
    return this.#withVrf(found, outputs =>
      jsonAnswer(formatPublicKeys(found.map((each, at) => this.#prove(each, outputs[at]!, head)))),
    )
  }

  getKeyHistory(request: HttpRequest): HttpAnswer | Promise<HttpAnswer> {
    const { publicKeyHash } = GET_KEY_HISTORY.read(request.body, request.contentType)
    const head = this.#log.verifiedHead()
    const newest = this.#find(publicKeyHash, head, '/publicKeyHash')
    return this.#withVrf([newest], ([output]) => {
      const keys = this.#log
        .history(newest.key)
        .map(key => this.#prove({ key, pointer: newest.pointer }, output!, head))
      return jsonAnswer(formatKeyHistory(keys, head.treeSize))
    })
  }

  /** Throws `UNKNOWN_PUBLIC_KEY_HASH`, or `IDENTITY_MISMATCH` when the entry found is not under the hash asked for. */
  #find(publicKeyHash: string, head: VerifiedHead, pointer: string): FoundKey {
    const vrfHash = Buffer.from(publicKeyHash, 'base64')
    const key = this.#log.newestKey(vrfHash, head.treeSize)
    if (key === undefined) throw unknownHash(pointer)
    if (equalHashes(key.vrfHash, vrfHash)) return { key, pointer }
    // The index knows a hash by its first bytes: an entry that shares them is an honest answer to another question.
    const isNeighbour = key.vrfHash.subarray(0, INDEXED_BYTES).every((byte, at) => byte === vrfHash[at])
    throw isNeighbour ? unknownHash(pointer) : identityMismatch(pointer)
  }

  /** Runs `answer` at once when every VRF proof is at hand, else when the worker threads have made them. */
  #withVrf(
    found: readonly FoundKey[],
    answer: (outputs: readonly VrfOutput[]) => HttpAnswer,
  ): HttpAnswer | Promise<HttpAnswer> {
    const outputs: VrfOutput[] = []
    for (const { key } of found) {
      const { userId, deviceId } = key.identity
      const cached = this.#vrf.cached(userId, deviceId)
      if (cached === undefined) return this.#proveAll(found).then(answer)
      outputs.push(cached)
    }
    return answer(outputs)
  }

  #proveAll(found: readonly FoundKey[]): Promise<VrfOutput[]> {
    return Promise.all(found.map(({ key }) => this.#vrf.prove(key.identity.userId, key.identity.deviceId)))
  }

  #prove({ key, pointer }: FoundKey, output: VrfOutput, head: VerifiedHead): ProvenKey {
    // The second check of LOG 1.4: the hash re-derived from the stored user and device is the hash in the log.
    if (!equalHashes(key.vrfHash, output.vrfHash)) throw identityMismatch(pointer)
    return {
      index: key.index,
      publicKey: key.publicKey,
      vrfHash: base64(key.vrfHash),
      vrfProof: base64(output.vrfProof),
      pathLines: this.#pathLines.inJson(key, head),
      checkpoint: this.#inJson(head.checkpoint),
    }
  }

  #inJson(checkpoint: string): string {
    if (checkpoint !== this.#checkpoint) {
      this.#checkpoint = checkpoint
      this.#checkpointInJson = escapeForJson(checkpoint)
    }
    return this.#checkpointInJson
  }
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')
}

function jsonAnswer(body: string): HttpAnswer {
  return { status: 200, contentType: 'application/json; charset=utf-8', body, headers: NO_STORE }
}

function unknownHash(pointer: string): SignalError {
  const detail = 'no key is logged under this hash'
  return new SignalError('UNKNOWN_PUBLIC_KEY_HASH', detail, {
    errors: [{ pointer, code: 'UNKNOWN_PUBLIC_KEY_HASH', detail }],
  })
}

function identityMismatch(pointer: string): SignalError {
  const detail = 'the log entry is not of the identity that this hash stands for'
  return new SignalError('IDENTITY_MISMATCH', detail, {
    errors: [{ pointer, code: 'IDENTITY_MISMATCH', detail }],
  })
}

const GET_PUBLIC_KEYS = new BodyReader(GetPublicKeysRequest)
const GET_KEY_HISTORY = new BodyReader(GetKeyHistoryRequest)
const NO_STORE = [['Cache-Control', 'no-store']] as const
/** Bytes of a hash that the lookup index holds. */
const INDEXED_BYTES = 16
