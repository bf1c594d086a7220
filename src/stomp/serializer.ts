/**
 * Frames to octets (STOMP 1.2, "Augmented BNF"): exact in every octet sent. Lines end in LF, names and values are
 * escaped in the receiver's version, a body comes with its content-length, and a frame ends in NUL with nothing
 * after it, because one frame is one WebSocket message.
 */
import { isUtf8 } from 'node:buffer'
import { assert } from '../errors.ts'
import { encodeHeaderName, encodeHeaderValue, isPlainValue, needsEncoding } from './escape.ts'
import { type Command, type Headers, headerOf, type StompVersion } from './frame.ts'

/**
 * The octets of one frame; `content-length` is added where there is a body and must not be among the headers.
 * CONNECT, STOMP and CONNECTED are written without escapes, so their values must have no line break.
 */
export function encodeFrame(
  command: Command,
  headers: Headers,
  version: StompVersion,
  body: Uint8Array = NO_BYTES,
): Buffer {
  const lines = isNeverEscaped(command) ? plainLines(headers) : escapedLines(headers, version)
  return joinFrame(`${command}\n${lines}${lengthLine(body)}\n`, body)
}

/** A subscription's own part of each MESSAGE it receives, encoded once when it is made. */
export class SubscriptionHead {
  readonly version: StompVersion
  /** Whether MESSAGEs carry `ack`: in the ack modes of 1.2. */
  readonly hasAck: boolean
  /** All that comes before the value of `message-id`, escaped. */
  readonly text: string
  /** The same, one character for each octet. */
  readonly octets: string

  /** `id` is undefined for a 1.0 client that gave none; `destination` is spelt as the client did. */
  constructor(version: StompVersion, id: string | undefined, destination: string, isAcknowledged: boolean) {
    const subscription = id === undefined ? [] : ['subscription', id]
    const lines = escapedLines([...subscription, 'destination', destination], version)
    this.version = version
    this.hasAck = isAcknowledged && version === '1.2'
    this.text = `MESSAGE\n${lines}message-id:`
    this.octets = octetsOf(this.text)
  }
}

/**
 * A message to any number of subscriptions. The common part is encoded once per version; a receiver costs one buffer,
 * one short string and one copy of the rest.
 */
export class MessageTemplate {
  /** Whether it may travel as a text WebSocket message; otherwise as a binary one. */
  readonly isText: boolean
  readonly #headers: Headers
  readonly #body: Uint8Array
  #tail10: Buffer | undefined = undefined
  #tail11: Buffer | undefined = undefined
  #tail12: Buffer | undefined = undefined

  /** `headers` are all but subscription, destination, message-id, ack, redelivered and content-length. */
  constructor(headers: Headers, body: Uint8Array) {
    this.#headers = headers
    this.#body = body
    this.isText = isTextBody(body, headerOf(headers, 'content-type'))
  }

  /** The MESSAGE for one subscription. `messageId` is of ASCII letters, digits, `-` and `_`; `ack` has its value. */
  encode(head: SubscriptionHead, messageId: string, isRedelivered = false): Buffer {
    const tail = this.#tail(head.version)
    let text = head.text + messageId
    let headBytes = head.octets.length + messageId.length + 1
    if (head.hasAck) {
      text += ACK_LINE_START + messageId
      headBytes += ACK_LINE_START.length + messageId.length
    }
    if (isRedelivered) {
      text += REDELIVERED_LINE
      headBytes += REDELIVERED_LINE.length
    }
    const frame = Buffer.allocUnsafe(headBytes + tail.length)
    const written = frame.write(`${text}\n`, 0, 'utf8')
    assert(written === headBytes, 'a message-id is not of ASCII')
    frame.set(tail, headBytes)
    return frame
  }

