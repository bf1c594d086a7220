/**
 * Everything an app does with its key transparency log, over `fetch`: look keys up, watch its own, and compare
 * answers with earlier ones, its own and other clients'. It believes only answers that verify under the two public
 * keys the client is made with.
 */
import { SignalError } from '../errors.ts'
import { LOOKUP_TARGETS_MAX } from '../limits.ts'
import { indexOriginOf } from '../log/index-leaf.ts'
import { CheckpointPin, type CheckpointStore, MemoryStore } from './checkpoint-pin.ts'
import { type Absence, type AbsentList, type CompletenessDemand, IndexCheck } from './index-check.ts'
import { type LeastProved, leastOf, UNINDEXED } from './index-proof.ts'
import {
  compareOwnKeys,
  type HistoryClaim,
  type KeyHistory,
  type LoggedKey,
  type OwnKeys,
  type VerifiedHistory,
  verifyKeyHistory,
} from './key-history.ts'
import { type LogKeys, type PublishedKeys, type PublishedPolicy, parseLogKeys } from './log-keys.ts'
import { type Fetch, LogRequests, NoAnswer } from './log-requests.ts'
import { type Identity, type LookupResult, type VerifiedKey, verifyLookup } from './lookup.ts'
import { type SignedCheckpoint, type VerifiedCheckpoint, verifyCheckpoint } from './signed-checkpoint.ts'
import type { FetchTile } from './tile-consistency.ts'
import type { Refusal, Unanswered } from './verdict.ts'
import { type Freshness, verifyWitnesses } from './witnesses.ts'

export type LogClientOptions = (PublishedKeys | PublishedPolicy) & {
  /** The log's prefix, `https://kt.example.org`. Its server is trusted with nothing. */
  readonly url: string
  /** The prefix of a copy of the log's tiles, asked where the log's own are missing or wrong. Trusted with nothing either. */
  readonly mirror?: string
  /** Where the highest checkpoint is kept; unless given in memory, with a warning on the console. */
  readonly store?: CheckpointStore
  /** The platform's `fetch` unless given: to add headers or to pin certificates. It has to honour `signal`. */
  readonly fetch?: Fetch
  /** How long one request with its answer may take. */
  readonly timeoutMs?: number
  /**
   * How long ago the witnesses of the policy may have seen a checkpoint that the log answers with; unless given, any time.
   * Also how long a checkpoint may stay uncompared or stale; unless given, a day.
   */
  readonly maxAgeMs?: number
  /**
   * Whether answers have to prove by the log's index that they are complete; unless given, `demand` where the policy names the
   * index, and else `when-offered`. The store keeps a checkpoint of the index, too, under an origin of its own.
   */
  readonly completeness?: CompletenessDemand
  /** How long ago the quorum may have seen the newest leaf of the index; unless given, a day. */
  readonly maxIndexAgeMs?: number
  /** The clock, POSIX time in milliseconds; the platform's unless given. */
  readonly nowMs?: () => number
}

/** A device to look up. `publicKey` is the key the app holds for it, when it has one. */
export interface DeviceToLookUp extends HistoryClaim {
  readonly publicKey?: string
}

/** This device, and every key it has made: oldest first, the last one in use. */
export interface OwnDevice extends HistoryClaim {
  readonly publicKeys: readonly string[]
}

/**
 * The keys logged in the device's name, and whether the index proves that these are all; no checkpoint when the server denies
 * that there are any.
 */
export type OwnKeysReport = OwnKeys &
  LeastProved & {
    readonly entries: readonly LoggedKey[]
    readonly checkpoint?: SignedCheckpoint
  }

interface CheckpointVerdict {
  readonly kind: 'verified'
  readonly checkpoint: SignedCheckpoint
}

export type LookupOutcome = VerifiedKey | Refusal | Unanswered

/** One log as one installation of an app sees it. */
export class LogClient {
  readonly #keys: LogKeys
  readonly #requests: LogRequests
  readonly #pin: CheckpointPin
  /** Undefined where the app does not know the index's key. */
  readonly #index: IndexCheck | undefined
  readonly #maxAgeMs: number | undefined
  readonly #nowMs: () => number

