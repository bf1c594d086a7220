/**
 * The open connections of the process: which of them have frames to write this loop turn, how many bytes wait in all,
 * and which of them are let go when these are too many.
 */

import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { nanoid } from 'nanoid'
import { BUFFERED_BYTES_MAX, LINGER_MS } from '../limits.ts'
import type { Connection } from './connection.ts'

/** A connection as this module sees it. */
export interface WrittenConnection extends Connection {
  /** Gives to the kernel what `send` and `end` have left for the end of the turn. */
  writeQueued(): void
}

export interface OpenConnectionsOptions {
  /** Default: nine tenths of the files that the process may open; the store and the other sockets need some. */
  readonly connectionsMax?: number
  /** `BUFFERED_BYTES_MAX` where it is left out. */
  readonly bufferedBytesMax?: number
  /** `LINGER_MS` where it is left out. */
  readonly lingerMs?: number
}

export class OpenConnections implements Iterable<Connection> {
  /** How long a connection that ends waits for its last bytes to leave. */
  readonly lingerMs: number
  readonly #connectionsMax: number
  readonly #bufferedBytesMax: number
  readonly #all = new Set<WrittenConnection>()
  /** Those whose bytes the kernel has not all taken. */
  readonly #lagging = new Set<WrittenConnection>()
  #due: WrittenConnection[] = []
  #writtenCount = 0
  #bufferedBytes = 0
  #shedCount = 0

  constructor({
    connectionsMax = Math.floor(FILES_SHARE * openFilesMax()),
    bufferedBytesMax = BUFFERED_BYTES_MAX,
    lingerMs = LINGER_MS,
  }: OpenConnectionsOptions = {}) {
    this.#connectionsMax = connectionsMax
    this.#bufferedBytesMax = bufferedBytesMax
    this.lingerMs = lingerMs
  }

  get size(): number {
    return this.#all.size
  }

  /** Whether no further connection may be taken in. */
  get isFull(): boolean {
    return this.#all.size >= this.#connectionsMax
  }

  /** Bytes given to any connection that the kernel has not taken yet. */
  get bufferedBytes(): number {
    return this.#bufferedBytes
  }

  /** Connections closed so far because all of them together had too much unsent. */
  get shedCount(): number {
    return this.#shedCount
  }

  [Symbol.iterator](): Iterator<Connection> {
    return this.#all.values()
  }

  /** Resolves when no connection is open, or after `deadlineMs`. */
  async ended(deadlineMs: number): Promise<void> {
    const untilMs = performance.now() + deadlineMs
    while (this.#all.size > 0 && performance.now() < untilMs) await setTimeout(LOOK_AGAIN_MS)
  }

  /** Connections that the kernel takes nothing more from, the one with the most unsent bytes first. */
  worst(count: number): readonly Connection[] {
    return this.#laggingByBytes().slice(0, count)
  }

  add(connection: WrittenConnection): void {
    this.#all.add(connection)
  }

  remove(connection: WrittenConnection): void {
    this.#all.delete(connection)
  }

  /**
   * Has the connection written when the turn's input has been read. Not in a microtask, which runs between two
   * messages of one read, and inside the cork of another socket: with four messages in flight that is a quarter of the
   * speed (bench/websocket-writes.ts).
   */
  writeLater(connection: WrittenConnection): void {
    if (this.#due.length === 0) setImmediate(this.#writeDue)
    this.#due.push(connection)
  }

  /** Counts bytes that wait, or no longer do. */
  count(bytes: number): void {
    this.#bufferedBytes += bytes
  }

  setLagging(connection: WrittenConnection, isLagging: boolean): void {
    if (isLagging) this.#lagging.add(connection)
    else this.#lagging.delete(connection)
  }

  readonly #writeDue = (): void => {
    const end = Math.min(this.#due.length, this.#writtenCount + WRITES_PER_TURN_MAX)
    // A close caused by a write may extend the list.
    while (this.#writtenCount < end) this.#due[this.#writtenCount++]!.writeQueued()
    if (this.#writtenCount < this.#due.length) {
      setImmediate(this.#writeDue)
    } else {
      this.#due = []
      this.#writtenCount = 0
    }
    if (this.#bufferedBytes > this.#bufferedBytesMax) this.#shed()
  }

  /** Only closing frees memory at once. Some more than must, so that it is not done again for the next frame. */
  #shed(): void {
    const bytesWanted = SHED_TO * this.#bufferedBytesMax
    for (const connection of this.#laggingByBytes()) {
      if (this.#bufferedBytes <= bytesWanted) return
      this.#shedCount++
      connection.close()
    }
  }

  #laggingByBytes(): WrittenConnection[] {
    return [...this.#lagging].sort((one, other) => other.bufferedBytes() - one.bufferedBytes())
  }
}

/**
 * Makes ids of requests and connections, unique without the cost of randomness for each: `<name>-<count>`. The random
 * name is drawn once for each sequence.
 */
export function idSequence(): () => string {
  const name = nanoid(12).replaceAll('-', '_')
  let count = 0
  return () => `${name}-${(++count).toString(36)}`
}

/** How many files the process may have open, as Linux says; elsewhere a usual number. */
function openFilesMax(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'latin1')
    const [, soft] = /^Max open files\s+(\d+)/m.exec(limits) ?? []
    return soft === undefined ? OPEN_FILES_USUAL : Number(soft)
  } catch {
    return OPEN_FILES_USUAL
  }
}

/** Sockets written before the server reads again: 2 to 4 ms, as each costs a system call. */
const WRITES_PER_TURN_MAX = 500
const FILES_SHARE = 0.9
const OPEN_FILES_USUAL = 1_024
const SHED_TO = 7 / 8
const LOOK_AGAIN_MS = 10
