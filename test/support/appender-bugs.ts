/** Mistakes made on purpose in what the log appender is given, to see that the seeded runs would show them. */

import type { LogAppenderDeps } from '../../actors/log-appender.ts'
import { LogStore } from '../../src/keyserver/log-store.ts'
import type { SignerKey } from '../../src/log/note.ts'
import type { MemoryStore } from './memory-store.ts'
import type { SeededRandom } from './world.ts'

export type PlantedBug =
  /** An append resolves before it is durable. */
  | 'early commit'
  /** A record resolves before it is in the head file. */
  | 'early record'
  /** An append resolves though it failed. */
  | 'swallowed failure'
  /** The identity record of a replaced key does not say what it replaced. */
  | 'broken chain'
  /** Now and then the key that signs is another. */
  | 'foreign signature'
  /** Now and then a device that has a key seems to have none. */
  | 'lost lookup'
  /** A device seems to have the key before its newest. */
  | 'stale lookup'
  /** Now and then a durable checkpoint is not shown. */
  | 'missing checkpoint'
  /** After a failed commit the appender does not compare the store with its published tree. */
  | 'unchecked rebuild'
  /** A failed batch stays in the store's memory. */
  | 'kept batch'
  /** An unexplained failure does not stop the process. */
  | 'ignored failure'
  /** A durable head is taken for a cosigned one. */
  | 'early cosignature'

/** The world of an appender with that bug in it. */
export function plantBug(
  bug: PlantedBug,
  world: LogAppenderDeps,
  { draw, database }: { readonly draw: SeededRandom; readonly database: MemoryStore },
): LogAppenderDeps {
  const { store, signer, publish } = world
  const withStore = (changes: Partial<LogAppenderDeps['store']>) => ({
    ...world,
    store: changedStore(store, changes),
  })
  switch (bug) {
    case 'early commit':
      return withStore({ append: async batch => void store.append(batch).catch(() => {}) })
    case 'early record':
      return { ...world, record: async head => void world.record?.(head).catch(() => {}) }
    case 'swallowed failure':
      return withStore({ append: batch => store.append(batch).catch(() => {}) })
    case 'broken chain':
      return withStore({
        append: batch => {
          const entries = batch.entries.map(entry => ({ ...entry, previousIndex: undefined }))
          return store.append({ ...batch, entries })
        },
      })
    case 'foreign signature':
      return { ...world, signer: unsteadySigner(signer, draw) }
    case 'lost lookup':
      return withStore({
        newestIndex: vrfHash => (draw.chance(0.2) ? undefined : store.newestIndex(vrfHash)),
      })
    case 'stale lookup':
      return withStore({
        newestIndex: vrfHash => {
          const newest = store.newestIndex(vrfHash)
          return newest === undefined ? undefined : (store.identity(newest)?.previousIndex ?? newest)
        },
      })
    case 'missing checkpoint':
      return { ...world, publish: head => void (draw.chance(0.2) || publish(head)) }
    case 'unchecked rebuild':
      return { ...world, publishedSize: () => undefined }
    case 'kept batch':
      return withStore({ openTail: treeSize => new LogStore(database).openTail(treeSize) })
    case 'early cosignature':
      return { ...world, witnesses: { isQuorumLost: false, submit: publish } }
    case 'ignored failure':
      return { ...world, fatal: () => {} }
  }
}

/** A store with some methods replaced. */
export function changedStore(
  store: LogAppenderDeps['store'],
  changes: Partial<LogAppenderDeps['store']>,
): LogAppenderDeps['store'] {
  return {
    head: () => store.head(),
    openTail: treeSize => store.openTail(treeSize),
    append: batch => store.append(batch),
    newestIndex: vrfHash => store.newestIndex(vrfHash),
    identity: index => store.identity(index),
    entryVolatile: index => store.entryVolatile(index),
    ...changes,
  }
}

function unsteadySigner(signer: SignerKey, draw: SeededRandom): SignerKey {
  return {
    ...signer,
    get seed() {
      return draw.chance(0.1) ? new Uint8Array(32).fill(8) : signer.seed
    },
  }
}
