/**
 * POSTs to one server over HTTP/2: one session for all, opened by the first request and after one has ended. A request
 * costs a fraction of what it costs by `fetch` (`push-outbox` in `bench/`).
 *
 * A session that has fallen silent looks like one that waits. So a request without an answer in time takes its session
 * with it, and those that went down with a session are sent once more on a new one.
 */

import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'
import { type HttpPost, type PostResult, retryAfterMs } from './http-post.ts'

/** The link's server is where it is sent to. */
export interface Http2Post extends Omit<HttpPost, 'url'> {
  readonly path: string
}

interface Opened {
  readonly session: ClientHttp2Session
  /** How many requests have no answer yet. */
  underWay: number
}

export class Http2Link {
  readonly #origin: string
  #opened: Opened | undefined
  #isClosed = false

  /** `http:` is HTTP/2 too, without TLS (RFC 9113, section 3.3). */
  constructor(origin: string) {
    this.#origin = origin
  }

  /** Never rejects. */
  async post(request: Http2Post): Promise<PostResult> {
    const isReused = isUsable(this.#opened)
    const answer = await this.#postOnce(request)
    const wentDown = answer.kind === 'failed' && answer.reason === 'network' && isReused
    return wentDown ? this.#postOnce(request) : answer
  }

  /** Ends the session; requests under way and later ones fail. */
  close(): void {
    this.#isClosed = true
    this.#opened?.session.destroy()
  }

  async #postOnce(request: Http2Post): Promise<PostResult> {
    if (this.#isClosed) return FAILED
    const opened = this.#open()
    const { session } = opened
    // Only requests under way keep the process alive.
    if (opened.underWay++ === 0) session.ref()
    const answer = await exchange(session, request)
    if (--opened.underWay === 0 && !session.destroyed) session.unref()
    if (answer.kind === 'failed' && answer.reason === 'timeout') session.destroy()
    return answer
  }

  #open(): Opened {
    if (isUsable(this.#opened)) return this.#opened
    const session = connect(this.#origin, { settings: { enablePush: false } })
    // Its requests hear of it themselves.
    session.on('error', () => undefined)
    this.#opened = { session, underWay: 0 }
    return this.#opened
  }
}

/** One that the server has begun to end is closed, and ends when its last answer has come. */
function isUsable(opened: Opened | undefined): opened is Opened {
  return opened !== undefined && !opened.session.closed && !opened.session.destroyed
}

function exchange(session: ClientHttp2Session, request: Http2Post): Promise<PostResult> {
  const stream = streamOf(session, request)
  if (stream === undefined) return Promise.resolve(FAILED)
  return new Promise(resolve => {
    let failed: PostResult = FAILED
    let head: { readonly status: number; readonly retryAfterMs?: number } | undefined
    const chunks: Buffer[] = []
    let bytes = 0
    const timer = setTimeout(() => {
      failed = { kind: 'failed', reason: 'timeout' }
      stream.close(constants.NGHTTP2_CANCEL)
    }, request.timeoutMs)
    stream.on('response', ({ ':status': status = 0, 'retry-after': after }) => {
      const waitMs = after === undefined ? undefined : retryAfterMs(after, Date.now())
      head = { status, ...(waitMs === undefined ? {} : { retryAfterMs: waitMs }) }
    })
    stream.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > request.answerBytesMax) stream.close(constants.NGHTTP2_CANCEL)
      else chunks.push(chunk)
    })
    stream.on('error', () => undefined)
    stream.on('close', () => {
      clearTimeout(timer)
      // The status alone says what became of the message, also where its body was cut short.
      if (head === undefined) resolve(failed)
      else {
        const isWhole = stream.rstCode === constants.NGHTTP2_NO_ERROR
        resolve({ kind: 'answered', ...head, body: Buffer.concat(chunks).toString('utf8'), isWhole })
      }
    })
    stream.end(request.body)
  })
}

/** Undefined where the session has just ended, or has run out of stream numbers. */
function streamOf(session: ClientHttp2Session, { path, headers }: Http2Post): ClientHttp2Stream | undefined {
  try {
    return session.request({ ':method': 'POST', ':path': path, ...headers })
  } catch {
    return undefined
  }
}

const FAILED: PostResult = { kind: 'failed', reason: 'network' }
