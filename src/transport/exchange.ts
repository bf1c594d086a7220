/**
 * One HTTP request from its first byte to its answer: route, admission, headers, body, handler, problem.
 *
 * uWebSockets.js ends the process when a request is neither answered nor watched for abort on return, and throws when
 * `req` is used after it or `res` after an abort. `Exchange` is the only thing that touches either, files apart, and `AnswerStream` in its name.
 */

import type uWS from 'uWebSockets.js'
import { isTokenRefusal, SignalError } from '../errors.ts'
import { ANSWER_STREAM_MS_MAX, ANSWER_STREAMS_MAX, BODY_BYTES_MAX, BODY_DEADLINE_MS } from '../limits.ts'
import { dropStream, encoded, isStream } from './answer-body.ts'
import { type AnswerHeads, STATUS_LINES } from './answer-head.ts'
import { AnswerStream } from './answer-stream.ts'
import type { BodyHeaders } from './body-headers.ts'
import { type CorsPolicy, EXPOSED_HEADERS, isOwnOrigin, PREFLIGHT_HEADERS, PREFLIGHT_MARK } from './cors.ts'
import type { HttpServerDeps, RefusedRequest, ServedRequest } from './http-deps.ts'
import { endHead } from './log-files.ts'
import { idSequence } from './open-connections.ts'
import { problemOf } from './problem.ts'
import type { TitleLanguage } from './problem-titles.ts'
import { bodyTooLarge, nothingAt, refuseCoded } from './refusals.ts'
import type { RemoteAddresses } from './remote-address.ts'
import type { HttpAnswer, HttpRequest, HttpRoute, RequestAdmission } from './route.ts'
import { fillPath, type Match, type Router, type Target } from './router.ts'

/** Shared by the exchanges of one server. */
export interface ExchangeShared {
  readonly server: HttpServerDeps
  readonly router: Router
  readonly addresses: RemoteAddresses
  readonly heads: AnswerHeads
  /** Undefined: no page of another origin is served. */
  readonly cors: CorsPolicy | undefined
  /** Requests that are neither answered nor aborted. */
  requestsOpen: number
  /** Requests among them with an answer that is made part by part. */
  streamsOpen: number
}

/** Copies of what `req` said. */
interface KeptOfRequest {
  /** For the title of a refusal. */
  readonly acceptLanguage: string
  readonly query: string
  /** In the order of the route's `headers`. */
  readonly headers: readonly string[] | undefined
}

/** A request on its way; also the `HttpRequest` that its handler is given, which saves an object for each. */
export class Exchange implements HttpRequest {
  readonly method: string
  readonly path: string
  readonly requestId: string
  contentType = ''
  body: Uint8Array = NO_BYTES
  readonly #res: uWS.HttpResponse
  readonly #shared: ExchangeShared
  readonly #startedAtMs = performance.now()
  /** The asking page's, when it is allowed; else empty. */
  #allowedOrigin: string
  /** Until `start` returns, and the socket is corked as long. */
  #req: uWS.HttpRequest | undefined
  /** The parts of `req` needed once it is gone. */
  #kept: KeptOfRequest | undefined
  #network: string | undefined
  /** The header by which it was admitted: asking `req` again would copy it again. */
  #authorization: string | undefined
  #match: Match | undefined
  #target: Target | undefined
  /** Why the request was refused. */
  #refusal: SignalError | undefined
  /** Whether the connection ends with the answer. */
  #isLast = false
  /** The answer on its way, where it is made part by part. */
  #stream: AnswerStream | undefined
  #isOver = false

  constructor(
    res: uWS.HttpResponse,
    req: uWS.HttpRequest,
    method: string,
    path: string,
    shared: ExchangeShared,
  ) {
    this.#res = res
    this.#req = req
    this.#shared = shared
    this.method = method
    this.path = path
    const requestId = req.getHeader('x-request-id')
    this.requestId = requestId !== '' && REQUEST_ID_FORM.test(requestId) ? requestId : nextRequestId()
    this.#allowedOrigin = shared.cors === undefined ? '' : this.#judgeOrigin(shared.cors, req)
    if (shared.addresses.areForwarded) this.#network = shared.addresses.of(res, req)
    shared.requestsOpen++
  }

