/**
 * The words of every mail and SMS, in the languages there are. Pure: what varies comes in.
 *
 * An SMS keeps to the GSM 7-bit alphabet, Vietnamese without its marks as senders there do: one character outside it
 * doubles the price and leaves 70 of 160 characters. A notice is short enough to be sent as an SMS too, by its `text`.
 */

import type { MethodKind } from '../domain/accounts/login-method.ts'

export type Language = 'en' | 'vi' | 'de'

export interface MailText {
  readonly subject: string
  readonly text: string
}

/**
 * The best of our languages for an `Accept-Language` value (RFC 9110, section 12.5.4; a bare tag such as `vi-VN` is
 * one too); `usual` when it names none of them.
 */
export function chooseLanguage(acceptLanguage: string | undefined, usual: Language): Language {
  const ranges = (acceptLanguage ?? '').slice(0, ACCEPT_LENGTH_MAX).split(',')
  const wanted = ranges.map(range => {
    const [tag = '', ...parameters] = range.trim().split(/\s*;\s*/)
    const quality = parameters.find(parameter => /^q=/i.test(parameter))?.slice(2)
    return {
      language: tag.split(/[-_]/)[0]!.toLowerCase(),
      quality: quality === undefined ? 1 : Number(quality),
    }
  })
  const ours = wanted.filter(({ language, quality }) => isLanguage(language) && quality > 0)
  // Sorting is stable: of equals, the first named one.
  const [best] = ours.sort((left, right) => right.quality - left.quality)
  return best !== undefined && isLanguage(best.language) ? best.language : usual
}

export interface OtpMail {
  readonly appName: string
  readonly code: string
  readonly minutes: number
}

/** The code is in the text alone: lock screens, mail logs and lists of mails show subjects. */
export function otpMail(language: Language, { appName, code, minutes }: OtpMail): MailText {
  const texts: Record<Language, MailText> = {
    en: {
      subject: `Your ${appName} code`,
      text: `Your ${appName} code is ${code}. It is valid for ${minutes} minutes.\n\nTell it to nobody: we never ask for it. If you did not ask for a code, you can ignore this message.\n`,
    },
    vi: {
      subject: `Mã ${appName} của bạn`,
      text: `Mã ${appName} của bạn là ${code}. Mã có hiệu lực trong ${minutes} phút.\n\nĐừng cho ai biết mã này: chúng tôi không bao giờ hỏi. Nếu bạn không yêu cầu mã, hãy bỏ qua thư này.\n`,
    },
    de: {
      subject: `Dein Code für ${appName}`,
      text: `Dein Code für ${appName} ist ${code}. Er gilt ${minutes} Minuten.\n\nSag ihn niemandem: Wir fragen nie danach. Wenn du keinen Code angefordert hast, kannst du diese Nachricht ignorieren.\n`,
    },
  }
  return texts[language]
}

/** Goes with a code that adds the address to an account: a fraudster may have talked the owner into revealing it. */
export function bindingMail(language: Language, { appName, code, minutes }: OtpMail): MailText {
  const texts: Record<Language, MailText> = {
    en: {
      subject: `Add your address to ${appName}`,
      text: `To add this address to a ${appName} account and sign in with it, the code is ${code}. It is valid for ${minutes} minutes.\n\nTell it to nobody: we never ask for it. If you did not ask for a code, someone else did: ignore this message, and your address is not added.\n`,
    },
    vi: {
      subject: `Thêm địa chỉ của bạn vào ${appName}`,
      text: `Để thêm địa chỉ này vào một tài khoản ${appName} và đăng nhập bằng địa chỉ này, mã là ${code}. Mã có hiệu lực trong ${minutes} phút.\n\nĐừng cho ai biết mã này: chúng tôi không bao giờ hỏi. Nếu bạn không yêu cầu mã thì đó là người khác: hãy bỏ qua thư này, địa chỉ của bạn sẽ không được thêm vào.\n`,
    },
    de: {
      subject: `Deine Adresse zu ${appName} hinzufügen`,
      text: `Um diese Adresse einem ${appName}-Konto hinzuzufügen und sich dort mit ihr anzumelden, brauchst du den Code ${code}. Er gilt ${minutes} Minuten.\n\nSag ihn niemandem: Wir fragen nie danach. Wenn du keinen Code angefordert hast, war es jemand anderes: Ignoriere diese Nachricht, und deine Adresse wird nicht hinzugefügt.\n`,
    },
  }
  return texts[language]
}

