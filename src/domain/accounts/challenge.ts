/**
 * Challenges and the codes behind them (contract 2.2, 2.4). A code was sent to an address for one purpose; up to
 * three challenges refer to it, each known only to its asker and each with five tries of its own. So an attacker who
 * knows an address gets challenges beside the owner's, but can neither read nor use up the owner's.
 *
 * A fourth challenge displaces one of the same kind of asker, so strangers displace no known asker. A network that
 * holds some loses one of its own, so an attacker in one place displaces only themselves. Among several the first and
 * the last stay: the first is the owner's when an attacker comes later, the last is what an owner works with who
 * asked again and again.
 *
 * Nor does the cooldown that strangers have raised hold for an asker whom the account knows: theirs rises by their
 * own sends. A code that is still alive is sent again, the same for the same time, where the limits allow no new one.
 *
 * Pure: each function takes a state and returns the next. `src/store/accounts/challenge-store.ts` applies it.
 */

import type { MethodId, UserId } from '../ids.ts'
import type { AddressMethod, SocialMethod } from './account.ts'
import { type CodeCounts, missingForChallenge, missingForSend, stopLeftMs } from './code-counts.ts'
import type { Asker } from './known-sign-in.ts'

/** An address as its parser made it. Codes go to its `key`. */
export type Address = Pick<AddressMethod, 'kind' | 'key' | 'shown'>

/** An identity as its provider proved it. */
export type SocialIdentity = Omit<SocialMethod, 'id' | 'addedAtMs' | 'lastUsedAtMs'>

/** The effect of an accepted code. */
export type ChallengePurpose =
  /** Opens the account of the address, or makes one; the name is for a new one. */
  | { readonly kind: 'login'; readonly displayName?: string }
  /** The address becomes a login method of the user, in the place of the one that is named. */
  | {
      readonly kind: 'bind'
      readonly userId: UserId
      readonly replaces?: MethodId
      /** Another user's address: its owner hears of the attempt, and no code is sent. */
      readonly isTaken?: boolean
    }
  /** The identity becomes a login method of the user, who owns the address. */
  | { readonly kind: 'link'; readonly userId: UserId; readonly identity: SocialIdentity }
  /** The user, signed in, proves once more who they are. */
  | { readonly kind: 'step-up'; readonly userId: UserId }

export interface Challenge {
  /** 16 bytes; 22 base64url characters on the wire. */
  readonly id: Uint8Array
  readonly tries: number
  readonly purpose: ChallengePurpose
  readonly address: Address
  /** The asker's network: an IPv4 address or the /64 of an IPv6 address. */
  readonly network: string
  /** The message's language: an RFC 4647 range list. */
  readonly language: string
  /** How the account knew who asked; a stranger where it is left out. */
  readonly asker?: Asker
}

/** The last code that went to an address for a purpose. It is kept beyond its lifetime, since the cooldown rises. */
export interface Code {
  /** 16 bytes, new with each code. */
  readonly codeId: Uint8Array
  /** Made by `hashOtp`. */
  readonly hash: Uint8Array
  /** The code itself, sealed, for sending it again. */
  readonly sealed: Uint8Array
  readonly sentAtMs: number
  /** When the same code was last sent again. */
  readonly sentAgainAtMs?: number
  /** Those sends that each kind of known asker asked for. */
  readonly known?: Readonly<Partial<Record<KnownAsker, OwnSends>>>
  /** How often a code was sent since one was accepted, or since the sending paused. */
  readonly sendCount: number
  /** Tries by those who name the address instead of a challenge; in a network that the account knows, their own. */
  readonly triesByAddress: number
  readonly triesFromKnown?: number
  /** Set when a number's code went by mail: accepted, it says nothing about short messages. */
  readonly isByMail?: true
  /** Oldest first. */
  readonly challenges: readonly Challenge[]
}

type KnownAsker = Exclude<Asker, 'stranger'>

interface OwnSends {
  readonly sendCount: number
  readonly sentAtMs: number
}

/** The name a code is kept under. One address's codes for different purposes or users are independent. */
export function codeName({ kind, key }: Pick<Address, 'kind' | 'key'>, purpose: ChallengePurpose): string {
  const user = purpose.kind === 'login' ? '' : String(purpose.userId)
  return `${purpose.kind} ${user} ${kind}:${key}`
}

/** Whether the code can still be accepted. */
export function isAlive(code: Code, nowMs: number): boolean {
  return nowMs < code.sentAtMs + CODE_LIFETIME_MS
}

