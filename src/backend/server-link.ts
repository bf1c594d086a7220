/** Requests to the server API: their refusals as errors, repeated while the server is busy or does not answer. */

import { CallsignServerError } from './callsign-server-error.ts'
import type { Operations } from './wire.ts'

export interface ServerAccess {
  /** Where the server API is, such as `http://127.0.0.1:9070`. */
  readonly url: string
  /** A server key, `csk_...`, or a session of the operators' page. */
  readonly key: string
  /** Milliseconds until a request is given up, each time it is sent; 10,000 if left out. A streamed answer has ten times as long. */
  readonly timeoutMs?: number
  /** In place of the global one, such as for a proxy. */
  readonly fetch?: typeof fetch
}

export type OperationName = keyof Operations

/** Parameters of the path and the query. */
export type Params = Readonly<Record<string, string | number | boolean | undefined>>

interface Sent {
  readonly params?: Params
  readonly body?: object
}

interface Request {
  readonly url: URL
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

export class ServerLink {
  readonly #options: ServerAccess
  readonly #fetch: typeof fetch

  constructor(options: ServerAccess) {
    if (!URL.canParse(options.url)) throw new TypeError('url is not an address')
    if (!/^(?:csk_[0-9a-f]{12}|cos_[0-9a-f]{12}_[0-9]{1,12})_[0-9a-f]{64}$/.test(options.key))
      throw new TypeError('key is not a server key')
    this.#options = options
    this.#fetch = options.fetch ?? fetch
  }

  /** The reply of an operation, which is repeated where no answer comes: all of them may be. Rejects with `CallsignServerError`. */
  async ask<Name extends OperationName>(name: Name, sent: Sent = {}): Promise<Operations[Name]['reply']> {
    const answer = await this.#answered(this.#requestOf(name, sent))
    if (answer.status === 204) return undefined as Operations[Name]['reply']
    return (await bodyOf(answer)) as Operations[Name]['reply']
  }

  /** The lines of an answer of NDJSON, each as soon as it comes. */
  async *lines(
    name: string,
    sent: { readonly params?: Params; readonly body?: Uint8Array },
  ): AsyncGenerator<unknown> {
    const request = this.#requestOf(name, { ...(sent.params && { params: sent.params }) })
    const headers = { ...request.headers, ...(sent.body && { 'content-type': 'application/x-ndjson' }) }
    const answer = await this.#send(
      { ...request, headers, ...(sent.body && { body: sent.body }) },
      STREAM_FACTOR,
    )
    if (!answer.ok) throw await refusalOf(answer)
    const decoder = new TextDecoder()
    let text = ''
    for await (const part of partsOf(answer)) {
      text += decoder.decode(part, { stream: true })
      const whole = text.split('\n')
      text = whole.pop()!
      for (const line of whole) if (line !== '') yield parsed(line)
    }
    // A line without its end was cut off.
    if (text !== '')
      throw new CallsignServerError('NO_ANSWER', 'the answer broke off in the middle of a line')
  }

  /** An answer's body as it comes. */
  async stream(name: string, params: Params): Promise<ReadableStream<Uint8Array>> {
    const answer = await this.#send(this.#requestOf(name, { params }), STREAM_FACTOR)
    if (!answer.ok) throw await refusalOf(answer)
    if (answer.body === null) throw invalid(answer)
    return answer.body
  }

  async #answered(request: Request): Promise<Response> {
    for (let tries = 1; ; tries++) {
      const answer = await this.#send(request).catch((error: unknown) => {
        if (tries < TRIES_MAX) return undefined
        throw error
      })
      if (answer?.ok) return answer
      const refusal = answer && (await refusalOf(answer))
      const isBusy = answer === undefined || answer.status === 429 || answer.status === 503
      if (refusal !== undefined && (!isBusy || tries >= TRIES_MAX)) throw refusal
      const askedMs = Number(refusal?.members.retryIn ?? 0) * 1_000
      await pause(Math.min(Math.max(askedMs, tries * PAUSE_MS), PAUSE_MS_MAX))
    }
  }

  async #send(request: Request, factor = 1): Promise<Response> {
    const { url, method, headers, body } = request
    const signal = AbortSignal.timeout((this.#options.timeoutMs ?? TIMEOUT_MS) * factor)
    try {
      return await this.#fetch(url, {
        method,
        headers,
        signal,
        redirect: 'error',
        ...(body !== undefined && { body: body as string | Uint8Array<ArrayBuffer> }),
      })
    } catch (cause) {
      throw new CallsignServerError('NO_ANSWER', `no server answered at ${url.origin}`, { cause })
    }
  }

  /** `name` is a method and a path behind `/server/api/v1/`, whose `{name}` segments `params` fill. */
  #requestOf(name: string, { params = {}, body }: Sent): Request {
    const [method = '', pattern = ''] = name.split(' ')
    const rest = new Map(Object.entries(params))
    const path = pattern.replaceAll(/\{(\w+)\}/g, (_, param: string) => {
      const value = rest.get(param)
      rest.delete(param)
      return encodeURIComponent(String(value))
    })
    const url = new URL(`/server/api/v1/${path}`, this.#options.url)
    for (const [param, value] of rest) if (value !== undefined) url.searchParams.set(param, String(value))
    // A plus sign in a query is a plus sign to the server.
    url.search = url.search.replaceAll('+', '%20')
    return {
      url,
      method,
      headers: {
        authorization: `Bearer ${this.#options.key}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }
  }
}

async function refusalOf(answer: Response): Promise<CallsignServerError> {
  const body: unknown = await answer.json().catch(() => undefined)
  const members = (typeof body === 'object' && body !== null ? body : {}) as Readonly<Record<string, unknown>>
  const { code, detail } = members
  if (typeof code !== 'string' || typeof detail !== 'string') return invalid(answer)
  return new CallsignServerError(code, detail, { status: answer.status, members })
}

async function bodyOf(answer: Response): Promise<unknown> {
  const text = await answer.text().catch((cause: unknown) => {
    throw new CallsignServerError('NO_ANSWER', 'the answer broke off', { cause })
  })
  try {
    return JSON.parse(text)
  } catch {
    throw invalid(answer)
  }
}

async function* partsOf({ body }: Response): AsyncGenerator<Uint8Array> {
  if (body === null) return
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((cause: unknown) => {
        throw new CallsignServerError('NO_ANSWER', 'the answer broke off', { cause })
      })
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    throw new CallsignServerError('ANSWER_INVALID', 'a line of the answer is not JSON')
  }
}

function invalid({ status }: Response): CallsignServerError {
  return new CallsignServerError('ANSWER_INVALID', `the server answered ${status}, and not in its form`, {
    status,
  })
}

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}

const TIMEOUT_MS = 10_000
const STREAM_FACTOR = 10
const TRIES_MAX = 4
const PAUSE_MS = 250
const PAUSE_MS_MAX = 10_000
