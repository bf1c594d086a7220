/**
 * A session with Apple's push service, on one provider of node-apn: importing it loads the library, which only a
 * server that pushes needs. `apns.ts` says why the library does not manage sessions itself.
 */

import { once } from 'node:events'
import type { SecureClientSessionOptions } from 'node:http2'
import { isIP } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import apn from '@parse/node-apn'
import { type ApnsEnvironment, reasonWord } from './outcome.ts'
import type { PushSealing } from './sealed-push.ts'
import { Silence } from './silence.ts'

export interface ApnsPush {
  /** Hexadecimal. */
  readonly token: string
  /** The one to try first. */
  readonly environment: ApnsEnvironment
  readonly topic: string
  readonly pushType: 'alert' | 'background' | 'voip'
  readonly priority: 5 | 10
  /** Milliseconds since 1970; Apple keeps the push until then for a device that is away. */
  readonly expiresAtMs: number
  /** At most 64 bytes. */
  readonly collapseId?: string | undefined
  /** A UUID. A push that is tried twice has it twice. */
  readonly id: string
  /** A call's push is given up soon, and not tried again here after silence: its sender has done that by then. */
  readonly isUrgent?: boolean
  /** Sent as its JSON and nothing more, unless it is sealed or too large. */
  readonly payload: Readonly<Record<string, unknown>>
  /** The payload's members are sealed for this device, and so is the id of the call. */
  readonly sealing?: PushSealing | undefined
}

export type LinkAnswer =
  | {
      readonly kind: 'answered'
      readonly status: number
      /** Empty for 200. */
      readonly reason: string
      readonly sinceMs?: number
    }
  | { readonly kind: 'failed'; readonly reason: 'timeout' | 'network' }

/** A signed provider token, as the library keeps it in a provider. */
interface SignedToken {
  regenerate(): void
  isExpired(): boolean
}

/** One provider of the library: one signed token, and one session after another. */
export class ApnsLink {
  readonly signedAtMs: number
  readonly #silence = new Silence()
  readonly #token: SignedToken
  readonly #provider: apn.Provider
  readonly #sockets = new Set<TLSSocket>()
  #newest: TLSSocket | undefined
  #socketsOpened = 0

  /** With the token of `older`, or else a new one, signed at `nowMs`. */
  constructor(
    peer: { readonly host: string; readonly port: number; readonly ca?: string },
    token: apn.ProviderToken,
    nowMs: number,
    older?: ApnsLink,
  ) {
    this.signedAtMs = older?.signedAtMs ?? nowMs
    // The library hands all of its options to `http2.connect`.
    const options: apn.ProviderOptions & Pick<SecureClientSessionOptions, 'createConnection'> = {
      token,
      address: peer.host,
      port: peer.port,
      // Its repeats use the same session and ignore `Retry-After`.
      connectionRetryLimit: 0,
      // Ours come first; this one only clears away what they gave up.
      requestTimeout: 60_000,
      createConnection: () => this.#open(peer),
    }
    this.#provider = new apn.Provider(options)
    const { config } = (this.#provider as unknown as { client: { config: { token: SignedToken } } }).client
    if (older !== undefined) config.token = older.#token
    this.#token = config.token
    // The library would sign another after each refusal; when to do that is decided elsewhere.
    Object.assign(this.#token, { regenerate: () => undefined, isExpired: () => false })
  }

  get isIdle(): boolean {
    return this.#silence.isIdle
  }

  /** Pushes wait for their answers, and for almost a second none has come. */
  get isSilent(): boolean {
    return this.#silence.isLong
  }

  hasTokenOf(other: ApnsLink): boolean {
    return this.#token === other.#token
  }

  /**
   * Sends `body`, the push's payload as JSON. Resolves with the answer, or with the failure, which has then ended the
   * session.
   */
  async post(push: ApnsPush, body: string, deadlineMs: number): Promise<LinkAnswer> {
    const isOpen = this.#newest !== undefined && !this.#newest.destroyed
    const ordinal = isOpen ? this.#socketsOpened : this.#socketsOpened + 1
    this.#silence.begin()
    const answer = await withinDeadline(
      this.#provider.send(new ExactNotification(push, body), push.token),
      deadlineMs,
    )
    this.#silence.end(answer.kind === 'answered')
    // Many pushes fail with one session. Those that come late must not end the one that replaced it.
    if (answer.kind === 'failed' && ordinal === this.#socketsOpened) await this.#endSession()
    return answer
  }

  /** Ends the session in peace. Not while an answer is to come: Apple's own goodbye has the library break it off. */
  closeIdle(): void {
    this.#provider.shutdown()
  }

  close(): void {
    this.#provider.shutdown()
    for (const socket of this.#sockets) socket.destroy()
  }

  #open(peer: { readonly host: string; readonly port: number; readonly ca?: string }): TLSSocket {
    const socket = connect({
      ...peer,
      ALPNProtocols: ['h2'],
      ...(isIP(peer.host) === 0 ? { servername: peer.host } : {}),
    })
    socket.once('close', () => this.#sockets.delete(socket))
    this.#sockets.add(socket)
    this.#newest = socket
    this.#socketsOpened++
    return socket
  }

  /** Resolves when the library has seen the end too: it would use the session again before. */
  async #endSession(): Promise<void> {
    const socket = this.#newest
    if (socket === undefined || socket.closed) return
    const closed = once(socket, 'close')
    socket.destroy()
    await closed
  }
}

/** A notification with exactly the given headers and body; the library's own class adds to both. */
class ExactNotification extends apn.Notification {
  readonly #push: ApnsPush
  readonly #body: string

  constructor(push: ApnsPush, body: string) {
    super()
    this.#push = push
    this.#body = body
  }

  headers(): Record<string, string | number> {
    const { topic, pushType, priority, expiresAtMs, collapseId, id } = this.#push
    return {
      'apns-topic': topic,
      'apns-push-type': pushType,
      'apns-priority': priority,
      'apns-expiration': Math.floor(expiresAtMs / 1000),
      'apns-id': id,
      ...(collapseId === undefined ? {} : { 'apns-collapse-id': collapseId }),
    }
  }

  compile(): string {
    return this.#body
  }
}

type Sending = Promise<apn.Responses<apn.ResponseSent, apn.ResponseFailure>>

async function withinDeadline(sending: Sending, deadlineMs: number): Promise<LinkAnswer> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<LinkAnswer>(resolve => {
    timer = setTimeout(() => resolve({ kind: 'failed', reason: 'timeout' }), deadlineMs)
  })
  try {
    return await Promise.race([sending.then(answerOf), timeout])
  } finally {
    clearTimeout(timer)
  }
}

/** The library reports everything but a 200 as failed; without a status, no answer came. */
function answerOf({ failed: [failure] }: Awaited<Sending>): LinkAnswer {
  if (failure === undefined) return { kind: 'answered', status: 200, reason: '' }
  const { status, response, error } = failure
  if (typeof status !== 'number') return { kind: 'failed', reason: 'network' }
  const sinceMs = Number(response?.timestamp)
  // Here the library replaces Apple's reason by words of its own.
  const usual = status === 500 ? 'InternalServerError' : `http-${status}`
  return {
    kind: 'answered',
    status,
    reason: reasonWord(response?.reason ?? error?.message, usual),
    ...(Number.isSafeInteger(sinceMs) ? { sinceMs } : {}),
  }
}
