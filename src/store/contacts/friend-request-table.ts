/**
 * Friend requests: one row each, from the day they are made until nothing is kept of them, and for each direction
 * between two people the one that stands. Lists and endings follow from a request's state, so `put` is the only way to
 * change one.
 */

import {
  expired,
  type FriendRequest,
  forgottenAtMs,
  isOpenToReceiver,
  isOpenToSender,
  REQUEST_OPEN_MS,
} from '../../domain/contacts/friend-request.ts'
import type { UserId } from '../../domain/ids.ts'
import { PEOPLE_KEPT_MAX } from '../../limits.ts'
import { EXPIRY } from '../engine/expiries.ts'
import { idInKey, idsKey, userInKey } from '../engine/keys.ts'
import type { Change, View } from '../engine/store.ts'
import { WatchedCache } from '../engine/watched-cache.ts'
import type { StoreDeps } from '../tables/deps.ts'
import { type IdLists, LIST, type ListEntry, type ListRange } from '../tables/id-lists.ts'
import { Sealed } from '../tables/sealed.ts'
import { DIRECTIONS, FRIEND_REQUESTS, listsOf, type StoredRequest } from './contact-tables.ts'

/** A part of the requests that are open at `nowMs`. */
export interface OpenRange extends Omit<ListRange, 'sinceMs'> {
  readonly nowMs: number
}

export class FriendRequestTable {
  readonly #deps: StoreDeps
  readonly #lists: IdLists
  readonly #messages: Sealed
  readonly #asked: WatchedCache<UserId, boolean>

  constructor(deps: StoreDeps, lists: IdLists) {
    this.#deps = deps
    this.#lists = lists
    this.#messages = new Sealed(deps.secrets, deps.randomBytes, 'friend-request')
    this.#asked = new WatchedCache(deps.database, [{ name: 'id-lists' }], userInKey, PEOPLE_KEPT_MAX)
  }

  /** Also one that was closed lately. */
  read(view: View, requestId: bigint): FriendRequest | undefined {
    const row = view.get(FRIEND_REQUESTS, idsKey(requestId))
    return row && this.#opened(row)
  }

  /** The request from one to another that is open to its sender. */
  standing(view: View, senderId: UserId, receiverId: UserId, nowMs: number): FriendRequest | undefined {
    const requestId = view.get(DIRECTIONS, idsKey(senderId, receiverId))?.requestId
    const request = requestId === undefined ? undefined : this.read(view, requestId)
    return request !== undefined && isOpenToSender(request, nowMs) ? request : undefined
  }

  /** 0 when the sender reaches the receiver. */
  quietUntilMs(view: View, senderId: UserId, receiverId: UserId): number {
    return view.get(DIRECTIONS, idsKey(senderId, receiverId))?.quietUntilMs ?? 0
  }

  countIncoming(view: View, userId: UserId, nowMs: number): number {
    if (!this.#isAsked(view, userId)) return 0
    return this.#lists.count(view, userId, LIST.incoming, oldestOpenMs(nowMs))
  }

  countOutgoing(view: View, userId: UserId, nowMs: number): number {
    return this.#lists.count(view, userId, LIST.outgoing, oldestOpenMs(nowMs))
  }

  countUnshown(view: View, userId: UserId, nowMs: number): number {
    return this.#lists.count(view, userId, LIST.unshown, oldestOpenMs(nowMs))
  }

  /** Requests that the user knows to be open, newest first. */
  readOpen(
    view: View,
    userId: UserId,
    direction: 'incoming' | 'outgoing',
    { nowMs, ...range }: OpenRange,
  ): FriendRequest[] {
    const open = { ...range, sinceMs: oldestOpenMs(nowMs) }
    const entries = this.#lists.read(view, userId, LIST[direction], open)
    return entries.flatMap(({ id }) => this.read(view, id) ?? [])
  }

  /** Whether anything is among the user's incoming requests, also what is over by time alone: every badge asks. */
  #isAsked(view: View, userId: UserId): boolean {
    return this.#asked.of(userId, () => this.#lists.count(view, userId, LIST.incoming) > 0)
  }

