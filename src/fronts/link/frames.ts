/** Frames on a stream of octets: a length of four octets, big-endian, and so many octets. */

import { SignalError } from '../../errors.ts'

export function frameHead(length: number): Buffer {
  const head = Buffer.allocUnsafe(HEAD_BYTES)
  head.writeUInt32BE(length)
  return head
}

/** Puts frames together again. It holds one frame at most, and no room is made for octets that have not come. */
export class FrameReader {
  readonly #bytesMax: number
  readonly #onFrame: (frame: Buffer) => void
  #chunks: Buffer[] = []
  #held = 0
  /** Length of the frame that is being read; undefined while its head is read. */
  #length: number | undefined

  constructor(bytesMax: number, onFrame: (frame: Buffer) => void) {
    this.#bytesMax = bytesMax
    this.#onFrame = onFrame
  }

  /** Throws `MALFORMED` for a frame that is longer than it may be. */
  add(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#held += chunk.length
    for (;;) {
      const wanted = this.#length ?? HEAD_BYTES
      if (this.#held < wanted) return
      const bytes = this.#take(wanted)
      if (this.#length !== undefined) {
        this.#length = undefined
        this.#onFrame(bytes)
        continue
      }
      const length = bytes.readUInt32BE()
      if (length > this.#bytesMax) {
        throw new SignalError(
          'MALFORMED',
          `a frame has ${length} octets, at most ${this.#bytesMax} are taken`,
        )
      }
      this.#length = length
    }
  }

  #take(length: number): Buffer {
    const all = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks)
    this.#chunks = all.length === length ? [] : [all.subarray(length)]
    this.#held -= length
    return all.subarray(0, length)
  }
}

const HEAD_BYTES = 4
