/** Tables of calls, live and ended, and of what their people remember of them. */

import type { CallId } from '../../domain/ids.ts'
import { OF_A_USER } from '../accounts/account-tables.ts'
import { EXPIRY } from '../engine/expiries.ts'
import { ID, TIME, untold } from '../engine/key-parts.ts'
import { idsKey, timeBytes, userInKey } from '../engine/keys.ts'
import {
  bytes,
  count,
  type Form,
  flag,
  id,
  maybe,
  object,
  oneOf,
  type RowOf,
  sealed,
} from '../engine/row-form.ts'
import { bytesTable, rowTable, textKeyTable } from '../engine/table.ts'

export const CALLS = bytesTable('calls', { call: ID }, sealed, {
  holds: 'a live call as it was written whole, sealed',
  *disagreements(key, _, rows) {
    if (rows.has('calls-ended', key)) yield 'the call is live, and ended in calls-ended'
  },
  remedy: 'a start may refuse it: restore a backup',
})

export const CALL_CHANGES = bytesTable('call-changes', { call: ID }, sealed, {
  holds: 'how a live call has changed since, sealed',
  relations: [{ in: 'calls', under: key => key, what: () => 'its call' }],
  remedy: 'there is nothing to do: the next start with this call’s id removes it',
})

const TIMED_AND_SEALED: Form<Uint8Array> = {
  fits: value => value instanceof Uint8Array && sealed.fits(value.subarray(TIME.bytes)),
}

export const CALLS_ENDED = bytesTable('calls-ended', { call: ID }, TIMED_AND_SEALED, {
  holds: 'a call that has ended, for a day, sealed, behind the time of its end',
  relations: [
    {
      in: 'calls-by-end',
      under: (key, row) => Buffer.concat([row.subarray(0, TIME.bytes), key]),
      what: () => 'its end',
    },
  ],
  remedy: 'late requests about the call are refused for a day; there is nothing to do',
})

/** An ended call, for late and repeated requests. */
export const ENDED_CALL_KEPT_MS = 86_400_000

/** Its rows go by their age, each with its call. */
export const CALLS_BY_END = rowTable('calls-by-end', { ended: TIME, call: ID }, oneOf(0), {
  holds: 'nothing: its key says when a call ended',
  relations: [{ in: 'calls-ended', under: key => key.subarray(TIME.bytes), what: () => 'its call' }],
  remedy: 'the operator’s list misses a call for a day; there is nothing to do',
})

/** As it is stored: its people's ids packed, once for all rows of a call. */
export type StoredHistoryRow = RowOf<typeof HISTORY_ROW>
const HISTORY_ROW = object({
  callId: id<CallId>(),
  direction: oneOf('outgoing', 'incoming'),
  status: oneOf('active', 'ended', 'missed', 'declined', 'cancelled', 'failed'),
  isVideo: flag,
  isGroup: flag,
  createdAtMs: count,
  startedAtMs: maybe(count),
  endedAtMs: maybe(count),
  talkedMs: maybe(count),
  seen: flag,
  people: bytes(),
})
const BY_CALL = { user: ID, created: untold(TIME.bytes), call: untold(ID.bytes) }

export const CALL_HISTORY = rowTable('call-history', BY_CALL, HISTORY_ROW, {
  holds: 'what a user remembers of a call',
  shapes: [HISTORY_ROW.shape()],
  ownKey: (key, { createdAtMs, callId }) =>
    Buffer.concat([key.subarray(0, ID.bytes), timeBytes(createdAtMs), idsKey(callId)]),
  relations: [
    { in: 'call-history-figures', under: key => idsKey(userInKey(key)), what: () => 'figures of its user' },
    {
      in: 'calls',
      under: (_, { callId, status }) => (status === 'active' ? idsKey(callId) : undefined),
      what: (_, { callId }) => `call ${callId}, which goes on by it`,
    },
  ],
  remedy: 'have the user delete the call, or all calls, from the history',
})

/** The counts of a user's rows, and when the oldest ends: the time of the one ending in `expiries` that counts. */
export type Figures = RowOf<typeof FIGURES_ROW>
const FIGURES_ROW = object({ count, missed: count, endsAtMs: count })

export const FIGURES = rowTable('call-history-figures', { user: ID }, FIGURES_ROW, {
  holds: 'how many calls the user remembers, and has missed, and when the oldest ends',
  shapes: [FIGURES_ROW.shape()],
  ending: { kind: EXPIRY.callHistory },
  relations: [OF_A_USER],
  remedy: 'the badge is wrong: have the user delete all calls from the history',
})

export const HISTORY_DAYS = textKeyTable('call-history-days', '`days`', count, {
  holds: 'for how many days the rows of `call-history` were last kept',
  remedy: 'calls may be remembered for longer than CALLSIGN_HISTORY_DAYS: restart the server',
})
