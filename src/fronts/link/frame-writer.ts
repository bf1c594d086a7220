/** Collects the messages of one turn of the event loop into one frame. */

import type { Duplex } from 'node:stream'
import type { World } from '../../runtime/clock.ts'
import { frameHead } from './frames.ts'
import type { FrameMac } from './link-proof.ts'

export class FrameWriter {
  readonly #socket: Pick<Duplex, 'write' | 'writableLength'>
  readonly #world: Pick<World, 'immediate' | 'every'>
  /** Adds messages kept back, before a frame is written. */
  readonly #beforeFlush: () => void
  readonly #mac: FrameMac | undefined
  /** The next frame so far. */
  #parts: Buffer[] = []
  #partsBytes = 0
  #isFlushing = false
  /** Set while the frame waits: for `PATIENCE_MS`, or for an urgent message. */
  #stopWaiting: (() => void) | undefined
  #isQuiet = true
  #isClosed = false

  constructor(
    socket: Pick<Duplex, 'write' | 'writableLength'>,
    world: Pick<World, 'immediate' | 'every'>,
    beforeFlush: () => void,
    mac?: FrameMac,
  ) {
    this.#socket = socket
    this.#world = world
    this.#beforeFlush = beforeFlush
    this.#mac = mac
  }

  /** Octets that the socket has not taken yet. */
  get waitingBytes(): number {
    return this.#socket.writableLength + this.#partsBytes
  }

  add(part: Buffer): void {
    this.#parts.push(part)
    this.#partsBytes += part.length
    if (this.#partsBytes >= FRAME_BYTES_FULL) this.flush()
  }

  /** Writes the frame at the end of this turn. */
  flushSoon(): void {
    if (this.#isFlushing) return
    this.#isFlushing = true
    this.#world.immediate(() => this.flush())
  }

  /** The frame may wait some milliseconds. */
  flushLater(): void {
    if (this.#isFlushing || this.#stopWaiting !== undefined) return
    this.#stopWaiting = this.#world.every(PATIENCE_MS, () => this.flush())
  }

  flush(): void {
    this.#isFlushing = false
    this.#stopWaiting?.()
    this.#stopWaiting = undefined
    if (this.#isClosed) return
    this.#beforeFlush()
    if (this.#parts.length > 0) this.#write()
  }

  /** Writes an empty frame where none was written since the beat before. */
  beat(): void {
    // Mostly an empty frame; messages that wait for the end of the turn go along.
    if (this.#isQuiet) this.#write()
    this.#isQuiet = true
  }

  /** Writes nothing more. */
  close(): void {
    this.#isClosed = true
    this.#stopWaiting?.()
    this.#parts = []
  }

  #write(): void {
    // One buffer: most parts have a few dozen octets, and a write of many buffers costs more than to copy them.
    const mac = this.#mac === undefined ? [] : [this.#mac.next(this.#parts)]
    this.#socket.write(Buffer.concat([frameHead(this.#partsBytes), ...mac, ...this.#parts]))
    this.#parts = []
    this.#partsBytes = 0
    this.#isQuiet = false
  }
}

/** A frame this long is sent before the turn ends. */
const FRAME_BYTES_FULL = 1_048_576
/** The longest wait of a message that may wait. */
const PATIENCE_MS = 10
