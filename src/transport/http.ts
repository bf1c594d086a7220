/**
 * HTTP over uWebSockets.js: routing, bodies, request ids, problem bodies. It holds no rule: what a route does, who is
 * admitted and which files the log shows are handed in.
 *
 * uWebSockets.js ends the process when a request is neither answered nor watched for abort on return, and throws when
 * `req` is used after it or `res` after an abort. `Exchange` is the only thing that touches either.
 */

import uWS from 'uWebSockets.js'
import { connect } from 'node:net'
import { nanoid } from 'nanoid'
import { type ErrorCode, SignalError } from '../errors.ts'
import { BODY_BYTES_MAX } from '../limits.ts'
import { endHead, type PublicFile, serveFile } from './log-files.ts'

export interface HttpRequest {
  readonly method: string
  readonly path: string
  readonly requestId: string
  readonly contentType: string
  /** Empty for a method without a body. To be read before the handler returns: its memory goes back then. */
  readonly body: Uint8Array
}

export interface HttpAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: string | Uint8Array
  readonly headers?: readonly (readonly [string, string])[]
}

export interface HttpRoute {
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** Throws or rejects with a `SignalError` for what the peer may hear of. */
  readonly handle: (request: HttpRequest) => HttpAnswer | Promise<HttpAnswer>
}

/** What a request counts against before its body is read. */
export type AdmissionScope = 'log-files' | 'lookup' | 'request'

export interface HttpServerParts {
  readonly routes: readonly HttpRoute[]
  /** The public file at a path, undefined for none; absent where no files are served. */
  readonly findFile?: (path: string) => PublicFile | undefined
  /**
   * Seconds to wait before the address (4 bytes for IPv4, 16 for IPv6, not to be kept) may ask again; 0 when it is
   * admitted.
   */
  readonly admit?: (remoteAddress: Uint8Array, scope: AdmissionScope) => number
  /** Told of every answer but those of files: the route's path, not the sender's. */
  readonly onAnswer?: (route: string, status: number, seconds: number) => void
  /** Told of a request that was refused, with the code and the request id that the peer got. */
  readonly onRefused: (code: ErrorCode, requestId: string) => void
  /** Told of a fault of ours, likewise. */
  readonly onFault: (error: unknown, requestId: string) => void
}

export class HttpServer {
  readonly #parts: HttpServerParts
  readonly #app = uWS.App()
  readonly #routes = new Map<string, Map<string, HttpRoute>>()
  #listenSocket: uWS.us_listen_socket | undefined

  constructor(parts: HttpServerParts) {
    this.#parts = parts
    for (const route of parts.routes) {
      const methods = this.#routes.get(route.path) ?? new Map<string, HttpRoute>()
      this.#routes.set(route.path, methods.set(route.method, route))
    }
    this.#app.any('/*', (res, req) => this.#onRequest(res, req))
  }

  /** Resolves with the port that is listened on; rejects when it is taken. */
  async listen(host: string, port: number): Promise<number> {
    if (port !== 0) await assertFree(host, port)
    return new Promise((resolve, reject) => {
      this.#app.listen(host, port, token => {
        if (!token) return reject(new Error(`can't listen on ${host}:${port}`))
        this.#listenSocket = token
        resolve(uWS.us_socket_local_port(token))
      })
    })
  }

  stopListening(): void {
    if (this.#listenSocket !== undefined) uWS.us_listen_socket_close(this.#listenSocket)
    this.#listenSocket = undefined
  }

  /** Ends every connection. */
  close(): void {
    this.stopListening()
    this.#app.close()
  }

  #onRequest(res: uWS.HttpResponse, req: uWS.HttpRequest): void {
    const path = req.getUrl()
    const { findFile, admit } = this.#parts
    if (findFile !== undefined && (path.startsWith('/tile/') || path === '/checkpoint')) {
      const waitSeconds = admit?.(new Uint8Array(res.getRemoteAddress()), 'log-files') ?? 0
      if (waitSeconds === 0) return serveFile(res, req, path, findFile)
    }
    new Exchange(res, req, path, this.#parts).start(this.#routes)
  }
}

/** One request from its first byte to its answer. */
class Exchange {
  readonly #res: uWS.HttpResponse
  readonly #parts: HttpServerParts
  readonly #startedAtMs = performance.now()
  readonly #method: string
  readonly #path: string
  readonly #requestId: string
  readonly #contentType: string
  #route = 'none'
  #isOver = false

  constructor(res: uWS.HttpResponse, req: uWS.HttpRequest, path: string, parts: HttpServerParts) {
    this.#res = res
    this.#parts = parts
    this.#method = req.getCaseSensitiveMethod()
    this.#path = path
    this.#contentType = req.getHeader('content-type')
    const requestId = req.getHeader('x-request-id')
    this.#requestId = requestId !== '' && REQUEST_ID_FORM.test(requestId) ? requestId : nextRequestId()
    res.onAborted(() => {
      this.#isOver = true
    })
  }

