/**
 * Keeps the index behind the log: every few seconds a leaf, when entries came, and one every quarter of an hour without. Only the
 * writer has one, and Register never waits for it.
 *
 * A step has the map grown elsewhere (`index-growth.ts`), and makes a leaf of its root. Where no witness and no head file
 * comes first, one change writes rows, leaf and checkpoints. Else, beside each part, what a crash there leaves:
 *
 *   1. append   leaf and checkpoint become durable, the map stays as it is: a start grows the map again, compares its root
 *               with the leaf's, and goes on with 2
 *   2. record   in the head file, outside the store: as 1
 *   3. cosign   a quorum of witnesses: as 1. While it is away the index stands still
 *   4. show     rows, cosigned checkpoint and state, in one change: done
 *
 * While the map is built, for the first time or because its rows were damaged, there is no index to answer from, and its rows are
 * written in portions. A signed leaf or checkpoint that does not fit is never mended here: the index is held, which its figures
 * show, and the server goes on without it.
 */

import { backOffMs } from '../../back-off.ts'
import { assert, messageOf, SignalError } from '../../errors.ts'
import { type LogHead, openCheckpoint, signCheckpoint } from '../../log/checkpoint.ts'
import { EMPTY_ROOT, equalHashes, type Hash } from '../../log/hash.ts'
import { formatIndexLeaf } from '../../log/index-leaf.ts'
import { TreeTail } from '../../log/integrate.ts'
import { formatVerifierKey } from '../../log/note.ts'
import { BUNDLE_ENTRY_BYTES_MAX } from '../../log/tile.ts'
import { rootHash } from '../../log/tree.ts'
import { assertGrownFrom } from '../roll-back-guard.ts'
import type { WitnessRounds } from '../witness-rounds.ts'
import type { IndexFigures } from './index-figures.ts'
import {
  claimIndex,
  hasMapRoot,
  type IndexGuard,
  type IndexSigners,
  inputOf,
  openOutputLog,
} from './index-opening.ts'
import { damagedIndex, type MapOfLeaf } from './index-store.ts'
import type { IndexState } from './index-tables.ts'
import { MapBuilder, type MapBuilding } from './map-builder.ts'

export interface IndexKeeping extends MapBuilding {
  /** Reads the records of the output log outside the store; throws as `assertExtends`. `takesOver`: an earlier index had another key. */
  readonly openGuard: (takesOver: boolean) => IndexGuard
  /** `keep` makes a cosigned head the shown one. Left out: no policy asks for witnesses. */
  readonly openWitnesses?: (keep: (head: LogHead) => Promise<void>) => WitnessRounds
  readonly everySeconds: number
  readonly world: {
    monotonicMs(): number
    random(): number
    every(ms: number, run: () => void): () => void
  }
}

export class IndexKeeper {
  readonly #deps: IndexKeeping
  readonly #builder: MapBuilder
  #guard: IndexGuard | undefined
  #witnesses: WitnessRounds | undefined
  #tail: TreeTail | undefined
  /** Whether the last leaf could not have all there was: the next one does not wait for a tick. */
  #wasFull = false
  /** The map of the leaf that waits for its quorum. */
  #waiting: MapOfLeaf | undefined
  #heldFor: string | undefined
  #stopTicks = () => {}
  #work: Promise<void> | undefined
  #failures = 0
  #pausedUntilMs = Number.NEGATIVE_INFINITY
  #leafAtMs: number
  #hasLeaf = false
  #isClosed = false

  constructor(deps: IndexKeeping) {
    this.#deps = deps
    this.#builder = new MapBuilder(deps)
    this.#leafAtMs = deps.world.monotonicMs()
  }

