/**
 * Octets to frames (STOMP 1.2, "Augmented BNF"), in whatever pieces they come: a push parser that is fed chunks and
 * asked for frames one at a time, so that its owner can stop between two of them. Versions differ in escapes only;
 * the owner sets `version` as soon as it has negotiated one, before it asks for the next frame.
 *
 * Everything is refused at the first octet that cannot be right, and where that is does not depend on how the octets
 * were cut. An incomplete frame's memory is bounded by its limits and grows with the octets received, never with an
 * announced length.
 *
 * Choices, where STOMP is silent or left to the server: CRLF ends a line in every version; NULs between frames are
 * skipped; NUL inside the header block, so also a block that no empty line closes, is refused; a value may hold raw
 * colons; a body where none is allowed is refused, but for 1.0, which never forbade it.
 */
import { isUtf8 } from 'node:buffer'
import { assert } from '../errors.ts'
import {
  COMMAND_BYTES_MAX,
  FRAME_BYTES_BEFORE_CONNECT_MAX,
  HEADER_LINE_BYTES_MAX,
  HEADERS_MAX,
} from '../limits.ts'
import { decodeHeader } from './escape.ts'
import { type ClientCommand, Frame, headerOf, type StompVersion } from './frame.ts'
import { FrameRefusal, type RefusalReason } from './refusal.ts'
import { WordTable } from './word-table.ts'

/** Reads the frames of one client. Between frames it holds no memory but its own fields. */
export class StompParser {
  /** The rules for the next frames; undefined until a CONNECT has been read, and before that nothing is unescaped. */
  version: StompVersion | undefined = undefined
  /** Octets of a frame from command to NUL, exclusive. The owner raises it after CONNECT. */
  frameBytesMax: number = FRAME_BYTES_BEFORE_CONNECT_MAX

  #chunk: Buffer = NO_BYTES
  #at = 0
  #state = BETWEEN_FRAMES
  #refusal: FrameRefusal | undefined = undefined

  // The frame that is being read.
  #command: ClientCommand = 'CONNECT'
  #headers: string[] = NO_HEADERS
  #contentLength = UNKNOWN
  /** Octets of the frame in finished lines, LFs included. */
  #linesBytes = 0

  // The line or body that is being read, as far as it came in earlier chunks.
  #held: Buffer = NO_BYTES
  #heldBytes = 0
  /**
   * Facts about the line: where its first colon is; whether it holds a backslash or an octet above 0x7F, or ends in
   * CR.
   */
  #colonAt = UNKNOWN
  #seen = 0

  /** Octets that are kept of frames not yet handed out. */
  get heldBytes(): number {
    return this.#held.length + this.#linesBytes
  }

