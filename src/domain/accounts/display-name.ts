/**
 * Text that people show to people: names, labels and the message of a friend request (contract 2.1, 3.2). Lengths are
 * counted in grapheme clusters (Unicode Standard Annex 29), which is what a person counts as characters.
 *
 * Bytes are bounded before clusters are looked for: one cluster may be long.
 */

import { withoutHidden } from './hidden-characters.ts'

/** The name as it is kept: NFC, single spaces. Undefined unless it has 1 to 50 characters in at most 200 bytes. */
export function normalizeDisplayName(text: string): string | undefined {
  if (LINE_OR_TAB.test(text.slice(0, NAME_BYTES_MAX * SPACE_ALLOWANCE))) return undefined
  const name = normalize(text, NAME_BYTES_MAX, NAME_GRAPHEMES_MAX)
  return name !== undefined && VISIBLE.test(name) ? name : undefined
}

/**
 * A message as it is kept, its line breaks made spaces; the empty text for one of spaces alone. Undefined for more
 * than 200 characters or 1,600 bytes, and for what no name may hold either.
 */
export function normalizeMessage(text: string): string | undefined {
  return normalize(text, MESSAGE_BYTES_MAX, MESSAGE_GRAPHEMES_MAX)
}

/**
 * The label of a device or a share link as it is kept. Characters that a name may not have are dropped instead of refused, since
 * a label often comes from a program. Undefined if no visible character is left.
 */
export function normalizeLabel(text: string): string | undefined {
  const label = withoutHidden(text.replace(EACH_FORBIDDEN, '')).replace(/\s+/g, ' ').trim()
  return VISIBLE.test(label) ? label : undefined
}

/** A default name: the local part of the address, as far as it makes one. */
export function displayNameFromEmail(address: string): string {
  const local = address.slice(0, Math.max(address.lastIndexOf('@'), 0))
  return normalizeDisplayName(local.slice(0, NAME_GRAPHEMES_MAX)) ?? 'User'
}

function normalize(text: string, bytesMax: number, graphemesMax: number): string | undefined {
  if (text.length > bytesMax * SPACE_ALLOWANCE) return undefined
  if (FORBIDDEN.test(text.replace(/\s+/g, ' '))) return undefined
  const normal = withoutHidden(text).replace(/\s+/g, ' ').trim()
  if (Buffer.byteLength(normal) > bytesMax) return undefined
  return hasGraphemes(normal, graphemesMax) ? normal : undefined
}

/** Whether a text has at most that many grapheme clusters. */
function hasGraphemes(text: string, graphemesMax: number): boolean {
  let count = 0
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  for (const _ of segmenter.segment(text)) if (++count > graphemesMax) return false
  return true
}

export const NAME_GRAPHEMES_MAX = 50
const NAME_BYTES_MAX = 200
export const MESSAGE_GRAPHEMES_MAX = 200
/** Eight bytes for each character: an emoji with a skin tone has as many. */
const MESSAGE_BYTES_MAX = 1_600
/** How many times longer a text may be before spaces and hidden characters are dropped. */
const SPACE_ALLOWANCE = 2
/** Made by the first name: it takes 8 ms. */
let segmenter: Intl.Segmenter | undefined

/** White space that a message turns into a space and a name may not have. */
const LINE_OR_TAB = /[\t-\r\u2028\u2029]/
/**
 * Control characters, the separators of lines and paragraphs, characters that change the direction of the text around
 * them (embeddings, overrides, isolates), halves of surrogate pairs, and code points that are no character. Places kept
 * for pictographs are taken: a phone may know emoji that this process does not.
 */
const FORBIDDEN_TEXT = String.raw`[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069\p{Cs}]|(?!\p{Extended_Pictographic})\p{Cn}`
const FORBIDDEN = new RegExp(FORBIDDEN_TEXT, 'u')
const EACH_FORBIDDEN = new RegExp(FORBIDDEN_TEXT, 'gu')
/** One of these makes a name that can be seen; the blank braille pattern is a symbol by its category. */
const VISIBLE = /(?![\p{Default_Ignorable_Code_Point}\u2800])[\p{L}\p{N}\p{P}\p{S}\p{Extended_Pictographic}]/u
