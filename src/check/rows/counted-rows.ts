/** Rows that sum up rows of another table: the marks of call histories, and the heads of inboxes. */

import { INBOX_MESSAGES_MAX } from '../../domain/messages/inbox.ts'
import { isSeen } from '../../store/calls/history-rows.ts'
import { idsKey } from '../../store/engine/keys.ts'
import { endOf } from '../../store/messages/kept-inboxes.ts'
import { isSettledIn } from '../../store/messages/live-rows.ts'
import type { Entry, Head } from '../../store/messages/message-tables.ts'
import { type StoredRows, UNREADABLE } from './stored-rows.ts'

/** All calls that the user has not looked at are behind their mark. */
export function* wrongMark(key: Buffer, mark: Uint8Array, rows: StoredRows): Iterable<string> {
  for (const row of rows.rows('call-history', key)) {
    if (row.value === UNREADABLE || Buffer.compare(row.key.subarray(key.length), mark) > 0) continue
    if (!isSeen(row.value as Uint8Array)) return yield 'a missed call before it was not looked at'
  }
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
