/**
 * Reports by users about users: queues for moderators, one for each state. The words of reporter and moderators are sealed.
 * A closed report is kept for `CALLSIGN_REPORTS_DAYS`; an open one until a moderator closes it.
 */

import { type CallId, newId, type UserId } from '../../domain/ids.ts'
import { type Report, type ReportState, reportEndsAtMs } from '../../domain/operators/report.ts'
import { EXPIRY } from '../engine/expiries.ts'
import { idInKey, idsKey, keyBehind, rangeOf, timeBytes } from '../engine/keys.ts'
import type { Change, KeyRange, View } from '../engine/store.ts'
import type { StoreDeps } from '../tables/deps.ts'
import type { ListRange } from '../tables/id-lists.ts'
import { Sealed } from '../tables/sealed.ts'
import {
  aboutKey,
  byKey,
  idOfListed,
  REPORTS,
  REPORTS_BY_STATE,
  REPORTS_BY_USER,
  ROLE,
  type StoredReport,
  stateKey,
  statePrefix,
  userPrefix,
} from './report-tables.ts'
import type { Webhooks } from './webhook-store.ts'

/** As a user sends it. */
export type NewReport = Pick<Report, 'reportedId' | 'reason' | 'text' | 'isCallKnown'> & {
  readonly reporterId: UserId
  readonly callId?: CallId | undefined
}

export interface NamedReport extends Report {
  readonly reportId: bigint
}

/** A moderator's decision about a report. */
export interface Handling {
  readonly state?: ReportState | undefined
  /** Empty: takes the note away. */
  readonly note?: string | undefined
  readonly handledBy: string
}

type Parts = Omit<StoreDeps, 'database'> & { readonly webhooks: Pick<Webhooks, 'add'> }

export class ReportStore {
  readonly #deps: Parts
  readonly #words: Sealed
  readonly #keptMs: number

  /** Closed reports are kept for `keptMs`. */
  constructor(deps: Parts, keptMs: number) {
    this.#deps = deps
    this.#words = new Sealed(deps.secrets, deps.randomBytes, 'report')
    this.#keptMs = keptMs
    deps.expiries.define(EXPIRY.report, (change, key) =>
      OVERDUE.equals(key) ? this.#endOverdue(change) : this.#onDue(change, key),
    )
  }

  add(change: Change, report: NewReport): bigint {
    const { nowMs } = change
    const { callId, text, ...told } = report
    const reportId = newId(this.#deps.randomBytes)
    const sealedText = this.#sealedWords(text)
    this.#put(change, reportId, {
      ...told,
      ...(callId !== undefined && { callId }),
      ...(sealedText && { text: sealedText }),
      state: 'open',
      createdAtMs: nowMs,
      stateSinceMs: nowMs,
    })
    const { expiries, webhooks } = this.#deps
    expiries.add(change, EXPIRY.report, nowMs + this.#keptMs, idsKey(reportId))
    const { reportedId: userId, reason } = told
    webhooks.add(change, { kind: 'report.created', reportId: `${reportId}`, userId, callId, reason })
    return reportId
  }

