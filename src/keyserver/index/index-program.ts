/** The process of `index-process.ts`: makes one step after the other, and sends the rows of each in portions. */

import '../../source-maps.ts'

import { messageOf } from '../../errors.ts'
import { LmdbStore } from '../../store/engine/lmdb-store.ts'
import { type GrowRequest, type GrowthEnd, growIndex } from './index-growth.ts'
import type { MessageOfIndexer, MessageToIndexer } from './index-process.ts'
import type { MapRows } from './index-store.ts'

const [dataFolder = ''] = process.argv.slice(2)
let database: LmdbStore | undefined
/** Rows that are not sent yet. */
let rest: MapRows = []
let end: GrowthEnd | undefined

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
process.on('message', (message: MessageToIndexer) => send(answerTo(message)))
process.once('disconnect', () => process.exit(0))

function answerTo(message: MessageToIndexer): MessageOfIndexer {
  try {
    if (message.kind === 'grow') grow(message.request)
    if (rest.length > 0) return { kind: 'rows', rows: nextPortion() }
    return { kind: 'end', end: end! }
  } catch (error) {
    return { kind: 'failed', reason: messageOf(error) }
  }
}

function grow(request: GrowRequest): void {
  database ??= LmdbStore.openReadOnly(dataFolder)
  try {
    const grown = growIndex(database, request)
    rest = grown.rows
    end = grown.end
  } finally {
    // The writer can use again what this read.
    database.refresh()
  }
}

function nextPortion(): MapRows {
  let [count, bytes] = [0, 0]
  while (count < rest.length && bytes < PORTION_BYTES) bytes += rest[count++]![1].length
  const portion = rest.slice(0, count)
  rest = rest.slice(count)
  return portion
}

function send(message: MessageOfIndexer): void {
  process.send!(message, () => undefined)
}

const PORTION_BYTES = 192 * 1024
