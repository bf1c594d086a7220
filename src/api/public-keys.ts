/**
 * Lookups: `POST /api/get-public-keys` (LOG 4.2, its steps quoted below) and `POST /api/get-key-history`.
 * A whole response rests on one checkpoint; one bad target refuses all of it, so no key is given out beside a doubt.
 */

import { SignalError } from '../errors.ts'
import type { Hash } from '../log/hash.ts'
import { equalHashes } from '../log/hash.ts'
import { formatProof } from '../log/proof.ts'
import { BodyReader } from '../schema/json.ts'
import {
  GetKeyHistoryRequest,
  GetPublicKeysRequest,
  type KeyHistory,
  type PublicKeyResult,
} from '../schema/log.ts'
import type { LogHead } from '../store/log-store.ts'
import type { LoggedKey } from '../store/published-log.ts'
import type { HttpAnswer, HttpRequest, HttpRoute } from '../transport/http.ts'

export interface VrfOutput {
  readonly vrfHash: Uint8Array
  readonly vrfProof: Uint8Array
}

export interface PublicKeysWorld {
  readonly log: {
    verifiedHead(): LogHead
    newestKey(vrfHash: Uint8Array, treeSize: number): LoggedKey | undefined
    history(newest: LoggedKey): readonly LoggedKey[]
    inclusionPath(index: number, treeSize: number): readonly Hash[]
  }
  readonly vrf: {
    cached(userId: bigint, deviceId: bigint): VrfOutput | undefined
    prove(userId: bigint, deviceId: bigint): Promise<VrfOutput>
  }
}

export function publicKeyRoutes(world: PublicKeysWorld): readonly HttpRoute[] {
  return [
    { method: 'POST', path: '/api/get-public-keys', handle: request => getPublicKeys(world, request) },
    { method: 'POST', path: '/api/get-key-history', handle: request => getKeyHistory(world, request) },
  ]
}

function getPublicKeys(world: PublicKeysWorld, request: HttpRequest): HttpAnswer | Promise<HttpAnswer> {
  const { targets } = GET_PUBLIC_KEYS.read(request.body, request.contentType)
  // 1. Read the current checkpoint and verify its signature.
  const head = world.log.verifiedHead()
  // 2. For each target: a. look up; b. read the entry; c. parse it.
  const found = targets.map((target, at) =>
    findKey(world, head, target.publicKeyHash, `/targets/${at}/publicKeyHash`),
  )
  // d. Recompute the VRF proof; e. compare; f. build the inclusion proof. 3. Return.
  return withProofs(world, found, outputs => {
    const results = found.map((key, at): PublicKeyResult => {
      assertIdentity(key, outputs[at]!, `/targets/${at}/publicKeyHash`)
      return {
        publicKey: key.publicKey,
        vrfHash: targets[at]!.publicKeyHash,
        proof: proofText(world, head, key, outputs[at]!),
      }
    })
    return jsonAnswer({ results })
  })
}

function getKeyHistory(world: PublicKeysWorld, request: HttpRequest): HttpAnswer | Promise<HttpAnswer> {
  const { publicKeyHash } = GET_KEY_HISTORY.read(request.body, request.contentType)
  const head = world.log.verifiedHead()
  const newest = findKey(world, head, publicKeyHash, '/publicKeyHash')
  return withProofs(world, [newest], ([output]) => {
    const entries = world.log.history(newest).map(key => {
      assertIdentity(key, output!, '/publicKeyHash')
      return {
        index: String(key.index),
        publicKey: key.publicKey,
        proof: proofText(world, head, key, output!),
      }
    })
    const history: KeyHistory = { entries, treeSize: String(head.treeSize) }
    return jsonAnswer(history)
  })
}

/** Throws `UNKNOWN_PUBLIC_KEY_HASH`, or `IDENTITY_MISMATCH` when the entry found is not under the hash asked for. */
function findKey(world: PublicKeysWorld, head: LogHead, publicKeyHash: string, pointer: string): LoggedKey {
  const vrfHash = Buffer.from(publicKeyHash, 'base64')
  const key = world.log.newestKey(vrfHash, head.treeSize)
  if (key === undefined) throw unknownHash(pointer)
  if (equalHashes(key.vrfHash, vrfHash)) return key
  // The index knows a hash by its first bytes: an entry that shares them is an honest answer to another question.
  const isNeighbour = key.vrfHash.subarray(0, INDEXED_BYTES).every((byte, at) => byte === vrfHash[at])
  throw isNeighbour ? unknownHash(pointer) : identityMismatch(pointer)
}

/** Runs `answer` at once when every proof is at hand, else when the worker threads have made them. */
function withProofs(
  world: PublicKeysWorld,
  keys: readonly LoggedKey[],
  answer: (outputs: readonly VrfOutput[]) => HttpAnswer,
): HttpAnswer | Promise<HttpAnswer> {
  const outputs: (VrfOutput | Promise<VrfOutput>)[] = []
  let isComplete = true
  for (const { identity } of keys) {
    const cached = world.vrf.cached(identity.userId, identity.deviceId)
    if (cached === undefined) isComplete = false
    outputs.push(cached ?? world.vrf.prove(identity.userId, identity.deviceId))
  }
  if (isComplete) return answer(outputs as VrfOutput[])
  return Promise.all(outputs).then(answer)
}

/** The second check of LOG 1.4: the hash re-derived from the stored user and device is the hash in the log. */
function assertIdentity(key: LoggedKey, output: VrfOutput, pointer: string): void {
  if (!equalHashes(key.vrfHash, output.vrfHash)) throw identityMismatch(pointer)
}

function proofText(world: PublicKeysWorld, head: LogHead, key: LoggedKey, output: VrfOutput): string {
  return formatProof({
    extra: output.vrfProof,
    index: key.index,
    path: world.log.inclusionPath(key.index, head.treeSize),
    checkpoint: head.checkpoint,
  })
}

function jsonAnswer(body: object): HttpAnswer {
  return {
    status: 200,
    contentType: 'application/json; charset=utf-8',
    body: JSON.stringify(body),
    headers: NO_STORE,
  }
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
