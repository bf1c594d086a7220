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
  readonly collapseId?: string
  /** A UUID. A push that is tried twice has it twice. */
  readonly id: string
  /** Sent as its JSON and nothing more. */
  readonly payload: Readonly<Record<string, unknown>>
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

/** One provider of the library: one signed token, and one session after another. */
export class ApnsLink {
  readonly signedAtMs: number
  /** Not used for new pushes from then on. */
  retiresAtMs: number
  /** Nothing is sent before that: Apple has refused the token, and it is too young to be replaced. */
  restUntilMs = 0
  readonly #youngUntilMs: number
  readonly #provider: apn.Provider
  readonly #sockets = new Set<TLSSocket>()
  #newest: TLSSocket | undefined
  #socketsOpened = 0

  constructor(
    peer: { readonly host: string; readonly port: number; readonly ca?: string },
    token: apn.ProviderToken,
    nowMs: number,
  ) {
    this.signedAtMs = nowMs
    this.#youngUntilMs = nowMs + TOKEN_MS_MIN
    this.retiresAtMs = nowMs + TOKEN_MS_MAX
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
  }

  /**
   * Sends `body`, the push's payload as JSON. Resolves with the answer, or with the failure, which has then ended the
   * session.
   */
  async post(push: ApnsPush, body: string, deadlineMs: number): Promise<LinkAnswer> {
    const isOpen = this.#newest !== undefined && !this.#newest.destroyed
    const ordinal = isOpen ? this.#socketsOpened : this.#socketsOpened + 1
    const answer = await withinDeadline(
      this.#provider.send(new ExactNotification(push, body), push.token),
      deadlineMs,
    )
    // Many pushes fail with one session. Those that come late must not end the one that replaced it.
    if (answer.kind === 'failed' && ordinal === this.#socketsOpened) await this.#endSession()
    return answer
  }

  /** Apple takes the token no longer: the next link has another, as soon as the rules allow one. */
  retireToken(): void {
    this.retiresAtMs = Math.min(this.retiresAtMs, this.#youngUntilMs)
    this.restUntilMs = this.#youngUntilMs
  }

  /** The library lets the session go when its last answer has come. */
  closeWhenIdle(): void {
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
  return {
    kind: 'answered',
    status,
    reason: reasonWord(response?.reason ?? error?.message, `http-${status}`),
    ...(Number.isSafeInteger(sinceMs) ? { sinceMs } : {}),
  }
}

/** Apple: a provider token is good for an hour, and is to be replaced no more often than every 20 minutes. */
const TOKEN_MS_MAX = 50 * 60_000
const TOKEN_MS_MIN = 20 * 60_000
