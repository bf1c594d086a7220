/**
 * A client, for load, of servers that put several messages into one frame: NATS and Centrifugo. All messages of a run
 * are equally long, so from the second on each is skipped by its length; everything else is read as lines.
 */

import type { LoadTarget } from './load-socket.ts'
import type { Login, Subscribing } from './stomp-socket.ts'
import { type Upgrade, WebSocketClient, wireFrame } from './websocket-client.ts'

/** How a client signs in and subscribes, and what the server's lines mean. */
export interface LineProtocol {
  readonly upgrade: Upgrade
  /** Whether the last line of a frame has no line feed. */
  readonly endsWithFrame: boolean
  /** Where all messages differ from all other lines, and the octet that they have there. */
  readonly mark: { readonly at: number; readonly octet: number }
  /** Octets behind the line of a message, with the line feed that ends them. */
  bodyBytes(line: string): number
  /** Sent to a ping; undefined for all other lines. */
  answerTo(line: string): string | undefined
  isError(line: string): boolean
  /** Lines to be sent, and whether a line is the last one of the answer. */
  signIn(login: Login): LineExchange
  subscribe(subscribings: readonly Subscribing[]): LineExchange
  publish(destination: string, body: string): string
}

interface LineExchange {
  readonly lines: string
  isDone(line: string): boolean
}

export class LineSocket extends WebSocketClient {
  /** Messages that have come whole. */
  messages = 0
  readonly #protocol: LineProtocol
  /** Octets of a message: the line with its feed, and what is behind it. */
  #messageBytes = 0
  /** Octets to come of the message that is being skipped. */
  #left = 0
  #line = ''
  #isDone: (line: string) => boolean = () => false

  private constructor(target: LoadTarget, protocol: LineProtocol) {
    super(target, protocol.upgrade)
    this.#protocol = protocol
  }

  static async open(target: LoadTarget, protocol: LineProtocol): Promise<LineSocket> {
    const client = new LineSocket(target, protocol)
    await client.woken()
    return client
  }

  signIn(login: Login): Promise<void> {
    return this.#exchange(this.#protocol.signIn(login))
  }

  subscribe(subscribings: readonly Subscribing[]): Promise<void> {
    return this.#exchange(this.#protocol.subscribe(subscribings))
  }

  /** Resolves with the length of the first message, once it has come whole. */
  async nextMessage(): Promise<{ readonly length: number }> {
    await this.#untilLine(() => this.#messageBytes > 0)
    return { length: this.#messageBytes }
  }

  protected override onPayload(octets: Buffer, isWhole: boolean): void {
    const { mark, endsWithFrame } = this.#protocol
    let at = 0
    while (at < octets.length) {
      if (this.#left > 0) {
        const skipped = Math.min(this.#left, octets.length - at)
        this.#left -= skipped
        at += skipped
        if (this.#left === 0) this.messages++
      } else if (this.#messageBytes > 0 && this.#line === '' && octets[at + mark.at] === mark.octet) {
        this.#left = this.#messageBytes
      } else {
        const end = octets.indexOf(LINE_FEED, at)
        this.#line += octets.toString('latin1', at, end < 0 ? octets.length : end)
        at = end < 0 ? octets.length : end + 1
        if (end >= 0) this.#onLine()
      }
    }
    if (!isWhole || !endsWithFrame) return
    // The line feed that the message's length counts is not there behind the last one.
    if (this.#left === 1) {
      this.#left = 0
      this.messages++
    }
    this.#onLine()
  }

  #onLine(): void {
    const line = this.#line
    this.#line = ''
    if (line === '') return
    const answer = this.#protocol.answerTo(line)
    if (answer !== undefined) return this.send(wireFrame(answer))
    if (this.#protocol.isError(line)) return this.fail(new Error(`refused: ${line}`))
    if (line.charCodeAt(this.#protocol.mark.at) === this.#protocol.mark.octet) this.#onMessage(line)
    if (this.#isDone(line)) this.wake()
  }

  #onMessage(line: string): void {
    this.#left = this.#protocol.bodyBytes(line)
    this.#messageBytes = line.length + 1 + this.#left
    if (this.#left === 0) this.messages++
  }

  async #exchange({ lines, isDone }: LineExchange): Promise<void> {
    const done = this.#untilLine(isDone)
    this.send(wireFrame(lines))
    await done
  }

  async #untilLine(isDone: (line: string) => boolean): Promise<void> {
    this.#isDone = isDone
    await this.woken()
    this.#isDone = () => false
  }
}

const LINE_FEED = 0x0a
