/**
 * The auditor of LOG 4.4: an independent process that holds the log's two public keys, and reads what everyone can.
 * Each run goes from the last checkpoint it verified to the newest one, and remembers that only when all of it holds.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { encodeBase64 } from '#primitives'
import type { LogKeys } from '../../src/client/log-keys.ts'
import { consistencyFromTiles, type TreeHead } from '../../src/client/tile-consistency.ts'
import { verifyWitnesses } from '../../src/client/witnesses.ts'
import { messageOf, SignalError } from '../../src/errors.ts'
import { EMPTY_ROOT } from '../../src/log/hash.ts'
import type { VerifierKey } from '../../src/log/note.ts'
import type { QuorumMember } from '../../src/log/policy.ts'
import { crawl } from './crawl.ts'
import { judgeEvidence } from './evidence.ts'
import {
  AuditFailure,
  type CheckName,
  type Finding,
  type FindingFacts,
  pending,
  proven,
  unchecked,
} from './finding.ts'
import { HashIndex } from './hash-index.ts'
import { compareHistories, isSameTree, openHead, type SignedHead } from './history.ts'
import { type HttpLimits, HttpSource } from './http-source.ts'
import { firstOf, LogReader, type TileReader } from './log-reader.ts'
import { AuditMemory, type PendingEvidence, type RememberedHead } from './memory.ts'
import { readNotesFile } from './notes.ts'
import { checkProofs } from './proofs.ts'
import type { Report } from './report.ts'
import { watchHashes } from './watch.ts'

export interface AuditorOptions {
  /** The log's prefix. */
  readonly url: URL
  /** Keys of one log; more than one while it changes its key. */
  readonly verifiers: readonly VerifierKey[]
  /** Whose cosignatures the log's checkpoints need, if any. */
  readonly quorum?: QuorumMember | undefined
  /** 32 bytes; needed for proofs only. */
  readonly vrfPublicKey?: Uint8Array | undefined
  readonly stateFile: string
  /** Other readers' prefixes of the log. */
  readonly gossip?: readonly URL[]
  /** Where tiles are asked for that the log does not show. */
  readonly mirrors?: readonly URL[]
  readonly proofsFile?: string | undefined
  /** Notes and evidence of users. */
  readonly notesFiles?: readonly string[]
  /** Hashes to report new entries of. */
  readonly watchFile?: string | undefined
  /** Keeps the index of hashes also without a watch. */
  readonly keepsIndex?: boolean
  /**
   * How long the log may go without a new checkpoint, with a quorum without its cosignatures, and how long its newest tree
   * may stay unread: then the auditor alarms. The last counts as a day where this is not given.
   */
  readonly maxAgeMs?: number | undefined
  readonly report: Report
  /** Ends whatever is under way; `run` then rejects with the reason. */
  readonly stop: AbortSignal
  readonly httpLimits?: HttpLimits
  readonly nowMs?: () => number
}

/** The exit code: 0 clean, 1 the log's signatures prove a fault of it, 2 not (all) checked, 3 not what the log signed. */
export type Verdict = 0 | 1 | 2 | 3

/** One run with all that it reported, but for the findings beyond a thousand. */
export interface AuditRound {
  readonly verdict: Verdict
  readonly startedAtMs: number
  readonly endedAtMs: number
  readonly findings: readonly Finding[]
  /** Why the auditor alarms. */
  readonly alarm: string | undefined
}

/** An auditor's knowledge for other readers, at any time. */
export interface AuditView {
  readonly origin: string
  readonly url: string
  /** The last run that ended. */
  readonly round: AuditRound | undefined
  /** The newest tree that holds. */
  readonly held: SignedHead | undefined
  /** The tree whose entries `newest` knows, and when it was last seen as the log's newest. */
  readonly indexed: TreeHead | undefined
  readonly indexedAtMs: number
  newest(vrfHash: string): number | undefined
  /** The texts of evidence files that prove that the log cheats. */
  readonly evidence: readonly string[]
}

