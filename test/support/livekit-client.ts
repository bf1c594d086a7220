/** A device's half of a conversation with LiveKit, as far as being let in and put out go: without media. */

import { once } from 'node:events'
import WebSocket from 'ws'

export interface LiveKitEntry {
  readonly url: string
  readonly token: string
}

export class LiveKitClient {
  readonly #socket: WebSocket
  readonly #beats: NodeJS.Timeout
  readonly closed: Promise<unknown>

  private constructor(socket: WebSocket) {
    this.#socket = socket
    this.closed = once(socket, 'close')
    this.#beats = setInterval(() => socket.send(PING), BEAT_MS)
    socket.on('close', () => clearInterval(this.#beats))
    socket.on('error', () => undefined)
  }

  /** The client once LiveKit greets it, or the status by which it is turned away. */
  static async enter({ url, token }: LiveKitEntry): Promise<LiveKitClient | number> {
    const socket = new WebSocket(`${url}/rtc?access_token=${token}&protocol=15&sdk=js&version=2.22.0`)
    return new Promise((resolve, reject) => {
      socket.once('message', () => resolve(new LiveKitClient(socket)))
      socket.once('unexpected-response', (request, { statusCode = 0 }) => {
        request.destroy()
        resolve(statusCode)
      })
      socket.once('error', reject)
    })
  }

  get isIn(): boolean {
    return this.#socket.readyState === WebSocket.OPEN
  }

  close(): void {
    this.#socket.close()
  }
}

/** A `SignalRequest` with the member `ping`. */
const PING = Uint8Array.of(0x70, 1)
const BEAT_MS = 3_000
