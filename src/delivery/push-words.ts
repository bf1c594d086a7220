/**
 * The words of every push, in the languages there are. A phone looks them up in its own resources by `loc-key`
 * (`scripts/support/write-phone-words.ts` writes those from here); a browser has none, and gets the words themselves.
 *
 * `%@` is where an argument goes: any name or text, so no sentence may depend on its grammar.
 */

import type { Language } from './texts.ts'

/** Names the words of an alert. */
export type LocKey = keyof typeof PUSH_WORDS

type Words = Readonly<Record<Language, string>>

export const PUSH_WORDS = {
  call_invitation: { en: '%@ is calling', vi: '%@ đang gọi', de: '%@ ruft an' },
  // A stranger may have chosen a contact's name.
  call_invitation_stranger: {
    en: '%@, not a contact, is calling',
    vi: '%@ (không có trong danh bạ) đang gọi',
    de: '%@ (kein Kontakt) ruft an',
  },
  missed_call: { en: 'Missed call from %@', vi: 'Cuộc gọi nhỡ từ %@', de: 'Verpasster Anruf von %@' },
  missed_call_stranger: {
    en: 'Missed call from %@, not a contact',
    vi: 'Cuộc gọi nhỡ từ %@ (không có trong danh bạ)',
    de: 'Verpasster Anruf von %@ (kein Kontakt)',
  },
  newFriendRequested: {
    en: '%@ would like to be your contact',
    vi: '%@ muốn kết bạn với bạn',
    de: '%@ möchte dein Kontakt werden',
  },
  acceptFriendRequested: {
    en: '%@ is now your contact',
    vi: '%@ đã có trong danh bạ của bạn',
    de: '%@ ist jetzt dein Kontakt',
  },
  device_added: {
    en: 'A new device was added to your account: %@. If it was not you, remove it.',
    vi: 'Một thiết bị mới đã được thêm vào tài khoản của bạn: %@. Nếu không phải bạn thêm, hãy gỡ thiết bị đó.',
    de: 'Deinem Konto wurde ein neues Gerät hinzugefügt: %@. Wenn du das nicht warst, entferne es.',
  },
  device_list_reset: {
    en: 'The list of your devices was started over by this device: %@. If it was not you, secure your account now.',
    vi: 'Danh sách thiết bị của bạn đã được thiết bị này lập lại từ đầu: %@. Nếu không phải bạn, hãy bảo vệ tài khoản ngay.',
    de: 'Die Liste deiner Geräte wurde von diesem Gerät neu begonnen: %@. Wenn du das nicht warst, sichere jetzt dein Konto.',
  },
  device_push_lost: {
    en: 'Calls no longer wake this device of yours: %@. Open the app on it.',
    vi: 'Cuộc gọi không còn đánh thức thiết bị này của bạn: %@. Hãy mở ứng dụng trên thiết bị đó.',
    de: 'Anrufe wecken dieses Gerät von dir nicht mehr: %@. Öffne die App darauf.',
  },
  session_started: {
    en: 'There is a new sign-in to your account: %@. If it was not you, end that session.',
    vi: 'Có một lần đăng nhập mới vào tài khoản của bạn: %@. Nếu không phải bạn, hãy kết thúc phiên đó.',
    de: 'In deinem Konto gibt es eine neue Anmeldung: %@. Wenn du das nicht warst, beende diese Sitzung.',
  },
  // Nothing is known of where it was.
  session_started_unknown: {
    en: 'There is a new sign-in to your account. If it was not you, end that session.',
    vi: 'Có một lần đăng nhập mới vào tài khoản của bạn. Nếu không phải bạn, hãy kết thúc phiên đó.',
    de: 'In deinem Konto gibt es eine neue Anmeldung. Wenn du das nicht warst, beende diese Sitzung.',
  },
  session_ending: {
    en: 'You will soon be signed out on this device. Sign in again to keep receiving calls.',
    vi: 'Bạn sắp bị đăng xuất trên thiết bị này. Hãy đăng nhập lại để tiếp tục nhận cuộc gọi.',
    de: 'Du wirst auf diesem Gerät bald abgemeldet. Melde dich neu an, um weiter Anrufe zu erhalten.',
  },
  session_revoked: {
    en: 'You were signed out on this device',
    vi: 'Bạn đã bị đăng xuất trên thiết bị này',
    de: 'Du wurdest auf diesem Gerät abgemeldet',
  },
  sign_in_waiting: {
    en: 'Someone wants to sign in to your account: %@. Open the app to approve or refuse.',
    vi: 'Có người muốn đăng nhập vào tài khoản của bạn: %@. Hãy mở ứng dụng để chấp thuận hoặc từ chối.',
    de: 'Jemand möchte sich in deinem Konto anmelden: %@. Öffne die App, um zuzustimmen oder abzulehnen.',
  },
  sign_in_waiting_unknown: {
    en: 'Someone wants to sign in to your account. Open the app to approve or refuse.',
    vi: 'Có người muốn đăng nhập vào tài khoản của bạn. Hãy mở ứng dụng để chấp thuận hoặc từ chối.',
    de: 'Jemand möchte sich in deinem Konto anmelden. Öffne die App, um zuzustimmen oder abzulehnen.',
  },
  login_method_lost: {
    en: 'An address or phone number of yours now belongs to another account. You can no longer sign in with it.',
    vi: 'Một địa chỉ hoặc số điện thoại của bạn giờ thuộc về tài khoản khác. Bạn không còn đăng nhập bằng nó được nữa.',
    de: 'Eine Adresse oder Telefonnummer von dir gehört jetzt zu einem anderen Konto. Du kannst dich damit nicht mehr anmelden.',
  },
  // Sealed pushes, which only the app can open, show these where it does not.
  sealed_call: { en: 'Incoming call', vi: 'Cuộc gọi đến', de: 'Eingehender Anruf' },
  sealed_notice: {
    en: 'There is something new. Open the app to see it.',
    vi: 'Có thông báo mới. Hãy mở ứng dụng để xem.',
    de: 'Es gibt etwas Neues. Öffne die App, um es zu sehen.',
  },
} as const satisfies Record<string, Words>

