/**
 * The naive client without a socket, and the server's end of its connection. As on a real one, frames leave when the
 * loop turn ends, unsent bytes are counted, and the end waits for earlier frames.
 */

import { BACKLOG_BYTES } from '../../src/limits.ts'
import type { Accept, Connection, ConnectionEvents } from '../../src/transport/connection.ts'
import { NaiveClient } from './naive-client.ts'

export interface MemoryClientOptions {
  readonly authorization?: string
}

let connectionCount = 0

export class MemoryClient extends NaiveClient {
  readonly id = `memory-${++connectionCount}`
  /** The kernel's room beyond the client's reads; without a bound the client reads everything. */
  kernelBytes = Number.POSITIVE_INFINITY
  readonly #events: ConnectionEvents
  #unsent: { readonly octets: Buffer; readonly isText: boolean }[] = []
  #unsentBytes = 0
  #ending: number | undefined = undefined

  constructor(accept: Accept, { authorization = '' }: MemoryClientOptions) {
    super()
    this.#events = accept(this.#serverEnd(authorization))
  }

  #serverEnd(authorization: string): Connection {
    return {
      id: this.id,
      network: 'loopback',
      authorization,
      send: (frame, isText) => {
        if (this.#ending !== undefined || this.isClosed) return
        this.#unsent.push({ octets: Buffer.from(frame), isText })
        this.#unsentBytes += frame.length
      },
      bufferedBytes: () => this.bufferedBytes(),
      end: code => {
        this.#ending ??= code
      },
      close: () => this.onOver(1006),
    }
  }

  /** What the server's end has not sent. */
  bufferedBytes(): number {
    return this.#unsentBytes
  }

  /** Sends octets as one message of the transport, in memory that is damaged once it has been read. */
  write(octets: string | Uint8Array): void {
    if (this.isClosed || this.#ending !== undefined) return
    const lent = Uint8Array.from(Buffer.from(octets))
    this.#events.onBytes(lent)
    lent.fill(0xff)
  }

  /** Breaks the connection. */
  drop(): void {
    this.onOver(1006)
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
      this.onMessage(octets, isText)
    }
    if (written > 0 && (this.#wasFull || isBacklog)) this.#events.onDrain()
    this.#wasFull = this.#unsent.length > 0
    if (this.#ending !== undefined && this.#unsent.length === 0) this.onOver(this.#ending)
  }

  #wasFull = false

  protected override onOver(code: number): void {
    if (this.isClosed) return
    super.onOver(code)
    this.#unsent = []
    this.#unsentBytes = 0
    this.#events.onClosed(code)
  }
}
