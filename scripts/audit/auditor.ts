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
  broken,
  type CheckName,
  type Finding,
  type FindingFacts,
  unchecked,
} from './finding.ts'
import { HashIndex } from './hash-index.ts'
import { compareHistories, isSameTree, openHead, type SignedHead } from './history.ts'
import { type HttpLimits, HttpSource } from './http-source.ts'
import { LogReader } from './log-reader.ts'
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
  /** Where tiles are asked for besides, when two checkpoints are compared. */
  readonly mirrors?: readonly URL[]
  readonly proofsFile?: string | undefined
  /** Notes and evidence of users. */
  readonly notesFiles?: readonly string[]
  /** Hashes to report new entries of. */
  readonly watchFile?: string | undefined
  /** Keeps the index of hashes also without a watch. */
  readonly keepsIndex?: boolean
  /** How long the log may go without a new checkpoint, and with a quorum without its cosignatures. */
  readonly maxAgeMs?: number | undefined
  readonly report: Report
  /** Ends whatever is under way; `run` then rejects with the reason. */
  readonly stop: AbortSignal
  readonly httpLimits?: HttpLimits
  readonly nowMs?: () => number
}

/** The exit code: 0 clean, 1 a cheating or broken log, 2 not (all) checked. */
export type Verdict = 0 | 1 | 2

/** One run with all that it reported, but for the findings beyond a thousand. */
export interface AuditRound {
  readonly verdict: Verdict
  readonly startedAtMs: number
  readonly endedAtMs: number
  readonly findings: readonly Finding[]
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
    const { verifiers, vrfPublicKey = NO_KEY, quorum } = options
    if (options.watchFile !== undefined || options.keepsIndex === true)
      this.#index = openIndex(options.stateFile, verifiers[0]!.name)
    const { last } = this.#memory
    this.#held = last
    this.#evidence = this.#memory.provenEvidence()
    if (last !== undefined && last.treeSize === this.#index?.verifiedSize)
      this.#indexed = { ...last, atMs: last.sinceMs }
    this.#keys = { verifier: verifiers[0]!, verifiers, vrfPublicKey, quorum }
  }

