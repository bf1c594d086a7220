/**
 * A process of its own for a disk without room (under `ulimit -f`): commits counted rows, two at a time and the second
 * at every distance from the first, until enough were refused. Prints what became of them as one line of JSON.
 */

import { setImmediate } from 'node:timers/promises'
import { Database, isEchoOfFailedCommit, isOutOfSpace } from '../../src/store/database.ts'

/** What the process prints. */
export interface FullDisk {
  /** Commits that found no room. */
  readonly refused: number
  /** How many of them came with the reason of the disk. */
  readonly withReason: number
  /** Commits refused because the one before them was. */
  readonly withoutPredecessor: number
  /** Refusals that are neither, and rejections beside them that are not recognised. */
  readonly unknown: readonly string[]
  /** Rows that were told durable. */
  readonly durable: number
  /** Rows that are in the table afterwards. */
  readonly stored: number
}

const REFUSALS = 120
const ROW_BYTES = 100_000

const database = Database.open(process.argv[2]!)
const rows = database.recordTable<Buffer>('rows')
const counters = database.recordTable<number>('counter')
const unknown: string[] = []
let refused = 0
let withReason = 0
let withoutPredecessor = 0
let durable = 0

process.on('unhandledRejection', error => {
  if (!isEchoOfFailedCommit(error)) unknown.push(`unhandled: ${error}`)
})
// lmdb-js prints each failure itself.
console.error = () => {}

const stored = () => counters.get('rows') ?? 0

async function append(row: number, bytes: number): Promise<void> {
  try {
    await database.commit(() => {
      if (stored() !== row) throw new Error('without its predecessor')
      rows.put(`${row}`, Buffer.alloc(bytes, row))
      counters.put('rows', row + 1)
    })
    durable = Math.max(durable, row + 1)
  } catch (error) {
    const { cause } = error as Error
    if (isOutOfSpace(error)) {
      refused++
      if (cause instanceof Error && 'code' in cause) withReason++
    } else if (cause instanceof Error && cause.message === 'without its predecessor') withoutPredecessor++
    else unknown.push(`${error}: ${cause}`)
  }
}

for (let round = 0; refused < REFUSALS; round++) {
  const row = stored()
  const first = append(row, ROW_BYTES)
  for (let turns = round % 8; turns > 0; turns--) await setImmediate()
  await Promise.all([first, append(row + 1, ROW_BYTES / 10)])
}
const outcome: FullDisk = { refused, withReason, withoutPredecessor, unknown, durable, stored: stored() }
process.stdout.write(`${JSON.stringify(outcome)}\n`)
process.exit(0)
