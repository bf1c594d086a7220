/**
 * A STOMP client by hand. It reads naively, sharing nothing with `src/stomp`, and every WebSocket message has to be
 * exactly one frame. Its transport is a socket (`socket-client.ts`) or memory (`memory-client.ts`).
 */

import { isUtf8 as isUtf8Bytes } from 'node:buffer'
import { headerOf, type NaiveFrame, NaiveParser, serverRules } from './naive-stomp.ts'

/** A frame as it came. */
export interface ClientFrame extends NaiveFrame {
  readonly octets: Buffer
  /** Whether its WebSocket message was text; undefined over TCP. */
  readonly isText: boolean | undefined
}

export abstract class NaiveClient {
  /** Frames received and not taken yet. */
  readonly frames: ClientFrame[] = []
  /** The last CONNECTED. */
  connected: ClientFrame | undefined = undefined
  /** Called with each frame as it is read. */
  onFrame: (frame: ClientFrame) => void = () => {}
  /** Lone EOLs received. */
  beats = 0
  /** The server's close code; 1006 without a close frame, 1005 for the end of a TCP connection. */
  closeCode: number | undefined = undefined
  isClosed = false
  protected readonly parser = new NaiveParser(serverRules('1.2'))
  #fault: Error | undefined
  #onNews: (() => void)[] = []

  /** Sends octets as one message; text where they may be. */
  abstract write(octets: string | Uint8Array, isText?: boolean): void

  /** Resolves when the subscription is there; `lines` are further headers. */
  subscribe(destination: string, id = 's', lines = ''): Promise<ClientFrame> {
    this.write(subscribeFrame(destination, id, lines))
    return this.receipt(`sub-${id}`)
  }

  /** Resolves when the server says that it has done it. */
  async send(destination: string, body: string, receipt = `send-${++sendCount}`): Promise<void> {
    this.write(sendFrame(destination, body, `receipt:${receipt}\n`))
    await this.receipt(receipt)
  }

  /** Says goodbye; resolves when everything before it was handled, with the frames that came until then. */
  async disconnect(): Promise<ClientFrame[]> {
    this.write('DISCONNECT\nreceipt:bye\n\n\0')
    await this.closed()
    const frames = this.take()
    const last = frames.pop()
    if (headerOf(last, 'receipt-id') !== 'bye') throw new Error(`ended with ${last?.octets}`)
    return frames
  }

  /** Takes the frames received so far. */
  take(): ClientFrame[] {
    return this.frames.splice(0)
  }

  /** Takes the first frame that `isWanted`, and no other. */
  async frame(isWanted: (frame: ClientFrame) => boolean): Promise<ClientFrame> {
    await this.until(() => this.frames.some(isWanted))
    const at = this.frames.findIndex(isWanted)
    // Another waiter may have taken it.
    return at < 0 ? this.frame(isWanted) : this.frames.splice(at, 1)[0]!
  }

  message(): Promise<ClientFrame> {
    return this.frame(({ command }) => command === 'MESSAGE')
  }

  receipt(id: string): Promise<ClientFrame> {
    return this.frame(frame => frame.command === 'RECEIPT' && headerOf(frame, 'receipt-id') === id)
  }

  /** Resolves when `isSo`, which is asked whenever something came; rejects when nothing can come any more. */
  async until(isSo: () => boolean): Promise<void> {
    const deadline = setTimeout(() => this.fail(new Error(`nothing for ${DEADLINE_MS} ms`)), DEADLINE_MS)
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

  /** One WebSocket message came. */
  protected onMessage(octets: Buffer, isText: boolean): void {
    if (octets.equals(BEAT)) {
      if (!isText) throw new Error('a beat that is not text')
      this.beats += 1
      return
    }
    if (isText && !isUtf8(octets)) throw new Error('a text that is not UTF-8')
    const [frame, ...more] = this.parser.read(octets)
    if (frame === undefined || more.length > 0 || octets.at(-1) !== 0) throw new Error('not one frame')
    this.keep(frame, octets, isText)
  }

  protected keep(frame: NaiveFrame, octets: Buffer, isText: boolean | undefined): void {
    const kept = { ...frame, octets: Buffer.from(octets), isText }
    if (frame.command === 'CONNECTED') {
      this.connected = kept
      this.parser.rules.version = headerOf(frame, 'version') ?? '1.0'
    }
    this.frames.push(kept)
    this.onFrame(kept)
  }

  /** The connection has ended; `code` where the server gave none. */
  protected onOver(code: number): void {
    this.closeCode ??= code
    this.isClosed = true
    this.tellNews()
  }

  protected fail(fault: Error): void {
    this.#fault ??= fault
    this.tellNews()
  }

  protected tellNews(): void {
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

export function isUtf8(octets: string | Uint8Array): boolean {
  return typeof octets === 'string' || isUtf8Bytes(octets)
}

let sendCount = 0
export const BEAT = Buffer.from('\n')
/** Longer than the server may take for anything, shorter than a test's own limit. */
const DEADLINE_MS = 120_000
