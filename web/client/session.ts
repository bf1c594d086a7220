/**
 * The HTTP API as one person in one tab: tokens in the tab's own storage, renewed in time, and refusals as sentences.
 */

import { setServerClock } from './server-clock.ts'
import type { User } from './state.ts'
import { mayKeep } from './tabs.ts'

/** A refusal of the server (RFC 9457) in words for people. */
export class Problem extends Error {
  readonly code: string
  /** The members of the problem document. */
  readonly members: Readonly<Record<string, unknown>>

  constructor(code: string, sentence: string, members: Readonly<Record<string, unknown>> = {}) {
    super(sentence)
    this.code = code
    this.members = members
  }
}

interface Tokens {
  readonly accessToken: string
  readonly refreshToken: string
  readonly expiresAtMs: number
  readonly renewAtMs: number
  readonly challenge: string
}

interface TokenReply {
  readonly accessToken: string
  readonly refreshToken: string
  readonly expiresIn: number
  /** Signed by the device's signing key, to show that it has it. */
  readonly challenge: string
}

export interface SignedIn extends TokenReply {
  readonly user: User
  readonly isNewUser: boolean
}

export class Session {
  #tokens: Tokens | undefined = readTokens()
  #renewal: Promise<void> | undefined
  /** Called once when the server says that the session has ended. */
  onOver: (sentence: string) => void = () => {}

  get isSignedIn(): boolean {
    return this.#tokens !== undefined
  }

  get challenge(): string {
    return this.#tokens?.challenge ?? ''
  }

  /** Uses the tokens of a reply from now on. They are written down before anything is done with them. */
  take({ accessToken, refreshToken, expiresIn, challenge }: TokenReply): void {
    const expiresAtMs = Date.now() + expiresIn * 1000
    const renewAtMs = expiresAtMs - (expiresIn * 1000) / 5
    this.#tokens = { accessToken, refreshToken, expiresAtMs, renewAtMs, challenge }
    sessionStorage.setItem(TOKENS, JSON.stringify(this.#tokens))
  }

  /** Forgets the tokens of this tab. */
  drop(): void {
    this.#tokens = undefined
    sessionStorage.removeItem(TOKENS)
  }

  /** An access token that is good for a while, for the STOMP connection. */
  async freshToken(): Promise<string> {
    if (this.#tokens !== undefined && Date.now() > this.#tokens.renewAtMs) await this.renew()
    if (this.#tokens === undefined) throw new Problem('TOKEN_MISSING', 'You are signed out.')
    return this.#tokens.accessToken
  }

  /** Asks `GET /app/api/X` or the like, as `request('POST', 'login', {...})`; throws a `Problem`. */
  async request<Reply>(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Reply> {
    // A retry after a new token is the same request: it keeps its key.
    const sent = { ...headers, ...(method === 'POST' && { 'idempotency-key': crypto.randomUUID() }) }
    try {
      return await this.#send<Reply>(method, path, body, sent)
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      if (error.code === 'TOKEN_EXPIRED') {
        await this.renew()
        return this.#send<Reply>(method, path, body, sent)
      }
      if (SIGNED_OUT_CODES.has(error.code)) this.#end(error.message)
      throw error
    }
  }

  /** Renews the tokens, once for all who wait for it. */
  renew(): Promise<void> {
    this.#renewal ??= this.#renew().finally(() => {
      this.#renewal = undefined
    })
    return this.#renewal
  }

  async #renew(): Promise<void> {
    const refreshToken = this.#tokens?.refreshToken
    if (refreshToken === undefined) return
    try {
      this.take(await ask<TokenReply>('POST', 'refresh-token', { refreshToken }, {}))
    } catch (error) {
      if (error instanceof Problem && SIGNED_OUT_CODES.has(error.code)) this.#end(error.message)
      throw error
    }
  }

  async #send<Reply>(
    method: string,
    path: string,
    body: unknown,
    headers: Readonly<Record<string, string>>,
  ): Promise<Reply> {
    if (this.#tokens === undefined) return ask(method, path, body, {})
    return ask(method, path, body, { ...headers, authorization: `Bearer ${await this.freshToken()}` })
  }

  #end(sentence: string): void {
    if (this.#tokens === undefined) return
    this.drop()
    this.onOver(sentence)
  }
}

/** The error in words for people. */
export function sentenceOf(error: unknown): string {
  if (error instanceof Error) return error.message
  return String(error)
}

async function ask<Reply>(
  method: string,
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>>,
): Promise<Reply> {
  const url = path.startsWith('/') ? path : `/app/api/${path}`
  const init: RequestInit = { method, headers: { ...headers } }
  if (body !== undefined) {
    init.headers = { ...headers, 'content-type': 'application/json' }
    init.body = JSON.stringify(body)
  }
  const answer = await fetch(url, init).catch(() => {
    throw new Problem('NO_ANSWER', 'The server does not answer. Is it still running?')
  })
  setServerClock(answer.headers.get('date'))
  const text = await answer.text()
  const value = parsed(text)
  if (answer.ok) return value as Reply
  throw problemOf(answer.status, value)
}

function parsed(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

function problemOf(status: number, value: unknown): Problem {
  const members = (value ?? {}) as Record<string, unknown>
  const { code = `HTTP_${status}`, title, detail, retryIn, attemptsLeft } = members
  const words = [
    title === undefined ? `The server answered with status ${status}.` : sentence(String(title)),
    ...(detail === undefined || detail === title ? [] : [sentence(String(detail))]),
    ...(typeof attemptsLeft === 'number' ? [`${attemptsLeft} more tries.`] : []),
    ...(typeof retryIn === 'number' ? [`Try again in ${retryIn} s.`] : []),
  ]
  return new Problem(String(code), words.join(' '), members)
}

function sentence(text: string): string {
  const capital = text.charAt(0).toUpperCase() + text.slice(1)
  return /[.!?]$/.test(capital) ? capital : `${capital}.`
}

function readTokens(): Tokens | undefined {
  if (!mayKeep()) return undefined
  const text = sessionStorage.getItem(TOKENS)
  return text === null ? undefined : (JSON.parse(text) as Tokens)
}

const TOKENS = 'callsign.tokens'
/** Codes of status 401 that `docs/app.md` calls signed out. */
const SIGNED_OUT_CODES = new Set([
  'TOKEN_MISSING',
  'TOKEN_INVALID',
  'SESSION_REVOKED',
  'REFRESH_TOKEN_INVALID',
  'REFRESH_TOKEN_REUSED',
])