export class Auditor implements AuditView {
  readonly #options: AuditorOptions
  readonly #memory: AuditMemory
  readonly #source: HttpSource
  readonly #log: LogReader
  readonly #otherSources: readonly HttpSource[]
  readonly #gossip: readonly LogReader[]
  readonly #mirrors: readonly LogReader[]
  readonly #nowMs: () => number
  readonly #keys: LogKeys
  readonly #startedAtMs: number
  /** Since when no look has read the log's newest tree whole. */
  #unreadSinceMs: number | undefined
  /** The newest cosignature of a quorum, of any checkpoint. */
  #cosignedAtMs = 0
  #verdict: Verdict = 0
  #canRemember = true
  #areProofsChecked = false
  /** Notes of users that were compared, or are none. */
  readonly #notesChecked = new Set<string>()
  readonly #index: HashIndex | undefined
  #findings: Finding[] = []
  #round: AuditRound | undefined
  #held: SignedHead | undefined
  #indexed: (TreeHead & { readonly atMs: number }) | undefined
  #evidence: readonly string[] = []

  /** Throws `AuditFailure` when the state file is of no use. */
  constructor(options: AuditorOptions) {
    const { url, gossip = [], mirrors = [], stop, httpLimits, nowMs = Date.now } = options
    this.#options = options
    this.#memory = AuditMemory.open(options.stateFile, options.verifiers)
    this.#source = new HttpSource(url, FILES_AT_ONCE, stop, httpLimits)
    this.#log = new LogReader(this.#source)
    this.#otherSources = [...gossip, ...mirrors].map(
      source => new HttpSource(source, FILES_AT_ONCE, stop, httpLimits),
    )
    const readers = this.#otherSources.map(source => new LogReader(source))
    this.#gossip = readers.slice(0, gossip.length)
    this.#mirrors = readers.slice(gossip.length)
    this.#nowMs = nowMs
    this.#startedAtMs = nowMs()
    const { verifiers, vrfPublicKey = NO_KEY, quorum } = options
    if (options.watchFile !== undefined || options.keepsIndex === true)
      this.#index = openIndex(options.stateFile, verifiers[0]!.name)
    const { last } = this.#memory
    this.#held = last
    this.#evidence = this.#memory.provenEvidence()
    if (last !== undefined && last.treeSize === this.#index?.verifiedSize)
      this.#indexed = { ...last, atMs: last.sinceMs }
    this.#keys = { verifier: verifiers[0]!, verifiers, vrfPublicKey, quorum }
    if (last !== undefined) this.#witnessedAtMs(last)
  }

