/** The relation between two people (contract 3): links, blocks, and open requests, seen by one of them. */

import { type FriendRequest, isOpenToReceiver } from './friend-request.ts'

export interface Link {
  readonly sinceMs: number
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

/** The relation as the actor of the pair sees it; `self` is for the caller to say. */
export function relationOf({ areContacts, sent, received }: Pair, nowMs: number): Relation {
  if (areContacts) return 'contact'
  if (sent?.isShown) return 'outgoing'
  return received !== undefined && isOpenToReceiver(received, nowMs) ? 'incoming' : 'none'
}

/** Which of another user's devices and keys a reader gets: the present ones, or those at a given time. */
export type KeysShown = { readonly kind: 'present' } | { readonly kind: 'as-of'; readonly atMs: number }

export const PRESENT_KEYS: KeysShown = { kind: 'present' }

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

/** People that a user has blocked. */
export const BLOCKS_MAX = 1_000
