/**
 * One WebSocket that speaks STOMP with the server, from CONNECT to its end: heart-beats, receipts, and refusals, which come
 * to `/user/queue/errors`. It does not come back by itself. Heart-beats and the deadlines of answers stay here rather than in
 * `device-connection.ts`: each belongs to one socket and to every octet on it, and ends as a close like any other.
 */

import { CallsignError, errorOf } from '../callsign-error.ts'
import { formatFrame, parseFrame, type StompFrame } from './stomp.ts'

/** A WebSocket as browsers and Node have it, or the package `ws`. */
export interface WebSocketLike {
  onopen: ((event: never) => unknown) | null
  onmessage: ((event: never) => unknown) | null
  onclose: ((event: never) => unknown) | null
  onerror: ((event: never) => unknown) | null
  send(data: string | Uint8Array<ArrayBuffer>): void
  close(): void
  /** Ends it without waiting for the other side, where that is possible. */
  terminate?(): void
}

export type WebSocketClass = new (url: string, protocols: string[]) => WebSocketLike

export interface StompSocketOptions {
  readonly webSocket: WebSocketClass
  readonly url: string
  readonly accessToken: string
  /** The language of refusals; left out or empty: the server's own. */
  readonly language?: string
  /** How often this side sends something, and how often the server is to. */
  readonly heartBeatMs: readonly [out: number, in_: number]
  readonly answerWithinMs: number
  /** Takes the headers of CONNECTED. An error that it throws ends the connection. */
  readonly onConnected: (headers: StompFrame['headers']) => void
  /** Takes a MESSAGE. An error that it throws ends the connection. */
  readonly onMessage: (frame: StompFrame) => void
}

/** How a connection ended. */
export interface StompClose {
  /** As docs/protocol/socket.md has them; 1006 where the network broke, 1002 where the server broke the protocol. */
  readonly code: number
  readonly reason: string
  readonly retryAfterMs: number
  readonly error: CallsignError | undefined
}

interface Waiting {
  readonly resolve: (headers: StompFrame['headers']) => void
  readonly reject: (error: CallsignError) => void
}

export class StompSocket {
  /** Resolves when the connection has ended. */
  readonly closed: Promise<StompClose>
  readonly #options: StompSocketOptions
  readonly #webSocket: WebSocketLike
  /** Requests without an answer so far, by receipt. */
  readonly #waiting = new Map<string, Waiting>()
  /** React Native up to 0.85 cuts a text at its NUL. The server answers octets by octets. */
  readonly #sendsOctets = globalThis.navigator?.product === 'ReactNative'
  #receipts = 0
  #stage: 'opening' | 'connected' | 'over' = 'opening'
  #frameBytesMax = 0
  /** The server is given up when it is silent for so long. */
  #silenceMs = 0
  #silence: ReturnType<typeof setTimeout> | undefined
  #beats: ReturnType<typeof setInterval> | undefined
  /** The ERROR with which the server ends the connection. */
  #error: StompFrame | undefined
  #resolveClosed: (close: StompClose) => void = () => {}

