/**
 * A session with a Janus gateway over WebSocket (janus.conf.meetecho.com/docs/rest): handles of its VideoRoom, requests and
 * events. A lost socket is replaced, and the session claimed again, while its media goes on.
 */

import { fullJitterMs } from '../../back-off.ts'
import { CallsignError } from '../callsign-error.ts'

export type Jsep = RTCSessionDescriptionInit & { readonly e2ee?: boolean }

/** Members of the VideoRoom's answers and events, as its documentation names them. */
export interface VideoRoomData {
  readonly videoroom?: string
  readonly error_code?: number
  readonly error?: string
  readonly id?: number | string
  readonly private_id?: number
  readonly participants?: readonly { readonly id: number | string; readonly publisher: boolean }[]
  readonly publishers?: readonly PublisherData[]
  readonly streams?: readonly SubscribedStream[]
  readonly mid?: string
  readonly substream?: number
  readonly leaving?: number | string
  readonly unpublished?: number | string
  readonly kicked?: number | string
  readonly reason?: string
}

export interface PublisherData {
  readonly id: number
  readonly display?: string
  readonly streams?: readonly PublishedStream[]
}

export interface PublishedStream {
  readonly mid: string
  readonly type: string
  readonly codec?: string
  readonly description?: string
}

export interface SubscribedStream {
  readonly mid: string
  readonly type: string
  readonly active?: boolean
  readonly feed_id?: number
  readonly feed_mid?: string
}

export interface HandleEvent {
  readonly data: VideoRoomData
  readonly jsep: Jsep | undefined
}

interface Message {
  readonly janus: string
  readonly transaction?: string
  readonly sender?: number
  readonly data?: { readonly id: number }
  readonly error?: { readonly code: number; readonly reason: string }
  readonly plugindata?: { readonly data?: VideoRoomData }
  readonly jsep?: Jsep
}

interface Waiting {
  /** The answer comes as an event, after an `ack`. */
  readonly isAsync: boolean
  readonly resolve: (message: Message) => void
  readonly reject: (error: CallsignError) => void
}

export class JanusSession {
  readonly #url: string
  readonly #onSocket: (state: 'lost' | 'back') => void
  readonly #onLost: () => void
  #pluginToken: string
  readonly #waiting = new Map<string, Waiting>()
  readonly #handles = new Map<number, JanusHandle>()
  #socket: WebSocket | undefined
  #id: number | undefined
  #transactions = 0
  #keepalive: ReturnType<typeof setInterval> | undefined
  #isClaiming = false
  #isOver = false

  /**
   * The server has signed the token, which names the device. `onSocket` hears that the socket was lost, and is back:
   * media flows all the time. `onLost`: the session has ended on the gateway, or can't be claimed in time.
   */
  constructor(
    { url, pluginToken }: { readonly url: string; readonly pluginToken: string },
    onSocket: (state: 'lost' | 'back') => void,
    onLost: () => void,
  ) {
    this.#url = url
    this.#pluginToken = pluginToken
    this.#onSocket = onSocket
    this.#onLost = onLost
  }

  /** Every request has a token of its own: the gateway takes a newer one in a session that goes on. */
  renew(pluginToken: string): void {
    this.#pluginToken = pluginToken
  }

  async open(): Promise<void> {
    await this.#connect()
    const { data } = await this.#request({ janus: 'create' })
    this.#id = data?.id
    this.#keepalive = setInterval(() => this.#keepAlive(), KEEPALIVE_MS)
  }

  /**
   * Measures roughly how many kilobits per second the line carries: by how much longer a long answer takes than a short one. The
   * gateway sends a request's transaction back.
   */
  async lineKbits(): Promise<number> {
    const timeOf = async (length: number) => {
      const began = performance.now()
      await this.#request({ janus: 'keepalive' }, false, ' '.repeat(length))
      return performance.now() - began
    }
    let [kbits, before] = [0, 0]
    let shortMs = Number.POSITIVE_INFINITY
    for (const length of LONG) {
      // One that had to wait would make the line look wide.
      shortMs = Math.min(shortMs, await timeOf(0))
      const told = (length * 8) / Math.max(1, (await timeOf(length)) - shortMs)
      // The longest is sent twice: a busy device tells one of them wrongly.
      kbits = length === before ? Math.min(kbits, told) : told
      before = length
      // On a narrow line a longer answer would take the sound's place.
      if (kbits < NARROW_KBITS) break
    }
    return kbits
  }

  /** A handle of the VideoRoom. Its events come in order, answers to its messages among them. */
  async attach(opaqueId: string, onEvent: (event: HandleEvent) => void): Promise<JanusHandle> {
    const attach = { janus: 'attach', plugin: 'janus.plugin.videoroom', opaque_id: opaqueId }
    const { data } = await this.#request(attach)
    const id = data?.id ?? 0
    const request = (body: object, isAsync: boolean) => this.#request({ ...body, handle_id: id }, isAsync)
    const handle = new JanusHandle(request, onEvent)
    this.#handles.set(id, handle)
    return handle
  }

