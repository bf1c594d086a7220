/**
 * The rules between two people (contract 3): contacts, blocks, and friend requests (3.2 to 3.4). Each command has one
 * function, from the state between the two to the next state.
 *
 * A request has two sides that need not agree. The sender sees it pending until it is accepted, cancelled or 30 days
 * old, also when the receiver has declined it, or never got it because of a block or a quiet period: nothing that the
 * sender can do tells these apart.
 *
 *     none ─ request ─> pending, delivered or not
 *     pending, delivered ─ decline ─> declined
 *     pending, delivered ─ accept ─> accepted
 *     pending | declined ─ the receiver asks, too ─> accepted
 *     pending | declined ─ cancel ─> cancelled
 *     pending | declined ─ 30 days ─> expired
 */

import type { ErrorCode } from '../../errors.ts'
import type { RequestId, UserId } from '../ids.ts'

export type RequestState = 'pending' | 'declined' | 'accepted' | 'cancelled' | 'expired'

export interface FriendRequest {
  readonly requestId: RequestId
  readonly senderId: UserId
  readonly receiverId: UserId
  readonly state: RequestState
  /** Whether the receiver got it; if not, they never will: a block that ends does not deliver what it kept away. */
  readonly isDelivered: boolean
  /** Whether the sender sees it: a search by address never says whether it found a user. */
  readonly isShown: boolean
  /** Whether the sender showed a share token of the receiver, which is consent to read the receiver's keys. */
  readonly isByToken: boolean
  /** When the token was shown, if that was after the request was made. */
  readonly tokenShownAtMs?: number
  /** Gone once the request is closed. */
  readonly message?: string
  readonly createdAtMs: number
  /** When it was accepted or cancelled or expired. */
  readonly closedAtMs?: number
}

export interface Link {
  readonly sinceMs: number
  /** The one's own name for the other. */
  readonly alias?: string
}

/** The relation between the acting user and another. */
export interface Pair {
  readonly areContacts: boolean
  /** The actor has blocked the other. */
  readonly hasBlocked: boolean
  /** The other has blocked the actor, who must not find out. */
  readonly isBlocked: boolean
  /** The actor's request that stands: open to its sender. */
  readonly sent: FriendRequest | undefined
  /** The other's request that stands; the actor may have declined it, or never got it. */
  readonly received: FriendRequest | undefined
  /** Until then what the actor asks does not reach the other; 0 when it does. */
  readonly quietUntilMs: number
}

/** The relation to another user, as far as the viewer may know it. */
export type Relation = 'none' | 'self' | 'contact' | 'outgoing' | 'incoming'

/** Which of another user's devices and keys a reader gets: the present ones, or those at a given time. */
export type KeysShown = { readonly kind: 'present' } | { readonly kind: 'as-of'; readonly atMs: number }

/** How the sender came to the receiver: their id or a key's hash, a share token, or a search by email or phone. */
export type RequestRoute = 'id' | 'token' | 'address'

/** The counts that the limits apply to. */
export interface RequestCounts {
  /** The acting user's contacts. */
  readonly contacts: number
  /** Their open requests that they know of. */
  readonly outgoing: number
  /** Their open requests that they do not know of. */
  readonly unshown: number
  /** Open requests that the other has got. */
  readonly otherIncoming: number
}

export interface Refused {
  readonly kind: 'refused'
  readonly code: ErrorCode
}

export type RequestDecision =
  | Refused
  /** The same request stands already: nothing happens, but that a token may have been shown since. */
  | { readonly kind: 'repeated'; readonly request: FriendRequest }
  /** The other has asked, too: both are now contacts. */
  | { readonly kind: 'crossed'; readonly request: FriendRequest }
  | {
      readonly kind: 'created'
      readonly isDelivered: boolean
      /** An earlier one that the sender did not know of, which gives way to this one. */
      readonly replaces: FriendRequest | undefined
    }

/**
 * What a request to another does. The order of the checks is part of the rule: whatever decides between two answers
 * is known to the sender.
 */