  /** A new request, or the new state of one. */
  put(change: Change, request: FriendRequest, before?: FriendRequest): void {
    const key = idsKey(request.requestId)
    change.put(FRIEND_REQUESTS, key, this.#sealed(request))
    if (before === undefined) {
      this.#deps.expiries.add(change, EXPIRY.friendRequest, request.createdAtMs + REQUEST_OPEN_MS, key)
    } else this.#unlist(change, before)
    for (const [ownerId, list] of listsOf(request)) this.#lists.add(change, ownerId, list, entryOf(request))
    this.#putDirection(change, request)
  }

  /** Until then the sender does not reach the receiver. */
  quiet(change: Change, { senderId, receiverId }: FriendRequest, untilMs: number): void {
    const key = idsKey(senderId, receiverId)
    change.put(DIRECTIONS, key, { ...change.get(DIRECTIONS, key), quietUntilMs: untilMs })
  }

  /** Whatever two people once refused each other is forgotten. */
  forgetDirections(change: Change, one: UserId, other: UserId): void {
    change.remove(DIRECTIONS, idsKey(one, other))
    change.remove(DIRECTIONS, idsKey(other, one))
  }

  /** Removes every request of the user, and returns those that somebody had in their list. */
  eraseOf(change: Change, userId: UserId): FriendRequest[] {
    const lists = [LIST.incoming, LIST.outgoing, LIST.unshown, LIST.closedRequests]
    const entries = lists.flatMap(list => this.#lists.all(change, userId, list))
    const requests = entries.flatMap(({ id }) => this.read(change, id) ?? [])
    for (const request of requests) {
      this.#remove(change, request)
      this.forgetDirections(change, request.senderId, request.receiverId)
    }
    return requests.filter(request => isOpenToReceiver(request, change.nowMs))
  }

  /** The ending of a request that is due, as `Expire` says; `onExpired` hears of one that expires. */
  expire(
    change: Change,
    key: Uint8Array,
    onExpired: (change: Change, request: FriendRequest) => void,
  ): number | undefined {
    const { nowMs } = change
    const request = this.read(change, idInKey(key, 0))
    if (request === undefined) return undefined
    const over = expired(request, nowMs)
    if (over !== undefined) {
      this.put(change, over, request)
      onExpired(change, request)
    }
    const endsAtMs = forgottenAtMs(over ?? request)
    if (nowMs < endsAtMs) return endsAtMs
    this.#remove(change, over ?? request)
    this.#tidyDirection(change, request)
    return undefined
  }

  #sealed({ message, ...request }: FriendRequest): StoredRequest {
    if (message === undefined) return request
    return { ...request, message: this.#messages.seal(Buffer.from(message)) }
  }

  /** Without its message where another secret has sealed it. */
  #opened({ message, ...request }: StoredRequest): FriendRequest {
    const plain = message && this.#messages.open(message)
    return plain === undefined ? request : { ...request, message: Buffer.from(plain).toString('utf8') }
  }

  #putDirection(change: Change, { requestId, senderId, receiverId, closedAtMs }: FriendRequest): void {
    const key = idsKey(senderId, receiverId)
    const known = change.get(DIRECTIONS, key)
    if (closedAtMs === undefined) {
      if (known?.requestId !== requestId) change.put(DIRECTIONS, key, { ...known, requestId })
    } else if (known?.requestId === requestId) {
      const { requestId: _, ...rest } = known
      change.put(DIRECTIONS, key, rest)
    }
  }

  #unlist(change: Change, request: FriendRequest): void {
    for (const [ownerId, list] of listsOf(request))
      this.#lists.remove(change, ownerId, list, entryOf(request))
  }

  #remove(change: Change, request: FriendRequest): void {
    change.remove(FRIEND_REQUESTS, idsKey(request.requestId))
    this.#unlist(change, request)
  }

  /** A quiet period is over before the request that it came from is forgotten, so that one's end takes it along. */
  #tidyDirection(change: Change, { senderId, receiverId }: FriendRequest): void {
    const key = idsKey(senderId, receiverId)
    const known = change.get(DIRECTIONS, key)
    if (known?.requestId === undefined && change.nowMs >= (known?.quietUntilMs ?? 0))
      change.remove(DIRECTIONS, key)
  }
}

function entryOf({ createdAtMs, requestId }: FriendRequest): ListEntry {
  return { atMs: createdAtMs, id: requestId }
}

/** Requests made before are over, whether or not the sweep has come to them. */
function oldestOpenMs(nowMs: number): number {
  return nowMs - REQUEST_OPEN_MS + 1
}
