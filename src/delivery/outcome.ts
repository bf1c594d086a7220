/**
 * What became of one message that was handed to a sender. The senders hold no queue and try at most what one session's
 * failure costs: an outbox calls them, and acts on this.
 *
 * Choice: where the other side refuses our own credentials the outcome is `retry`, not `refused`. The message is
 * sound, an operator can mend the rest, and the outbox bounds how often and how long it tries.
 */

export type DeliveryOutcome =
  | {
      readonly kind: 'sent'
      /** APNs only: the environment that knew the token. Not always the one asked for. */
      readonly environment?: ApnsEnvironment
    }
  | Retry
  /** It would be refused again: a bad recipient, a message the other side calls wrong. */
  | { readonly kind: 'refused'; readonly reason: string }
  /**
   * Push only: the token leads to no device any more. `sinceMs`, milliseconds since 1970, is when APNs saw that; a
   * token registered later stays.
   */
  | { readonly kind: 'token-gone'; readonly reason: string; readonly sinceMs?: number }
  /** APNs only: no environment knows the token. It is gone, or our key is of another app. */
  | { readonly kind: 'token-unknown'; readonly reason: string }

/** The message has become pointless, or its device can't be reached: no sender was asked. */
export interface Skipped {
  readonly kind: 'skipped'
}

/** The network, the other side's load or our credentials. */
export interface Retry {
  readonly kind: 'retry'
  readonly reason: string
  /** How long the other side asks us to wait. */
  readonly afterMs?: number
  /** Other messages may get through now; when absent, none would. */
  readonly isOfMessage?: true
  /** Our credentials are refused: to try again at once would not help. */
  readonly isOfAccount?: true
}

export type ApnsEnvironment = 'production' | 'development'

/**
 * `word` when it is a short plain word such as `Unregistered`, else `fallback`: what another server calls its reason
 * goes into our log only when it cannot hold an address, a code or a token.
 */
export function reasonWord(word: unknown, fallback: string): string {
  return typeof word === 'string' && REASON_FORM.test(word) ? word : fallback
}

const REASON_FORM = /^[A-Za-z]+(?:[_-][A-Za-z]+){0,7}$/
