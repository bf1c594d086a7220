/**
 * Every rate of contract 8 by its name, each a token bucket; `CALLSIGN_RATES` changes their counts. The limited
 * operation says what it counts by. Codes and SMS have rules of their own (`code-counts.ts`, `sms-budget.ts`).
 */

import type { BucketRate } from './token-bucket.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

export const USUAL_RATES = {
  /** By address: anything but the log's files, lookups among it, the log's files. */
  request: rate(1_200, MINUTE_MS, 400),
  lookup: rate(120, MINUTE_MS),
  'log-files': rate(60_000, MINUTE_MS),
  /** By user: anything authenticated. */
  authenticated: rate(600, MINUTE_MS, 200),
  /** By address: `login` and `resend-otp` together; `verify-login` and `verify` together. */
  login: rate(30, 10 * MINUTE_MS),
  'login-day': rate(200, DAY_MS),
  verify: rate(60, 10 * MINUTE_MS),
  social: rate(30, 10 * MINUTE_MS),
  /** By address: options of passkeys, and signing in by one. */
  passkey: rate(120, 10 * MINUTE_MS),
  /** By address: asking what came of a sign-in that waits. */
  'login-waiting': rate(300, 10 * MINUTE_MS),
  'refresh-token': rate(120, MINUTE_MS),
  'refresh-token-session': rate(30, HOUR_MS),
  /** By user: by id and by token together. */
  'friend-request': rate(20, HOUR_MS),
  'friend-request-day': rate(50, DAY_MS),
  search: rate(10, HOUR_MS),
  'search-day': rate(30, DAY_MS),
  block: rate(60, HOUR_MS),
  /** By user. */
  'contact-name': rate(120, HOUR_MS),
  'share-token-resolve-address': rate(60, HOUR_MS),
  'share-token-resolve': rate(60, HOUR_MS),
  'share-token-unknown': rate(10, HOUR_MS),
  'share-token-create': rate(20, DAY_MS),
  'call-start': rate(20, 10 * MINUTE_MS),
  'call-start-day': rate(200, DAY_MS),
  /** By caller and callee, while the callee does not answer. */
  'call-ring': rate(5, 10 * MINUTE_MS),
  'call-invite': rate(60, 10 * MINUTE_MS),
  /** By device: `keys` and `invite` together. */
  'call-keys': rate(12, MINUTE_MS),
  /** By user and call. */
  'request-rejoin': rate(6, MINUTE_MS),
  credentials: rate(30, 10 * MINUTE_MS),
  'public-keys': rate(120, MINUTE_MS),
  /** Ids of users that the asker may not read, or that do not exist. */
  'public-keys-unavailable': rate(600, HOUR_MS),
  'register-device': rate(10, DAY_MS),
  /** Everything that changes a profile. */
  profile: rate(20, HOUR_MS),
  /** By user: exports of an account. */
  export: rate(5, DAY_MS),
  /** By server key: anything by the server API. */
  'server-key': rate(50, SECOND_MS, 100),
  /** By user: tokens that sign them in. */
  'server-sign-in': rate(10, MINUTE_MS),
  /** By user: tokens for the operator's own API. */
  'user-token': rate(60, MINUTE_MS),
  /** By user who reports. */
  report: rate(20, DAY_MS),
  /** By address. */
  'failed-connect': rate(30, 10 * SECOND_MS),
} as const satisfies Readonly<Record<string, BucketRate>>

export type RateName = keyof typeof USUAL_RATES
export type Rates = Readonly<Record<RateName, BucketRate>>

export const RATE_NAMES = Object.keys(USUAL_RATES) as readonly RateName[]

/** How many times the usual count a rate may be: more would be none. */
export const RATE_FACTOR_MAX = 100

/** The usual rates with other counts; bursts grow and shrink along. */
export function ratesWith(counts: Readonly<Partial<Record<RateName, number>>>): Rates {
  const changed = Object.entries(counts).map(([name, count]) => {
    const usual = USUAL_RATES[name as RateName]
    const burst = Math.max(1, Math.round((usual.burst * count) / usual.count))
    return [name, { ...usual, count, burst }]
  })
  return { ...USUAL_RATES, ...Object.fromEntries(changed) }
}

function rate(count: number, perMs: number, burst = count): BucketRate {
  return { count, perMs, burst }
}