  /**
   * Throws as `parseLogKeys`, and `KEY_INVALID` for a demand of completeness without the index's key, and for `maxAgeMs` or
   * `maxIndexAgeMs` without witnesses: a checkpoint has no time of its own.
   */
  constructor(options: LogClientOptions) {
    const { url, mirror, store = temporaryStore(), timeoutMs = 20_000, maxAgeMs, nowMs = Date.now } = options
    this.#keys = parseLogKeys(options)
    if (maxAgeMs !== undefined && this.#keys.quorum === undefined)
      throw new SignalError('KEY_INVALID', 'maxAgeMs needs a policy with a quorum of witnesses')
    this.#maxAgeMs = maxAgeMs
    this.#nowMs = nowMs
    const requestsOf = (prefix: string) =>
      new LogRequests(prefix, options.fetch ?? globalThis.fetch, timeoutMs)
    this.#requests = requestsOf(url)
    const sources = mirror === undefined ? [this.#requests] : [this.#requests, requestsOf(mirror)]
    const log = tileSources(sources)
    this.#pin = new CheckpointPin(this.#keys, store, log)
    const { index } = this.#keys
    if (options.completeness === 'demand' && index === undefined)
      throw new SignalError('KEY_INVALID', 'completeness can only be demanded with the key of the index')
    if (options.maxIndexAgeMs !== undefined && index?.quorum === undefined)
      throw new SignalError('KEY_INVALID', 'maxIndexAgeMs needs a policy with a quorum of witnesses')
    if (index === undefined) return
    const prefixes = mirror === undefined ? [url] : [url, mirror]
    this.#index = new IndexCheck({
      keys: { ...this.#keys, index },
      demand: options.completeness ?? (index.isDemanded ? 'demand' : 'when-offered'),
      maxAgeMs: options.maxIndexAgeMs ?? INDEX_AGE_MS_MAX,
      freshness: () => this.#freshness(),
      store,
      logPin: this.#pin,
      log,
      output: tileSources(prefixes.map(prefix => requestsOf(`${prefix.replace(/\/+$/, '')}/index`))),
    })
  }

  /** The newest key that the log holds for a device. Rejects for an id that is no uint64, or with the store's error. */
  async lookUp(device: DeviceToLookUp): Promise<LookupOutcome> {
    const [outcome] = await this.lookUpAll([device])
    return outcome!
  }

  /** As `lookUp` for many devices, 64 in a request; the outcomes in their order. */
  async lookUpAll(devices: readonly DeviceToLookUp[]): Promise<LookupOutcome[]> {
    const outcomes: LookupOutcome[] = []
    for (let first = 0; first < devices.length; first += LOOKUP_TARGETS_MAX) {
      outcomes.push(...(await this.#lookUpTogether(devices.slice(first, first + LOOKUP_TARGETS_MAX))))
    }
    return outcomes
  }

  /**
   * Asks for every key that was ever logged in this device's name and holds them against its own: to be called at each
   * start of the app, and from time to time. A history that lacks what a lookup shows is refused at `history`.
   */
  async checkOwnKeys(device: OwnDevice): Promise<OwnKeysReport | Refusal | Unanswered> {
    const { userId, deviceId, vrfHash, publicKeys } = device
    const newest = await this.lookUp({ userId, deviceId, vrfHash })
    if (isDenial(newest)) return { ...compareOwnKeys([], publicKeys), entries: [], ...leastOf([UNINDEXED]) }
    if (newest.kind !== 'verified') return newest
    const history = await this.#keyHistory(device)
    if (isDenial(history)) return incomplete(newest.index, 'the answer that there is no history')
    if (history.kind !== 'verified') return history
    const { entries, checkpoint } = history
    const shown = newest.complete === true ? newest.indexes : [newest.index]
    const leftOut = shown.find(shownIndex => !entries.some(({ index }) => index === shownIndex))
    if (leftOut !== undefined) return incomplete(leftOut, `the history at tree size ${checkpoint.treeSize}`)
    return { ...compareOwnKeys(entries, publicKeys, newest), entries, checkpoint, ...leastOf([newest]) }
  }

  /** Fetches the current checkpoint and holds it against the highest one seen. */
  async refreshCheckpoint(): Promise<VerifiedCheckpoint | Refusal | Unanswered> {
    const floorSize = await this.#pinnedSize()
    const answer = await answered(() => this.#requests.checkpoint())
    if (answer.kind === 'unanswered') return answer
    return this.#fitting(verifyCheckpoint(this.#keys, answer.value), floorSize)
  }

  /**
   * Holds a note that someone else was given by this log, or of its index, against the highest one seen here. When the log
   * signed both and they do not fit, it shows different trees to different people, and `evidence` proves it.
   */
  async compareWith(note: string): Promise<VerifiedCheckpoint | Refusal | Unanswered> {
    const isOfIndex =
      typeof note === 'string' && note.startsWith(`${indexOriginOf(this.#keys.verifier.name)}\n`)
    if (isOfIndex && this.#index !== undefined) return this.#index.compareWith(note)
    const verdict = verifyCheckpoint(this.#keys, note)
    return verdict.kind === 'refused' ? verdict : this.#compared(verdict)
  }

  /** The highest checkpoint seen: give its note to other clients for `compareWith`. */
  highestCheckpoint(): Promise<SignedCheckpoint | undefined> {
    return this.#pin.highest()
  }

  /** The highest checkpoint of the index, for the same. */
  async highestIndexCheckpoint(): Promise<SignedCheckpoint | undefined> {
    return this.#index?.highestCheckpoint()
  }

  /**
   * Whether nothing is in the log for a user and device, as their server says it proves with `absent`. Refused at
   * `completeness` where the app demands that proof and there is none.
   */
  async verifyAbsence(
    identity: Identity,
    absent: AbsentList | undefined,
  ): Promise<Absence | Refusal | Unanswered> {
    return this.#index?.absent(identity, absent) ?? { kind: 'verified', ...UNINDEXED }
  }

  async #lookUpTogether(devices: readonly DeviceToLookUp[]): Promise<LookupOutcome[]> {
    const floorSize = await this.#pinnedSize()
    const targets = devices.map(({ vrfHash }) => ({ publicKeyHash: vrfHash }))
    const asked = { targets, ...(this.#index?.isAsked === true && { index: true }) }
    const answer = await answered(() => this.#requests.post('api/get-public-keys', asked))
    if (answer.kind === 'unanswered') return devices.map(() => answer)
    const { results }: { results?: unknown } = { ...(answer.value as object) }
    if (!Array.isArray(results) || results.length !== devices.length) {
      const detail = `the answer does not have one result for each of ${devices.length} devices`
      return devices.map(() => ({ kind: 'refused', check: 'proof', detail }))
    }
    return Promise.all(devices.map((device, at) => this.#judged(device, results[at], floorSize)))
  }

  async #judged(device: DeviceToLookUp, result: unknown, floorSize: number): Promise<LookupOutcome> {
    const verdict = await this.#fitting(verifyLookup(this.#keys, device, result as LookupResult), floorSize)
    if (verdict.kind !== 'verified' || this.#index?.isAsked !== true) return verdict
    return this.#index.complete(verdict, (result as { readonly indexProof?: unknown }).indexProof)
  }

  async #keyHistory(device: OwnDevice): Promise<VerifiedHistory | Refusal | Unanswered> {
    const floorSize = await this.#pinnedSize()
    const answer = await answered(() =>
      this.#requests.post('api/get-key-history', { publicKeyHash: device.vrfHash }),
    )
    if (answer.kind === 'unanswered') return answer
    return this.#fitting(verifyKeyHistory(this.#keys, device, answer.value as KeyHistory), floorSize)
  }

  async #pinnedSize(): Promise<number> {
    return (await this.#pin.highest())?.treeSize ?? 0
  }

  /** An answer that verified by itself, once witnesses have seen its checkpoint and it fits the earlier ones. */
  async #fitting<Verified extends CheckpointVerdict>(
    verdict: Verified | Refusal,
    floorSize: number,
  ): Promise<Verified | Refusal | Unanswered> {
    if (verdict.kind === 'refused') return verdict
    const witnessed = verifyWitnesses(this.#keys, verdict.checkpoint.note, this.#freshness())
    return witnessed.kind === 'refused' ? witnessed : this.#compared(verdict, floorSize)
  }

  async #compared<Verified extends CheckpointVerdict>(
    verdict: Verified,
    floorSize?: number,
  ): Promise<Verified | Refusal | Unanswered> {
    const outcome = await this.#pin.accept(verdict.checkpoint, this.#freshness(), floorSize)
    return outcome.kind === 'accepted' ? verdict : outcome
  }

  #freshness(): Freshness {
    return { nowMs: this.#nowMs(), maxAgeMs: this.#maxAgeMs }
  }
}

/**
 * Ways to read tiles: each begins with another source, and falls back where it lacks a tile. Tiles prove nothing one by one, so
 * one way after the other is tried against the signed root.
 */
function tileSources(sources: readonly LogRequests[]): FetchTile[] {
  return sources.map(first => async tile => {
    let tried = first.tile(tile)
    for (const other of sources) if (other !== first) tried = tried.catch(() => other.tile(tile))
    return tried
  })
}

async function answered<Value>(
  ask: () => Promise<Value>,
): Promise<{ readonly kind: 'answered'; readonly value: Value } | Unanswered> {
  try {
    return { kind: 'answered', value: await ask() }
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error
    const { message: detail, status, code } = error
    const known = { ...(status === undefined ? {} : { status }), ...(code === undefined ? {} : { code }) }
    return { kind: 'unanswered', detail, ...known }
  }
}

/** Without a store a rewritten history looks like a new log after each restart. A `MemoryStore` of one's own is silent. */
function temporaryStore(): CheckpointStore {
  const { console } = globalThis as { readonly console?: { warn(text: string): void } }
  console?.warn('callsign: LogClient has no store, so a rewritten log goes unnoticed after a restart')
  return new MemoryStore()
}

/** Leaves come every quarter of an hour, and a clock may be wrong. */
const INDEX_AGE_MS_MAX = 24 * 3_600_000

/** Whether the server says that nothing is logged under the hash. */
function isDenial(outcome: LookupOutcome | VerifiedHistory): boolean {
  return outcome.kind === 'unanswered' && outcome.code === 'UNKNOWN_PUBLIC_KEY_HASH'
}

function incomplete(index: number, history: string): Refusal {
  return {
    kind: 'refused',
    check: 'history',
    detail: `${history} leaves out leaf ${index}, which a lookup shows`,
  }
}
