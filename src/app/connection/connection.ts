/**
 * The connection of one device, see docs/protocol/socket.md ("Connect"): it comes back by itself, hands each event of the
 * device's queues over once, in order, and acknowledges handled ones. `device-connection.ts` decides; this carries out
 * its acts one after the other, and reports their outcomes.
 */

import { CallsignError, type Failure } from '../callsign-error.ts'
import { type Server, withTextIds } from '../session/server.ts'
import type { Session } from '../session/session.ts'
import type { CallTopicEvent, QueueEvent } from '../wire.ts'
import type { Act } from './act.ts'
import { decide, newConnection, nextDeadlineMs } from './device-connection.ts'
import type { Input } from './input.ts'
import { leadTabs } from './leading-tab.ts'
import { type ConnectionState, connectedIn, type DeviceConnection, stateOf } from './phase.ts'
import type { StompFrame } from './stomp.ts'
import { offline, type StompClose, StompSocket, type WebSocketClass } from './stomp-socket.ts'

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

interface Command {
  readonly resolve: (watch?: string) => void
  readonly reject: (error: unknown) => void
}

type TopicListener = (event: CallTopicEvent) => void
type Outcome = Omit<Extract<Input, { on: 'done' }>, 'on' | 'act'>
type ActOf<Name extends Act['do']> = Extract<Act, { do: Name }>

/** For as long as its session lasts. The session says when that has ended. */
export class Connection {
  readonly #deps: ConnectionDeps
  readonly #webSocket: WebSocketClass
  #connection: DeviceConnection
  readonly #commands = new Map<number, Command>()
  #commandCount = 0
  /** By the watch, whose id names its command. */
  readonly #topics = new Map<string, TopicListener>()
  /** Each until its close was judged. */
  readonly #sockets = new Map<number, StompSocket>()
  /** Its end gives the lead of the tabs back. */
  #lead: AbortController | undefined
  /** They came during another input. */
  readonly #inputs: Input[] = []
  #isBusy = false
  #timer: { readonly atMs: number; readonly end: AbortController } | undefined

  /** Throws `WEBSOCKET_MISSING`. */
  constructor(deps: ConnectionDeps) {
    const webSocket = deps.webSocket ?? globalThis.WebSocket
    if (webSocket === undefined) {
      const sentence = 'This platform has no WebSocket. Give one, such as that of the package ws.'
      throw new CallsignError('WEBSOCKET_MISSING', sentence)
    }
    this.#deps = deps
    this.#webSocket = webSocket
    this.#connection = newConnection(deps.tabLock !== undefined)
    deps.session.onOver(() => this.#take({ on: 'over' }))
  }

  get state(): ConnectionState {
    return stateOf(this.#connection.phase)
  }

  /** Attempts that failed in a row, those after a short connection too. */
  get failures(): number {
    return this.#connection.failures
  }

  /** By the clock of `performance`. Undefined without a connection; each connection has its own. */
  get connectedAtMs(): number | undefined {
    return connectedIn(this.#connection.phase)?.connectedAtMs
  }

  /** As the server knows it; undefined before the first connection. */
  get deviceId(): string | undefined {
    return this.#connection.deviceId
  }

  /**
   * Connects, and stays connected until `disconnect`. A pause before the next attempt ends at once. With `takeOver` it does
   * not wait for another tab, which has the state `elsewhere` then.
   */
  connect({ takeOver = false } = {}): void {
    this.#take({ on: 'connect', takeOver })
  }

  /** Resolves when the server has handled all earlier frames. Ends all watches. */
  async disconnect(): Promise<void> {
    await this.#command(command => ({ on: 'disconnect', command }))
  }

  /**
   * Subscribes to a topic. Resolves with the function that ends it when the server has it, which may take until the next
   * connection, and is subscribed again after each reconnection. Rejects with the server's refusal.
   */
  async watch(destination: string, listener: TopicListener): Promise<() => void> {
    const watch = await this.#command(command => {
      this.#topics.set(watchId(command), listener)
      return { on: 'watch', command, destination }
    })
    return () => this.#take({ on: 'unwatch', watch: watch! })
  }

  /**
   * Resolves when the server has carried it out, and has it on disk. Rejects with the server's refusal, with `BODY_TOO_LARGE`,
   * or with `OFFLINE`; then it may have been carried out.
   */
  async send(destination: string, body: unknown): Promise<void> {
    const text = JSON.stringify(body)
    await this.#command(command => ({ on: 'send', command, destination, body: text }))
  }

  #command(inputOf: (command: number) => Input): Promise<string | undefined> {
    return new Promise((resolve, reject) => {
      const command = ++this.#commandCount
      this.#commands.set(command, { resolve, reject })
      this.#take(inputOf(command))
    })
  }

