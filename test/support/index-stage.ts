/**
 * An index over a log in a `MemoryStore`, whose keeper runs as in the server but in this process: a test decides when and how each
 * change ends, and how each growing of the map does. Checkpoints that left the server are kept, so that no later state may
 * contradict them.
 */

import { setImmediate } from 'node:timers/promises'
import { SignalError } from '../../src/errors.ts'
import type { IndexEvent } from '../../src/keyserver/index/index-event.ts'
import { type Grow, growIndex } from '../../src/keyserver/index/index-growth.ts'
import { IndexKeeper, type IndexKeeping } from '../../src/keyserver/index/index-keeper.ts'
import { IndexStore } from '../../src/keyserver/index/index-store.ts'
import { INDEX_LOG } from '../../src/keyserver/kept-log.ts'
import { LogStore } from '../../src/keyserver/log-store.ts'
import { WitnessLink } from '../../src/keyserver/witness-link.ts'
import { WitnessRounds } from '../../src/keyserver/witness-rounds.ts'
import { parseAddCheckpoint } from '../../src/log/add-checkpoint.ts'
import { type LogHead, openCheckpoint } from '../../src/log/checkpoint.ts'
import { verifyConsistency } from '../../src/log/consistency.ts'
import { cosignatureLine, witnessKeyFromSeed } from '../../src/log/cosignature.ts'
import { EMPTY_ROOT, type Hash } from '../../src/log/hash.ts'
import { readNote } from '../../src/log/note.ts'
import { INDEX_SIGNER } from './filled-index.ts'
import { faultsOfIndex, RebuiltMap, SeenCheckpoints } from './index-faults.ts'
import { diskError, MemoryStore } from './memory-store.ts'
import { createLog, type DeviceKey, ExpectedLog, LogWriter, SIGNER } from './stored-log.ts'
import { FakeWorld } from './world.ts'

/** How the next change that is waited for ends. */
export type Ending = 'durable' | 'no room' | 'crash before' | 'crash behind'

/** How a step in the process that grows the map ends. */
export type Growing = 'done' | 'killed before' | 'killed between' | 'killed behind'

export interface StageChoices {
  readonly hasRecord?: boolean
  readonly hasWitness?: boolean
  readonly sizes?: IndexKeeping['sizes']
}

/** The world outside the server, which stays where that crashes. */
class Outside {
  readonly seen = new SeenCheckpoints(INDEX_SIGNER)
  recorded: LogHead | undefined
  /** Another server has written the head file. */
  isRecordForeign = false
  readonly key = witnessKeyFromSeed('w.example', new Uint8Array(32).fill(3))
  cosigned: { size: number; root: Hash } = { size: 0, root: EMPTY_ROOT }
  isAway = () => false

  cosign(body: string): { readonly status: number; readonly body: string } {
    const { oldSize, proof, note } = parseAddCheckpoint(body)
    this.seen.see(note)
    const { treeSize, rootHash: root } = openCheckpoint(note, INDEX_SIGNER)
    const { size, root: oldRoot } = this.cosigned
    if (oldSize !== size) return { status: 409, body: `${size}\n` }
    verifyConsistency({ oldSize, oldRoot, newSize: treeSize, newRoot: root, proof })
    this.cosigned = { size: treeSize, root }
    return { status: 200, body: cosignatureLine(readNote(note).text, this.key, 1_700_000_000) }
  }
}

export class IndexStage {
  readonly outside = new Outside()
  readonly events: IndexEvent[] = []
  readonly #rebuilt = new RebuiltMap()
  readonly #choices: StageChoices
  /** The entries of the log. */
  readonly #keys: DeviceKey[] = []
  database = new MemoryStore()
  world = new FakeWorld()
  keeper: IndexKeeper
  /** How the next changes end, and the next steps; then all is well. */
  ending: () => Ending = () => 'durable'
  growing: () => Growing = () => 'done'
  /** Whether the process that grows the map lies about its root. */
  wrongRoots = false
  #writer: LogWriter
  #log: LogStore
  index: IndexStore

