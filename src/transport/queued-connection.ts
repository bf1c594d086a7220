/**
 * What a WebSocket and a TCP connection have in common: the frames of a loop turn are collected and written together,
 * unsent bytes are counted, the end waits for earlier frames, and nothing happens after the close.
 *
 * The end is never made inside `end`. So a session is not called back while it is at work, no other socket is corked
 * at that time, and a close frame is written only when nothing is unsent: uWebSockets drops close frames that find too
 * much before them.
 */

import { BACKLOG_BYTES } from '../limits.ts'
import type { Accept, Connection, ConnectionEvents } from './connection.ts'
import type { OpenConnections } from './open-connections.ts'
import { idSequence } from './open-connections.ts'

/** Shared by the connections of one listener. */
export interface ConnectionHost {
  readonly accept: Accept
  readonly connections: OpenConnections
  /** Told of a session that failed, with the connection's id. */
  readonly onFault: (error: unknown, connectionId: string) => void
}

export abstract class QueuedConnection implements Connection {
  readonly id = nextConnectionId()
  readonly network: string
  readonly authorization: string
  readonly #host: ConnectionHost
  #events: ConnectionEvents | undefined
  #state = OPEN
  /** The frames of this turn; undefined for none, so that an idle connection has no arrays. */
  #frames: Uint8Array[] | undefined
  #areText: boolean[] | undefined
  #queuedBytes = 0
  /** As the socket last said. */
  #unsentBytes = 0
  #endCode = CODE_NONE
  #endReason = ''
  #lingering: NodeJS.Timeout | undefined

  constructor(host: ConnectionHost, network: string, authorization: string) {
    this.#host = host
    this.network = network
    this.authorization = authorization
  }

  send(frame: Uint8Array, isText: boolean): void {
    if (this.#state !== OPEN) return
    if (this.#frames === undefined) {
      this.#frames = [frame]
      this.#areText = [isText]
      this.#host.connections.writeLater(this)
    } else {
      this.#frames.push(frame)
      this.#areText!.push(isText)
    }
    this.#queuedBytes += frame.length
    this.#host.connections.count(frame.length)
  }

  bufferedBytes(): number {
    return this.#queuedBytes + this.#unsentBytes
  }

  end(code: number, reason: string): void {
    if (this.#state !== OPEN) return
    this.#state = ENDING
    this.#endCode = code
    this.#endReason = reason
    this.#host.connections.writeLater(this)
  }

  close(): void {
    if (this.#state === CLOSED) return
    this.abort()
    this.onOver(CODE_BROKEN)
  }

  /** Gives the connection a session. Call once, before anything else happens to it. */
  open(): void {
    const { accept, connections } = this.#host
    connections.add(this)
    try {
      this.#events = accept(this)
    } catch (error) {
      this.#fail(error)
    }
    if (this.#state === CLOSED) this.#tellClosed(CODE_BROKEN)
  }

  writeQueued(): void {
    if (this.#state === CLOSED) return
    if (this.#frames !== undefined) this.#writeFrames(this.#frames, this.#areText!)
    if (this.#state === ENDING) this.#finishWhenSent()
  }

  /** The socket has brought bytes. They are its own. */
  onInput(bytes: Uint8Array): void {
    if (this.#state !== OPEN || bytes.length === 0) return
    try {
      this.#events?.onBytes(bytes)
    } catch (error) {
      this.#fail(error)
    }
  }

  /** The socket has got rid of some bytes, and has so many left. */
  onWritten(unsentBytes: number): void {
    if (this.#state === CLOSED || unsentBytes === this.#unsentBytes) return
    this.#setUnsent(unsentBytes)
    if (this.#state === ENDING) this.#finishWhenSent()
    else this.#tellDrained()
  }

  /** The socket is no more, and must not be touched again. */
  onOver(code: number): void {
    if (this.#state === CLOSED) return
    this.#state = CLOSED
    this.#forgetFrames()
    this.#setUnsent(0)
    clearTimeout(this.#lingering)
    this.#host.connections.remove(this)
    this.#tellClosed(code)
  }

  /** Writes the frames at once. Returns the bytes that the kernel has not taken, `DROPPED` when a frame is lost. */
  protected abstract write(frames: readonly Uint8Array[], areText: readonly boolean[]): number
  /** Says goodbye, with everything written. May call `onOver`. */
  protected abstract finish(code: number, reason: string): void
  /** Closes the socket without a word. May call `onOver`. */
  protected abstract abort(): void

  #writeFrames(frames: readonly Uint8Array[], areText: readonly boolean[]): void {
    const bytes = this.bufferedBytes()
    this.#forgetFrames()
    const unsentBytes = this.write(frames, areText)
    if (unsentBytes === DROPPED) return this.close()
    if (unsentBytes !== this.#unsentBytes) this.#setUnsent(unsentBytes)
    if (bytes >= BACKLOG_BYTES && unsentBytes < bytes && this.#state === OPEN) this.#tellDrained()
  }

  #finishWhenSent(): void {
    if (this.#unsentBytes === 0) this.finish(this.#endCode, this.#endReason)
    if (this.#state !== ENDING) return
    this.#lingering ??= setTimeout(() => this.close(), this.#host.connections.lingerMs).unref()
  }

  #forgetFrames(): void {
    this.#frames = undefined
    this.#areText = undefined
    this.#host.connections.count(-this.#queuedBytes)
    this.#queuedBytes = 0
  }

  #setUnsent(bytes: number): void {
    const { connections } = this.#host
    connections.count(bytes - this.#unsentBytes)
    if (bytes > 0 !== this.#unsentBytes > 0) connections.setLagging(this, bytes > 0)
    this.#unsentBytes = bytes
  }

  #fail(error: unknown): void {
    this.#host.onFault(error, this.id)
    this.end(CODE_FAULT, 'fault of the server')
  }

  #tellDrained(): void {
    try {
      this.#events?.onDrain()
    } catch (error) {
      this.#fail(error)
    }
  }

  #tellClosed(code: number): void {
    try {
      this.#events?.onClosed(code)
    } catch (error) {
      this.#host.onFault(error, this.id)
    }
  }
}

/** Returned by `write` when the receiver would miss a frame. */
export const DROPPED = -1

/** Close codes of RFC 6455, 7.4.1: none was given, the connection broke, a fault of ours. */
export const CODE_NONE = 1005
export const CODE_BROKEN = 1006
const CODE_FAULT = 1011

const OPEN = 0
const ENDING = 1
const CLOSED = 2

const nextConnectionId = idSequence()
