/**
 * JSON text (RFC 8259) to values, as `JSON.parse` reads it, but for its integers that a double can't hold: they become bigints.
 * Five times slower than `JSON.parse`, so that only texts that need it come here.
 */

/** The value of a text without deep nesting; of two members of one name the last counts. Throws `SyntaxError`. */
export function readLossless(text: string): unknown {
  const reader = new LosslessReader(text)
  const value = reader.readValue()
  reader.assertEnd()
  return value
}

/** The place of the closing quotation mark of a string that begins at `from`; the text's end for none. */
export function endOfString(text: string, from: number): number {
  let end = text.indexOf('"', from)
  while (end !== -1) {
    let backslashesFrom = end
    while (backslashesFrom > from && text.charCodeAt(backslashesFrom - 1) === BACKSLASH) backslashesFrom--
    if ((end - backslashesFrom) % 2 === 0) return end
    end = text.indexOf('"', end + 1)
  }
  return text.length
}

class LosslessReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  readValue(): unknown {
    switch (this.#next()) {
      case OPEN_BRACE:
        return this.#readObject()
      case OPEN_BRACKET:
        return this.#readArray()
      case QUOTE:
        return this.#readString()
      case LETTER_T:
        return this.#readWord('true', true)
      case LETTER_F:
        return this.#readWord('false', false)
      case LETTER_N:
        return this.#readWord('null', null)
      default:
        return this.#readNumber()
    }
  }

  assertEnd(): void {
    this.#next()
    if (this.#at < this.#text.length) this.#fail()
  }

  #readObject(): Record<string, unknown> {
    const object: Record<string, unknown> = {}
    if (this.#beginsEmpty(CLOSE_BRACE)) return object
    do {
      if (this.#next() !== QUOTE) this.#fail()
      const name = this.#readString()
      if (!this.#takes(COLON)) this.#fail()
      const value = this.readValue()
      if (name !== '__proto__') object[name] = value
      else
        Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
    } while (this.#takes(COMMA))
    if (!this.#takes(CLOSE_BRACE)) this.#fail()
    return object
  }

  #readArray(): unknown[] {
    const array: unknown[] = []
    if (this.#beginsEmpty(CLOSE_BRACKET)) return array
    do array.push(this.readValue())
    while (this.#takes(COMMA))
    if (!this.#takes(CLOSE_BRACKET)) this.#fail()
    return array
  }

  #readString(): string {
    const from = this.#at
    PLAIN_STRING.lastIndex = from
    if (PLAIN_STRING.test(this.#text)) {
      this.#at = PLAIN_STRING.lastIndex
      return this.#text.slice(from + 1, this.#at - 1)
    }
    this.#at = endOfString(this.#text, from + 1) + 1
    return JSON.parse(this.#text.slice(from, this.#at)) as string
  }

  #readNumber(): number | bigint {
    NUMBER.lastIndex = this.#at
    if (!NUMBER.test(this.#text)) this.#fail()
    const digits = this.#text.slice(this.#at, NUMBER.lastIndex)
    this.#at = NUMBER.lastIndex
    const double = Number(digits)
    return !Number.isSafeInteger(double) && LONG_INTEGER.test(digits) ? BigInt(digits) : double
  }

  #readWord<Value>(word: string, value: Value): Value {
    if (!this.#text.startsWith(word, this.#at)) this.#fail()
    this.#at += word.length
    return value
  }

  /** Steps over an opening bracket, and over the closing one where it follows. */
  #beginsEmpty(closing: number): boolean {
    this.#at++
    return this.#takes(closing)
  }

  /** Steps over this character where it is the next one. */
  #takes(code: number): boolean {
    if (this.#next() !== code) return false
    this.#at++
    return true
  }

  /** The code of the next character that is no blank; NaN at the end. */
  #next(): number {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code !== SPACE && code !== LF && code !== CR && code !== TAB) return code
      this.#at++
    }
  }

  #fail(): never {
    throw new SyntaxError(`unexpected at position ${this.#at}`)
  }
}

/** A string without escapes and control characters. */
const PLAIN_STRING = /"[ !#-[\]-\uffff]*"/y
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
/** The longest that may be a uint64 has 20 digits. */
const LONG_INTEGER = /^[1-9][0-9]{15,19}$/
const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const LETTER_F = 0x66
const LETTER_N = 0x6e
const LETTER_T = 0x74
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
