/**
 * The STOMP connection of one device: its queues, topics and commands, with @stomp/stompjs. A message of a queue is
 * acknowledged when it was dealt with, and an event that comes twice is dealt with once.
 */

import { Client, type IFrame, type IMessage } from '@stomp/stompjs'
import { Problem, type Session, sentenceOf } from './session.ts'
import type { Connection } from './state.ts'

// biome-ignore lint/suspicious/noExplicitAny: each type of event has members of its own, as /asyncapi.json has them
export type Event = any

export interface SocketListener {
  /** Connected, and subscribed to the device's own queues; also after each reconnection. */
  readonly onConnected: () => void
  readonly onConnection: (connection: Connection) => void
  /** A message of a queue; it is acknowledged when this resolves, also when it failed, which is said. */
  readonly onEvent: (event: Event) => Promise<void> | void
  readonly onTrouble: (sentence: string) => void
  /** The session has ended. */
  readonly onSignedOut: (sentence: string) => void
}

export class Socket {
  readonly #client: Client
  readonly #session: Session
  readonly #listener: SocketListener
  /** Frames waiting for their RECEIPT, by receipt id. */
  readonly #waiting = new Map<string, { resolve: () => void; reject: (error: Error) => void }>()
  /** Ids, the oldest first. */
  readonly #seenEvents = new Set<string>()
  #receipts = 0
  /** In a row. */
  #failures = 0
  /** When the server lets this tab come back. */
  #mayReturnAtMs = 0