  /** One input at a time, each with all its acts. */
  #take(input: Input, earliestMs = 0): void {
    this.#inputs.push(input)
    if (this.#isBusy) return
    this.#isBusy = true
    try {
      for (let next = this.#inputs.shift(); next !== undefined; next = this.#inputs.shift()) {
        // A timer may wake a little early.
        const nowMs = Math.max(Math.floor(performance.now()), earliestMs)
        const { connection, acts } = decide(
          this.#connection,
          next,
          nowMs,
          this.#deps.server.platform.random(),
        )
        this.#connection = connection
        for (const act of acts) this.#carryOut(act)
        this.#wakeInTime(nowMs)
      }
    } finally {
      this.#isBusy = false
    }
  }

  #carryOut(act: Act): void {
    const { server, session, listener } = this.#deps
    switch (act.do) {
      case 'lead':
        return this.#askLead(act)
      case 'release':
        return this.#lead?.abort()
      case 'token':
        return this.#answer(
          act.act,
          () => this.#ofSession(session.accessToken()),
          token => ({ token }),
        )
      case 'renew':
        return this.#answer(act.act, () => this.#ofSession(session.renew(act.token)))
      case 'register':
        return this.#answer(act.act, () => this.#ofSession(listener.onDeviceMissing()))
      case 'end session':
        return void session.end(errorIn(act.failure) as CallsignError)
      case 'hear time':
        return server.hearTime(act.serverMs)
      case 'open':
        return this.#open(act)
      case 'request':
        return this.#answer(
          act.act,
          () => this.#request(act),
          recovered => (recovered === undefined ? {} : { recovered }),
        )
      case 'tell':
        return this.#sockets.get(act.socket)?.tell(act.command, act.headers)
      case 'disconnect':
        return this.#answer(act.act, () => this.#sockets.get(act.socket)?.disconnect())
      case 'abandon':
        return this.#sockets.get(act.socket)?.abandon()
      case 'handle':
        return this.#answer(act.act, () => listener.onEvent(act.event))
      case 'topic':
        return this.#tellTopic(act)
      case 'settle':
        return this.#settle(act)
      case 'state':
        return this.#tellState(act)
      case 'ready':
        return listener.onConnected({ mayHaveMissed: act.mayHaveMissed })
      case 'trouble':
        return listener.onTrouble(errorIn(act.failure))
    }
  }

  /** An error that it throws at once is a failure like any other. */
  #answer<Value>(
    act: number,
    carryOut: () => Value | PromiseLike<Value>,
    outcomeOf: (value: Value) => Outcome = () => ({}),
  ): void {
    new Promise<Value>(resolve => resolve(carryOut())).then(
      value => this.#take({ on: 'done', act, ...outcomeOf(value) }),
      error => this.#take({ on: 'failed', act, failure: failureOf(error) }),
    )
  }

  /** Without a session no further attempt can succeed. */
  async #ofSession<Value>(asked: Promise<Value>): Promise<Value> {
    try {
      return await asked
    } catch (error) {
      if (this.#deps.session.userId === undefined) this.#take({ on: 'over' })
      throw error
    }
  }

  #askLead({ act, isTaken }: ActOf<'lead'>): void {
    const life = new AbortController()
    this.#lead = life
    const options = {
      isTaken,
      onWaiting: () => this.#take({ on: 'behind', lead: act }),
      onLost: () => this.#take({ on: 'lost', lead: act }),
    }
    this.#answer(act, () => leadTabs(this.#deps.tabLock!, life.signal, options))
  }

  #open({ socket, token }: ActOf<'open'>): void {
    const { server, heartBeatMs, answerWithinMs = ANSWER_WITHIN_MS } = this.#deps
    const isPage = 'document' in globalThis
    try {
      const opened = new StompSocket({
        webSocket: this.#webSocket,
        url: server.webSocketUrl,
        accessToken: token,
        language: server.language,
        heartBeatMs: heartBeatMs ?? [isPage ? PAGE_BEAT_MS : BEAT_MS, BEAT_MS],
        answerWithinMs,
        onConnected: headers => this.#onConnected(socket, headers),
        onMessage: frame => this.#onMessage(socket, frame),
      })
      this.#sockets.set(socket, opened)
      void opened.closed.then(close => this.#onClosed(socket, close))
    } catch (error) {
      // The platform takes no such address.
      const failure = failureOf(error)
      this.#take({ on: 'closed', socket, code: 1002, reason: '', retryAfterMs: 0, failure })
    }
  }

  #onConnected(socket: number, headers: StompFrame['headers']): void {
    const device = headers.get('device')
    const serverMs = Number(headers.get('server-time')) || 0
    this.#take({ on: 'connected', socket, serverMs, ...(device !== undefined && { device }) })
  }

  /** An error that it throws ends the connection. */
  #onMessage(socket: number, { headers, body }: StompFrame): void {
    const event: unknown = JSON.parse(body, withTextIds)
    const [subscription = '', ack] = [headers.get('subscription'), headers.get('ack')]
    this.#take({ on: 'message', socket, subscription, event, ...(ack !== undefined && { ack }) })
  }

  #onClosed(socket: number, { error, code, reason, retryAfterMs }: StompClose): void {
    const failure = error && { failure: error }
    this.#take({ on: 'closed', socket, code, reason, retryAfterMs, ...failure })
    this.#sockets.delete(socket)
  }

  /** Resolves with the header `recovered` of the RECEIPT. */
  async #request({ socket, command, headers, body }: ActOf<'request'>): Promise<string | undefined> {
    const present = this.#sockets.get(socket)
    if (present === undefined) throw offline()
    return (await present.request(command, headers, body)).get('recovered')
  }

  #tellTopic({ watch, event }: ActOf<'topic'>): void {
    try {
      this.#topics.get(watch)?.(event as CallTopicEvent)
    } catch (error) {
      this.#deps.listener.onTrouble(error)
    }
  }

  #settle({ command, watch, error }: ActOf<'settle'>): void {
    const waiting = this.#commands.get(command)
    this.#commands.delete(command)
    if (error === undefined) return waiting?.resolve(watch)
    this.#topics.delete(watchId(command))
    waiting?.reject(errorIn(error))
  }

  #tellState({ state, failures }: ActOf<'state'>): void {
    const change = state === 'off' || state === 'elsewhere' ? 'removeEventListener' : 'addEventListener'
    globalThis[change]?.('online', this.#onOnline)
    this.#deps.listener.onState(state, failures)
  }

  readonly #onOnline = (): void => this.#take({ on: 'online' })

  #wakeInTime(nowMs: number): void {
    const atMs = nextDeadlineMs(this.#connection)
    if (atMs === this.#timer?.atMs) return
    this.#timer?.end.abort()
    this.#timer = undefined
    if (atMs === undefined) return
    const end = new AbortController()
    this.#timer = { atMs, end }
    void this.#deps.server.platform.wait(Math.max(0, atMs - nowMs), end.signal).then(() => {
      if (end.signal.aborted) return
      this.#timer = undefined
      this.#take({ on: 'time' }, atMs)
    })
  }
}

function watchId(command: number): string {
  return `watch-${command}`
}

/** Any other error, such as the app's own. `onTrouble` gets it unchanged. */
class Unforeseen implements Failure {
  readonly code = 'INTERNAL'
  readonly error: unknown

  constructor(error: unknown) {
    this.error = error
  }
}

function failureOf(error: unknown): Failure {
  return error instanceof CallsignError ? error : new Unforeseen(error)
}

function errorIn(failure: Failure): unknown {
  if (failure instanceof CallsignError) return failure
  if (failure instanceof Unforeseen) return failure.error
  return new CallsignError(failure.code, failure.message ?? failure.code)
}

const ANSWER_WITHIN_MS = 10_000
const BEAT_MS = 10_000
/** Browsers wake timers of a page in the background once a minute: so rare a beat still comes in time. */
const PAGE_BEAT_MS = 40_000
