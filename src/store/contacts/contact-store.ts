/**
 * Contacts, blocks and friend requests (contract 3) as the writer changes them: has the rules decide on what there is
 * between two people, and writes what they decided, telling both sides as much as each may know. Everything that changes
 * something is to be called in a change, one for each command.
 */

import type { RenamedTask, RequestGoneTask } from '../../domain/contacts/deferred-task.ts'
import {
  BLOCKS_MAX,
  type ClosingDecision,
  closed,
  decideAccept,
  decideBlock,
  decideCancel,
  decideDecline,
  decideLink,
  decideRequest,
  declined,
  type FriendRequest,
  isOpenToReceiver,
  type Link,
  type LinkDecision,
  QUIET_MS,
  type RequestDecision,
  type RequestRoute,
} from '../../domain/contacts/friend-request.ts'
import type { DeviceId, RequestId, UserId } from '../../domain/ids.ts'
import type { PersonalNoticeBody } from '../../domain/messages/notice.ts'
import { contactEvent } from '../../domain/operators/webhook-event.ts'
import { EXPIRY, type Expiries } from '../engine/expiries.ts'
import { idsKey } from '../engine/keys.ts'
import type { Change, View } from '../engine/store.ts'
import type { Webhooks } from '../operators/webhook-store.ts'
import type { DeferredTasks } from '../tables/deferred-tasks.ts'
import { LIST } from '../tables/id-lists.ts'
import { ContactReader, type ContactTables } from './contact-reader.ts'
import { BLOCKS, CONTACTS } from './contact-tables.ts'

export interface ContactStoreDeps extends ContactTables {
  readonly expiries: Expiries
  readonly deferredTasks: Pick<DeferredTasks, 'define' | 'leave'>
  readonly displayNameOf: (view: View, userId: UserId) => string
  /** Without it, no event is written. */
  readonly webhooks?: Pick<Webhooks, 'add'>
  /** Tells every device of a user but one. */
  readonly tell: (change: Change, userId: UserId, body: PersonalNoticeBody, exceptDeviceId?: DeviceId) => void
}

/** A user makes a request. */
export interface RequestCommand {
  readonly requestId: RequestId
  readonly senderId: UserId
  readonly receiverId: UserId
  readonly route: RequestRoute
  readonly message: string | undefined
}

type DecidedRequest = Exclude<RequestDecision, { readonly kind: 'refused' }>

export class ContactStore extends ContactReader {
  readonly #deps: ContactStoreDeps

