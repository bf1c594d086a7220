/**
 * What a right code opens (contract 0.1, "2.2, 2.4"). A code proves who reads a mailbox or holds a number today, which may be
 * a thief, or the number's next owner. So where an account has a device that can be asked, its sign-in waits for an answer
 * of that device, or for 72 hours without one; and a number of an account without activity for half a year
 * opens an account of its own.
 *
 * Departure from the contract, for a silent number of an account that can still be opened otherwise: an unanswered wait
 * opens a fresh account, not the old one. Its owner signs in by the other method, and the next owner of the number never sees
 * the contacts of the last one.
 */

import type { UserId } from '../ids.ts'
import type { AddressMethod } from './account.ts'
import type { Address, SocialIdentity } from './challenge.ts'

/** The account of the address that a right code came for. */
export interface OpenedAccount {
  readonly kind: AddressMethod['kind']
  /** When a device of the device list was last seen; undefined for an account without such a device. */
  readonly listedSeenAtMs: number | undefined
  /** When a device, a session or a sign-in of the account was last seen. */
  readonly seenAtMs: number
  readonly hasOtherMethod: boolean
  /** When its owner last refused a sign-in by this address, if they did. */
  readonly refusedAtMs: number | undefined
}

export type CodeEffect =
  /** Signs in to the account. */
  | { readonly kind: 'open' }
  /** Waits; unanswered, it then signs in to the account, or to a fresh one. */
  | { readonly kind: 'wait'; readonly opens: Opens }
  /** Signs in to a fresh account, which the address moves to; the old account is closed where nothing else opens it. */
  | { readonly kind: 'move'; readonly closes: boolean }
  /** The owner said no: until then nothing. */
  | { readonly kind: 'refused'; readonly untilMs: number }

/** The effect of an unanswered wait. */
export type Opens = 'account' | 'fresh-account'

/** `waitMs` is how long a sign-in waits; 0 where none does. */
export function effectOfCode(account: OpenedAccount, waitMs: number, nowMs: number): CodeEffect {
  const { kind, listedSeenAtMs, seenAtMs, hasOtherMethod, refusedAtMs } = account
  if (refusedAtMs !== undefined && isRefusalKept(refusedAtMs, nowMs)) {
    const untilMs = refusedAtMs + REFUSED_MS
    return nowMs < untilMs ? { kind: 'refused', untilMs } : { kind: 'move', closes: false }
  }
  if (kind === 'phone' && seenAtMs + SILENT_MS <= nowMs) {
    if (!hasOtherMethod) return { kind: 'move', closes: true }
    return waitMs === 0 ? { kind: 'move', closes: false } : { kind: 'wait', opens: 'fresh-account' }
  }
  return isAsked(listedSeenAtMs, waitMs, nowMs) ? { kind: 'wait', opens: 'account' } : { kind: 'open' }
}

/**
 * The effect of a token by which the operator's backend signs in a user that it has made. It is as good as a code, and waits as one;
 * but an answer of no keeps it out for a time only, since there is no address that another person could have.
 */
export function effectOfToken(
  { listedSeenAtMs, refusedAtMs }: Pick<OpenedAccount, 'listedSeenAtMs' | 'refusedAtMs'>,
  waitMs: number,
  nowMs: number,
): Exclude<CodeEffect, { kind: 'move' }> {
  const untilMs = refusedAtMs === undefined ? nowMs : refusedAtMs + REFUSED_MS
  if (nowMs < untilMs) return { kind: 'refused', untilMs }
  return isAsked(listedSeenAtMs, waitMs, nowMs) ? { kind: 'wait', opens: 'account' } : { kind: 'open' }
}

/** Whether a device of the list is there to be asked. */
export function isAsked(listedSeenAtMs: number | undefined, waitMs: number, nowMs: number): boolean {
  return waitMs > 0 && listedSeenAtMs !== undefined && nowMs < listedSeenAtMs + ASKED_MS
}

/** Whether a refusal still counts, while its address may not sign in and then while it moves to a fresh account. */
function isRefusalKept(refusedAtMs: number, nowMs: number): boolean {
  return nowMs < refusedAtMs + REFUSAL_KEPT_MS
}

export interface Wait {
  /** When the first of the sign-ins began that followed each other without an end. */
  readonly firstBeganAtMs: number
  readonly beganAtMs: number
  readonly endsAtMs: number
}

/**
 * The wait of a sign-in that takes the place of `replaced`, if one waits. It begins anew, since the first one may be the
 * thief's; but repeated sign-ins keep the owner out for twice the time at most.
 */
export function nextWait(replaced: Wait | undefined, waitMs: number, nowMs: number): Wait {
  if (replaced === undefined || isPast(replaced, nowMs))
    return { firstBeganAtMs: nowMs, beganAtMs: nowMs, endsAtMs: nowMs + waitMs }
  const { firstBeganAtMs } = replaced
  const endsAtMs = Math.min(nowMs + waitMs, firstBeganAtMs + 2 * waitMs)
  // Not sooner, though an operator has made waits shorter since.
  return { firstBeganAtMs, beganAtMs: nowMs, endsAtMs: Math.max(endsAtMs, replaced.endsAtMs) }
}