  /**
   * Lends a chunk, until `next` returns undefined or the caller gives up reading. Call it once the chunk before has
   * been read.
   */
  feed(chunk: Uint8Array): void {
    assert(this.#at === this.#chunk.length, 'a chunk was fed before the last one was read')
    this.#chunk = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
    this.#at = 0
  }

  /**
   * The next complete frame; undefined when the octets fed so far have none, and then the chunk is the caller's again.
   * Throws a `FrameRefusal` for a frame that breaks a rule or a limit, and again whenever it is asked.
   */
  next(): Frame | undefined {
    if (this.#refusal !== undefined) throw this.#refusal
    while (this.#at < this.#chunk.length) {
      switch (this.#state) {
        case BETWEEN_FRAMES:
          this.#skipToFrame()
          break
        case IN_LINES:
          this.#readLine()
          break
        default: {
          const body = this.#contentLength === UNKNOWN ? this.#readBodyToNul() : this.#readCountedBody()
          if (body !== undefined) return this.#finishFrame(body)
        }
      }
    }
    this.#chunk = NO_BYTES
    this.#at = 0
    return undefined
  }

  /** Skips beats and stray NULs. A CR begins a line, which then has to be an empty one. */
  #skipToFrame(): void {
    const chunk = this.#chunk
    let at = this.#at
    while (at < chunk.length && (chunk[at] === LF || chunk[at] === NUL)) at++
    this.#at = at
    if (at < chunk.length) this.#state = IN_LINES
  }

  /** Reads a line up to its LF, or what there is of it. One loop finds all that a line can hold of interest. */
  #readLine(): void {
    const chunk = this.#chunk
    const start = this.#at
    const room = this.#lineRoom()
    let colonAt = this.#colonAt
    let seen = this.#seen
    if ((seen & ENDS_IN_CR) !== 0 && chunk[start] !== LF) this.#refuseStrayCr()
    let at = start
    for (; at < chunk.length; at++) {
      const kind = KIND_OF[chunk[at]!]!
      if (kind === IS_LF) break
      if (at - start >= room) this.#refuseLongLine()
      if (kind === IS_PLAIN) continue
      if (kind === IS_COLON) {
        if (colonAt === UNKNOWN) colonAt = this.#heldBytes + at - start
      } else if (kind === IS_NUL) {
        this.#refuse('malformed_frame', 'NUL before the end of the headers')
      } else if (kind === ENDS_IN_CR) {
        if (at + 1 < chunk.length && chunk[at + 1] !== LF) this.#refuseStrayCr()
        seen |= ENDS_IN_CR
      } else {
        seen |= kind
      }
    }
    this.#at = at
    if (at === chunk.length) {
      this.#colonAt = colonAt
      this.#seen = seen
      this.#hold(start, at, HEADER_LINE_BYTES_MAX)
      return
    }
    this.#at = at + 1
    this.#takeLine(start, at, colonAt, seen)
  }

  /** Octets that the line may still have before its LF. */
  #lineRoom(): number {
    return Math.min(this.#lineBytesMax(), this.frameBytesMax - this.#linesBytes) - this.#heldBytes
  }