  constructor(session: Session, listener: SocketListener) {
    this.#session = session
    this.#listener = listener
    this.#client = new Client({
      brokerURL: webSocketAddress(),
      beforeConnect: () => this.#beforeConnect(),
      onConnect: () => this.#onConnect(),
      onStompError: ({ headers }) => {
        this.#mayReturnAtMs = Date.now() + Number(headers['retry-after'] ?? 0)
      },
      onWebSocketClose: event => this.#onClose(event as CloseEvent),
      // Browsers wake timers of a tab in the background once a minute: so rare a beat still comes in time.
      heartbeatOutgoing: 40_000,
      heartbeatIncoming: 10_000,
      // A blocked connection need not be refused: it may just stay without an answer.
      connectionTimeout: 10_000,
      // The pause is in `#beforeConnect`: stompjs has no jitter, and zero would turn reconnecting off.
      reconnectDelay: 1,
    })
  }

  connect(): void {
    this.#listener.onConnection('connecting')
    this.#client.activate()
  }

  async disconnect(): Promise<void> {
    await this.#client.deactivate()
    this.#listener.onConnection('off')
  }

  get isConnected(): boolean {
    return this.#client.connected
  }

  /** Subscribes to a topic; resolves when the server has it. Returns how to leave it. */
  async watch(destination: string, onMessage: (body: Event) => void): Promise<() => void> {
    this.#demandConnection()
    const receipt = this.#nextReceipt()
    const answered = this.#answer(receipt)
    const subscription = this.#client.subscribe(destination, ({ body }) => onMessage(JSON.parse(body)), {
      receipt,
    })
    await answered
    return () => {
      if (this.#client.connected) subscription.unsubscribe()
    }
  }

  /** Resolves when the server has carried it out; rejects with the `Problem` that it refuses it with. */
  async send(destination: string, body: unknown): Promise<void> {
    this.#demandConnection()
    const receipt = this.#nextReceipt()
    const answered = this.#answer(receipt)
    this.#client.publish({ destination, headers: { receipt }, body: JSON.stringify(body) })
    await answered
  }

  async #beforeConnect(): Promise<void> {
    await this.#pause()
    if (!this.#client.active) return
    try {
      this.#client.connectHeaders = { Authorization: `Bearer ${await this.#session.freshToken()}` }
    } catch (error) {
      // Without an answer it is tried again; an ended session has reported itself.
      if (!this.#session.isSignedIn) await this.#client.deactivate()
      else this.#listener.onTrouble(sentenceOf(error))
    }
  }

  /** Full jitter: tabs that lost their connections together come back one by one. */
  async #pause(): Promise<void> {
    if (this.#failures === 0) return
    const jitterMs = Math.random() * Math.min(PAUSE_MS_MAX, PAUSE_MS * 2 ** (this.#failures - 1))
    const waitMs = Math.max(jitterMs, this.#mayReturnAtMs - Date.now())
    await new Promise(resolve => setTimeout(resolve, waitMs))
  }

  #onConnect(): void {
    this.#failures = 0
    this.#client.subscribe('/user/queue/errors', frame => this.#onRefusal(frame))
    for (const queue of ['account', 'contacts', 'calls']) {
      this.#client.subscribe(`/user/queue/${queue}`, message => void this.#onMessage(message), {
        ack: 'client-individual',
      })
    }
    this.#listener.onConnection('connected')
    this.#listener.onConnected()
  }

  async #onMessage(message: IMessage): Promise<void> {
    const event: Event = JSON.parse(message.body)
    if (!this.#seenEvents.has(event.eventId)) {
      this.#noteSeen(event.eventId)
      try {
        await this.#listener.onEvent(event)
      } catch (error) {
        this.#listener.onTrouble(sentenceOf(error))
      }
    }
    if (this.#client.connected) message.ack()
  }

  #noteSeen(eventId: string): void {
    this.#seenEvents.add(eventId)
    if (this.#seenEvents.size > SEEN_MAX) this.#seenEvents.delete(this.#seenEvents.values().next().value!)
  }

  #onRefusal({ body }: IFrame): void {
    const { receiptId, problem } = JSON.parse(body)
    const refusal = new Problem(problem.code, `${problem.title}. ${problem.detail ?? ''}`.trim(), problem)
    const waiting = this.#waiting.get(receiptId)
    if (waiting === undefined) return this.#listener.onTrouble(refusal.message)
    this.#waiting.delete(receiptId)
    waiting.reject(refusal)
  }

  /** A close code's meaning for an app: the table of `docs/calls.md`. */
  #onClose({ code, reason }: CloseEvent): void {
    for (const { reject } of this.#waiting.values()) {
      reject(new Problem('OFFLINE', 'The connection broke off; the page connects again by itself.'))
    }
    this.#waiting.clear()
    if (!this.#client.active) return
    if (code === 4409) {
      void this.#client.deactivate()
      return this.#listener.onConnection('elsewhere')
    }
    if (code === 4403 || (code === 4401 && reason !== 'token_expired')) {
      void this.#client.deactivate()
      const why = code === 4403 ? 'removed by another of yours, and is signed out' : 'signed out'
      return this.#listener.onSignedOut(`This device was ${why}.`)
    }
    if (code === 4401) void this.#session.renew().catch(() => {})
    this.#failures += 1
    if (this.#failures < FAILURES_BEFORE_WORD) return this.#listener.onConnection('connecting')
    void this.#tellWhy()
  }

  /** It does not come up: either nothing gets through to the server, or all but WebSocket. */
  async #tellWhy(): Promise<void> {
    const isAnswering = await this.#session.request('GET', 'meta').then(
      () => true,
      error => !(error instanceof Problem && error.code === 'NO_ANSWER'),
    )
    if (!this.#client.active || this.#client.connected) return
    this.#listener.onConnection(isAnswering ? 'blocked' : 'unanswered')
  }

  #demandConnection(): void {
    if (!this.#client.connected) throw new Problem('OFFLINE', 'There is no connection to the server now.')
  }

  #nextReceipt(): string {
    this.#receipts += 1
    return `r${this.#receipts}`
  }

  #answer(receipt: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(receipt, { resolve, reject })
      this.#client.watchForReceipt(receipt, () => {
        this.#waiting.delete(receipt)
        resolve()
      })
    })
  }
}

export function webSocketAddress(): string {
  return `${location.origin.replace('http', 'ws')}/ws`
}

/** As many as an inbox holds: what comes again comes out of that. */
const SEEN_MAX = 500
/** One may be a server that starts again. */
const FAILURES_BEFORE_WORD = 3
/** The first pause after a loss, at most; each failure doubles it. */
const PAUSE_MS = 1_000
const PAUSE_MS_MAX = 15_000