export function decideRequest(
  pair: Pair,
  route: RequestRoute,
  counts: RequestCounts,
  nowMs: number,
): RequestDecision {
  const { sent, received } = pair
  if (pair.areContacts) return refused('ALREADY_FRIENDS')
  if (pair.hasBlocked) return refused('USER_BLOCKED')
  if (sent !== undefined && (sent.isShown || route === 'address')) {
    return { kind: 'repeated', request: route === 'token' ? withToken(sent, nowMs) : sent }
  }
  if (counts.contacts >= CONTACTS_MAX) return refused('CONTACT_LIMIT')
  if (received !== undefined) return { kind: 'crossed', request: received }
  const isFull = route === 'address' ? counts.unshown >= UNSHOWN_MAX : counts.outgoing >= OUTGOING_MAX
  if (isFull) return refused('PENDING_LIMIT')
  const isWithheld = pair.isBlocked || nowMs < pair.quietUntilMs || counts.otherIncoming >= INCOMING_MAX
  return { kind: 'created', isDelivered: !isWithheld, replaces: sent }
}

/** The first token that was shown counts. */
function withToken(request: FriendRequest, nowMs: number): FriendRequest {
  return request.isByToken ? request : { ...request, isByToken: true, tokenShownAtMs: nowMs }
}

export type LinkDecision =
  | Refused
  /** They are contacts already. */
  | { readonly kind: 'linked' }
  /** `closes`: open requests between the two, which this accepts. */
  | { readonly kind: 'links'; readonly closes: readonly FriendRequest[] }

/** The operator's backend makes two users contacts. `counts`: how many contacts each has. */
export function decideLink(
  { areContacts, hasBlocked, isBlocked, sent, received }: Pair,
  counts: readonly number[],
): LinkDecision {
  if (areContacts) return { kind: 'linked' }
  if (hasBlocked || isBlocked) return refused('USER_BLOCKED')
  if (counts.some(count => count >= CONTACTS_MAX)) return refused('CONTACT_LIMIT')
  return { kind: 'links', closes: [sent, received].filter(request => request !== undefined) }
}

/** A command on one request: what it becomes, or why not. */
export type ClosingDecision = Refused | { readonly kind: 'closed'; readonly request: FriendRequest }

/** `request` is the one named, if it exists; `contacts` counts the accepting user's contacts. */
export function decideAccept(
  request: FriendRequest | undefined,
  actorId: UserId,
  contacts: number,
  nowMs: number,
): ClosingDecision {
  const refusal = refusalToReceiver(request, actorId, nowMs)
  if (refusal !== undefined || request === undefined) return refused(refusal ?? 'REQUEST_NOT_FOUND')
  if (contacts >= CONTACTS_MAX) return refused('CONTACT_LIMIT')
  return { kind: 'closed', request: closed(request, 'accepted', nowMs) }
}

export function decideDecline(
  request: FriendRequest | undefined,
  actorId: UserId,
  nowMs: number,
): ClosingDecision {
  const refusal = refusalToReceiver(request, actorId, nowMs)
  if (refusal !== undefined || request === undefined) return refused(refusal ?? 'REQUEST_NOT_FOUND')
  return { kind: 'closed', request: declined(request) }
}

export function decideCancel(
  request: FriendRequest | undefined,
  actorId: UserId,
  nowMs: number,
): ClosingDecision {
  if (request === undefined || request.senderId !== actorId || !request.isShown) {
    return refused('REQUEST_NOT_FOUND')
  }
  if (!isOpenToSender(request, nowMs)) return refused('REQUEST_CLOSED')
  return { kind: 'closed', request: closed(request, 'cancelled', nowMs) }
}

export interface BlockDecision {
  readonly unlinks: boolean
  /** The blocker's own request, taken back. */
  readonly cancels: FriendRequest | undefined
  /** The other's, declined without a word: to its sender it stands until it expires. */
  readonly declines: FriendRequest | undefined
}

/** The effects of a block. The other user sees a removal and a cancelled request, and nothing more. */
export function decideBlock({ areContacts, sent, received }: Pair, nowMs: number): BlockDecision {
  const isDeclined = received !== undefined && isOpenToReceiver(received, nowMs)
  return { unlinks: areContacts, cancels: sent, declines: isDeclined ? received : undefined }
}

