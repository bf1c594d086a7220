/**
 * The highest checkpoint a client has seen. Holding each new one against it is what makes a rewritten history, a
 * rollback or a second view of the log show.
 */
import { SignalError } from '../errors.ts'
import { assertTreeSize } from '../log/tree.ts'
import { compareCheckpoints, type SignedCheckpoint, treeHeadOf } from './signed-checkpoint.ts'
import { consistencyFromTiles, type FetchTile } from './tile-consistency.ts'
import type { Refusal } from './verdict.ts'

/**
 * Where an app keeps the highest checkpoint of each log: in what survives a restart, and per installation. Plain JSON
 * goes in and comes out; `get` answers undefined or null when there is none.
 */
export interface CheckpointStore {
  get(origin: string): Promise<SignedCheckpoint | undefined | null> | SignedCheckpoint | undefined | null
  put(checkpoint: SignedCheckpoint): Promise<void> | void
}

/** A store that forgets with the process: until then rollbacks and forks show, after it they do not. */
export class MemoryStore implements CheckpointStore {
  readonly #checkpoints = new Map<string, SignedCheckpoint>()

  get(origin: string): SignedCheckpoint | undefined {
    return this.#checkpoints.get(origin)
  }

  put(checkpoint: SignedCheckpoint): void {
    this.#checkpoints.set(checkpoint.origin, checkpoint)
  }
}

/** One log's pin. Checkpoints are taken one after the other, however many arrive at once. */
export class CheckpointPin {
  readonly #origin: string
  readonly #store: CheckpointStore
  readonly #fetchTile: FetchTile
  #lastTurn: Promise<unknown> = Promise.resolve()

  constructor(origin: string, store: CheckpointStore, fetchTile: FetchTile) {
    this.#origin = origin
    this.#store = store
    this.#fetchTile = fetchTile
  }

  /** The highest checkpoint. Throws `MALFORMED` when the store gives back something else than was put in. */
  async highest(): Promise<SignedCheckpoint | undefined> {
    const kept = (await this.#store.get(this.#origin)) ?? undefined
    if (kept === undefined) return undefined
    assertTreeSize(kept.treeSize)
    for (const name of ['rootHash', 'note'] as const) {
      if (typeof kept[name] !== 'string')
        throw new SignalError('MALFORMED', `${name} in the store is not a text`)
    }
    treeHeadOf(kept)
    if (kept.origin === this.#origin) return kept
    throw new SignalError('MALFORMED', `the store has a checkpoint of ${kept.origin} under ${this.#origin}`)
  }

  /**
   * Takes a checkpoint that the log signed once it fits the highest one, and keeps it when it is larger. `floorSize`
   * is the highest size when the request left: an answer may be overtaken by a later one, but a tree below the floor
   * is a `rollback`. Rejects with whatever `fetchTile` and the store reject with; the pin is then as it was.
   */
  accept(seen: SignedCheckpoint, floorSize: number): Promise<{ readonly kind: 'accepted' } | Refusal> {
    const turn = this.#lastTurn.then(() => this.#accept(seen, floorSize))
    this.#lastTurn = turn.catch(() => {})
    return turn
  }

  async #accept(seen: SignedCheckpoint, floorSize: number): Promise<{ kind: 'accepted' } | Refusal> {
    const highest = await this.highest()
    if (highest === undefined) return this.#keep(seen)
    const comparison = compareCheckpoints(highest, seen)
    switch (comparison.kind) {
      case 'refused':
        return comparison
      case 'same':
        return ACCEPTED
      case 'smaller':
        if (seen.treeSize < floorSize) return rollback(highest, seen)
        return (await this.#inconsistency(seen, highest)) ?? ACCEPTED
      case 'larger':
        return (await this.#inconsistency(highest, seen)) ?? this.#keep(seen)
    }
  }

  async #keep(checkpoint: SignedCheckpoint): Promise<{ kind: 'accepted' }> {
    await this.#store.put(checkpoint)
    return ACCEPTED
  }

  async #inconsistency(older: SignedCheckpoint, newer: SignedCheckpoint): Promise<Refusal | undefined> {
    const found = await consistencyFromTiles(this.#fetchTile, treeHeadOf(older), treeHeadOf(newer))
    if (found.kind === 'consistent') return undefined
    const { check, detail } = found
    return { kind: 'refused', check, detail, evidence: [older.note, newer.note] }
  }
}

function rollback(highest: SignedCheckpoint, seen: SignedCheckpoint): Refusal {
  const detail = `tree size ${seen.treeSize} is below ${highest.treeSize}, which was seen before`
  return { kind: 'refused', check: 'rollback', detail, evidence: [highest.note, seen.note] }
}

const ACCEPTED = { kind: 'accepted' } as const
