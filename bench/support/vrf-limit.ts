/** Program, the limit of first lookups: threads that do nothing but prove. */

import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { generateVrfSecret, vrfInput, vrfPublicKey } from '../../src/log/vrf.ts'
import { createFastVrf } from '../../src/log/vrf-fast.ts'
import { serveParent } from './program.ts'
import { sum } from './statistics.ts'

export interface VrfLimitProtocol {
  readonly setup: Record<string, never>
  readonly request: { readonly threads: number; readonly seconds: number }
  /** The sum of all threads, with the proofs made before the count began. */
  readonly answer: { readonly perSecond: number; readonly proofs: number }
}

const WARM_UP_PROOFS = 500n

if (isMainThread) serveParent<VrfLimitProtocol>(async () => proveInThreads)
else parentPort?.postMessage(await prove(workerData as number))

async function proveInThreads({
  threads,
  seconds,
}: VrfLimitProtocol['request']): Promise<VrfLimitProtocol['answer']> {
  const counted = sum(await Promise.all(Array.from({ length: threads }, () => runThread(seconds))))
  return { perSecond: counted / seconds, proofs: counted + threads * Number(WARM_UP_PROOFS) }
}

function runThread(seconds: number): Promise<number> {
  return new Promise((resolve, reject) => {
    new Worker(new URL(import.meta.url), { workerData: seconds })
      .once('message', resolve)
      .once('error', reject)
  })
}

/** How many proofs this thread made, counted from when it was warm. */
async function prove(seconds: number): Promise<number> {
  const secret = generateVrfSecret(new Uint8Array(64).fill(7))
  const vrf = await createFastVrf({ secret, publicKey: vrfPublicKey(secret) })
  for (let user = 0n; user < WARM_UP_PROOFS; user++) vrf.prove(vrfInput(user, 1n))
  const end = performance.now() + seconds * 1000
  let proofs = 0
  for (; performance.now() < end; proofs++) vrf.prove(vrfInput(BigInt(proofs), 2n))
  return proofs
}
