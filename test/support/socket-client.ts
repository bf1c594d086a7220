/**
 * The naive client over a real socket, WebSocket or plain TCP. What it writes are the octets that a test says, in the
 * messages or fragments that it says.
 */

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { BEAT, connectFrame, isUtf8, NaiveClient } from './naive-client.ts'

export type Carrier = 'websocket' | 'tcp'

export interface UpgradeOptions {
  readonly path?: string
  /** Further headers of the upgrade, each ended with CRLF. */
  readonly upgradeLines?: string
  /** The client's own address on loopback, such as `127.0.9.1`. */
  readonly from?: string
}

export class SocketClient extends NaiveClient {
  readonly socket: Socket
  /** The answer to the upgrade. */
  head = ''
  pongs = 0
  /** The last octets that came, where frames are no longer read. */
  tail: Buffer = Buffer.alloc(0)
  #isReadingFrames = true
  readonly #isWebSocket: boolean
  /** Octets that came and are not read: of a WebSocket frame, or of a STOMP frame over TCP. */
  #unread: Buffer = Buffer.alloc(0)
  #readBytes = 0

  /**
   * Connects to a port, or to an address that ends with one. Resolves when the connection is there; over WebSocket,
   * when the upgrade was answered.
   */
  static async open(
    carrier: Carrier,
    address: string | number,
    { path, upgradeLines, from }: UpgradeOptions = {},
  ): Promise<SocketClient> {
    const peer = new SocketClient(carrier, Number(String(address).split(':').at(-1)), from)
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
  ): Promise<SocketClient> {
    const peer = await SocketClient.open(carrier, address)
    peer.write(connectFrame(token, version, lines))
    await peer.frame(({ command }) => command === 'CONNECTED')
    return peer
  }

  private constructor(carrier: Carrier, port: number, localAddress?: string) {
    super()
    this.#isWebSocket = carrier === 'websocket'
    this.socket = connect({ port, host: '127.0.0.1', localAddress, noDelay: true })
    this.socket.on('data', bytes => this.#onBytes(bytes))
    // 'close' follows.
    this.socket.on('error', () => undefined)
    this.socket.once('end', () => {
      if (!this.#isWebSocket) this.closeCode ??= 1005
    })
    this.socket.once('close', () => {
      this.onOver(1006)
    })
  }

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

  /** Has the kernel keep all later bytes. */
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
      return this.tellNews()
    }
    this.#unread = this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes])
    try {
      if (!this.#isWebSocket) this.#readStream()
      else if (this.head !== '' || this.#readHead()) while (this.#readMessage());
    } catch (error) {
      this.fail(error as Error)
    }
    this.tellNews()
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
    this.#onWebSocketFrame(bytes[0]!, payload)
    return true
  }

  #onWebSocketFrame(firstByte: number, payload: Buffer): void {
    switch (firstByte) {
      case 0x81:
      case 0x82:
        return this.onMessage(payload, firstByte === 0x81)
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

  #readStream(): void {
    const bytes = this.#unread
    let start = 0
    for (let at = this.#readBytes; at < bytes.length; at++) {
      if (at === start && bytes[at] === BEAT[0]) {
        this.beats += 1
        start = at + 1
        continue
      }
      const frame = this.parser.push(bytes[at]!)
      if (frame === undefined) continue
      this.keep(frame, bytes.subarray(start, at + 1), undefined)
      start = at + 1
    }
    this.#unread = bytes.subarray(start)
    this.#readBytes = this.#unread.length
  }
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

const TAIL_BYTES = 4_096
