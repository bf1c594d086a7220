/** Reads who made a log and how far it is, in a process of its own: a damaged file can end the one that reads it. */

import { SignalError } from '../../src/errors.ts'
import { LOG_TABLES, type LogHead, type LogMaker } from '../../src/keyserver/log-store.ts'
import { Database } from '../../src/store/engine/database.ts'

export type StoreAnswer =
  | { readonly kind: 'log'; readonly maker: LogMaker | undefined; readonly head: LogHead | undefined }
  | { readonly kind: 'failed'; readonly reason: string }

process.once('message', (dataFolder: string) => void answer(dataFolder))
process.once('disconnect', () => process.exit())

async function answer(dataFolder: string): Promise<void> {
  process.send!(await read(dataFolder), () => process.disconnect())
}

async function read(dataFolder: string): Promise<StoreAnswer> {
  try {
    const database = Database.openReadOnly(dataFolder)
    const names = database.tableNames()
    const maker = names.includes(LOG_TABLES.maker)
      ? database.recordTable<LogMaker>(LOG_TABLES.maker).get('maker')
      : undefined
    const head = names.includes(LOG_TABLES.head)
      ? database.recordTable<LogHead>(LOG_TABLES.head).get('head')
      : undefined
    await database.close()
    return { kind: 'log', maker, head }
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