  #lineBytesMax(): number {
    return this.#linesBytes === 0 ? COMMAND_BYTES_MAX : HEADER_LINE_BYTES_MAX
  }

  /** A line whose last octets are [start, end) of the chunk and whose first ones may be held. */
  #takeLine(start: number, end: number, colonAt: number, seen: number): void {
    const lineBytes = this.#heldBytes + end - start
    const contentBytes = (seen & ENDS_IN_CR) === 0 ? lineBytes : lineBytes - 1
    const isFirst = this.#linesBytes === 0
    let bytes = this.#chunk
    let lineStart = start
    if (this.#heldBytes > 0) {
      this.#hold(start, end, HEADER_LINE_BYTES_MAX)
      bytes = this.#held
      lineStart = 0
    }
    this.#heldBytes = 0
    this.#colonAt = UNKNOWN
    this.#seen = 0
    this.#linesBytes += lineBytes + 1
    if (isFirst) this.#takeCommand(bytes, lineStart, lineStart + contentBytes)
    else if (contentBytes === 0) this.#endHeaders()
    else this.#takeHeader(bytes, lineStart, lineStart + colonAt, lineStart + contentBytes, seen)
  }

  #takeCommand(bytes: Buffer, start: number, end: number): void {
    if (end === start) return this.#reset()
    const command = COMMANDS.find(bytes, start, end)
    if (command === undefined) this.#refuse('unknown_command', 'unknown command')
    if (command === 'NACK' && this.version === '1.0') this.#refuse('unknown_command', 'no NACK in STOMP 1.0')
    this.#command = command
    this.#headers = []
  }

  #takeHeader(bytes: Buffer, start: number, colon: number, end: number, seen: number): void {
    if (this.#headers.length === 2 * HEADERS_MAX) {
      this.#refuse('too_many_headers', TOO_MANY_HEADERS)
    }
    if (colon < start) this.#refuse('malformed_frame', 'header line without a colon')
    if (colon === start) this.#refuse('malformed_frame', 'header without a name')
    let name = NAMES.find(bytes, start, colon)
    let value: string
    if (seen === 0 || seen === ENDS_IN_CR) {
      name ??= bytes.toString('latin1', start, colon)
      value = bytes.toString('latin1', colon + 1, end)
    } else {
      if ((seen & HAS_HIGH) !== 0 && !isUtf8(bytes.subarray(start, end))) {
        this.#refuse('invalid_utf8', 'header is not UTF-8')
      }
      name ??= this.#unescape(bytes.toString('utf8', start, colon))
      value = this.#unescape(bytes.toString('utf8', colon + 1, end))
    }
    // The first of repeated headers counts.
    if (name === 'content-length' && this.#contentLength === UNKNOWN) {
      this.#contentLength = this.#parseContentLength(value)
    }
    this.#headers.push(name, value)
  }

  #unescape(text: string): string {
    const { version } = this
    // CONNECT and STOMP are never escaped, in any version.
    if (version === undefined || this.#command === 'CONNECT' || this.#command === 'STOMP') return text
    const decoded = decodeHeader(text, version)
    if (decoded === undefined) this.#refuse('undefined_escape', 'undefined escape in a header')
    return decoded
  }

  #parseContentLength(value: string): number {
    const isPadded = value.length > 1 && value.charCodeAt(0) === DIGIT_0
    let length = value.length === 0 || isPadded ? Number.NaN : 0
    for (let at = 0; at < value.length; at++) {
      const digit = value.charCodeAt(at) - DIGIT_0
      length = digit >= 0 && digit <= 9 ? length * 10 + digit : Number.NaN
    }
    if (Number.isNaN(length)) this.#refuse('content_length_invalid', 'content-length is no decimal number')
    if (length > this.frameBytesMax) this.#refuseLargeFrame()
    return length
  }

  #endHeaders(): void {
    if (this.#contentLength > 0 && !this.#mayHaveBody()) this.#refuseBody()
    if (this.#linesBytes + Math.max(this.#contentLength, 0) > this.frameBytesMax) this.#refuseLargeFrame()
    this.#state = IN_BODY
  }

  /** The body up to the first NUL; undefined while there is none. */
  #readBodyToNul(): Buffer | undefined {
    const chunk = this.#chunk
    const start = this.#at
    if (chunk[start] !== NUL && !this.#mayHaveBody()) this.#refuseBody()
    const nul = chunk.indexOf(NUL, start)
    const end = nul < 0 ? chunk.length : nul
    const room = this.frameBytesMax - this.#linesBytes - this.#heldBytes
    if (end - start > room) this.#refuseLargeFrame()
    this.#at = end
    if (nul >= 0) return this.#takeBody(start, end)
    this.#hold(start, end, this.frameBytesMax)
    return undefined
  }

  /** A body of `content-length` octets, which a NUL has to follow; undefined while either is missing. */
  #readCountedBody(): Buffer | undefined {
    const chunk = this.#chunk
    const start = this.#at
    const end = start + this.#contentLength - this.#heldBytes
    if (end >= chunk.length) {
      this.#at = chunk.length
      this.#hold(start, chunk.length, this.#contentLength)
      return undefined
    }
    if (chunk[end] !== NUL) {
      if (!this.#mayHaveBody()) this.#refuseBody()
      this.#refuse('malformed_frame', 'body is longer than content-length')
    }
    this.#at = end
    return this.#takeBody(start, end)
  }

  /** A body that ends with [start, end) of the chunk: the one copy that is made of it, unless it was held already. */
  #takeBody(start: number, end: number): Buffer {
    if (this.#heldBytes > 0) {
      this.#hold(start, end, this.#heldBytes + end - start)
      return this.#held.subarray(0, this.#heldBytes)
    }
    if (end === start) return NO_BYTES
    const body = Buffer.allocUnsafe(end - start)
    this.#chunk.copy(body, 0, start, end)
    return body
  }

  #finishFrame(body: Buffer): Frame {
    const frame = new Frame(this.#command, this.#headers, body)
    this.#at += 1
    this.#reset()
    return frame
  }

  /** To between two frames. */
  #reset(): void {
    this.#state = BETWEEN_FRAMES
    this.#headers = NO_HEADERS
    this.#contentLength = UNKNOWN
    this.#linesBytes = 0
    this.#held = NO_BYTES
    this.#heldBytes = 0
  }

  /** Keeps [start, end) of the chunk behind the octets held, in room for at most `bytesMax`, doubled as it fills. */
  #hold(start: number, end: number, bytesMax: number): void {
    const bytes = this.#heldBytes + end - start
    if (bytes > this.#held.length) {
      const wider = Math.max(bytes, Math.min(bytesMax, Math.max(HELD_BYTES_MIN, this.#held.length * 2)))
      // From Node's pool: a shared slab may live longer, but a frame in two chunks costs half as much.
      const held = Buffer.allocUnsafe(wider)
      this.#held.copy(held, 0, 0, this.#heldBytes)
      this.#held = held
    }
    this.#chunk.copy(this.#held, this.#heldBytes, start, end)
    this.#heldBytes = bytes
  }

  #mayHaveBody(): boolean {
    return this.#command === 'SEND' || this.version === '1.0'
  }

  #refuseStrayCr(): never {
    this.#refuse('malformed_frame', 'CR without LF')
  }

  #refuseBody(): never {
    this.#refuse('body_not_allowed', 'only SEND may have a body')
  }

  #refuseLongLine(): never {
    if (this.frameBytesMax - this.#linesBytes < this.#lineBytesMax()) this.#refuseLargeFrame()
    if (this.#linesBytes === 0) this.#refuse('unknown_command', COMMAND_TOO_LONG)
    this.#refuse('header_line_too_long', HEADER_LINE_TOO_LONG)
  }

  #refuseLargeFrame(): never {
    this.#refuse('frame_too_large', `frame exceeds ${this.frameBytesMax} bytes`)
  }

  #refuse(reason: RefusalReason, message: string): never {
    const refusal = new FrameRefusal(reason, message, headerOf(this.#headers, 'receipt'))
    this.#refusal = refusal
    this.#chunk = NO_BYTES
    this.#at = 0
    this.#reset()
    throw refusal
  }
}

