/**
 * An index that a witness rebuilds before it cosigns: the entries that came are read, the map is grown, and each new leaf compared.
 * The map is kept in the store. Requests that come during a long rebuild get 503; cosignatures of other logs go on.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { consistencyFromTiles, type TreeHead } from '../../src/client/tile-consistency.ts'
import { SignalError } from '../../src/errors.ts'
import type { Checkpoint } from '../../src/log/checkpoint.ts'
import { equalHashes, hashLeaf } from '../../src/log/hash.ts'
import { rootFromPath } from '../../src/log/inclusion.ts'
import { parseIndexLeaf } from '../../src/log/index-leaf.ts'
import { entryInBundle, TILE_WIDTH, tileWidth } from '../../src/log/tile.ts'
import type { Store } from '../../src/store/engine/store.ts'
import { AuditFailure } from '../audit/finding.ts'
import { HttpSource } from '../audit/http-source.ts'
import { LogReader, readInclusion } from '../audit/log-reader.ts'
import { Rebuild, type RebuildOutcome } from '../rebuild/rebuild.ts'
import { openLogCheckpoint } from '../support/checkpoint-state.ts'
import type { IndexedLog } from './log-list.ts'
import { RebuiltRows } from './rebuilt-map.ts'
import { COSIGNED, type Refused } from './witness.ts'

export interface RebuildProgress {
  readonly origin: string
  readonly done: number
  readonly of: number
}

export class IndexRebuild {
  readonly #store: Store
  readonly #logs: IndexedLog
  readonly #log: LogReader
  readonly #output: LogReader
  readonly #rows: RebuiltRows
  readonly #answerMs: number
  readonly #onProgress: (progress: RebuildProgress) => void
  #rebuild: Rebuild | undefined
  /** Whether this process has read the entries from the first one on. */
  #isWhole = false
  #progress = ''
  #running: Promise<Refused | undefined> | undefined
  /** A tree of the log that was cosigned here: the entries have to be of its history. */
  #expected: TreeHead | undefined

  /** `answerMs` is for tests. */
  constructor(
    store: Store,
    logs: IndexedLog,
    stop: AbortSignal,
    onProgress: (progress: RebuildProgress) => void,
    answerMs = ANSWER_MS,
  ) {
    this.#answerMs = answerMs
    this.#store = store
    this.#logs = logs
    this.#log = new LogReader(new HttpSource(logs.log.url, FILES_AT_ONCE, stop))
    this.#output = new LogReader(new HttpSource(logs.index.url, FILES_AT_ONCE, stop))
    this.#rows = new RebuiltRows(store, logs.index.origin)
    this.#onProgress = onProgress
  }

  /** Why the checkpoint is not cosigned, or not yet. Resolves within some seconds; longer work goes on behind it. */
  async refusalOf(checkpoint: Checkpoint): Promise<Refused | undefined> {
    const late = sleep<typeof LATE>(this.#answerMs, LATE, { ref: false })
    while (this.#running !== undefined)
      if ((await Promise.race([this.#running.catch(() => undefined), late])) === LATE) return this.#notYet()
    const running = this.#compare(checkpoint).finally(() => {
      this.#running = undefined
    })
    this.#running = running
    running.catch(() => undefined)
    const found = await Promise.race([running, late])
    return found === LATE ? this.#notYet() : found
  }

  /** Resolves when nothing is under way. */
  get ended(): Promise<unknown> {
    return this.#running?.catch(() => undefined) ?? Promise.resolve()
  }

  async #compare(output: TreeHead): Promise<Refused | undefined> {
    if (output.treeSize === 0) return undefined
    try {
      const newest = await this.#newestInput(output)
      if ('kind' in newest) return newest
      return (await this.#refusalOfTree(newest)) ?? (await this.#refusalOfLeaves(newest, output))
    } catch (error) {
      // Its memory may be ahead of the store.
      this.#rebuild = undefined
      if (error instanceof AuditFailure) return unread(error.message)
      throw error
    }
  }

  /** The tree of the log that the newest leaf is of. */
  async #newestInput(output: TreeHead): Promise<TreeHead | Refused> {
    const index = output.treeSize - 1
    const bundle = Math.floor(index / TILE_WIDTH)
    this.#output.grow(output.treeSize)
    const width = tileWidth('entries', bundle, output.treeSize)
    const bytes = await this.#output.tile({ level: 'entries', index: bundle, width })
    const path = await readInclusion(this.#output, index, output.treeSize)
    try {
      const leaf = entryInBundle(bytes, index % TILE_WIDTH)
      if (!equalHashes(rootFromPath(hashLeaf(leaf), index, output.treeSize, path), output.rootHash))
        return unread(`leaf ${index} as it is served is not in the tree`)
      return openLogCheckpoint(parseIndexLeaf(leaf).inputCheckpoint, this.#logs.log.verifiers)
    } catch (error) {
      if (!(error instanceof SignalError)) throw error
      // The log may have a new key. As for its own checkpoints, that is no fault of the index.
      if (error.code === 'SIGNATURE_INVALID') return unknownKey(index, error.message)
      return refused(`leaf ${index} has no checkpoint of the log: ${error.message}`)
    }
  }

  /** Refuses entries of another history than the tree of the log that was cosigned here. */
  async #refusalOfTree(newest: TreeHead): Promise<Refused | undefined> {
    this.#log.grow(newest.treeSize)
    this.#expected ??= this.#store.view(view => view.get(COSIGNED, this.#logs.log.origin))
    // The log may be ahead of its index by what no other reader is shown yet: then it is looked at later.
    if (this.#expected === undefined || this.#expected.treeSize > newest.treeSize) return undefined
    const found = await consistencyFromTiles(tile => this.#log.tile(tile), this.#expected, newest)
    if (found.kind === 'inconsistent')
      return found.check === 'tiles'
        ? unread(found.detail)
        : refused(`its newest leaf is of another history of the log: ${found.detail}`)
    this.#expected = undefined
    return undefined
  }

  async #refusalOfLeaves(newest: TreeHead, output: TreeHead): Promise<Refused | undefined> {
    const outcome = await (await this.#opened()).follow(
      { head: newest, tile: tile => this.#log.tile(tile) },
      { head: output, tile: tile => this.#output.tile(tile) },
    )
    if (outcome.kind === 'fault' && outcome.fault.kind === 'root' && !this.#isWhole) {
      // The rows of this store may be damaged, which is not the index's fault.
      await this.#begin()
      return await this.#refusalOfLeaves(newest, output)
    }
    return refusalIn(outcome)
  }

  async #opened(): Promise<Rebuild> {
    if (this.#rebuild !== undefined) return this.#rebuild
    return this.#rows.state === undefined ? await this.#begin() : this.#open()
  }

  async #begin(): Promise<Rebuild> {
    await this.#rows.clear()
    const rebuild = this.#open()
    this.#isWhole = true
    return rebuild
  }

  #open(): Rebuild {
    const { origin } = this.#logs.index
    this.#rebuild = new Rebuild(this.#rows, this.#logs.log.origin, ENTRIES_AT_ONCE, (done, of) => {
      this.#progress = `: ${done} of ${of} entries`
      const isRound =
        Math.floor(done / PROGRESS_ENTRIES) > Math.floor((done - ENTRIES_AT_ONCE) / PROGRESS_ENTRIES)
      if (of > PROGRESS_ENTRIES && isRound) this.#onProgress({ origin, done, of })
    })
    return this.#rebuild
  }

  #notYet(): Refused {
    return { kind: 'refused', status: 503, reason: `the index is being rebuilt${this.#progress}` }
  }
}

function refusalIn(outcome: RebuildOutcome): Refused | undefined {
  switch (outcome.kind) {
    case 'compared':
      return undefined
    case 'fault':
      return refused(`leaf ${outcome.fault.index}: ${outcome.fault.detail}`)
    case 'ahead':
      return refused(`leaf ${outcome.index} is of a larger tree than the newest leaf`)
    case 'other':
      return refused(`another index or log was rebuilt here before: ${outcome.detail}`)
    case 'beyond':
    case 'unread':
      return unread(outcome.detail)
  }
}

function refused(reason: string): Refused {
  return { kind: 'refused', status: 422, reason: `the index is wrong: ${reason}` }
}

function unknownKey(index: number, reason: string): Refused {
  const detail = `the checkpoint in leaf ${index} has no signature of a key of the log that is listed here: ${reason}`
  return { kind: 'refused', status: 403, reason: detail }
}

function unread(reason: string): Refused {
  return { kind: 'refused', status: 503, reason: `the index could not be read: ${reason}` }
}

/** A log's server waits for five seconds. */
const ANSWER_MS = 4_000
const LATE = 'late'
const FILES_AT_ONCE = 16
/** Some hundred milliseconds, in which no request is answered. */
const ENTRIES_AT_ONCE = 4_096
const PROGRESS_ENTRIES = 131_072
