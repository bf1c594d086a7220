/** Frames on a stream of octets: a length of four octets, big-endian, between nodes a MAC, and so many octets. */

import { timingSafeEqual } from 'node:crypto'
import { SignalError } from '../../errors.ts'
import { type FrameMac, MAC_BYTES } from './link-proof.ts'

export function frameHead(length: number): Buffer {
  const head = Buffer.allocUnsafe(HEAD_BYTES)
  head.writeUInt32BE(length)
  return head
}

/** Puts frames together again. It holds one frame at most, and no room is made for octets that have not come. */
export class FrameReader {
  readonly #bytesMax: number
  readonly #onFrame: (frame: Buffer) => void
  readonly #mac: FrameMac | undefined
  #chunks: Buffer[] = []
  #held = 0
  /** Octets of the frame and its MAC; undefined while its head is read. */
  #length: number | undefined

  constructor(bytesMax: number, onFrame: (frame: Buffer) => void, mac?: FrameMac) {
    this.#bytesMax = bytesMax
    this.#onFrame = onFrame
    this.#mac = mac
  }

  /** Throws `MALFORMED` for a frame that is longer than it may be, or not the one that the other end sent next. */
  add(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#held += chunk.length
    for (;;) {
      const wanted = this.#length ?? HEAD_BYTES
      if (this.#held < wanted) return
      const bytes = this.#take(wanted)
      if (this.#length !== undefined) {
        this.#length = undefined
        this.#onFrame(this.#mac === undefined ? bytes : checked(bytes, this.#mac))
        continue
      }
      const length = bytes.readUInt32BE()
      if (length > this.#bytesMax) {
        throw new SignalError(
          'MALFORMED',
          `a frame has ${length} octets, at most ${this.#bytesMax} are taken`,
        )
      }
      this.#length = length + (this.#mac === undefined ? 0 : MAC_BYTES)
    }
  }

  #take(length: number): Buffer {
    const all = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks)
    this.#chunks = all.length === length ? [] : [all.subarray(length)]
    this.#held -= length
    return all.subarray(0, length)
  }
}

/** The frame behind its MAC. */
function checked(bytes: Buffer, mac: FrameMac): Buffer {
  const frame = bytes.subarray(MAC_BYTES)
  if (!timingSafeEqual(mac.next([frame]), bytes.subarray(0, MAC_BYTES)))
    throw new SignalError('MALFORMED', 'a frame is not what the other end sent next')
  return frame
}

const HEAD_BYTES = 4
