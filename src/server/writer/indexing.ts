/** The assembly of the index, which the writer keeps behind the log. */

import { IndexKeeper } from '../../keyserver/index/index-keeper.ts'
import type { IndexGuard } from '../../keyserver/index/index-opening.ts'
import { IndexProcess } from '../../keyserver/index/index-process.ts'
import { IndexStore } from '../../keyserver/index/index-store.ts'
import { observeIndex } from '../../operations/figures.ts'
import type { OpenedLog } from '../open-log.ts'
import type { WritingProcess } from '../process/process.ts'

/** The index of a log that has one. */
export interface Indexing {
  readonly keeper: IndexKeeper
  /** Resolves when nothing of it is under way. */
  close(): Promise<void>
}

/** Undefined where the log has no index, or is frozen. The log has to be published. */
export function startIndexing(
  { config, world, metrics, logger }: WritingProcess,
  { keys, database, store, published }: OpenedLog,
  openGuard: (isAnotherKey: boolean) => IndexGuard,
): Indexing | undefined {
  const { indexSigner, secondIndexSigner, signer, secondSigner } = keys
  let keeper: IndexKeeper | undefined
  observeIndex(metrics, () => keeper?.figures)
  if (indexSigner === undefined || config.log.isFrozen) return undefined
  const indexer = new IndexProcess(config.dataFolder, () => database.dropDeadReaders())
  keeper = new IndexKeeper({
    store: new IndexStore(database),
    log: {
      get head() {
        return published.head
      },
      readHashes: store.readHashes,
    },
    signers: {
      index: indexSigner,
      ...(secondIndexSigner && { secondIndex: secondIndexSigner }),
      log: signer,
      ...(secondSigner && { secondLog: secondSigner }),
    },
    grow: indexer.grow,
    openGuard,
    everySeconds: config.log.indexSeconds,
    world,
    report: event => logger[LEVELS[event.event]](event),
  })
  keeper.start()
  const started = keeper
  return {
    keeper,
    async close() {
      const closed = started.close()
      indexer.close()
      await closed
    },
  }
}

const LEVELS = {
  'index-begun': 'info',
  'index-building': 'info',
  'index-checkpoint': 'info',
  'index-damaged': 'warn',
  'index-rebuilt': 'info',
  'index-failed': 'warn',
  'index-held': 'error',
} as const
