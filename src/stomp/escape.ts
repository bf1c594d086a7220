/**
 * Header escaping (STOMP 1.2, "Value Encoding"; 1.1 without `\r`; 1.0 has none). Frames that are never escaped
 * (CONNECT, STOMP, CONNECTED) do not come here.
 * Choice: what a version cannot carry becomes a blank on the way out: NUL in all of them, CR in 1.1, every line break
 * in 1.0, and there also a colon in a name, which would end it early and make another header of it.
 */
import type { StompVersion } from './frame.ts'

/**
 * A name or value as it was before it was escaped; undefined for an escape that the version does not define, also for
 * a backslash at the end. One pass from left to right, so that an escaped backslash never escapes the next character.
 */
export function decodeHeader(text: string, version: StompVersion): string | undefined {
  let at = version === '1.0' ? -1 : text.indexOf('\\')
  if (at < 0) return text
  let decoded = ''
  let taken = 0
  for (; at >= 0; at = text.indexOf('\\', taken)) {
    const meaning = meaningOf(text.charCodeAt(at + 1), version)
    if (meaning === undefined) return undefined
    decoded += text.slice(taken, at) + meaning
    taken = at + 2
  }
  return decoded + text.slice(taken)
}

/** A header's value as the version writes it: never a line break, NUL, or in 1.1 and 1.2 a colon. */
export function encodeHeaderValue(text: string, version: StompVersion): string {
  return needsEncoding(text) ? encode(text, version, ':') : text
}

/** A header's name as the version writes it: never a line break, NUL or colon. */
export function encodeHeaderName(text: string, version: StompVersion): string {
  return needsEncoding(text) ? encode(text, version, ' ') : text
}

/** Whether the text can stand in a frame that is never escaped, such as CONNECTED. */
export function isPlainValue(text: string): boolean {
  return !text.includes('\n') && !text.includes('\r') && !text.includes('\0')
}

function meaningOf(code: number, version: StompVersion): string | undefined {
  switch (code) {
    case LETTER_N:
      return '\n'
    case LETTER_C:
      return ':'
    case BACKSLASH:
      return '\\'
    case LETTER_R:
      return version === '1.2' ? '\r' : undefined
    default:
      return undefined
  }
}

/** Whether a name or value may be written otherwise than it is, in any version. */
export function needsEncoding(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code <= CARRIAGE_RETURN || code === COLON || code === BACKSLASH) return true
  }
  return false
}

function encode(text: string, version: StompVersion, colonIn10: string): string {
  let encoded = ''
  let taken = 0
  for (let at = 0; at < text.length; at++) {
    const replacement = replacementOf(text.charCodeAt(at), version, colonIn10)
    if (replacement === undefined) continue
    encoded += text.slice(taken, at) + replacement
    taken = at + 1
  }
  return encoded + text.slice(taken)
}

function replacementOf(code: number, version: StompVersion, colonIn10: string): string | undefined {
  switch (code) {
    case 0:
      return ' '
    case LINE_FEED:
      return version === '1.0' ? ' ' : '\\n'
    case CARRIAGE_RETURN:
      return version === '1.2' ? '\\r' : ' '
    case COLON:
      return version === '1.0' ? colonIn10 : '\\c'
    case BACKSLASH:
      return version === '1.0' ? undefined : '\\\\'
    default:
      return undefined
  }
}

const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const COLON = 0x3a
const BACKSLASH = 0x5c
const LETTER_C = 0x63
const LETTER_N = 0x6e
const LETTER_R = 0x72
