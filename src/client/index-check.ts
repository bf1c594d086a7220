/** The index of one log as one installation of an app sees it: whether it proves answers complete. */
import { decodeBase64 } from '#primitives'
import { CheckpointPin, type CheckpointStore } from './checkpoint-pin.ts'
import {
  type Completeness,
  judgeCompleteness,
  type ShownEntry,
  UNINDEXED,
  type VerifiedIndex,
  verifyIndex,
} from './index-proof.ts'
import { readTail, type Tail } from './index-tail.ts'
import type { IndexKeys, LogKeys } from './log-keys.ts'
import { assertHash, type Identity, inputOf, proveHash, type VerifiedKey } from './lookup.ts'
import {
  type SignedCheckpoint,
  treeHeadOf,
  type VerifiedCheckpoint,
  verifyCheckpoint,
} from './signed-checkpoint.ts'
import type { FetchTile } from './tile-consistency.ts'
import { CheckFailed, during, type Refusal, settle, type Unanswered } from './verdict.ts'
import type { Freshness } from './witnesses.ts'

/**
 * - `demand`: an answer that does not prove that it is complete is refused
 * - `when-offered`: one without a proof is taken, until an index has been verified once
 * - `off`: no index is asked
 */
export type CompletenessDemand = 'demand' | 'when-offered' | 'off'

/** A user without a device list, as their server names them: under the hash of their list is nothing. */
export interface AbsentList {
  readonly vrfHash: string
  /** Base64 of 80 octets. */
  readonly vrfProof: string
  readonly indexProof?: unknown
}

/** Nothing was logged for this user and device. */
export type Absence = { readonly kind: 'verified' } & Completeness

export interface IndexSources {
  readonly keys: LogKeys & { readonly index: IndexKeys }
  readonly demand: CompletenessDemand
  /** How old the newest leaf of the index may be. */
  readonly maxAgeMs: number
  /** The clock, and how long a checkpoint may stay uncompared. */
  readonly freshness: () => Freshness
  readonly store: CheckpointStore
  /** The log's pin, and ways to its tiles and entries. */
  readonly logPin: CheckpointPin
  readonly log: readonly FetchTile[]
  /** Ways to the tiles of the output log. */
  readonly output: readonly FetchTile[]
}

export class IndexCheck {
  readonly #sources: IndexSources
  readonly #pin: CheckpointPin
  /** The one that was last read, by both roots: the results of an answer share it. */
  #tail: { readonly roots: string; readonly read: Promise<Tail> } | undefined

  constructor(sources: IndexSources) {
    this.#sources = sources
    this.#pin = new CheckpointPin(sources.keys.index, sources.store, sources.output, { mayBegin: true })
  }

  /** Whether answers are asked for a proof. */
  get isAsked(): boolean {
    return this.#sources.demand !== 'off'
  }

  /** The verdict on an answer, with what its proof says of it; undefined where it has none. */
  async complete(verdict: VerifiedKey, indexProof: unknown): Promise<VerifiedKey | Refusal | Unanswered> {
    const { vrfHash, checkpoint, index } = verdict
    const shown = { index, treeSize: checkpoint.treeSize }
    const found = await this.#judge(vrfHash, indexProof, checkpoint, shown)
    return found.kind === 'judged' ? { ...verdict, ...found.completeness } : found
  }