  start(routes: ReadonlyMap<string, ReadonlyMap<string, HttpRoute>>): void {
    try {
      const route = this.#findRoute(routes)
      this.#admit(route)
      if (route.method === 'GET') this.#handle(route, NO_BYTES)
      else this.#readBody(body => this.#handle(route, body))
    } catch (error) {
      this.#fail(error)
    }
  }

  #findRoute(routes: ReadonlyMap<string, ReadonlyMap<string, HttpRoute>>): HttpRoute {
    const path = this.#path.length > 1 && this.#path.endsWith('/') ? this.#path.slice(0, -1) : this.#path
    const methods = routes.get(path)
    if (methods === undefined) throw new SignalError('NOT_FOUND', 'there is nothing at this path')
    this.#route = path
    const route = methods.get(this.#method === 'HEAD' ? 'GET' : this.#method)
    if (route === undefined) throw new MethodNotAllowed([...methods.keys()])
    return route
  }

  #admit(route: HttpRoute): void {
    const { admit } = this.#parts
    if (admit === undefined) return
    const remoteAddress = new Uint8Array(this.#res.getRemoteAddress())
    const scopes: AdmissionScope[] = route.path.startsWith('/api/get-') ? ['request', 'lookup'] : ['request']
    for (const scope of scopes) {
      const waitSeconds = admit(remoteAddress, scope)
      if (waitSeconds > 0) throw new RateLimited(waitSeconds)
    }
  }

