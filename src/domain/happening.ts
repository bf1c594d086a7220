/**
 * Facts about the store's changes, as data: a change reports them, and subscribers receive them once it is durable,
 * in the order of the changes. Messages to the outside world are rows of the outbox instead.
 */

import type { CheckedCode } from './accounts/code-check.ts'
import type { CodeTry } from './accounts/guessing.ts'
import type { SmsStop } from './accounts/sms-budget.ts'
import type { DeviceId, UserId } from './ids.ts'
import type { Lane } from './messages/outbox-message.ts'

export type Happening =
  /** A sign-in session ended, for whatever reason. */
  | { readonly kind: 'session-ended'; readonly userId: UserId; readonly sessionId: Uint8Array }
  /** The device has no session left. */
  | { readonly kind: 'signed-out'; readonly userId: UserId; readonly deviceId: DeviceId }
  | { readonly kind: 'device-removed'; readonly userId: UserId; readonly deviceId: DeviceId }
  /** A new device list lets the device do more or less than before. */
  | {
      readonly kind: 'restriction-changed'
      readonly userId: UserId
      readonly deviceId: DeviceId
      readonly isRestricted: boolean
    }
  /** `userId` blocked `otherId`. */
  | { readonly kind: 'blocked'; readonly userId: UserId; readonly otherId: UserId }
  /** The user asked for the account's deletion; it can be restored for seven days. */
  | { readonly kind: 'account-ended'; readonly userId: UserId }
  | { readonly kind: 'account-suspended'; readonly userId: UserId }
  /** Messages were added to the device's inbox. */
  | { readonly kind: 'inbox-news'; readonly userId: UserId; readonly deviceId: DeviceId }
  /** The inbox dropped a message that its device never settled. */
  | { readonly kind: 'inbox-dropped'; readonly reason: 'full' | 'expired' }
  /** Messages were added to the outbox; said once for each lane and change. `firstKey` is their first row. */
  | { readonly kind: 'outbox-news'; readonly lane: Lane; readonly firstKey: Uint8Array }
  /** Events wait for an endpoint of webhooks, or something else about it has changed; said once for each change. */
  | { readonly kind: 'webhook-news'; readonly endpointId: bigint }
  /** The oldest events of an endpoint have died, since too many wait; said once for each change. */
  | { readonly kind: 'webhooks-crowded'; readonly endpointId: bigint }
  /** A code waits in the outbox for the operator's login check. */
  | { readonly kind: 'code-to-check'; readonly code: CheckedCode }
  | { readonly kind: 'code-tried'; readonly tried: CodeTry }
  /** Strangers have begun to guess codes. */
  | { readonly kind: 'codes-guessed' }
  /** A paid message was asked for and not sent, since messages to its number are stopped. */
  | { readonly kind: 'sms-refused'; readonly stop: SmsStop }
  /** A passkey's count of signatures went back: it may have been copied. */
  | { readonly kind: 'passkey-counter-back'; readonly userId: UserId }
  /** The user's badge may show another number. */
  | { readonly kind: 'badge-changed'; readonly userId: UserId }

export type HappeningOf<Kind extends Happening['kind']> = Extract<Happening, { readonly kind: Kind }>
