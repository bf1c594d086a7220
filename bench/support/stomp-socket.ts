/**
 * A STOMP client on a bare TCP socket, for load: it walks the WebSocket frames of the server and counts them, and looks
 * into them only where it is asked to. Masks are zeros, which costs neither side anything.
 */

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** One queue or topic, and how it is subscribed to. */
export interface Subscribing {
  readonly id: string
  readonly destination: string
  readonly ack: 'auto' | 'client' | 'client-individual'
}

/** Header lines of CONNECT by which a client says to whom it speaks and who it is. */
export type Login = readonly string[]

export function bearerLogin(token: string): Login {
  return ['host:bench', `authorization:Bearer ${token}`]
}

export class StompSocket {
  /** Messages that have come whole. */
  messages = 0
  /** Called behind every chunk that was read. */
  onRead: (() => void) | undefined = undefined
  /** Called with the octets of each message, lent until it returns. Without it they are not put together. */
  onMessage: ((message: Buffer) => void) | undefined = undefined
  readonly #socket: Socket
  #isUpgraded = false
  #hasFailed = false
  /** Of the frame that is being read: the octets of its head so far, its kind, and how much of it is to come. */
  #head = 0
  #headBytes = 0
  #opcode = 0
  #left = 0
  #parts: Buffer[] = []
  #wake: ((error?: Error) => void) | undefined = undefined

  private constructor(port: number) {
    const callback = (length: number) => {
      this.#take(READ_BUFFER.subarray(0, length))
      return true
    }
    const onread = { buffer: READ_BUFFER, callback }
    // No address of its own: to bind one has the kernel look for a port that nobody at all uses, and that takes longer
    // than everything else when many are taken.
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true, onread })
    this.#socket.on('error', error => this.#fail(error))
    this.#socket.on('close', () => this.#fail(new Error('the server closed a connection')))
  }

  /** Connects to a port of this machine; resolves when the upgrade is accepted. */
  static async open(port: number): Promise<StompSocket> {
    const client = new StompSocket(port)
    client.#socket.write(UPGRADE)
    await client.#woken()
    return client
  }

  /** Signs in; resolves when CONNECTED has come. */
  async signIn(login: Login, heartBeat = '0,0'): Promise<void> {
    const lines = ['CONNECT', 'accept-version:1.2', `heart-beat:${heartBeat}`, ...login]
    const connected = this.#next('CONNECTED')
    this.send(wireFrame(`${lines.join('\n')}\n\n\0`))
    await connected
  }

  /** Subscribes to all of them at once; resolves when the last is confirmed. */
  async subscribe(subscribings: readonly Subscribing[]): Promise<void> {
    const confirmed = this.#next('RECEIPT')
    const frames = subscribings.map(({ id, destination, ack }, at) => {
      const receipt = at === subscribings.length - 1 ? 'receipt:r\n' : ''
      return wireFrame(`SUBSCRIBE\nid:${id}\ndestination:${destination}\nack:${ack}\n${receipt}\n\0`)
    })
    this.send(Buffer.concat(frames))
    await confirmed
  }

  /** Resolves with the next message, a copy of it. */
  nextMessage(): Promise<Buffer> {
    return this.#next('')
  }

  get isOpen(): boolean {
    return !this.#hasFailed
  }

  /** Writes octets as they are: frames that `wireFrame` made. */
  send(octets: Uint8Array): void {
    this.#socket.write(octets)
  }

  /** Ends it without a goodbye; the port can be used again at once. */
  async abort(): Promise<void> {
    this.#hasFailed = true
    if (this.#socket.closed) return
    const closed = once(this.#socket, 'close')
    this.#socket.resetAndDestroy()
    await closed
  }

  async #next(command: string): Promise<Buffer> {
    let message: Buffer | undefined
    const before = this.onMessage
    this.onMessage = octets => {
      const came = Buffer.from(octets)
      // A queue may say how things stand as soon as it is subscribed to, before all others are.
      if (command === 'RECEIPT' && came.toString('latin1', 0, MESSAGE.length) === MESSAGE) return
      message = came
      this.#wake?.()
    }
    try {
      await this.#woken()
    } finally {
      this.onMessage = before
    }
    if (message === undefined || !message.toString('latin1').startsWith(command)) {
      throw new Error(`no ${command} but ${message}`)
    }
    return message
  }

  #woken(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#wake = error => {
        this.#wake = undefined
        if (error === undefined) resolve()
        else reject(error)
      }
    })
  }

  #fail(error: Error): void {
    if (this.#hasFailed) return
    this.#hasFailed = true
    // Whoever counts finds out by the count standing still; it is said why.
    if (this.#wake === undefined) process.stderr.write(`${error.message}\n`)
    else this.#wake(error)
  }

  #take(chunk: Buffer): void {
    if (!this.#isUpgraded) return this.#onUpgrade(chunk)
    let at = 0
    while (at < chunk.length) {
      if (this.#left === 0) at = this.#readHead(chunk, at)
      if (this.#left > 0) at = this.#readPayload(chunk, at)
    }
    this.onRead?.()
  }

  /** The server says nothing before it is spoken to, so its answer comes alone. */
  #onUpgrade(chunk: Buffer): void {
    this.#isUpgraded = true
    const answer = chunk.toString('latin1')
    this.#wake?.(answer.startsWith('HTTP/1.1 101 ') ? undefined : new Error(`no upgrade: ${answer}`))
  }

  #readHead(chunk: Buffer, start: number): number {
    let at = start
    while (at < chunk.length) {
      this.#head = this.#head * 256 + chunk[at++]!
      this.#headBytes++
      if (this.#headBytes === 1) this.#opcode = this.#head & 0x0f
      const short = this.#headBytes === 2 ? this.#head & 0xff : 0
      if (short === 127) throw new Error('no message of the bench is as long as that')
      const isWhole = (this.#headBytes === 2 && short < 126) || this.#headBytes === 4
      if (!isWhole) continue
      this.#left = this.#headBytes === 2 ? short : this.#head & 0xffff
      this.#head = 0
      this.#headBytes = 0
      if (this.#left === 0) this.#onWhole()
      break
    }
    return at
  }

  #readPayload(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + this.#left)
    this.#left -= end - at
    if (this.onMessage !== undefined) this.#parts.push(chunk.subarray(at, end))
    if (this.#left === 0) this.#onWhole()
    // What goes on in the next chunk must not be overwritten by it.
    else if (this.onMessage !== undefined) this.#parts.push(Buffer.from(this.#parts.pop()!))
    return end
  }

  #onWhole(): void {
    const parts = this.#parts
    if (parts.length > 0) this.#parts = []
    if (this.#opcode === PING) return void this.#socket.write(PONG)
    if (this.#opcode === CLOSE) return this.#fail(new Error(`closed by the server: ${Buffer.concat(parts)}`))
    this.messages++
    this.onMessage?.(parts.length === 1 ? parts[0]! : Buffer.concat(parts))
  }
}

/** A STOMP frame, or a beat, as the octets of a text message from a client. */
export function wireFrame(frame: string | Uint8Array): Buffer {
  const payload = Buffer.from(frame as string)
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

const OPENED_AT_ONCE = 64
const READ_BUFFER = Buffer.alloc(256 * 1024)
const NO_MASK = Buffer.alloc(4)
const MESSAGE = 'MESSAGE'
const PING = 0x9
const CLOSE = 0x8
const PONG = Buffer.from([0x8a, 0x80, 0, 0, 0, 0])
const UPGRADE = `GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: v12.stomp\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}\r\n\r\n`
