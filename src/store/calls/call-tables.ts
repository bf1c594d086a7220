/** Tables of calls, live and ended, and of what their people remember of them. */

import type { CallId } from '../../domain/ids.ts'
import { OF_A_USER } from '../accounts/account-tables.ts'
import { EXPIRY, endingKey } from '../engine/expiries.ts'
import { ID, TIME, untold } from '../engine/key-parts.ts'
import { idsKey, timeBytes, userInKey } from '../engine/keys.ts'
import { bytes, count, flag, id, maybe, object, oneOf, type RowOf, sealed } from '../engine/row-form.ts'
import { rowTable, textKeyTable } from '../engine/table.ts'

export const CALLS = rowTable('calls', { call: ID }, sealed, {
  holds: 'a live call, sealed',
  *disagreements(key, _, rows) {
    if (rows.has('calls-ended', key)) yield 'the call is live, and ended in calls-ended'
  },
  remedy: 'a start may refuse it: restore a backup',
})

export const CALLS_ENDED = rowTable('calls-ended', { call: ID }, sealed, {
  holds: 'a call that has ended, for a day, sealed',
  ending: { kind: EXPIRY.endedCall },
  remedy: 'late requests about the call are refused for a day; there is nothing to do',
})

function callOf(key: Buffer): Buffer {
  return key.subarray(TIME.bytes)
}

/** An ended call, for late and repeated requests. */
export const ENDED_CALL_KEPT_MS = 86_400_000

export const CALLS_BY_END = rowTable('calls-by-end', { ended: TIME, call: ID }, oneOf(0), {
  holds: 'nothing: its key says when a call ended',
  relations: [
    { in: 'calls-ended', under: callOf, what: () => 'its call' },
    {
      in: 'expiries',
      under: key =>
        endingKey(EXPIRY.endedCall, key.readUIntBE(0, TIME.bytes) + ENDED_CALL_KEPT_MS, callOf(key)),
      what: () => 'the call’s ending a day later',
    },
  ],
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
