/**
 * The connection of one device, as docs/calls.md has it ("Connect"): it comes back by itself, hands each event of the
 * device's queues over once, in order, and acknowledges what was handled.
 */

import { CallsignError, hasCode } from '../callsign-error.ts'
import { type Server, withTextIds } from '../session/server.ts'
import type { Session } from '../session/session.ts'
import type { CallTopicEvent, QueueEvent } from '../wire.ts'
import { leadTabs } from './leading-tab.ts'
import type { StompFrame } from './stomp.ts'
import { offline, type StompClose, StompSocket, type WebSocketClass } from './stomp-socket.ts'

/**
 * `waiting`: another tab of this device is connected, and this one will be when that one closes. `elsewhere`: another
 * connection of this device took over; it stays so until `connect`.
 */
export type ConnectionState = 'off' | 'waiting' | 'connecting' | 'connected' | 'elsewhere'

export interface ConnectionListener {
  /** Called with each new state, and after each attempt that failed. `failures` counts those in a row. */
  onState(state: ConnectionState, failures: number): void
  /**
   * All subscriptions are there, also after each reconnection. Where events may have been missed, read `call/pending`,
   * `friend-request` and `user`; topics are live only, so read what they tell of in any case.
   */
  onConnected(news: { readonly mayHaveMissed: boolean }): void
  /**
   * An event of the device's queues, of a type that a newer server may have added. The next one of its queue waits until
   * this one is done, and is acknowledged then. It counts as done when it rejects, too, after `onTrouble`.
   */
  onEvent(event: QueueEvent): Promise<void> | void
  /** The server asks for the device of this session to be registered. */
  onDeviceMissing(): Promise<void>
  onTrouble(error: unknown): void
}

export interface ConnectionDeps {
  readonly server: Server
  readonly session: Session
  readonly listener: ConnectionListener
  /** For platforms that have none of their own: the one of the package `ws`. */
  readonly webSocket?: WebSocketClass
  /** The name by which tabs of one device know each other: of server, user and device. */
  readonly tabLock?: string
  readonly heartBeatMs?: readonly [out: number, in_: number]
  readonly answerWithinMs?: number
}

interface Queue {
  readonly waiting: Message[]
  isBusy: boolean
  /** The last message whose acknowledgement the server has on disk. */
  since: string | undefined
}

interface Message {
  readonly event: QueueEvent
  readonly messageId: string
  readonly socket: StompSocket
}

interface Watch {
  readonly destination: string
  readonly listener: (event: CallTopicEvent) => void
  readonly resolve: (stop: () => void) => void
  readonly reject: (error: unknown) => void
  /** The connection that it is subscribed on. */
  socket: StompSocket | undefined
}

/** For as long as its session lasts. The session says when that has ended. */
export class Connection {
  readonly #deps: ConnectionDeps
  readonly #webSocket: WebSocketClass
  readonly #queues: ReadonlyMap<string, Queue>
  readonly #watches = new Map<string, Watch>()
  #watchCount = 0
  /** Ids of events, the oldest first. */
  readonly #seen = new Set<string>()
  #socket: StompSocket | undefined
  /** Aborted by `disconnect` and where the connection must not come back. */
  #life: AbortController | undefined
  #pausing: AbortController | undefined
  #state: ConnectionState = 'off'
  #deviceId: string | undefined
  #connectedAtMs: number | undefined
  #failures = 0
  /** By the pace of `ACK_EVERY_MS`, when there were as many acknowledgements as were sent. */
  #acksUntilMs = 0