  constructor(options: StompSocketOptions) {
    const { webSocket, url, accessToken, language, heartBeatMs, answerWithinMs } = options
    this.#options = options
    this.closed = new Promise(resolve => {
      this.#resolveClosed = resolve
    })
    const socket = new webSocket(url, ['v12.stomp'])
    this.#webSocket = socket
    socket.onopen = () =>
      this.#send(
        formatFrame('CONNECT', {
          'accept-version': '1.2',
          host: url.split('/')[2]!,
          'heart-beat': heartBeatMs.join(),
          ...(language && { 'accept-language': language }),
          Authorization: `Bearer ${accessToken}`,
        }),
      )
    socket.onmessage = ({ data }: { readonly data: unknown }) => this.#onData(data)
    socket.onclose = ({ code, reason }: { readonly code?: number; readonly reason?: string }) =>
      this.#end(code, reason)
    // An error is followed by a close.
    socket.onerror = () => {}
    this.#allowSilence(answerWithinMs)
  }

  /**
   * Sends a frame, and resolves with the headers of its RECEIPT. Rejects with the server's refusal, with `BODY_TOO_LARGE`, or
   * with `OFFLINE` where the connection ends before.
   */
  request(
    command: string,
    headers: Readonly<Record<string, string>>,
    body?: string,
  ): Promise<StompFrame['headers']> {
    return new Promise((resolve, reject) => {
      if (this.#stage !== 'connected') return reject(offline())
      const receipt = `${++this.#receipts}`
      const frame = formatFrame(command, { ...headers, receipt }, body)
      // The NUL does not count.
      if (new TextEncoder().encode(frame).length - 1 > this.#frameBytesMax) {
        return reject(new CallsignError('BODY_TOO_LARGE', 'The message is larger than the server takes.'))
      }
      this.#waiting.set(receipt, { resolve, reject })
      this.#send(frame)
    })
  }

  /** Sends a frame that needs no answer. */
  tell(command: string, headers: Readonly<Record<string, string>>): void {
    if (this.#stage === 'connected') this.#send(formatFrame(command, headers))
  }

  /** Ends the connection when the server has carried out all that was sent, or does not answer. */
  async disconnect(): Promise<void> {
    this.#allowSilence(DISCONNECT_WITHIN_MS)
    this.request('DISCONNECT', {})
      .catch(() => {})
      .then(() => this.abandon())
    await this.closed
  }

  /** Ends the connection at once. */
  abandon(): void {
    this.#end(1000)
  }

  #onData(data: unknown): void {
    if (this.#stage === 'over') return
    if (this.#stage === 'connected') this.#allowSilence(this.#silenceMs)
    // A lone line end is a heart-beat. Bodies that are no text come in binary messages; an app has no use for them.
    const text = this.#sendsOctets && data instanceof ArrayBuffer ? textOf(new Uint8Array(data)) : data
    if (typeof text !== 'string' || text === '\n') return
    try {
      if (text.length > MESSAGE_CHARS_MAX)
        throw new CallsignError('ANSWER_INVALID', 'The frame is too large.')
      this.#onFrame(parseFrame(text))
    } catch (cause) {
      const sentence = 'The server sent a frame that makes no sense here.'
      this.#end(1002, '', new CallsignError('ANSWER_INVALID', sentence, { cause }))
    }
  }

  #onFrame(frame: StompFrame): void {
    const { command, headers, body } = frame
    if (command === 'ERROR') return this.#onError(frame)
    if ((command === 'CONNECTED') !== (this.#stage === 'opening')) throw new Error(command)
    if (command === 'CONNECTED') return this.#onConnected(headers)
    if (command === 'RECEIPT') return this.#take(headers.get('receipt-id'))?.resolve(headers)
    if (command !== 'MESSAGE') throw new Error(command)
    if (headers.get('subscription') !== ERRORS) return this.#options.onMessage(frame)
    const { receiptId, problem } = JSON.parse(body)
    this.#take(receiptId)?.reject(errorOf(problem, 'ANSWER_INVALID', 'The server refused it.'))
  }

  #onConnected(headers: StompFrame['headers']): void {
    const { heartBeatMs, onConnected } = this.#options
    const [, sends, wants] = /^(\d{1,7}),(\d{1,7})$/.exec(headers.get('heart-beat') ?? '0,0') ?? []
    if (sends === undefined) throw new Error('heart-beat')
    const periodOf = (one: string | undefined, other: number) => Number(one) && Math.max(Number(one), other)
    const [outMs, inMs] = [periodOf(wants, heartBeatMs[0]), periodOf(sends, heartBeatMs[1])]
    this.#stage = 'connected'
    this.#frameBytesMax = Number(headers.get('max-frame')) || FRAME_BYTES_MAX
    if (outMs > 0) this.#beats = setInterval(() => this.#send('\n'), outMs)
    this.#allowSilence(inMs && inMs * SILENT_PERIODS_MAX + SILENCE_GRACE_MS)
    this.tell('SUBSCRIBE', { id: ERRORS, destination: '/user/queue/errors' })
    onConnected(headers)
  }

  /** The server closes the connection after it. */
  #onError(frame: StompFrame): void {
    this.#error = frame
    this.#allowSilence(this.#options.answerWithinMs)
    this.#take(frame.headers.get('receipt-id'))?.reject(problemIn(frame))
  }

  #take(receipt: string | undefined): Waiting | undefined {
    const waiting = this.#waiting.get(receipt ?? '')
    this.#waiting.delete(receipt ?? '')
    return waiting
  }

  #send(text: string): void {
    try {
      this.#webSocket.send(this.#sendsOctets ? new TextEncoder().encode(text) : text)
    } catch {
      this.#end()
    }
  }

  /** Counted from now, and anew with each message; zero is for ever. */
  #allowSilence(ms: number): void {
    clearTimeout(this.#silence)
    this.#silenceMs = ms
    if (ms > 0) this.#silence = setTimeout(() => this.#end(), ms)
  }

  #end(code = 1006, reason = '', fault?: CallsignError): void {
    if (this.#stage === 'over') return
    this.#stage = 'over'
    clearTimeout(this.#silence)
    clearInterval(this.#beats)
    for (const { reject } of this.#waiting.values()) reject(offline())
    const socket = this.#webSocket
    socket.onopen = socket.onmessage = socket.onclose = null
    // A close may be under way; a dead network would hold it up.
    if (socket.terminate === undefined) socket.close()
    else socket.terminate()
    const error = this.#error
    const retryAfterMs = Number(error?.headers.get('retry-after')) || 0
    this.#resolveClosed({
      code,
      reason: reason || (error?.headers.get('reason') ?? ''),
      retryAfterMs: Math.min(retryAfterMs, RETRY_AFTER_MS_MAX),
      error: fault ?? (error && problemIn(error)),
    })
  }
}

export function offline(): CallsignError {
  return new CallsignError('OFFLINE', 'There is no connection to the server now.')
}

function problemIn({ headers, body }: StompFrame): CallsignError {
  let problem: unknown
  try {
    problem = JSON.parse(body)
  } catch {}
  const code = headers.get('reason')?.toUpperCase() ?? 'ANSWER_INVALID'
  return errorOf(problem, code, 'The server ended the connection.')
}

/** Hermes has no TextDecoder. Undefined for octets that are no text. */
export function textOf(octets: Uint8Array): string | undefined {
  const escaped = Array.from(octets, octet => `%${octet.toString(16).padStart(2, '0')}`)
  try {
    return decodeURIComponent(escaped.join(''))
  } catch {
    return undefined
  }
}

/** The id of the subscription to refusals. */
const ERRORS = 'errors'
const FRAME_BYTES_MAX = 256 * 1024
/** Far above all that the server sends. */
const MESSAGE_CHARS_MAX = 1024 * 1024
const [SILENT_PERIODS_MAX, SILENCE_GRACE_MS] = [2.5, 1_000]
const DISCONNECT_WITHIN_MS = 2_000
const RETRY_AFTER_MS_MAX = 600_000
