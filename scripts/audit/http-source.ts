/**
 * Fetches files of a log over HTTP from a server that may be slow, overloaded or hostile: bodies are bounded before
 * they are buffered, redirects are not followed, and a request with all its retries ends after 30 seconds.
 *
 * An over-long body, broken gzip or an HTML page with status 200 is an answer that is not the file, and pending; redirects,
 * partial content, other statuses and bodies that never end are no answer at all.
 */

import { setMaxListeners } from 'node:events'
import { Agent as HttpAgent, get as httpGet, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, get as httpsGet } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib'
import { backOffMs } from '../../src/back-off.ts'
import { retryAfterMs } from '../../src/delivery/http-post.ts'
import { messageOf } from '../../src/errors.ts'
import { type AuditFailure, pending, unchecked } from './finding.ts'

export interface HttpLimits {
  /** One request with its retries. */
  readonly requestMs: number
  /** Without a byte for so long, a connection counts as lost. */
  readonly idleMs: number
  /** At most so long before the first retry; doubled for each next one, up to 16 times as long. */
  readonly backOffMs: number
  /** After a connection that failed; busy servers (429, 5xx) are asked until the time runs out. */
  readonly connectionRetriesMax: number
}

export const HTTP_LIMITS: HttpLimits = {
  requestMs: 30_000,
  idleMs: 15_000,
  backOffMs: 250,
  connectionRetriesMax: 3,
}

/**
 * The headers of a request: those of Node's own `fetch`, in its order and spelling, so that a log can't tell an auditor from a
 * client by them and show it another tree. Only on one machine there is no compression: it costs both sides more than
 * the bytes it saves.
 */
export function headersFor({ protocol, host, hostname }: URL): Readonly<Record<string, string>> {
  const encodings = protocol === 'https:' ? 'br, gzip, deflate' : 'gzip, deflate'
  return {
    host,
    connection: 'keep-alive',
    accept: '*/*',
    'accept-language': '*',
    'sec-fetch-mode': 'cors',
    'user-agent': 'node',
    'accept-encoding': LOOPBACK.test(hostname) ? 'identity' : encodings,
  }
}

export class HttpSource {
  /** The log's prefix, without a slash at its end. */
  readonly url: string
  readonly #limits: HttpLimits
  readonly #agent: HttpAgent
  readonly #get: typeof httpGet
  readonly #headers: Readonly<Record<string, string>>
  readonly #closing = new AbortController()
  readonly #stop: AbortSignal
  #files = 0
  #bytes = 0

  /** `requestsMax` connections at most. Everything under way rejects with the reason of `stop` when that is aborted. */
  constructor(url: URL, requestsMax: number, stop: AbortSignal, limits = HTTP_LIMITS) {
    this.url = url.href.replace(/\/+$/, '')
    this.#limits = limits
    this.#headers = headersFor(url)
    const isTls = url.protocol === 'https:'
    this.#get = isTls ? httpsGet : httpGet
    const options = { keepAlive: true, maxSockets: requestsMax }
    this.#agent = isTls ? new HttpsAgent(options) : new HttpAgent(options)
    this.#stop = AbortSignal.any([stop, this.#closing.signal])
    // Every request under way listens to it.
    setMaxListeners(0, this.#stop)
  }

  /** Files and bytes (as they are used, not as they were compressed) that came so far. */
  get received(): { readonly files: number; readonly bytes: number } {
    return { files: this.#files, bytes: this.#bytes }
  }

  /**
   * The body of `<prefix>/<path>`, of at most `bytesMax` bytes; undefined for 404. Throws `AuditFailure` of the check
   * `fetch` for everything else but a whole answer of status 200.
   */
  async read(path: string, bytesMax: number): Promise<Uint8Array | undefined> {
    const startedAtMs = performance.now()
    for (let retries = 0; ; retries++) {
      const leftMs = this.#limits.requestMs - (performance.now() - startedAtMs)
      const outcome = await this.#attempt(path, bytesMax, leftMs)
      if (outcome.kind === 'missing') return undefined
      if (outcome.kind === 'body') return this.#decoded(path, outcome, bytesMax)
      const firstMs = this.#limits.backOffMs
      const pauseMs = backOffMs({ firstMs, maxMs: 16 * firstMs }, retries + 1, Math.random())
      // A server that asks for no pause gets one all the same, and auditors that were refused together come back apart.
      const waitMs = (outcome.waitMs ?? 0) + pauseMs
      const isOver = outcome.isLost && retries >= this.#limits.connectionRetriesMax
      if (isOver || performance.now() - startedAtMs + waitMs >= this.#limits.requestMs) {
        throw unchecked('fetch', `${this.url}/${path}: ${outcome.reason}`)
      }
      await this.#wait(waitMs)
    }
  }

  /** Gives up everything under way and closes all connections. */
  close(): void {
    this.#closing.abort()
    this.#agent.destroy()
  }

  #attempt(path: string, bytesMax: number, leftMs: number): Promise<Outcome> {
    this.#stop.throwIfAborted()
    return new Promise((resolve, reject) => {
      const lost = (error: Error) => {
        if (this.#stop.aborted) reject(this.#stop.reason)
        else resolve({ kind: 'retry', reason: error.message, isLost: true })
      }
      const request = this.#get(`${this.url}/${path}`, {
        agent: this.#agent,
        headers: this.#headers,
        signal: this.#stop,
        timeout: this.#limits.idleMs,
      })
      const deadline = setTimeout(() => {
        request.destroy(new Error(`not complete after ${this.#limits.requestMs / 1000} s`))
      }, leftMs)
      request.once('close', () => clearTimeout(deadline))
      request.once('timeout', () => request.destroy(new Error(`no byte for ${this.#limits.idleMs / 1000} s`)))
      // A connection can fail more than once; the first failure settles the promise.
      request.on('error', lost)
      request.once('response', response => {
        response.on('error', lost)
        if (response.statusCode === 200) {
          this.#collect(response, path, bytesMax).then(resolve, reject)
          return
        }
        // The body of another answer is of no use, and may be endless.
        response.destroy()
        const outcome = this.#judgeStatus(path, response)
        if ('kind' in outcome) resolve(outcome)
        else reject(outcome)
      })
    })
  }