export interface OtpSms {
  readonly appName: string
  readonly code: string
  /** The domain whose pages and apps may fill in the code. */
  readonly domain: string
  /** The 11 characters by which Android's SMS Retriever finds the app. */
  readonly retrieverHash?: string
}

export function otpSms(language: Language, sms: OtpSms): string {
  const { appName, code } = sms
  const texts: Record<Language, string> = {
    en: `${code} is your ${appName} code. Tell it to nobody.`,
    vi: `${code} la ma ${appName} cua ban. Dung cho ai biet.`,
    de: `${code} ist dein Code für ${appName}. Sag ihn niemandem.`,
  }
  return withCodeLine(texts[language], sms)
}

/** With a code that adds the number to an account. */
export function bindingSms(language: Language, sms: OtpSms): string {
  const { appName, code } = sms
  const texts: Record<Language, string> = {
    en: `${code} adds this number to a ${appName} account. Tell it to nobody.`,
    vi: `${code} them so nay vao mot tai khoan ${appName}. Dung cho ai biet.`,
    de: `${code} fügt diese Nummer einem ${appName}-Konto hinzu. Sag ihn niemandem.`,
  }
  return withCodeLine(texts[language], sms)
}

/** The last line binds the code to the domain (WICG "origin-bound one-time codes"), so that iOS fills it in. */
function withCodeLine(text: string, { code, domain, retrieverHash }: OtpSms): string {
  const hash = retrieverHash === undefined ? '' : `${retrieverHash}\n`
  return `${text}\n\n${hash}@${domain} #${code}`
}

export interface Notice {
  readonly appName: string
}

/** Sent instead of a code to the owner of an address that another user tried to add. */
export function addressTriedNotice(language: Language, { appName }: Notice): MailText {
  const texts: Record<Language, MailText> = {
    en: {
      subject: `Someone tried to use your address with ${appName}`,
      text: `Someone tried to add this address to another ${appName} account. It is still yours and nothing has changed. If it was you, sign in with this address instead.\n`,
    },
    vi: {
      subject: `Có người đã thử dùng địa chỉ của bạn với ${appName}`,
      text: `Có người đã thử thêm địa chỉ này vào một tài khoản ${appName} khác. Địa chỉ vẫn là của bạn và không có gì thay đổi. Nếu đó là bạn, hãy đăng nhập bằng địa chỉ này.\n`,
    },
    de: {
      subject: `Jemand wollte deine Adresse bei ${appName} verwenden`,
      text: `Jemand wollte diese Adresse einem anderen ${appName}-Konto hinzufügen. Sie gehört weiterhin dir, und nichts hat sich geändert. Wenn du es warst, melde dich stattdessen mit dieser Adresse an.\n`,
    },
  }
  return texts[language]
}

/** To the old address, once the new one is in force. */
export function addressChangedNotice(language: Language, { appName }: Notice): MailText {
  const texts: Record<Language, MailText> = {
    en: {
      subject: `Your ${appName} address was changed`,
      text: `The address of your ${appName} account was changed, and this one no longer signs in. If it was not you, sign in with another method now and remove what you do not know.\n`,
    },
    vi: {
      subject: `Địa chỉ ${appName} của bạn đã được thay đổi`,
      text: `Địa chỉ của tài khoản ${appName} của bạn đã được thay đổi và địa chỉ này không còn dùng để đăng nhập được. Nếu không phải bạn, hãy đăng nhập ngay bằng cách khác và gỡ những gì bạn không nhận ra.\n`,
    },
    de: {
      subject: `Deine Adresse bei ${appName} wurde geändert`,
      text: `Die Adresse deines ${appName}-Kontos wurde geändert; mit dieser hier kannst du dich nicht mehr anmelden. Wenn du es nicht warst, melde dich jetzt auf anderem Weg an und entferne, was du nicht kennst.\n`,
    },
  }
  return texts[language]
}

export interface LoginMethodNotice extends Notice {
  readonly kind: MethodKind
}

