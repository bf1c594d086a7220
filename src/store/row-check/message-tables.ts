/** What waits for devices, for senders and for later: inboxes, the outbox, deferred tasks, kept replies. */

import { isDeepStrictEqual } from 'node:util'
import { INBOX_MESSAGES_MAX } from '../../domain/messages/inbox.ts'
import { EXPIRY } from '../engine/expiries.ts'
import { idInKey, idsKey, userInKey } from '../engine/keys.ts'
import {
  endOf,
  HEAD_SHAPES,
  type Head,
  invitationsAmong,
  offsetIn,
  ROW_SHAPES,
  type Row,
} from '../messages/inbox-records.ts'
import { isDevice } from './account-tables.ts'
import { bytes, count, id, listOf, record, recordOf, sealed, text, tuple } from './form.ts'
import { type StoredRows, UNREADABLE } from './stored-rows.ts'
import { byBeginning, byIds, byOwner, type KeyName, type TableCheck, tableCheck } from './table-check.ts'

const DEVICE = 16
const row = record({ queue: text, atMs: count, expiresAtMs: count, sealed }, { callId: id })
const byDeviceAndOffset: KeyName = key =>
  key.length < DEVICE ? byOwner(key) : `${byIds(key.subarray(0, DEVICE))}/${offsetIn(key)}`
const byNumber: KeyName = key => (key.length === 6 ? `${key.readUIntBE(0, 6)}` : '?')

export const MESSAGE_TABLES: Readonly<Record<string, TableCheck>> = {
  inbox: tableCheck<Row>({
    shapes: ROW_SHAPES,
    key: [DEVICE + 6],
    keyAs: byDeviceAndOffset,
    form: row,
    *disagreements(key, { callId }, rows) {
      const isCounted = rows.holds<Head>(
        'inbox-heads',
        key.subarray(0, DEVICE),
        ({ nextOffset, first }) => offsetIn(key) < nextOffset && offsetIn(key) !== first?.offset,
      )
      if (!isCounted) yield 'inbox-heads does not know of the message'
      yield* deadInvitation(callId, rows)
    },
    remedy: 'the device may miss what it was to be told: have its user open the app and look',
  }),
  'inbox-heads': tableCheck<Head>({
    shapes: HEAD_SHAPES,
    key: [DEVICE],
    keyAs: byIds,
    form: record(
      { epoch: count, nextOffset: count, lostOffset: count, count, looksAtMs: count },
      {
        invitations: listOf(tuple(id, count)),
        first: record({ offset: count, row }),
        delivered: recordOf(count),
      },
    ),
    ending: {
      kind: EXPIRY.inbox,
      atMs: ({ looksAtMs }) => (Number.isFinite(looksAtMs) ? looksAtMs : undefined),
    },
    *disagreements(key, head, rows) {
      if (!isDevice(rows, userInKey(key), idInKey(key, 1))) yield 'there is no such device'
      if (head.epoch === 0) yield 'its inbox has no epoch'
      yield* deadInvitation(head.first?.row.callId, rows)
      yield* miscounts(key, head, rows)
    },
    remedy: 'the device may miss messages: have its user remove the device and sign in on it again',
  }),
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

function* deadInvitation(callId: bigint | undefined, rows: StoredRows): Iterable<string> {
  if (callId !== undefined && !rows.has('calls', idsKey(callId))) {
    yield `it invites to call ${callId}, which is not in calls`
  }
}

function* miscounts(key: Buffer, head: Head, rows: StoredRows): Iterable<string> {
  const stored = head.first === undefined ? [] : [head.first]
  for (const { key: rowKey, value } of rows.rows('inbox', key)) {
    // Said of that one.
    if (value === UNREADABLE) return
    stored.push({ offset: offsetIn(rowKey), row: value as Row })
  }
  if (stored.length !== head.count) yield `it counts ${head.count} messages, and there are ${stored.length}`
  else if (head.count > INBOX_MESSAGES_MAX) yield `it holds ${head.count} messages, more than an inbox may`
  if (stored.some(each => endOf(each.row) < head.looksAtMs))
    yield 'a message ends before the sweep looks at it'
  // Heads of before leave that to their rows.
  const waiting = head.invitations ?? invitationsAmong(stored)
  if (!isDeepStrictEqual([...waiting], invitationsAmong(stored))) {
    yield 'it does not name the invitations that wait'
  }
}
