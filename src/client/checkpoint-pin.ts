/**
 * The highest checkpoint a client has seen. Comparing each new one with it reveals a rewritten history, a rollback or a
 * second view of the log.
 *
 * A checkpoint that could not be compared, because tiles were refused or wrong, is kept beside it as pending evidence. It
 * is compared with every later one: once the log has grown past it, the tiles of its own tree decide.
 */
import { SignalError } from '../errors.ts'
import type { LogKeys } from './log-keys.ts'
import {
  compareCheckpoints,
  type SignedCheckpoint,
  treeHeadOf,
  verifyCheckpoint,
} from './signed-checkpoint.ts'
import { consistencyFromTiles, type FetchTile } from './tile-consistency.ts'
import type { Refusal } from './verdict.ts'

/** A log's stored state. */
export interface KeptCheckpoint extends SignedCheckpoint {
  /** Notes that the log signed and that could not be compared yet. */
  readonly pending?: readonly string[]
}

/**
 * An app's storage for the highest checkpoint of each log: it survives a restart, one for each installation. Plain JSON
 * goes in and comes out; `get` answers undefined or null when there is none.
 */
export interface CheckpointStore {
  get(origin: string): Promise<KeptCheckpoint | undefined | null> | KeptCheckpoint | undefined | null
  put(checkpoint: KeptCheckpoint): Promise<void> | void
}

/** A store that forgets with the process: until then rollbacks and forks show, after it they do not. */
export class MemoryStore implements CheckpointStore {
  readonly #checkpoints = new Map<string, KeptCheckpoint>()

  get(origin: string): KeptCheckpoint | undefined {
    return this.#checkpoints.get(origin)
  }

  put(checkpoint: KeptCheckpoint): void {
    this.#checkpoints.set(checkpoint.origin, checkpoint)
  }
}

/** One log's pin. Checkpoints are taken one after the other, however many arrive at once. */
export class CheckpointPin {
  readonly #keys: LogKeys
  readonly #store: CheckpointStore
  readonly #fetchTile: FetchTile
  /** The one that was last found good: its signature takes longer than the rest of a lookup. */
  #verified: SignedCheckpoint | undefined
  #lastTurn: Promise<unknown> = Promise.resolve()

  constructor(keys: LogKeys, store: CheckpointStore, fetchTile: FetchTile) {
    this.#keys = keys
    this.#store = store
    this.#fetchTile = fetchTile
  }

  /**
   * The highest checkpoint. Throws `MALFORMED` when the store gives back something else than was put in, such as a
   * checkpoint that the log did not sign.
   */
  async highest(): Promise<SignedCheckpoint | undefined> {
    return (await this.#read())?.highest
  }

  /**
   * Takes a checkpoint that the log signed once it fits the highest one, and keeps it when it is larger. `floorSize`
   * is the highest size when the request left: an answer may be overtaken by a later one, but a tree below the floor
   * is a `rollback`. Rejects with whatever `fetchTile` and the store reject with; the pin is then where it was, and the
   * checkpoint is pending.
   */
  accept(seen: SignedCheckpoint, floorSize: number): Promise<{ readonly kind: 'accepted' } | Refusal> {
    const turn = this.#lastTurn.then(() => this.#accept(seen, floorSize))
    this.#lastTurn = turn.catch(() => {})
    return turn
  }

  async #accept(seen: SignedCheckpoint, floorSize: number): Promise<{ kind: 'accepted' } | Refusal> {
    const pin = await this.#read()
    if (pin === undefined) {
      await this.#store.put(seen)
      return ACCEPTED
    }
    const { highest, pending } = pin
    const comparison = compareCheckpoints(highest, seen)
    if (comparison.kind === 'refused') return comparison
    if (comparison.kind === 'smaller' && seen.treeSize < floorSize) return rollback(highest, seen)
    const refusal = await this.#compare(pin, seen)
    if (refusal !== undefined) return refusal
    const newest = comparison.kind === 'larger' ? seen : highest
    const { caught, left } = await this.#askAgain(pending, newest)
    if (caught !== undefined) return caught
    if (newest !== highest || left.length < pending.length) await this.#keep(newest, left)
    return ACCEPTED
  }