/** Android's notification channels, which the SDK makes. Prefixed, so that they are none of the app's own. */
export const CHANNELS = {
  calls: 'callsign_calls',
  missed: 'callsign_missed',
  contacts: 'callsign_contacts',
  account: 'callsign_account',
  ongoing: 'callsign_ongoing',
} as const

/** Shown by the app on the phone, not named by a push: the channels, and the buttons and states of a call. */
export const PHONE_WORDS = {
  callsign_channel_calls: { en: 'Incoming calls', vi: 'Cuộc gọi đến', de: 'Eingehende Anrufe' },
  callsign_channel_missed: { en: 'Missed calls', vi: 'Cuộc gọi nhỡ', de: 'Verpasste Anrufe' },
  callsign_channel_contacts: { en: 'Contacts', vi: 'Danh bạ', de: 'Kontakte' },
  callsign_channel_account: {
    en: 'Account and security',
    vi: 'Tài khoản và bảo mật',
    de: 'Konto und Sicherheit',
  },
  callsign_channel_ongoing: { en: 'Ongoing calls', vi: 'Cuộc gọi đang diễn ra', de: 'Laufende Anrufe' },
  callsign_answered_elsewhere: {
    en: 'Answered on another device',
    vi: 'Đã trả lời trên thiết bị khác',
    de: 'Auf einem anderen Gerät angenommen',
  },
  callsign_declined_elsewhere: {
    en: 'Declined on another device',
    vi: 'Đã từ chối trên thiết bị khác',
    de: 'Auf einem anderen Gerät abgelehnt',
  },
  callsign_ongoing_call: { en: 'Ongoing call', vi: 'Cuộc gọi đang diễn ra', de: 'Laufender Anruf' },
  callsign_answer: { en: 'Answer', vi: 'Trả lời', de: 'Annehmen' },
  callsign_decline: { en: 'Decline', vi: 'Từ chối', de: 'Ablehnen' },
  callsign_hang_up: { en: 'Hang up', vi: 'Kết thúc', de: 'Auflegen' },
  callsign_stranger: { en: '%@, not a contact', vi: '%@ (không có trong danh bạ)', de: '%@ (kein Kontakt)' },
} as const satisfies Record<string, Words>

/** The words of an alert. */
export function pushWords(language: Language, locKey: LocKey, locArgs: readonly string[]): string {
  const [first = '', ...rest] = PUSH_WORDS[locKey][language].split('%@')
  return rest.reduce((text, part, at) => `${text}${locArgs[at] ?? ''}${part}`, first)
}
