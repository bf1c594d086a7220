/** The words of mails and short messages: the language, the form that phones look for, the length. */

import t from 'tap'
import type { Language, MailText } from '../../src/delivery/texts.ts'
import * as texts from '../../src/delivery/texts.ts'

const LANGUAGES: readonly Language[] = ['en', 'vi', 'de']
const APP = { appName: 'Callsign' }
const SIGN_INS = [
  { userAgent: 'curl/8.5.0', network: '203.0.113.0/24' },
  { userAgent: 'curl/8.5.0' },
  { userAgent: '', network: '203.0.113.0/24' },
  { userAgent: '' },
]
/** The basic alphabet of an SMS (3GPP TS 23.038, 6.2.1), without characters that take two places. */
const GSM = /^[@£$¥èéùìòÇ\nØøÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&'()*+,\-./0-9:;<=>?¡A-ZÄÖÑÜ§¿a-zäöñüà]*$/

t.test('the best language is the one that is wanted most', async t => {
  const table: [string | undefined, Language][] = [
    ['vi', 'vi'],
    ['vi-VN', 'vi'],
    ['de_AT', 'de'],
    ['DE-at,de;q=0.9,en;q=0.8', 'de'],
    ['en;q=0.5, vi;q=0.7', 'vi'],
    ['fr, ja;q=0.9, de;q=0.1', 'de'],
    ['en, de', 'en'],
    ['de;q=0, en;q=0.1', 'en'],
    ['de ; q=0.2 , vi ; q=0.3', 'vi'],
    ['de;q=x', 'en'],
    ['*', 'en'],
    ['', 'en'],
    ['fr', 'en'],
    [undefined, 'en'],
    ['toString, __proto__', 'en'],
    [`${'x,'.repeat(1_000_000)}de`, 'en'],
  ]
  for (const [accept, language] of table) {
    t.equal(texts.chooseLanguage(accept, 'en'), language, String(accept).slice(0, 40))
  }
  t.equal(texts.chooseLanguage('fr', 'vi'), 'vi', 'what is usual here')
})

t.test('an SMS ends with the code bound to the domain, after the hash that Android looks for', async t => {
  const sms = { ...APP, code: '012345', domain: 'callsign.example' }
  for (const language of LANGUAGES) {
    for (const textOf of [texts.otpSms, texts.bindingSms]) {
      const lines = textOf(language, sms).split('\n')
      t.match(lines[0], /012345/, language)
      t.same(lines.slice(1), ['', '@callsign.example #012345'])
      const withHash = textOf(language, { ...sms, retrieverHash: 'FA+9qCX9VSu' }).split('\n')
      t.same(withHash.slice(1), ['', 'FA+9qCX9VSu', '@callsign.example #012345'])
    }
  }
})

t.test('an SMS is one message of the basic alphabet, and short enough for Android', async t => {
  const sms = { ...APP, code: '012345', domain: 'callsign.example', retrieverHash: 'FA+9qCX9VSu' }
  for (const language of LANGUAGES) {
    for (const text of [texts.otpSms(language, sms), texts.bindingSms(language, sms)]) {
      t.match(text, GSM, language)
      t.ok(Buffer.byteLength(text) <= 140, language)
    }
  }
})

t.test('a mail shows the code in its first line and not in its subject', async t => {
  for (const language of LANGUAGES) {
    for (const textOf of [texts.otpMail, texts.bindingMail]) {
      const { subject, text } = textOf(language, { ...APP, code: '012345', minutes: 5 })
      t.match(subject, /^[^\d]*Callsign[^\d]*$/, language)
      t.match(text.split('\n')[0], /Callsign.*012345.* 5 /)
    }
  }
})

t.test('every notice is there in every language, one line of subject, filled in', async t => {
  const notices: ((language: Language) => MailText)[] = [
    language => texts.addressTriedNotice(language, APP),
    language => texts.addressChangedNotice(language, APP),
    language => texts.primaryChangedNotice(language, APP),
    language => texts.codesStoppedNotice(language, APP),
    language => texts.erasureNotice(language, { ...APP, days: 7 }),
    ...SIGN_INS.map(
      signIn => (language: Language) => texts.sessionStartedNotice(language, { ...APP, ...signIn }),
    ),
    language => texts.sessionEndingNotice(language, { ...APP, userAgent: '', endsAtMs: 0 }),
    language => texts.sessionEndingNotice(language, { ...APP, userAgent: 'curl/8.5.0', endsAtMs: 0 }),
    ...(['email', 'phone', 'social', 'passkey'] as const).flatMap(kind => [
      (language: Language) => texts.methodAddedNotice(language, { ...APP, kind }),
      (language: Language) => texts.methodRemovedNotice(language, { ...APP, kind }),
    ]),
  ]
  const all = LANGUAGES.flatMap(language => notices.map(notice => notice(language)))
  for (const { subject, text } of all) {
    t.match(subject, /^[^\n]*Callsign[^\n]*$/)
    t.match(text, /^[^\n]+\n$/)
    t.notMatch(`${subject}${text}`, /undefined|\$\{|\[object/)
  }
  t.equal(new Set(all.map(({ text }) => text)).size, all.length, 'no two are the same')
})

t.test(
  'the letter about a sign-in quotes what signed in and from where, as far as that is known',
  async t => {
    const [whole, agent, network, neither] = SIGN_INS.map(
      signIn => texts.sessionStartedNotice('en', { ...APP, ...signIn }).text.split('. ')[0],
    )
    t.equal(
      whole,
      'Someone has just signed in to your Callsign account with "curl/8.5.0" from the network 203.0.113.0/24',
    )
    t.equal(agent, 'Someone has just signed in to your Callsign account with "curl/8.5.0"')
    t.equal(network, 'Someone has just signed in to your Callsign account from the network 203.0.113.0/24')
    t.equal(neither, 'Someone has just signed in to your Callsign account')
  },
)

t.test('the letter about the end of a session names the day', async t => {
  const endsAtMs = Date.UTC(2027, 2, 1, 23, 59)
  const days = LANGUAGES.map(language =>
    /(?:on|ngày|am) ((?:1 |1\. |1\/)[^ ]+(?: 2027)?)/
      .exec(texts.sessionEndingNotice(language, { ...APP, userAgent: 'curl', endsAtMs }).text)?.[1]
      ?.replace(/\.$/, ''),
  )
  t.same(days, ['1 March 2027', '1/3/2027', '1. März 2027'])
})
