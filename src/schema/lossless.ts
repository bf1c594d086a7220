/**
 * JSON text to values, without the losses of `JSON.parse` (contract 1.2, 1.3): an integer that a double can't hold
 * becomes a bigint, an object with one member twice is refused, and so is a string with half a character in it.
 *
 * One look at the text picks the parser. `JSON.parse` reads nearly all bodies; `readLossless`, which is slower, reads those
 * with sixteen digits in a row outside strings, and those with an escape in a member's name: from Node 24 on `JSON.parse`
 * can take such a name for another object's member (`{"a":1,"\\":2}` read before `{"a":1,"\u0062":2}`).
 */

import { isUtf8 } from 'node:buffer'
import { SignalError } from '../errors.ts'
import { JSON_DEPTH_MAX } from '../limits.ts'
import { endOfString, readLossless } from './lossless-reader.ts'

/**
 * The value of a body, which refusals call `name`. Integers from 2^53 to 20 digits are bigints, all other numbers are doubles. Throws
 * `MALFORMED_JSON`, also for bytes that aren't UTF-8, a byte order mark, and more than `JSON_DEPTH_MAX` levels.
 */
export function parseJson(body: Uint8Array, name = 'the body'): unknown {
  if (!isUtf8(body)) throw malformed(`${name} is not UTF-8`)
  const text = Buffer.from(body.buffer, body.byteOffset, body.length).toString('utf8')
  const sketch = sketchOf(text)
  if (sketch.depth > JSON_DEPTH_MAX) throw malformed(`${name} nests deeper than ${JSON_DEPTH_MAX} levels`)
  const value = parseText(text, sketch, name)
  if (memberCount(value) !== sketch.colons) throw malformed(`an object in ${name} has a member twice`)
  if (SURROGATE_ESCAPE.test(text) && hasLoneSurrogate(value)) {
    throw malformed(`a string in ${name} has half a surrogate pair`)
  }
  return value
}

function parseText(text: string, { hasLongNumber, hasEscapedName }: Sketch, name: string): unknown {
  try {
    return hasLongNumber || hasEscapedName ? readLossless(text) : JSON.parse(text)
  } catch (cause) {
    throw malformed(`${name} is not JSON`, cause)
  }
}

/** A text's outline outside its strings; for text that is not JSON any figures will do. */
interface Sketch {
  /** The deepest nesting of brackets. */
  readonly depth: number
  /** JSON has one for each member, whether or not a later member replaces it. */
  readonly colons: number
  readonly hasLongNumber: boolean
  readonly hasEscapedName: boolean
}

function sketchOf(text: string): Sketch {
  let depth = 0
  let deepest = 0
  let colons = 0
  let digits = 0
  let hasLongNumber = false
  let hasEscapedName = false
  let stringFrom = 0
  let stringTo = 0
  let backslash = text.indexOf('\\')
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code >= DIGIT_0 && code <= DIGIT_9) {
      if (++digits === LONG_NUMBER_DIGITS) hasLongNumber = true
      continue
    }
    digits = 0
    if (code === QUOTE) {
      stringFrom = at + 1
      at = stringTo = endOfString(text, stringFrom)
    } else if (code === COLON) {
      colons++
      if (backslash !== -1 && backslash < stringFrom) backslash = text.indexOf('\\', stringFrom)
      if (backslash !== -1 && backslash < stringTo) hasEscapedName = true
    } else if (code === OPEN_BRACKET || code === OPEN_BRACE) deepest = Math.max(deepest, ++depth)
    else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) depth--
  }
  return { depth: deepest, colons, hasLongNumber, hasEscapedName }
}

/** Members of all objects in a value. A text with more colons than this had a member twice. */
function memberCount(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const inner = Object.values(value)
  let count = Array.isArray(value) ? 0 : inner.length
  for (const each of inner) count += memberCount(each)
  return count
}

function hasLoneSurrogate(value: unknown): boolean {
  if (typeof value === 'string') return LONE_SURROGATE.test(value)
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([name, member]) => LONE_SURROGATE.test(name) || hasLoneSurrogate(member))
}

function malformed(detail: string, cause?: unknown): SignalError {
  return new SignalError('MALFORMED_JSON', detail, { cause })
}

/** The shortest number that may exceed 2^53 - 1. */
const LONG_NUMBER_DIGITS = 16
const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/
const LONE_SURROGATE = /\p{Surrogate}/u
const QUOTE = 0x22
const COLON = 0x3a
const DIGIT_0 = 0x30
const DIGIT_9 = 0x39
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