/** Milliseconds until the next message may be sent, as far as the last ones are concerned; 0 when it may now. */
export function cooldownLeftMs(code: Code | undefined, asker: Asker, nowMs: number): number {
  if (code === undefined) return 0
  const lastAtMs = code.sentAgainAtMs ?? code.sentAtMs
  if (asker === 'stranger') return Math.max(0, lastAtMs + cooldownMs(code.sendCount) - nowMs)
  const own = code.known?.[asker]
  const ownLeftMs = own === undefined ? 0 : own.sentAtMs + cooldownMs(own.sendCount) - nowMs
  return Math.max(0, ownLeftMs, lastAtMs + cooldownMs(1) - nowMs)
}

function cooldownMs(sendCount: number): number {
  return COOLDOWNS_MS[Math.min(sendCount, COOLDOWNS_MS.length) - 1]!
}

/** When the last code does not matter any more, milliseconds since 1970. */
export function codeEndMs(code: Code): number {
  return code.sentAtMs + CODE_KEPT_MS
}

/**
 * Whether the last code still matters. A code from further ahead than its lifetime was sent before the clock was set
 * back: it would stay good, and block new codes, for as long as the clock was wrong.
 */
export function isKept(code: Code, nowMs: number): boolean {
  return nowMs < codeEndMs(code) && code.sentAtMs < nowMs + CODE_LIFETIME_MS
}

export type SendDecision =
  | { readonly kind: 'send' }
  /** The code that is there does for this challenge too; nothing is sent. */
  | { readonly kind: 'share'; readonly code: Code }
  /** The code that is there is sent again, as it is; where it can't be opened, a new one has to wait. */
  | { readonly kind: 'again'; readonly sealed: Uint8Array; readonly waitMs: number }
  | { readonly kind: 'wait'; readonly code: 'RATE_LIMITED' | 'OTP_COOLDOWN'; readonly waitMs: number }

/** The state that a request for a code is decided by. */
export interface SendState {
  /** The last code for this address and purpose. */
  readonly code: Code | undefined
  readonly counts: CodeCounts
  readonly asker: Asker
  /** Whether nothing is sent to this address and so no limit of sending applies. */
  readonly isTest: boolean
}

/** Whether a request for a new challenge sends a code. Decision and answer are independent of the address's owner. */
export function decideBegin(state: SendState, nowMs: number): Exclude<SendDecision, { kind: 'again' }> {
  const { code, counts, asker, isTest } = state
  const stoppedMs = missingForChallenge(counts, asker, nowMs)
  if (stoppedMs > 0) return { kind: 'wait', code: 'RATE_LIMITED', waitMs: stoppedMs }
  const waitMs = isTest ? 0 : sendWaitMs(state, nowMs)
  if (waitMs === 0) return { kind: 'send' }
  return code !== undefined && isAlive(code, nowMs)
    ? { kind: 'share', code }
    : { kind: 'wait', code: 'RATE_LIMITED', waitMs }
}

/** Whether the holder of a challenge gets another code; it brings no new tries, so failures do not matter. */
export function decideResend(
  { code, counts, asker, isTest }: SendState,
  nowMs: number,
): Exclude<SendDecision, { kind: 'share' }> {
  const stoppedMs = stopLeftMs(counts, asker, nowMs)
  if (stoppedMs > 0) return { kind: 'wait', code: 'RATE_LIMITED', waitMs: stoppedMs }
  if (isTest) return { kind: 'send' }
  const cooldownMs = cooldownLeftMs(code, asker, nowMs)
  if (cooldownMs > 0) return { kind: 'wait', code: 'OTP_COOLDOWN', waitMs: cooldownMs }
  const waitMs = missingForSend(counts, asker, nowMs)
  if (waitMs === 0) return { kind: 'send' }
  return code !== undefined && isAlive(code, nowMs)
    ? { kind: 'again', sealed: code.sealed, waitMs }
    : { kind: 'wait', code: 'RATE_LIMITED', waitMs }
}

/** Milliseconds until a new code can be sent; 0 when it can now. */
export function sendWaitMs({ code, counts, asker }: Omit<SendState, 'isTest'>, nowMs: number): number {
  return Math.max(cooldownLeftMs(code, asker, nowMs), missingForSend(counts, asker, nowMs))
}

/** The code after a resend. Challenges keep the tries they have used. */
export function replaceCode(
  code: Code | undefined,
  made: Pick<Code, 'codeId' | 'hash' | 'sealed'>,
  asker: Asker,
  nowMs: number,
): Code {
  const known = knownAfter(code, asker, nowMs)
  return {
    ...made,
    sentAtMs: nowMs,
    sendCount: (code?.sendCount ?? 0) + 1,
    triesByAddress: code?.triesByAddress ?? 0,
    ...(code?.triesFromKnown === undefined ? {} : { triesFromKnown: code.triesFromKnown }),
    ...(known === undefined ? {} : { known }),
    challenges: code?.challenges ?? [],
  }
}

