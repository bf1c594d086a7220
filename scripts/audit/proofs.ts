/**
 * Checks proofs from the log's API (LOG 4.4, step 4): a file with a JSON object per line, `{userID, deviceID,
 * publicKey, vrfHash, proof}`, where the last three are a lookup result and the first two name the key's user and
 * device.
 */

import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import type { LogKeys } from '../../src/client/log-keys.ts'
import { type LookupResult, verifyLookup } from '../../src/client/lookup.ts'
import { treeHeadOf } from '../../src/client/signed-checkpoint.ts'
import { messageOf, SignalError } from '../../src/errors.ts'
import { parseProof } from '../../src/log/proof.ts'
import { AuditFailure, type FindingFacts, pending, unchecked } from './finding.ts'
import type { SignedHead } from './history.ts'

/** A lookup result and whose key it is said to be. */
export interface ClaimedKey extends LookupResult {
  readonly userId: bigint
  readonly deviceId: bigint
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
function parseClaim(text: string): ClaimedKey {
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
function verifyClaim(claim: ClaimedKey, keys: LogKeys): SignedHead {
  const { userId, deviceId } = claim
  const verdict = verifyLookup(keys, { userId, deviceId }, claim)
  if (verdict.kind === 'refused') {
    throw pending('proofs', `${verdict.check}: ${verdict.detail}`, indexIn(claim.proof))
  }
  const { checkpoint } = verdict
  return { ...treeHeadOf(checkpoint), note: checkpoint.note }
}

/** The leaf index that a proof names, where it is one. */
function indexIn(proof: string): FindingFacts {
  try {
    return { index: String(parseProof(proof).index) }
  } catch (error) {
    if (error instanceof SignalError) return {}
    throw error
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
