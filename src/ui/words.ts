/** The words of the elements, in the page's language: English, German or Vietnamese. */

import { CALL_WORDS } from './words/call-words.ts'
import { HOME_WORDS } from './words/home-words.ts'
import { MEDIA_WORDS } from './words/media-words.ts'
import { NEWS_WORDS } from './words/news-words.ts'
import { PEOPLE_WORDS } from './words/people-words.ts'
import { SHARED_WORDS } from './words/shared-words.ts'

const WORDS = {
  ...SHARED_WORDS,
  ...MEDIA_WORDS,
  ...CALL_WORDS,
  ...HOME_WORDS,
  ...NEWS_WORDS,
  ...PEOPLE_WORDS,
}

export type Word = keyof typeof WORDS

const own = new Map<Word, string>()

/** An app's own words for some. The elements that are in the page show them when they are drawn next. */
export function useWords(words: Partial<Readonly<Record<Word, string>>>): void {
  for (const [key, text] of Object.entries(words)) own.set(key as Word, text)
}

export function word(key: Word, ...values: readonly (string | number)[]): string {
  const text = own.get(key) ?? WORDS[key][languageAt()]!
  return text.replace(/\{(\d)\}/g, (_, at) => isolated(String(values[Number(at)] ?? '')))
}

/** A name that is written from the right would turn the sentence around it (Unicode UAX 9, FIRST STRONG ISOLATE). */
export function isolated(text: string): string {
  return FROM_THE_RIGHT.test(text) ? `\u2068${text}\u2069` : text
}

function languageAt(): number {
  const [language = ''] = document.documentElement.lang.toLowerCase().split('-')
  return Math.max(0, LANGUAGES.indexOf(language))
}

const LANGUAGES = ['en', 'de', 'vi']
/** Hebrew, Arabic and their kin, and the mark of their direction. */
const FROM_THE_RIGHT =
  /[\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u