  /** The origin that asks, when it is allowed; else empty. */
  #judgeOrigin(cors: CorsPolicy, req: uWS.HttpRequest): string {
    const origin = req.getHeader('origin')
    if (origin === '' || cors.isAllowed(origin)) return origin
    const { onOriginRefused, webSocket } = this.#shared.server
    const isOwn = isOwnOrigin(origin, req.getHeader('host'), webSocket?.publicUrl?.())
    if (!isOwn) onOriginRefused?.(origin)
    return ''
  }

  /** Returns whether it was not over before. */
  #end(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#shared.requestsOpen--
    if (this.#stream !== undefined) this.#shared.streamsOpen--
    return true
  }

  get params(): readonly string[] {
    return this.#match?.params ?? NO_PARAMS
  }

  get query(): string {
    return this.#kept?.query ?? this.#req?.getQuery() ?? ''
  }

  get header(): (name: string) => string {
    return name => this.#header(name)
  }

  /** Read from the socket only on demand: that alone is a tenth of a lookup (bench/lookup.ts). */
  get network(): string {
    this.#network ??= this.#shared.addresses.ofPeer(this.#res)
    return this.#network
  }

  /** Serves the request. `req` is not used after the return. */
  start(req: uWS.HttpRequest, { contentEncoding, contentType, contentLength }: BodyHeaders): void {
    try {
      if (this.#isPreflight(req)) return this.#answerPreflight()
      this.#match = this.#shared.router.find(this.path)
      this.#target = this.#match?.targets.get(this.method)
      this.#admit(this.#target?.route)
      if (this.#target === undefined) throw nothingAt(this.#match)
      const { route } = this.#target
      this.#refuseOldClient(route, req)
      route.admit?.(this)
      if (route.method === 'GET') this.#handle(route, NO_BYTES)
      else {
        refuseCoded(contentEncoding)
        this.contentType = contentType
        this.#readBody(route, contentLength)
      }
    } catch (error) {
      this.#fail(error)
    }
    // Each of these costs a call into uWebSockets: a request answered by then is spared them (`bench/user.ts`).
    if (!this.#isOver) this.#outlive(req)
    this.#req = undefined
  }

  /** Watches for the end of the connection, and copies what may be asked for of `req`. */
  #outlive(req: uWS.HttpRequest): void {
    this.#res.onAborted(() => {
      if (this.#end()) this.#stream?.abort()
    })
    this.#kept = {
      acceptLanguage: req.getHeader('accept-language'),
      query: req.getQuery() ?? '',
      headers: this.#target?.route.headers?.map(name => headerOf(req, name)),
    }
  }

  #header(name: string): string {
    if (name === AUTHORIZATION && this.#authorization !== undefined) return this.#authorization
    const at = this.#target?.route.headers?.indexOf(name) ?? -1
    if (at < 0) return ''
    if (this.#req !== undefined) return headerOf(this.#req, name)
    return this.#kept?.headers?.[at] ?? ''
  }

  /** The language of a refusal; undefined where there is only one. */
  get #language(): TitleLanguage | undefined {
    const header = this.#kept?.acceptLanguage ?? this.#req?.getHeader('accept-language') ?? ''
    return this.#shared.server.languageOf?.(header)
  }

  /** Answers that the address has asked for too many of the log's files. */
  refuseFile(error: unknown): void {
    // The files are open to every page, and so is this refusal.
    this.#allowedOrigin = '*'
    this.#fail(error)
  }

  /**
   * Answers a request whose end is uncertain, and closes. The answer waits a turn of the loop: `end` closes only once all that
   * came in the same segment is served, and a request in it would keep the connection open. While an answer waits,
   * uWebSockets ends the connection at whatever follows.
   */
  refuseFraming(fault: string, req: uWS.HttpRequest): void {
    this.#match = this.#shared.router.find(this.path)
    this.#isLast = true
    this.#outlive(req)
    this.#req = undefined
    setImmediate(() => this.#fail(new SignalError('MALFORMED_REQUEST', fault)))
  }

  /** Answers a WebSocket upgrade that is not accepted. */
  refuseUpgrade(error: SignalError): void {
    this.#match = this.#shared.router.find(this.path)
    this.#fail(error)
  }

  #isPreflight(req: uWS.HttpRequest): boolean {
    if (this.method !== 'OPTIONS' || req.getHeader(PREFLIGHT_MARK) === '') return false
    const { cors, server } = this.#shared
    if (cors !== undefined) return true
    const origin = req.getHeader('origin')
    if (origin !== '') server.onOriginRefused?.(origin)
    return false
  }

  #answerPreflight(): void {
    const headers = this.#allowedOrigin === '' ? [] : PREFLIGHT_HEADERS
    if (this.#allowedOrigin === '') this.#refusal = ORIGIN_REFUSED
    this.#answer({ status: 204, contentType: '', body: '', headers })
  }

  #admit(route: HttpRoute | undefined): void {
    const { admission } = this.#shared.server
    // A refresh counts for its token, which is in its body.
    if (admission === undefined || route?.isUncounted || route?.countsFor === 'refresh-token') return
    const authorization = route?.countsFor === undefined ? '' : this.#authorizationOf(route, admission)
    if (authorization !== '') this.#authorization = authorization
    admission.admit(this.network, 'request', authorization)
    if (route?.isLookup) admission.admit(this.network, 'lookup', authorization)
  }

  /** The header that a request counts for; empty for none. */
  #authorizationOf({ countsFor }: HttpRoute, admission: RequestAdmission): string {
    const authorization = this.#req?.getHeader(AUTHORIZATION) ?? ''
    return countsFor === 'good-token' && !admission.isGood(authorization) ? '' : authorization
  }

  #refuseOldClient({ isVersionChecked = false }: HttpRoute, req: uWS.HttpRequest): void {
    const { requiredClient } = this.#shared.server
    if (requiredClient === undefined || !isVersionChecked) return
    const minClientVersion = requiredClient(req.getHeader('x-client-version'))
    if (minClientVersion === undefined) return
    throw new SignalError('CLIENT_TOO_OLD', `this server needs ${minClientVersion} or later`, {
      members: { minClientVersion },
    })
  }

  #readBody(route: HttpRoute, contentLength: string): void {
    const bytesMax = route.bodyBytesMax ?? BODY_BYTES_MAX
    const deadlineMs = this.#startedAtMs + (this.#shared.server.bodyDeadlineMs ?? BODY_DEADLINE_MS)
    if (Number(contentLength) > bytesMax) throw bodyTooLarge(bytesMax)
    const chunks: Uint8Array[] = []
    let length = 0
    this.#res.onData((chunk, isLast) => {
      if (this.#isOver) return
      length += chunk.byteLength
      if (length > bytesMax) return this.#fail(bodyTooLarge(bytesMax))
      // uWebSockets takes the chunk's memory back on return, and `onServed` runs later.
      const isShown = this.#shared.server.onServed !== undefined
      const bytes = new Uint8Array(chunk)
      if (isLast && chunks.length === 0) return this.#handle(route, isShown ? bytes.slice() : bytes)
      chunks.push(bytes.slice())
      if (isLast) this.#handle(route, Buffer.concat(chunks))
      // A timer is not needed: uWebSockets ends connections that send less than 160 kB in 10 seconds.
      else if (performance.now() > deadlineMs) this.#res.close()
    })
  }

  #handle(route: HttpRoute, body: Uint8Array): void {
    try {
      this.body = body
      if (route.countsFor === 'refresh-token') this.#shared.server.admission?.admitRefresh(this.network, body)
      const answer = route.handle(this)
      if (!(answer instanceof Promise)) return this.#answer(answer)
      // The socket may be gone when the handler asks for it.
      void this.network
      answer.then(
        late => this.#answer(late),
        error => this.#fail(error),
      )
    } catch (error) {
      this.#fail(error)
    }
  }

  #fail(error: unknown): void {
    const { server } = this.#shared
    if (error instanceof SignalError) {
      this.#refusal = error
      if (isTokenRefusal(error)) this.#countRefusedToken()
    }
    const { status, body, headers } = problemOf(error, this.requestId, this.#language)
    if (status === 500) server.onFault(error, this.requestId)
    else if (error instanceof SignalError) server.onRefused(error.code, this.#refused(error))
    this.#answer({ status, contentType: 'application/problem+json', body, noStore: true, headers })
  }

  #countRefusedToken(): void {
    if (this.#target?.route.countsFor !== 'access-token') return
    this.#shared.server.admission?.onTokenRefused(this.network, this.#header(AUTHORIZATION))
  }

  #refused({ errors }: SignalError): RefusedRequest {
    return {
      requestId: this.requestId,
      method: METHODS.has(this.method) ? this.method : 'other',
      route: this.#match?.path ?? 'none',
      pointer: errors[0]?.pointer,
    }
  }

  #answer(answer: HttpAnswer): void {
    const { body } = answer
    if (!isStream(body)) this.#answerWhole(answer, body)
    else if (this.#isOver || this.method === 'HEAD' || this.#shared.streamsOpen >= ANSWER_STREAMS_MAX) {
      dropStream(body, error => this.#onFault(error))
      if (this.method === 'HEAD') this.#answerWhole(answer, '')
      else if (!this.#isOver)
        this.#fail(new SignalError('OVERLOADED', 'too many long answers are on their way'))
    } else this.#answerInParts(answer, body)
  }

  #answerWhole(answer: HttpAnswer, body: string | Uint8Array): void {
    if (!this.#end()) return
    if (this.#req !== undefined) this.#write(answer, body)
    else this.#res.cork(() => this.#write(answer, body))
    this.#onAnswer(answer)
    this.#shared.server.onServed?.(this.#served(answer, body, body.length))
  }

  #answerInParts(answer: HttpAnswer, body: AsyncIterable<Uint8Array>): void {
    this.#shared.streamsOpen++
    const { streamDeadlineMs = ANSWER_STREAM_MS_MAX } = this.#shared.server
    this.#stream = new AnswerStream(this.#res, body, streamDeadlineMs, {
      writeHead: () => {
        this.#writeHead(answer)
        this.#onAnswer(answer)
      },
      onWritten: bytes => {
        this.#end()
        this.#shared.server.onServed?.(this.#served(answer, undefined, bytes))
      },
      onFailed: (error, hasBegun) => (hasBegun ? this.#cutOff(error) : this.#fail(error)),
      onFault: error => this.#onFault(error),
    })
  }

  /** Ends the connection in the middle of an answer. */
  #cutOff(error: unknown): void {
    if (error instanceof SignalError) this.#shared.server.onRefused(error.code, this.#refused(error))
    else this.#onFault(error)
    this.#res.close()
  }

  #onFault(error: unknown): void {
    this.#shared.server.onFault(error, this.requestId)
  }

  get #seconds(): number {
    return (performance.now() - this.#startedAtMs) / 1000
  }

  #onAnswer({ status }: HttpAnswer): void {
    this.#shared.server.onAnswer?.(this.#match?.path ?? 'none', status, this.#seconds)
  }

  #served(
    { status, contentType }: HttpAnswer,
    answer: string | Uint8Array | undefined,
    answerBytes: number,
  ): ServedRequest {
    return {
      requestId: this.requestId,
      method: this.method,
      path: this.path,
      query: this.query,
      route: this.#match?.path ?? 'none',
      contentType: this.contentType,
      body: this.body,
      status,
      code: this.#refusal?.code,
      pointer: this.#refusal?.errors[0]?.pointer,
      seconds: this.#seconds,
      answerType: contentType,
      answer,
      answerBytes,
    }
  }

  #write(answer: HttpAnswer, body: string | Uint8Array): void {
    const res = this.#res
    this.#writeHead(answer)
    // How long a stream would be is not known.
    if (answer.status === 204 || answer.status === 304 || isStream(answer.body)) res.endWithoutBody()
    else if (this.#isLast) res.end(this.method === 'HEAD' ? '' : encoded(body), true)
    else if (this.method === 'HEAD') endHead(res, Buffer.byteLength(body))
    // A body that was refused is not read to its end: the connection can't be used again.
    else res.end(encoded(body), answer.status === 413)
  }

  #writeHead({ status, contentType, noStore = false, headers }: HttpAnswer): void {
    const res = this.#res
    const { heads } = this.#shared
    // 200 is what uWebSockets writes by itself.
    if (status !== 200) res.writeStatus(STATUS_LINES[status] ?? String(status))
    if (status === 204) res.writeHeader('API-Version', heads.untyped(noStore))
    else res.writeHeader('Content-Type', heads.typed(contentType, noStore))
    res.writeHeader('X-Request-Id', this.requestId)
    if (this.#shared.cors !== undefined || this.#allowedOrigin !== '') this.#writeCors()
    if (this.#target?.deprecatedSince !== undefined) this.#writeDeprecation(this.#target.deprecatedSince)
    if (headers !== undefined) for (const [name, value] of headers) res.writeHeader(name, value)
  }

  #writeCors(): void {
    this.#res.writeHeader('Vary', 'Origin')
    if (this.#allowedOrigin === '') return
    this.#res.writeHeader('Access-Control-Allow-Origin', this.#allowedOrigin)
    this.#res.writeHeader('Access-Control-Expose-Headers', EXPOSED_HEADERS)
  }

  #writeDeprecation(since: number): void {
    const canonical = fillPath(this.#match?.path ?? '', this.params)
    this.#res.writeHeader('Deprecation', `@${since}`)
    this.#res.writeHeader('Link', `<${canonical}>; rel="successor-version"`)
  }
}

/** See `HttpRoute.headers`. */
function headerOf(req: uWS.HttpRequest, name: string): string {
  if (!name.endsWith('*')) return req.getHeader(name)
  const beginning = name.slice(0, -1)
  const names: string[] = []
  req.forEach(each => {
    if (each.startsWith(beginning)) names.push(each)
  })
  return names.join()
}

/** A method that is none of these is a text of the peer's. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const ORIGIN_REFUSED = new SignalError('ORIGIN_NOT_ALLOWED', 'pages of this origin may not call')
const AUTHORIZATION = 'authorization'
const nextRequestId = idSequence()
const REQUEST_ID_FORM = /^[A-Za-z0-9._-]{8,64}$/
const NO_BYTES = new Uint8Array(0)
const NO_PARAMS: readonly string[] = []
