/** Reports: one user tells the operator's moderators about another (operators.md section 2). */

import type { CallId, UserId } from '../ids.ts'

export const REPORT_REASONS = [
  'harassment',
  'threat',
  'hate',
  'sexual',
  'child-safety',
  'self-harm',
  'impersonation',
  'fraud',
  'spam',
  'other',
] as const

export type ReportReason = (typeof REPORT_REASONS)[number]

/** For apps without words of their own. */
export const REASON_TITLES: Readonly<Record<ReportReason, string>> = {
  harassment: 'Bullying or harassment',
  threat: 'Threats or violence',
  hate: 'Hate',
  sexual: 'Unwanted sexual content',
  'child-safety': 'A child is in danger',
  'self-harm': 'Suicide or self-harm',
  impersonation: 'Pretends to be another person',
  fraud: 'Fraud or scam',
  spam: 'Spam or advertising',
  other: 'Something else',
}

export const REPORT_STATES = ['open', 'in-review', 'resolved', 'dismissed'] as const

export type ReportState = (typeof REPORT_STATES)[number]

export interface Report {
  /** Missing once the reporter's account was erased, as is the text. */
  readonly reporterId?: UserId
  readonly reportedId: UserId
  readonly callId?: CallId
  /** Whether the server's own record says that both people were in the call. */
  readonly isCallKnown: boolean
  readonly reason: ReportReason
  readonly text?: string
  readonly state: ReportState
  /** The moderators' own words, which no user ever reads. */
  readonly note?: string
  /** The person or the key behind the last change. */
  readonly handledBy?: string
  readonly createdAtMs: number
  /** When it came into its state. */
  readonly stateSinceMs: number
}

export function isClosed({ state }: Pick<Report, 'state'>): boolean {
  return state === 'resolved' || state === 'dismissed'
}

/** When a report is removed; undefined while it is open. */
export function reportEndsAtMs(report: Pick<Report, 'state' | 'stateSinceMs'>, keptMs: number) {
  return isClosed(report) ? report.stateSinceMs + keptMs : undefined
}
