/** One STOMP 1.2 connection over WebSocket, from CONNECT to its end. Its owner connects again. */

import { WebSocket } from 'ws'
import { type ClientCommand, STOMP_VERSIONS } from '../../src/stomp/frame.ts'
import { encodeFrame } from '../../src/stomp/serializer.ts'
import { Refusal, readJson } from './api.ts'
import { parseServerFrame, type ServerFrame } from './stomp-frame.ts'

export interface StompOptions {
  /** `ws://host:port/ws` */
  readonly url: string
  readonly accessToken: string
  /** Called with the parsed body of each message; it is acknowledged when this returns. */
  readonly onMessage: (body: unknown) => void
  /** Called when the server has confirmed a message's acknowledgement, which it is asked for only then. */
  readonly onSettled?: (body: unknown) => void
}

/** How a connection ended. */
export interface Closing {
  /** The WebSocket's close code; 1006 when it broke. */
  readonly code: number
  /** As the ERROR frame has it, such as `replaced`. */
  readonly reason: string
  /** Whether the server says not to come back. */
  readonly isFinal: boolean
  /** The server's requested wait before the next connection; 0 when it does not say. */
  readonly retryAfterMs: number
}

export class StompClient {
  /** Resolves at the end of the connection. */
  readonly closed: Promise<Closing>
  readonly #socket: WebSocket
  readonly #onMessage: (body: unknown) => void
  readonly #onSettled: ((body: unknown) => void) | undefined
  readonly #receipts = new Map<string, { resolve(): void; reject(error: Error): void }>()
  readonly #subscribed = new Set<string>()
  readonly #beats: NodeJS.Timeout
  #nextId = 0
  #heardAtMs = Date.now()
  #error: ServerFrame | undefined = undefined
  #onConnected: (() => void) | undefined = undefined

