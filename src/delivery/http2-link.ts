/**
 * POSTs to one server over HTTP/2: one session for all, opened by the first request and after one has ended. A request
 * costs a fraction of what it costs by `fetch` (`push-outbox` in `bench/`).
 *
 * A session that has fallen silent looks like one that waits. So a request that comes while nothing was answered for
 * almost a second goes to a new one. A request without an answer in time takes its session with it, and those that went
 * down with a session are sent once more on a new one.
 */

import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'
import { type HttpPost, type PostResult, retryAfterMs } from './http-post.ts'
import { Silence } from './silence.ts'

/** The link's server is where it is sent to. */
export interface Http2Post extends Omit<HttpPost, 'url'> {
  readonly path: string
}

interface Opened {
  readonly session: ClientHttp2Session
  readonly silence: Silence
}

export class Http2Link {
  readonly #origin: string
  #opened: Opened | undefined
  /** All that are not destroyed. */
  readonly #sessions = new Set<ClientHttp2Session>()
  #isClosed = false

  /** `http:` is HTTP/2 too, without TLS (RFC 9113, section 3.3). */
  constructor(origin: string) {
    this.#origin = origin
  }

  /** Never rejects. */
  async post(request: Http2Post): Promise<PostResult> {
    const isReused = usable(this.#opened) !== undefined
    const answer = await this.#postOnce(request)
    const wentDown = answer.kind === 'failed' && answer.reason === 'network' && isReused
    return wentDown ? this.#postOnce(request) : answer
  }

  /** Ends the session; requests under way and later ones fail. */
  close(): void {
    this.#isClosed = true
    for (const session of this.#sessions) session.destroy()
  }

  async #postOnce(request: Http2Post): Promise<PostResult> {
    if (this.#isClosed) return FAILED
    const opened = this.#open()
    const { session, silence } = opened
    // Only requests under way keep the process alive.
    if (silence.isIdle) session.ref()
    silence.begin()
    const answer = await exchange(session, request)
    silence.end(answer.kind === 'answered')
    if (silence.isIdle && !session.destroyed) session.unref()
    if (answer.kind === 'failed' && answer.reason === 'timeout') session.destroy()
    return answer
  }

  #open(): Opened {
    const opened = usable(this.#opened)
    if (opened !== undefined) return opened
    // A silent one ends with its last answer.
    this.#opened?.session.close()
    const session = connect(this.#origin, { settings: { enablePush: false } })
    // Its requests hear of it themselves.
    session.on('error', () => undefined)
    session.once('close', () => this.#sessions.delete(session))
    this.#sessions.add(session)
    this.#opened = { session, silence: new Silence() }
    return this.#opened
  }
}

/** One that the server has begun to end is closed, and ends when its last answer has come. */
function usable(opened: Opened | undefined): Opened | undefined {
  if (opened === undefined) return undefined
  const { session, silence } = opened
  return session.closed || session.destroyed || silence.isLong ? undefined : opened
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
      // To close a stream of a session that is still connecting would wait for that, however long it takes.
      if (stream.pending) stream.destroy()
      else stream.close(constants.NGHTTP2_CANCEL)
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