/** The relation as the actor of the pair sees it; `self` is for the caller to say. */
export function relationOf({ areContacts, sent, received }: Pair, nowMs: number): Relation {
  if (areContacts) return 'contact'
  if (sent?.isShown) return 'outgoing'
  return received !== undefined && isOpenToReceiver(received, nowMs) ? 'incoming' : 'none'
}

/**
 * Which keys the sender of an open request by token may read. All senders read the devices of the moment when they
 * showed the token: the receiver's later devices are no business of a sender who may be declined or blocked, and a
 * list that stood still for those alone would tell them so. A new request after a block shows the devices of the
 * block's start.
 */
export function keysShownToSender(
  { createdAtMs, tokenShownAtMs = createdAtMs }: FriendRequest,
  blockedAtMs: number | undefined,
): KeysShown {
  return { kind: 'as-of', atMs: Math.min(tokenShownAtMs, blockedAtMs ?? tokenShownAtMs) }
}

/** Whether its sender has it pending. */
export function isOpenToSender({ state, createdAtMs }: FriendRequest, nowMs: number): boolean {
  return (state === 'pending' || state === 'declined') && nowMs < createdAtMs + REQUEST_OPEN_MS
}

/** Whether its receiver has it pending. */
export function isOpenToReceiver({ state, isDelivered, createdAtMs }: FriendRequest, nowMs: number): boolean {
  return state === 'pending' && isDelivered && nowMs < createdAtMs + REQUEST_OPEN_MS
}

/** The request over for its sender, too, without the words that it had. */
export function closed(
  { message: _, ...request }: FriendRequest,
  state: 'accepted' | 'cancelled' | 'expired',
  closedAtMs: number,
): FriendRequest {
  return { ...request, state, closedAtMs }
}

/** The request over for its receiver alone. */
export function declined(request: FriendRequest): FriendRequest {
  return { ...request, state: 'declined' }
}

/** The request as expired, when its time has passed; undefined for one that continues or is closed already. */
export function expired(request: FriendRequest, nowMs: number): FriendRequest | undefined {
  const endsAtMs = request.createdAtMs + REQUEST_OPEN_MS
  return request.closedAtMs === undefined && nowMs >= endsAtMs
    ? closed(request, 'expired', endsAtMs)
    : undefined
}

/** When nothing is kept of the request any more, milliseconds since 1970. */
export function forgottenAtMs({ createdAtMs, closedAtMs }: FriendRequest): number {
  return (closedAtMs ?? createdAtMs + REQUEST_OPEN_MS) + CLOSED_KEPT_MS
}

function refusalToReceiver(
  request: FriendRequest | undefined,
  actorId: UserId,
  nowMs: number,
): ErrorCode | undefined {
  if (request === undefined || request.receiverId !== actorId || !request.isDelivered) {
    return 'REQUEST_NOT_FOUND'
  }
  return isOpenToReceiver(request, nowMs) ? undefined : 'REQUEST_CLOSED'
}

function refused(code: ErrorCode): Refused {
  return { kind: 'refused', code }
}

export const PRESENT_KEYS: KeysShown = { kind: 'present' }
const DAY_MS = 86_400_000
/** How long an unanswered request stays open. */
export const REQUEST_OPEN_MS = 30 * DAY_MS
/** How long a closed one is kept, so that a late command hears that it is closed. */
const CLOSED_KEPT_MS = 30 * DAY_MS
/** After a decline, how long the sender does not reach the receiver again. Shorter than a closed request is kept. */
export const QUIET_MS = 7 * DAY_MS
/**
 * Contacts of a user who acts. Requests that they sent before may still be accepted beyond it: the other side can't be
 * told that this one is full.
 */
export const CONTACTS_MAX = 1_000
/** Open requests that a sender may have. */
export const OUTGOING_MAX = 100
/** Open requests that a search by address made; silent, as the sender knows of none. */
const UNSHOWN_MAX = 100
/** Open requests that a receiver gets. Further ones are withheld: an error would reveal the absence of a block. */
export const INCOMING_MAX = 500
/** People that a user has blocked. */
export const BLOCKS_MAX = 1_000