/** To every other method of the account. */
export function methodAddedNotice(language: Language, { appName, kind }: LoginMethodNotice): MailText {
  const method = METHODS[language][kind]
  const texts: Record<Language, MailText> = {
    en: {
      subject: `A login method was added to your ${appName} account`,
      text: `${method} can now sign in to your ${appName} account. If you did not add it, sign in and remove it.\n`,
    },
    vi: {
      subject: `Một cách đăng nhập đã được thêm vào tài khoản ${appName} của bạn`,
      text: `${method} giờ có thể đăng nhập vào tài khoản ${appName} của bạn. Nếu bạn không thêm, hãy đăng nhập và gỡ bỏ.\n`,
    },
    de: {
      subject: `Deinem ${appName}-Konto wurde eine Anmeldung hinzugefügt`,
      text: `${method} öffnet jetzt dein ${appName}-Konto. Wenn du das nicht warst, melde dich an und entferne sie.\n`,
    },
  }
  return texts[language]
}

/** To the removed method and to every other one. */
export function methodRemovedNotice(language: Language, { appName, kind }: LoginMethodNotice): MailText {
  const method = METHODS[language][kind]
  const texts: Record<Language, MailText> = {
    en: {
      subject: `A login method was removed from your ${appName} account`,
      text: `${method} can no longer sign in to your ${appName} account. If you did not remove it, sign in and look at your login methods.\n`,
    },
    vi: {
      subject: `Một cách đăng nhập đã bị gỡ khỏi tài khoản ${appName} của bạn`,
      text: `${method} không còn đăng nhập được vào tài khoản ${appName} của bạn. Nếu bạn không gỡ, hãy đăng nhập và xem lại các cách đăng nhập.\n`,
    },
    de: {
      subject: `Von deinem ${appName}-Konto wurde eine Anmeldung entfernt`,
      text: `${method} öffnet dein ${appName}-Konto nicht mehr. Wenn du das nicht warst, melde dich an und sieh deine Anmeldungen durch.\n`,
    },
  }
  return texts[language]
}

/** To every other method of the account. */
export function primaryChangedNotice(language: Language, { appName }: Notice): MailText {
  const texts: Record<Language, MailText> = {
    en: {
      subject: `The main login method of your ${appName} account was changed`,
      text: `Another login method is now the main one of your ${appName} account. If it was not you, sign in and look at your login methods.\n`,
    },
    vi: {
      subject: `Cách đăng nhập chính của tài khoản ${appName} của bạn đã được thay đổi`,
      text: `Tài khoản ${appName} của bạn giờ có một cách đăng nhập chính khác. Nếu không phải bạn, hãy đăng nhập và xem lại các cách đăng nhập.\n`,
    },
    de: {
      subject: `Die Hauptanmeldung deines ${appName}-Kontos wurde geändert`,
      text: `Dein ${appName}-Konto hat jetzt eine andere Hauptanmeldung. Wenn du das nicht warst, melde dich an und sieh deine Anmeldungen durch.\n`,
    },
  }
  return texts[language]
}

export interface SessionStartedNotice extends Notice {
  /** As `shownAgent` has it. */
  readonly userAgent: string
  readonly network?: string
}

/** To every address but the one that signed in. */
export function sessionStartedNotice(language: Language, notice: SessionStartedNotice): MailText {
  const { appName } = notice
  const place = signInPlace(language, notice)
  const texts: Record<Language, MailText> = {
    en: {
      subject: `New sign-in to your ${appName} account`,
      text: `Someone has just signed in to your ${appName} account${place}. If it was not you, open the app, end that session and look at your login methods.\n`,
    },
    vi: {
      subject: `Đăng nhập mới vào tài khoản ${appName} của bạn`,
      text: `Vừa có người đăng nhập vào tài khoản ${appName} của bạn${place}. Nếu không phải bạn, hãy mở ứng dụng, kết thúc phiên đăng nhập đó và xem lại các cách đăng nhập.\n`,
    },
    de: {
      subject: `Neue Anmeldung bei deinem ${appName}-Konto`,
      text: `Gerade hat sich jemand${place} bei deinem ${appName}-Konto angemeldet. Wenn du das nicht warst, öffne die App, beende diese Sitzung und sieh deine Anmeldungen durch.\n`,
    },
  }
  return texts[language]
}

