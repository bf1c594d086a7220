/** Reads who made a log and how far it is, in a process of its own: a damaged file can end the one that reads it. */

import { SignalError } from '../../src/errors.ts'
import {
  INDEX_HEAD,
  HEAD as INDEX_HEAD_ROW,
  INDEX_STATE,
  MAP,
  SHOWN,
} from '../../src/keyserver/index/index-tables.ts'
import { HEAD, type LogMaker, MAKER } from '../../src/keyserver/log-store.ts'
import type { LogHead } from '../../src/log/checkpoint.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import type { StoredIndex } from './log-index.ts'

export type StoreAnswer =
  | {
      readonly kind: 'log'
      readonly maker: LogMaker | undefined
      readonly head: LogHead | undefined
      readonly index: StoredIndex | undefined
    }
  | { readonly kind: 'failed'; readonly reason: string }

process.once('message', (dataFolder: string) => void answer(dataFolder))
process.once('disconnect', () => process.exit())

async function answer(dataFolder: string): Promise<void> {
  process.send!(await read(dataFolder), () => process.disconnect())
}

async function read(dataFolder: string): Promise<StoreAnswer> {
  try {
    const database = LmdbStore.openReadOnly(dataFolder)
    const read = database.view(view => {
      const state = view.get(INDEX_STATE, MAP)
      return {
        maker: view.get(MAKER, 'maker'),
        head: view.get(HEAD, 'head'),
        index: state && {
          state,
          signedSize: view.get(INDEX_HEAD, INDEX_HEAD_ROW)?.treeSize ?? 0,
          shown: view.get(INDEX_HEAD, SHOWN)?.checkpoint,
        },
      }
    })
    await database.close()
    return { kind: 'log', ...read }
  } catch (error) {
    return {
      kind: 'failed',
      reason:
        error instanceof SignalError
          ? error.message
          : 'its file is no store: look with fsck, and restore a backup',
    }
  }
}
