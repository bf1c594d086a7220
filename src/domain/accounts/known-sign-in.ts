/**
 * Where a user has signed in from lately (contract 2.2): networks, and sessions by whose refresh tokens the user is known
 * again. Requests for a code that come from there have sends and tries that no stranger can use up (NIST SP 800-63B,
 * section 3.2.2, allows for addresses that a subscriber has signed in from before).
 *
 * Kept are keyed hashes alone: a stolen store tells neither a network nor a session.
 */

/** A code's asker: holds a refresh token of the account, comes from one of its networks, or is new. */
export type Asker = 'token' | 'network' | 'stranger'

/** A keyed hash, 16 bytes, and when it was last seen. */
export type KnownPlace = readonly [digest: Uint8Array, seenAtMs: number]

export interface KnownSignIns {
  /** Seen longest ago first. */
  readonly networks: readonly KnownPlace[]
  readonly sessions: readonly KnownPlace[]
}

export const NOTHING_KNOWN: KnownSignIns = { networks: [], sessions: [] }

/** Whether noting the place again would change anything that matters. */
export function isNoted(places: readonly KnownPlace[], digest: Uint8Array, nowMs: number): boolean {
  return places.some(([each, seenAtMs]) => isSame(each, digest) && Math.abs(nowMs - seenAtMs) < NOTED_MS)
}

export function isKnown(places: readonly KnownPlace[], digest: Uint8Array, nowMs: number): boolean {
  return places.some(([each, seenAtMs]) => isSame(each, digest) && nowMs < seenAtMs + KNOWN_MS)
}

/** The places with this one, seen now; beyond the bound the one seen longest ago goes. */
export function noted(
  places: readonly KnownPlace[],
  digest: Uint8Array,
  nowMs: number,
): readonly KnownPlace[] {
  const others = places.filter(([each, seenAtMs]) => !isSame(each, digest) && nowMs < seenAtMs + KNOWN_MS)
  return [...others, [digest, nowMs] as const].slice(-PLACES_MAX)
}

/** When nothing in it matters any more, milliseconds since 1970. */
export function knownEndMs({ networks, sessions }: KnownSignIns): number {
  return Math.max(0, ...[...networks, ...sessions].map(([, seenAtMs]) => seenAtMs + KNOWN_MS))
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0
}

/** 90 days. */
const KNOWN_MS = 90 * 86_400_000
/** Within a day a place is written once, however often its user comes. */
const NOTED_MS = 86_400_000
/** Networks, and sessions; a phone on the move sees some ten networks a month. */
const PLACES_MAX = 24
