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
  /** Those of IPv6 around the networks, which slow no request that is about this user (`domain/network.ts`). */
  readonly prefixes: readonly KnownPlace[]
  readonly sessions: readonly KnownPlace[]
}

export const NOTHING_KNOWN: KnownSignIns = { networks: [], prefixes: [], sessions: [] }

/** Whether noting the places again would change anything that matters. */
export function areNoted(
  places: readonly KnownPlace[],
  digests: readonly Uint8Array[],
  nowMs: number,
): boolean {
  return digests.every(digest =>
    places.some(([each, seenAtMs]) => isSame(each, digest) && Math.abs(nowMs - seenAtMs) < NOTED_MS),
  )
}

export function isKnown(places: readonly KnownPlace[], digest: Uint8Array, nowMs: number): boolean {
  return places.some(([each, seenAtMs]) => isSame(each, digest) && nowMs < seenAtMs + KNOWN_MS)
}

/** The places with these, seen now; beyond the bound those seen longest ago go. */
export function noted(
  places: readonly KnownPlace[],
  digests: readonly Uint8Array[],
  nowMs: number,
): readonly KnownPlace[] {
  const others = places.filter(
    ([each, seenAtMs]) => nowMs < seenAtMs + KNOWN_MS && !digests.some(digest => isSame(each, digest)),
  )
  return [...others, ...digests.map(digest => [digest, nowMs] as const)].slice(-PLACES_MAX)
}

/** When nothing in it matters any more, milliseconds since 1970. */
export function knownEndMs({ networks, prefixes, sessions }: KnownSignIns): number {
  return Math.max(0, ...[...networks, ...prefixes, ...sessions].map(([, seenAtMs]) => seenAtMs + KNOWN_MS))
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0
}

/** 90 days. */
const KNOWN_MS = 90 * 86_400_000
/** Within a day a place is written once, however often its user comes. */
const NOTED_MS = 86_400_000
/** Networks, prefixes around them, and sessions; a phone on the move sees some ten networks a month. */
const PLACES_MAX = 24