  /** Looks at the index now; its first leaf comes with the first tick, unless much is to be done. */
  start(): void {
    this.#stopTicks = this.#deps.world.every(1_000 * this.#deps.everySeconds, () => void this.work())
    void this.#run(async () => {
      await this.#open()
      return this.#isUrgent
    })
  }

  /** Makes the steps that are due; resolves when they are done, or have failed and are tried again later. */
  work(): Promise<void> {
    return this.#run(() => Promise.resolve(true))
  }

  /** Resolves when nothing of it is under way. The process that grows the map has to be ended before. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#stopTicks()
    this.#witnesses?.close()
    await this.#work
  }

  get isHeld(): boolean {
    return this.#heldFor !== undefined
  }

  get witnesses(): WitnessRounds | undefined {
    return this.#witnesses
  }

  get figures(): IndexFigures {
    const { store, log, world } = this.#deps
    const { entries = 0, leaves = 0 } = store.state ?? {}
    return {
      entries,
      leaves,
      lagEntries: Math.max(0, log.head.treeSize - entries),
      leafAgeSeconds:
        leaves === 0 ? Number.POSITIVE_INFINITY : (world.monotonicMs() - this.#leafAtMs) / 1_000,
      ...(this.#witnesses && { witnesses: this.#witnesses.figures }),
      held: this.#heldFor,
      building:
        leaves === 0 ? (this.#builder.progress ?? { done: entries, of: log.head.treeSize }) : undefined,
    }
  }

  /** One at a time. `begin` says whether to go on. */
  async #run(begin: () => Promise<boolean>): Promise<void> {
    const mayRun = () => !this.#isClosed && this.#heldFor === undefined
    if (this.#work !== undefined || !mayRun() || this.#deps.world.monotonicMs() < this.#pausedUntilMs) return
    this.#work = (async () => {
      try {
        if (!(await begin())) return
        while (mayRun() && (await this.#advance()));
        this.#failures = 0
      } catch (error) {
        await this.#onFailure(error)
      }
    })()
    await this.#work
    this.#work = undefined
  }

  async #onFailure(error: unknown): Promise<void> {
    // It may be ahead of the store.
    this.#tail = undefined
    if (this.#isClosed) return
    if (error instanceof SignalError && HOLDING.has(error.code)) return await this.#hold(error.message)
    const { world, report } = this.#deps
    this.#failures += 1
    this.#pausedUntilMs = world.monotonicMs() + backOffMs(BACK_OFF, this.#failures, world.random())
    report({ event: 'index-failed', reason: messageOf(error) })
  }

  async #hold(reason: string): Promise<void> {
    const { store, report } = this.#deps
    this.#heldFor = reason
    this.#witnesses?.close()
    report({ event: 'index-held', reason: `${reason}. ${HELD}` })
    await store.hold(true).catch(error => report({ event: 'index-failed', reason: messageOf(error) }))
  }

  /** Looks at all that there is, once. */
  async #open(): Promise<void> {
    if (this.#guard !== undefined) return
    const { store, signers, openGuard, openWitnesses, report } = this.#deps
    const { guard, begun } = await claimIndex(store, signers, openGuard)
    if (begun !== undefined)
      report({ event: 'index-begun', vkey: formatVerifierKey(signers.index), ...begun })
    this.#tail = openOutputLog(store, signers.index)
    await this.#openMap()
    this.#witnesses = openWitnesses?.(head => this.#onCosigned(head))
    this.#witnesses?.listen({
      onCosigned: () => void (this.#wasFull && this.work()),
      // Only a conflict ends the waiting: no caller waits here.
      onQuorumLost: () => this.#onQuorumLost(),
    })
    const head = store.head()
    if (head !== undefined) await guard.record?.(head)
    // Asked before a first leaf is signed: a witness may have cosigned leaves of this name.
    await this.#witnesses?.begin(head ?? emptyHead(signers))
    await guard.confirm()
    await store.hold(false)
    this.#guard = guard
  }

  async #openMap(): Promise<void> {
    const { store, log, signers } = this.#deps
    const { leaves, entries } = store.state!
    const shownSize = store.shownHead()?.treeSize ?? 0
    if (shownSize === 0 && leaves > 0)
      throw damagedIndex(`its map is of leaf ${leaves - 1}, and none is shown`)
    if (shownSize === 0) return
    const leaf = store.leaf(shownSize - 1)
    const { treeSize } = inputOf(leaf, log, signers.log.name)
    if (leaves === 0) return
    const isWhole = leaves === shownSize && entries === treeSize && hasMapRoot(store, leaf.root)
    if (!isWhole) await this.#builder.beginAgain(`its rows are not those of leaf ${shownSize - 1}`)
  }

  get #isUrgent(): boolean {
    const { store, log } = this.#deps
    const { entries, leaves } = store.state!
    const head = store.head()
    return (head !== undefined && head.treeSize !== leaves) || log.head.treeSize - entries > LAG_URGENT
  }

  /** Does one thing, and returns whether the next one is due at once. */
  async #advance(): Promise<boolean> {
    const { store } = this.#deps
    await this.#open()
    if (this.#waiting !== undefined) return false
    let state = store.state!
    if (state.leaves === 0) {
      if (await this.#builder.advance()) return true
      state = store.state!
    }
    const head = store.head()
    if (head !== undefined && head.treeSize === (store.shownHead()?.treeSize ?? 0) + 1)
      return await this.#finish(head, state)
    return this.#isDue(state) && (await this.#step(state))
  }

  #isDue({ entries, leaves }: IndexState): boolean {
    const { log, world } = this.#deps
    if (leaves === 0 || log.head.treeSize > entries || !this.#hasLeaf) return true
    return world.monotonicMs() - this.#leafAtMs >= HEARTBEAT_MS
  }

  /** Makes the next leaf. */
  async #step(state: IndexState): Promise<boolean> {
    const { store, signers } = this.#deps
    const input = this.#nextInput(state.entries)
    const grown = await this.#builder.grow(state, input.treeSize)
    if (grown === undefined) return true
    const { root, rows } = grown
    const tail = this.#openTail()
    const leaf = tail.treeSize
    const integration = tail.integrate([this.#leafOf(input, root)])
    const checkpoint = signCheckpoint(integration, signers.index, signers.secondIndex)
    const map: MapOfLeaf = { rows, entries: input.treeSize }
    this.#wasFull =
      map.entries < this.#deps.log.head.treeSize &&
      map.entries - state.entries >= this.#builder.sizes.leafEntries
    const isSeenFirst = this.#guard!.record !== undefined || this.#witnesses !== undefined
    await store.append({ leaf, integration, checkpoint }, isSeenFirst ? undefined : map)
    if (isSeenFirst) return await this.#show({ treeSize: leaf + 1, checkpoint }, map)
    return this.#onShown(map)
  }

  /** Goes on with a leaf that is durable and was not shown. */
  async #finish(head: LogHead, state: IndexState): Promise<boolean> {
    const { store, log, signers } = this.#deps
    const leaf = store.leaf(head.treeSize - 1)
    const { treeSize } = inputOf(leaf, log, signers.log.name)
    const grown = await this.#builder.grow(state, treeSize)
    if (grown === undefined) return true
    if (!equalHashes(grown.root, leaf.root)) {
      await this.#builder.beginAgain(`its rows do not lead to leaf ${head.treeSize - 1}`)
      return true
    }
    return await this.#show(head, { rows: grown.rows, entries: treeSize })
  }

  async #show(head: LogHead, map: MapOfLeaf): Promise<boolean> {
    await this.#guard!.record?.(head)
    const witnesses = this.#witnesses
    if (witnesses === undefined) {
      await this.#deps.store.show(head, map)
      return this.#onShown(map)
    }
    this.#waiting = map
    witnesses.submit(head)
    return false
  }

  /** Rejects as the change does; then it is asked again. */
  async #onCosigned(head: LogHead): Promise<void> {
    const waiting = this.#waiting
    assert(waiting !== undefined, 'a leaf waits for its quorum')
    await this.#deps.store.show(head, waiting)
    this.#waiting = undefined
    this.#onShown(waiting)
  }

  #onShown({ entries }: MapOfLeaf): boolean {
    const { store, world, report } = this.#deps
    this.#leafAtMs = world.monotonicMs()
    this.#hasLeaf = true
    this.#builder.onLeaf()
    report({ event: 'index-checkpoint', treeSize: store.state!.leaves, entries })
    return this.#wasFull
  }

  #onQuorumLost(): void {
    if (this.#witnesses?.figures.hasConflict)
      void this.#hold('a witness has cosigned another output log of the index')
  }

  /**
   * The input of the next leaf: the log as it is shown, or, where that has too many new entries, a part of it, with a checkpoint
   * that is signed here. A proof ties that to the shown one.
   */
  #nextInput(entries: number): LogHead {
    const { log, signers } = this.#deps
    const { head, readHashes } = log
    if (head.treeSize - entries <= this.#builder.sizes.leafEntries) return head
    const treeSize = entries + this.#builder.sizes.leafEntries
    const tree = { treeSize, rootHash: rootHash(treeSize, readHashes) }
    const shown = openCheckpoint(head.checkpoint, signers.log)
    assertGrownFrom({ origin: signers.log.name, extensions: [], ...tree }, shown, log)
    return { treeSize, checkpoint: signCheckpoint(tree, signers.log, signers.secondLog) }
  }

  /** Without the cosignatures of its input where these are too many for an entry. */
  #leafOf({ treeSize, checkpoint }: LogHead, root: Hash): Uint8Array {
    const leaf = formatIndexLeaf({ inputCheckpoint: checkpoint, root })
    if (leaf.length <= BUNDLE_ENTRY_BYTES_MAX) return leaf
    const { log, signers } = this.#deps
    const tree = { treeSize, rootHash: rootHash(treeSize, log.readHashes) }
    return formatIndexLeaf({ inputCheckpoint: signCheckpoint(tree, signers.log, signers.secondLog), root })
  }

  #openTail(): TreeTail {
    const { store } = this.#deps
    this.#tail ??= new TreeTail(store.openTail(store.head()?.treeSize ?? 0))
    return this.#tail
  }
}

/** The only checkpoint without leaves, so that no other contradicts it. */
function emptyHead({ index, secondIndex }: IndexSigners): LogHead {
  const treeSize = 0
  return { treeSize, checkpoint: signCheckpoint({ treeSize, rootHash: EMPTY_ROOT }, index, secondIndex) }
}

/** Codes of what no later attempt would find otherwise. */
const HOLDING: ReadonlySet<string> = new Set([
  'CHECKPOINT_INVALID',
  'MALFORMED',
  'SIGNATURE_INVALID',
  'PROOF_INVALID',
])
const HELD =
  'The index is held: it gets no leaf and proves nothing until this is mended and the server started again; the log goes on'
/** Clients read no more behind the last leaf. */
const LAG_URGENT = 4_096
const HEARTBEAT_MS = 15 * 60_000
const BACK_OFF = { firstMs: 500, maxMs: 60_000 }
