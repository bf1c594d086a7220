/** Circles: their members, and whether two users have one in common. */

import { type CircleId, newId, type UserId } from '../../domain/ids.ts'
import { CIRCLE_MEMBERS_MAX, CIRCLES_MAX } from '../../domain/operators/circle.ts'
import { SignalError } from '../../errors.ts'
import { idInKey, idsKey, rangeOf, textKey, userInKey } from '../engine/keys.ts'
import type { Change, ReadStore, View } from '../engine/store.ts'
import { WatchedCache } from '../engine/watched-cache.ts'
import type { DeferredTasks } from '../tables/deferred-tasks.ts'
import type { ListEntry, ListRange } from '../tables/id-lists.ts'
import { CIRCLE_MEMBERS, CIRCLES, CIRCLES_BY_NAME, CIRCLES_OF_USER, type Circle } from './circle-tables.ts'

/** Which users have a circle in common: each call to a user who is no contact asks for it. */
export class CommonCircles {
  readonly #circlesOf: WatchedCache<UserId, ReadonlySet<CircleId>>

  constructor(database: Pick<ReadStore, 'watch'>) {
    this.#circlesOf = new WatchedCache(database, [CIRCLES_OF_USER], userInKey, USERS_KEPT_MAX)
  }

  /** Whether a circle has both as members. Reads the circles of each, never a circle's members. */
  haveInCommon(view: View, one: UserId, other: UserId): boolean {
    const circles = this.#idsOf(view, one)
    if (circles.size === 0) return false
    const others = this.#idsOf(view, other)
    for (const circleId of circles)
      if (others.has(circleId) && view.get(CIRCLES, idsKey(circleId))?.isGone === false) return true
    return false
  }

  #idsOf(view: View, userId: UserId): ReadonlySet<CircleId> {
    return this.#circlesOf.of(userId, () => {
      const ids = circleIdsOf(view, userId)
      return ids.length === 0 ? NO_CIRCLES : new Set(ids)
    })
  }
}

interface Deps {
  readonly deferredTasks: Pick<DeferredTasks, 'define' | 'leave'>
  readonly randomBytes: (length: number) => Uint8Array
}

export class CircleStore {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
    deps.deferredTasks.define('circle_gone', (change, { circleId }) => this.#onGone(change, circleId))
  }

  /** The backend's ids for the circles of a user. */
  namesOf(view: View, userId: UserId): string[] {
    return liveIn(view, circleIdsOf(view, userId)).map(({ name }) => name)
  }

  /** Members with since when they are, by user id; none of a circle that there is not. */
  readMembers(view: View, name: string, { limit, after }: ListRange): ListEntry[] {
    const circleId = view.get(CIRCLES_BY_NAME, textKey(name))
    if (circleId === undefined) return []
    const { start, end } = rangeOf(idsKey(circleId))
    const behind = after && Buffer.concat([idsKey(circleId, after.id), Uint8Array.of(0)])
    const rows = view.range(CIRCLE_MEMBERS, { start: behind ?? start, end, limit })
    return [...rows].map(({ key, value }) => ({ atMs: value, id: idInKey(key, 1) }))
  }

  /** False for a user who is a member already. Throws `CIRCLE_FULL`. */
  add(change: Change, name: string, userId: UserId): boolean {
    const known = change.get(CIRCLES_BY_NAME, textKey(name))
    if (known !== undefined && change.get(CIRCLE_MEMBERS, idsKey(known, userId)) !== undefined) return false
    const circle = known && change.get(CIRCLES, idsKey(known))
    if ((circle?.members ?? 0) >= CIRCLE_MEMBERS_MAX)
      throw new SignalError('CIRCLE_FULL', `no circle has more than ${CIRCLE_MEMBERS_MAX} members`)
    if (liveIn(change, circleIdsOf(change, userId)).length >= CIRCLES_MAX)
      throw new SignalError('CIRCLE_FULL', `no user is in more than ${CIRCLES_MAX} circles`)
    const circleId = known ?? (newId(this.#deps.randomBytes) as CircleId)
    if (known === undefined) change.put(CIRCLES_BY_NAME, textKey(name), circleId)
    change.put(CIRCLES, idsKey(circleId), { name, members: (circle?.members ?? 0) + 1, isGone: false })
    change.put(CIRCLE_MEMBERS, idsKey(circleId, userId), change.nowMs)
    change.put(CIRCLES_OF_USER, idsKey(userId, circleId), 0)
    return true
  }

  /** False for a user who is no member. */
  remove(change: Change, name: string, userId: UserId): boolean {
    const circleId = change.get(CIRCLES_BY_NAME, textKey(name))
    if (circleId === undefined) return false
    if (change.get(CIRCLE_MEMBERS, idsKey(circleId, userId)) === undefined) return false
    this.#take(change, circleId, [userId])
    return true
  }

  /** The circle counts no more at once; its members go later, some at a time. False where there is none. */
  end(change: Change, name: string): boolean {
    const circleId = change.get(CIRCLES_BY_NAME, textKey(name))
    const circle = circleId && change.get(CIRCLES, idsKey(circleId))
    if (circleId === undefined || circle === undefined) return false
    change.remove(CIRCLES_BY_NAME, textKey(name))
    change.put(CIRCLES, idsKey(circleId), { ...circle, isGone: true })
    this.#deps.deferredTasks.leave(change, { kind: 'circle_gone', circleId })
    return true
  }

  /** The user is a member of nothing any more. */
  eraseOf(change: Change, userId: UserId): void {
    for (const circleId of circleIdsOf(change, userId)) this.#take(change, circleId, [userId])
  }

  #onGone(change: Change, circleId: CircleId): void {
    const range = { ...rangeOf(idsKey(circleId)), limit: TAKEN_AT_ONCE }
    const members = [...change.keys(CIRCLE_MEMBERS, range)].map(key => idInKey(key, 1) as UserId)
    this.#take(change, circleId, members)
    if (members.length === TAKEN_AT_ONCE)
      this.#deps.deferredTasks.leave(change, { kind: 'circle_gone', circleId })
  }

  /** The circle goes with the last of its members. */
  #take(change: Change, circleId: CircleId, userIds: readonly UserId[]): void {
    for (const userId of userIds) {
      change.remove(CIRCLE_MEMBERS, idsKey(circleId, userId))
      change.remove(CIRCLES_OF_USER, idsKey(userId, circleId))
    }
    const circle = change.get(CIRCLES, idsKey(circleId))
    if (circle === undefined) return
    const members = circle.members - userIds.length
    if (members > 0) return change.put(CIRCLES, idsKey(circleId), { ...circle, members })
    change.remove(CIRCLES, idsKey(circleId))
    if (!circle.isGone) change.remove(CIRCLES_BY_NAME, textKey(circle.name))
  }
}

function circleIdsOf(view: View, userId: UserId): CircleId[] {
  return [...view.keys(CIRCLES_OF_USER, rangeOf(idsKey(userId)))].map(key => idInKey(key, 1) as CircleId)
}

function liveIn(view: View, circleIds: Iterable<CircleId>): Circle[] {
  return [...circleIds].flatMap(circleId => {
    const circle = view.get(CIRCLES, idsKey(circleId))
    return circle === undefined || circle.isGone ? [] : circle
  })
}

const NO_CIRCLES: ReadonlySet<CircleId> = new Set()
const USERS_KEPT_MAX = 16_384
/** Members who go in one change. */
const TAKEN_AT_ONCE = 200
