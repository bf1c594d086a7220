/**
 * The flat form in which VRF jobs cross threads: one array of words out, one array of bytes back, both transferred.
 * A message then costs the event loop the same whether it holds one job or sixteen.
 */
import assert from 'node:assert'

import { VRF_HASH_BYTES } from '../../log/entry.ts'
import type { FastVrf } from '../../log/vrf-fast.ts'
import { type ProvenHash, VRF_PROOF_BYTES, vrfInput } from '../../log/vrf-suite.ts'

/** One user and device, and whether to compute the VRF hash alone or with its proof. */
export interface VrfJob {
  readonly userId: bigint
  readonly deviceId: bigint
  readonly wantsProof: boolean
}

/** A job's result; `vrfProof` is there exactly when the job wanted it. */
export type VrfResult = ProvenHash | { readonly vrfHash: Uint8Array; readonly vrfProof: undefined }

/** Bytes of one result: the hash, then the proof or as many unused bytes. */
export const RESULT_BYTES = VRF_HASH_BYTES + VRF_PROOF_BYTES
const JOB_WORDS = 3

/** Three words a job: user id, device id, 1 for a proof or 0. */
export function packJobs(jobs: readonly VrfJob[]): BigUint64Array<ArrayBuffer> {
  const words = new BigUint64Array(jobs.length * JOB_WORDS)
  for (const [index, job] of jobs.entries()) {
    words[index * JOB_WORDS] = job.userId
    words[index * JOB_WORDS + 1] = job.deviceId
    words[index * JOB_WORDS + 2] = job.wantsProof ? 1n : 0n
  }
  return words
}

/** Computes packed jobs: `RESULT_BYTES` for each, in their order. */
export function runJobs(vrf: FastVrf, words: BigUint64Array): Uint8Array<ArrayBuffer> {
  const results = new Uint8Array((words.length / JOB_WORDS) * RESULT_BYTES)
  for (let word = 0, offset = 0; word < words.length; word += JOB_WORDS, offset += RESULT_BYTES) {
    const input = vrfInput(words[word]!, words[word + 1]!)
    if (words[word + 2] === 0n) {
      results.set(vrf.hash(input), offset)
    } else {
      const { vrfHash, vrfProof } = vrf.prove(input)
      results.set(vrfHash, offset)
      results.set(vrfProof, offset + VRF_HASH_BYTES)
    }
  }
  return results
}

/** The result of each job, as copies: one kept for long must not hold the whole message in memory. */
export function unpackResults(jobs: readonly VrfJob[], results: Uint8Array): VrfResult[] {
  assert(results.length === jobs.length * RESULT_BYTES, 'vrf thread answered another number of jobs')
  return jobs.map((job, index) => {
    const offset = index * RESULT_BYTES
    const vrfHash = results.slice(offset, offset + VRF_HASH_BYTES)
    const vrfProof = job.wantsProof
      ? results.slice(offset + VRF_HASH_BYTES, offset + RESULT_BYTES)
      : undefined
    return { vrfHash, vrfProof }
  })
}
