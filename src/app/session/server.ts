/**
 * Requests to the server: their problems as errors, repeated when the server is busy or does not answer, and the time by
 * the server's clock.
 */

import { fullJitterMs } from '../../back-off.ts'
import { CallsignError, errorOf } from '../callsign-error.ts'
import { spoken } from '../sentences.ts'
import { ID_MEMBERS, REPLY_FORMS } from '../wire.ts'
import {
  type Addressed,
  type AddressedRequest,
  addressed,
  type BodyOf,
  type OperationName,
  type ReplyOf,
} from './operations.ts'
import { hasForm } from './reply-form.ts'

/** Clock, randomness and waiting of the platform. */
export interface Platform {
  readonly nowMs: () => number
  /** From 0 up to 1. */
  readonly random: () => number
  /** Resolves early when the signal is aborted. */
  readonly wait: (ms: number, signal?: AbortSignal) => Promise<void>
}

export interface ServerOptions {
  /** Such as `https://call.example.org`. */
  readonly url: string
  readonly fetch?: typeof fetch
  readonly platform?: Platform
  /** `X-Client-Version`, such as `ios/1.4.2 (214)`. */
  readonly clientVersion?: string
  readonly answerWithinMs?: number
  /** The language of the server's letters and of `sentence` in errors, such as `vi-VN`; left out: the browser's. */
  readonly language?: string
}

export class Server {
  /** Without a slash at its end. */
  readonly url: string
  /** For `Accept-Language`; empty where it is not known. */
  readonly language: string
  readonly #fetch: typeof fetch
  readonly #headers: Readonly<Record<string, string>>
  readonly #answerWithinMs: number
  readonly platform: Platform
  /** How much the server's clock is ahead of this one. */
  #aheadMs = 0
  #isTimeKnown = false

  constructor(options: ServerOptions) {
    const { clientVersion, answerWithinMs = ANSWER_WITHIN_MS, platform = PLATFORM } = options
    this.url = options.url.replace(/\/+$/, '')
    this.#fetch = options.fetch ?? ((url, init) => fetch(url, init))
    this.language = options.language ?? globalThis.navigator?.language ?? ''
    spoken.language = this.language
    this.#headers = {
      ...(clientVersion !== undefined && { 'x-client-version': clientVersion }),
      ...(this.language !== '' && { 'accept-language': this.language }),
    }
    this.#answerWithinMs = answerWithinMs
    this.platform = platform
  }

  /** Where the server takes STOMP. */
  get webSocketUrl(): string {
    return `${this.url.replace(/^http/, 'ws')}/ws`
  }

  /** The time by the server's clock, which the times in its answers are of. */
  nowMs(): number {
    return this.platform.nowMs() + this.#aheadMs
  }

  /** Whether the server has named its time yet. */
  get isTimeKnown(): boolean {
    return this.#isTimeKnown
  }

  /** Takes a time that the server has just named, such as `server-time` of a STOMP connection. */
  hearTime(serverMs: number, toleranceMs = 0): void {
    this.#isTimeKnown = true
    if (Math.abs(serverMs - this.nowMs()) > toleranceMs) this.#aheadMs = serverMs - this.platform.nowMs()
  }

  /**
   * Rejects with the server's refusal, or with `NO_ANSWER` or `ANSWER_INVALID`. All attempts of a POST have one
   * `Idempotency-Key`, which is among the headers where the caller repeats it too.
   */
  async request<Name extends OperationName>(
    operation: Name,
    body: BodyOf<Name>,
    ...[params, headers]: Addressed<Name>
  ): Promise<ReplyOf<Name>> {
    const request = addressed(operation, params)
    const key = request.method === 'POST' ? { 'idempotency-key': globalThis.crypto.randomUUID() } : {}
    for (let attempt = 0; ; attempt++) {
      const outcome = await this.#attempt(request, body, { ...key, ...headers }, REPLY_FORMS[operation])
      if (outcome.kind === 'reply') return outcome.value as ReplyOf<Name>
      const waitMs = this.#waitMs(outcome, attempt, request.isRepeatable)
      if (waitMs === undefined) throw outcome.error
      await this.platform.wait(waitMs)
    }
  }

  /** How long to wait before the next attempt; undefined for none. */
  #waitMs({ error, retryAfterS }: Failure, attempt: number, canRepeatLost: boolean): number | undefined {
    if (attempt + 1 >= ATTEMPTS_MAX || error.code === 'OTP_COOLDOWN') return undefined
    const { status } = error
    const isBusy = status === 429 || status === 503
    const isLost = error.code === 'NO_ANSWER' || status === 502 || status === 504
    if (!isBusy && !(isLost && canRepeatLost)) return undefined
    const random = this.platform.random()
    if (retryAfterS === undefined) return fullJitterMs(BACK_OFF, attempt + 1, random)
    return retryAfterS > RETRY_AFTER_MAX_S ? undefined : 1000 * (retryAfterS + random)
  }

  async #attempt(
    { method, path }: AddressedRequest,
    body: unknown,
    headers: Readonly<Record<string, string>>,
    form: unknown = 'none',
  ): Promise<Outcome> {
    const abort = new AbortController()
    const timer = setTimeout(() => abort.abort(), this.#answerWithinMs)
    try {
      const answer = await this.#fetch(`${this.url}${path}`, {
        method,
        headers: {
          ...this.#headers,
          ...headers,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        // Codes and tokens are for this server alone.
        redirect: 'manual',
        signal: abort.signal,
      })
      return this.#outcomeOf(answer, await textOf(answer), form)
    } catch (cause) {
      if (cause instanceof CallsignError) return failure(cause)
      return failure(new CallsignError('NO_ANSWER', unanswered(this.url), { cause }))
    } finally {
      clearTimeout(timer)
    }
  }

  #outcomeOf({ ok, status, headers }: Response, text: string, form: unknown): Outcome {
    const date = Date.parse(headers.get('date') ?? '')
    if (!Number.isNaN(date)) this.hearTime(date, DATE_TOLERANCE_MS)
    const value = parseJson(text)
    if (ok && hasForm(value, form)) return { kind: 'reply', value }
    // A browser shows a redirect as status 0.
    if (ok || status < 400) return failure(answerInvalid(status))
    const sentence = `The server answered with status ${status}.`
    const error = errorOf(value, `HTTP_${status}`, sentence, status)
    return failure(error, headers.get('retry-after'))
  }
}