  /** Throws `WEBSOCKET_MISSING`. */
  constructor(deps: ConnectionDeps) {
    const webSocket = deps.webSocket ?? globalThis.WebSocket
    if (webSocket === undefined) {
      const sentence = 'This platform has no WebSocket. Give one, such as that of the package ws.'
      throw new CallsignError('WEBSOCKET_MISSING', sentence)
    }
    this.#deps = deps
    this.#webSocket = webSocket
    const queueOf = (): Queue => ({ waiting: [], isBusy: false, since: undefined })
    this.#queues = new Map(['account', 'contacts', 'calls'].map(name => [name, queueOf()]))
    deps.session.onOver(() => this.#stop('off')?.abandon())
  }

  get state(): ConnectionState {
    return this.#state
  }

  /** Attempts that failed in a row, those after a short connection too. */
  get failures(): number {
    return this.#failures
  }

  /** Undefined without a connection; another one with each. */
  get connectedAtMs(): number | undefined {
    return this.#connectedAtMs
  }

  /** As the server knows it; undefined before the first connection. */
  get deviceId(): string | undefined {
    return this.#deviceId
  }

  /**
   * Connects, and stays connected until `disconnect`. A pause before the next attempt ends at once. With `takeOver` it does
   * not wait for another tab, which has the state `elsewhere` then.
   */
  connect({ takeOver = false } = {}): void {
    this.#endPause()
    if (takeOver && this.#state === 'waiting') {
      this.#life?.abort()
      this.#life = undefined
    }
    if (this.#life !== undefined) return
    const life = new AbortController()
    this.#life = life
    this.#failures = 0
    globalThis.addEventListener?.('online', this.#endPause)
    this.#setState('connecting')
    void this.#stayConnected(life.signal, takeOver)
  }

  /** Resolves when the server has carried out what was sent before. Ends all watches. */
  async disconnect(): Promise<void> {
    await this.#stop('off')?.disconnect()
  }

  /**
   * Subscribes to a topic. Resolves with the function that ends it when the server has it, which may take until the next
   * connection, and is subscribed again after each reconnection. Rejects with the server's refusal.
   */
  watch(destination: string, listener: (event: CallTopicEvent) => void): Promise<() => void> {
    return new Promise((resolve, reject) => {
      if (this.#life === undefined) return reject(offline())
      const id = `watch-${++this.#watchCount}`
      this.#watches.set(id, { destination, listener, resolve, reject, socket: undefined })
      if (this.#state === 'connected') void this.#subscribe(this.#socket!, id)
    })
  }

  /**
   * Resolves when the server has carried it out, and has it on disk. Rejects with the server's refusal, with `BODY_TOO_LARGE`,
   * or with `OFFLINE`; then it may have been carried out.
   */
  async send(destination: string, body: unknown): Promise<void> {
    if (this.#socket === undefined) throw offline()
    await this.#socket.request('SEND', { destination }, JSON.stringify(body))
  }

  async #stayConnected(life: AbortSignal, isTaken: boolean): Promise<void> {
    const { server, session, listener, tabLock } = this.#deps
    const { nowMs, random, wait } = server.platform
    if (tabLock !== undefined) {
      await leadTabs(tabLock, life, {
        isTaken,
        onWaiting: () => this.#setState('waiting'),
        onLost: () => void this.#stop('elsewhere')?.disconnect(),
      })
      if (life.aborted) return
      if (this.#state === 'waiting') this.#setState('connecting')
    }
    while (!life.aborted) {
      let retryAfterMs = 0
      try {
        const accessToken = await session.accessToken()
        if (life.aborted) return
        const close = await this.#open(accessToken).closed
        this.#forgetWaiting()
        if (life.aborted) return
        retryAfterMs = close.retryAfterMs
        await this.#judge(close, accessToken)
      } catch (error) {
        if (session.userId === undefined) this.#stop('off')
        else if (!hasCode(error, 'NO_ANSWER')) listener.onTrouble(error)
      }
      if (life.aborted) return
      const isSteady = this.#connectedAtMs !== undefined && nowMs() - this.#connectedAtMs > STEADY_MS
      this.#failures = isSteady ? 1 : this.#failures + 1
      this.#connectedAtMs = undefined
      this.#pausing = new AbortController()
      this.#setState('connecting')
      // Full jitter: devices that lost their connections together come back one by one.
      const jitterMs = random() * Math.min(PAUSE_MS_MAX, PAUSE_MS * 2 ** this.#failures)
      if (!life.aborted) await wait(Math.max(jitterMs, retryAfterMs), this.#pausing.signal)
    }
  }

  #open(accessToken: string): StompSocket {
    const { server, heartBeatMs, answerWithinMs = ANSWER_WITHIN_MS } = this.#deps
    const isPage = 'document' in globalThis
    const socket: StompSocket = new StompSocket({
      webSocket: this.#webSocket,
      url: server.webSocketUrl,
      accessToken,
      heartBeatMs: heartBeatMs ?? [isPage ? PAGE_BEAT_MS : BEAT_MS, BEAT_MS],
      answerWithinMs,
      onConnected: headers => void this.#onConnected(socket, headers),
      onMessage: frame => this.#onMessage(socket, frame),
    })
    this.#socket = socket
    return socket
  }

  /** The meaning of a close: the table of docs/calls.md. Returns where the connection may come back. */
  async #judge({ code, reason, error }: StompClose, accessToken: string): Promise<void> {
    const { session, listener } = this.#deps
    if (code === 4409) return void this.#stop('elsewhere')
    if (code === 4403 || (code === 4401 && OVER_REASONS.includes(reason))) {
      const sentence = error?.message ?? 'The server has ended the session.'
      const name = code === 4403 ? 'DEVICE_REMOVED' : reason.toUpperCase()
      return session.end(new CallsignError(name, sentence))
    }
    if (code === 4401) return session.renew(accessToken)
    if (reason === 'device_not_registered') return listener.onDeviceMissing()
    if (FAULT_CODES.includes(code)) listener.onTrouble(error ?? new CallsignError('ANSWER_INVALID', reason))
  }

  async #onConnected(socket: StompSocket, headers: StompFrame['headers']): Promise<void> {
    const { server, listener } = this.#deps
    const serverMs = Number(headers.get('server-time'))
    if (serverMs > 0) server.hearTime(serverMs)
    const deviceId = headers.get('device')
    if (deviceId !== this.#deviceId) this.#forgetDevice()
    this.#deviceId = deviceId
    this.#connectedAtMs = server.platform.nowMs()
    const queues = [...this.#queues].map(([id, { since }]) => {
      const destination = `/user/queue/${id}`
      const position = since === undefined ? {} : { since }
      return socket.request('SUBSCRIBE', { id, destination, ack: 'client-individual', ...position })
    })
    const watches = [...this.#watches.keys()].map(id => this.#subscribe(socket, id))
    this.#setState('connected')
    try {
      const receipts = await Promise.all(queues)
      await Promise.all(watches)
      if (socket !== this.#socket) return
      const recovered = receipts.map(each => each.get('recovered'))
      listener.onConnected({ mayHaveMissed: !recovered.includes('true') || recovered.includes('false') })
    } catch (error) {
      if (!hasCode(error, 'OFFLINE')) listener.onTrouble(error)
      socket.abandon()
    }
  }

  /** Does nothing where the connection breaks: the next one tries again. */
  async #subscribe(socket: StompSocket, id: string): Promise<void> {
    const watch = this.#watches.get(id)!
    try {
      await socket.request('SUBSCRIBE', { id, destination: watch.destination })
    } catch (error) {
      if (hasCode(error, 'OFFLINE')) return
      this.#watches.delete(id)
      return watch.reject(error)
    }
    watch.socket = socket
    // Its owner has ended it meanwhile.
    if (!this.#watches.has(id)) socket.tell('UNSUBSCRIBE', { id })
    watch.resolve(() => this.#unwatch(id))
  }

  #unwatch(id: string): void {
    const watch = this.#watches.get(id)
    this.#watches.delete(id)
    if (watch?.socket === this.#socket) this.#socket?.tell('UNSUBSCRIBE', { id })
  }

  /** An error that it throws ends the connection. */
  #onMessage(socket: StompSocket, { headers, body }: StompFrame): void {
    if (socket !== this.#socket) return
    const id = headers.get('subscription') ?? ''
    const event = JSON.parse(body, withTextIds)
    const watch = this.#watches.get(id)
    if (watch !== undefined) return this.#tellWatch(watch, event)
    if (typeof event?.type !== 'string' || typeof event.eventId !== 'string') throw new Error('event')
    const queue = this.#queues.get(id)
    const messageId = headers.get('ack')
    // A watch that has ended.
    if (queue === undefined) return
    if (messageId === undefined || queue.waiting.length >= WAITING_MAX) throw new Error('message')
    queue.waiting.push({ event, messageId, socket })
    void this.#handleWaiting(queue)
  }

  #tellWatch({ listener }: Watch, event: CallTopicEvent): void {
    try {
      listener(event)
    } catch (error) {
      this.#deps.listener.onTrouble(error)
    }
  }

  async #handleWaiting(queue: Queue): Promise<void> {
    if (queue.isBusy) return
    queue.isBusy = true
    for (let next = queue.waiting.shift(); next !== undefined; next = queue.waiting.shift()) {
      const { event, messageId, socket } = next
      await this.#handle(event)
      socket.request('ACK', { id: messageId }).then(
        () => {
          queue.since = messageId
        },
        // It comes again.
        () => {},
      )
      await this.#pace()
    }
    queue.isBusy = false
  }

  /** Waits where a long backlog would have more acknowledgements sent than the server takes in so short a time. */
  async #pace(): Promise<void> {
    const { nowMs, wait } = this.#deps.server.platform
    const now = nowMs()
    this.#acksUntilMs = Math.max(this.#acksUntilMs, now - ACKS_AT_ONCE * ACK_EVERY_MS) + ACK_EVERY_MS
    if (this.#acksUntilMs > now) await wait(this.#acksUntilMs - now)
  }

  async #handle(event: QueueEvent): Promise<void> {
    if (this.#seen.has(event.eventId)) return
    this.#seen.add(event.eventId)
    if (this.#seen.size > SEEN_MAX) this.#seen.delete(this.#seen.values().next().value!)
    const { listener } = this.#deps
    try {
      await listener.onEvent(event)
    } catch (error) {
      listener.onTrouble(error)
    }
  }

  /** Messages that no one has begun with come again on the next connection. */
  #forgetWaiting(): void {
    for (const { waiting } of this.#queues.values()) waiting.length = 0
  }

  /** Another device has an inbox of its own. */
  #forgetDevice(): void {
    this.#seen.clear()
    for (const queue of this.#queues.values()) queue.since = undefined
  }

  readonly #endPause = (): void => this.#pausing?.abort()

  /** Returns the connection that there is, to be ended by the caller. */
  #stop(state: ConnectionState): StompSocket | undefined {
    this.#life?.abort()
    this.#life = undefined
    this.#endPause()
    globalThis.removeEventListener?.('online', this.#endPause)
    for (const { reject } of this.#watches.values()) reject(offline())
    this.#watches.clear()
    this.#forgetWaiting()
    const socket = this.#socket
    this.#socket = undefined
    this.#setState(state)
    return socket
  }

  #setState(state: ConnectionState): void {
    const isNews = state !== this.#state || state === 'connecting'
    this.#state = state
    if (isNews) this.#deps.listener.onState(state, this.#failures)
  }
}

const FAULT_CODES: readonly number[] = [1002, 1007, 1008, 1009]
const OVER_REASONS: readonly string[] = ['token_missing', 'token_invalid', 'session_revoked']
/** As many as an inbox holds: what comes again comes out of that. */
const SEEN_MAX = 500
/** The server sends at most 32 without an acknowledgement, and badges. */
const WAITING_MAX = 500
/** The server takes 50 frames in a second, and 200 at once. */
const [ACK_EVERY_MS, ACKS_AT_ONCE] = [25, 100]
const ANSWER_WITHIN_MS = 10_000
const BEAT_MS = 10_000
/** Browsers wake timers of a page in the background once a minute: so rare a beat still comes in time. */
const PAGE_BEAT_MS = 40_000
/** A connection that lasted so long was a good one. */
const STEADY_MS = 5_000
/** The bound of the first pause is two seconds; each failure doubles it. */
const [PAUSE_MS, PAUSE_MS_MAX] = [1_000, 60_000]
