/**
 * Contacts, blocks and friend requests (contract 3): reads what there is between two people, has the rules decide, and
 * writes what they decided, telling both sides as much as each may know. Everything that changes something is to be
 * called in a transaction, one for each command.
 */

import { takesCallsFromStrangers, type User } from '../../domain/accounts/account.ts'
import type { RequestGoneErrand } from '../../domain/contacts/errand.ts'
import {
  BLOCKS_MAX,
  type ClosingDecision,
  closed,
  decideAccept,
  decideBlock,
  decideCancel,
  decideDecline,
  decideRequest,
  declined,
  type FriendRequest,
  isOpenToReceiver,
  type KeysShown,
  keysShownToSender,
  type Link,
  type Pair,
  PRESENT_KEYS,
  QUIET_MS,
  type Relation,
  type RequestDecision,
  type RequestRoute,
  relationOf,
} from '../../domain/contacts/friend-request.ts'
import type { RequestId, UserId } from '../../domain/ids.ts'
import type { Badge, NoticeBody } from '../../domain/messages/notice.ts'
import type { Secrets } from '../../domain/secrets.ts'
import type { Database, Table } from '../engine/database.ts'
import type { Errands } from '../engine/errands.ts'
import type { Expiries } from '../engine/expiries.ts'
import { type IdLists, LIST, type ListEntry, type ListRange } from '../engine/id-lists.ts'
import { idsKey } from '../engine/keys.ts'
import { FriendRequestTable } from './friend-request-table.ts'

export interface ContactStoreParts {
  readonly database: Database
  readonly expiries: Expiries
  readonly errands: Pick<Errands, 'define' | 'leave'>
  readonly lists: IdLists
  readonly secrets: Pick<Secrets, 'seal'>
  readonly randomBytes: (length: number) => Uint8Array
  readonly displayNameOf: (userId: UserId) => string
  /** Tells every device of a user, in the transaction that it is called in. */
  readonly tell: (userId: UserId, body: NoticeBody, nowMs: number) => void
  /** The other part of the badge. */
  readonly missedCallsOf: (userId: UserId) => number
}

/** A request that somebody makes. */
export interface RequestCommand {
  readonly requestId: RequestId
  readonly senderId: UserId
  readonly receiverId: UserId
  readonly route: RequestRoute
  readonly message: string | undefined
}

type DecidedRequest = Exclude<RequestDecision, { readonly kind: 'refused' }>

export class ContactStore {
  readonly #parts: ContactStoreParts
  readonly #lists: IdLists
  readonly #requests: FriendRequestTable
  readonly #links: Table<Link>
  /** By blocker and blocked: since when, milliseconds since 1970. */
  readonly #blocks: Table<number>

