/** Tables of things that wait: inboxes, the outbox, deferred tasks, kept replies. */

import { INBOX_MESSAGES_MAX } from '../../domain/messages/inbox.ts'
import { EXPIRY } from '../../store/engine/expiries.ts'
import { idInKey, idsKey, userInKey } from '../../store/engine/keys.ts'
import {
  ENTRY_SHAPES,
  type Entry,
  endOf,
  HEAD_SHAPES,
  type Head,
  offsetIn,
} from '../../store/messages/inbox-records.ts'
import { GROUP_ID_BYTES, isSettledIn, SETTLED_BYTES } from '../../store/messages/message-groups.ts'
import { isDevice } from './account-tables.ts'
import { bytes, count, id, listOf, record, recordOf, sealed, text } from './form.ts'
import { type StoredRows, UNREADABLE } from './stored-rows.ts'
import { byBeginning, byIds, byOwner, type KeyName, type TableCheck, tableCheck } from './table-check.ts'

const DEVICE = 16
const entry = record(
  { offset: count, queue: text, atMs: count, expiresAtMs: count, group: bytes(GROUP_ID_BYTES), at: count },
  { callId: id },
)
const byDeviceAndOffset: KeyName = key =>
  key.length < DEVICE ? byOwner(key) : `${byIds(key.subarray(0, DEVICE))}/${offsetIn(key)}`
const byGroup: KeyName = key =>
  `of ${new Date(key.readUIntBE(0, 6)).toISOString()}, ${byBeginning(key.subarray(12))}`
const byNumber: KeyName = key => (key.length === 6 ? `${key.readUIntBE(0, 6)}` : '?')

export const MESSAGE_TABLES: Readonly<Record<string, TableCheck>> = {
  inbox: tableCheck<Entry>({
    shapes: ENTRY_SHAPES,
    key: [DEVICE + 6],
    keyAs: byDeviceAndOffset,
    form: entry,
    *disagreements(key, row, rows) {
      const offset = offsetIn(key)
      const isCounted = rows.holds<Head>(
        'inbox-heads',
        key.subarray(0, DEVICE),
        head => offset < head.nextOffset && !head.entries.some(entry => entry.offset === offset),
      )
      if (!isCounted) yield 'inbox-heads does not know of the message'
      if (!rows.has('inbox-groups', row.group)) yield 'its message is not in inbox-groups'
      yield* deadInvitation(row, rows)
    },
    remedy: 'the device may miss what it was to be told: have its user open the app and look',
  }),
  'inbox-heads': tableCheck<Head>({
    shapes: HEAD_SHAPES,
    key: [DEVICE],
    keyAs: byIds,
    form: record(
      {
        epoch: count,
        nextOffset: count,
        lostOffset: count,
        looksAtMs: count,
        rows: count,
        entries: listOf(entry),
      },
      { delivered: recordOf(count) },
    ),
    ending: {
      kind: EXPIRY.inbox,
      atMs: ({ looksAtMs }) => (Number.isFinite(looksAtMs) ? looksAtMs : undefined),
    },
    *disagreements(key, head, rows) {
      if (!isDevice(rows, userInKey(key), idInKey(key, 1))) yield 'there is no such device'
      if (head.epoch === 0) yield 'its inbox has no epoch'
      yield* miscounts(key, head, rows)
    },
    remedy: 'the device may miss messages: have its user remove the device and sign in on it again',
  }),
  'inbox-groups': {
    codec: 'bytes',
    key: [GROUP_ID_BYTES],
    keyAs: byGroup,
    form: value => value instanceof Uint8Array && sealed(value.subarray(1)),
    remedy: 'the devices that it is for miss it: have their users open the app and look',
  },
  'inbox-settled': {
    codec: 'bytes',
    key: [GROUP_ID_BYTES],
    keyAs: byGroup,
    form: bytes(SETTLED_BYTES),
    *disagreements(key, _, rows) {
      if (!rows.has('inbox-groups', key)) yield 'there are no such messages in inbox-groups'
    },
    remedy: 'devices may get messages again that they have acknowledged',
  },
  outbox: {
    key: [17],
    keyAs: key => `channel ${key[0]}, ${byBeginning(key.subarray(13))}`,
    form: record({ sealed, tries: count }),
    remedy: 'the message is not sent; the others are',
  },
  errands: {
    key: [6],
    keyAs: byNumber,
    form: sealed,
    ending: { kind: EXPIRY.deferredTask },
    remedy: 'a person may not hear of a request: have it sent again',
  },
  idempotency: {
    key: [32],
    keyAs: byBeginning,
    form: record({ bodyHash: bytes(32), sealedReply: sealed }),
    ending: { kind: EXPIRY.idempotency },
    remedy: 'a request that is repeated within a day may be refused, or done twice',
  },
  'identity-tokens': {
    key: [32],
    keyAs: byBeginning,
    form: record({}, { attempt: bytes(32), sealedOutcome: sealed }),
    ending: { kind: EXPIRY.identityToken },
    remedy: 'an ID token may be accepted twice until it expires',
  },
}

/** Whether a device still has the message before it. */
function isWaiting({ group, at }: Entry, rows: StoredRows): boolean {
  if (!rows.has('inbox-groups', group)) return false
  return !(
    rows.has('inbox-settled', group) &&
    rows.holds<Uint8Array>('inbox-settled', group, bits => isSettledIn(bits, at))
  )
}

function* deadInvitation({ callId }: Pick<Entry, 'callId'>, rows: StoredRows): Iterable<string> {
  if (callId !== undefined && !rows.has('calls', idsKey(callId))) {
    yield `it invites to call ${callId}, which is not in calls`
  }
}

function* miscounts(key: Buffer, head: Head, rows: StoredRows): Iterable<string> {
  const withRows: Pick<Entry, 'expiresAtMs' | 'callId'>[] = []
  for (const { value } of rows.rows('inbox', key)) {
    // Said of that one.
    if (value === UNREADABLE) return
    withRows.push(value as Entry)
  }
  const inHead = head.entries.filter(entry => isWaiting(entry, rows))
  for (const entry of inHead) yield* deadInvitation(entry, rows)
  const waiting = [...withRows, ...inHead]
  if (withRows.length !== head.rows) yield `it counts ${head.rows} rows, and there are ${withRows.length}`
  else if (waiting.length > INBOX_MESSAGES_MAX)
    yield `it holds ${waiting.length} messages, more than an inbox may`
  if (waiting.some(entry => endOf(entry) < head.looksAtMs))
    yield 'a message ends before the sweep looks at it'
}