  constructor(deps: ContactStoreDeps) {
    super(deps)
    const { deferredTasks, expiries, friendRequests } = deps
    this.#deps = deps
    deferredTasks.define('request_made', (change, { requestId }) => this.#onMade(change, requestId))
    deferredTasks.define('request_gone', (change, request) => this.#onGone(change, request))
    deferredTasks.define('renamed', (change, task) => this.#onRenamed(change, task))
    const onExpired = (change: Change, request: FriendRequest) => this.#tellGone(change, request)
    expiries.define(EXPIRY.friendRequest, (change, key) => friendRequests.expire(change, key, onExpired))
  }

  /** Reads and decides only; what is decided holds within the change. */
  decideRequest(view: View, { senderId, receiverId, route }: RequestCommand, nowMs: number): RequestDecision {
    const counts = {
      contacts: this.lists.count(view, senderId, LIST.contacts),
      outgoing: this.requests.countOutgoing(view, senderId, nowMs),
      unshown: this.requests.countUnshown(view, senderId, nowMs),
      otherIncoming: this.requests.countIncoming(view, receiverId, nowMs),
    }
    return decideRequest(this.pairOf(view, senderId, receiverId, nowMs), route, counts, nowMs)
  }

  /** Carries out what was decided in it; returns the request as it is now. */
  request(change: Change, command: RequestCommand, decision: DecidedRequest): FriendRequest {
    switch (decision.kind) {
      case 'repeated':
        this.requests.put(change, decision.request, this.requests.read(change, decision.request.requestId))
        return decision.request
      case 'crossed':
        return this.#link(change, closed(decision.request, 'accepted', change.nowMs), decision.request)
      case 'created':
        if (decision.replaces !== undefined) this.#cancel(change, decision.replaces)
        return this.#create(change, command, decision.isDelivered)
    }
  }

  accept(change: Change, requestId: bigint, actorId: UserId): ClosingDecision {
    const { nowMs } = change
    const request = this.requests.read(change, requestId)
    const decision = decideAccept(request, actorId, this.lists.count(change, actorId, LIST.contacts), nowMs)
    if (decision.kind === 'closed') this.#link(change, decision.request, request)
    return decision
  }

  /** The sender hears nothing. */
  decline(change: Change, requestId: bigint, actorId: UserId): ClosingDecision {
    const request = this.requests.read(change, requestId)
    const decision = decideDecline(request, actorId, change.nowMs)
    if (decision.kind === 'closed') this.#decline(change, decision.request, request)
    return decision
  }

  cancel(change: Change, requestId: bigint, actorId: UserId): ClosingDecision {
    const request = this.requests.read(change, requestId)
    const decision = decideCancel(request, actorId, change.nowMs)
    if (decision.kind === 'closed' && request !== undefined) this.#cancel(change, request)
    return decision
  }

  /** The operator's backend makes two users contacts, which accepts what either has asked of the other. */
  link(change: Change, one: UserId, other: UserId): LinkDecision {
    const { nowMs } = change
    const counts = [one, other].map(userId => this.lists.count(change, userId, LIST.contacts))
    const decision = decideLink(this.pairOf(change, one, other, nowMs), counts)
    if (decision.kind !== 'links') return decision
    for (const request of decision.closes) {
      this.requests.put(change, closed(request, 'accepted', nowMs), request)
      if (isOpenToReceiver(request, nowMs)) this.#sayBadge(change, request.receiverId)
    }
    this.#addLink(change, one, other)
    this.#tellAdded(change, one, other)
    this.#tellAdded(change, other, one)
    return decision
  }

  /** Two contacts are none any more. False when they were none. */
  unlink(change: Change, one: UserId, other: UserId): boolean {
    const link = this.linkOf(change, one, other)
    if (link === undefined) return false
    const otherAlias = this.aliasOf(change, other, one)
    this.#removeLink(change, one, other, link)
    this.#tellContact(change, 'contact_removed', one, { userId: other, alias: link.alias })
    this.#tellContact(change, 'contact_removed', other, { userId: one, alias: otherAlias })
    return true
  }

  /**
   * Gives a contact the user's own name for them, or takes it back; the user's devices but this one hear of it. False
   * when the two are no contacts.
   */
  rename(
    change: Change,
    userId: UserId,
    contact: { readonly userId: UserId; readonly alias: string | undefined },
    exceptDeviceId: DeviceId | undefined,
  ): boolean {
    const link = this.linkOf(change, userId, contact.userId)
    if (link === undefined) return false
    const { alias } = contact
    if (alias === link.alias) return true
    const { sinceMs } = link
    const renamed = alias === undefined ? { sinceMs } : { sinceMs, alias }
    change.put(CONTACTS, idsKey(userId, contact.userId), renamed)
    this.#tellContact(change, 'contact_changed', userId, contact, exceptDeviceId)
    return true
  }

  /** The user has another name: their contacts hear of it, later. */
  onNewName(change: Change, userId: UserId): void {
    this.#deps.deferredTasks.leave(change, { kind: 'renamed', userId, after: undefined })
  }

  /** False when the user has blocked too many. */
  block(change: Change, blockerId: UserId, otherId: UserId): boolean {
    const { nowMs } = change
    if (this.hasBlocked(change, blockerId, otherId)) return true
    if (this.lists.count(change, blockerId, LIST.blocks) >= BLOCKS_MAX) return false
    const { unlinks, cancels, declines } = decideBlock(this.pairOf(change, blockerId, otherId, nowMs), nowMs)
    change.put(BLOCKS, idsKey(blockerId, otherId), nowMs)
    this.lists.add(change, blockerId, LIST.blocks, { atMs: nowMs, id: otherId })
    if (unlinks) this.unlink(change, blockerId, otherId)
    if (cancels !== undefined) this.#cancel(change, cancels)
    if (declines !== undefined) this.#decline(change, declined(declines), declines)
    return true
  }

  /** Requests that the block kept away stay away. */
  unblock(change: Change, blockerId: UserId, otherId: bigint): void {
    const key = idsKey(blockerId, otherId)
    const atMs = change.get(BLOCKS, key)
    if (atMs === undefined) return
    change.remove(BLOCKS, key)
    this.lists.remove(change, blockerId, LIST.blocks, { atMs, id: otherId })
  }

  /**
   * Nothing of the user remains here but, with those who have blocked them, the number that was
   * their id. The other sides hear of it as of a removal.
   */
  eraseOf(change: Change, userId: UserId): void {
    for (const { id } of this.lists.all(change, userId, LIST.contacts)) {
      const other = id as UserId
      const alias = this.aliasOf(change, other, userId)
      this.#removeLink(change, userId, other, { sinceMs: this.linkOf(change, userId, other)?.sinceMs ?? 0 })
      this.#tellContact(change, 'contact_removed', other, { userId, alias })
    }
    for (const { id } of this.lists.all(change, userId, LIST.blocks)) this.unblock(change, userId, id)
    for (const request of this.requests.eraseOf(change, userId)) {
      if (request.receiverId !== userId) this.#tellCancelled(change, request)
    }
  }

  #create(change: Change, command: RequestCommand, isDelivered: boolean): FriendRequest {
    const { nowMs } = change
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
    this.requests.put(change, request)
    // Its receiver hears of it later: how long that takes would give a block away.
    this.#deps.deferredTasks.leave(change, { kind: 'request_made', requestId })
    return request
  }

  #link(change: Change, accepted: FriendRequest, before: FriendRequest | undefined): FriendRequest {
    const { nowMs } = change
    const { senderId, receiverId } = accepted
    this.requests.put(change, accepted, before)
    this.#addLink(change, senderId, receiverId)
    this.#tellAdded(change, senderId, receiverId, accepted)
    this.#tellAdded(change, receiverId, senderId, accepted)
    if (before !== undefined && isOpenToReceiver(before, nowMs)) this.#sayBadge(change, receiverId)
    return accepted
  }

  #addLink(change: Change, one: UserId, other: UserId): void {
    const { nowMs } = change
    this.requests.forgetDirections(change, one, other)
    for (const [owner, id] of bothWays(one, other)) {
      change.put(CONTACTS, idsKey(owner, id), { sinceMs: nowMs })
      this.lists.add(change, owner, LIST.contacts, { atMs: nowMs, id })
    }
    this.#deps.webhooks?.add(change, contactEvent('contact.added', one, other))
  }

