/**
 * The two ends of a connection without sockets: one that a session writes to, one that a test reads and writes. As on
 * a real one, frames leave when the loop turn ends, unsent bytes are counted, and the end waits for earlier frames.
 */

import { BACKLOG_BYTES } from '../../src/limits.ts'
import type { Accept, Connection, ConnectionEvents } from '../../src/transport/connection.ts'
import { headerOf, type NaiveFrame, NaiveParser, serverRules } from './naive-stomp.ts'

/** A frame as the client got it: one WebSocket message, which is read to be exactly that. */
export interface PeerFrame extends NaiveFrame {
  readonly octets: Buffer
  readonly isText: boolean
}

export interface PeerOptions {
  readonly authorization?: string
}

let connectionCount = 0

export class StompPeer implements Connection {
  readonly id = `memory-${++connectionCount}`
  readonly network = 'loopback'
  readonly authorization: string
  /** Frames received and not taken yet. */
  readonly frames: PeerFrame[] = []
  /** Lone EOLs received. */
  beats = 0
  /** The close code, once closed. */
  closeCode: number | undefined = undefined
  /** The kernel's room beyond the client's reads; without a bound the client reads everything. */
  kernelBytes = Number.POSITIVE_INFINITY
  version = '1.2'
  readonly #events: ConnectionEvents
  #unsent: { readonly octets: Buffer; readonly isText: boolean }[] = []
  #unsentBytes = 0
  #ending: number | undefined = undefined

  constructor(accept: Accept, { authorization = '' }: PeerOptions) {
    this.authorization = authorization
    this.#events = accept(this)
  }

  get isClosed(): boolean {
    return this.closeCode !== undefined
  }

  // The server's end.

  send(frame: Uint8Array, isText: boolean): void {
    if (this.#ending !== undefined || this.isClosed) return
    this.#unsent.push({ octets: Buffer.from(frame), isText })
    this.#unsentBytes += frame.length
  }

  bufferedBytes(): number {
    return this.#unsentBytes
  }

  end(code: number): void {
    this.#ending ??= code
  }

  close(): void {
    this.#onOver(1006)
  }

  // The client's end.

  /** Sends octets as one message of the transport, in memory that is damaged once it has been read. */
  write(octets: string | Uint8Array): void {
    if (this.isClosed || this.#ending !== undefined) return
    const lent = Uint8Array.from(Buffer.from(octets))
    this.#events.onBytes(lent)
    lent.fill(0xff)
  }

  /** Breaks the connection. */
  drop(): void {
    this.#onOver(1006)
  }

  /** The loop turn ends: frames that the kernel has room for leave, and then the connection, if it was ended. */
  flush(): void {
    let written = 0
    const isBacklog = this.#unsentBytes >= BACKLOG_BYTES
    while (this.#unsent.length > 0 && this.#unsent[0]!.octets.length <= this.kernelBytes) {
      const { octets, isText } = this.#unsent.shift()!
      this.kernelBytes -= octets.length
      this.#unsentBytes -= octets.length
      written += 1
      this.#receive(octets, isText)
    }
    if (written > 0 && (this.#wasFull || isBacklog)) this.#events.onDrain()
    this.#wasFull = this.#unsent.length > 0
    if (this.#ending !== undefined && this.#unsent.length === 0) this.#onOver(this.#ending)
  }

  #wasFull = false

  /** Takes the frames received so far. */
  take(): PeerFrame[] {
    return this.frames.splice(0)
  }

  #receive(octets: Buffer, isText: boolean): void {
    if (octets.equals(LONE_EOL)) {
      if (!isText) throw new Error('a beat that is not text')
      this.beats += 1
      return
    }
    const [frame, ...more] = new NaiveParser(serverRules(this.version)).read(octets)
    if (frame === undefined || more.length > 0 || octets.at(-1) !== 0) throw new Error('not one frame')
    if (frame.command === 'CONNECTED') this.version = headerOf(frame, 'version') ?? '1.0'
    this.frames.push({ ...frame, octets, isText })
  }

  #onOver(code: number): void {
    if (this.isClosed) return
    this.closeCode = code
    this.#unsent = []
    this.#unsentBytes = 0
    this.#events.onClosed(code)
  }
}

const LONE_EOL = Buffer.from('\n')
