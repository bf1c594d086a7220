/**
 * The log without sockets and VRF: the real log appender actor over the real store, in this process.
 *
 * With `tables: 'log'` the appender writes through a store that has the log's own tables only (bundles, tiles, head),
 * made of the same parts and the same puts as `LogStore.append`. It leaves out the lookup index, the identities and the
 * search for an earlier key of the device.
 */

import { statSync } from 'node:fs'
import { join } from 'node:path'
import { type LogAppenderDeps, logAppenderKind } from '../../actors/log-appender.ts'
import type { LogAppenderMessage } from '../../actors/messages.ts'
import { BUNDLES, HEAD, type LogBatch, LogStore, TILES } from '../../src/keyserver/log-store.ts'
import { APPEND_DEADLINE_MS } from '../../src/limits.ts'
import { type LogHead, signCheckpoint } from '../../src/log/checkpoint.ts'
import { EMPTY_ROOT } from '../../src/log/hash.ts'
import type { TailBytes } from '../../src/log/integrate.ts'
import { formatVerifierKey, parseSignerKey } from '../../src/log/note.ts'
import { RightEdge } from '../../src/log/tree.ts'
import type { Ref } from '../../src/runtime/actor.ts'
import { realWorld } from '../../src/runtime/clock.ts'
import { ActorSystem } from '../../src/runtime/system.ts'
import { developmentKeys } from '../../src/server/development/development-keys.ts'
import { indexKey, tileKey } from '../../src/store/engine/keys.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { STORE_FORM } from '../../src/store/engine/store-form.ts'

/** What is written beside the log itself. */
export type Tables = 'log' | 'all'

export interface AppendedKey {
  readonly userId: bigint
  readonly deviceId: bigint
  readonly vrfHash: Uint8Array
  readonly publicKey: string
}

export class LogEngine {
  /** Its other writers work beside the log. */
  readonly database: LmdbStore
  readonly #folder: string
  readonly #system: ActorSystem
  readonly #appender: Ref<LogAppenderMessage>
  /** Entries of each batch committed so far. */
  readonly batchSizes: number[] = []
  #publishedSize: number | undefined

  private constructor(folder: string, database: LmdbStore, store: LogAppenderDeps['store']) {
    this.#folder = folder
    this.database = database
    const fatal = (error: unknown) => {
      throw error
    }
    this.#system = new ActorSystem({ world: realWorld(), fatal })
    const kind = logAppenderKind({
      store,
      signer: parseSignerKey(developmentKeys(folder).keys.ktPrivateKey),
      publishedSize: () => this.#publishedSize,
      publish: head => this.#onPublished(head),
      fatal,
    })
    this.#appender = this.#system.define<LogAppenderMessage>(kind)('log')
  }

  /** Opens the log in a development server's data folder, or makes a new one there. */
  static async open(folder: string, tables: Tables): Promise<LogEngine> {
    const database = LmdbStore.open(folder)
    const store = tables === 'all' ? new LogStore(database) : new LogTablesStore(database)
    if (store.head() === undefined) {
      const signer = parseSignerKey(developmentKeys(folder).keys.ktPrivateKey)
      const maker = { storeForm: STORE_FORM, vkey: formatVerifierKey(signer), vrfPublicKey: '' }
      await store.create(maker, signCheckpoint({ treeSize: 0, rootHash: EMPTY_ROOT }, signer))
    }
    const engine = new LogEngine(folder, database, store)
    await engine.#appender.ask<number>(reply => ({ kind: 'open', reply }), APPEND_DEADLINE_MS)
    return engine
  }

  get treeSize(): number {
    return this.#publishedSize ?? 0
  }

  /** Appends `count` keys, each by its leaf index, with so many of them in flight; resolves when all are durable. */
  async append(count: number, inFlight: number, nextKey: (index: number) => AppendedKey): Promise<void> {
    const first = this.treeSize
    let asked = 0
    const appendUntilEnd = async () => {
      while (asked < count) {
        const key = nextKey(first + asked++)
        await this.#appender.ask<number>(reply => ({ kind: 'append', ...key, reply }), APPEND_DEADLINE_MS)
      }
    }
    await Promise.all(Array.from({ length: Math.min(inFlight, count) }, appendUntilEnd))
  }

  /** Bytes of the store's file. */
  storeBytes(): number {
    return statSync(join(this.#folder, 'store/data.mdb')).size
  }

  async close(): Promise<void> {
    await this.#system.drainAndStop(APPEND_DEADLINE_MS)
    await this.database.close()
  }

  #onPublished({ treeSize }: LogHead): void {
    if (treeSize > this.treeSize) this.batchSizes.push(treeSize - this.treeSize)
    this.#publishedSize = treeSize
  }
}

class LogTablesStore {
  readonly #database: LmdbStore
  constructor(database: LmdbStore) {
    this.#database = database
  }

  async create(_maker: unknown, checkpoint: string): Promise<void> {
    await this.#database.change(change => change.put(HEAD, 'head', { treeSize: 0, checkpoint }))
  }

  head(): LogHead | undefined {
    return this.#database.view(view => view.get(HEAD, 'head'))
  }

  openTail(treeSize: number): TailBytes {
    if (treeSize !== 0) throw new Error('a log without lookup tables is always begun anew')
    return { edge: new RightEdge(0, []), tiles: [], bundle: undefined }
  }

  async append({ firstIndex, integration, checkpoint }: LogBatch): Promise<void> {
    await this.#database.change(change => {
      if (change.get(HEAD, 'head')?.treeSize !== firstIndex) throw new Error('batch out of order')
      for (const { index, bytes } of integration.bundles) change.put(BUNDLES, indexKey(index), bytes)
      for (const { level, index, bytes } of integration.tiles) change.put(TILES, tileKey(level, index), bytes)
      change.put(HEAD, 'head', { treeSize: integration.treeSize, checkpoint })
    })
  }

  newestIndex(): undefined {
    return undefined
  }

  identity(): undefined {
    return undefined
  }

  entryVolatile(): never {
    throw new Error('nothing is looked up here')
  }
}
