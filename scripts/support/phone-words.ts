/**
 * The words of pushes as phones read them (Android's `strings.xml`, Apple's `Localizable.strings`), from
 * `src/delivery/push-words.ts`: a push names its words, and the phone looks them up.
 */

import { PHONE_WORDS, PUSH_WORDS } from '../../src/delivery/push-words.ts'
import type { Language } from '../../src/delivery/texts.ts'

/** Each file by its path in the project. */
export function phoneWords(): ReadonlyMap<string, string> {
  const files = LANGUAGES.flatMap(language => {
    const folder = language === 'en' ? 'values' : `values-${language}`
    return [
      [`${ANDROID}/${folder}/strings.xml`, androidStrings(language)],
      [`${APPLE}/${language}.lproj/Localizable.strings`, appleStrings(language)],
    ] as const
  })
  return new Map([...files, [`${ANDROID}/raw/callsign_keep.xml`, androidKept()]])
}

function androidStrings(language: Language): string {
  const lines = WORDS.map(([name, words]) => {
    return `    <string name="${name}">${androidText(words[language])}</string>\n`
  })
  return `${XML}<!-- ${ORIGIN} -->\n<resources>\n${lines.join('')}</resources>\n`
}

/** Escaped for XML and then for Android, which takes quotes, apostrophes and a leading `@` or `?` as its own. */
function androidText(text: string): string {
  let argument = 0
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replace(/\\|'|"|^[@?]/g, '\\$&')
    .replaceAll('%@', () => `%${++argument}$s`)
}

/** Nothing in the app's code names the words of pushes, so its build would drop them. */
function androidKept(): string {
  const names = Object.keys(PUSH_WORDS).map(name => `@string/${name}`)
  return `${XML}<!-- ${ORIGIN} Firebase finds these words by the name that a push gives: a build may not drop them as unused. -->
<resources xmlns:tools="http://schemas.android.com/tools"
    tools:keep="${names.join(',')}" />
`
}

function appleStrings(language: Language): string {
  const quoted = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`
  const lines = WORDS.map(([name, words]) => `${quoted(name)} = ${quoted(words[language])};\n`)
  return `/* ${ORIGIN} */\n${lines.join('')}`
}

const ANDROID = 'kotlin/callsign-android/src/main/res'
const APPLE = 'swift/Sources/CallsignApp/Resources'
const XML = '<?xml version="1.0" encoding="utf-8"?>\n'
const ORIGIN = 'Written by scripts/support/write-phone-words.ts: change src/delivery/push-words.ts instead.'
const LANGUAGES: readonly Language[] = ['en', 'vi', 'de']
const WORDS = Object.entries({ ...PUSH_WORDS, ...PHONE_WORDS })