  #judgeStatus(path: string, { statusCode = 0, headers }: IncomingMessage): Outcome | AuditFailure {
    if (statusCode === 404 || statusCode === 410) return { kind: 'missing' }
    const reason = `answers ${statusCode}`
    if (statusCode === 429 || statusCode >= 500) {
      const waitMs = retryAfterMs(headers['retry-after'] ?? null, Date.now())
      return { kind: 'retry', reason, isLost: false, waitMs }
    }
    const target = headers.location === undefined ? '' : ` to ${headers.location}, which is not followed`
    return unchecked('fetch', `${this.url}/${path}: ${reason}${target}`)
  }

  /** Resolves with the whole body as it was sent; never when the connection is lost before its end. */
  #collect(response: IncomingMessage, path: string, bytesMax: number): Promise<Outcome> {
    const { headers } = response
    // Both are written in any case (RFC 9110, 8.3.1 and 8.4.1).
    const encoding = headers['content-encoding']?.toLowerCase() ?? 'identity'
    const isHtml = headers['content-type']?.toLowerCase().startsWith('text/html') === true
    // Compressed bytes are never more than the plain ones and a little; a bomb is caught when it is unpacked.
    const sentBytesMax = encoding === 'identity' ? bytesMax : bytesMax + GZIP_OVERHEAD_BYTES
    return new Promise((resolve, reject) => {
      const refuse = (reason: string) => {
        response.destroy()
        reject(pending('fetch', `${this.url}/${path}: ${reason}`))
      }
      if (isHtml) return refuse('an HTML page with status 200')
      const unpack = UNPACK.get(encoding)
      if (encoding !== 'identity' && unpack === undefined) return refuse(`nobody asked for ${encoding}`)
      const chunks: Buffer[] = []
      let length = 0
      response.on('data', (chunk: Buffer) => {
        length += chunk.length
        if (length > sentBytesMax) return refuse(`more than the ${bytesMax} bytes it can have`)
        chunks.push(chunk)
      })
      response.once('end', () => {
        const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length)
        resolve({ kind: 'body', bytes, unpack })
      })
    })
  }

  #decoded(path: string, { bytes, unpack }: Body, bytesMax: number): Uint8Array {
    const body = unpack === undefined ? bytes : this.#unpacked(path, () => unpack(bytes, bytesMax))
    this.#files++
    this.#bytes += body.length
    return body
  }

  #unpacked(path: string, unpack: () => Uint8Array): Uint8Array {
    try {
      return unpack()
    } catch (error) {
      throw pending('fetch', `${this.url}/${path}: broken compression, or too long: ${messageOf(error)}`)
    }
  }

  async #wait(ms: number): Promise<void> {
    try {
      await sleep(ms, undefined, { signal: this.#stop })
    } catch {
      throw this.#stop.reason
    }
  }
}

type Unpack = (bytes: Uint8Array, bytesMax: number) => Uint8Array

interface Body {
  readonly kind: 'body'
  readonly bytes: Uint8Array
  readonly unpack: Unpack | undefined
}

type Outcome =
  | Body
  | { readonly kind: 'missing' }
  | {
      readonly kind: 'retry'
      readonly reason: string
      /** The connection failed, rather than the server asking for patience. */
      readonly isLost: boolean
      readonly waitMs?: number | undefined
    }

const UNPACK: ReadonlyMap<string, Unpack> = new Map<string, Unpack>([
  ['gzip', (bytes, maxOutputLength) => gunzipSync(bytes, { maxOutputLength })],
  ['br', (bytes, maxOutputLength) => brotliDecompressSync(bytes, { maxOutputLength })],
  ['deflate', (bytes, maxOutputLength) => inflateSync(bytes, { maxOutputLength })],
])
const LOOPBACK = /^(?:localhost|127\.[0-9.]+|\[::1\])$/
const GZIP_OVERHEAD_BYTES = 1_024