  read(view: View, reportId: bigint): NamedReport | undefined {
    const row = view.get(REPORTS, idsKey(reportId))
    return row && { reportId, ...this.#opened(row) }
  }

  /** Open ones and those in review by how long they wait, the longest first; closed ones newest first. */
  inState(view: View, state: ReportState, range: ListRange): NamedReport[] {
    const isQueue = state === 'open' || state === 'in-review'
    const keys = keysBehind(statePrefix(state), range, isQueue)
    return this.#read(view, view.keys(REPORTS_BY_STATE, keys), range)
  }

  /** Newest first. */
  about(view: View, userId: UserId, range: ListRange): NamedReport[] {
    const keys = keysBehind(userPrefix(userId, ROLE.about), range, false)
    return this.#read(view, view.keys(REPORTS_BY_USER, keys), range)
  }

  /** Those that the user has sent, newest first. */
  by(view: View, userId: UserId, range: ListRange): NamedReport[] {
    const keys = keysBehind(userPrefix(userId, ROLE.by), range, false)
    return this.#read(view, view.keys(REPORTS_BY_USER, keys), range)
  }

  /** Undefined where there is no such report. */
  handle(change: Change, reportId: bigint, { state, note, handledBy }: Handling): NamedReport | undefined {
    const row = change.get(REPORTS, idsKey(reportId))
    if (row === undefined) return undefined
    const { note: noteBefore, ...rest } = row
    const noteAfter = note === undefined ? noteBefore : this.#sealedWords(note)
    const moved = state === undefined || state === row.state ? {} : { state, stateSinceMs: change.nowMs }
    const handled = { ...rest, ...(noteAfter && { note: noteAfter }), ...moved, handledBy }
    this.#put(change, reportId, handled, row)
    return { reportId, ...this.#opened(handled) }
  }

  /**
   * Reports about the user go with them. Those by them stay without their name and words: what they are about may endanger
   * other people.
   */
  eraseOf(change: Change, userId: UserId): void {
    for (const key of [...change.keys(REPORTS_BY_USER, rangeOf(userPrefix(userId, ROLE.about)))])
      this.#remove(change, idOfListed(key))
    for (const key of [...change.keys(REPORTS_BY_USER, rangeOf(userPrefix(userId, ROLE.by)))]) {
      const reportId = idOfListed(key)
      const row = change.get(REPORTS, idsKey(reportId))
      if (row === undefined) continue
      const { reporterId: _, text: __, ...rest } = row
      this.#put(change, reportId, rest, row)
    }
  }

  /** Has the next sweep end reports that an earlier, longer setting would keep. */
  applyRetention(change: Change): void {
    const isOverdue = CLOSED.some(state => this.#overdue(change, state, 1).length > 0)
    if (isOverdue) this.#deps.expiries.add(change, EXPIRY.report, change.nowMs, OVERDUE)
  }

  #endOverdue(change: Change): number | undefined {
    const overdue = CLOSED.flatMap(state => this.#overdue(change, state, ENDED_AT_ONCE))
    for (const key of overdue) this.#remove(change, idOfListed(key))
    return overdue.length < ENDED_AT_ONCE ? undefined : change.nowMs
  }

  #overdue(change: Change, state: ReportState, limit: number): Uint8Array[] {
    const start = statePrefix(state)
    const end = Buffer.concat([start, timeBytes(change.nowMs - this.#keptMs)])
    return [...change.keys(REPORTS_BY_STATE, { start, end, limit })]
  }

  /** An open report is looked at again once more of its time has passed. */
  #onDue(change: Change, key: Uint8Array): number | undefined {
    const report = change.get(REPORTS, key)
    if (report === undefined) return undefined
    const endsAtMs = reportEndsAtMs(report, this.#keptMs) ?? change.nowMs + this.#keptMs
    if (endsAtMs > change.nowMs) return endsAtMs
    this.#remove(change, idInKey(key, 0))
    return undefined
  }

  #put(change: Change, reportId: bigint, after: StoredReport, before?: StoredReport): void {
    if (before !== undefined) this.#unlist(change, reportId, before)
    change.put(REPORTS, idsKey(reportId), after)
    change.put(REPORTS_BY_STATE, stateKey(after, reportId), 0)
    change.put(REPORTS_BY_USER, aboutKey(after, reportId), 0)
    const by = byKey(after, reportId)
    if (by !== undefined) change.put(REPORTS_BY_USER, by, 0)
  }

  #remove(change: Change, reportId: bigint): void {
    const row = change.get(REPORTS, idsKey(reportId))
    if (row === undefined) return
    this.#unlist(change, reportId, row)
    change.remove(REPORTS, idsKey(reportId))
  }

  #unlist(change: Change, reportId: bigint, row: StoredReport): void {
    change.remove(REPORTS_BY_STATE, stateKey(row, reportId))
    change.remove(REPORTS_BY_USER, aboutKey(row, reportId))
    const by = byKey(row, reportId)
    if (by !== undefined) change.remove(REPORTS_BY_USER, by)
  }

  #read(view: View, keys: Iterable<Uint8Array>, { limit, after }: ListRange): NamedReport[] {
    const ids = [...keys].map(idOfListed).filter(id => id !== after?.id)
    return ids.slice(0, limit).flatMap(id => this.read(view, id) ?? [])
  }

  #sealedWords(words: string | undefined): Uint8Array | undefined {
    return words ? this.#words.seal(Buffer.from(words)) : undefined
  }

  /** Without words that another secret has sealed. */
  #opened({ text, note, ...report }: StoredReport): Report {
    const words = (sealed: Uint8Array | undefined) => {
      const plain = sealed && this.#words.open(sealed)
      return plain && Buffer.from(plain).toString('utf8')
    }
    const [openText, openNote] = [words(text), words(note)]
    return { ...report, ...(openText && { text: openText }), ...(openNote && { note: openNote }) }
  }
}

/** The keys of a list from the place that the range begins at, and one more in the place of its beginning. */
function keysBehind(prefix: Uint8Array, { limit, after }: ListRange, isOldestFirst: boolean): KeyRange {
  const place = after && Buffer.concat([prefix, timeBytes(after.atMs), idsKey(after.id)])
  return isOldestFirst
    ? { start: place ?? prefix, end: keyBehind(prefix), limit: limit + 1 }
    : { start: place ?? keyBehind(prefix), end: prefix, limit: limit + 1, reverse: true }
}

const CLOSED = ['resolved', 'dismissed'] as const
/** Key of the ending for reports past a shortened setting: as long as a report's, and no report's. */
const OVERDUE = Buffer.alloc(8)
/** Reports ended in one change: a few milliseconds. */
const ENDED_AT_ONCE = 500
