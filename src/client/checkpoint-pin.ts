/**
 * The highest checkpoint a client has seen. Comparing each new one with it reveals a rewritten history or a second view of
 * the log.
 *
 * Caches stand between log and client, so only two signed notes that contradict each other accuse the log:
 *
 * - one size with two roots, or tiles that lead to the newer root and contradict the older one: evidence
 * - tiles that are missing or lead to no signed root prove nothing. The checkpoint is kept as *pending* and compared with every
 *   later one: once the log has grown past it, the tiles of its own tree decide
 * - an answer with a beginning of the highest tree is *stale*
 *
 * Nothing of a pending or stale answer is used. Where that lasts longer than `maxAgeMs`, it is refused.
 */
import { messageOf, SignalError } from '../errors.ts'
import { readNote } from '../log/note.ts'
import type { CheckpointKeys } from './log-keys.ts'
import {
  compareCheckpoints,
  type SignedCheckpoint,
  treeHeadOf,
  verifyCheckpoint,
} from './signed-checkpoint.ts'
import { consistencyFromTiles, type FetchTile, type TileConsistency } from './tile-consistency.ts'
import type { Refusal, Unanswered } from './verdict.ts'
import type { Freshness } from './witnesses.ts'

/** A log's stored state. */
export interface KeptCheckpoint extends SignedCheckpoint {
  /** Notes that the log signed and that could not be compared yet. */
  readonly pending?: readonly string[]
  /** Set while checkpoints are pending, or the log's answers stale: the time of the first, POSIX milliseconds. */
  readonly openSinceMs?: number
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
  readonly #keys: CheckpointKeys
  readonly #store: CheckpointStore
  readonly #sources: readonly FetchTile[]
  /** The one that was last found good: its signature takes longer than the rest of a lookup. */
  #verified: SignedCheckpoint | undefined
  /** The two notes that were last found consistent: each result of an answer carries the same one. */
  #consistent = ''
  #lastTurn: Promise<unknown> = Promise.resolve()

  readonly #mayBegin: boolean

  /**
   * Asks the sources in turn until the tiles of one decide. `mayBegin`: the log may be begun anew with another key under its name,
   * so a kept checkpoint that none of the present keys has signed counts as none.
   */
  constructor(
    keys: CheckpointKeys,
    store: CheckpointStore,
    sources: readonly FetchTile[],
    { mayBegin = false } = {},
  ) {
    this.#keys = keys
    this.#store = store
    this.#sources = sources
    this.#mayBegin = mayBegin
  }

  /**
   * The highest checkpoint. Throws `MALFORMED` when the store gives back something else than was put in, such as a
   * checkpoint that the log did not sign.
   */
  async highest(): Promise<SignedCheckpoint | undefined> {
    return (await this.#read())?.highest
  }

  /** Whether a checkpoint is kept, be it one that counts as none. Throws as `highest`. */
  async hasSeen(): Promise<boolean> {
    return (await this.#read()) !== undefined || (await this.#kept()) !== undefined
  }

  /**
   * Takes a checkpoint that the log signed once it fits the highest one, and keeps it when it is larger. `floorSize` is
   * given for an answer of the log: the highest size when the request left. A later answer may overtake it, but a tree below
   * the floor is stale. Rejects with whatever the store rejects with.
   */
  accept(seen: SignedCheckpoint, freshness: Freshness, floorSize?: number): Promise<Acceptance> {
    const turn = this.#lastTurn.then(() => this.#accept(seen, freshness, floorSize))
    this.#lastTurn = turn.catch(() => {})
    return turn
  }

  async #accept(
    seen: SignedCheckpoint,
    freshness: Freshness,
    floorSize: number | undefined,
  ): Promise<Acceptance> {
    const pin = await this.#read()
    if (pin === undefined) {
      await this.#store.put(seen)
      return ACCEPTED
    }
    const { highest, pending } = pin
    const found = await this.#compare(highest, seen)
    if (found.kind === 'refused') return found
    if (found.kind === 'unanswered') {
      const notes = pending.includes(seen.note) ? pending : [...pending, seen.note]
      return this.#leaveOpen({ ...pin, pending: notes }, found, freshness)
    }
    if (floorSize !== undefined && seen.treeSize < floorSize)
      return this.#leaveOpen(pin, stale(highest, seen), freshness)
    const newest = seen.treeSize > highest.treeSize ? seen : highest
    const { refusal, left, open } = await this.#askAgain(pending, newest)
    if (refusal !== undefined) return refusal
    const next = { ...pin, highest: newest, pending: left }
    if (open !== undefined) {
      const outcome = await this.#leaveOpen(next, open, freshness)
      return outcome.kind === 'refused' ? outcome : ACCEPTED
    }
    // Another person's note says nothing of how late the log's answers are.
    const openSinceMs = floorSize === undefined ? pin.openSinceMs : undefined
    if (newest !== highest || left.length < pending.length || openSinceMs !== pin.openSinceMs)
      await this.#keep({ ...next, openSinceMs })
    return ACCEPTED
  }

  /** Keeps since when something is open: the answer, until that has lasted too long. */
  async #leaveOpen(
    pin: Pin,
    open: Open,
    { nowMs, maxAgeMs = OPEN_MS_MAX }: Freshness,
  ): Promise<Unanswered | Refusal> {
    // A clock that was ahead must not put the refusal off.
    const openSinceMs = Math.min(pin.openSinceMs ?? nowMs, nowMs)
    if (open.check === 'tiles' || openSinceMs !== pin.openSinceMs) await this.#keep({ ...pin, openSinceMs })
    if (nowMs - openSinceMs <= maxAgeMs) return open
    const detail = `${open.detail}, and no better answer has come for ${Math.round((nowMs - openSinceMs) / 1_000)} s`
    return { kind: 'refused', check: open.check, detail }
  }

