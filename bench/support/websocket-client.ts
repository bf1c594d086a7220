/**
 * A WebSocket client on a bare socket, for load: it walks the server's frames and hands their octets on. Masks are
 * zeros, which costs neither side anything.
 */

import { once } from 'node:events'
import type { Socket } from 'node:net'
import { connectTo, cut, type LoadTarget } from './load-socket.ts'

export abstract class WebSocketClient {
  /** Called behind every chunk that was read. */
  onRead: (() => void) | undefined = undefined
  readonly #socket: Socket
  #isUpgraded = false
  #hasFailed = false
  /** The frame that is being read: octets of its head so far, its kind, its length, and how much of each is to come. */
  #headBytes = 0
  #opcode = 0
  #length = 0
  #lengthBytes = 0
  #left = 0
  #wake: ((error?: Error) => void) | undefined = undefined

  protected constructor(target: LoadTarget) {
    const callback = (length: number) => {
      this.#take(READ_BUFFER.subarray(0, length))
      return true
    }
    this.#socket = connectTo(target, { buffer: READ_BUFFER, callback })
    this.#socket.on('error', error => this.fail(error))
    this.#socket.on('close', () => this.fail(new Error('the server closed a connection')))
    this.#socket.write(UPGRADE)
  }

  get isOpen(): boolean {
    return !this.#hasFailed
  }

  /** Writes octets as they are: frames that `wireFrame` made. */
  send(octets: Uint8Array): void {
    this.#socket.write(octets)
  }

  /** Ends it without a goodbye. */
  async abort(): Promise<void> {
    this.#hasFailed = true
    if (this.#socket.closed) return
    const closed = once(this.#socket, 'close')
    cut(this.#socket)
    await closed
  }

  /** Takes octets of a data frame, lent until it returns. `isWhole` with the frame's last ones, which may be none. */
  protected abstract onPayload(octets: Buffer, isWhole: boolean): void

  /** Resolves when the upgrade is accepted, and later at the next `wake`; rejects when the connection fails. */
  protected woken(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#wake = error => {
        this.#wake = undefined
        if (error === undefined) resolve()
        else reject(error)
      }
    })
  }

  protected wake(): void {
    this.#wake?.()
  }

  protected fail(error: Error): void {
    if (this.#hasFailed) return
    this.#hasFailed = true
    // The count then stands still; the line says why.
    if (this.#wake === undefined) process.stderr.write(`${error.message}\n`)
    else this.#wake(error)
  }

  #take(chunk: Buffer): void {
    let at = this.#isUpgraded ? 0 : this.#readAnswer(chunk)
    while (at < chunk.length) {
      if (this.#left === 0) at = this.#readHead(chunk, at)
      if (this.#left > 0) at = this.#readPayload(chunk, at)
    }
    this.onRead?.()
  }

  /** The answer comes in one chunk, in which the first frame may follow. Returns where. */
  #readAnswer(chunk: Buffer): number {
    this.#isUpgraded = true
    const end = chunk.indexOf(ANSWER_END)
    const isAccepted = end >= 0 && chunk.toString('latin1', 0, ACCEPTED.length) === ACCEPTED
    if (isAccepted) this.wake()
    else this.fail(new Error(`no upgrade: ${chunk}`))
    return isAccepted ? end + ANSWER_END.length : chunk.length
  }

  #readHead(chunk: Buffer, start: number): number {
    let at = start
    while (at < chunk.length) {
      const octet = chunk[at++]!
      this.#headBytes++
      if (this.#headBytes === 1) this.#opcode = octet & 0x0f
      else if (this.#headBytes > 2) {
        this.#length = this.#length * 256 + octet
        this.#lengthBytes--
      } else {
        this.#lengthBytes = octet === 127 ? 8 : octet === 126 ? 2 : 0
        this.#length = this.#lengthBytes === 0 ? octet : 0
      }
      if (this.#headBytes === 1 || this.#lengthBytes > 0) continue
      this.#headBytes = 0
      this.#left = this.#length
      if (this.#left === 0) this.#onOctets(NOTHING)
      break
    }
    return at
  }

  #readPayload(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + this.#left)
    this.#left -= end - at
    this.#onOctets(chunk.subarray(at, end))
    return end
  }

  #onOctets(octets: Buffer): void {
    const isWhole = this.#left === 0
    if (this.#opcode <= BINARY) return this.onPayload(octets, isWhole)
    if (this.#opcode === CLOSE) {
      const code = octets.length < 2 ? 'without a code' : octets.readUInt16BE(0)
      return this.fail(new Error(`closed by the server: ${code} ${octets.subarray(2)}`))
    }
    if (this.#opcode === PING && isWhole) this.#socket.write(PONG)
  }
}

/** A text as the octets of a message from a client. */
export function wireFrame(text: string | Uint8Array): Buffer {
  const payload = Buffer.from(text as string)
  const { length } = payload
  const head =
    length < 126
      ? [0x81, 0x80 | length]
      : length < 65_536
        ? [0x81, 0x80 | 126, length >> 8, length & 0xff]
        : []
  if (head.length === 0) throw new Error('no message of the bench is as long as that')
  return Buffer.concat([Buffer.from(head), NO_MASK, payload])
}

/** Opens so many connections with `open`, a few at a time. */
export async function openMany<Opened>(
  count: number,
  open: (at: number) => Promise<Opened>,
): Promise<Opened[]> {
  const opened: Opened[] = []
  let next = 0
  const openSome = async () => {
    for (let at = next++; at < count; at = next++) opened[at] = await open(at)
  }
  await Promise.all(Array.from({ length: OPENED_AT_ONCE }, openSome))
  return opened
}

const UPGRADE = [
  'GET /ws HTTP/1.1',
  'Host: x',
  'Upgrade: websocket',
  'Connection: Upgrade',
  'Sec-WebSocket-Protocol: v12.stomp',
  'Sec-WebSocket-Version: 13',
  `Sec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}`,
  '\r\n',
].join('\r\n')
const OPENED_AT_ONCE = 64
const READ_BUFFER = Buffer.alloc(256 * 1024)
const NO_MASK = Buffer.alloc(4)
const NOTHING = Buffer.alloc(0)
const ACCEPTED = 'HTTP/1.1 101 '
const ANSWER_END = '\r\n\r\n'
const BINARY = 0x2
const CLOSE = 0x8
const PING = 0x9
const PONG = Buffer.from([0x8a, 0x80, 0, 0, 0, 0])
