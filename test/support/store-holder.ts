/**
 * A process of its own for tests of the data directory's lock: says `loaded`, waits for a line, opens the store in the
 * folder it is given, says `open` or `refused` (before that `waits`), and then counts in it, commit after commit, until its input ends.
 */

import { createInterface } from 'node:readline'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { plainTextKeyTable } from './plain-tables.ts'

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
process.stdout.write('loaded\n')
await lines.next()
let database: LmdbStore
try {
  database = LmdbStore.open(process.argv[2]!, {
    onWait: sentence => void process.stdout.write(`waits: ${sentence}\n`),
  })
} catch (error) {
  const { code, message } = error as { readonly code?: unknown; readonly message: string }
  process.stdout.write(`refused ${code}: ${message}\n`)
  process.exit(0)
}
process.stdout.write('open\n')
const COUNTERS = plainTextKeyTable<number>('counter')
let isOver = false
void lines.next().then(() => {
  isOver = true
})
for (let count = 1; !isOver; count++) await database.change(change => change.put(COUNTERS, 'count', count))
await database.close()
process.exit(0)