  /** Checks the log once and reports each check. Rejects when stopped, or for a fault of our own. */
  async run(): Promise<Verdict> {
    this.#verdict = 0
    this.#findings = []
    const startedAtMs = this.#nowMs()
    let isRead = false
    await this.#try(async () => {
      isRead = await this.#audit()
    })
    await this.#try(async () => {
      this.#evidence = this.#memory.provenEvidence()
    })
    const alarm = this.#alarm(isRead)
    if (alarm !== undefined) this.#fail(alarm)
    const [verdict, findings] = [this.#verdict, this.#findings]
    this.#round = { verdict, startedAtMs, endedAtMs: this.#nowMs(), findings, alarm: alarm?.message }
    return verdict
  }

  get origin(): string {
    return this.#keys.verifier.name
  }

  get url(): string {
    return this.#log.url
  }

  get round(): AuditRound | undefined {
    return this.#round
  }

  get held(): SignedHead | undefined {
    return this.#held
  }

  get indexed(): TreeHead | undefined {
    return this.#indexed
  }

  get indexedAtMs(): number {
    return this.#indexed?.atMs ?? 0
  }

  newest(vrfHash: string): number | undefined {
    return this.#index?.newest(vrfHash)
  }

  get evidence(): readonly string[] {
    return this.#evidence
  }

  /** Checks the log again and again until it cheats or nothing can be remembered. Rejects when stopped. */
  async follow(pauseMs: number): Promise<Verdict> {
    for (;;) {
      const verdict = await this.run()
      if (verdict === 1 || !this.#canRemember) return verdict
      await sleep(pauseMs, undefined, { signal: this.#options.stop })
    }
  }

  close(): void {
    for (const source of [this.#source, ...this.#otherSources]) source.close()
    this.#index?.close()
  }

  /** Whether the log showed its newest tree, and all of it. Throws `AuditFailure` where there is nothing to go on with. */
  async #audit(): Promise<boolean> {
    const { last } = this.#memory
    const head = await this.#readCheckpoint(this.#log)
    this.#grow(head)
    const isWitnessed = await this.#try(async () => this.#checkWitnesses(head))
    const kept = this.#memory.pending().filter(({ seen }) => !isSameTree(seen, head))
    const place = last === undefined ? 'newest' : await this.#placeOf(head, last)
    if (place === 'fork') return false
    // Other trees are held against one that was read, or is read below.
    const known = place === 'newest' ? head : last!
    await this.#compareOthers(known, head, kept)
    const isRead = await this.#try(() => this.#read(known, place))
    if (this.#verdict === 1) return false
    if (place === 'newest' && isWitnessed && isRead) {
      this.#remember(head)
      return !this.#memory.pending().some(({ seen }) => seen.treeSize > head.treeSize)
    }
    if (last !== undefined && (place === 'stale' || isSameTree(head, last))) return false
    // Not forgotten: what the log shows next must go with it.
    this.#keepPending({ check: 'consistency', known: last ?? head, seen: head }, 'its tree was not read')
    return false
  }

  #grow({ treeSize }: TreeHead): void {
    const size = Math.max(treeSize, this.#memory.last?.treeSize ?? 0)
    for (const log of [this.#log, ...this.#gossip, ...this.#mirrors]) log.grow(size)
  }

  /** A failing source or proof does not keep the auditor from reading the log itself. */
  async #compareOthers(known: SignedHead, head: SignedHead, kept: readonly PendingEvidence[]): Promise<void> {
    const shown: SignedHead[] = []
    for (const log of this.#gossip) {
      await this.#try(
        () => this.#compareGossip(log, known, shown),
        failure => failure.ofSource('gossip', { url: log.url }),
      )
    }
    for (const evidence of kept) {
      if (shown.some(other => isSameTree(other, evidence.seen))) continue
      await this.#try(() => this.#compareKept(evidence, known, head))
    }
    for (const file of this.#options.notesFiles ?? []) {
      await this.#try(
        () => this.#checkNotes(file, known),
        failure => failure.ofSource('notes', { file }),
      )
    }
    await this.#try(
      () => this.#checkProofs(known),
      failure => failure.as('proofs'),
    )
  }

  /** Reads what of `known` has not been read before. */
  async #read(known: SignedHead, place: Place): Promise<void> {
    const { last } = this.#memory
    const isIndexed = this.#index === undefined || this.#index.verifiedSize === known.treeSize
    if (last?.treeSize !== known.treeSize || !isIndexed) await this.#crawl(last ?? NOTHING, known)
    if (this.#index !== undefined) {
      const atMs = place === 'newest' ? this.#nowMs() : (this.#indexed?.atMs ?? last?.sinceMs ?? 0)
      this.#indexed = { ...known, atMs }
    }
    await this.#try(async () => this.#watch())
  }

  async #readCheckpoint(log: LogReader): Promise<SignedHead> {
    const head = await openServedHead(log, this.#keys.verifiers)
    this.#pass('checkpoint', `size ${head.treeSize} is signed by ${this.#keys.verifier.name}`, {
      treeSize: String(head.treeSize),
      rootHash: encodeBase64(head.rootHash),
    })
    return head
  }

  /** A tree without witnesses is compared all the same: a contradiction that the log signed is one. */
  #checkWitnesses(head: SignedHead): void {
    const { quorum } = this.#keys
    if (quorum === undefined) return
    const found = this.#witnessedAtMs(head)
    if (found.kind === 'refused') throw pending('witnesses', found.detail)
    this.#pass('witnesses', `the quorum ${quorum.name} saw it at ${new Date(found.atMs!).toISOString()}`)
  }

  #witnessedAtMs({ note }: SignedHead) {
    const found = verifyWitnesses(this.#keys, note, { nowMs: this.#nowMs() })
    if (found.kind === 'witnessed') this.#cosignedAtMs = Math.max(this.#cosignedAtMs, found.atMs ?? 0)
    return found
  }

  /**
   * Where the tree that the log showed stands to the known one: it goes on from it, or is a beginning of it, as a late
   * cache shows, or cannot be compared yet, or is of another history.
   */
  async #placeOf(head: SignedHead, last: RememberedHead): Promise<Place> {
    const known = this.#memory.verified(head.treeSize) ?? last
    const isSame = await this.#try(() => this.#assertSameHistory({ check: 'consistency' }, known, head))
    if (!isSame) return this.#verdict === 1 ? 'fork' : 'pending'
    const { treeSize } = head
    if (treeSize >= last.treeSize) {
      this.#pass('consistency', `the tree begins with the one of size ${last.treeSize} known before`)
      return 'newest'
    }
    const detail = `size ${treeSize} is a beginning of the known ${last.treeSize}: an old answer`
    this.#fail(pending('stale', detail, { treeSize: String(treeSize) }))
    return 'stale'
  }

  /** A wait that is longer than a cache explains. */
  #alarm(isRead: boolean): AuditFailure | undefined {
    if (this.#verdict === 1) return undefined
    const nowMs = this.#nowMs()
    if (isRead) this.#unreadSinceMs = undefined
    else this.#unreadSinceMs ??= nowMs
    const { maxAgeMs } = this.#options
    const newestAtMs = this.#keys.quorum === undefined ? this.#memory.last?.sinceMs : this.#cosignedAtMs
    const alarm = (what: string, sinceMs: number, ageMs: number) =>
      pending(
        'stale',
        `${what} since ${new Date(sinceMs).toISOString()}, longer than ${ageMs / 1_000} s`,
        ALARM,
      )
    const sinceMs = newestAtMs || this.#startedAtMs
    if (maxAgeMs !== undefined && nowMs - sinceMs > maxAgeMs) {
      const what = this.#keys.quorum === undefined ? 'no new checkpoint' : 'no new cosignatures of the quorum'
      return alarm(what, sinceMs, maxAgeMs)
    }
    const unreadMsMax = maxAgeMs ?? UNREAD_MS_MAX
    if (this.#unreadSinceMs === undefined || nowMs - this.#unreadSinceMs <= unreadMsMax) return undefined
    return alarm('the log has not shown its newest tree, whole,', this.#unreadSinceMs, unreadMsMax)
  }

  /** Puts what the source shows into `shown`. */
  async #compareGossip(log: LogReader, known: SignedHead, shown: SignedHead[]): Promise<void> {
    const other = await openServedHead(log, this.#keys.verifiers)
    shown.push(other)
    await this.#assertSameHistory({ check: 'gossip', url: log.url }, known, other)
    const facts = { url: log.url, treeSize: String(other.treeSize) }
    this.#settle(other, known)
    this.#pass('gossip', `size ${other.treeSize} shown there is of the same history`, facts)
  }

  /** Unanswered evidence is compared with each new tree: a log that grows past it has to decide it. */
  async #compareKept(evidence: PendingEvidence, known: SignedHead, head: SignedHead): Promise<void> {
    const { check, url, seen } = evidence
    const facts = url === undefined ? {} : { url }
    try {
      // Two roots of one size need no tiles.
      if (seen.treeSize === head.treeSize) await this.#assertSameHistory(evidence, head, seen)
      await this.#assertSameHistory(evidence, known, seen)
    } catch (error) {
      if (!(error instanceof AuditFailure)) throw error
      throw error.ofSource(check, facts)
    }
    if (this.#settle(seen, known))
      this.#pass(check, `size ${seen.treeSize}, which was unanswered, is of the same history`, facts)
  }

  /** Lets a tree of the same history go, once the tree that was read reaches over it. */
  #settle(seen: SignedHead, known: SignedHead): boolean {
    const isCovered = seen.treeSize <= known.treeSize
    if (isCovered) this.#memory.dropPending(seen)
    return isCovered
  }

  /**
   * Throws `AuditFailure`: of the check with both notes when the log contradicts itself; else the failure of the
   * log's own answer. Both notes are then kept and compared again, so that a log gains nothing by not answering.
   */
  async #assertSameHistory(
    found: { readonly check: CheckName; readonly url?: string },
    known: SignedHead,
    seen: SignedHead,
  ): Promise<void> {
    const { check } = found
    const outcome = await compareHistories(known, seen, this.#sourcesFor(found.url))
    if (outcome.kind === 'consistent') return
    const facts = { treeSize: String(seen.treeSize), notes: [known.note, seen.note] }
    if (outcome.kind === 'contradiction') {
      const { detail, proof } = outcome
      throw proven(check, `the log signed both of two histories: ${detail}`, { ...facts, proof })
    }
    this.#keepPending({ ...found, known, seen }, outcome.failure.message)
    throw undecided(outcome.failure, check)
  }

  #keepPending(evidence: PendingEvidence, detail: string): void {
    const file = this.#memory.keepPending(evidence, detail, this.#nowMs())
    if (file !== undefined)
      this.#pass('state', `both signed notes are kept in ${file} until they are compared`)
  }

  /** Where tiles are asked for, in turn. */
  #sourcesFor(url: string | undefined): readonly LogReader[] {
    const all = [this.#log, ...this.#gossip, ...this.#mirrors]
    return [...all.filter(log => log.url === url), ...all.filter(log => log.url !== url)]
  }

  /** Each note is compared once; those that no source has the tiles for are pending evidence. */
  async #checkNotes(file: string, head: SignedHead): Promise<void> {
    const { verifiers } = this.#keys
    const { notes, evidence } = readNotesFile(file)
    for (const text of evidence.filter(each => !this.#notesChecked.has(each))) {
      this.#notesChecked.add(text)
      const { kind, lines } = judgeEvidence(text, verifiers)
      if (kind === 'proven') {
        const { notes: signed, proof } = JSON.parse(text)
        throw proven('notes', `evidence in ${file} is proven: ${lines.at(-2)}`, { notes: signed, proof })
      }
    }
    const unknown = notes.filter(note => !this.#notesChecked.has(note))
    let failures = 0
    for (const note of unknown) {
      await this.#try(
        () => this.#checkNote(note, head),
        failure => {
          failures++
          return failure.ofSource('notes', { file })
        },
      )
    }
    if (unknown.length > 0 && failures === 0)
      this.#pass('notes', `${unknown.length} notes are of the same history`, { file })
  }

  async #checkNote(note: string, head: SignedHead): Promise<void> {
    let seen: SignedHead
    try {
      seen = openHead(Buffer.from(note), this.#keys.verifiers)
    } catch (error) {
      if (!(error instanceof SignalError)) throw error
      this.#notesChecked.add(note)
      throw unchecked('notes', `${JSON.stringify(note.slice(0, 80))}: ${error.message}`)
    }
    await this.#assertSameHistory({ check: 'notes' }, head, seen)
    this.#settle(seen, head)
    this.#notesChecked.add(note)
  }

  #watch(): void {
    const { watchFile, stateFile } = this.#options
    if (watchFile === undefined || this.#index === undefined) return
    for (const { detail, facts } of watchHashes(watchFile, stateFile, this.#index))
      this.#pass('watch', detail, facts)
  }

  async #checkProofs(head: SignedHead): Promise<void> {
    const { proofsFile, vrfPublicKey } = this.#options
    if (proofsFile === undefined || vrfPublicKey === undefined || this.#areProofsChecked) return
    const compare = (proven: SignedHead) => this.#assertSameHistory({ check: 'proofs' }, head, proven)
    let proofs = 0
    let failures = 0
    for await (const failure of checkProofs(proofsFile, this.#keys, compare)) {
      proofs++
      if (failure === undefined) continue
      failures++
      this.#fail(failure)
    }
    if (failures > 0) return
    this.#areProofsChecked = true
    this.#pass('proofs', `${proofs} proofs hold`)
  }

  async #crawl(last: TreeHead, head: SignedHead): Promise<void> {
    const proven = (await this.#provenProgress(last, head)) ?? last
    const index = this.#index
    // Entries that another run has read are not in the index: they are read again.
    const audited = { treeSize: Math.min(proven.treeSize, index?.verifiedSize ?? proven.treeSize) }
    const startedAtMs = performance.now()
    const read = async (tiles: TileReader) => {
      this.#useIndex(() => index?.startAfter(audited.treeSize))
      await crawl(tiles, audited, head, {
        filesAtOnce: FILES_AT_ONCE,
        onProgress: (treeSize, computedHead) => {
          this.#options.report.progress(treeSize, head.treeSize)
          if (treeSize % ENTRIES_BETWEEN_SAVES === 0) this.#memory.setProgress(computedHead())
        },
        onBundle: (firstIndex, bundle) => this.#useIndex(() => index?.append(firstIndex, bundle)),
      })
    }
    try {
      await read(this.#tiles)
    } catch (error) {
      // A garbled file of the log is got round where a mirror has a good one.
      if (!(error instanceof AuditFailure && error.isPending) || this.#mirrors.length === 0) throw error
      await read(firstOf([...this.#mirrors, this.#log]))
    }
    this.#useIndex(() => index?.verify())
    const { files, bytes } = this.#source.received
    const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1)
    const entries = head.treeSize - audited.treeSize
    this.#pass('fetch', `${files} files of ${bytes} bytes in all, the tree in ${seconds} s`)
    this.#pass(
      'entries',
      `${entries} entries from ${audited.treeSize} on are of the log's form and in the tree`,
    )
    this.#pass('tiles', `root from entries and every hash tile are those of size ${head.treeSize}`)
  }

  /** How far an earlier crawl came, when that is further than `last` and a beginning of the signed tree. */
  async #provenProgress(last: TreeHead, head: SignedHead): Promise<TreeHead | undefined> {
    const { progress } = this.#memory
    if (progress === undefined || progress.treeSize <= last.treeSize || progress.treeSize > head.treeSize) {
      return undefined
    }
    const found = await consistencyFromTiles(tile => this.#tiles.tile(tile), progress, head)
    return found.kind === 'consistent' ? progress : undefined
  }

  #useIndex(use: () => void): void {
    try {
      use()
    } catch (error) {
      throw unchecked('state', `the index of hashes cannot be read or written: ${messageOf(error)}`)
    }
  }

  get #tiles(): TileReader {
    return firstOf([this.#log, ...this.#mirrors])
  }

  #remember(head: SignedHead): void {
    if (!this.#memory.isLast(head)) this.#memory.remember(head, this.#nowMs())
    this.#memory.dropPending(head)
    this.#held = head
    this.#pass('state', `size ${head.treeSize} is remembered as the last that holds`)
  }

  /** Runs a check and reports its failure, changed by `changed`; whether there was none. */
  async #try(
    work: () => Promise<void>,
    changed: (failure: AuditFailure) => AuditFailure = failure => failure,
  ): Promise<boolean> {
    try {
      await work()
      return true
    } catch (error) {
      if (!(error instanceof AuditFailure)) throw error
      this.#fail(changed(error))
      return false
    }
  }

  #pass(check: CheckName, detail: string, facts: FindingFacts = {}): void {
    this.#report({ check, ok: true, detail, ...facts })
  }

  #report(finding: Finding): void {
    if (this.#findings.length < FINDINGS_MAX) this.#findings.push(finding)
    this.#options.report.finding(finding)
  }

  #fail({ finding }: AuditFailure): void {
    const verdict = finding.ok === false ? 1 : finding.pending ? 3 : 2
    if (SEVERITY.indexOf(verdict) > SEVERITY.indexOf(this.#verdict)) this.#verdict = verdict
    if (finding.check === 'state') this.#canRemember = false
    this.#report(finding)
    if (finding.notes !== undefined) this.#keepEvidence(finding)
  }

  #keepEvidence(finding: Finding): void {
    try {
      const file = this.#memory.keepEvidence(finding, this.#nowMs())
      this.#pass('state', `both signed notes are kept in ${file}`)
    } catch (error) {
      if (!(error instanceof AuditFailure)) throw error
      this.#fail(error)
    }
  }
}

/** Throws `AuditFailure`. */
function openIndex(stateFile: string, origin: string): HashIndex {
  try {
    return HashIndex.open(`${stateFile}.hashes`, origin)
  } catch (error) {
    throw unchecked('state', `the index of hashes cannot be opened: ${messageOf(error)}`)
  }
}

/** Tiles that are missing or wrong belong to the comparison that they keep from ending. */
function undecided(failure: AuditFailure, check: CheckName): AuditFailure {
  return failure.isPending ? failure.as(check) : failure
}

async function openServedHead(log: LogReader, verifiers: readonly VerifierKey[]): Promise<SignedHead> {
  const note = await log.checkpoint()
  try {
    return openHead(note, verifiers)
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
    throw pending('checkpoint', `${log.url}/checkpoint: ${error.message}`)
  }
}

type Place = 'newest' | 'stale' | 'pending' | 'fork'

const FINDINGS_MAX = 1_000
/** The worst last. */
const SEVERITY: readonly Verdict[] = [0, 2, 3, 1]
const ALARM: FindingFacts = { alarm: true }
/** Longer than any cache keeps what it should not. */
const UNREAD_MS_MAX = 86_400_000
const NO_KEY = new Uint8Array(0)
const NOTHING: TreeHead = { treeSize: 0, rootHash: EMPTY_ROOT }
/** Enough to hide a long way to the server; a megabyte with keys of 32 bytes. */
const FILES_AT_ONCE = 16
/** A whole tile of level 1: seconds of work over a network. */
const ENTRIES_BETWEEN_SAVES = 65_536
