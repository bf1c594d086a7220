/** The thread of `vrf-pool.ts`: says it is ready, then answers each message of packed jobs with one of results. */
import '../../source-maps.ts'

import assert from 'node:assert'
import { parentPort, workerData } from 'node:worker_threads'

import { createFastVrf, type VrfKey } from '../../log/vrf-fast.ts'
import { runJobs } from './vrf-job.ts'

const port = parentPort
assert(port !== null, 'vrf-worker.ts runs only as a worker thread')

const vrf = await createFastVrf(workerData as VrfKey)

port.on('message', (words: BigUint64Array) => {
  const results = runJobs(vrf, words)
  port.postMessage(results, [results.buffer])
})
port.postMessage('ready')
