/** Contacts, blocks and friend requests as every process reads them: what there is between two people, and their lists. */

import { takesCallsFromStrangers, type User } from '../../domain/accounts/account.ts'
import {
  type FriendRequest,
  isOpenToReceiver,
  type KeysShown,
  keysShownToSender,
  type Link,
  type Pair,
  PRESENT_KEYS,
  type Relation,
  relationOf,
} from '../../domain/contacts/friend-request.ts'
import type { UserId } from '../../domain/ids.ts'
import type { Badge } from '../../domain/messages/notice.ts'
import { idsKey } from '../engine/keys.ts'
import type { View } from '../engine/store.ts'
import { type IdLists, LIST, type ListEntry, type ListRange } from '../tables/id-lists.ts'
import { BLOCKS, CONTACTS } from './contact-tables.ts'
import type { FriendRequestTable, OpenRange } from './friend-request-table.ts'

export interface ContactTables {
  readonly lists: IdLists
  readonly friendRequests: FriendRequestTable
  /** Whether the two are members of one circle. */
  readonly haveCircle: (view: View, one: UserId, other: UserId) => boolean
  /** The other part of the badge. */
  readonly missedCallsOf: (view: View, userId: UserId) => number
}

export class ContactReader {
  protected readonly lists: IdLists
  protected readonly requests: FriendRequestTable
  /** Whether the operator has put both into one circle: such people may call each other as contacts may. */
  readonly haveCircle: (view: View, one: UserId, other: UserId) => boolean
  readonly #missedCallsOf: (view: View, userId: UserId) => number

  constructor({ lists, friendRequests, haveCircle, missedCallsOf }: ContactTables) {
    this.lists = lists
    this.requests = friendRequests
    this.haveCircle = haveCircle
    this.#missedCallsOf = missedCallsOf
  }

  isContact(view: View, one: UserId, other: UserId): boolean {
    return this.linkOf(view, one, other) !== undefined
  }

  /** The link that makes the other a contact of the one; undefined when they are none. */
  linkOf(view: View, one: UserId, other: UserId): Link | undefined {
    return view.get(CONTACTS, idsKey(one, other))
  }

  /** The one's own name for the other, if they are contacts. */
  aliasOf(view: View, one: UserId, other: UserId): string | undefined {
    return this.linkOf(view, one, other)?.alias
  }

  hasBlocked(view: View, blocker: UserId, other: UserId): boolean {
    return this.blockedAtMs(view, blocker, other) !== undefined
  }

  /** Since when the blocker has blocked the other, if they have. */
  blockedAtMs(view: View, blocker: UserId, other: UserId): number | undefined {
    return view.get(BLOCKS, idsKey(blocker, other))
  }

  /** The viewer's relation with the other, as far as they may know it. */
  relationOf(view: View, viewerId: UserId, otherId: UserId, nowMs: number): Relation {
    if (viewerId === otherId) return 'self'
    return relationOf(this.pairOf(view, viewerId, otherId, nowMs), nowMs)
  }

  /**
   * Which of the other's keys one may read, if any: contacts, and the receiver of an open request by token, those of now;
   * its sender those of when it was made. Members of a circle of the owner's, and of an owner who takes calls from strangers
   * everybody, may read those of now, and those whom the owner has blocked the ones of when the block began: a call has to be
   * sealed for something.
   */
  keysShown(
    view: View,
    askerId: UserId,
    ownerId: UserId,
    nowMs: number,
    owner?: User,
  ): KeysShown | undefined {
    if (askerId === ownerId || this.isContact(view, askerId, ownerId)) return PRESENT_KEYS
    const received = this.requests.standing(view, ownerId, askerId, nowMs)
    if (received?.isByToken && isOpenToReceiver(received, nowMs)) return PRESENT_KEYS
    const blockedAtMs = this.blockedAtMs(view, ownerId, askerId)
    const isCallable = owner !== undefined && takesCallsFromStrangers(owner)
    if (isCallable || this.haveCircle(view, askerId, ownerId)) {
      return blockedAtMs === undefined ? PRESENT_KEYS : { kind: 'as-of', atMs: blockedAtMs }
    }
    const sent = this.requests.standing(view, askerId, ownerId, nowMs)
    return sent?.isByToken ? keysShownToSender(sent, blockedAtMs) : undefined
  }

  badgeOf(view: View, userId: UserId, nowMs: number): Badge {
    const friendRequests = this.requests.countIncoming(view, userId, nowMs)
    const missedCalls = this.#missedCallsOf(view, userId)
    if (friendRequests + missedCalls === 0) return NO_BADGE
    return { total: friendRequests + missedCalls, friendRequests, missedCalls }
  }

  /** Contacts, newest first: each entry's id is a user's. */
  readContacts(view: View, userId: UserId, range: ListRange): ListEntry[] {
    return this.lists.read(view, userId, LIST.contacts, range)
  }

  /** Those whom the user has blocked, newest first. */
  readBlocks(view: View, userId: UserId, range: ListRange): ListEntry[] {
    return this.lists.read(view, userId, LIST.blocks, range)
  }

  /** Open requests as the user may see them, newest first. */
  readRequests(
    view: View,
    userId: UserId,
    direction: 'incoming' | 'outgoing',
    range: OpenRange,
  ): FriendRequest[] {
    return this.requests.readOpen(view, userId, direction, range)
  }

  /** The open request that the receiver has got from the sender. */
  incomingFrom(view: View, senderId: UserId, receiverId: UserId, nowMs: number): FriendRequest | undefined {
    const request = this.requests.standing(view, senderId, receiverId, nowMs)
    return request !== undefined && isOpenToReceiver(request, nowMs) ? request : undefined
  }

  /** The request that the sender sees as open. */
  outgoingTo(view: View, senderId: UserId, receiverId: UserId, nowMs: number): FriendRequest | undefined {
    return this.requests.standing(view, senderId, receiverId, nowMs)
  }

  /** All that the rules ask of two people. */
  protected pairOf(view: View, actorId: UserId, otherId: UserId, nowMs: number): Pair {
    return {
      areContacts: this.isContact(view, actorId, otherId),
      hasBlocked: this.hasBlocked(view, actorId, otherId),
      isBlocked: this.hasBlocked(view, otherId, actorId),
      sent: this.requests.standing(view, actorId, otherId, nowMs),
      received: this.requests.standing(view, otherId, actorId, nowMs),
      quietUntilMs: this.requests.quietUntilMs(view, actorId, otherId),
    }
  }
}

/** Most are: each idle connection remembers the badge that it was told. */
const NO_BADGE: Badge = { total: 0, friendRequests: 0, missedCalls: 0 }
