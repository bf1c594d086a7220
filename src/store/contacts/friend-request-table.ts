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
import type { RequestId, UserId } from '../../domain/ids.ts'
import type { Secrets } from '../../domain/secrets.ts'
import { PEOPLE_KEPT_MAX } from '../../limits.ts'
import type { Database, Table } from '../engine/database.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { type IdLists, LIST, type List, type ListEntry, type ListRange } from '../engine/id-lists.ts'
import { idInKey, idsKey, userInKey } from '../engine/keys.ts'
import { Sealed } from '../engine/sealed.ts'
import { WatchedCache } from '../engine/watched-cache.ts'

interface Row extends Omit<FriendRequest, 'message'> {
  /** Sealed; the text itself in older rows. */
  readonly message?: Uint8Array | string
}

/** What one user has with another in one direction. */
interface Direction {
  /** The newest request that is open to its sender. */
  readonly requestId?: RequestId
  /** Until then requests do not reach the receiver. */
  readonly quietUntilMs?: number
}

export interface FriendRequestParts {
  readonly database: Database
  readonly expiries: Expiries
  readonly lists: IdLists
  readonly secrets: Pick<Secrets, 'seal'>
  readonly randomBytes: (length: number) => Uint8Array
  /** Told in the transaction in which a request expires, as it was before. */
  readonly onExpired: (request: FriendRequest, nowMs: number) => void
}

export class FriendRequestTable {
  readonly #parts: FriendRequestParts
  readonly #requests: Table<Row>
  readonly #messages: Sealed
  readonly #directions: Table<Direction>
  readonly #asked: WatchedCache<UserId, boolean>

  constructor(parts: FriendRequestParts) {
    this.#parts = parts
    this.#requests = parts.database.table('friend-requests')
    this.#messages = new Sealed(parts.secrets, parts.randomBytes, 'friend-request')
    this.#directions = parts.database.table('friend-request-directions')
    this.#asked = new WatchedCache(parts.database, [{ name: 'id-lists' }], userInKey, PEOPLE_KEPT_MAX)
    parts.expiries.define(EXPIRY.friendRequest, (key, nowMs) => this.#expire(key, nowMs))
  }

  /** Also one that was closed lately. */
  read(requestId: bigint): FriendRequest | undefined {
    const row = this.#requests.get(idsKey(requestId))
    return row && this.#opened(row)
  }

  /** The request from one to another that is open to its sender. */
  standing(senderId: UserId, receiverId: UserId, nowMs: number): FriendRequest | undefined {
    const requestId = this.#directions.get(idsKey(senderId, receiverId))?.requestId
    const request = requestId === undefined ? undefined : this.read(requestId)
    return request !== undefined && isOpenToSender(request, nowMs) ? request : undefined
  }

  /** 0 when the sender reaches the receiver. */
  quietUntilMs(senderId: UserId, receiverId: UserId): number {
    return this.#directions.get(idsKey(senderId, receiverId))?.quietUntilMs ?? 0
  }

  countIncoming(userId: UserId, nowMs: number): number {
    if (!this.#isAsked(userId)) return 0
    return this.#parts.lists.count(this.#parts.database.ambient, userId, LIST.incoming, oldestOpenMs(nowMs))
  }

  countOutgoing(userId: UserId, nowMs: number): number {
    return this.#parts.lists.count(this.#parts.database.ambient, userId, LIST.outgoing, oldestOpenMs(nowMs))
  }

  countUnshown(userId: UserId, nowMs: number): number {
    return this.#parts.lists.count(this.#parts.database.ambient, userId, LIST.unshown, oldestOpenMs(nowMs))
  }

  /** Requests that the user knows to be open, newest first. */
  readOpen(
    userId: UserId,
    direction: 'incoming' | 'outgoing',
    range: Omit<ListRange, 'sinceMs'>,
    nowMs: number,
  ): FriendRequest[] {
    const entries = this.#parts.lists.read(this.#parts.database.ambient, userId, LIST[direction], {
      ...range,
      sinceMs: oldestOpenMs(nowMs),
    })
    return entries.flatMap(({ id }) => this.read(id) ?? [])
  }

