/**
 * How many calls each user remembers and has missed, in memory, since every badge and every call asks for it: counted from
 * their rows when it is first asked, and kept up by the writer from then on. A row that is written without a word of what it
 * changes has the user's rows counted anew.
 */

import type { UserId } from '../../domain/ids.ts'
import { assert } from '../../errors.ts'
import { BoundedCache } from '../engine/bounded-cache.ts'
import { idsKey, keyBehind, rangeOf, userInKey } from '../engine/keys.ts'
import { isChange, type ReadStore, type Row, type View } from '../engine/store.ts'
import { CALL_HISTORY, HISTORY_MARKS } from './call-tables.ts'
import { type CallHistoryPlace, isSeen, memoryKey, placeInKey, readPlace } from './history-rows.ts'

export interface Figures {
  /** All rows. */
  readonly rows: number
  /** Those of calls that the user missed and has not looked at. */
  readonly missed: number
  /** None is newer; undefined without rows. */
  readonly newest: CallHistoryPlace | undefined
}

/** Of a user with rows that are written and not durable yet. */
interface Unsettled {
  writes: number
  /** As the last change leaves them; undefined where they are to be counted. */
  figures: Figures | undefined
}

export class HistoryFigures {
  readonly #durable = new BoundedCache<UserId, Figures>(USERS_KEPT_MAX)
  readonly #unsettled = new Map<UserId, Unsettled>()

  constructor(store: Pick<ReadStore, 'watch'>) {
    store.watch(CALL_HISTORY, {
      onWriting: key => this.#onWriting(userInKey(key)),
      onTakenBack: key => this.#onTakenBack(userInKey(key)),
      onSettled: (key, isDurable) => this.#onSettled(userInKey(key), isDurable),
      onReplaced: key => this.#durable.delete(userInKey(key)),
    })
  }

  /** As this view, or this change, sees them. */
  of(view: View, userId: UserId): Figures {
    const known = this.known(view, userId)
    if (known !== undefined) return known
    const figures = counted(view, userId)
    const unsettled = this.#unsettled.get(userId)
    if (unsettled === undefined) this.#durable.set(userId, figures)
    else if (isChange(view)) unsettled.figures = figures
    return figures
  }

  /** The same, where they need not be counted. */
  known(view: View, userId: UserId): Figures | undefined {
    const unsettled = this.#unsettled.get(userId)
    if (unsettled === undefined) return this.#durable.get(userId)
    return isChange(view) ? unsettled.figures : undefined
  }

  /** What they are after the latest writes of a change to the user's rows; it has made some. */
  keep(userId: UserId, figures: Figures): void {
    const unsettled = this.#unsettled.get(userId)
    assert(unsettled !== undefined, 'what changes figures is a row that is written')
    unsettled.figures = figures
  }

  #onWriting(userId: UserId): void {
    const unsettled = this.#unsettled.get(userId)
    if (unsettled === undefined) {
      this.#unsettled.set(userId, { writes: 1, figures: undefined })
    } else {
      unsettled.writes += 1
      unsettled.figures = undefined
    }
  }

  #onTakenBack(userId: UserId): void {
    const unsettled = this.#unsettled.get(userId)
    if (unsettled !== undefined) unsettled.figures = undefined
  }

  #onSettled(userId: UserId, isDurable: boolean): void {
    const unsettled = this.#unsettled.get(userId)
    assert(unsettled !== undefined, 'what is settled was written')
    if (!isDurable) unsettled.figures = undefined
    unsettled.writes -= 1
    if (unsettled.writes > 0) return
    this.#unsettled.delete(userId)
    if (unsettled.figures === undefined) this.#durable.delete(userId)
    else this.#durable.set(userId, unsettled.figures)
  }
}

/** The rows that were written since the user last looked, newest first, and older ones where their mark is gone. */
export function rowsSinceMark(view: View, userId: UserId): Iterable<Row<Uint8Array>> {
  const prefix = idsKey(userId)
  const mark = view.get(HISTORY_MARKS, prefix)
  const end = mark === undefined ? prefix : memoryKey(userId, mark)
  return view.range(CALL_HISTORY, { start: keyBehind(prefix), end, reverse: true })
}

function counted(view: View, userId: UserId): Figures {
  const rows = view.count(CALL_HISTORY, rangeOf(idsKey(userId)))
  if (rows === 0) return NO_ROWS
  let missed = 0
  let newest: Uint8Array | undefined
  for (const { key, value } of rowsSinceMark(view, userId)) {
    newest ??= placeInKey(key)
    if (!isSeen(value)) missed += 1
  }
  newest ??= view.get(HISTORY_MARKS, idsKey(userId))
  return { rows, missed, newest: newest && readPlace(newest) }
}

export const NO_ROWS: Figures = { rows: 0, missed: 0, newest: undefined }
/** A few hundred octets each. */
const USERS_KEPT_MAX = 65_536
