/**
 * One log as the auditor looks at it: its newest checkpoint, held against all that is known of it, and its tree, read whole. Each
 * look goes from the last checkpoint that was verified to the newest one, and remembers that only when all of it holds.
 */

import { encodeBase64 } from '#primitives'
import type { CheckpointKeys } from '../../src/client/log-keys.ts'
import { consistencyFromTiles, type TreeHead } from '../../src/client/tile-consistency.ts'
import { verifyWitnesses } from '../../src/client/witnesses.ts'
import { messageOf, SignalError } from '../../src/errors.ts'
import { EMPTY_ROOT } from '../../src/log/hash.ts'
import type { VerifierKey } from '../../src/log/note.ts'
import type { EntryCheck } from './bundle.ts'
import { Checks } from './checks.ts'
import { crawl } from './crawl.ts'
import {
  AuditFailure,
  alarmOf,
  type CheckName,
  type FindingFacts,
  pending,
  proven,
  unchecked,
} from './finding.ts'
import { compareHistories, isSameTree, openHead, openServedHead, type SignedHead } from './history.ts'
import type { HttpLimits } from './http-source.ts'
import type { LogReader, TileReader } from './log-reader.ts'
import { FILES_AT_ONCE, LogSources } from './log-sources.ts'
import { AuditMemory, type PendingEvidence, type RememberedHead } from './memory.ts'
import type { Report } from './report.ts'

/** A log, and what its auditor knows of it. */
export interface LogToAudit {
  /** The log's prefix. */
  readonly url: URL
  readonly keys: CheckpointKeys
  readonly stateFile: string
  /** Other readers' prefixes of the log. One of an optional log need not have it. */
  readonly gossip: readonly URL[]
  readonly isOptional: boolean
  /** Where tiles are asked for that the log does not show. */
  readonly mirrors: readonly URL[]
  readonly maxAgeMs: number | undefined
  /** Whether `maxAgeMs` is a day where it is not given, as of a log that always goes on. */
  readonly isAlwaysGrowing: boolean
  /** The form of its entries, where it is not the key log's. */
  readonly isForm?: EntryCheck
  /** In each finding. */
  readonly facts: FindingFacts
  readonly report: Report
  readonly stop: AbortSignal
  readonly httpLimits?: HttpLimits | undefined
  readonly nowMs: () => number
}

/** Takes the entries of a log as they are read; they count once they were verified. */
export interface EntryTaker {
  /** The size of the tree whose entries it has. */
  readonly verifiedSize: number
  startAfter(size: number): void
  append(firstIndex: number, bundle: Uint8Array): void
  verify(): void
}

/** Further work of a look at a log. */
export interface Look {
  readonly entries?: EntryTaker | undefined
  /** Holds other trees against the one that was read, or is read next. */
  compare?(known: SignedHead): Promise<void>
  /** The tree was read whole. */
  onRead?(known: SignedHead, isNewest: boolean): Promise<void>
}

export class AuditedLog {
  readonly #log: LogToAudit
  readonly #memory: AuditMemory
  readonly #sources: LogSources
  readonly #startedAtMs: number
  /** Since when no look has read the log's newest tree whole. */
  #unreadSinceMs: number | undefined
  /** The newest cosignature of a quorum, of any checkpoint. */
  #cosignedAtMs = 0
  /** Notes of users that were compared, or are none. */
  readonly #notesChecked = new Set<string>()
  #checks: Checks
  #held: SignedHead | undefined

  /** Throws `AuditFailure` when the state file is of no use. */
  constructor(log: LogToAudit) {
    const { keys, stop, httpLimits, nowMs } = log
    this.#log = log
    this.#memory = AuditMemory.open(log.stateFile, keys.verifiers)
    this.#checks = this.#newChecks()
    this.#sources = new LogSources(log.url, log.gossip, log.mirrors, stop, httpLimits)
    this.#startedAtMs = nowMs()
    const { last } = this.#memory
    this.#held = last
    if (last !== undefined) this.#witnessedAtMs(last)
  }

  get url(): string {
    return this.#sources.own.url
  }

  /** Where its files are read. */
  get sources(): Pick<LogSources, 'tiles' | 'tilesOfMirrors' | 'mirrors'> {
    return this.#sources
  }

  get keys(): CheckpointKeys {
    return this.#log.keys
  }

  get checks(): Checks {
    return this.#checks
  }

  /** The newest tree that holds. */
  get held(): SignedHead | undefined {
    return this.#held
  }

  get last(): RememberedHead | undefined {
    return this.#memory.last
  }

  /** The texts of evidence that proves by itself that one of these keys was misused. Throws `AuditFailure`. */
  provenEvidence(known: readonly VerifierKey[]): readonly string[] {
    return this.#memory.provenEvidence(known)
  }

