/**
 * One POST, as the SMS gateway and Google's token endpoint get them: a deadline over all of it, redirects not followed, and of
 * the answer's body no more read than the caller asked for.
 */

import { request as beginHttp, Agent as HttpAgent, type IncomingMessage } from 'node:http'
import { request as beginHttps, Agent as HttpsAgent } from 'node:https'
import { AddressRefusedError } from './public-lookup.ts'

export interface HttpPost {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array
  /** From the first byte to the last one of the answer. */
  readonly timeoutMs: number
  /** A longer answer is cut there. */
  readonly answerBytesMax: number
  /**
   * Keeps the connection for the next request. Only for requests that may go out twice: the server may just be closing
   * it.
   */
  readonly keepsConnection?: boolean
  /** Opens and keeps the connections instead. */
  readonly agent?: HttpAgent
  /** PEM of the authorities to trust in place of the machine's. */
  readonly ca?: string | undefined
}

export type PostResult =
  /** `body` has the bytes that came before the answer ended, failed or grew too long. */
  | {
      readonly kind: 'answered'
      readonly status: number
      readonly body: string
      /** False for one that was cut, or broke off. */
      readonly isWhole: boolean
      readonly retryAfterMs?: number
    }
  | { readonly kind: 'failed'; readonly reason: 'timeout' | 'network' | AddressRefusedError['reason'] }

/** Never rejects. */
export function post(asked: HttpPost): Promise<PostResult> {
  const { url, headers, body, timeoutMs, answerBytesMax, ca, keepsConnection = false } = asked
  return new Promise(resolve => {
    const signal = AbortSignal.timeout(timeoutMs)
    const fail = (error?: unknown) =>
      resolve({ kind: 'failed', reason: signal.aborted ? 'timeout' : failureOf(error) })
    try {
      const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
      const isTls = url.startsWith('https:')
      const begin = isTls ? beginHttps : beginHttp
      const agent = asked.agent ?? (keepsConnection && (isTls ? HTTPS : HTTP))
      const sent = { ...headers, 'content-length': length }
      const options = { method: 'POST', headers: sent, agent, signal, ...(ca === undefined ? {} : { ca }) }
      const request = begin(url, options, answer => {
        const status = answer.statusCode ?? 0
        const waitMs = retryAfterMs(answer.headers['retry-after'] ?? null, Date.now())
        const waits = waitMs === undefined ? {} : { retryAfterMs: waitMs }
        readUpTo(answer, answerBytesMax).then(read =>
          resolve({ kind: 'answered', status, ...read, ...waits }),
        )
      })
      request.on('error', fail)
      request.end(body)
    } catch (error) {
      fail(error)
    }
  })
}

function failureOf(error: unknown): 'network' | AddressRefusedError['reason'] {
  return error instanceof AddressRefusedError ? error.reason : 'network'
}

/**
 * Milliseconds that a `Retry-After` header asks for (RFC 9110, section 10.2.3: seconds or a date), at most an hour;
 * undefined when there is none or it can't be read.
 */
export function retryAfterMs(header: string | null, nowMs: number): number | undefined {
  const waitMs = waitOf(header ?? '', nowMs)
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(waitMs, 0), RETRY_AFTER_MS_MAX)
}

function waitOf(header: string, nowMs: number): number {
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000
  // `Date.parse` takes nearly everything for a date; one of HTTP begins with its day.
  return /^[A-Z][a-z]+, /.test(header) ? Date.parse(header) - nowMs : Number.NaN
}

/** The status has come by then, and it alone says what became of the message. */
function readUpTo(
  answer: IncomingMessage,
  bytesMax: number,
): Promise<{ readonly body: string; readonly isWhole: boolean }> {
  return new Promise(resolve => {
    const chunks: Uint8Array[] = []
    let bytes = 0
    const end = (isWhole: boolean) => resolve({ body: Buffer.concat(chunks).toString('utf8'), isWhole })
    if (bytesMax === 0) {
      answer.destroy()
      return end(false)
    }
    answer.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes <= bytesMax) return void chunks.push(chunk)
      end(false)
      answer.destroy()
    })
    answer.on('end', () => end(true))
    answer.on('error', () => end(false))
    answer.on('close', () => end(false))
  })
}

const HTTP = new HttpAgent({ keepAlive: true })
const HTTPS = new HttpsAgent({ keepAlive: true })
const RETRY_AFTER_MS_MAX = 3_600_000
