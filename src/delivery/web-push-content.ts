/**
 * Pushes in the form for browsers. A page's resources are out of reach of its service worker, so a push has its words in
 * the device's language. It has no key: the push service can't read it, but the page asks for the key anyway.
 */

import { createHash } from 'node:crypto'
import type { Device } from '../domain/devices/device.ts'
import type { Push } from './push.ts'
import { type PushContent, type PushMembers, withoutKey } from './push-content.ts'
import { PHONE_WORDS, pushWords } from './push-words.ts'
import { chooseLanguage, type Language } from './texts.ts'
import type { WebPush } from './web-push.ts'

/** Undefined for a device without a subscription. */
export function webPushOf(
  device: Device,
  { content, eventId, expiresAtMs }: Push,
  { appName, language: usual }: { readonly appName: string; readonly language: Language },
  nowMs: number,
): WebPush | undefined {
  const subscription = device.push?.webPush
  if (subscription === undefined) return undefined
  const language = chooseLanguage(device.info.locale, usual)
  const { callId } = content
  const { keyEpoch: _, ...members } = withoutKey(content.members)
  const shown = { title: appName, body: bodyOf(content, language), tag: callId ?? eventId }
  return {
    subscription,
    urgency: content.kind === 'alert' ? 'normal' : 'high',
    ttlSeconds: Math.max(0, Math.round((expiresAtMs - nowMs) / 1000)),
    ...(callId === undefined ? {} : { topic: topicOf(callId) }),
    payload: { ...members, ...shown, ...(content.kind === 'ring' ? buttons(language) : {}) },
  }
}

function bodyOf(content: PushContent, language: Language): string {
  if (content.kind !== 'silent') return pushWords(language, content.locKey, content.locArgs)
  const { reason, callerName, isContact } = content.members
  switch (reason) {
    case 'answered_elsewhere':
      return PHONE_WORDS.callsign_answered_elsewhere[language]
    case 'declined_elsewhere':
      return PHONE_WORDS.callsign_declined_elsewhere[language]
    case 'cancelled':
      return pushWords(language, isContact ? 'missed_call' : 'missed_call_stranger', [String(callerName)])
    default:
      return ENDED[language]
  }
}

function buttons(language: Language): Pick<PushMembers, 'answer' | 'decline'> {
  return { answer: PHONE_WORDS.callsign_answer[language], decline: PHONE_WORDS.callsign_decline[language] }
}

/** Says nothing of the call to the push service. */
function topicOf(callId: string): string {
  return createHash('sha256').update(callId).digest('base64url').slice(0, 22)
}

/** Phones show nothing then. */
const ENDED: Readonly<Record<Language, string>> = {
  en: 'The call has ended',
  vi: 'Cuộc gọi đã kết thúc',
  de: 'Der Anruf ist beendet',
}
