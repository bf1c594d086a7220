/** The process of `check-process.ts`: takes one request, reports progress, then answers with a report or a refusal. */

import '../source-maps.ts'

import { messageOf, SignalError } from '../errors.ts'
import type { CheckMessage, CheckRequest } from './check-process.ts'
import { checkStore } from './store-check.ts'

process.once('message', (request: CheckRequest) => void answer(request))
process.once('disconnect', () => process.exit())

async function answer(request: CheckRequest): Promise<void> {
  let message: CheckMessage
  try {
    message = { kind: 'report', report: await checkStore(request, tellProgress) }
  } catch (error) {
    message = refusalOf(error)
  }
  process.send!(message, () => process.disconnect())
}

function tellProgress(done: number): void {
  process.send!({ kind: 'progress', done } satisfies CheckMessage)
}

function refusalOf(error: unknown): CheckMessage {
  if (error instanceof SignalError) return { kind: 'refusal', code: error.code, message: error.message }
  const message = messageOf(error)
  // LMDB found that its file is not what it wrote.
  if (message.startsWith('MDB_')) {
    return { kind: 'refusal', code: 'CHECKPOINT_INVALID', message: `the store's file is damaged: ${message}` }
  }
  return { kind: 'refusal', code: 'STORE_UNAVAILABLE', message: `the store can't be read: ${message}` }
}