  constructor(parts: ContactStoreParts) {
    const { database, errands, lists } = parts
    this.#parts = parts
    this.#lists = lists
    this.#links = database.table('contacts', LINK_SHAPES)
    this.#blocks = database.table('blocks')
    const onExpired = (request: FriendRequest, nowMs: number) => this.#tellGone(request, nowMs)
    this.#requests = new FriendRequestTable({ ...parts, onExpired })
    errands.define('request_made', ({ requestId }, nowMs) => this.#onMade(requestId, nowMs))
    errands.define('request_gone', (request, nowMs) => this.#onGone(request, nowMs))
  }

  isContact(one: UserId, other: UserId): boolean {
    return this.linkOf(one, other) !== undefined
  }

  /** What makes the other a contact of the one; undefined when they are none. */
  linkOf(one: UserId, other: UserId): Link | undefined {
    return this.#links.get(idsKey(one, other))
  }

  hasBlocked(blocker: UserId, other: UserId): boolean {
    return this.blockedAtMs(blocker, other) !== undefined
  }

  /** Since when the blocker has blocked the other, if they have. */
  blockedAtMs(blocker: UserId, other: UserId): number | undefined {
    return this.#blocks.get(idsKey(blocker, other))
  }

  /** What the viewer may know that they have with the other. */
  relationOf(viewerId: UserId, otherId: UserId, nowMs: number): Relation {
    if (viewerId === otherId) return 'self'
    return relationOf(this.#pairOf(viewerId, otherId, nowMs), nowMs)
  }

  /**
   * Which of the other's keys one may read, if any: contacts, and the receiver of an open request by token, those of now;
   * its sender those of when it was made. Of an owner who takes calls from strangers everybody may read those of now, and
   * those whom the owner has blocked the ones of when the block began: a call has to be sealed for something.
   */
  keysShown(askerId: UserId, ownerId: UserId, nowMs: number, owner?: User): KeysShown | undefined {
    if (askerId === ownerId || this.isContact(askerId, ownerId)) return PRESENT_KEYS
    const received = this.#requests.standing(ownerId, askerId, nowMs)
    if (received?.isByToken && isOpenToReceiver(received, nowMs)) return PRESENT_KEYS
    const blockedAtMs = this.blockedAtMs(ownerId, askerId)
    if (owner !== undefined && takesCallsFromStrangers(owner)) {
      return blockedAtMs === undefined ? PRESENT_KEYS : { kind: 'as-of', atMs: blockedAtMs }
    }
    const sent = this.#requests.standing(askerId, ownerId, nowMs)
    return sent?.isByToken ? keysShownToSender(sent, blockedAtMs) : undefined
  }

  badgeOf(userId: UserId, nowMs: number): Badge {
    const friendRequests = this.#requests.countIncoming(userId, nowMs)
    const missedCalls = this.#parts.missedCallsOf(userId)
    if (friendRequests + missedCalls === 0) return NO_BADGE
    return { total: friendRequests + missedCalls, friendRequests, missedCalls }
  }

  /** Contacts, newest first: each entry's id is a user's. */
  readContacts(userId: UserId, range: ListRange): ListEntry[] {
    return this.#lists.read(this.#parts.database.ambient, userId, LIST.contacts, range)
  }

  /** Those whom the user has blocked, newest first. */
  readBlocks(userId: UserId, range: ListRange): ListEntry[] {
    return this.#lists.read(this.#parts.database.ambient, userId, LIST.blocks, range)
  }

  /** Open requests as the user may see them, newest first. */
  readRequests(
    userId: UserId,
    direction: 'incoming' | 'outgoing',
    range: ListRange,
    nowMs: number,
  ): FriendRequest[] {
    return this.#requests.readOpen(userId, direction, range, nowMs)
  }

  /** The open request that the receiver has got from the sender. */
  incomingFrom(senderId: UserId, receiverId: UserId, nowMs: number): FriendRequest | undefined {
    const request = this.#requests.standing(senderId, receiverId, nowMs)
    return request !== undefined && isOpenToReceiver(request, nowMs) ? request : undefined
  }

  /** Reads and decides only; what is decided holds within the transaction. */
  decideRequest({ senderId, receiverId, route }: RequestCommand, nowMs: number): RequestDecision {
    const counts = {
      contacts: this.#lists.count(this.#parts.database.ambient, senderId, LIST.contacts),
      outgoing: this.#requests.countOutgoing(senderId, nowMs),
      unshown: this.#requests.countUnshown(senderId, nowMs),
      otherIncoming: this.#requests.countIncoming(receiverId, nowMs),
    }
    return decideRequest(this.#pairOf(senderId, receiverId, nowMs), route, counts, nowMs)
  }

  /** In a transaction: carries out what was decided in it; returns the request as it is now. */
  request(command: RequestCommand, decision: DecidedRequest, nowMs: number): FriendRequest {
    switch (decision.kind) {
      case 'repeated':
        this.#requests.put(decision.request, this.#requests.read(decision.request.requestId))
        return decision.request
      case 'crossed':
        return this.#link(closed(decision.request, 'accepted', nowMs), decision.request, nowMs)
      case 'created':
        if (decision.replaces !== undefined) this.#cancel(decision.replaces, nowMs)
        return this.#create(command, decision.isDelivered, nowMs)
    }
  }

  /** In a transaction. */
  accept(requestId: bigint, actorId: UserId, nowMs: number): ClosingDecision {
    const request = this.#requests.read(requestId)
    const decision = decideAccept(
      request,
      actorId,
      this.#lists.count(this.#parts.database.ambient, actorId, LIST.contacts),
      nowMs,
    )
    if (decision.kind === 'closed') this.#link(decision.request, request, nowMs)
    return decision
  }

  /** In a transaction. The sender hears nothing. */
  decline(requestId: bigint, actorId: UserId, nowMs: number): ClosingDecision {
    const request = this.#requests.read(requestId)
    const decision = decideDecline(request, actorId, nowMs)
    if (decision.kind === 'closed') this.#decline(decision.request, request, nowMs)
    return decision
  }

  /** In a transaction. */
  cancel(requestId: bigint, actorId: UserId, nowMs: number): ClosingDecision {
    const request = this.#requests.read(requestId)
    const decision = decideCancel(request, actorId, nowMs)
    if (decision.kind === 'closed' && request !== undefined) this.#cancel(request, nowMs)
    return decision
  }

  /** In a transaction: two contacts are none any more. False when they were none. */
  unlink(one: UserId, other: UserId, nowMs: number): boolean {
    const link = this.linkOf(one, other)
    if (link === undefined) return false
    this.#removeLink(one, other, link)
    this.#tellRemoved(one, other, nowMs)
    this.#tellRemoved(other, one, nowMs)
    return true
  }

  /** In a transaction: false when the user has blocked too many. */
  block(blockerId: UserId, otherId: UserId, nowMs: number): boolean {
    if (this.hasBlocked(blockerId, otherId)) return true
    if (this.#lists.count(this.#parts.database.ambient, blockerId, LIST.blocks) >= BLOCKS_MAX) return false
    const { unlinks, cancels, declines } = decideBlock(this.#pairOf(blockerId, otherId, nowMs), nowMs)
    this.#blocks.put(idsKey(blockerId, otherId), nowMs)
    this.#lists.add(this.#parts.database.ambient, blockerId, LIST.blocks, { atMs: nowMs, id: otherId })
    if (unlinks) this.unlink(blockerId, otherId, nowMs)
    if (cancels !== undefined) this.#cancel(cancels, nowMs)
    if (declines !== undefined) this.#decline(declined(declines), declines, nowMs)
    return true
  }

  /** In a transaction. What the block kept away stays away. */
  unblock(blockerId: UserId, otherId: bigint): void {
    const key = idsKey(blockerId, otherId)
    const atMs = this.#blocks.get(key)
    if (atMs === undefined) return
    this.#blocks.remove(key)
    this.#lists.remove(this.#parts.database.ambient, blockerId, LIST.blocks, { atMs, id: otherId })
  }

  /**
   * In a transaction: nothing of the user remains here but, with those who have blocked them, the number that was
   * their id. The other sides hear of it as of a removal.
   */
  eraseOf(userId: UserId, nowMs: number): void {
    for (const { id } of this.#lists.all(this.#parts.database.ambient, userId, LIST.contacts)) {
      const other = id as UserId
      this.#removeLink(userId, other, { sinceMs: this.linkOf(userId, other)?.sinceMs ?? 0 })
      this.#tellRemoved(other, userId, nowMs)
    }
    for (const { id } of this.#lists.all(this.#parts.database.ambient, userId, LIST.blocks))
      this.unblock(userId, id)
    for (const request of this.#requests.eraseOf(userId, nowMs)) {
      if (request.receiverId !== userId) this.#tellCancelled(request, nowMs)
    }
  }

  #pairOf(actorId: UserId, otherId: UserId, nowMs: number): Pair {
    return {
      areContacts: this.isContact(actorId, otherId),
      hasBlocked: this.hasBlocked(actorId, otherId),
      isBlocked: this.hasBlocked(otherId, actorId),
      sent: this.#requests.standing(actorId, otherId, nowMs),
      received: this.#requests.standing(otherId, actorId, nowMs),
      quietUntilMs: this.#requests.quietUntilMs(actorId, otherId),
    }
  }

  #create(command: RequestCommand, isDelivered: boolean, nowMs: number): FriendRequest {
    const { requestId, senderId, receiverId, route, message } = command
    const request: FriendRequest = {
      requestId,
      senderId,
      receiverId,
      state: 'pending',
      isDelivered,
      isShown: route !== 'address',
      isByToken: route === 'token',
      ...(message ? { message } : {}),
      createdAtMs: nowMs,
    }
    this.#requests.put(request)
    // Whoever gets it is told later: how long that takes would tell a block.
    this.#parts.errands.leave({ kind: 'request_made', requestId }, nowMs)
    return request
  }

  #link(accepted: FriendRequest, before: FriendRequest | undefined, nowMs: number): FriendRequest {
    const { senderId, receiverId } = accepted
    this.#requests.put(accepted, before)
    this.#requests.forgetDirections(senderId, receiverId)
    for (const [one, other] of bothWays(senderId, receiverId)) {
      this.#links.put(idsKey(one, other), { sinceMs: nowMs })
      this.#lists.add(this.#parts.database.ambient, one, LIST.contacts, { atMs: nowMs, id: other })
    }
    this.#tellAdded(senderId, receiverId, accepted, nowMs)
    this.#tellAdded(receiverId, senderId, accepted, nowMs)
    if (before !== undefined && isOpenToReceiver(before, nowMs)) this.#sayBadge(receiverId)
    return accepted
  }

  #decline(request: FriendRequest, before: FriendRequest | undefined, nowMs: number): void {
    this.#requests.put(request, before)
    this.#requests.quiet(request, nowMs + QUIET_MS)
    this.#sayBadge(request.receiverId)
  }

  #cancel(request: FriendRequest, nowMs: number): void {
    const { requestId, senderId, receiverId } = request
    this.#requests.put(closed(request, 'cancelled', nowMs), request)
    const isMissed = isOpenToReceiver(request, nowMs)
    this.#parts.errands.leave({ kind: 'request_gone', requestId, senderId, receiverId, isMissed }, nowMs)
  }

  /** What is over by now is not told: an acceptance has told more, and whoever declined it knows. */
  #onMade(requestId: RequestId, nowMs: number): void {
    const request = this.#requests.read(requestId)
    if (request !== undefined && isOpenToReceiver(request, nowMs)) this.#tellRequest(request, nowMs)
  }

  #onGone(request: RequestGoneErrand, nowMs: number): void {
    if (request.isMissed) this.#tellCancelled(request, nowMs)
  }