  /** The refusal of a checkpoint that does not fit the pin; it is pending unless tiles decided. */
  async #compare({ highest, pending }: Pin, seen: SignedCheckpoint): Promise<Refusal | undefined> {
    const keep = () => this.#keep(highest, [...pending.filter(note => note !== seen.note), seen.note])
    try {
      const outcome = await this.#decide(highest, seen)
      if (outcome.kind === 'inconsistent' && !outcome.isProven) await keep()
      return outcome.kind === 'consistent' ? undefined : outcome.refusal
    } catch (error) {
      await keep()
      throw error
    }
  }

  /** Compares pending checkpoints with the newest one. Unanswered ones stay. */
  async #askAgain(
    pending: readonly string[],
    newest: SignedCheckpoint,
  ): Promise<{ readonly caught?: Refusal; readonly left: readonly string[] }> {
    const left: string[] = []
    for (const note of pending) {
      const verdict = verifyCheckpoint(this.#keys, note)
      // A note that the log did not sign is no evidence.
      if (verdict.kind === 'refused') continue
      const outcome = await this.#decide(newest, verdict.checkpoint).catch(() => UNANSWERED)
      if (outcome.kind === 'consistent') continue
      if (outcome.kind === 'inconsistent' && outcome.isProven)
        return { caught: outcome.refusal, left: pending }
      left.push(note)
    }
    return { left }
  }

  /** Whether one of two trees begins with the other. Only tiles that lead to the signed root prove that it does not. */
  async #decide(known: SignedCheckpoint, seen: SignedCheckpoint): Promise<Decision> {
    const comparison = compareCheckpoints(known, seen)
    if (comparison.kind === 'refused') return { kind: 'inconsistent', isProven: true, refusal: comparison }
    if (comparison.kind === 'same') return CONSISTENT
    const [older, newer] = comparison.kind === 'larger' ? [known, seen] : [seen, known]
    let isAnyMissing = false
    const fetchTile: FetchTile = async tile => {
      const bytes = await this.#fetchTile(tile)
      if (bytes.length === 0) isAnyMissing = true
      return bytes
    }
    const found = await consistencyFromTiles(fetchTile, treeHeadOf(older), treeHeadOf(newer))
    if (found.kind === 'consistent') return CONSISTENT
    const { detail } = found
    // A log that lacks tiles of a tree that it signed does not show that its history is one.
    const check = isAnyMissing ? 'consistency' : found.check
    const evidence = [older.note, newer.note] as const
    const isProven = found.check === 'consistency'
    return { kind: 'inconsistent', isProven, refusal: { kind: 'refused', check, detail, evidence } }
  }

  async #read(): Promise<Pin | undefined> {
    const { name } = this.#keys.verifier
    const kept = (await this.#store.get(name)) ?? undefined
    if (kept === undefined) return undefined
    const { pending } = kept
    return { highest: this.#verify(kept), pending: Array.isArray(pending) ? pending : [] }
  }

  /** Anyone who can write to the app's storage could plant a checkpoint: only the signature counts. */
  #verify(kept: SignedCheckpoint): SignedCheckpoint {
    const last = this.#verified
    if (last !== undefined && isSame(last, kept)) return last
    const verdict = verifyCheckpoint(this.#keys, kept.note)
    if (verdict.kind === 'refused') {
      throw new SignalError('MALFORMED', `the checkpoint in the store is not the log's: ${verdict.detail}`)
    }
    if (!isSame(verdict.checkpoint, kept)) {
      throw new SignalError('MALFORMED', 'the checkpoint in the store is not what its note says')
    }
    this.#verified = verdict.checkpoint
    return verdict.checkpoint
  }

  async #keep(highest: SignedCheckpoint, pending: readonly string[]): Promise<void> {
    const kept = pending.slice(-PENDING_MAX)
    await this.#store.put(kept.length === 0 ? highest : { ...highest, pending: kept })
  }
}

interface Pin {
  readonly highest: SignedCheckpoint
  readonly pending: readonly string[]
}

type Decision =
  | { readonly kind: 'consistent' }
  | { readonly kind: 'inconsistent'; readonly isProven: boolean; readonly refusal: Refusal }

function isSame(one: SignedCheckpoint, other: SignedCheckpoint): boolean {
  return (
    one.note === other.note &&
    one.origin === other.origin &&
    one.treeSize === other.treeSize &&
    one.rootHash === other.rootHash
  )
}

function rollback(highest: SignedCheckpoint, seen: SignedCheckpoint): Refusal {
  const detail = `tree size ${seen.treeSize} is below ${highest.treeSize}, which was seen before`
  return { kind: 'refused', check: 'rollback', detail, evidence: [highest.note, seen.note] }
}

const ACCEPTED = { kind: 'accepted' } as const
const CONSISTENT = { kind: 'consistent' } as const
const UNANSWERED = { kind: 'unanswered' } as const
/** Only the log can sign one. When it signs more, the newest are kept: each is evidence enough. */
const PENDING_MAX = 16