  private constructor({ url, accessToken, onMessage, onSettled }: StompOptions) {
    this.#onMessage = onMessage
    this.#onSettled = onSettled
    const protocols = STOMP_VERSIONS.map(version => `v${version.replace('.', '')}.stomp`).reverse()
    const socket = new WebSocket(url, protocols, { perMessageDeflate: false })
    this.#socket = socket
    socket.on('open', () => {
      const heartBeat = `${BEAT_MS},${BEAT_MS}`
      const headers = ['accept-version', '1.2', 'host', 'callsign', 'heart-beat', heartBeat]
      this.#write('CONNECT', [...headers, 'Authorization', `Bearer ${accessToken}`])
    })
    socket.on('message', (octets: Buffer) => this.#onOctets(octets))
    // The following 'close' event reports it.
    socket.on('error', () => {})
    this.#beats = setInterval(() => this.#beat(), BEAT_MS)
    this.closed = new Promise(resolve => socket.once('close', code => resolve(this.#onClosed(code))))
  }

  /** Resolves when the server has accepted the session; rejects with what it says instead. */
  static async open(options: StompOptions): Promise<StompClient> {
    const client = new StompClient(options)
    const connected = new Promise<void>(resolve => {
      client.#onConnected = resolve
    })
    const closing = await Promise.race([connected, client.closed])
    if (closing !== undefined) throw new ConnectionLost(closing)
    return client
  }

  /** Resolves when the server has taken the subscription. Its id is the destination. */
  async subscribe(destination: string): Promise<void> {
    const ack = destination.startsWith('/topic/') || destination === ERRORS ? 'auto' : 'client-individual'
    await this.#writeConfirmed('SUBSCRIBE', ['id', destination, 'destination', destination, 'ack', ack])
    this.#subscribed.add(destination)
  }

  /** To end what was never confirmed would break a rule. */
  unsubscribe(destination: string): void {
    if (this.#subscribed.delete(destination)) this.#write('UNSUBSCRIBE', ['id', destination])
  }

  /** Resolves when it is carried out; rejects with `Refusal`, or `ConnectionLost`. */
  send(destination: string, body: object): Promise<void> {
    const headers = ['destination', destination, 'content-type', 'application/json']
    return this.#writeConfirmed('SEND', headers, Buffer.from(JSON.stringify(body)))
  }

  /** Says goodbye; resolves when the connection has ended. */
  async close(): Promise<void> {
    this.#write('DISCONNECT', ['receipt', 'goodbye'])
    const giveUp = setTimeout(() => this.drop(), GOODBYE_MS)
    await this.closed
    clearTimeout(giveUp)
  }

  /** The network is gone, without a word. */
  drop(): void {
    this.#socket.terminate()
  }

  async #writeConfirmed(command: ClientCommand, headers: readonly string[], body?: Buffer): Promise<void> {
    // Not before the connection's end is known to all: else a caller tries again at once, for ever.
    if (this.#socket.readyState !== WebSocket.OPEN) throw new ConnectionLost(await this.closed)
    const receipt = String(this.#nextId++)
    return new Promise((resolve, reject) => {
      this.#receipts.set(receipt, { resolve, reject })
      this.#write(command, [...headers, 'receipt', receipt], body)
    })
  }

  #write(command: ClientCommand, headers: readonly string[], body?: Buffer): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return
    this.#socket.send(encodeFrame(command, headers, '1.2', body), { binary: false })
  }

  #beat(): void {
    if (Date.now() - this.#heardAtMs > SILENCE_MS_MAX) return this.drop()
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send('\n')
  }

  #onOctets(octets: Buffer): void {
    this.#heardAtMs = Date.now()
    const frame = parseServerFrame(octets)
    switch (frame?.command) {
      case 'CONNECTED':
        this.#onConnected?.()
        return
      case 'RECEIPT':
        this.#settle(frame.header('receipt-id') ?? '')?.resolve()
        if (frame.header('receipt-id') === 'goodbye') this.#socket.close(1000)
        return
      case 'MESSAGE':
        return this.#onFrame(frame)
      case 'ERROR':
        this.#error = frame
    }
  }

  #onFrame(frame: ServerFrame): void {
    const body = readJson(frame.body)
    if (frame.header('destination') === ERRORS) this.#onRefused(body as RefusedBody)
    else this.#onMessage(body)
    const ack = frame.header('ack')
    if (ack !== undefined) this.#acknowledge(ack, body)
  }

  #acknowledge(id: string, body: unknown): void {
    if (this.#onSettled === undefined) return this.#write('ACK', ['id', id])
    const receipt = String(this.#nextId++)
    this.#receipts.set(receipt, { resolve: () => this.#onSettled?.(body), reject: () => {} })
    this.#write('ACK', ['id', id, 'receipt', receipt])
  }

  #onRefused({ destination, receiptId = '', problem }: RefusedBody): void {
    const { status, code, detail = '' } = problem
    this.#settle(receiptId)?.reject(new Refusal(destination, status, code, detail))
  }

  #settle(receipt: string) {
    const waiting = this.#receipts.get(receipt)
    this.#receipts.delete(receipt)
    return waiting
  }

  #onClosed(code: number): Closing {
    clearInterval(this.#beats)
    const closing: Closing = {
      code,
      reason: this.#error?.header('reason') ?? '',
      isFinal: this.#error?.header('retry') === 'false',
      retryAfterMs: Number(this.#error?.header('retry-after') ?? 0),
    }
    for (const { reject } of this.#receipts.values()) reject(new ConnectionLost(closing))
    this.#receipts.clear()
    return closing
  }
}

/** The connection ended before what was asked for was answered. */
export class ConnectionLost extends Error {
  readonly closing: Closing

  constructor(closing: Closing) {
    super(`the connection ended with ${closing.code} ${closing.reason}`.trimEnd())
    this.closing = closing
  }
}

interface RefusedBody {
  readonly destination: string
  readonly receiptId?: string
  readonly problem: { readonly status: number; readonly code: string; readonly detail?: string }
}

const ERRORS = '/user/queue/errors'
const BEAT_MS = 10_000
const SILENCE_MS_MAX = 2.5 * BEAT_MS
const GOODBYE_MS = 2_000