  /** Compares pending checkpoints with the newest one. Those that still could not be are left. */
  async #askAgain(pending: readonly string[], newest: SignedCheckpoint): Promise<Answers> {
    const left: string[] = []
    let open: Open | undefined
    for (const note of pending) {
      const verdict = verifyCheckpoint(this.#keys, note)
      // A note that the log did not sign is no evidence.
      if (verdict.kind === 'refused') continue
      const found = await this.#compare(newest, verdict.checkpoint)
      if (found.kind === 'refused') return { refusal: found, left: pending }
      if (found.kind === 'accepted') continue
      open = found
      left.push(note)
    }
    return { left, open }
  }

  /** Whether one of two trees begins with the other. Only tiles that lead to the signed root prove that it does not. */
  async #compare(known: SignedCheckpoint, seen: SignedCheckpoint): Promise<typeof ACCEPTED | Refusal | Open> {
    const comparison = compareCheckpoints(known, seen)
    if (comparison.kind === 'refused') return comparison
    if (comparison.kind === 'same' || this.#consistent === known.note + seen.note) return ACCEPTED
    const [older, newer] = comparison.kind === 'larger' ? [known, seen] : [seen, known]
    let unanswered = ''
    for (const fetchTile of this.#sources) {
      const found = await consistencyFromTiles(fetchTile, treeHeadOf(older), treeHeadOf(newer)).catch(lost)
      if (found.kind === 'consistent') {
        this.#consistent = known.note + seen.note
        return ACCEPTED
      }
      const { check, detail } = found
      if (check === 'consistency')
        return { kind: 'refused', check, detail, evidence: [older.note, newer.note] }
      unanswered ||= detail
    }
    return { kind: 'unanswered', check: 'tiles', detail: unanswered }
  }

  async #read(): Promise<Pin | undefined> {
    const kept = await this.#kept()
    if (kept === undefined || (this.#mayBegin && this.#isOfOtherKeys(kept))) return undefined
    const { pending, openSinceMs } = kept
    return {
      highest: this.#verify(kept),
      pending: Array.isArray(pending) ? pending : [],
      openSinceMs: typeof openSinceMs === 'number' ? openSinceMs : undefined,
    }
  }

  async #kept(): Promise<KeptCheckpoint | undefined> {
    return (await this.#store.get(this.#keys.verifier.name)) ?? undefined
  }

  /** A signature that names one of the present keys has to hold. */
  #isOfOtherKeys({ note }: SignedCheckpoint): boolean {
    if (typeof note !== 'string' || note === this.#verified?.note) return false
    const { verifiers } = this.#keys
    return !readNote(note).signatures.some(({ name, keyId }) =>
      verifiers.some(key => key.name === name && key.keyId === keyId),
    )
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

  async #keep({ highest, pending, openSinceMs }: Pin): Promise<void> {
    const kept = pending.slice(0, PENDING_MAX)
    await this.#store.put({
      ...highest,
      ...(kept.length > 0 && { pending: kept }),
      ...(openSinceMs !== undefined && { openSinceMs }),
    })
  }
}

export type Acceptance = { readonly kind: 'accepted' } | Refusal | Unanswered

interface Pin {
  readonly highest: SignedCheckpoint
  readonly pending: readonly string[]
  readonly openSinceMs: number | undefined
}

type Open = Unanswered & { readonly check: 'tiles' | 'stale' }

interface Answers {
  readonly refusal?: Refusal
  readonly left: readonly string[]
  /** Why the last of those that are left is. */
  readonly open?: Open | undefined
}

function isSame(one: SignedCheckpoint, other: SignedCheckpoint): boolean {
  return (
    one.note === other.note &&
    one.origin === other.origin &&
    one.treeSize === other.treeSize &&
    one.rootHash === other.rootHash
  )
}

function stale(highest: SignedCheckpoint, seen: SignedCheckpoint): Open {
  const detail = `tree size ${seen.treeSize} is the beginning of ${highest.treeSize}, which was seen before`
  return { kind: 'unanswered', check: 'stale', detail }
}

/** A source without an answer. */
function lost(error: unknown): TileConsistency & { readonly kind: 'inconsistent' } {
  return { kind: 'inconsistent', check: 'tiles', detail: messageOf(error) }
}

const ACCEPTED = { kind: 'accepted' } as const
/** Only the log can sign one. When it signs more, the first are kept: later ones can't push a contradiction out. */
const PENDING_MAX = 16
const OPEN_MS_MAX = 24 * 3_600_000
