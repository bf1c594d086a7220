/**
 * Drops invisible characters and stacked marks from text that people show to people: two names could differ by the former
 * and look the same, and a stack of marks covers the lines around it.
 *
 * Characters that a script or an emoji needs are kept: joiners, variation selectors after a character that takes them, and the
 * flags of England, Scotland and Wales.
 */

/** The text in NFC without them. Taking them out once more changes nothing. */
export function withoutHidden(text: string): string {
  let kept = text.normalize('NFC')
  for (;;) {
    // Characters that are neighbours now may compose.
    const next = withFewMarks(withoutIgnorable(kept)).normalize('NFC')
    if (next === kept) return kept
    kept = next
  }
}

function withoutIgnorable(text: string): string {
  if (!IGNORABLE.test(text)) return text
  return text.replace(FLAG_OR_IGNORABLE, (found, at: number) => {
    if (FLAG.test(found)) return found
    const end = at + found.length
    const [before, after] = [text.slice(Math.max(0, at - NEAR), at), text.slice(end, end + NEAR)]
    return isNeeded(found, before, after) ? found : ''
  })
}

function isNeeded(character: string, before: string, after: string): boolean {
  switch (character) {
    case ZERO_WIDTH_JOINER:
      if (ENDS_EMOJI.test(before) && BEGINS_EMOJI.test(after)) return true
      return ENDS_JOINED.test(before) && (BEGINS_JOINED.test(after) || ENDS_KILLED.test(before))
    case ZERO_WIDTH_NON_JOINER:
      return ENDS_JOINED.test(before) && BEGINS_JOINED.test(after)
    case EMOJI_SELECTOR:
    case TEXT_SELECTOR:
      return ENDS_PICTURE.test(before) || (ENDS_KEY.test(before) && after.startsWith(KEYCAP))
    case MONGOLIAN_SEPARATOR:
      return ENDS_MONGOLIAN.test(before) && BEGINS_MONGOLIAN.test(after)
  }
  if (MONGOLIAN_SELECTOR.test(character)) return ENDS_MONGOLIAN.test(before)
  return IDEOGRAPH_SELECTOR.test(character) && ENDS_IDEOGRAPH.test(before)
}

/** Spacing marks, which pile up on nothing, are not counted. */
function withFewMarks(text: string): string {
  return text.replace(MANY_MARKS, marks => {
    let piled = 0
    return [...marks].filter(mark => SPACING_MARK.test(mark) || ++piled <= PILED_MAX).join('')
  })
}

/** UTF-16 units on each side that tell whether a character is needed. */
const NEAR = 4
const ZERO_WIDTH_NON_JOINER = '\u200c'
const ZERO_WIDTH_JOINER = '\u200d'
const TEXT_SELECTOR = '\ufe0e'
const EMOJI_SELECTOR = '\ufe0f'
const KEYCAP = '\u20e3'
const MONGOLIAN_SEPARATOR = '\u180e'

const IGNORABLE = /\p{Default_Ignorable_Code_Point}/u
const FLAG_TEXT =
  '\u{1f3f4}\u{e0067}\u{e0062}(?:\u{e0065}\u{e006e}\u{e0067}|\u{e0073}\u{e0063}\u{e0074}|\u{e0077}\u{e006c}\u{e0073})\u{e007f}'
const FLAG = new RegExp(`^${FLAG_TEXT}$`, 'u')
const FLAG_OR_IGNORABLE = new RegExp(`${FLAG_TEXT}|\\p{Default_Ignorable_Code_Point}`, 'gu')

/** Scripts that are written with joiners, as Unicode's "Zero Width Joiner" chapters and IDNA's joining rules have them. */
const JOINED =
  '(?=[\\p{L}\\p{M}])[\\p{scx=Arab}\\p{scx=Syrc}\\p{scx=Mand}\\p{scx=Nkoo}\\p{scx=Mong}\\p{scx=Phag}\\p{scx=Adlm}\\p{scx=Rohg}' +
  '\\p{scx=Deva}\\p{scx=Beng}\\p{scx=Guru}\\p{scx=Gujr}\\p{scx=Orya}\\p{scx=Taml}\\p{scx=Telu}\\p{scx=Knda}\\p{scx=Mlym}' +
  '\\p{scx=Sinh}\\p{scx=Mymr}\\p{scx=Khmr}\\p{scx=Tibt}]'
const ENDS_JOINED = new RegExp(`(?!\\p{Default_Ignorable_Code_Point})${JOINED}$`, 'u')
const BEGINS_JOINED = new RegExp(`^(?!\\p{Default_Ignorable_Code_Point})${JOINED}`, 'u')
/** A consonant without its vowel, as a word of Malayalam or Sinhala may end with. */
const ENDS_KILLED = /[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca]$/u
const ENDS_EMOJI = /(?:\p{Extended_Pictographic}\ufe0f?|\p{Emoji_Modifier})$/u
const BEGINS_EMOJI = /^\p{Extended_Pictographic}/u
const ENDS_PICTURE = /\p{Extended_Pictographic}$/u
const ENDS_KEY = /[0-9#*]$/
const ENDS_MONGOLIAN = /(?=\p{L})\p{scx=Mong}$/u
const BEGINS_MONGOLIAN = /^(?=\p{L})\p{scx=Mong}/u
const MONGOLIAN_SELECTOR = /^[\u180b-\u180d\u180f]$/
const IDEOGRAPH_SELECTOR = /^[\ufe00-\ufe02\u{e0100}-\u{e01ef}]$/u
const ENDS_IDEOGRAPH = /(?=\p{L})\p{sc=Han}$/u
/** As many as languages need over or under one character. */
const PILED_MAX = 4
const MANY_MARKS = new RegExp(`\\p{M}{${PILED_MAX + 1},}`, 'gu')
const SPACING_MARK = /\p{Mc}/u
