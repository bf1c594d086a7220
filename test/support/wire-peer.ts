/**
 * A STOMP client by hand over a real socket, WebSocket or plain TCP: what it writes are the octets that a test says, in
 * the messages or fragments that it says; what it reads is read naively, and every WebSocket message has to be exactly
 * one frame.
 */

import { isUtf8 as isUtf8Bytes } from 'node:buffer'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { headerOf, type NaiveFrame, NaiveParser, serverRules } from './naive-stomp.ts'

export type Carrier = 'websocket' | 'tcp'

/** A frame as it came. */
export interface WireFrame extends NaiveFrame {
  readonly octets: Buffer
  /** Whether its WebSocket message was text; undefined over TCP. */
  readonly isText: boolean | undefined
}

export interface UpgradeOptions {
  readonly path?: string
  /** Further headers of the upgrade, each ended with CRLF. */
  readonly upgradeLines?: string
}

export class WirePeer {
  readonly socket: Socket
  /** The answer to the upgrade. */
  head = ''
  /** Frames received and not taken yet. */
  readonly frames: WireFrame[] = []
  /** The last CONNECTED. */
  connected: WireFrame | undefined = undefined
  /** Called with each frame as it is read. */
  onFrame: (frame: WireFrame) => void = () => {}
  /** Lone EOLs received. */
  beats = 0
  pongs = 0
  /** The server's close code; 1006 without a close frame, 1005 for the end of a TCP connection. */
  closeCode: number | undefined = undefined
  isClosed = false
  /** The last octets that came, where frames are no longer read. */
  tail: Buffer = Buffer.alloc(0)
  #isReadingFrames = true
  readonly #isWebSocket: boolean
  readonly #parser = new NaiveParser(serverRules('1.2'))
  /** Octets that came and are not read: of a WebSocket frame, or of a STOMP frame over TCP. */
  #unread: Buffer = Buffer.alloc(0)
  #readBytes = 0
  #fault: Error | undefined
  #onNews: (() => void)[] = []

  /**
   * Connects to a port, or to an address that ends with one. Resolves when the connection is there; over WebSocket,
   * when the upgrade was answered.
   */
  static async open(
    carrier: Carrier,
    address: string | number,
    { path, upgradeLines }: UpgradeOptions = {},
  ): Promise<WirePeer> {
    const peer = new WirePeer(carrier, Number(String(address).split(':').at(-1)))
    await once(peer.socket, 'connect')
    if (carrier === 'tcp') return peer
    peer.socket.write(upgradeRequest(path, upgradeLines))
    await peer.until(() => peer.head !== '')
    return peer
  }

  /** A client that has signed in, with its CONNECTED taken; `lines` are further headers of its CONNECT. */
  static async connect(
    carrier: Carrier,
    address: string | number,
    token: string,
    version = '1.2',
    lines = '',
  ): Promise<WirePeer> {
    const peer = await WirePeer.open(carrier, address)
    peer.write(connectFrame(token, version, lines))
    await peer.frame(({ command }) => command === 'CONNECTED')
    return peer
  }