  #decline(change: Change, request: FriendRequest, before: FriendRequest | undefined): void {
    this.requests.put(change, request, before)
    this.requests.quiet(change, request, change.nowMs + QUIET_MS)
    this.#sayBadge(change, request.receiverId)
  }

  #cancel(change: Change, request: FriendRequest): void {
    const { nowMs } = change
    const { requestId, senderId, receiverId } = request
    this.requests.put(change, closed(request, 'cancelled', nowMs), request)
    const isMissed = isOpenToReceiver(request, nowMs)
    this.#deps.deferredTasks.leave(change, {
      kind: 'request_gone',
      requestId,
      senderId,
      receiverId,
      isMissed,
    })
  }

  /** A request that has ended by now is not told: an acceptance has told more, and a person who declined it knows. */
  #onMade(change: Change, requestId: RequestId): void {
    const request = this.requests.read(change, requestId)
    if (request !== undefined && isOpenToReceiver(request, change.nowMs)) this.#tellRequest(change, request)
  }

  #onGone(change: Change, request: RequestGoneTask): void {
    if (request.isMissed) this.#tellCancelled(change, request)
  }

  /** Each hears the name as it is by then. */
  #onRenamed(change: Change, { userId, after }: RenamedTask): void {
    const contacts = this.readContacts(change, userId, { limit: TOLD_AT_ONCE, after })
    for (const { id } of contacts) {
      const contactId = id as UserId
      const alias = this.aliasOf(change, contactId, userId)
      this.#tellContact(change, 'contact_changed', contactId, { userId, alias })
    }
    if (contacts.length < TOLD_AT_ONCE) return
    this.#deps.deferredTasks.leave(change, { kind: 'renamed', userId, after: contacts.at(-1) })
  }

  #removeLink(change: Change, one: UserId, other: UserId, { sinceMs }: Link): void {
    this.#deps.webhooks?.add(change, contactEvent('contact.removed', one, other))
    for (const [owner, id] of bothWays(one, other)) {
      change.remove(CONTACTS, idsKey(owner, id))
      this.lists.remove(change, owner, LIST.contacts, { atMs: sinceMs, id })
    }
  }

  #sayBadge(change: Change, userId: UserId): void {
    change.happened({ kind: 'badge-changed', userId })
  }

  #tellRequest(
    change: Change,
    { requestId, senderId, receiverId, message, createdAtMs }: FriendRequest,
  ): void {
    const displayName = this.#deps.displayNameOf(change, senderId)
    const said = message === undefined ? {} : { message }
    const body = { requestId, userId: senderId, displayName, ...said, createdAtMs }
    this.#deps.tell(change, receiverId, { kind: 'friend_request', ...body })
    this.#sayBadge(change, receiverId)
  }

  #tellAdded(change: Change, userId: UserId, otherId: UserId, accepted?: FriendRequest): void {
    const displayName = this.#deps.displayNameOf(change, otherId)
    const isPushed = userId === accepted?.senderId
    const request = accepted && { requestId: accepted.requestId }
    const body = { userId: otherId, displayName, ...request, isPushed }
    this.#deps.tell(change, userId, { kind: 'contact_added', ...body })
  }

  #tellContact(
    change: Change,
    kind: 'contact_changed' | 'contact_removed',
    toUserId: UserId,
    { userId, alias }: { readonly userId: UserId; readonly alias: string | undefined },
    exceptDeviceId?: DeviceId,
  ): void {
    const displayName = this.#deps.displayNameOf(change, userId)
    this.#deps.tell(change, toUserId, { kind, userId, displayName, alias }, exceptDeviceId)
  }

  #tellCancelled(
    change: Change,
    { requestId, senderId, receiverId }: Pick<FriendRequest, 'requestId' | 'senderId' | 'receiverId'>,
  ): void {
    const body = { kind: 'friend_request_cancelled', requestId, userId: senderId } as const
    this.#deps.tell(change, receiverId, body)
    this.#sayBadge(change, receiverId)
  }

  /** A request that expired is gone from its receiver's list as one that was cancelled. */
  #tellGone(change: Change, request: FriendRequest): void {
    if (request.state === 'pending' && request.isDelivered) this.#tellCancelled(change, request)
  }
}

function bothWays(one: UserId, other: UserId): readonly (readonly [UserId, UserId])[] {
  return [
    [one, other],
    [other, one],
  ]
}

/** Contacts who hear of a new name in one change. */
const TOLD_AT_ONCE = 50