export interface SessionEndingNotice extends Notice {
  /** As `shownAgent` has it. */
  readonly userAgent: string
  readonly endsAtMs: number
}

/** To the owner of a session without a device, two weeks before it ends. */
export function sessionEndingNotice(language: Language, notice: SessionEndingNotice): MailText {
  const { appName, endsAtMs } = notice
  const place = signInPlace(language, notice)
  const date = new Intl.DateTimeFormat(...DATES[language]).format(endsAtMs)
  const texts: Record<Language, MailText> = {
    en: {
      subject: `You will be signed out of ${appName} soon`,
      text: `A session of your ${appName} account${place} ends on ${date}. To stay signed in there, sign in again before then.\n`,
    },
    vi: {
      subject: `Bạn sắp bị đăng xuất khỏi ${appName}`,
      text: `Một phiên đăng nhập vào tài khoản ${appName} của bạn${place} sẽ kết thúc vào ngày ${date}. Để tiếp tục sử dụng ở đó, hãy đăng nhập lại trước ngày này.\n`,
    },
    de: {
      subject: `Du wirst bald von ${appName} abgemeldet`,
      text: `Eine Sitzung deines ${appName}-Kontos${place} endet am ${date}. Um dort angemeldet zu bleiben, melde dich vorher neu an.\n`,
    },
  }
  return texts[language]
}

export interface SignInWaitingNotice extends SessionStartedNotice {
  readonly hours: number
}

/** To every address of the account, three times while a sign-in waits. */
export function signInWaitingNotice(language: Language, notice: SignInWaitingNotice): MailText {
  const { appName, hours } = notice
  const place = signInPlace(language, notice)
  const texts: Record<Language, MailText> = {
    en: {
      subject: `Someone is signing in to your ${appName} account`,
      text: `Someone entered a right code and wants to sign in to your ${appName} account${place}. Open ${appName} on a device where you are signed in and approve or refuse it. Without an answer it goes through in ${hours} hours.\n`,
    },
    vi: {
      subject: `Có người đang đăng nhập vào tài khoản ${appName} của bạn`,
      text: `Có người đã nhập đúng mã và muốn đăng nhập vào tài khoản ${appName} của bạn${place}. Hãy mở ${appName} trên một thiết bị bạn đã đăng nhập để chấp nhận hoặc từ chối. Nếu không có câu trả lời, việc đăng nhập sẽ hoàn tất sau ${hours} giờ.\n`,
    },
    de: {
      subject: `Jemand meldet sich bei deinem ${appName}-Konto an`,
      text: `Jemand hat einen richtigen Code eingegeben und möchte sich${place} bei deinem ${appName}-Konto anmelden. Öffne ${appName} auf einem Gerät, auf dem du angemeldet bist, und stimm zu oder lehn ab. Ohne Antwort gelingt die Anmeldung in ${hours} Stunden.\n`,
    },
  }
  return texts[language]
}

export interface MethodLostNotice extends Notice {
  readonly kind: 'email' | 'phone'
}

/** To every method that the account still has, once an address of it has become another account's. */
export function methodLostNotice(language: Language, { appName, kind }: MethodLostNotice): MailText {
  const method = METHODS[language][kind]
  const texts: Record<Language, MailText> = {
    en: {
      subject: `A login method left your ${appName} account`,
      text: `${method} of your ${appName} account now opens another account, since someone else proved that they have it. Your account stays as it is. Sign in to it in another way.\n`,
    },
    vi: {
      subject: `Một cách đăng nhập đã rời khỏi tài khoản ${appName} của bạn`,
      text: `${method} của tài khoản ${appName} của bạn giờ mở một tài khoản khác, vì có người khác đã chứng minh rằng họ đang dùng. Tài khoản của bạn vẫn như cũ. Hãy đăng nhập bằng cách khác.\n`,
    },
    de: {
      subject: `Eine Anmeldung gehört nicht mehr zu deinem ${appName}-Konto`,
      text: `${method} deines ${appName}-Kontos öffnet jetzt ein anderes Konto, weil jemand anderes den Besitz nachgewiesen hat. Dein Konto bleibt, wie es ist. Melde dich auf anderem Weg an.\n`,
    },
  }
  return texts[language]
}

