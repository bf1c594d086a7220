/**
 * Which headers of a SEND go on to its receivers: all but those that the protocol gives another meaning on the way,
 * that hold a secret, or that the server itself writes into a MESSAGE.
 */
import type { Headers } from './frame.ts'

/** Whether the header of that (unescaped) name stays with us. */
export function isReservedHeader(name: string): boolean {
  if (RESERVED.has(name)) return true
  // Some clients trim what they receive, so a padded name would come out as the bare one; and a credential is one in
  // any spelling.
  const bare = name.trim()
  return RESERVED.has(bare) || SECRET.has(bare.toLowerCase())
}

/** The headers of a SEND that its MESSAGEs carry, in order, repeated ones included. */
export function userHeaders(headers: Headers): string[] {
  const kept: string[] = []
  for (let at = 0; at < headers.length; at += 2) {
    if (!isReservedHeader(headers[at]!)) kept.push(headers[at]!, headers[at + 1]!)
  }
  return kept
}

const RESERVED: ReadonlySet<string> = new Set([
  'receipt',
  'receipt-id',
  'transaction',
  'destination',
  'message-id',
  'subscription',
  'ack',
  'session',
  'redelivered',
  'content-length',
  // Ours in every MESSAGE of the application.
  'type',
  'timestamp',
  'expires',
])

const SECRET: ReadonlySet<string> = new Set([
  'login',
  'passcode',
  'authorization',
  'x-authorization',
  'token',
  'access-token',
])
