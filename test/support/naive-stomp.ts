/**
 * STOMP's grammar octet by octet, as plainly as it can be said, sharing nothing with `src/stomp`: slow, and the oracle
 * for frames and refusals: with which code, and at which octet. Also the client's side in tests.
 */

export interface NaiveFrame {
  readonly command: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Buffer
}

export interface NaiveRules {
  readonly commands: readonly string[]
  readonly commandsWithBody: readonly string[]
  /** Undefined: nothing is unescaped. */
  version: string | undefined
  frameBytesMax: number
  readonly lineBytesMax: number
  readonly headersMax: number
}

/** Thrown for octets that are not STOMP; nothing is read after it. */
export class NaiveRefusal extends Error {
  readonly closeCode: number

  constructor(closeCode: number, message: string) {
    super(message)
    this.closeCode = closeCode
  }
}

export function clientRules(version: string | undefined, frameBytesMax: number): NaiveRules {
  const commands = 'CONNECT STOMP SEND SUBSCRIBE UNSUBSCRIBE ACK NACK BEGIN COMMIT ABORT DISCONNECT'.split(
    ' ',
  )
  return { commands, commandsWithBody: ['SEND'], version, frameBytesMax, lineBytesMax: 8192, headersMax: 64 }
}

export function serverRules(version: string | undefined): NaiveRules {
  const commands = ['CONNECTED', 'MESSAGE', 'RECEIPT', 'ERROR']
  const unbounded = { frameBytesMax: Infinity, lineBytesMax: Infinity, headersMax: Infinity }
  return { commands, commandsWithBody: ['MESSAGE', 'ERROR'], version, ...unbounded }
}

export class NaiveParser {
  readonly rules: NaiveRules
  #place: 'between' | 'command' | 'headers' | 'body' = 'between'
  #octets = 0
  #line: number[] = []
  #command = ''
  #headers: (readonly [string, string])[] = []
  #body: number[] = []

  constructor(rules: NaiveRules) {
    this.rules = rules
  }

  /** The frames that end in these octets. */
  read(octets: Iterable<number>): NaiveFrame[] {
    const frames: NaiveFrame[] = []
    for (const octet of octets) {
      const frame = this.push(octet)
      if (frame !== undefined) frames.push(frame)
    }
    return frames
  }

  /** The frame that ends in this octet, if one does. */
  push(octet: number): NaiveFrame | undefined {
    if (this.#place === 'between') {
      if (octet === 0 || octet === 10) return undefined
      this.#place = 'command'
    }
    if (this.#place === 'body') return this.#pushToBody(octet)
    if (this.#line.at(-1) === 13 && octet !== 10) throw new NaiveRefusal(1002, 'CR without LF')
    if (octet === 10) this.#endLine()
    else this.#pushToLine(octet)
    return undefined
  }

  #pushToLine(octet: number): void {
    const isCommand = this.#place === 'command'
    if (this.#octets + this.#line.length >= this.rules.frameBytesMax) throw new NaiveRefusal(1009, 'frame')
    const lineBytesMax = isCommand ? 16 : this.rules.lineBytesMax
    if (this.#line.length >= lineBytesMax) throw new NaiveRefusal(isCommand ? 1002 : 1009, 'line')
    if (octet === 0) throw new NaiveRefusal(1002, 'NUL in the header block')
    this.#line.push(octet)
  }

  #endLine(): void {
    this.#octets += this.#line.length + 1
    const line = Buffer.from(this.#line)
    this.#line = []
    const content = line.at(-1) === 13 ? line.subarray(0, -1) : line
    if (this.#place === 'headers') return content.length === 0 ? this.#endHeaders() : this.#header(content)
    if (content.length === 0) return this.#reset()
    const command = content.toString('latin1')
    const isKnown = this.rules.commands.includes(command)
    if (!isKnown || (command === 'NACK' && this.rules.version === '1.0')) {
      throw new NaiveRefusal(1002, 'unknown command')
    }
    this.#command = command
    this.#place = 'headers'
  }

  #header(line: Buffer): void {
    if (this.#headers.length === this.rules.headersMax) throw new NaiveRefusal(1009, 'too many headers')
    const colon = line.indexOf(':')
    if (colon < 0) throw new NaiveRefusal(1002, 'no colon')
    if (colon === 0) throw new NaiveRefusal(1002, 'no name')
    const text = decodeUtf8(line)
    const name = this.#unescape(text.slice(0, text.indexOf(':')))
    const value = this.#unescape(text.slice(text.indexOf(':') + 1))
    if (name === 'content-length' && this.#lengthHeader() === undefined) {
      if (!/^(0|[1-9][0-9]*)$/.test(value)) throw new NaiveRefusal(1002, 'content-length')
      if (Number(value) > this.rules.frameBytesMax) throw new NaiveRefusal(1009, 'content-length')
    }
    this.#headers.push([name, value])
  }

  #endHeaders(): void {
    const length = this.#lengthHeader() ?? 0
    if (length > 0 && !this.#mayHaveBody()) throw new NaiveRefusal(1002, 'body not allowed')
    if (this.#octets + length > this.rules.frameBytesMax) throw new NaiveRefusal(1009, 'frame')
    this.#place = 'body'
  }

  #pushToBody(octet: number): NaiveFrame | undefined {
    const length = this.#lengthHeader()
    if (length === undefined ? octet !== 0 : this.#body.length < length || octet !== 0) {
      if (!this.#mayHaveBody()) throw new NaiveRefusal(1002, 'body not allowed')
      if (length !== undefined && this.#body.length === length)
        throw new NaiveRefusal(1002, 'longer than counted')
      if (this.#octets + this.#body.length >= this.rules.frameBytesMax) throw new NaiveRefusal(1009, 'frame')
      this.#body.push(octet)
      return undefined
    }
    const frame = { command: this.#command, headers: this.#headers, body: Buffer.from(this.#body) }
    this.#reset()
    return frame
  }

  #lengthHeader(): number | undefined {
    const first = this.#headers.find(([name]) => name === 'content-length')
    return first === undefined ? undefined : Number(first[1])
  }

  #mayHaveBody(): boolean {
    return this.rules.version === '1.0' || this.rules.commandsWithBody.includes(this.#command)
  }

  #unescape(text: string): string {
    const { version } = this.rules
    if (version === undefined || version === '1.0') return text
    if (['CONNECT', 'STOMP', 'CONNECTED'].includes(this.#command)) return text
    const meanings: Record<string, string> = { n: '\n', c: ':', '\\': '\\' }
    if (version === '1.2') meanings.r = '\r'
    let out = ''
    for (let at = 0; at < text.length; at++) {
      if (text[at] !== '\\') {
        out += text[at]
        continue
      }
      at++
      const meaning = meanings[text[at] ?? 'end']
      if (meaning === undefined) throw new NaiveRefusal(1002, 'undefined escape')
      out += meaning
    }
    return out
  }

  #reset(): void {
    this.#place = 'between'
    this.#octets = 0
    this.#command = ''
    this.#headers = []
    this.#body = []
  }
}

/** The first value of a header. */
export function headerOf(frame: NaiveFrame | undefined, name: string): string | undefined {
  return frame?.headers.find(([each]) => each === name)?.[1]
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new NaiveRefusal(1007, 'not UTF-8')
  }
}
