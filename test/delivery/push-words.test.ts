/** The words of pushes: each is there for each phone and each language, and reads as a sentence. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { phoneWords } from '../../scripts/support/phone-words.ts'
import { pushContentOf } from '../../src/delivery/push-content.ts'
import { CHANNELS, type LocKey, PHONE_WORDS, PUSH_WORDS, pushWords } from '../../src/delivery/push-words.ts'
import type { Language } from '../../src/delivery/texts.ts'
import type { DeviceId } from '../../src/domain/ids.ts'
import type { Notice } from '../../src/domain/messages/notice.ts'
import { anyNotice } from '../support/any-notice.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const LANGUAGES: readonly Language[] = ['en', 'vi', 'de']
const KEYS = Object.keys(PUSH_WORDS) as LocKey[]
const ALL = { ...PUSH_WORDS, ...PHONE_WORDS }

t.test('what the phones have is what the words are here', async t => {
  for (const [name, text] of phoneWords()) {
    const path = join(PROJECT_ROOT, name)
    const committed = existsSync(path) ? readFileSync(path, 'utf8') : ''
    t.equal(committed, text, `${name}: run \`node dist/scripts/support/write-phone-words.js\``)
  }
})

t.test('a phone finds each key in its own language, with the arguments that the push gives', async t => {
  const placesOf = (text: string | undefined) => text?.match(/%@|%[0-9]+\$s/g)?.length ?? 0
  for (const [language, android, apple] of [
    ['en', 'values', 'en'],
    ['vi', 'values-vi', 'vi'],
    ['de', 'values-de', 'de'],
  ] as const) {
    const strings = androidStringsIn(`kotlin/callsign-android/src/main/res/${android}/strings.xml`)
    const localizable = appleStringsIn(
      `swift/Sources/CallsignApp/Resources/${apple}.lproj/Localizable.strings`,
    )
    for (const [name, words] of Object.entries(ALL)) {
      const places = placesOf(words.en)
      t.equal(placesOf(words[language]), places, `${name} has as many arguments in ${language}`)
      t.equal(strings.get(name), words[language].replace('%@', '%1$s'), `${name} on Android, ${language}`)
      t.equal(localizable.get(name), words[language], `${name} on iOS, ${language}`)
    }
    t.equal(strings.size, Object.keys(ALL).length)
    t.equal(localizable.size, Object.keys(ALL).length)
  }
})

t.test('each is a sentence in its language', async t => {
  for (const language of LANGUAGES) {
    for (const key of KEYS) {
      const text = pushWords(language, key, ['Đặng “$&” %@'])
      t.match(text, SENTENCE, text)
      t.equal(text.includes('Đặng “$&” %@'), PUSH_WORDS[key].en.includes('%@'), 'the argument as it is')
    }
    for (const words of Object.values(PHONE_WORDS)) t.match(words[language].replace('%@', 'Ann'), SENTENCE)
  }
  for (const words of Object.values(ALL)) t.equal(new Set(Object.values(words)).size, 3, words.en)
})

t.test('every channel has a name, and its id starts as no channel of an app does', async t => {
  for (const [name, channel] of Object.entries(CHANNELS)) {
    t.ok(`callsign_channel_${name}` in PHONE_WORDS, name)
    t.match(channel, /^callsign_[a-z]+$/)
  }
})

t.test('no push names words that are not there, or with other arguments', async t => {
  const said = new Set<string>()
  const told = fc.sample(anyNotice({ eventId: 'e'.repeat(22), sentAtMs: 1 }), { numRuns: 2_000, seed: 1 })
  const hidden = told.map(
    (notice): Notice => Object.assign({}, notice, { userAgent: '', network: undefined }),
  )
  for (const notice of [...told, ...hidden]) {
    const content = pushContentOf(notice, { deviceId: 1n as DeviceId, expiresAtMs: 2, badgeOf: () => 1 })
    if (content === undefined || content.kind === 'silent') continue
    const { locKey, locArgs } = content
    said.add(locKey)
    if (locArgs.length !== PUSH_WORDS[locKey].en.split('%@').length - 1) t.fail(locKey)
  }
  const sealed: readonly LocKey[] = ['sealed_call', 'sealed_notice']
  t.same([...said].sort(), KEYS.filter(key => !sealed.includes(key)).sort(), 'every word is said by a push')
})

function androidStringsIn(name: string): Map<string, string> {
  const text = readFileSync(join(PROJECT_ROOT, name), 'utf8')
  const found = text.matchAll(/<string name="([^"]*)">([^<]*)<\/string>/g)
  const plain = (escaped: string) =>
    escaped
      .replace(/\\(['"@?\\])/g, '$1')
      .replaceAll('&lt;', '<')
      .replaceAll('&amp;', '&')
  return new Map([...found].map(([, key = '', words = '']) => [key, plain(words)]))
}

function appleStringsIn(name: string): Map<string, string> {
  const text = readFileSync(join(PROJECT_ROOT, name), 'utf8')
  const found = text.matchAll(/^("(?:[^"\\]|\\.)*") = ("(?:[^"\\]|\\.)*");$/gm)
  return new Map([...found].map(([, key = '', words = '']) => [JSON.parse(key), JSON.parse(words)]))
}

/** Begins with a capital, has words, and no name of a key or of a place for an argument. */
const SENTENCE = /^\p{Lu}(?!.*[a-z]_[a-z])(?!.*%\d)[^{}]*[\p{L}.)]/u