const COMMANDS = new WordTable<ClientCommand>([
  'CONNECT',
  'STOMP',
  'SEND',
  'SUBSCRIBE',
  'UNSUBSCRIBE',
  'ACK',
  'NACK',
  'BEGIN',
  'COMMIT',
  'ABORT',
  'DISCONNECT',
])

/** Header names that clients send often; none of them has an octet that could be escaped. */
const NAMES = new WordTable<string>([
  'accept-version',
  'host',
  'login',
  'passcode',
  'heart-beat',
  'Authorization',
  'destination',
  'content-type',
  'content-length',
  'receipt',
  'transaction',
  'id',
  'ack',
  'message-id',
  'subscription',
])

const BETWEEN_FRAMES = 0
const IN_LINES = 1
const IN_BODY = 2

const UNKNOWN = -1
/** The first piece of a line or body that is kept; most lines fit. */
const HELD_BYTES_MIN = 64
const NO_BYTES = Buffer.alloc(0)
/** Shared by all parsers between frames: nothing is ever pushed to it. */
const NO_HEADERS: string[] = []

const NUL = 0x00
const LF = 0x0a
const DIGIT_0 = 0x30

// An octet's class within a line. The three that are bits are remembered to the line's end.
const IS_PLAIN = 0
const ENDS_IN_CR = 1
const HAS_BACKSLASH = 2
const HAS_HIGH = 4
const IS_LF = 8
const IS_NUL = 9
const IS_COLON = 10
const KIND_OF = new Uint8Array(256).fill(HAS_HIGH, 0x80)
KIND_OF[NUL] = IS_NUL
KIND_OF[LF] = IS_LF
KIND_OF[0x0d] = ENDS_IN_CR
KIND_OF[0x3a] = IS_COLON
KIND_OF[0x5c] = HAS_BACKSLASH

const TOO_MANY_HEADERS = `more than ${HEADERS_MAX} headers`
const COMMAND_TOO_LONG = `command exceeds ${COMMAND_BYTES_MAX} bytes`
const HEADER_LINE_TOO_LONG = `header line exceeds ${HEADER_LINE_BYTES_MAX} bytes`