  private constructor(choices: StageChoices) {
    this.#choices = choices
    this.#log = new LogStore(this.database)
    void createLog(this.#log)
    this.database.settleAll()
    this.#writer = new LogWriter(this.#log, new ExpectedLog())
    this.index = new IndexStore(this.database)
    this.keeper = this.#newKeeper()
  }

  static open(choices: StageChoices = {}): IndexStage {
    return new IndexStage(choices)
  }

  get log(): LogStore {
    return this.#log
  }

  /** Registers keys, as far as the index is concerned. */
  register(keys: readonly DeviceKey[]): void {
    this.#keys.push(...keys)
    void this.#writer.append(keys)
    this.database.settleAll()
  }

  /** The next moment of the keeper: whatever is due is done, or ends as was chosen. Returns whether the process lives. */
  async work(): Promise<boolean> {
    // Longer than any pause.
    this.world.advance(61_000)
    let isDone = false
    const before = this.events.length
    const { keeper, database } = this
    void keeper.work().then(() => {
      isDone = true
    })
    // Behind a leaf that was cosigned the next one may begin a few turns later.
    for (let [turns, quiet] = [0, 0]; quiet < QUIET_TURNS; turns++) {
      quiet = isDone && database.waiting === 0 && !this.#waitsForWitness(before) ? quiet + 1 : 0
      if (turns > TURNS_MAX) throw new Error('the keeper does not come to an end')
      await setImmediate()
      if (database.waiting > 0 && !this.#endNext()) return false
    }
    return true
  }

  /** A new process on the durable rows. */
  restart(): void {
    void this.keeper.close()
    this.#begin(this.database.durable())
  }

  /** As if an older copy of the store were put back. */
  putBack(older: MemoryStore): void {
    void this.keeper.close()
    this.#begin(older)
  }

  /** Faults of the durable state. */
  faults(): string[] {
    const { seen } = this.outside
    return faultsOfIndex(this.database.durable(), { verifier: INDEX_SIGNER, seen, rebuilt: this.#rebuilt })
  }

  /** Root of the map over the first entries, made at once. */
  rebuiltRoot(entries: number): Hash {
    return new RebuiltMap().rootAt(entries, index => this.#writer.expected.entry(index)!)
  }

  /** Whether a leaf is with its witness; a step that failed has none there. */
  #waitsForWitness(since: number): boolean {
    const hasFailed = this.events.slice(since).some(({ event }) => event === 'index-failed')
    if (this.#choices.hasWitness !== true || this.keeper.isHeld || hasFailed) return false
    return this.index.head()?.treeSize !== this.index.shownHead()?.treeSize
  }

  /** Returns whether the process lives. */
  #endNext(): boolean {
    const { database } = this
    switch (this.ending()) {
      case 'durable':
        database.writeNext()
        database.tellNext()
        return true
      case 'no room':
        database.refuseWaiting(1, diskError(28))
        return true
      case 'crash before':
        this.#begin(database.crash(0))
        return false
      case 'crash behind':
        database.writeNext()
        this.#begin(database.crash(1))
        return false
    }
  }

  #begin(database: MemoryStore): void {
    this.database = database
    this.world = new FakeWorld()
    this.#log = new LogStore(database)
    this.#writer = new LogWriter(this.#log, new ExpectedLog(this.#keys.slice(0, this.#log.head()!.treeSize)))
    this.index = new IndexStore(database)
    this.keeper = this.#newKeeper()
  }

  #newKeeper(): IndexKeeper {
    const { hasRecord = false, hasWitness = false, sizes } = this.#choices
    const { outside, index, database } = this
    const log = this.#log
    return new IndexKeeper({
      store: index,
      log: {
        get head() {
          return log.head()!
        },
        readHashes: log.readHashes,
      },
      signers: { index: INDEX_SIGNER, log: SIGNER },
      grow: this.#growIn(database),
      openGuard: () => ({
        assertExtends(store) {
          const size = store.head()?.treeSize ?? 0
          if ((outside.recorded?.treeSize ?? 0) > size)
            throw new Error(`recorded ${outside.recorded?.treeSize} of ${size}`)
        },
        ...(hasRecord && {
          async record(head: LogHead) {
            if (outside.isRecordForeign)
              throw new SignalError('CHECKPOINT_INVALID', 'the head file was changed by someone else')
            outside.seen.see(head.checkpoint)
            outside.recorded = head
          },
        }),
        confirm: () => Promise.resolve(),
      }),
      ...(hasWitness && { openWitnesses: keep => this.#openWitness(keep) }),
      everySeconds: 10,
      world: this.world,
      report: event => void this.events.push(event),
      ...(sizes && { sizes }),
    })
  }

  #growIn(database: MemoryStore): Grow {
    return async (request, onRows) => {
      const how = this.growing()
      await setImmediate()
      if (how === 'killed before') throw new Error('killed')
      const { rows, end } = growIndex(database.durable(), request)
      for (let at = 0; at < rows.length; at += ROWS_OF_PORTION) {
        if (how === 'killed between' && at > 0) throw new Error('killed')
        await onRows(rows.slice(at, at + ROWS_OF_PORTION))
        await setImmediate()
      }
      if (how === 'killed behind') throw new Error('killed')
      if (!this.wrongRoots || end.kind !== 'grown') return end
      return { kind: 'grown', root: end.root.map(octet => octet ^ 1) }
    }
  }

  #openWitness(keep: (head: LogHead) => Promise<void>): WitnessRounds {
    const { outside, index, world } = this
    const witness = { kind: 'witness', name: 'w', key: outside.key, url: 'http://w.example' } as const
    const ask = async (_: string, body: string) => {
      await setImmediate()
      if (outside.isAway()) return { kind: 'failed', reason: 'is away' } as const
      return { kind: 'answered', isWhole: true, ...outside.cosign(body) } as const
    }
    return new WitnessRounds({
      of: INDEX_LOG,
      quorum: witness,
      links: [new WitnessLink(witness, ask, index.readHashes, () => world.monotonicMs())],
      keep,
      nowMs: () => world.nowMs(),
      monotonicMs: () => world.monotonicMs(),
      random: () => 0,
      report: () => undefined,
      times: { backOff: { firstMs: 1, maxMs: 1 } },
    })
  }
}

const ROWS_OF_PORTION = 40
const QUIET_TURNS = 10
const TURNS_MAX = 20_000