  /** Whether nothing is in the log for a user and device, up to the highest checkpoint seen. */
  async absent(identity: Identity, absent: AbsentList | undefined): Promise<Absence | Refusal | Unanswered> {
    if (!this.isAsked) return { kind: 'verified', ...UNINDEXED }
    const input = inputOf(identity)
    const named = settle(() => this.#namedHash(input, absent))
    if (named.kind === 'refused') return named
    const newest = await this.#sources.logPin.highest()
    const found = await this.#judge(named.vrfHash, absent?.indexProof, newest, undefined)
    return found.kind === 'judged' ? { kind: 'verified', ...found.completeness } : found
  }

  /** As `LogClient.compareWith`. */
  async compareWith(note: string): Promise<VerifiedCheckpoint | Refusal | Unanswered> {
    const verdict = verifyCheckpoint(this.#sources.keys.index, note)
    if (verdict.kind === 'refused') return verdict
    const outcome = await this.#pin.accept(verdict.checkpoint, this.#sources.freshness())
    return outcome.kind === 'accepted' ? verdict : outcome
  }

  highestCheckpoint(): Promise<SignedCheckpoint | undefined> {
    return this.#pin.highest()
  }

  async #judge(
    vrfHash: string,
    indexProof: unknown,
    newest: SignedCheckpoint | undefined,
    shown: ShownEntry | undefined,
  ): Promise<Judged | Refusal | Unanswered> {
    const { keys, demand } = this.#sources
    const isDemanded = demand === 'demand' || (await this.#pin.hasSeen())
    if (indexProof === undefined)
      return isDemanded ? refused('the answer has no proof from the index') : UNASKED
    const { maxAgeMs } = this.#sources
    const index = verifyIndex(keys, vrfHash, indexProof, { nowMs: this.#sources.freshness().nowMs, maxAgeMs })
    if (index.kind === 'refused') return index
    const unfit = await this.#fitting(index)
    if (unfit !== undefined) return unfit
    const tail = await this.#tailAfter(index.input, newest ?? index.input)
    if (tail.kind === 'lost') return { kind: 'unanswered', check: 'tiles', detail: tail.detail }
    if (tail.kind === 'unread' && isDemanded)
      return refused('the log has more entries since the newest leaf of the index than are read')
    const indexes = tail.kind === 'unread' ? 'unread' : tail.indexesOf(vrfHash)
    return judgeCompleteness({ isProved: keys.index.isRebuilt, index }, indexes, shown)
  }

  /** Undefined where both checkpoints fit those seen before. */
  async #fitting({ input, output }: VerifiedIndex): Promise<Refusal | Unanswered | undefined> {
    const { logPin, freshness } = this.#sources
    const seen = await logPin.accept(input, freshness())
    if (seen.kind !== 'accepted') return seen
    const outcome = await this.#pin.accept(output, freshness())
    return outcome.kind === 'accepted' ? undefined : outcome
  }

  async #tailAfter(older: SignedCheckpoint, newer: SignedCheckpoint): Promise<Tail> {
    const roots = `${older.treeSize} ${older.rootHash} ${newer.treeSize} ${newer.rootHash}`
    if (this.#tail?.roots !== roots) {
      // One after the other: a server may prove each result of an answer by another leaf, and a tail has some megabytes.
      const before = this.#tail?.read ?? Promise.resolve()
      const read = before.then(() => readTail(this.#sources.log, treeHeadOf(older), treeHeadOf(newer)))
      this.#tail = { roots, read }
    }
    const { read } = this.#tail
    const tail = await read
    if (tail.kind === 'lost' && this.#tail?.read === read) this.#tail = undefined
    return tail
  }

  /** Throws `CheckFailed` unless the VRF proves the hash. */
  #namedHash(
    input: Uint8Array,
    absent: AbsentList | undefined,
  ): { readonly kind: 'named'; readonly vrfHash: string } {
    if (absent === undefined) return { kind: 'named', vrfHash: '' }
    const { vrfHash, vrfProof }: Partial<Record<string, unknown>> = { ...absent }
    if (typeof vrfHash !== 'string' || typeof vrfProof !== 'string' || vrfProof.length > PROOF_CHARS_MAX)
      throw new CheckFailed('proof', 'the server names no hash that has nothing under it')
    const extra = during('proof', () => decodeBase64(vrfProof))
    assertHash(proveHash(this.#sources.keys, input, { extra }), vrfHash)
    return { kind: 'named', vrfHash }
  }
}

interface Judged {
  readonly kind: 'judged'
  readonly completeness: Completeness
}

function refused(detail: string): Refusal {
  return { kind: 'refused', check: 'completeness', detail }
}

const UNASKED: Judged = { kind: 'judged', completeness: UNINDEXED }
/** 80 octets in base64. */
const PROOF_CHARS_MAX = 108
