/** Calls, live and ended, and what their people remember of them. */

import {
  CALL_HISTORY_SHAPES,
  FIGURES_SHAPES,
  type Figures,
  placeInKey,
  type StoredHistoryRow,
} from '../../store/calls/call-history-store.ts'
import { EXPIRY } from '../../store/engine/expiries.ts'
import { idsKey, userInKey } from '../../store/engine/keys.ts'
import { bytes, count, flag, id, oneOf, record, sealed } from './form.ts'
import type { StoredRows } from './stored-rows.ts'
import { UNREADABLE } from './stored-rows.ts'
import { byIds, byOwner, type TableCheck, tableCheck } from './table-check.ts'

export const CALL_TABLES: Readonly<Record<string, TableCheck>> = {
  calls: tableCheck<Uint8Array>({
    key: [8],
    keyAs: byIds,
    form: sealed,
    *disagreements(key, _, rows) {
      if (rows.has('calls-ended', key)) yield 'the call is live, and ended in calls-ended'
    },
    remedy: 'a start may refuse it: restore a backup',
  }),
  'calls-ended': tableCheck<unknown>({
    key: [8],
    keyAs: byIds,
    form: sealed,
    ending: { kind: EXPIRY.endedCall },
    remedy: 'late requests about the call are refused for a day; there is nothing to do',
  }),
  'call-history': tableCheck<StoredHistoryRow>({
    shapes: CALL_HISTORY_SHAPES,
    key: [22],
    keyAs: byOwner,
    form: record(
      {
        callId: id,
        direction: oneOf('outgoing', 'incoming'),
        status: oneOf('active', 'ended', 'missed', 'declined', 'cancelled', 'failed'),
        isVideo: flag,
        isGroup: flag,
        createdAtMs: count,
        seen: flag,
        people: bytes(),
      },
      { startedAtMs: count, endedAtMs: count, talkedMs: count },
    ),
    *disagreements(key, { callId, createdAtMs, status }, rows) {
      const place = placeInKey(key)
      if (place.id !== callId || place.atMs !== createdAtMs) yield `it says that it is of call ${callId}`
      if (!rows.has('call-history-figures', idsKey(userInKey(key)))) {
        yield 'call-history-figures has no figures of its user'
      }
      if (status === 'active' && !rows.has('calls', idsKey(callId))) {
        yield `call ${callId} goes on by it, and is not in calls`
      }
    },
    remedy: 'have the user delete the call, or all calls, from the history',
  }),
  'call-history-figures': tableCheck<Figures>({
    shapes: FIGURES_SHAPES,
    key: [8],
    keyAs: byIds,
    form: record({ count, missed: count }),
    ending: { kind: EXPIRY.callHistory },
    *disagreements(key, { count, missed }, rows) {
      if (!rows.has('users', key)) yield 'its user is not in users'
      const found = figuresOf(rows, key)
      if (found === undefined) return
      if (found.count !== count) yield `it counts ${count} calls, and call-history has ${found.count}`
      if (found.missed !== missed)
        yield `it counts ${missed} missed calls, and call-history has ${found.missed}`
    },
    remedy: 'the badge is wrong: have the user delete all calls from the history',
  }),
}

/** Undefined where a row is unreadable, which is said of that one. */
function figuresOf(rows: StoredRows, user: Uint8Array): Figures | undefined {
  let [count, missed] = [0, 0]
  for (const { value } of rows.rows('call-history', user)) {
    if (value === UNREADABLE) return undefined
    count++
    if (!(value as StoredHistoryRow).seen) missed++
  }
  return { count, missed }
}
