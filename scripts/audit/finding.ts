/** An audit's results: one finding per check, and the failure that ends a check. */

import type { ConsistencyEvidence } from './evidence.ts'

/** The checks (contract 14). */
export type CheckName =
  | 'fetch'
  | 'checkpoint'
  | 'witnesses'
  | 'stale'
  | 'tiles'
  | 'entries'
  | 'consistency'
  | 'index'
  | 'gossip'
  | 'proofs'
  | 'notes'
  | 'watch'
  | 'serve'
  | 'state'

/** The members of a report line that not every check has. Numbers of the log are decimal texts. */
export interface FindingFacts {
  /** The log that was looked at, where it is the output log of the index. */
  readonly origin?: string
  readonly treeSize?: string
  /** Base64 of 32 bytes. */
  readonly rootHash?: string
  /** The entry at fault. */
  readonly index?: string
  /** The gossip source. */
  readonly url?: string
  /** The hash that is watched, in base64, and what the watch file calls it. */
  readonly vrfHash?: string
  readonly label?: string
  /** The file of notes. */
  readonly file?: string
  /** The line of the proofs or watch file, counted from 1. */
  readonly line?: number
  /** Signed notes that contradict each other: the evidence. */
  readonly notes?: readonly string[]
  /** It has lasted longer than a cache explains. */
  readonly alarm?: true
  /** Shows it beside the notes, where their sizes differ. */
  readonly proof?: ConsistencyEvidence | null
}

/** One line of the report. `ok` is false for what the log's own signatures prove against it, null for all else that fails. */
export interface Finding extends FindingFacts {
  readonly check: CheckName
  readonly ok: boolean | null
  readonly detail: string
  /** The answer was older than what the log signed, or not what it signed. A cache does that, too: the next look asks again. */
  readonly pending?: true
}

/** The text of an evidence file. `about` is equal in all files that prove the same. */
export interface EvidenceText {
  readonly about: readonly unknown[]
  readonly text: string
}

/** Ends a check, and with it all that would rest on it. */
export class AuditFailure extends Error {
  readonly finding: Finding
  readonly evidence: EvidenceText | undefined

  constructor(finding: Finding, cause?: unknown, evidence?: EvidenceText) {
    super(finding.detail, cause === undefined ? undefined : { cause })
    this.name = 'AuditFailure'
    this.finding = finding
    this.evidence = evidence
  }

  /** The same failure, found by another check. */
  as(check: CheckName, facts: FindingFacts = {}): AuditFailure {
    return new AuditFailure({ ...this.finding, ...facts, check }, this.cause, this.evidence)
  }

  /** The same failure, with evidence that is more than its notes. */
  with(evidence: EvidenceText): AuditFailure {
    return new AuditFailure(this.finding, this.cause, evidence)
  }

  /** The same failure of a source that does not speak for the log: proves nothing unless the log signed both notes. */
  ofSource(check: CheckName, facts: FindingFacts = {}): AuditFailure {
    const { pending: _, ...finding } = this.finding
    const ok = finding.notes === undefined ? null : finding.ok
    return new AuditFailure({ ...finding, ...facts, check, ok }, this.cause, this.evidence)
  }

  get isPending(): boolean {
    return this.finding.pending === true
  }
}

/** Proven by the log's own signatures: exit 1. */
export function proven(check: CheckName, detail: string, facts: FindingFacts = {}): AuditFailure {
  return new AuditFailure({ check, ok: false, detail, ...facts })
}

/** Not what the log signed, which proves nothing: exit 3. */
export function pending(check: CheckName, detail: string, facts: FindingFacts = {}): AuditFailure {
  return new AuditFailure({ check, ok: null, detail, pending: true, ...facts })
}

/** Says nothing about the log: exit 2. */
export function unchecked(check: CheckName, detail: string, facts: FindingFacts = {}): AuditFailure {
  return new AuditFailure({ check, ok: null, detail, ...facts })
}

/** A wait that is longer than a cache explains. */
export function alarmOf(what: string, sinceMs: number, ageMs: number): AuditFailure {
  const since = new Date(sinceMs).toISOString()
  return pending('stale', `${what} since ${since}, longer than ${ageMs / 1_000} s`, { alarm: true })
}
