/** What leaves the process for a person or another service: kept in the outbox until it is sent, refused or too late. */

import type { PushTokens } from './device.ts'
import type { DeviceId, UserId } from './ids.ts'
import type { Notice } from './notice.ts'

/** What a mail or short message says; its words are chosen when it is sent. */
export type Letter =
  | {
      readonly kind: 'otp'
      readonly otp: string
      readonly lifetimeS: number
      /** The code adds the address to an account, which need not be that of who reads it. Absent in letters of before. */
      readonly binds?: boolean
    }
  /** To the owner of an address that somebody else tried to bind. */
  | { readonly kind: 'address-tried' }
  /** To an address that is no longer the account's. */
  | { readonly kind: 'address-replaced' }
  | { readonly kind: 'login-method-added'; readonly method: 'email' | 'phone' | 'social' }
  | { readonly kind: 'login-method-removed'; readonly method: 'email' | 'phone' | 'social' }
  | { readonly kind: 'primary-method-changed' }
  /** Codes for this address are stopped for a day: too many wrong ones were tried. */
  | { readonly kind: 'codes-stopped' }
  | { readonly kind: 'erasure-planned'; readonly graceDays: number }

export type Outgoing =
  | {
      readonly channel: 'mail' | 'sms'
      readonly to: string
      readonly language: string
      readonly letter: Letter
      /** Not sent after that, milliseconds since 1970. */
      readonly expiresAtMs: number
    }
  | {
      readonly channel: 'push'
      readonly userId: UserId
      readonly deviceId: DeviceId
      readonly notice: Notice
      readonly expiresAtMs: number
      /** Where it goes if the device has no tokens by then. Absent in messages of before, too. */
      readonly lastTokens?: PushTokens
    }
  /** Has Apple forget the user's consent, which account deletion must (contract 2.10). */
  | {
      readonly channel: 'apple'
      readonly clientId: string
      readonly refreshToken: string
      readonly expiresAtMs: number
    }

/** The ways by which a message leaves; each has its own outbox. */
export const CHANNELS = ['mail', 'sms', 'push', 'apple'] as const

export type Channel = (typeof CHANNELS)[number]
