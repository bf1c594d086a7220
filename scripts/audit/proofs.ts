/**
 * Checks proofs that somebody got from the log's API (LOG 4.4, step 4): a file with a JSON object per line,
 * `{userID, deviceID, publicKey, vrfHash, proof}`, where the last three are a lookup result and the first two say
 * whose key was asked for.
 */

import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { decodeBase64, encodeBase64 } from '#primitives'
import { SignalError } from '../../src/errors.ts'
import { formatEntry } from '../../src/log/entry.ts'
import { hashLeaf } from '../../src/log/hash.ts'
import { verifyInclusion } from '../../src/log/inclusion.ts'
import type { VerifierKey } from '../../src/log/note.ts'
import { parseProof } from '../../src/log/proof.ts'
import { verifyVrf, vrfInput } from '../../src/log/vrf.ts'
import { AuditFailure, broken, messageOf, unchecked } from './finding.ts'
import { openHead, type SignedHead } from './history.ts'

export interface LogKeys {
  readonly verifier: VerifierKey
  /** 32 bytes. */
  readonly vrfPublicKey: Uint8Array
}

/** A lookup result and whose key it is said to be. */
export interface ClaimedKey {
  readonly userId: bigint
  readonly deviceId: bigint
  readonly publicKey: string
  readonly vrfHash: string
  readonly proof: string
}

/**
 * Checks every line of the file: gives undefined for a proof that holds and its failure for another. The checkpoint
 * of each good proof is handed to `compare`, once where they repeat. Throws `AuditFailure` when the file cannot be read.
 */
export async function* checkProofs(
  path: string,
  keys: LogKeys,
  compare: (head: SignedHead) => Promise<void>,
): AsyncGenerator<AuditFailure | undefined> {
  let line = 0
  let compared = ''
  for await (const text of readLines(path)) {
    line++
    try {
      const head = verifyClaim(parseClaim(text), keys)
      if (head.note !== compared) await compare(head)
      compared = head.note
      yield undefined
    } catch (error) {
      if (!(error instanceof AuditFailure)) throw error
      yield error.as('proofs', { line })
    }
  }
}

/** Reads a line of the file. Throws `AuditFailure`, not checked, for any other form; the result itself may be wrong. */
export function parseClaim(text: string): ClaimedKey {
  const claim = parseObject(text)
  const [publicKey, vrfHash, proof] = ['publicKey', 'vrfHash', 'proof'].map(name => {
    const value = claim[name]
    if (typeof value !== 'string') throw unchecked('proofs', `${name} is not a text`)
    return value
  })
  return {
    userId: uint64(claim, 'userID'),
    deviceId: uint64(claim, 'deviceID'),
    publicKey: publicKey!,
    vrfHash: vrfHash!,
    proof: proof!,
  }
}

/**
 * The tree in which the claimed key is proven to be. Throws `AuditFailure` unless the VRF proof holds for user and
 * device, its hash is the result's, and the entry made of hash and key is in a tree that the log signed.
 */
export function verifyClaim(claim: ClaimedKey, { verifier, vrfPublicKey }: LogKeys): SignedHead {
  const { userId, deviceId, publicKey, vrfHash } = claim
  try {
    const { extra, index, path, checkpoint } = parseProof(claim.proof)
    if (extra === undefined) throw new SignalError('PROOF_INVALID', 'proof has no VRF proof in it')
    const provenHash = verifyVrf(vrfPublicKey, vrfInput(userId, deviceId), extra)
    if (encodeBase64(provenHash) !== encodeBase64(decodeBase64(vrfHash))) {
      throw new SignalError('PROOF_INVALID', 'VRF proof is of another hash than vrfHash')
    }
    const head = openHead(Buffer.from(checkpoint), verifier)
    const leafHash = hashLeaf(formatEntry(provenHash, publicKey))
    verifyInclusion({ leafHash, index, path, treeSize: head.treeSize, rootHash: head.rootHash })
    return head
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
    throw broken('proofs', error.message)
  }
}

async function* readLines(path: string): AsyncGenerator<string> {
  try {
    yield* createInterface({ input: createReadStream(path), crlfDelay: Infinity })
  } catch (error) {
    throw unchecked('proofs', `the file of proofs cannot be read: ${messageOf(error)}`)
  }
}

function parseObject(text: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw unchecked('proofs', 'the line is not JSON')
  }
  if (typeof value !== 'object' || value === null) throw unchecked('proofs', 'the line is not a JSON object')
  return value as Record<string, unknown>
}

/** A decimal text, or a JSON number where that is exact. */
function uint64(claim: Record<string, unknown>, name: string): bigint {
  const value = claim[name]
  const text = typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value
  const number = typeof text === 'string' && UINT64_FORM.test(text) ? BigInt(text) : -1n
  if (number < 0n || number >= 2n ** 64n) {
    throw unchecked('proofs', `${name} is not a number from 0 to 2^64 - 1, as a text where above 2^53`)
  }
  return number
}

const UINT64_FORM = /^(?:0|[1-9][0-9]{0,19})$/
