/** The findings of one look at the logs, reported as they are made, and the verdict. */

import { AuditFailure, type CheckName, type Finding, type FindingFacts } from './finding.ts'
import type { AuditMemory } from './memory.ts'
import type { Report } from './report.ts'

/** The exit code: 0 clean, 1 the log's signatures prove a fault of it, 2 not (all) checked, 3 not what the log signed. */
export type Verdict = 0 | 1 | 2 | 3

/** One look with all that it reported, but for the findings beyond a thousand. */
export interface AuditRound {
  readonly verdict: Verdict
  readonly startedAtMs: number
  readonly endedAtMs: number
  readonly findings: readonly Finding[]
  /** Why the auditor alarms. */
  readonly alarm: string | undefined
}

/** The checks of one log in one look. */
export class Checks {
  readonly #memory: AuditMemory
  readonly #report: Report
  readonly #nowMs: () => number
  readonly #facts: FindingFacts
  readonly findings: Finding[] = []
  verdict: Verdict = 0
  canRemember = true

  /** `facts` are in each finding. */
  constructor(memory: AuditMemory, report: Report, nowMs: () => number, facts: FindingFacts) {
    this.#memory = memory
    this.#report = report
    this.#nowMs = nowMs
    this.#facts = facts
  }

  /** Runs a check and reports its failure, changed by `changed`; whether there was none. */
  async try(
    work: () => Promise<void>,
    changed: (failure: AuditFailure) => AuditFailure = failure => failure,
  ): Promise<boolean> {
    try {
      await work()
      return true
    } catch (error) {
      if (!(error instanceof AuditFailure)) throw error
      this.fail(changed(error))
      return false
    }
  }

  pass(check: CheckName, detail: string, facts: FindingFacts = {}): void {
    this.#add({ check, ok: true, detail, ...facts })
  }

  fail(failure: AuditFailure): void {
    const { finding, evidence } = failure
    const verdict = finding.ok === false ? 1 : finding.pending ? 3 : 2
    this.verdict = worstOf([this.verdict, verdict])
    if (finding.check === 'state') this.canRemember = false
    this.#add(finding)
    if (evidence !== undefined || finding.notes !== undefined) this.#keepEvidence(failure)
  }

  #keepEvidence(failure: AuditFailure): void {
    try {
      const file = this.#memory.keepEvidence(failure, this.#nowMs())
      const what = failure.evidence === undefined ? 'both signed notes are' : 'the evidence is'
      this.pass('state', `${what} kept in ${file}`)
    } catch (error) {
      if (!(error instanceof AuditFailure)) throw error
      this.fail(error)
    }
  }

  #add(finding: Finding): void {
    const whole = { ...finding, ...this.#facts }
    if (this.findings.length < FINDINGS_MAX) this.findings.push(whole)
    this.#report.finding(whole)
  }
}

export function worstOf(verdicts: readonly Verdict[]): Verdict {
  return SEVERITY[Math.max(0, ...verdicts.map(verdict => SEVERITY.indexOf(verdict)))]!
}

const FINDINGS_MAX = 1_000
/** The worst last. */
const SEVERITY: readonly Verdict[] = [0, 2, 3, 1]