/** A sign-in that waits, or has waited. */
export interface WaitingSignIn extends Wait {
  readonly userId: UserId
  /** The address of the right code; undefined for a token of the operator's backend. */
  readonly address?: Address
  /** It becomes a login method too, once the sign-in opens the account. */
  readonly identity?: SocialIdentity
  /** The name for a fresh account. */
  readonly displayName: string
  /** For texts to the user: an RFC 4647 range list. */
  readonly language: string
  /** As `shownAgent` has it. */
  readonly userAgent: string
  /** The prefix of the network, sealed. */
  readonly network?: Uint8Array
  readonly opens: Opens
  /** How often the owner was told. */
  readonly noticeCount: number
  readonly answer?: 'approved' | 'refused'
  readonly answeredAtMs?: number
  /** The session that it opened. */
  readonly sessionId?: Uint8Array
  readonly openedAtMs?: number
}

/** By what a sign-in is asked for: a code to an address, or a token of the operator's backend. */
export type AskedBy = AddressMethod['kind'] | 'server'

export function askedBy({ address }: Pick<WaitingSignIn, 'address'>): AskedBy {
  return address?.kind ?? 'server'
}

/** The state of a waiting sign-in, as its client learns it. */
export type Outcome =
  | { readonly kind: 'waits' }
  | { readonly kind: 'opens'; readonly opens: Opens }
  | { readonly kind: 'opened'; readonly sessionId: Uint8Array; readonly opens: Opens }
  | { readonly kind: 'refused'; readonly untilMs: number }

export function outcomeOf(signIn: WaitingSignIn, nowMs: number): Outcome {
  const { answer, answeredAtMs = 0, sessionId } = signIn
  const opens = answer === 'approved' ? 'account' : signIn.opens
  if (sessionId !== undefined) return { kind: 'opened', sessionId, opens }
  if (answer === 'refused') return { kind: 'refused', untilMs: answeredAtMs + REFUSED_MS }
  if (answer === 'approved') return { kind: 'opens', opens }
  return isPast(signIn, nowMs) ? { kind: 'opens', opens } : { kind: 'waits' }
}

/** Whether its owner may answer it: until it is in. */
export function isAnswerable(signIn: WaitingSignIn, nowMs: number): boolean {
  return signIn.answer === undefined && signIn.sessionId === undefined && nowMs < keptUntilMs(signIn)
}

/** Whether the time for an answer has passed. */
function isPast({ endsAtMs }: Wait, nowMs: number): boolean {
  return nowMs >= endsAtMs
}

/** Whether the owner is to be told now, once more. */
export function isNoticeDue(signIn: WaitingSignIn, nowMs: number): boolean {
  const noticeAtMs = nextNoticeAtMs(signIn)
  return (
    isAnswerable(signIn, nowMs) && noticeAtMs !== undefined && noticeAtMs <= nowMs && !isPast(signIn, nowMs)
  )
}

/** The time of its next step: a notice to the owner, the end of the wait, or the end of the row. */
export function dueAtMs(signIn: WaitingSignIn, nowMs: number): number {
  const { answer, endsAtMs } = signIn
  if (answer !== undefined || isPast(signIn, nowMs)) return keptUntilMs(signIn)
  return nextNoticeAtMs(signIn) ?? endsAtMs
}

/** Until when the waiting client may fetch the outcome. */
export function keptUntilMs({ endsAtMs, answeredAtMs, openedAtMs }: WaitingSignIn): number {
  if (openedAtMs !== undefined) return openedAtMs + REPEATED_MS
  return (answeredAtMs ?? endsAtMs) + FETCHED_MS
}

function nextNoticeAtMs({ beganAtMs, endsAtMs, noticeCount }: WaitingSignIn): number | undefined {
  if (noticeCount >= NOTICES) return undefined
  return beganAtMs + Math.floor(((endsAtMs - beganAtMs) * noticeCount) / NOTICES)
}

/** A device of the list that was seen since is asked. */
export const ASKED_MS = 30 * 86_400_000
/** A number that was away for so long may have another owner. */
export const SILENT_MS = 180 * 86_400_000
/** An address signs in to nothing for so long after its owner refused a sign-in by it. */
export const REFUSED_MS = 7 * 86_400_000
/** After that, an address that was never tried again is its account's as before. */
export const REFUSAL_KEPT_MS = REFUSED_MS + 30 * 86_400_000
/** Tells of one wait, the first at its beginning. */
const NOTICES = 3
/** The waiting client may fetch the outcome for so long. */
const FETCHED_MS = 7 * 86_400_000
/** A reply that was lost can be fetched again for so long. */
const REPEATED_MS = 86_400_000
