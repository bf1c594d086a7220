/** Runs the auditor in the test's own process, with time limits of a test, and keeps what it reports. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { Auditor, type AuditorOptions } from '../../scripts/audit/auditor.ts'
import type { Verdict } from '../../scripts/audit/checks.ts'
import { AuditFailure, type CheckName, type Finding } from '../../scripts/audit/finding.ts'
import { HTTP_LIMITS, type HttpLimits } from '../../scripts/audit/http-source.ts'
import type { VerifierKey } from '../../src/log/note.ts'
import { SIGNER } from './served-log.ts'

export interface AuditOutcome {
  readonly verdict: Verdict
  readonly findings: readonly Finding[]
  /** The checks that did not pass, in order, as `check ok`. */
  readonly failures: readonly string[]
  /** The finding of that check, the last one where there are more. */
  of(check: CheckName): Finding | undefined
}

export type AuditSettings = Partial<
  Omit<AuditorOptions, 'url' | 'verifiers' | 'gossip' | 'mirrors' | 'stateFile'>
> & {
  readonly url: string
  /** The key of every log of tests unless given. */
  readonly verifier?: VerifierKey
  readonly verifiers?: readonly VerifierKey[]
  readonly stateFile: string
  readonly gossip?: readonly string[]
  readonly mirrors?: readonly string[]
}

/** Retries soon, and otherwise waits as long as the program does: a busy machine fails no test. */
export const PATIENT: HttpLimits = { ...HTTP_LIMITS, backOffMs: 5 }

/** For servers that keep an auditor waiting. */
export const IMPATIENT: HttpLimits = { requestMs: 600, idleMs: 200, backOffMs: 5, connectionRetriesMax: 2 }

/** An auditor, and the list that its findings go to. */
export function openAuditor({
  url,
  gossip = [],
  mirrors = [],
  verifier = SIGNER,
  ...settings
}: AuditSettings) {
  const findings: Finding[] = []
  const auditor = new Auditor({
    verifiers: [verifier],
    report: { finding: finding => findings.push(finding), progress: () => {} },
    stop: new AbortController().signal,
    httpLimits: PATIENT,
    ...settings,
    url: new URL(url),
    gossip: gossip.map(source => new URL(source)),
    mirrors: mirrors.map(mirror => new URL(mirror)),
  })
  return { auditor, findings }
}

/** One audit with a fresh auditor, as from cron. */
export async function audit(settings: AuditSettings): Promise<AuditOutcome> {
  const { auditor, findings } = openAuditor(settings)
  try {
    const verdict = await auditor.run()
    const failures = findings.filter(({ ok }) => ok !== true).map(({ check, ok }) => `${check} ${ok}`)
    return { verdict, findings, failures, of: check => findings.findLast(finding => finding.check === check) }
  } finally {
    auditor.close()
  }
}

/** The finding with which an audit ends before it begins. */
export async function refusalOf(audited: Promise<AuditOutcome>): Promise<Finding | undefined> {
  try {
    await audited
    return undefined
  } catch (error) {
    return error instanceof AuditFailure ? error.finding : undefined
  }
}

/** A state file that is not there yet, in a folder of its own. */
export function newStateFile(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'callsign-audit-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'audit.json')
}
