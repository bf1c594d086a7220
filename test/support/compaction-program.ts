/**
 * Another process at a store: `compaction-program FOLDER compact [STEP]` compacts it, kills itself as it takes that step, and
 * prints what came of it, or the code that it failed with; `compaction-program FOLDER add` adds a row to the table `values`, and
 * prints how many there were.
 */

import { compactStore } from '../../src/store/engine/compaction.ts'
import { indexKey } from '../../src/store/engine/keys.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { plainBytesTable } from './plain-tables.ts'

const VALUES = plainBytesTable('values')

const [folder = '', act, deadly] = process.argv.slice(2)
process.stdout.write(JSON.stringify(await (act === 'add' ? add() : compact())))

async function compact(): Promise<object> {
  try {
    const compaction = await compactStore(folder, {
      onStep(step) {
        if (step === deadly) process.kill(process.pid, 'SIGKILL')
      },
    })
    return compaction ?? { kind: 'none' }
  } catch (error) {
    return { code: (error as { readonly code?: unknown }).code }
  }
}

async function add(): Promise<object> {
  const database = LmdbStore.open(folder)
  const rows = database.view(view => view.count(VALUES))
  await database.change(change => change.put(VALUES, indexKey(1), Buffer.from('one more')))
  await database.close()
  return { rows }
}
