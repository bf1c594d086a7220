/**
 * The auditor of LOG 4.4: an independent process that holds the log's two public keys, and reads what everyone can: the log, and
 * with its key the index of it.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import type { CheckpointKeys } from '../../src/client/log-keys.ts'
import type { TreeHead } from '../../src/client/tile-consistency.ts'
import { messageOf } from '../../src/errors.ts'
import { indexOriginOf } from '../../src/log/index-leaf.ts'
import type { VerifierKey } from '../../src/log/note.ts'
import type { QuorumMember } from '../../src/log/policy.ts'
import { AuditedLog, type LogToAudit } from './audited-log.ts'
import { type AuditRound, type Verdict, worstOf } from './checks.ts'
import { judgeEvidence } from './evidence.ts'
import { proven, unchecked } from './finding.ts'
import { HashIndex } from './hash-index.ts'
import type { SignedHead } from './history.ts'
import type { HttpLimits } from './http-source.ts'
import { IndexAudit, type IndexView } from './index-audit.ts'
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
  /** Its index, where that is audited, too. */
  readonly index?: CheckpointKeys | undefined
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
  /** Keeps the table of hashes also without a watch. */
  readonly keepsHashes?: boolean
  /**
   * How long the log may go without a new checkpoint, with a quorum without its cosignatures, and how long its newest tree
   * may stay unread: then the auditor alarms. The last counts as a day where this is not given, and all of them of an index.
   */
  readonly maxAgeMs?: number | undefined
  readonly report: Report
  /** Ends whatever is under way; `run` then rejects with the reason. */
  readonly stop: AbortSignal
  readonly httpLimits?: HttpLimits
  readonly nowMs?: () => number
}

/** An auditor's knowledge for other readers, at any time. */
export interface AuditView {
  readonly origin: string
  readonly url: string
  /** The last look that ended. */
  readonly round: AuditRound | undefined
  /** The newest tree that holds. */
  readonly held: SignedHead | undefined
  /** The tree whose entries `newest` knows, and when it was last seen as the log's newest. */
  readonly indexed: TreeHead | undefined
  readonly indexedAtMs: number
  newest(vrfHash: string): number | undefined
  /** The texts of evidence files that prove that the log cheats. */
  readonly evidence: readonly string[]
  readonly index: IndexView | undefined
}

export class Auditor implements AuditView {
  readonly #options: AuditorOptions
  readonly #log: AuditedLog
  /** The output log of the index. */
  readonly #output: AuditedLog | undefined
  readonly #index: IndexAudit | undefined
  readonly #hashes: HashIndex | undefined
  /** The keys that evidence is judged by. */
  readonly #known: readonly VerifierKey[]
  readonly #nowMs: () => number
  #areProofsChecked = false
  /** Evidence of users that was judged. */
  readonly #judged = new Set<string>()
  #round: AuditRound | undefined
  #indexed: (TreeHead & { readonly atMs: number }) | undefined
  #evidence: readonly string[] = []

