/** Letters in words: which text of `texts.ts` each kind of letter is, by mail and by SMS. */

import type { Letter } from '../domain/messages/outbox-message.ts'
import {
  addressChangedNotice,
  addressTriedNotice,
  bindingMail,
  bindingSms,
  codesStoppedNotice,
  erasureNotice,
  type Language,
  type MailText,
  methodAddedNotice,
  methodLostNotice,
  methodRemovedNotice,
  otpMail,
  otpSms,
  primaryChangedNotice,
  sessionEndingNotice,
  sessionStartedNotice,
  signInWaitingNotice,
} from './texts.ts'

export interface LetterSettings {
  readonly appName: string
  /** The domain that codes by SMS are bound to. */
  readonly domain: string
  readonly retrieverHash?: string
}

export function mailTextOf(letter: Letter, language: Language, { appName }: LetterSettings): MailText {
  switch (letter.kind) {
    case 'otp':
      return (letter.binds ? bindingMail : otpMail)(language, {
        appName,
        code: letter.otp,
        minutes: Math.floor(letter.lifetimeS / 60),
      })
    case 'address-tried':
      return addressTriedNotice(language, { appName })
    case 'address-replaced':
      return addressChangedNotice(language, { appName })
    case 'login-method-added':
      return methodAddedNotice(language, { appName, kind: letter.method })
    case 'login-method-removed':
      return methodRemovedNotice(language, { appName, kind: letter.method })
    case 'primary-method-changed':
      return primaryChangedNotice(language, { appName })
    case 'session-started':
      return sessionStartedNotice(language, { ...letter, appName })
    case 'session-ending':
      return sessionEndingNotice(language, { ...letter, appName })
    case 'codes-stopped':
      return codesStoppedNotice(language, { appName })
    case 'sign-in-waiting':
      return signInWaitingNotice(language, { ...letter, appName })
    case 'login-method-lost':
      return methodLostNotice(language, { appName, kind: letter.method })
    case 'erasure-planned':
      return erasureNotice(language, { appName, days: letter.graceDays })
  }
}

export function smsTextOf(letter: Letter, language: Language, settings: LetterSettings): string {
  const { appName, domain, retrieverHash } = settings
  if (letter.kind !== 'otp') return mailTextOf(letter, language, settings).text
  const hash = retrieverHash === undefined ? {} : { retrieverHash }
  return (letter.binds ? bindingSms : otpSms)(language, { appName, code: letter.otp, domain, ...hash })
}
