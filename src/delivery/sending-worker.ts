/** The thread of `sending-thread.ts`: sends the pushes of each message, and posts outcomes that come within some milliseconds together. */

import '../source-maps.ts'

import assert from 'node:assert'
import { parentPort, workerData } from 'node:worker_threads'
import type { DeliveryOutcome } from './outcome.ts'
import { openPushSenders, type PushSettings } from './push-senders.ts'
import type { Answered, Asked } from './sending-thread.ts'

const port = parentPort
assert(port !== null, 'sending-worker.ts runs only as a worker thread')

const senders: Readonly<Record<string, { send(push: unknown): Promise<DeliveryOutcome> }>> = openPushSenders(
  workerData as PushSettings,
)
let answered: Answered[] = []

port.on('message', (text: string) => {
  const { firstId, pushes }: Asked = JSON.parse(text)
  for (const [at, [name, push]] of pushes.entries()) {
    const answer = (outcome: DeliveryOutcome) => note(firstId + at, outcome)
    senders[name]!.send(push).then(answer, () => answer(FAILED))
  }
})

function note(id: number, outcome: DeliveryOutcome): void {
  if (answered.length === 0) setTimeout(postAnswers, TOGETHER_MS)
  answered.push([id, outcome])
}

function postAnswers(): void {
  port!.postMessage(JSON.stringify(answered))
  answered = []
}

/** Each message takes time of the main thread, and no push waits for the outcome of another. */
const TOGETHER_MS = 5
/** A fault of ours; other pushes may get through. */
const FAILED: DeliveryOutcome = { kind: 'retry', reason: 'failed', isOfMessage: true }