/** The code after it was sent again: as good as before, for as long as before. */
export function repeatCode(code: Code, asker: Asker, nowMs: number): Code {
  const known = knownAfter(code, asker, nowMs)
  const sent = { ...code, sentAgainAtMs: nowMs, sendCount: code.sendCount + 1 }
  return known === undefined ? sent : { ...sent, known }
}

function knownAfter(code: Code | undefined, asker: Asker, nowMs: number): Code['known'] | undefined {
  if (asker === 'stranger') return code?.known
  const sendCount = (code?.known?.[asker]?.sendCount ?? 0) + 1
  return { ...code?.known, [asker]: { sendCount, sentAtMs: nowMs } }
}

/** The code with one more challenge, and the challenge that had to go for it. */
export function addChallenge(
  code: Code,
  challenge: Challenge,
): { readonly code: Code; readonly displaced: Challenge | undefined } {
  const { challenges } = code
  const alike = challenges.filter(each => askerOf(each) === askerOf(challenge))
  const displaced = alike.length < CHALLENGES_MAX ? undefined : displacedBy(challenge, alike)
  const kept = challenges.filter(each => each !== displaced)
  // An asker by address holds no challenge, so only a new one brings new tries.
  const tries = askerOf(challenge) === 'stranger' ? { triesByAddress: 0 } : { triesFromKnown: 0 }
  return { code: { ...code, ...tries, challenges: [...kept, challenge] }, displaced }
}

export function askerOf({ asker = 'stranger' }: Pick<Challenge, 'asker'>): Asker {
  return asker
}

function displacedBy({ network }: Challenge, challenges: readonly Challenge[]): Challenge | undefined {
  const own = challenges.filter(each => each.network === network)
  const candidates = own.length > 0 ? own : challenges
  return candidates[1] ?? candidates[0]
}

/** Tries a code: a challenge's holder, or an asker who names the address. */
export type Trier =
  | { readonly kind: 'holder'; readonly challengeId: Uint8Array }
  | { readonly kind: 'by-address'; readonly asker: Asker }

/** The code with one more try: counted before it is compared. */
export function countTry(code: Code, trier: Trier): Code {
  if (trier.kind === 'holder') {
    const tried = findChallenge(code, trier.challengeId)
    const challenges = code.challenges.map(each =>
      each === tried ? { ...each, tries: each.tries + 1 } : each,
    )
    return { ...code, challenges }
  }
  return trier.asker === 'stranger'
    ? { ...code, triesByAddress: code.triesByAddress + 1 }
    : { ...code, triesFromKnown: (code.triesFromKnown ?? 0) + 1 }
}

export function triesLeft(code: Code, trier: Trier): number {
  if (trier.kind === 'by-address') {
    const tries = trier.asker === 'stranger' ? code.triesByAddress : (code.triesFromKnown ?? 0)
    return Math.max(0, TRIES_MAX - tries)
  }
  const challenge = findChallenge(code, trier.challengeId)
  return challenge === undefined ? 0 : TRIES_MAX - challenge.tries
}

export function findChallenge(code: Code, challengeId: Uint8Array): Challenge | undefined {
  return code.challenges.find(({ id }) => Buffer.compare(id, challengeId) === 0)
}

/** The code without the challenges of one kind of asker. */
export function withoutAsker(code: Code, asker: Asker): Code {
  return { ...code, challenges: code.challenges.filter(each => askerOf(each) !== asker) }
}

/** The code without the challenges that have no try left. */
export function withoutDead(code: Code): Code {
  return { ...code, challenges: code.challenges.filter(({ tries }) => tries < TRIES_MAX) }
}

/**
 * What a code does for one who names the address: what its challenge says, or where there are several only what all of
 * them agree on, since some may be another's.
 */
export function purposeByAddress(code: Code): ChallengePurpose {
  const [only, ...others] = code.challenges
  return only !== undefined && others.length === 0 ? only.purpose : { kind: 'login' }
}

/** Milliseconds that a code can be accepted after it was sent. */
export const CODE_LIFETIME_MS = 300_000
/** Tries of one challenge. */
export const TRIES_MAX = 5
/** Challenges of one kind of asker that refer to one code. */
const CHALLENGES_MAX = 3
export const CHALLENGE_ID_BYTES = 16
/** After the first code, the second, the third and every later one. */
const COOLDOWNS_MS: readonly number[] = [60_000, 120_000, 300_000, 600_000]
/** `Choice:` an hour without a code, and the cooldown begins at its first step again. */
const CODE_KEPT_MS = 3_600_000