  /** A file of the log's prefix that is none of every log's; undefined for 404. Rejects with `AuditFailure`. */
  file(path: string, bytesMax: number): Promise<Uint8Array | undefined> {
    return this.#sources.source.read(path, bytesMax)
  }

  /** Forgets the findings and files of the last look. */
  begin(): void {
    this.#sources.begin()
    this.#checks = this.#newChecks()
  }

  close(): void {
    this.#sources.close()
  }

  /** The newest checkpoint that the log shows. */
  async readCheckpoint(): Promise<SignedHead> {
    const { verifiers, verifier } = this.#log.keys
    const { own } = this.#sources
    const head = openServedHead(own.url, await own.checkpoint(), verifiers)
    this.#checks.pass('checkpoint', `size ${head.treeSize} is signed by ${verifier.name}`, {
      treeSize: String(head.treeSize),
      rootHash: encodeBase64(head.rootHash),
    })
    return head
  }

  /** Whether the log showed its newest tree, and all of it. Throws `AuditFailure` where there is nothing to go on with. */
  async audit(head: SignedHead, look: Look): Promise<boolean> {
    const { last } = this.#memory
    const checks = this.#checks
    this.#sources.grow(head)
    if (last !== undefined) this.#sources.grow(last)
    const isWitnessed = await checks.try(async () => this.#checkWitnesses(head))
    const kept = this.#memory.pending().filter(({ seen }) => !isSameTree(seen, head))
    const place = last === undefined ? 'newest' : await this.#placeOf(head, last)
    if (place === 'fork') return false
    // Other trees are held against one that was read, or is read below.
    const known = place === 'newest' ? head : last!
    await this.#compareOthers(known, head, kept)
    await look.compare?.(known)
    const isRead = await checks.try(() => this.#read(known, look, place === 'newest'))
    if (checks.verdict === 1) return false
    if (place === 'newest' && isWitnessed && isRead) {
      this.#remember(head)
      return !this.#memory.pending().some(({ seen }) => seen.treeSize > head.treeSize)
    }
    if (last !== undefined && (place === 'stale' || isSameTree(head, last))) return false
    // Not forgotten: what the log shows next must go with it.
    this.#keepPending({ check: 'consistency', known: last ?? head, seen: head }, 'its tree was not read')
    return false
  }

  /** A wait that is longer than a cache explains. */
  alarm(isRead: boolean): AuditFailure | undefined {
    if (this.#checks.verdict === 1) return undefined
    const { maxAgeMs, isAlwaysGrowing, keys } = this.#log
    const nowMs = this.#log.nowMs()
    if (isRead) this.#unreadSinceMs = undefined
    else this.#unreadSinceMs ??= nowMs
    const newestAtMs = keys.quorum === undefined ? this.#memory.last?.sinceMs : this.#cosignedAtMs
    const sinceMs = newestAtMs || this.#startedAtMs
    const ageMs = isAlwaysGrowing ? (maxAgeMs ?? UNREAD_MS_MAX) : maxAgeMs
    if (ageMs !== undefined && nowMs - sinceMs > ageMs) {
      const what = keys.quorum === undefined ? 'no new checkpoint' : 'no new cosignatures of the quorum'
      return alarmOf(what, sinceMs, ageMs)
    }
    const unreadMsMax = maxAgeMs ?? UNREAD_MS_MAX
    if (this.#unreadSinceMs === undefined || nowMs - this.#unreadSinceMs <= unreadMsMax) return undefined
    return alarmOf('the log has not shown its newest tree, whole,', this.#unreadSinceMs, unreadMsMax)
  }

  /**
   * Throws `AuditFailure`: of the check with both notes when the log contradicts itself; else the failure of the
   * log's own answer. Both notes are then kept and compared again, so that a log gains nothing by not answering.
   */
  async assertSameHistory(
    found: { readonly check: CheckName; readonly url?: string },
    known: SignedHead,
    seen: SignedHead,
  ): Promise<void> {
    const { check } = found
    const outcome = await compareHistories(known, seen, this.#sources.comparing(found.url))
    if (outcome.kind === 'consistent') return
    const facts = { treeSize: String(seen.treeSize), notes: [known.note, seen.note] }
    if (outcome.kind === 'contradiction') {
      const { detail, proof } = outcome
      throw proven(check, `the log signed both of two histories: ${detail}`, { ...facts, proof })
    }
    this.#keepPending({ ...found, known, seen }, outcome.failure.message)
    throw undecided(outcome.failure, check)
  }

  /** Each note is compared once; those that no source has the tiles for are pending evidence. */
  async checkNotes(file: string, notes: readonly string[], known: SignedHead): Promise<void> {
    const unknown = notes.filter(note => !this.#notesChecked.has(note))
    let failures = 0
    for (const note of unknown) {
      await this.#checks.try(
        () => this.#checkNote(note, known),
        failure => {
          failures++
          return failure.ofSource('notes', { file })
        },
      )
    }
    if (unknown.length > 0 && failures === 0)
      this.#checks.pass('notes', `${unknown.length} notes are of the same history`, { file })
  }

  /** For a tree that another log's leaf says that this one signed. Throws `AuditFailure` until that is known. */
  async assertSigned(check: CheckName, seen: SignedHead, known: SignedHead): Promise<void> {
    await this.assertSameHistory({ check }, known, seen)
    if (!this.#settle(seen, known))
      throw pending(check, `size ${seen.treeSize} is signed, and the log has not shown it yet`)
  }

  /** Reads what of `known` has not been read before. */
  async #read(known: SignedHead, look: Look, isNewest: boolean): Promise<void> {
    const { last } = this.#memory
    const isTaken = look.entries === undefined || look.entries.verifiedSize === known.treeSize
    if (last?.treeSize !== known.treeSize || !isTaken) await this.#crawl(last ?? NOTHING, known, look.entries)
    await look.onRead?.(known, isNewest)
  }

  /** A failing source does not keep the auditor from reading the log itself. */
  async #compareOthers(known: SignedHead, head: SignedHead, kept: readonly PendingEvidence[]): Promise<void> {
    const shown: SignedHead[] = []
    for (const log of this.#sources.gossip) {
      await this.#checks.try(
        () => this.#compareGossip(log, known, shown),
        failure => failure.ofSource('gossip', { url: log.url }),
      )
    }
    for (const evidence of kept) {
      if (shown.some(other => isSameTree(other, evidence.seen))) continue
      await this.#checks.try(() => this.#compareKept(evidence, known, head))
    }
  }

  /** A tree without witnesses is compared all the same: a contradiction that the log signed is one. */
  #checkWitnesses(head: SignedHead): void {
    const { quorum } = this.#log.keys
    if (quorum === undefined) return
    const found = this.#witnessedAtMs(head)
    if (found.kind === 'refused') throw pending('witnesses', found.detail)
    this.#checks.pass(
      'witnesses',
      `the quorum ${quorum.name} saw it at ${new Date(found.atMs!).toISOString()}`,
    )
  }

  #witnessedAtMs({ note }: SignedHead) {
    const found = verifyWitnesses(this.#log.keys, note, { nowMs: this.#log.nowMs() })
    if (found.kind === 'witnessed') this.#cosignedAtMs = Math.max(this.#cosignedAtMs, found.atMs ?? 0)
    return found
  }

  /**
   * Where the tree that the log showed stands to the known one: it goes on from it, or is a beginning of it, as a late
   * cache shows, or cannot be compared yet, or is of another history.
   */
  async #placeOf(head: SignedHead, last: RememberedHead): Promise<Place> {
    const known = this.#memory.verified(head.treeSize) ?? last
    const isSame = await this.#checks.try(() => this.assertSameHistory({ check: 'consistency' }, known, head))
    if (!isSame) return this.#checks.verdict === 1 ? 'fork' : 'pending'
    const { treeSize } = head
    if (treeSize >= last.treeSize) {
      this.#checks.pass('consistency', `the tree begins with the one of size ${last.treeSize} known before`)
      return 'newest'
    }
    const detail = `size ${treeSize} is a beginning of the known ${last.treeSize}: an old answer`
    this.#checks.fail(pending('stale', detail, { treeSize: String(treeSize) }))
    return 'stale'
  }

  /** Puts what the source shows into `shown`. */
  async #compareGossip(log: LogReader, known: SignedHead, shown: SignedHead[]): Promise<void> {
    const note = await (this.#log.isOptional ? log.note() : log.checkpoint())
    // A reader who shows the log need not show its index.
    if (note === undefined) return
    const other = openServedHead(log.url, note, this.#log.keys.verifiers)
    shown.push(other)
    await this.assertSameHistory({ check: 'gossip', url: log.url }, known, other)
    const facts = { url: log.url, treeSize: String(other.treeSize) }
    this.#settle(other, known)
    this.#checks.pass('gossip', `size ${other.treeSize} shown there is of the same history`, facts)
  }

  /** Unanswered evidence is compared with each new tree: a log that grows past it has to decide it. */
  async #compareKept(evidence: PendingEvidence, known: SignedHead, head: SignedHead): Promise<void> {
    const { check, url, seen } = evidence
    const facts = url === undefined ? {} : { url }
    try {
      // Two roots of one size need no tiles.
      if (seen.treeSize === head.treeSize) await this.assertSameHistory(evidence, head, seen)
      await this.assertSameHistory(evidence, known, seen)
    } catch (error) {
      if (!(error instanceof AuditFailure)) throw error
      throw error.ofSource(check, facts)
    }
    if (this.#settle(seen, known))
      this.#checks.pass(check, `size ${seen.treeSize}, which was unanswered, is of the same history`, facts)
  }

  /** Lets a tree of the same history go, once the tree that was read reaches over it. */
  #settle(seen: SignedHead, known: SignedHead): boolean {
    const isCovered = seen.treeSize <= known.treeSize
    if (isCovered) this.#memory.dropPending(seen)
    return isCovered
  }

  #keepPending(evidence: PendingEvidence, detail: string): void {
    const file = this.#memory.keepPending(evidence, detail, this.#log.nowMs())
    if (file !== undefined)
      this.#checks.pass('state', `both signed notes are kept in ${file} until they are compared`)
  }

  async #checkNote(note: string, known: SignedHead): Promise<void> {
    let seen: SignedHead
    try {
      seen = openHead(Buffer.from(note), this.#log.keys.verifiers)
    } catch (error) {
      if (!(error instanceof SignalError)) throw error
      this.#notesChecked.add(note)
      throw unchecked('notes', `${JSON.stringify(note.slice(0, 80))}: ${error.message}`)
    }
    await this.assertSameHistory({ check: 'notes' }, known, seen)
    this.#settle(seen, known)
    this.#notesChecked.add(note)
  }

  async #crawl(last: TreeHead, head: SignedHead, taker: EntryTaker | undefined): Promise<void> {
    const proven = (await this.#provenProgress(last, head)) ?? last
    // Entries that another run has read were not taken: they are read again.
    const audited = { treeSize: Math.min(proven.treeSize, taker?.verifiedSize ?? proven.treeSize) }
    const startedAtMs = performance.now()
    const read = async (tiles: TileReader) => {
      useTaker(() => taker?.startAfter(audited.treeSize))
      await crawl(tiles, audited, head, {
        filesAtOnce: FILES_AT_ONCE,
        isForm: this.#log.isForm,
        onProgress: (treeSize, computedHead) => {
          this.#log.report.progress(treeSize, head.treeSize)
          if (treeSize % ENTRIES_BETWEEN_SAVES === 0) this.#memory.setProgress(computedHead())
        },
        onBundle: (firstIndex, bundle) => useTaker(() => taker?.append(firstIndex, bundle)),
      })
    }
    try {
      await read(this.#sources.tiles)
    } catch (error) {
      // A garbled file of the log is got round where a mirror has a good one.
      if (!(error instanceof AuditFailure && error.isPending) || this.#sources.mirrors.length === 0)
        throw error
      await read(this.#sources.tilesOfMirrors)
    }
    useTaker(() => taker?.verify())
    const { files, bytes } = this.#sources.source.received
    const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1)
    const entries = head.treeSize - audited.treeSize
    this.#checks.pass('fetch', `${files} files of ${bytes} bytes in all, the tree in ${seconds} s`)
    this.#checks.pass(
      'entries',
      `${entries} entries from ${audited.treeSize} on are of the log's form and in the tree`,
    )
    this.#checks.pass('tiles', `root from entries and every hash tile are those of size ${head.treeSize}`)
  }

  /** How far an earlier crawl came, when that is further than `last` and a beginning of the signed tree. */
  async #provenProgress(last: TreeHead, head: SignedHead): Promise<TreeHead | undefined> {
    const { progress } = this.#memory
    if (progress === undefined || progress.treeSize <= last.treeSize || progress.treeSize > head.treeSize) {
      return undefined
    }
    const found = await consistencyFromTiles(tile => this.#sources.tiles.tile(tile), progress, head)
    return found.kind === 'consistent' ? progress : undefined
  }

  #remember(head: SignedHead): void {
    if (!this.#memory.isLast(head)) this.#memory.remember(head, this.#log.nowMs())
    this.#memory.dropPending(head)
    this.#held = head
    this.#checks.pass('state', `size ${head.treeSize} is remembered as the last that holds`)
  }

  #newChecks(): Checks {
    const { report, nowMs, facts } = this.#log
    return new Checks(this.#memory, report, nowMs, facts)
  }
}

function useTaker(use: () => void): void {
  try {
    use()
  } catch (error) {
    throw unchecked('state', `the index of hashes cannot be read or written: ${messageOf(error)}`)
  }
}

/** Tiles that are missing or wrong belong to the comparison that they keep from ending. */
function undecided(failure: AuditFailure, check: CheckName): AuditFailure {
  return failure.isPending ? failure.as(check) : failure
}

type Place = 'newest' | 'stale' | 'pending' | 'fork'

/** Longer than any cache keeps what it should not. */
export const UNREAD_MS_MAX = 86_400_000
const NOTHING: TreeHead = { treeSize: 0, rootHash: EMPTY_ROOT }
/** A whole tile of level 1: seconds of work over a network. */
const ENTRIES_BETWEEN_SAVES = 65_536
