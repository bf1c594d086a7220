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
import { problemOf } from './problem.ts'

export interface HttpRequest {
  readonly method: string
  /** As it was asked for, without the query. */
  readonly path: string
  /** The values of the route's `{name}` segments, in their order, percent-decoded. */
  readonly params: readonly string[]
  /** What follows the question mark, as it was sent; empty for none. */
  readonly query: string
  readonly requestId: string
  readonly contentType: string
  /** A header that the route names in `headers`, by its lower-case name; empty when it was not sent. */
  readonly header: (name: string) => string
  /** The client's, 4 or 16 bytes, seen through trusted proxies. A copy. */
  readonly remoteAddress: Uint8Array
  /** Empty for none. To be read before the handler returns: its memory goes back then. */
  readonly body: Uint8Array
}

export interface HttpAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: string | Uint8Array
  readonly headers?: readonly (readonly [string, string])[]
}

export interface HttpRoute {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** The canonical path, such as `/app/api/devices/{deviceId}`; also the route's name in metrics. */
  readonly path: string
  /** Lower-case names of the headers that the handler reads. */
  readonly headers?: readonly string[]
  /** `BODY_BYTES_MAX` where it is left out. */
  readonly bodyBytesMax?: number
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
    if (route === undefined) throw methodNotAllowed(methods.keys())
    return route
  }

  #admit(route: HttpRoute): void {
    const { admit } = this.#parts
    if (admit === undefined) return
    const remoteAddress = new Uint8Array(this.#res.getRemoteAddress())
    const scopes: AdmissionScope[] = route.path.startsWith('/api/get-') ? ['request', 'lookup'] : ['request']
    for (const scope of scopes) {
      const waitSeconds = admit(remoteAddress, scope)
      if (waitSeconds > 0) throw rateLimited(waitSeconds)
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
        params: [],
        query: '',
        requestId: this.#requestId,
        contentType: this.#contentType,
        header: () => '',
        remoteAddress: NO_BYTES,
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
    const { status, body, headers } = problemOf(error, this.#requestId)
    if (status === 500) this.#parts.onFault(error, this.#requestId)
    else if (error instanceof SignalError) this.#parts.onRefused(error.code, this.#requestId)
    this.#answer({ status, contentType: 'application/problem+json', body, headers })
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

function methodNotAllowed(taken: Iterable<string>): SignalError {
  const methods = [...taken]
  const allow = (methods.includes('GET') ? [...methods, 'HEAD'] : methods).join(', ')
  return new SignalError('METHOD_NOT_ALLOWED', `this path takes ${allow}`, { members: { allow } })
}

function rateLimited(seconds: number): SignalError {
  const members = { retryIn: seconds, scope: 'address' }
  return new SignalError('RATE_LIMITED', `too many requests from this address, wait ${seconds} s`, {
    members,
  })
}

function bodyTooLarge(): SignalError {
  return new SignalError('BODY_TOO_LARGE', `a body here has at most ${BODY_BYTES_MAX} bytes`)
}

const STATUS_LINES: Record<number, string> = {
  200: '200 OK',
  201: '201 Created',
  202: '202 Accepted',
  204: '204 No Content',
  400: '400 Bad Request',
  401: '401 Unauthorized',
  403: '403 Forbidden',
  404: '404 Not Found',
  405: '405 Method Not Allowed',
  409: '409 Conflict',
  410: '410 Gone',
  413: '413 Payload Too Large',
  415: '415 Unsupported Media Type',
  422: '422 Unprocessable Content',
  426: '426 Upgrade Required',
  429: '429 Too Many Requests',
  500: '500 Internal Server Error',
  503: '503 Service Unavailable',
}

const PROCESS_NAME = nanoid(12).replace('-', '_')
let requestCount = 0
const REQUEST_ID_FORM = /^[A-Za-z0-9._-]{8,64}$/
const NO_BYTES = new Uint8Array(0)