  /** Whether anything is among the user's incoming requests, also what is over by time alone: every badge asks. */
  #isAsked(userId: UserId): boolean {
    return this.#asked.of(
      userId,
      () => this.#parts.lists.count(this.#parts.database.ambient, userId, LIST.incoming) > 0,
    )
  }

  /** In a transaction: a new request, or the new state of one. */
  put(request: FriendRequest, before?: FriendRequest): void {
    const key = idsKey(request.requestId)
    this.#requests.put(key, this.#sealed(request))
    if (before === undefined) {
      this.#parts.expiries.add(EXPIRY.friendRequest, request.createdAtMs + REQUEST_OPEN_MS, key)
    } else this.#unlist(before)
    for (const [ownerId, list] of listsOf(request))
      this.#parts.lists.add(this.#parts.database.ambient, ownerId, list, entryOf(request))
    this.#putDirection(request)
  }

  /** In a transaction: until then the sender does not reach the receiver. */
  quiet({ senderId, receiverId }: FriendRequest, untilMs: number): void {
    const key = idsKey(senderId, receiverId)
    this.#directions.put(key, { ...this.#directions.get(key), quietUntilMs: untilMs })
  }

  /** In a transaction: whatever two people once refused each other is forgotten. */
  forgetDirections(one: UserId, other: UserId): void {
    this.#directions.remove(idsKey(one, other))
    this.#directions.remove(idsKey(other, one))
  }

  /** In a transaction: removes every request of the user, and returns those that somebody had in their list. */
  eraseOf(userId: UserId, nowMs: number): FriendRequest[] {
    const lists = [LIST.incoming, LIST.outgoing, LIST.unshown, LIST.closedRequests]
    const entries = lists.flatMap(list => this.#parts.lists.all(this.#parts.database.ambient, userId, list))
    const requests = entries.flatMap(({ id }) => this.read(id) ?? [])
    for (const request of requests) {
      this.#remove(request)
      this.forgetDirections(request.senderId, request.receiverId)
    }
    return requests.filter(request => isOpenToReceiver(request, nowMs))
  }

  #sealed({ message, ...request }: FriendRequest): Row {
    if (message === undefined) return request
    return { ...request, message: this.#messages.seal(Buffer.from(message)) }
  }

  /** Without its message where another secret has sealed it. */
  #opened({ message, ...request }: Row): FriendRequest {
    const plain = message instanceof Uint8Array ? this.#messages.open(message) : message
    return plain === undefined ? request : { ...request, message: Buffer.from(plain).toString('utf8') }
  }

  #putDirection({ requestId, senderId, receiverId, closedAtMs }: FriendRequest): void {
    const key = idsKey(senderId, receiverId)
    const known = this.#directions.get(key)
    if (closedAtMs === undefined) {
      if (known?.requestId !== requestId) this.#directions.put(key, { ...known, requestId })
    } else if (known?.requestId === requestId) {
      const { requestId: _, ...rest } = known
      this.#directions.put(key, rest)
    }
  }

  #unlist(request: FriendRequest): void {
    for (const [ownerId, list] of listsOf(request))
      this.#parts.lists.remove(this.#parts.database.ambient, ownerId, list, entryOf(request))
  }

  #expire(key: Uint8Array, nowMs: number): number | undefined {
    const request = this.read(idInKey(key, 0))
    if (request === undefined) return undefined
    const over = expired(request, nowMs)
    if (over !== undefined) {
      this.put(over, request)
      this.#parts.onExpired(request, nowMs)
    }
    const endsAtMs = forgottenAtMs(over ?? request)
    if (nowMs < endsAtMs) return endsAtMs
    this.#remove(over ?? request)
    this.#tidyDirection(request, nowMs)
    return undefined
  }

  #remove(request: FriendRequest): void {
    this.#requests.remove(idsKey(request.requestId))
    this.#unlist(request)
  }

  /** A quiet period is over before the request that it came from is forgotten, so that one's end takes it along. */
  #tidyDirection({ senderId, receiverId }: FriendRequest, nowMs: number): void {
    const key = idsKey(senderId, receiverId)
    const known = this.#directions.get(key)
    if (known?.requestId === undefined && nowMs >= (known?.quietUntilMs ?? 0)) this.#directions.remove(key)
  }
}

/** Whose lists a request is in. Both keep it to its end, so that what is left of a user is found. */
export function listsOf(request: Omit<FriendRequest, 'message'>): readonly (readonly [UserId, List])[] {
  const { senderId, receiverId, state, isShown, isDelivered, closedAtMs } = request
  const senders = closedAtMs !== undefined ? LIST.closedRequests : isShown ? LIST.outgoing : LIST.unshown
  const receivers = state === 'pending' && isDelivered ? LIST.incoming : LIST.closedRequests
  return [
    [senderId, senders],
    [receiverId, receivers],
  ]
}

function entryOf({ createdAtMs, requestId }: FriendRequest): ListEntry {
  return { atMs: createdAtMs, id: requestId }
}

/** Requests made before are over, whether or not the sweep has come to them. */
function oldestOpenMs(nowMs: number): number {
  return nowMs - REQUEST_OPEN_MS + 1
}