  #removeLink(one: UserId, other: UserId, { sinceMs }: Link): void {
    for (const [owner, id] of bothWays(one, other)) {
      this.#links.remove(idsKey(owner, id))
      this.#lists.remove(this.#parts.database.ambient, owner, LIST.contacts, { atMs: sinceMs, id })
    }
  }

  #sayBadge(userId: UserId): void {
    this.#parts.database.ambient.happened({ kind: 'badge-changed', userId })
  }

  #tellRequest(
    { requestId, senderId, receiverId, message, createdAtMs }: FriendRequest,
    nowMs: number,
  ): void {
    const displayName = this.#parts.displayNameOf(senderId)
    const said = message === undefined ? {} : { message }
    const body = { requestId, userId: senderId, displayName, ...said, createdAtMs }
    this.#parts.tell(receiverId, { kind: 'friend_request', ...body }, nowMs)
    this.#sayBadge(receiverId)
  }

  #tellAdded(userId: UserId, otherId: UserId, { requestId, senderId }: FriendRequest, nowMs: number): void {
    const displayName = this.#parts.displayNameOf(otherId)
    const isPushed = userId === senderId
    const body = { userId: otherId, displayName, requestId, isPushed }
    this.#parts.tell(userId, { kind: 'contact_added', ...body }, nowMs)
  }

  #tellRemoved(userId: UserId, otherId: UserId, nowMs: number): void {
    const displayName = this.#parts.displayNameOf(otherId)
    this.#parts.tell(userId, { kind: 'contact_removed', userId: otherId, displayName }, nowMs)
  }

  #tellCancelled(
    { requestId, senderId, receiverId }: Pick<FriendRequest, 'requestId' | 'senderId' | 'receiverId'>,
    nowMs: number,
  ): void {
    const body = { kind: 'friend_request_cancelled', requestId, userId: senderId } as const
    this.#parts.tell(receiverId, body, nowMs)
    this.#sayBadge(receiverId)
  }

  /** A request that expired is gone from its receiver's list as one that was cancelled. */
  #tellGone(request: FriendRequest, nowMs: number): void {
    if (request.state === 'pending' && request.isDelivered) this.#tellCancelled(request, nowMs)
  }
}

/** Of the table `contacts`. */
export const LINK_SHAPES = [['sinceMs']]
/** Most are: each idle connection remembers the badge that it was told. */
const NO_BADGE: Badge = { total: 0, friendRequests: 0, missedCalls: 0 }

function bothWays(one: UserId, other: UserId): readonly (readonly [UserId, UserId])[] {
  return [
    [one, other],
    [other, one],
  ]
}
