/** Tables of calls, live and ended, and of what their people remember of them. */

import type { CallId } from '../../domain/ids.ts'
import { EXPIRY } from '../engine/expiries.ts'
import { ID, TIME, untold } from '../engine/key-parts.ts'
import { idsKey, userInKey } from '../engine/keys.ts'
import { bytes, count, flag, id, maybe, object, oneOf, type RowOf, sealed } from '../engine/row-form.ts'
import { OF_A_USER, rowTable } from '../engine/table.ts'

export const CALLS = rowTable({
  name: 'calls',
  subject: 'calls',
  holds: 'a live call, sealed',
  key: { call: ID },
  row: sealed,
  *disagreements(key, _, rows) {
    if (rows.has('calls-ended', key)) yield 'the call is live, and ended in calls-ended'
  },
  remedy: 'a start may refuse it: restore a backup',
})

export const CALLS_ENDED = rowTable({
  name: 'calls-ended',
  subject: 'calls',
  holds: 'a call that has ended, for a day, sealed',
  key: { call: ID },
  row: sealed,
  ending: { kind: EXPIRY.endedCall },
  remedy: 'late requests about the call are refused for a day; there is nothing to do',
})

/** As it is stored: its people packed, once for all rows of a call. */
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

export const CALL_HISTORY = rowTable({
  name: 'call-history',
  subject: 'calls',
  holds: 'what a user remembers of a call',
  key: { user: ID, created: untold(TIME.bytes), call: untold(ID.bytes) },
  row: HISTORY_ROW,
  shapes: [HISTORY_ROW.shape()],
  relations: [
    {
      in: 'call-history-figures',
      under: key => idsKey(userInKey(key)),
      otherwise: 'call-history-figures has no figures of its user',
    },
    {
      in: 'calls',
      under: (_, { callId, status }) => (status === 'active' ? idsKey(callId) : undefined),
      otherwise: (_, { callId }) => `call ${callId} goes on by it, and is not in calls`,
    },
  ],
  *disagreements(key, { callId, createdAtMs }) {
    const place = placeInKey(key)
    if (place.id !== callId || place.atMs !== createdAtMs) yield `it says that it is of call ${callId}`
  },
  remedy: 'have the user delete the call, or all calls, from the history',
})

/** The counts of a user's rows. */
export type Figures = RowOf<typeof FIGURES_ROW>
const FIGURES_ROW = object({ count, missed: count })

export const FIGURES = rowTable({
  name: 'call-history-figures',
  subject: 'calls',
  holds: 'how many calls the user remembers, and has missed',
  key: { user: ID },
  row: FIGURES_ROW,
  shapes: [FIGURES_ROW.shape()],
  ending: { kind: EXPIRY.callHistory },
  relations: [OF_A_USER],
  remedy: 'the badge is wrong: have the user delete all calls from the history',
})

export const CALL_TABLES = [CALLS, CALLS_ENDED, CALL_HISTORY, FIGURES]

/** A place in the list. Its row may be gone by now. */
export interface CallHistoryPlace {
  /** When the call was created, milliseconds since 1970. */
  readonly atMs: number
  readonly id: bigint
}

/** The call that a key of `call-history` is of. */
export function placeInKey(key: Uint8Array): CallHistoryPlace {
  const bytes = Buffer.from(key.buffer, key.byteOffset, key.length)
  return { atMs: bytes.readUIntBE(ID.bytes, TIME.bytes), id: bytes.readBigUInt64BE(ID.bytes + TIME.bytes) }
}