/** The text of an answer. React Native's answers can't be read piece by piece. */
async function textOf(answer: Response): Promise<string> {
  const reader = typeof TextDecoder === 'undefined' ? undefined : answer.body?.getReader?.()
  if (reader === undefined) return answer.text()
  const decoder = new TextDecoder()
  let text = ''
  for (let read = await reader.read(); read.value !== undefined; read = await reader.read()) {
    text += decoder.decode(read.value, { stream: true })
    if (text.length <= ANSWER_CHARS_MAX) continue
    await reader.cancel()
    throw answerInvalid(answer.status)
  }
  return text + decoder.decode()
}

/** A browser does not tell a page why it may not read an answer. */
function unanswered(url: string): string {
  const { origin } = globalThis.location ?? {}
  const isOther = origin !== undefined && !`${url}/`.startsWith(`${origin}/`)
  return `The server does not answer${isOther ? `, or its CALLSIGN_CORS_ORIGINS lacks ${origin}` : ''}.`
}

function answerInvalid(status: number): CallsignError {
  const sentence = 'The server answered with something else than its interface says.'
  return new CallsignError('ANSWER_INVALID', sentence, { status })
}

interface Failure {
  readonly kind: 'failure'
  readonly error: CallsignError
  readonly retryAfterS?: number
}

type Outcome = Failure | { readonly kind: 'reply'; readonly value: unknown }

function failure(error: CallsignError, retryAfter: string | null = null): Failure {
  const isSeconds = retryAfter !== null && /^\d+$/.test(retryAfter)
  return { kind: 'failure', error, ...(isSeconds && { retryAfterS: Number(retryAfter) }) }
}

function parseJson(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text, withTextIds)
  } catch {
    return INVALID
  }
}

/** A reviver of JSON: some operators' servers send ids as numbers. */
export function withTextIds(name: string, value: unknown): unknown {
  if (!ID_MEMBERS.has(name)) return value
  return Array.isArray(value) ? value.map(textId) : textId(value)
}

function textId(id: unknown): unknown {
  return typeof id === 'number' ? String(id) : id
}

const PLATFORM: Platform = {
  nowMs: () => Date.now(),
  random: () => Math.random(),
  wait: (ms, signal) =>
    new Promise(resolve => {
      const timer = setTimeout(resolve, ms)
      signal?.addEventListener('abort', () => {
        clearTimeout(timer)
        resolve()
      })
    }),
}

/** Stands for a text that is not JSON. */
const INVALID = Symbol('invalid')
/** The longest replies, with the keys of many devices, have some hundred thousand. */
const ANSWER_CHARS_MAX = 8 * 1024 * 1024
const ATTEMPTS_MAX = 6
const ANSWER_WITHIN_MS = 15_000
/** Without `Retry-After`. */
const BACK_OFF = { firstMs: 500, maxMs: 10_000 }
/** An app says so to its user rather than wait longer. */
const RETRY_AFTER_MAX_S = 20
/** `Date` counts whole seconds, and the answer has been on its way. */
const DATE_TOLERANCE_MS = 5_000