  #readBody(then: (body: Uint8Array) => void): void {
    const chunks: Uint8Array[] = []
    let length = 0
    this.#res.onData((chunk, isLast) => {
      if (this.#isOver) return
      length += chunk.byteLength
      if (length > BODY_BYTES_MAX) return this.#fail(bodyTooLarge())
      if (isLast && chunks.length === 0) return then(new Uint8Array(chunk))
      // uWebSockets takes the chunk's memory back on return.
      chunks.push(new Uint8Array(chunk).slice())
      if (isLast) then(Buffer.concat(chunks))
    })
  }

  #handle(route: HttpRoute, body: Uint8Array): void {
    try {
      const answer = route.handle({
        method: this.#method,
        path: this.#path,
        requestId: this.#requestId,
        contentType: this.#contentType,
        body,
      })
      if (!(answer instanceof Promise)) return this.#answer(answer)
      answer.then(
        late => this.#answer(late),
        error => this.#fail(error),
      )
    } catch (error) {
      this.#fail(error)
    }
  }

  #fail(error: unknown): void {
    const refusal =
      error instanceof SignalError ? error : new SignalError('INTERNAL', 'a fault of the server')
    const status = STATUS[refusal.code]
    if (status === 500) this.#parts.onFault(error, this.#requestId)
    else this.#parts.onRefused(refusal.code, this.#requestId)
    this.#answer(problemAnswer(refusal, status, this.#requestId))
  }

  #answer(answer: HttpAnswer): void {
    if (this.#isOver) return
    this.#isOver = true
    const res = this.#res
    res.cork(() => {
      // 200 is what uWebSockets writes by itself.
      if (answer.status !== 200) res.writeStatus(STATUS_LINES[answer.status] ?? String(answer.status))
      res.writeHeader('Content-Type', answer.contentType)
      res.writeHeader('API-Version', '1')
      res.writeHeader('X-Content-Type-Options', 'nosniff')
      res.writeHeader('Referrer-Policy', 'no-referrer')
      res.writeHeader('X-Request-Id', this.#requestId)
      for (const [name, value] of answer.headers ?? []) res.writeHeader(name, value)
      if (this.#method === 'HEAD') endHead(res, Buffer.byteLength(answer.body))
      // A body that was refused is not read to its end: the connection can't be used again.
      else res.end(answer.body, answer.status === 413)
    })
    this.#parts.onAnswer?.(this.#route, answer.status, (performance.now() - this.#startedAtMs) / 1000)
  }
}

/**
 * Rejects when somebody answers at the port: another process with uWebSockets would share it. Not its own option
 * against sharing, which also refuses a port whose old connections the kernel remembers: a restart failed for a minute.
 */
async function assertFree(host: string, port: number): Promise<void> {
  const answers = await new Promise<boolean>(resolve => {
    const probe = connect({ host: ANY_ADDRESSES.has(host) ? 'localhost' : host, port })
    probe.once('connect', () => resolve(true)).once('error', () => resolve(false))
    probe.once('connect', () => probe.destroy())
  })
  if (answers) throw new Error(`somebody listens on ${host}:${port}`)
}

const ANY_ADDRESSES = new Set(['0.0.0.0', '::'])

/** Unique without the cost of randomness for each: the process's random name and a count. */
function nextRequestId(): string {
  requestCount++
  return `${PROCESS_NAME}-${requestCount.toString(36)}`
}

class MethodNotAllowed extends SignalError {
  readonly allow: string
  constructor(methods: readonly string[]) {
    super('METHOD_NOT_ALLOWED', `this path takes ${methods.join(', ')}`)
    this.allow = methods.includes('GET') ? [...methods, 'HEAD'].join(', ') : methods.join(', ')
  }
}

class RateLimited extends SignalError {
  readonly retryIn: number
  constructor(seconds: number) {
    super('RATE_LIMITED', `too many requests from this address, wait ${seconds} s`)
    this.retryIn = seconds
  }
}

/** RFC 9457 problem details with the members of contract 1.5. A fault of ours says nothing more than its id. */
function problemAnswer(error: SignalError, status: number, requestId: string): HttpAnswer {
  const retryIn = error instanceof RateLimited ? error.retryIn : status === 503 ? RETRY_SECONDS : undefined
  const headers: [string, string][] = [['Cache-Control', 'no-store']]
  if (retryIn !== undefined) headers.push(['Retry-After', String(retryIn)])
  if (error instanceof MethodNotAllowed) headers.push(['Allow', error.allow])
  const body = {
    type: `urn:problem:${error.code.toLowerCase().replaceAll('_', '-')}`,
    title: TITLES[error.code],
    status,
    code: status === 500 ? 'INTERNAL' : error.code,
    detail: status === 500 ? 'The server failed; the request id names the fault in its log.' : error.message,
    requestId,
    ...(retryIn === undefined ? {} : { retryIn }),
    ...(error.errors.length === 0 ? {} : { errors: error.errors }),
  }
  return { status, contentType: 'application/problem+json', body: JSON.stringify(body), headers }
}

function bodyTooLarge(): SignalError {
  return new SignalError('BODY_TOO_LARGE', `a body here has at most ${BODY_BYTES_MAX} bytes`)
}

const STATUS: Record<ErrorCode, number> = {
  MALFORMED: 500,
  KEY_INVALID: 500,
  SIGNATURE_INVALID: 500,
  PROOF_INVALID: 500,
  MALFORMED_JSON: 400,
  VALIDATION_FAILED: 422,
  BODY_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  METHOD_NOT_ALLOWED: 405,
  NOT_FOUND: 404,
  RATE_LIMITED: 429,
  TOKEN_MISSING: 401,
  TOKEN_INVALID: 401,
  UNKNOWN_PUBLIC_KEY_HASH: 404,
  IDENTITY_MISMATCH: 409,
  CHECKPOINT_INVALID: 503,
  LOG_UNAVAILABLE: 503,
  TOO_MANY_KEYS: 429,
  OVERLOADED: 503,
  DEADLINE_EXCEEDED: 503,
  STORE_UNAVAILABLE: 503,
  INTERNAL: 500,
}

const TITLES: Record<ErrorCode, string> = {
  MALFORMED: 'Server fault',
  KEY_INVALID: 'Server fault',
  SIGNATURE_INVALID: 'Server fault',
  PROOF_INVALID: 'Server fault',
  MALFORMED_JSON: 'Not JSON',
  VALIDATION_FAILED: 'A field breaks a rule',
  BODY_TOO_LARGE: 'Body too large',
  UNSUPPORTED_MEDIA_TYPE: 'Media type not supported',
  METHOD_NOT_ALLOWED: 'Method not allowed',
  NOT_FOUND: 'Not found',
  RATE_LIMITED: 'Too many requests',
  TOKEN_MISSING: 'No access token',
  TOKEN_INVALID: 'Access token not accepted',
  UNKNOWN_PUBLIC_KEY_HASH: 'No key under this hash',
  IDENTITY_MISMATCH: 'The log entry is not of this identity',
  CHECKPOINT_INVALID: 'The log can not prove its state',
  LOG_UNAVAILABLE: 'The log is not available',
  TOO_MANY_KEYS: 'Too many keys of one device',
  OVERLOADED: 'Too much to do',
  DEADLINE_EXCEEDED: 'Took too long',
  STORE_UNAVAILABLE: 'The store is not available',
  INTERNAL: 'Server fault',
}

const STATUS_LINES: Record<number, string> = {
  200: '200 OK',
  400: '400 Bad Request',
  401: '401 Unauthorized',
  404: '404 Not Found',
  405: '405 Method Not Allowed',
  409: '409 Conflict',
  413: '413 Payload Too Large',
  415: '415 Unsupported Media Type',
  422: '422 Unprocessable Content',
  429: '429 Too Many Requests',
  500: '500 Internal Server Error',
  503: '503 Service Unavailable',
}

const PROCESS_NAME = nanoid(12).replace('-', '_')
let requestCount = 0
const REQUEST_ID_FORM = /^[A-Za-z0-9._-]{8,64}$/
const RETRY_SECONDS = 1
const NO_BYTES = new Uint8Array(0)