  /** Checks the log once and reports each check. Rejects when stopped, or for a fault of our own. */
  async run(): Promise<Verdict> {
    this.#verdict = 0
    this.#findings = []
    const startedAtMs = this.#nowMs()
    await this.#try(() => this.#audit())
    await this.#try(async () => {
      this.#evidence = this.#memory.provenEvidence()
    })
    const [verdict, findings] = [this.#verdict, this.#findings]
    this.#round = { verdict, startedAtMs, endedAtMs: this.#nowMs(), findings }
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

  async #audit(): Promise<void> {
    const { last } = this.#memory
    const head = await this.#readCheckpoint(this.#log)
    await this.#try(async () => this.#checkWitnesses(head))
    if (last !== undefined) await this.#compareWithLast(last, head)
    // A failing source or proof does not keep the auditor from reading the log itself.
    const kept = this.#memory.pending()
    const shown: SignedHead[] = []
    for (const log of this.#gossip) {
      await this.#try(
        () => this.#compareGossip(log, head, shown),
        failure => failure.ofSource('gossip', { url: log.url }),
      )
    }
    for (const evidence of kept) {
      if (shown.some(other => isSameTree(other, evidence.seen))) continue
      await this.#try(() => this.#compareKept(evidence, head))
    }
    for (const file of this.#options.notesFiles ?? []) {
      await this.#try(
        () => this.#checkNotes(file, head),
        failure => failure.ofSource('notes', { file }),
      )
    }
    await this.#try(
      () => this.#checkProofs(head),
      failure => failure.as('proofs'),
    )
    const isIndexed = this.#index === undefined || this.#index.verifiedSize === head.treeSize
    if (last?.treeSize !== head.treeSize || !isIndexed) await this.#crawl(last ?? NOTHING, head)
    if (this.#index !== undefined) this.#indexed = { ...head, atMs: this.#nowMs() }
    await this.#try(async () => this.#watch())
    this.#remember(head)
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
  #checkWitnesses({ note }: SignedHead): void {
    const { quorum } = this.#keys
    if (quorum === undefined) return
    const { maxAgeMs } = this.#options
    const found = verifyWitnesses(this.#keys, note, { nowMs: this.#nowMs(), maxAgeMs })
    if (found.kind === 'refused') throw broken(found.check === 'stale' ? 'stale' : 'witnesses', found.detail)
    this.#pass('witnesses', `the quorum ${quorum.name} saw it at ${new Date(found.atMs!).toISOString()}`)
  }

  async #compareWithLast(last: RememberedHead, head: SignedHead): Promise<void> {
    if (head.treeSize < last.treeSize) {
      const facts = { treeSize: String(head.treeSize), notes: [last.note, head.note] }
      throw broken('rollback', `the log signed size ${last.treeSize} and now shows ${head.treeSize}`, facts)
    }
    this.#pass('rollback', `size ${head.treeSize} is not below ${last.treeSize}`)
    await this.#assertSameHistory({ check: 'consistency' }, last, head)
    this.#pass('consistency', `the tree begins with the one of size ${last.treeSize} known before`)
    await this.#try(() => this.#checkAge(last, head))
  }

  async #checkAge({ sinceMs }: RememberedHead, head: SignedHead): Promise<void> {
    const { maxAgeMs } = this.#options
    if (maxAgeMs === undefined || this.#keys.quorum !== undefined) return
    if (!this.#memory.isLast(head) || this.#nowMs() - sinceMs <= maxAgeMs) return
    const since = new Date(sinceMs).toISOString()
    throw broken('checkpoint', `stale: no new checkpoint since ${since}, longer than ${maxAgeMs / 1000} s`)
  }

  /** Puts what the source shows into `shown`. */
  async #compareGossip(log: LogReader, head: SignedHead, shown: SignedHead[]): Promise<void> {
    const other = await openServedHead(log, this.#keys.verifiers)
    shown.push(other)
    await this.#assertSameHistory({ check: 'gossip', url: log.url }, head, other)
    const facts = { url: log.url, treeSize: String(other.treeSize) }
    this.#memory.dropPending(other)
    this.#pass('gossip', `size ${other.treeSize} shown there is of the same history`, facts)
  }

  /** Unanswered evidence is compared with each new tree: a log that grows past it has to decide it. */
  async #compareKept(evidence: PendingEvidence, head: SignedHead): Promise<void> {
    const { check, url, seen } = evidence
    const facts = url === undefined ? {} : { url }
    try {
      await this.#assertSameHistory(evidence, head, seen)
    } catch (error) {
      if (!(error instanceof AuditFailure)) throw error
      throw error.ofSource(check, facts)
    }
    this.#memory.dropPending(seen)
    this.#pass(check, `size ${seen.treeSize}, which was unanswered, is of the same history`, facts)
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
      throw broken(check, `the log signed both of two histories: ${detail}`, { ...facts, proof })
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
        const { notes: proven, proof } = JSON.parse(text)
        throw broken('notes', `evidence in ${file} is proven: ${lines.at(-2)}`, { notes: proven, proof })
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
    this.#memory.dropPending(seen)
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
    this.#useIndex(() => index?.startAfter(audited.treeSize))
    await crawl(this.#log, audited, head, {
      filesAtOnce: FILES_AT_ONCE,
      onProgress: (treeSize, computedHead) => {
        this.#options.report.progress(treeSize, head.treeSize)
        if (treeSize % ENTRIES_BETWEEN_SAVES === 0) this.#memory.setProgress(computedHead())
      },
      onBundle: (firstIndex, bundle) => this.#useIndex(() => index?.append(firstIndex, bundle)),
    })
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
    const found = await consistencyFromTiles(tile => this.#log.tile(tile), progress, head)
    return found.kind === 'consistent' ? progress : undefined
  }

  #useIndex(use: () => void): void {
    try {
      use()
    } catch (error) {
      throw unchecked('state', `the index of hashes cannot be read or written: ${messageOf(error)}`)
    }
  }

  /** A log that was caught is not believed any further, whatever else of it may hold. */
  #remember(head: SignedHead): void {
    if (this.#verdict === 1) return
    if (!this.#memory.isLast(head)) this.#memory.remember(head, this.#nowMs())
    this.#held = head
    this.#pass('state', `size ${head.treeSize} is remembered as the last that holds`)
  }

  /** Runs a check and reports its failure, changed by `changed`. */
  async #try(
    work: () => Promise<void>,
    changed: (failure: AuditFailure) => AuditFailure = failure => failure,
  ): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (!(error instanceof AuditFailure)) throw error
      this.#fail(changed(error))
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
    if (finding.ok === false) this.#verdict = 1
    else if (this.#verdict === 0) this.#verdict = 2
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

/** A log with missing or wrong tiles of a tree that it signed does not show that its history is one. */
function undecided(failure: AuditFailure, check: CheckName): AuditFailure {
  return failure.finding.ok === false ? failure.as(check) : failure
}

async function openServedHead(log: LogReader, verifiers: readonly VerifierKey[]): Promise<SignedHead> {
  const note = await log.checkpoint()
  try {
    return openHead(note, verifiers)
  } catch (error) {
    if (!(error instanceof SignalError)) throw error
    throw broken('checkpoint', `${log.url}/checkpoint: ${error.message}`)
  }
}

const FINDINGS_MAX = 1_000
const NO_KEY = new Uint8Array(0)
const NOTHING: TreeHead = { treeSize: 0, rootHash: EMPTY_ROOT }
/** Enough to hide a long way to the server; a megabyte with keys of 32 bytes. */
const FILES_AT_ONCE = 16
/** A whole tile of level 1: seconds of work over a network. */
const ENTRIES_BETWEEN_SAVES = 65_536
