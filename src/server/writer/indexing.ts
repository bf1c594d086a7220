/** The assembly of the index, which the writer keeps behind the log. */

import { IndexKeeper } from '../../keyserver/index/index-keeper.ts'
import { type IndexGuard, keyMissing } from '../../keyserver/index/index-opening.ts'
import { IndexProcess } from '../../keyserver/index/index-process.ts'
import { IndexStore } from '../../keyserver/index/index-store.ts'
import { INDEX_LOG } from '../../keyserver/kept-log.ts'
import { RollBackGuard } from '../../keyserver/roll-back-guard.ts'
import type { ShownHeads } from '../../keyserver/shown-heads.ts'
import type { VerifierKey } from '../../log/note.ts'
import { observeIndex } from '../../operations/figures.ts'
import type { OpenedLog } from '../open-log.ts'
import type { WritingProcess } from '../process/process.ts'
import { openRounds } from '../witnessing.ts'

/** The index of a log that has one. */
export interface Indexing {
  readonly keeper: IndexKeeper
  /** Resolves when nothing of it is under way. */
  close(): Promise<void>
}

/** The records of the index outside the store. */
export interface KnownIndex {
  /** Checkpoints that were recorded; a node has its own records. */
  readonly shownHeads?: ShownHeads
  /** The value of `--known-index-checkpoint`. */
  readonly knownCheckpoint: string | undefined
}

/** Undefined where the log has no index, or is frozen. The log has to be published. */
export function startIndexing(
  context: WritingProcess,
  { keys, database, store, published }: OpenedLog,
  known: KnownIndex,
): Indexing | undefined {
  const { config, world, metrics, logger } = context
  const { indexSigner, secondIndexSigner, signer, secondSigner } = keys
  let keeper: IndexKeeper | undefined
  observeIndex(metrics, () => keeper?.figures)
  const indexStore = new IndexStore(database)
  if (indexSigner === undefined) {
    const { state } = indexStore
    if (state !== undefined)
      logger.warn({ event: 'index-key-missing', vkey: state.vkey, advice: keyMissing(state.vkey) })
    return undefined
  }
  if (config.log.isFrozen) return undefined
  const indexer = new IndexProcess(config.dataFolder, () => database.dropDeadReaders())
  const { witnesses: policy } = config.log
  keeper = new IndexKeeper({
    store: indexStore,
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
    openGuard: takesOver => openGuard(context, indexSigner, known, takesOver),
    ...(policy && {
      openWitnesses: keep =>
        openRounds(context, policy, {
          of: INDEX_LOG,
          quorum: policy.rebuilders ?? policy.quorum,
          readHashes: indexStore.readHashes,
          keep,
        }),
    }),
    everySeconds: config.log.indexSeconds,
    world,
    report: event => logger[LEVELS[event.event]](event),
  })
  keeper.start()
  const started = keeper
  return {
    keeper,
    async close() {
      await Promise.all([started.close(), indexer.close()])
    },
  }
}

function openGuard(
  { config: { dataFolder, log } }: WritingProcess,
  verifier: VerifierKey,
  { shownHeads, knownCheckpoint }: KnownIndex,
  takesOver: boolean,
): IndexGuard {
  const guard = new RollBackGuard({
    of: INDEX_LOG,
    dataFolder,
    verifier,
    headFile: shownHeads === undefined ? log.headFile : undefined,
    knownCheckpoint,
    isFrozen: log.isFrozen,
    takesOver,
  })
  return {
    assertExtends(store) {
      guard.assertExtends(store)
      shownHeads?.assertExtendedBy(store)
    },
    ...(guard.headFile && { record: head => guard.headFile!.record(head) }),
    ...(shownHeads && { record: head => shownHeads.record(head) }),
    confirm: () => guard.confirm(),
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
