/**
 * The HTTP API as one session uses it. A request that gets no answer is repeated until the server is back, as an app
 * does; its `Idempotency-Key` sees to it that nothing happens twice.
 */

import { randomUUID } from 'node:crypto'
import { withTextIds } from '../../src/app/server.ts'

/** The server said no. */
export class Refusal extends Error {
  readonly status: number
  readonly code: string

  constructor(request: string, status: number, code: string, detail: string) {
    super(status === 429 ? `${request}: ${RATES}` : `${request}: ${status} ${code}, ${detail}`)
    this.status = status
    this.code = code
  }
}

/** No answer within our patience, or we are going. */
export class NoAnswer extends Error {}

export interface Tokens {
  readonly accessToken: string
  readonly refreshToken: string
  /** Seconds. */
  readonly expiresIn: number
}

export interface ApiOptions {
  /** The address without a path, asked for at each attempt. */
  readonly url: () => string
  /** Requests are given up when it is aborted. */
  readonly stop: AbortSignal
  /** Between attempts. */
  readonly pauseMsMax?: number
}

export class Api {
  readonly #url: () => string
  readonly #stop: AbortSignal
  readonly #pauseMsMax: number
  #tokens: Tokens | undefined = undefined
  #refreshAtMs = 0
  #refreshing: Promise<void> | undefined = undefined

  constructor({ url, stop, pauseMsMax = PAUSE_MS_MAX }: ApiOptions) {
    this.#url = url
    this.#stop = stop
    this.#pauseMsMax = pauseMsMax
  }

  take(tokens: Tokens): void {
    this.#tokens = tokens
    this.#refreshAtMs = Date.now() + tokens.expiresIn * 800
  }

  /** A token that is good for a while yet. */
  async accessToken(): Promise<string> {
    if (this.#tokens === undefined) throw new Error('nobody has signed in')
    if (Date.now() > this.#refreshAtMs) await this.refresh()
    return this.#tokens.accessToken
  }

  /** One refresh at a time for all callers. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined
    })
    return this.#refreshing
  }

  /** `methodAndPath` such as `POST /app/api/call/end`. Throws `Refusal` and `NoAnswer`. */
  async send<Reply>(methodAndPath: string, body?: object): Promise<Reply> {
    const [method = '', path = ''] = methodAndPath.split(' ')
    const init = {
      method,
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(method === 'POST' ? { 'idempotency-key': randomUUID() } : {}),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }
    for (let isRepeated = false; ; isRepeated = true) {
      const answer = await this.#answerOf(path, init)
      const text = answer.text === '' ? '{}' : answer.text
      if (answer.status < 300) return JSON.parse(text, withTextIds) as Reply
      const problem = problemOf(text)
      if (problem.code !== 'TOKEN_EXPIRED' || isRepeated) {
        throw new Refusal(methodAndPath, answer.status, problem.code, problem.detail)
      }
      await this.refresh()
    }
  }

  async #refresh(): Promise<void> {
    const refreshToken = this.#tokens?.refreshToken
    this.take(await this.send<Tokens>('POST /app/api/refresh-token', { refreshToken }))
  }

  /** The first answer that is not `503`. */
  async #answerOf(path: string, init: RequestInit & { headers: Record<string, string> }) {
    const startMs = Date.now()
    for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(pauseMs * 2, this.#pauseMsMax)) {
      const isPatient = Date.now() - startMs < PATIENCE_MS
      try {
        const answer = await fetch(this.#url() + path, {
          ...init,
          headers: { ...init.headers, ...this.#authorization(path) },
          signal: AbortSignal.timeout(REQUEST_MS_MAX),
        })
        const text = await answer.text()
        if (answer.status !== 503 || !isPatient) return { status: answer.status, text }
      } catch (error) {
        if (!isPatient) throw new NoAnswer(`${path}: no answer, ${causeOf(error)}`)
      }
      if (this.#stop.aborted) throw new NoAnswer(`${path}: given up`)
      // Full jitter: phones that were refused together ask one by one.
      await new Promise(resolve => setTimeout(resolve, pauseMs * Math.random()))
    }
  }

  #authorization(path: string): Record<string, string> {
    if (this.#tokens === undefined || path.endsWith('/refresh-token')) return {}
    return { authorization: `Bearer ${this.#tokens.accessToken}` }
  }
}

/** An error's message with its causes: `fetch` alone says nothing. */
export function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { cause } = error
  if (!(cause instanceof Error)) return error.message
  return cause.message || String((cause as { code?: unknown }).code)
}

function problemOf(text: string): { readonly code: string; readonly detail: string } {
  try {
    const { code = 'UNKNOWN', detail = '' } = JSON.parse(text) as { code?: string; detail?: string }
    return { code, detail }
  } catch {
    return { code: 'UNKNOWN', detail: text.slice(0, 100) }
  }
}

const RATES = 'too many requests for the rates of the server; start it with CALLSIGN_RATE_LIMITS=off'
const REQUEST_MS_MAX = 30_000
/** A server that has not been back for so long is not coming back. */
const PATIENCE_MS = 120_000
const [PAUSE_MS_MIN, PAUSE_MS_MAX] = [100, 3_000]
