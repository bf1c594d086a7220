/** Tables of calls, live and ended, and of what their people remember of them. */

import { OF_A_USER } from '../accounts/account-tables.ts'
import { ID, TIME, untold } from '../engine/key-parts.ts'
import { bytes, type Form, oneOf, sealed, typed } from '../engine/row-form.ts'
import { bytesTable, rowTable } from '../engine/table.ts'

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
  relations: [
    {
      in: 'calls-ended',
      under: key => key.subarray(TIME.bytes),
      where: (row: Uint8Array, key) => key.subarray(0, TIME.bytes).equals(row.subarray(0, TIME.bytes)),
      what: () => 'its call, ended then',
    },
  ],
  remedy: 'the operator’s list misses a call for a day; there is nothing to do',
})

/** See `history-rows.ts`. */
const MEMORY_BYTES = 13
const REMEMBERED_BYTES_MIN = 7
const BY_CALL = { user: ID, created: untold(TIME.bytes), call: untold(ID.bytes) }

/** Time and call in a key of `call-history`. */
function callOfMemory(key: Uint8Array): Uint8Array {
  return key.subarray(ID.bytes)
}

export const CALL_HISTORY = bytesTable('call-history', BY_CALL, bytes(MEMORY_BYTES), {
  holds: 'how a call ended for a user',
  relations: [OF_A_USER, { in: 'call-history-calls', under: callOfMemory, what: () => 'the call' }],
  remedy: 'have the user delete the call, or all calls, from the history',
})

export const REMEMBERED_CALLS = bytesTable(
  'call-history-calls',
  { created: TIME, call: ID },
  typed<Uint8Array>({
    fits: row => row instanceof Uint8Array && row.length % ID.bytes === REMEMBERED_BYTES_MIN,
  }),
  {
    holds: 'what the people of a call share in their histories',
    *disagreements(key, row, rows) {
      for (let at = REMEMBERED_BYTES_MIN; at < row.length; at += ID.bytes) {
        const user = row.subarray(at, at + ID.bytes)
        if (rows.has('call-history', Buffer.concat([user, key]))) return
      }
      yield 'call-history has none of its people'
    },
    remedy: 'it stays until CALLSIGN_HISTORY_DAYS are over; there is nothing to do',
  },
)

export const HISTORY_MARKS = bytesTable('call-history-marks', { user: ID }, bytes(TIME.bytes + ID.bytes), {
  holds: 'time and id of the newest call when the user last looked at the missed ones',
  relations: [
    { in: 'call-history', under: (key, call) => Buffer.concat([key, call]), what: () => 'that call' },
  ],
  remedy: 'the badge may be wrong: have the user delete all calls from the history',
})