  #tail(version: StompVersion): Buffer {
    switch (version) {
      case '1.2':
        this.#tail12 ??= this.#encodeTail(version)
        return this.#tail12
      case '1.1':
        this.#tail11 ??= this.#encodeTail(version)
        return this.#tail11
      case '1.0':
        this.#tail10 ??= this.#encodeTail(version)
        return this.#tail10
    }
  }

  /** The rest after the line of `message-id`: the other headers, the body, the NUL. */
  #encodeTail(version: StompVersion): Buffer {
    return joinFrame(`${escapedLines(this.#headers, version)}${lengthLine(this.#body)}\n`, this.#body)
  }
}

/**
 * A message to any number of subscriptions, in whose body each has some parts for itself. The rest is encoded once. It may
 * travel as a text message: the body is JSON of ours, which has neither NUL nor half a surrogate pair.
 *
 * Departure from buffers: texts with one character for each octet are joined, copied and counted twice as fast as buffers
 * of a few octets, or text that is still to be encoded (`invitations` in `bench/`).
 */
export class SharedMessage {
  readonly #lines: string
  /** The parts before, between and behind the receiver's own. */
  readonly #texts: readonly string[]

  /** `headers` as for a `MessageTemplate`, of characters that no version has to escape. */
  constructor(headers: Headers, texts: readonly string[]) {
    assert(!headers.some(needsEncoding), 'a header is written alike in all versions')
    this.#lines = octetsOf(escapedLines(headers, '1.2'))
    this.#texts = texts.map(octetsOf)
  }

  /**
   * The MESSAGE for one subscription. `messageId` is of ASCII letters, digits, `-` and `_`; `own` are the receiver's parts,
   * one character for each octet of their UTF-8.
   */
  encode(
    head: SubscriptionHead,
    messageId: string,
    isRedelivered: boolean,
    own: readonly string[] = NO_PARTS,
  ): Buffer {
    let body = this.#texts[0]!
    for (let at = 0; at < own.length; at++) body += own[at]! + this.#texts[at + 1]!
    let text = head.octets + messageId
    if (head.hasAck) text += ACK_LINE_START + messageId
    if (isRedelivered) text += REDELIVERED_LINE
    return Buffer.from(`${text}\n${this.#lines}content-length:${body.length}\n\n${body}\0`, 'latin1')
  }
}

/**
 * Whether a frame with this body may travel as a text WebSocket message: the platform beneath a client cuts text at
 * the first NUL (React Native on Android), and text that is not UTF-8 closes the connection (RFC 6455, section 8.1).
 */
export function isTextBody(body: Uint8Array, contentType: string | undefined): boolean {
  if (contentType?.startsWith('application/octet-stream')) return false
  return !body.includes(0) && isUtf8(body)
}

/** The UTF-8 of a text, one character for each octet. */
function octetsOf(text: string): string {
  return Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString('latin1')
}

function isNeverEscaped(command: Command): boolean {
  return command === 'CONNECTED' || command === 'CONNECT' || command === 'STOMP'
}

function plainLines(headers: Headers): string {
  let lines = ''
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at]!
    const value = headers[at + 1]!
    assert(isPlainValue(name) && !name.includes(':') && isPlainValue(value), 'header cannot be written plain')
    lines += `${name}:${value}\n`
  }
  return lines
}

function escapedLines(headers: Headers, version: StompVersion): string {
  let lines = ''
  for (let at = 0; at < headers.length; at += 2) {
    lines += `${encodeHeaderName(headers[at]!, version)}:${encodeHeaderValue(headers[at + 1]!, version)}\n`
  }
  return lines
}

function lengthLine(body: Uint8Array): string {
  return body.length === 0 ? '' : `content-length:${body.length}\n`
}

function joinFrame(head: string, body: Uint8Array): Buffer {
  const headBytes = Buffer.byteLength(head)
  const frame = Buffer.allocUnsafe(headBytes + body.length + 1)
  frame.write(head, 0, 'utf8')
  frame.set(body, headBytes)
  frame[headBytes + body.length] = 0
  return frame
}

const NO_BYTES = new Uint8Array(0)
const NO_PARTS: readonly string[] = []
const ACK_LINE_START = '\nack:'
const REDELIVERED_LINE = '\nredelivered:true'