  /** Throws `AuditFailure` when the state file is of no use. */
  constructor(options: AuditorOptions) {
    const { verifiers, index, stateFile, maxAgeMs, nowMs = Date.now } = options
    this.#options = options
    this.#nowMs = nowMs
    this.#known = [...verifiers, ...(index?.verifiers ?? [])]
    this.#log = new AuditedLog(logOf(options))
    if (index !== undefined) {
      this.#output = new AuditedLog(outputLogOf(options, index))
      this.#index = new IndexAudit(this.#log, this.#output, {
        file: `${stateFile}.index.map`,
        maxAgeMs,
        nowMs,
        onProgress: (entries, of) => options.report.progress(entries, of),
      })
    }
    if (options.watchFile !== undefined || options.keepsHashes === true)
      this.#hashes = openHashes(stateFile, verifiers[0]!.name)
    const { last } = this.#log
    this.#evidence = this.#provenEvidence()
    if (last !== undefined && last.treeSize === this.#hashes?.verifiedSize)
      this.#indexed = { ...last, atMs: last.sinceMs }
  }

  /** Checks the log once and reports each check. Rejects when stopped, or for a fault of our own. */
  async run(): Promise<Verdict> {
    for (const log of this.#logs) log.begin()
    const startedAtMs = this.#nowMs()
    const { checks } = this.#log
    const seen: Seen = { isRead: false, isCompared: false }
    await checks.try(() => this.#look(seen))
    await checks.try(async () => {
      this.#evidence = this.#provenEvidence()
    })
    const alarms = [this.#log.alarm(seen.isRead), this.#index?.alarm(seen.isCompared, seen.known)]
    for (const [at, alarm] of alarms.entries()) if (alarm !== undefined) this.#logs[at]!.checks.fail(alarm)
    const all = this.#logs.map(log => log.checks)
    const verdict = worstOf(all.map(each => each.verdict))
    const findings = all.flatMap(each => each.findings)
    const alarm = alarms.find(each => each !== undefined)?.message
    this.#round = { verdict, startedAtMs, endedAtMs: this.#nowMs(), findings, alarm }
    return verdict
  }

  get origin(): string {
    return this.#log.keys.verifier.name
  }

  get url(): string {
    return this.#log.url
  }

  get round(): AuditRound | undefined {
    return this.#round
  }

  get held(): SignedHead | undefined {
    return this.#log.held
  }

  get indexed(): TreeHead | undefined {
    return this.#indexed
  }

  get indexedAtMs(): number {
    return this.#indexed?.atMs ?? 0
  }

  newest(vrfHash: string): number | undefined {
    return this.#hashes?.newest(vrfHash)
  }

  get evidence(): readonly string[] {
    return this.#evidence
  }

  get index(): IndexView | undefined {
    return this.#index
  }

  /** Checks the log again and again until it cheats or nothing can be remembered. Rejects when stopped. */
  async follow(pauseMs: number): Promise<Verdict> {
    for (;;) {
      const verdict = await this.run()
      if (verdict === 1 || !this.#logs.every(log => log.checks.canRemember)) return verdict
      await sleep(pauseMs, undefined, { signal: this.#options.stop })
    }
  }

  close(): void {
    for (const log of this.#logs) log.close()
    this.#hashes?.close()
  }

  get #logs(): readonly AuditedLog[] {
    return this.#output === undefined ? [this.#log] : [this.#log, this.#output]
  }

  /** Throws `AuditFailure` where there is nothing to go on with. */
  async #look(seen: Seen): Promise<void> {
    // First: an honest log has shown each tree before a leaf is of it.
    const output = await this.#readOutput()
    const head = await this.#log.readCheckpoint()
    seen.isRead = await this.#log.audit(head, {
      entries: this.#hashes,
      compare: known => this.#compareOthers(known),
      onRead: async (known, isNewest) => {
        seen.known = known
        await this.#onRead(known, isNewest)
      },
    })
    if (output !== undefined && seen.known !== undefined && this.#log.checks.verdict !== 1)
      seen.isCompared = await this.#lookAtIndex(output, seen.known)
  }

  async #readOutput(): Promise<SignedHead | undefined> {
    const output = this.#output
    let head: SignedHead | undefined
    await output?.checks.try(async () => {
      head = await output.readCheckpoint()
    })
    return head
  }

  /** Whether the output log was read, and all of its leaves have the root of the map. */
  async #lookAtIndex(head: SignedHead, known: SignedHead): Promise<boolean> {
    const [output, index] = [this.#output!, this.#index!]
    let isCompared = false
    const isRead = await output.checks.try(async () => {
      let read: SignedHead | undefined
      const isNewest = await output.audit(head, {
        compare: other => this.#compareNotes(output, other),
        onRead: async tree => {
          read = tree
        },
      })
      if (read === undefined || output.checks.verdict === 1) return
      await index.compare(known, read)
      isCompared = isNewest
    })
    return isRead && isCompared
  }

  /** A failing file does not keep the auditor from reading the log itself. */
  async #compareOthers(known: SignedHead): Promise<void> {
    await this.#compareNotes(this.#log, known)
    await this.#log.checks.try(
      () => this.#checkProofs(known),
      failure => failure.as('proofs'),
    )
  }

  /** Compares the notes of this log that users sent; evidence is judged together with the notes of the log itself. */
  async #compareNotes(log: AuditedLog, known: SignedHead): Promise<void> {
    const outputOrigin = indexOriginOf(this.origin)
    const isOutput = log !== this.#log
    for (const file of this.#options.notesFiles ?? []) {
      await log.checks.try(
        async () => {
          const { notes, evidence } = readNotesFile(file)
          if (!isOutput) this.#judge(file, evidence)
          const own = notes.filter(note => note.startsWith(`${outputOrigin}\n`) === isOutput)
          await log.checkNotes(file, own, known)
        },
        failure => failure.ofSource('notes', { file }),
      )
    }
  }

  /** Throws `AuditFailure` for evidence that is proven. */
  #judge(file: string, evidence: readonly string[]): void {
    for (const text of evidence.filter(each => !this.#judged.has(each))) {
      this.#judged.add(text)
      const { kind, lines } = judgeEvidence(text, this.#known)
      if (kind !== 'proven') continue
      const { note, notes = [note] } = JSON.parse(text)
      const failure = proven('notes', `evidence in ${file} is proven: ${lines.at(-2)}`, { notes })
      throw failure.with({ about: notes, text })
    }
  }

  async #onRead(known: SignedHead, isNewest: boolean): Promise<void> {
    if (this.#hashes !== undefined) {
      const atMs = isNewest ? this.#nowMs() : (this.#indexed?.atMs ?? this.#log.last?.sinceMs ?? 0)
      this.#indexed = { ...known, atMs }
    }
    await this.#log.checks.try(async () => this.#watch())
  }

  #watch(): void {
    const { watchFile, stateFile } = this.#options
    if (watchFile === undefined || this.#hashes === undefined) return
    for (const { detail, facts } of watchHashes(watchFile, stateFile, this.#hashes))
      this.#log.checks.pass('watch', detail, facts)
  }

  async #checkProofs(known: SignedHead): Promise<void> {
    const { proofsFile, vrfPublicKey } = this.#options
    if (proofsFile === undefined || vrfPublicKey === undefined || this.#areProofsChecked) return
    const keys = { ...this.#log.keys, vrfPublicKey }
    const compare = (proven: SignedHead) => this.#log.assertSameHistory({ check: 'proofs' }, known, proven)
    let proofs = 0
    let failures = 0
    for await (const failure of checkProofs(proofsFile, keys, compare)) {
      proofs++
      if (failure === undefined) continue
      failures++
      this.#log.checks.fail(failure)
    }
    if (failures > 0) return
    this.#areProofsChecked = true
    this.#log.checks.pass('proofs', `${proofs} proofs hold`)
  }

  /** Throws `AuditFailure`. */
  #provenEvidence(): readonly string[] {
    return this.#logs.flatMap(log => log.provenEvidence(this.#known))
  }
}

/** The results of a look so far. */
interface Seen {
  /** Whether the log showed its newest tree, and all of it. */
  isRead: boolean
  /** The tree of the log that was read whole. */
  known?: SignedHead
  /** Whether the same is so of the output log, and its leaves hold. */
  isCompared: boolean
}

function logOf(options: AuditorOptions): LogToAudit {
  const { url, verifiers, quorum, stateFile, gossip = [], mirrors = [] } = options
  const { maxAgeMs, report, stop, httpLimits, nowMs = Date.now } = options
  const keys: CheckpointKeys = { verifier: verifiers[0]!, verifiers, quorum }
  return {
    ...{ url, keys, stateFile, gossip, mirrors, maxAgeMs, report, stop, httpLimits, nowMs },
    isOptional: false,
    isAlwaysGrowing: false,
    facts: {},
  }
}

/** An honest index has a leaf every quarter of an hour, whether the log grows or not. */
function outputLogOf(options: AuditorOptions, keys: CheckpointKeys): LogToAudit {
  const log = logOf(options)
  return {
    ...log,
    url: beside(log.url),
    gossip: log.gossip.map(beside),
    mirrors: log.mirrors.map(beside),
    keys,
    stateFile: `${log.stateFile}.index`,
    isOptional: true,
    isAlwaysGrowing: true,
    // The rebuild looks at them.
    isForm: () => true,
    facts: { origin: keys.verifier.name },
  }
}

/** The prefix of the index of a log. */
function beside(log: URL): URL {
  return new URL(`${log.href.replace(/\/+$/, '')}/index`)
}

/** Throws `AuditFailure`. */
function openHashes(stateFile: string, origin: string): HashIndex {
  try {
    return HashIndex.open(`${stateFile}.hashes`, origin)
  } catch (error) {
    throw unchecked('state', `the index of hashes cannot be opened: ${messageOf(error)}`)
  }
}
