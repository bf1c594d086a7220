/** Rows that count rows of another table: the figures of a call history, and the heads of inboxes. */

import { INBOX_MESSAGES_MAX } from '../../domain/messages/inbox.ts'
import type { Figures, StoredHistoryRow } from '../../store/calls/call-tables.ts'
import { idsKey } from '../../store/engine/keys.ts'
import { endOf } from '../../store/messages/kept-inboxes.ts'
import { isSettledIn } from '../../store/messages/live-rows.ts'
import type { Entry, Head } from '../../store/messages/message-tables.ts'
import { type StoredRows, UNREADABLE } from './stored-rows.ts'

export function* wrongFigures(key: Buffer, { count, missed }: Figures, rows: StoredRows): Iterable<string> {
  const found = readableIn<StoredHistoryRow>(rows, 'call-history', key)
  if (found === undefined) return
  const unseen = found.filter(({ seen }) => !seen)
  if (found.length !== count) yield `it counts ${count} calls, and call-history has ${found.length}`
  if (unseen.length !== missed)
    yield `it counts ${missed} missed calls, and call-history has ${unseen.length}`
}

export function* wrongHead(key: Buffer, head: Head, rows: StoredRows): Iterable<string> {
  const withRows = readableIn<Entry>(rows, 'inbox', key)
  if (withRows === undefined) return
  const inHead = head.entries.filter(entry => isWaiting(entry, rows))
  for (const { callId } of inHead) {
    if (callId !== undefined && !rows.has('calls', idsKey(callId)))
      yield `it invites to call ${callId}, which is not in calls`
  }
  const waiting = [...withRows, ...inHead]
  if (withRows.length !== head.rows) yield `it counts ${head.rows} rows, and there are ${withRows.length}`
  else if (waiting.length > INBOX_MESSAGES_MAX)
    yield `it holds ${waiting.length} messages, more than an inbox may`
  if (waiting.some(entry => endOf(entry) < head.looksAtMs))
    yield 'a message ends before the sweep looks at it'
}

/** The rows with keys that begin so; undefined where one is unreadable, which is a fault of its own. */
function readableIn<Row>(rows: StoredRows, table: string, prefix: Buffer): Row[] | undefined {
  const found: Row[] = []
  for (const { value } of rows.rows(table, prefix)) {
    if (value === UNREADABLE) return undefined
    found.push(value as Row)
  }
  return found
}

/** Whether a device still has the message before it. */
function isWaiting({ group, at }: Entry, rows: StoredRows): boolean {
  if (!rows.has('inbox-groups', group)) return false
  return !(
    rows.has('inbox-settled', group) &&
    rows.holds<Uint8Array>('inbox-settled', group, bits => isSettledIn(bits, at))
  )
}
