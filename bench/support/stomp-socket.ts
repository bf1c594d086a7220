/** A STOMP client for load: it counts messages, and looks into them only where it is asked to. */

import type { LoadTarget } from './load-socket.ts'
import { WebSocketClient, wireFrame } from './websocket-client.ts'

/** One queue or topic, and how it is subscribed to. */
export interface Subscribing {
  readonly id: string
  readonly destination: string
  readonly ack: 'auto' | 'client' | 'client-individual'
  /** Further header lines, which a peer may take. */
  readonly headers?: readonly string[]
}

/** Header lines of CONNECT by which a client says to whom it speaks and who it is. */
export type Login = readonly string[]

export function bearerLogin(token: string): Login {
  return ['host:bench', `authorization:Bearer ${token}`]
}

export class StompSocket extends WebSocketClient {
  /** Messages that have come whole. */
  messages = 0
  /** Called with the octets of each message, lent until it returns. Without it they are not put together. */
  onMessage: ((message: Buffer) => void) | undefined = undefined
  #parts: Buffer[] = []

  /** Resolves when the upgrade is accepted. */
  static async open(target: LoadTarget): Promise<StompSocket> {
    const client = new StompSocket(target)
    await client.woken()
    return client
  }

  /** Signs in; resolves when CONNECTED has come. */
  async signIn(login: Login, heartBeat = '0,0'): Promise<void> {
    const lines = ['CONNECT', 'accept-version:1.2', `heart-beat:${heartBeat}`, ...login]
    const connected = this.#next('CONNECTED')
    this.send(wireFrame(`${lines.join('\n')}\n\n\0`))
    await connected
  }

  /** Subscribes to all of them at once; resolves when the last is confirmed. */
  async subscribe(subscribings: readonly Subscribing[]): Promise<void> {
    const confirmed = this.#next('RECEIPT')
    const frames = subscribings.map(({ id, destination, ack, headers = [] }, at) => {
      const receipt = at === subscribings.length - 1 ? ['receipt:r'] : []
      const lines = [`id:${id}`, `destination:${destination}`, `ack:${ack}`, ...headers, ...receipt]
      return wireFrame(`SUBSCRIBE\n${lines.join('\n')}\n\n\0`)
    })
    this.send(Buffer.concat(frames))
    await confirmed
  }

  /** Resolves with the next message, a copy of it. */
  nextMessage(): Promise<Buffer> {
    return this.#next('')
  }

  protected override onPayload(octets: Buffer, isWhole: boolean): void {
    if (this.onMessage === undefined) {
      if (isWhole) this.messages++
      return
    }
    // The next chunk must not overwrite a frame that continues in it.
    this.#parts.push(isWhole ? octets : Buffer.from(octets))
    if (!isWhole) return
    const parts = this.#parts
    this.#parts = []
    this.messages++
    this.onMessage(parts.length === 1 ? parts[0]! : Buffer.concat(parts))
  }

  async #next(command: string): Promise<Buffer> {
    let message: Buffer | undefined
    const before = this.onMessage
    this.onMessage = octets => {
      const came = Buffer.from(octets)
      // A queue may say how things stand as soon as it is subscribed to, before the other subscriptions.
      if (command === 'RECEIPT' && came.toString('latin1', 0, MESSAGE.length) === MESSAGE) return
      message = came
      this.wake()
    }
    try {
      await this.woken()
    } finally {
      this.onMessage = before
    }
    if (message === undefined || !message.toString('latin1').startsWith(command)) {
      throw new Error(`no ${command} but ${message}`)
    }
    return message
  }
}

/** The octets by which a client sends JSON to a topic. */
export function stompSend(destination: string, body: string): Buffer {
  return wireFrame(`SEND\ndestination:${destination}\ncontent-type:application/json\n\n${body}\0`)
}

const MESSAGE = 'MESSAGE'