/** Behind a verb or noun, with a space before it; empty where nothing is known. */
function signInPlace(
  language: Language,
  { userAgent, network }: Omit<SessionStartedNotice, 'appName'>,
): string {
  const [by, from] = PLACES[language]
  return `${userAgent && ` ${by} "${userAgent}"`}${network === undefined ? '' : ` ${from} ${network}`}`
}

/** After too many wrong codes in a row (contract 2.2). */
export function codesStoppedNotice(language: Language, { appName }: Notice): MailText {
  const texts: Record<Language, MailText> = {
    en: {
      subject: `${appName} sends you no codes for 24 hours`,
      text: `Too many wrong codes were entered for this address, so ${appName} sends no codes to it for 24 hours. Your account is safe. Other ways of signing in still work.\n`,
    },
    vi: {
      subject: `${appName} ngừng gửi mã cho bạn trong 24 giờ`,
      text: `Đã có quá nhiều mã sai được nhập cho địa chỉ này, nên ${appName} không gửi mã đến đây trong 24 giờ. Tài khoản của bạn vẫn an toàn. Các cách đăng nhập khác vẫn dùng được.\n`,
    },
    de: {
      subject: `${appName} schickt dir 24 Stunden lang keine Codes`,
      text: `Für diese Adresse wurden zu viele falsche Codes eingegeben; ${appName} schickt deshalb 24 Stunden lang keine dorthin. Dein Konto ist sicher. Andere Anmeldungen gehen weiterhin.\n`,
    },
  }
  return texts[language]
}

export interface ErasureNotice extends Notice {
  readonly days: number
}

export function erasureNotice(language: Language, { appName, days }: ErasureNotice): MailText {
  const texts: Record<Language, MailText> = {
    en: {
      subject: `Your ${appName} account will be erased`,
      text: `You asked us to delete your ${appName} account. It will be erased in ${days} days. To keep it, sign in before then.\n`,
    },
    vi: {
      subject: `Tài khoản ${appName} của bạn sẽ bị xóa`,
      text: `Bạn đã yêu cầu xóa tài khoản ${appName} của mình. Tài khoản sẽ bị xóa sau ${days} ngày. Để giữ lại, hãy đăng nhập trước lúc đó.\n`,
    },
    de: {
      subject: `Dein ${appName}-Konto wird gelöscht`,
      text: `Du wolltest dein ${appName}-Konto löschen. In ${days} Tagen ist es gelöscht. Um es zu behalten, melde dich vorher an.\n`,
    },
  }
  return texts[language]
}

function isLanguage(text: string): text is Language {
  return text === 'en' || text === 'vi' || text === 'de'
}

/** As the subject of a sentence; which address it is stays out of the message. */
const METHODS: Record<Language, Record<LoginMethodNotice['kind'], string>> = {
  en: {
    email: 'An email address',
    phone: 'A phone number',
    social: 'An account of another provider',
    passkey: 'A passkey',
  },
  vi: {
    email: 'Một địa chỉ email',
    phone: 'Một số điện thoại',
    social: 'Một tài khoản của nhà cung cấp khác',
    passkey: 'Một khóa truy cập',
  },
  de: {
    email: 'Eine E-Mail-Adresse',
    phone: 'Eine Telefonnummer',
    social: 'Eine fremde Anbieterkennung',
    passkey: 'Ein Passkey',
  },
}

const PLACES: Record<Language, readonly [by: string, from: string]> = {
  en: ['with', 'from the network'],
  vi: ['bằng', 'từ mạng'],
  de: ['mit', 'aus dem Netz'],
}
/** The formats are made when they are needed, which is rare: it takes 11 ms. */
const DATES: Record<Language, [locale: string, options: Intl.DateTimeFormatOptions]> = {
  en: ['en-GB', { dateStyle: 'long', timeZone: 'UTC' }],
  vi: ['vi', { day: 'numeric', month: 'numeric', year: 'numeric', timeZone: 'UTC' }],
  de: ['de', { dateStyle: 'long', timeZone: 'UTC' }],
}
const ACCEPT_LENGTH_MAX = 256