  /** Ends it on the gateway: else its ports would stay taken until it could not be claimed any more. */
  destroy(): void {
    if (this.#isOver) return
    this.#end()
    // One that is being opened tells its opener that it has ended.
    if (this.#socket?.readyState !== WebSocket.OPEN) return this.#socket?.close()
    this.#send({ janus: 'destroy' }, 'destroy')
    this.#closeQuietly()
  }

  async #connect(): Promise<void> {
    const socket = new WebSocket(this.#url, 'janus-protocol')
    this.#socket = socket
    socket.onmessage = ({ data }) => this.#onMessage(JSON.parse(data))
    const timer = setTimeout(() => socket.close(), ANSWER_MS)
    try {
      await new Promise<void>((resolve, reject) => {
        socket.onopen = () => resolve()
        socket.onclose = () => reject(unanswered())
      })
    } finally {
      clearTimeout(timer)
    }
    socket.onclose = () => this.#onClose()
  }

  /** Rejects with `MEDIA_REFUSED`, or `MEDIA_UNANSWERED` within ten seconds. */
  #request(body: object, isAsync = false, padding = ''): Promise<Message> {
    const transaction = ++this.#transactions + padding
    return new Promise<Message>((resolve, reject) => {
      if (this.#isOver || this.#socket?.readyState !== WebSocket.OPEN) return reject(unanswered())
      const timer = setTimeout(() => this.#take(transaction)?.reject(unanswered()), ANSWER_MS)
      const settle =
        <Value>(then: (value: Value) => void) =>
        (value: Value) => {
          clearTimeout(timer)
          then(value)
        }
      this.#waiting.set(transaction, { isAsync, resolve: settle(resolve), reject: settle(reject) })
      this.#send(body, transaction)
    })
  }

  #send(body: object, transaction: string): void {
    const session = this.#id === undefined ? {} : { session_id: this.#id }
    const message = { ...session, ...body, transaction, token: this.#pluginToken }
    this.#socket?.send(JSON.stringify(message))
  }

  #take(transaction: string | undefined): Waiting | undefined {
    if (transaction === undefined) return undefined
    const waiting = this.#waiting.get(transaction)
    this.#waiting.delete(transaction)
    return waiting
  }

  #onMessage(message: Message): void {
    const { janus, transaction, sender, plugindata, jsep, error } = message
    if (janus === 'timeout') return this.#lose()
    if (janus === 'ack' && this.#waiting.get(transaction ?? '')?.isAsync !== false) return
    const waiting = this.#take(transaction)
    if (error !== undefined) return waiting?.reject(refused(error.code, error.reason))
    if (sender !== undefined && plugindata?.data !== undefined) {
      this.#handles.get(sender)?.onEvent({ data: plugindata.data, jsep })
    }
    waiting?.resolve(message)
  }

  #keepAlive(): void {
    // An open socket that does not answer is as good as none.
    this.#request({ janus: 'keepalive' }).catch(() => this.#socket?.close())
  }

  #onClose(): void {
    for (const transaction of [...this.#waiting.keys()]) this.#take(transaction)?.reject(unanswered())
    if (this.#isOver || this.#isClaiming || this.#id === undefined) return
    this.#isClaiming = true
    this.#onSocket('lost')
    void this.#claim()
  }

  /** Until the gateway has given it up. */
  async #claim(): Promise<void> {
    const until = performance.now() + RECLAIM_MS
    for (let failures = 1; performance.now() < until; failures++) {
      try {
        await this.#connect()
        await this.#request({ janus: 'claim' })
        this.#isClaiming = false
        return this.#onSocket('back')
      } catch (error) {
        if (this.#isOver) return this.#socket?.close()
        if ((error as CallsignError).code === 'MEDIA_REFUSED') break
        this.#closeQuietly()
        await new Promise(resolve => setTimeout(resolve, fullJitterMs(BACK_OFF, failures, Math.random())))
        if (this.#isOver) return
      }
    }
    this.#lose()
  }

  #lose(): void {
    if (this.#isOver) return
    this.#end()
    this.#closeQuietly()
    this.#onLost()
  }

  #closeQuietly(): void {
    if (this.#socket === undefined) return
    // It may take the gateway seconds, in which the socket would keep all that these know.
    this.#socket.onclose = this.#socket.onmessage = null
    this.#socket.close()
  }

  #end(): void {
    this.#isOver = true
    clearInterval(this.#keepalive)
    for (const transaction of [...this.#waiting.keys()]) this.#take(transaction)?.reject(unanswered())
  }
}

type HandleRequest = (body: object, isAsync: boolean) => Promise<Message>

export class JanusHandle {
  readonly #request: HandleRequest
  readonly onEvent: (event: HandleEvent) => void

  constructor(request: HandleRequest, onEvent: (event: HandleEvent) => void) {
    this.#request = request
    this.onEvent = onEvent
  }

  /** Resolves with what the VideoRoom answers; rejects with `MEDIA_REFUSED`, whose `members.status` is its error code. */
  async message(body: object, jsep?: Jsep): Promise<HandleEvent> {
    const answer = await this.#request({ janus: 'message', body, ...(jsep && { jsep }) }, true)
    const data = answer.plugindata?.data ?? {}
    if (data.error_code !== undefined) throw refused(data.error_code, data.error ?? '')
    return { data, jsep: answer.jsep }
  }

  /** A candidate of this side, null behind the last one. */
  trickle(candidate: RTCIceCandidate | null): void {
    const given = candidate?.toJSON() ?? { completed: true }
    // A candidate too few is what ICE lives with.
    this.#request({ janus: 'trickle', candidate: given }, false).catch(() => {})
  }
}

function refused(code: number, reason: string): CallsignError {
  return new CallsignError('MEDIA_REFUSED', `The media gateway refuses: ${reason}`, {
    members: { status: code },
  })
}

function unanswered(): CallsignError {
  return new CallsignError('MEDIA_UNANSWERED', 'The media gateway did not answer.')
}

/** Octets. A token bucket lets the first through at once, so that the second one tells. */
const LONG = [1_000, 2_000, 4_000, 4_000]
const NARROW_KBITS = 200
const ANSWER_MS = 10_000
const KEEPALIVE_MS = 30_000
/** As long as deploy/janus has the gateway wait. */
const RECLAIM_MS = 15_000
const BACK_OFF = { firstMs: 250, maxMs: 2_000 }
