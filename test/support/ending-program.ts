/** Ends itself: `ending-program FOLDER` while nothing is written, `ending-program FOLDER in-change` from within a change. */

import { endProcess } from '../../src/server/process/end-process.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'

const [folder = '', moment] = process.argv.slice(2)
const database = LmdbStore.open(folder)
if (moment === 'in-change') await database.change(endProcess)
else if (moment === 'beside') {
  void database.change(() => undefined)
  endProcess()
} else {
  await database.change(() => undefined)
  endProcess()
}
