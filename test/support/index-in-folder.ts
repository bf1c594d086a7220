/** An index over the log in a data directory of a stopped development server, signed with the key it has there. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import {
  INDEX_BUNDLES,
  INDEX_HEAD,
  INDEX_ROWS,
  INDEX_STATE,
  INDEX_TILES,
  SHOWN,
} from '../../src/keyserver/index/index-tables.ts'
import { LogStore } from '../../src/keyserver/log-store.ts'
import { parseSignerKey } from '../../src/log/note.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { FilledIndex } from './filled-index.ts'

/** Puts an index of so many leaves in the place of what the server has begun. Resolves with its checkpoint. */
export async function putIndex(dataFolder: string, leaves = 3): Promise<string> {
  const keys = parseEnv(readFileSync(join(dataFolder, 'development-keys.env'), 'utf8'))
  const database = LmdbStore.open(dataFolder)
  for (const table of [INDEX_ROWS, INDEX_TILES, INDEX_BUNDLES, INDEX_HEAD, INDEX_STATE])
    await database.clear(table)
  const index = new FilledIndex(database, parseSignerKey(keys.KT_INDEX_PRIVATE_KEY!))
  const head = new LogStore(database).shownHead()!
  for (let leaf = 0; leaf < leaves; leaf++) await index.addLeaf(head)
  const { checkpoint } = database.view(view => view.get(INDEX_HEAD, SHOWN))!
  await database.close()
  return checkpoint
}
