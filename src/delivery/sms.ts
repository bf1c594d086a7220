/**
 * SMS by whatever gateway takes one HTTP POST for one message: address, headers and the form of the body are
 * configuration. Its status alone says what became of the message; its body is dropped.
 */

import { postToOperator } from './operator-url.ts'
import type { DeliveryOutcome } from './outcome.ts'

export interface SmsOptions {
  /** A name and password in it are sent as basic authorization. */
  readonly url: string
  /** A `content-type` among them says how the body is escaped; `application/json` where there is none. */
  readonly headers?: Readonly<Record<string, string>>
  /** JSON or a form, with `{to}` and `{text}` where the number and the words belong. */
  readonly body?: string
  readonly timeoutMs?: number
}

export interface Sms {
  /** E.164. */
  readonly to: string
  readonly text: string
}

export class SmsSender {
  readonly #url: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #template: string
  readonly #escape: (text: string) => string
  readonly #timeoutMs: number

  /** Throws, with a sentence for the operator, when the settings can make no message. */
  constructor({ url, headers = {}, body = USUAL_BODY, timeoutMs = 10_000 }: SmsOptions) {
    const address = new URL(url)
    this.#headers = { ...lowerCased(headers), ...basicAuthorization(address) }
    this.#headers = { 'content-type': 'application/json', ...this.#headers }
    this.#escape = escapeFor(this.#headers['content-type']!)
    this.#url = withoutCredentials(address)
    this.#template = body
    this.#timeoutMs = timeoutMs
    this.#assertUsable()
  }

  /** Never rejects. After `retry` for a timeout the gateway may have sent it all the same. */
  async send(sms: Sms): Promise<DeliveryOutcome> {
    const answer = await postToOperator({
      url: this.#url,
      headers: this.#headers,
      body: this.#bodyOf(sms),
      timeoutMs: this.#timeoutMs,
      answerBytesMax: 0,
    })
    if (answer.kind === 'failed') return { kind: 'retry', reason: answer.reason }
    const { status, retryAfterMs } = answer
    if (status >= 200 && status < 300) return { kind: 'sent' }
    const reason = `http-${status}`
    if (status < 500 && !RETRIED.has(status)) return { kind: 'refused', reason }
    return { kind: 'retry', reason, ...(retryAfterMs === undefined ? {} : { afterMs: retryAfterMs }) }
  }

  #bodyOf(sms: Sms): string {
    // In one pass: the text itself is never taken for a placeholder.
    return this.#template.replace(PLACES, (_, place: keyof Sms) => this.#escape(sms[place]))
  }

  #assertUsable(): void {
    const places = new Set(this.#template.match(PLACES))
    if (places.size !== 2) throw new Error('the SMS body needs {to} and {text}')
    if (this.#escape === escapeForJson && !isJson(this.#bodyOf({ to: '+1', text: '"' }))) {
      throw new Error('the SMS body is not JSON: {to} and {text} belong inside its strings')
    }
    try {
      new Headers(this.#headers)
    } catch {
      throw new Error('a header of the SMS request is not one that HTTP can carry')
    }
  }
}

function escapeFor(contentType: string): (text: string) => string {
  if (/^application\/(.+\+)?json\b/i.test(contentType)) return escapeForJson
  if (/^application\/x-www-form-urlencoded\b/i.test(contentType)) return encodeURIComponent
  throw new Error('the SMS content type is application/json or application/x-www-form-urlencoded')
}

function escapeForJson(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

/** `fetch` refuses an address that holds them. */
function basicAuthorization({ username, password }: URL): { authorization?: string } {
  if (username === '' && password === '') return {}
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { authorization: `Basic ${Buffer.from(pair).toString('base64')}` }
}

function withoutCredentials(url: URL): string {
  const bare = new URL(url)
  bare.username = ''
  bare.password = ''
  return bare.href
}

const USUAL_BODY = '{"to":"{to}","text":"{text}"}'
const PLACES = /\{(to|text)\}/g
/** Our own credentials, and too many at once. */
const RETRIED: ReadonlySet<number> = new Set([401, 403, 429])