  private constructor(carrier: Carrier, port: number) {
    this.#isWebSocket = carrier === 'websocket'
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true })
    this.socket.on('data', bytes => this.#onBytes(bytes))
    // 'close' follows.
    this.socket.on('error', () => undefined)
    this.socket.once('end', () => {
      if (!this.#isWebSocket) this.closeCode ??= 1005
    })
    this.socket.once('close', () => {
      this.closeCode ??= 1006
      this.isClosed = true
      this.#tellNews()
    })
  }

  /** Sends octets as one message; text where they may be. */
  write(octets: string | Uint8Array, isText = isUtf8(octets)): void {
    this.writeAll([Buffer.from(octets as string)], isText)
  }

  /** Sends each of these as a message of its own, all in one write. */
  writeAll(messages: readonly Uint8Array[], isText?: boolean): void {
    if (this.socket.destroyed) return
    const bytes = this.#isWebSocket
      ? messages.map(message => webSocketFrame((isText ?? isUtf8(message)) ? 0x81 : 0x82, message))
      : messages
    this.socket.write(Buffer.concat(bytes))
  }

  /** Resolves when the subscription is there; `lines` are further headers. */
  subscribe(destination: string, id = 's', lines = ''): Promise<WireFrame> {
    this.write(subscribeFrame(destination, id, lines))
    return this.receipt(`sub-${id}`)
  }

  /** Resolves when the server says that it has done it. */
  async send(destination: string, body: string, receipt = `send-${++sendCount}`): Promise<void> {
    this.write(sendFrame(destination, body, `receipt:${receipt}\n`))
    await this.receipt(receipt)
  }

  /** Says goodbye; resolves when everything before it was handled, with the frames that came meanwhile. */
  async disconnect(): Promise<WireFrame[]> {
    this.write('DISCONNECT\nreceipt:bye\n\n\0')
    await this.closed()
    const frames = this.take()
    const last = frames.pop()
    if (headerOf(last, 'receipt-id') !== 'bye') throw new Error(`ended with ${last?.octets}`)
    return frames
  }

  /** Takes the frames received so far. */
  take(): WireFrame[] {
    return this.frames.splice(0)
  }

  /** Takes the first frame that `isWanted`, and no other. */
  async frame(isWanted: (frame: WireFrame) => boolean): Promise<WireFrame> {
    await this.until(() => this.frames.some(isWanted))
    const at = this.frames.findIndex(isWanted)
    // Another waiter may have taken it.
    return at < 0 ? this.frame(isWanted) : this.frames.splice(at, 1)[0]!
  }

  message(): Promise<WireFrame> {
    return this.frame(({ command }) => command === 'MESSAGE')
  }

  receipt(id: string): Promise<WireFrame> {
    return this.frame(frame => frame.command === 'RECEIPT' && headerOf(frame, 'receipt-id') === id)
  }

  /** Resolves when `isSo`, which is asked whenever something came; rejects when nothing can come any more. */
  async until(isSo: () => boolean): Promise<void> {
    const deadline = setTimeout(() => this.#fail(new Error(`nothing for ${DEADLINE_MS} ms`)), DEADLINE_MS)
    try {
      while (!isSo()) {
        if (this.#fault !== undefined) throw this.#fault
        if (this.isClosed)
          throw new Error(`closed with ${this.closeCode}: ${this.frames.at(-1)?.octets ?? ''}`)
        await new Promise<void>(resolve => this.#onNews.push(resolve))
      }
    } finally {
      clearTimeout(deadline)
    }
  }

  /** Resolves with the close code, when the connection has ended. */
  async closed(): Promise<number> {
    await this.until(() => this.isClosed)
    return this.closeCode!
  }

  /** Resolves when the connection has ended, with how: `<reason of the ERROR> <close code>`. */
  async ending(): Promise<string> {
    await this.closed()
    const error = this.frames.find(({ command }) => command === 'ERROR')
    return `${headerOf(error, 'reason')} ${this.closeCode}`
  }

  /** Has the kernel keep what comes from now on. */
  pause(): void {
    this.socket.pause()
  }

  resume(): void {
    this.socket.resume()
  }

  /** Reads no frames any more but keeps the last octets, close frames among them: for much that comes at once. */
  keepTail(): void {
    this.#isReadingFrames = false
  }

  /** Breaks the connection: with a RST, unless a shutdown is under way, after which Node 20 would never close it. */
  destroy(): void {
    if (this.socket.writableEnded) this.socket.destroy()
    else this.socket.resetAndDestroy()
  }

  #onBytes(bytes: Buffer): void {
    if (!this.#isReadingFrames) {
      this.tail = Buffer.concat([this.tail, bytes]).subarray(-TAIL_BYTES)
      return this.#tellNews()
    }
    this.#unread = this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes])
    try {
      if (!this.#isWebSocket) this.#readStream()
      else if (this.head !== '' || this.#readHead()) while (this.#readMessage());
    } catch (error) {
      this.#fail(error as Error)
    }
    this.#tellNews()
  }

  #readHead(): boolean {
    const end = this.#unread.indexOf('\r\n\r\n')
    if (end < 0) return false
    this.head = this.#unread.toString('latin1', 0, end + 4)
    this.#unread = this.#unread.subarray(end + 4)
    return / 101 /.test(this.head)
  }

  /** Reads one WebSocket frame, if it is whole (RFC 6455, 5.2); the server sends no fragments and no masks. */
  #readMessage(): boolean {
    const bytes = this.#unread
    if (bytes.length < 2) return false
    const kind = bytes[1]!
    const headBytes = kind === 126 ? 4 : kind === 127 ? 10 : 2
    if (bytes.length < headBytes) return false
    const length =
      kind === 126 ? bytes.readUInt16BE(2) : kind === 127 ? Number(bytes.readBigUInt64BE(2)) : kind
    if (bytes.length < headBytes + length) return false
    const payload = bytes.subarray(headBytes, headBytes + length)
    this.#unread = bytes.subarray(headBytes + length)
    this.#onMessage(bytes[0]!, payload)
    return true
  }

  #onMessage(firstByte: number, payload: Buffer): void {
    switch (firstByte) {
      case 0x81:
      case 0x82:
        return this.#onFrame(payload, firstByte === 0x81)
      case 0x88:
        this.closeCode = payload.length < 2 ? 1005 : payload.readUInt16BE(0)
        this.socket.end(webSocketFrame(0x88, payload.subarray(0, 2)))
        return
      case 0x89:
        this.socket.write(webSocketFrame(0x8a, payload))
        return
      case 0x8a:
        this.pongs += 1
        return
      default:
        throw new Error(`a WebSocket frame that begins with ${firstByte}`)
    }
  }

  #onFrame(octets: Buffer, isText: boolean): void {
    if (octets.equals(BEAT)) {
      if (!isText) throw new Error('a beat that is not text')
      this.beats += 1
      return
    }
    if (isText && !isUtf8(octets)) throw new Error('a text that is not UTF-8')
    const [frame, ...more] = this.#parser.read(octets)
    if (frame === undefined || more.length > 0 || octets.at(-1) !== 0) throw new Error('not one frame')
    this.#keep(frame, octets, isText)
  }

  #readStream(): void {
    const bytes = this.#unread
    let start = 0
    for (let at = this.#readBytes; at < bytes.length; at++) {
      if (at === start && bytes[at] === BEAT[0]) {
        this.beats += 1
        start = at + 1
        continue
      }
      const frame = this.#parser.push(bytes[at]!)
      if (frame === undefined) continue
      this.#keep(frame, bytes.subarray(start, at + 1), undefined)
      start = at + 1
    }
    this.#unread = bytes.subarray(start)
    this.#readBytes = this.#unread.length
  }

  #keep(frame: NaiveFrame, octets: Buffer, isText: boolean | undefined): void {
    const kept = { ...frame, octets: Buffer.from(octets), isText }
    if (frame.command === 'CONNECTED') {
      this.connected = kept
      this.#parser.rules.version = headerOf(frame, 'version') ?? '1.0'
    }
    this.frames.push(kept)
    this.onFrame(kept)
  }

  #fail(fault: Error): void {
    this.#fault ??= fault
    this.#tellNews()
  }

  #tellNews(): void {
    for (const resolve of this.#onNews.splice(0)) resolve()
  }
}

