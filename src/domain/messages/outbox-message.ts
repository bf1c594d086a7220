/** Messages from the process to a person or another service: kept in the outbox until sent, refused or too late. */

import type { CodeCheck } from '../accounts/code-check.ts'
import type { MethodKind } from '../accounts/login-method.ts'
import type { PushTokens } from '../devices/device.ts'
import type { DeviceId, UserId } from '../ids.ts'
import type { Notice } from './notice.ts'

/** The content of a mail or short message; its words are chosen when it is sent. */
export type Letter =
  | {
      readonly kind: 'otp'
      readonly otp: string
      readonly lifetimeS: number
      /** The code adds the address to an account, perhaps not its reader's. */
      readonly binds: boolean
    }
  /** To the owner of an address that another user tried to bind. */
  | { readonly kind: 'address-tried' }
  /** To an address that is no longer the account's. */
  | { readonly kind: 'address-replaced' }
  | { readonly kind: 'login-method-added'; readonly method: MethodKind }
  | { readonly kind: 'login-method-removed'; readonly method: MethodKind }
  | { readonly kind: 'primary-method-changed' }
  | { readonly kind: 'session-started'; readonly userAgent: string; readonly network?: string }
  /** To the owner of a session without a device, which nothing could be pushed to. */
  | { readonly kind: 'session-ending'; readonly userAgent: string; readonly endsAtMs: number }
  /** A sign-in waits for the owner's answer, for so many hours. */
  | {
      readonly kind: 'sign-in-waiting'
      readonly hours: number
      readonly userAgent: string
      readonly network?: string
    }
  /** An address of this kind signs in to another account now. */
  | { readonly kind: 'login-method-lost'; readonly method: 'email' | 'phone' }
  /** Codes for this address are stopped for a day: too many wrong ones were tried. */
  | { readonly kind: 'codes-stopped' }
  | { readonly kind: 'erasure-planned'; readonly graceDays: number }

export type OutboxMessage =
  | {
      readonly channel: 'mail' | 'sms'
      readonly to: string
      readonly language: string
      readonly letter: Letter
      /** The operator's login check is asked first, and may keep it from leaving. */
      readonly check?: CodeCheck
      /** Not sent after that, milliseconds since 1970. */
      readonly expiresAtMs: number
    }
  | {
      readonly channel: 'push'
      readonly userId: UserId
      readonly deviceId: DeviceId
      readonly notice: Notice
      readonly expiresAtMs: number
      /** Whose tokens the device had when it was written. */
      readonly provider: PushProvider
      /** Set with the last push to a device, whose tokens may be gone before it leaves. */
      readonly lastTokens?: PushTokens
    }
  /** Has Apple forget the user's consent, which account deletion must (contract 2.10). */
  | {
      readonly channel: 'apple'
      readonly clientId: string
      readonly refreshToken: string
      readonly expiresAtMs: number
    }

/** The ways by which a message leaves. */
export type Channel = OutboxMessage['channel']

export type PushProvider = 'apns' | 'fcm' | 'webpush'

/**
 * Whom messages wait for. Each has its own outbox, so that one that is down holds up no other. Rings and their
 * ends have lanes of their own: a ring that waits behind other messages is missed.
 */
export const LANES = [
  'mail',
  'sms',
  'apns',
  'fcm',
  'webpush',
  'apple',
  'apns-calls',
  'fcm-calls',
  'webpush-calls',
] as const

export type Lane = (typeof LANES)[number]

export function laneOf(message: OutboxMessage): Lane {
  if (message.channel !== 'push') return message.channel
  const { provider, notice } = message
  return RINGING.has(notice.kind) ? `${provider}-calls` : provider
}

export function channelOf(lane: Lane): Channel {
  return lane === 'mail' || lane === 'sms' || lane === 'apple' ? lane : 'push'
}

export function isOfCalls(lane: Lane): boolean {
  return lane.endsWith('-calls')
}

const RINGING: ReadonlySet<Notice['kind']> = new Set([
  'call_invitation',
  'call_cancelled',
  'call_answered_elsewhere',
  'call_ended',
])