export function connectFrame(token: string, version = '1.2', lines = ''): string {
  const accepted = version === '1.0' ? '' : `accept-version:${version}\nhost:h\n`
  return `CONNECT\n${accepted}${lines}Authorization:Bearer ${token}\n\n\0`
}

export function subscribeFrame(destination: string, id: string, lines = ''): string {
  return `SUBSCRIBE\nid:${id}\ndestination:${destination}\n${lines}receipt:sub-${id}\n\n\0`
}

export function sendFrame(destination: string, body: string, lines = ''): string {
  return `SEND\ndestination:${destination}\n${lines}\n${body}\0`
}

/** The text of an upgrade request; `lines` are more headers, each ended with CRLF. */
export function upgradeRequest(path = '/ws', lines = ''): string {
  const version = /^sec-websocket-version:/im.test(lines) ? '' : 'Sec-WebSocket-Version: 13\r\n'
  return `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${version}${lines}\r\n`
}

/** A client's WebSocket frame of any length, masked with zeros. */
export function webSocketFrame(firstByte: number, payload: string | Uint8Array): Buffer {
  const body = Buffer.from(payload as string)
  const { length } = body
  const kind = length < 126 ? length : length < 65_536 ? 126 : 127
  const head = Buffer.alloc(kind === 126 ? 8 : kind === 127 ? 14 : 6)
  head[0] = firstByte
  head[1] = 0x80 | kind
  if (kind === 126) head.writeUInt16BE(length, 2)
  else if (kind === 127) head.writeBigUInt64BE(BigInt(length), 2)
  return Buffer.concat([head, body])
}

function isUtf8(octets: string | Uint8Array): boolean {
  return typeof octets === 'string' || isUtf8Bytes(octets)
}

let sendCount = 0
const TAIL_BYTES = 4_096
const BEAT = Buffer.from('\n')
/** Longer than anything the server may take, shorter than what ends a test. */
const DEADLINE_MS = 120_000
