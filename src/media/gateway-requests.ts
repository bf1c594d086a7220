/**
 * Requests to a gateway's API over HTTP, with JSON in both directions. Limited are the time and the size of each answer, and the
 * number of requests under way and waiting. Errors quote neither request nor answer.
 */

import { GatewayError } from './gateway.ts'

/** Hears of each request, for the metrics; `outcome` is `ok` or a `GatewayFailure`. */
export type OnRequest = (outcome: string, ms: number) => void

export type Members = Readonly<Record<string, unknown>>

interface ApiRequest {
  readonly url: string
  readonly authorization?: string
  readonly body: Members
}

interface ApiAnswer {
  readonly status: number
  readonly members: Members
}

export class GatewayRequests {
  /** For errors. */
  readonly #gateway: string
  readonly #onRequest: OnRequest | undefined
  readonly #waiting: (() => void)[] = []
  #underWay = 0

  constructor(gateway: 'janus' | 'livekit', onRequest: OnRequest | undefined) {
    this.#gateway = gateway
    this.#onRequest = onRequest
  }

  /** The answer, whatever its status is. */
  async post(request: ApiRequest): Promise<ApiAnswer> {
    await this.#turn()
    const startedAtMs = performance.now()
    const note = (outcome: string) => this.#onRequest?.(outcome, performance.now() - startedAtMs)
    try {
      const answer = await this.#send(request)
      note('ok')
      return answer
    } catch (error) {
      note(error instanceof GatewayError ? error.failure : 'network')
      throw error
    } finally {
      this.#underWay--
      this.#waiting.shift()?.()
    }
  }

  async #turn(): Promise<void> {
    if (this.#underWay >= UNDER_WAY_MAX) {
      if (this.#waiting.length >= WAITING_MAX)
        throw new GatewayError('busy', `too much waits for ${this.#gateway}`)
      await new Promise<void>(resolve => this.#waiting.push(resolve))
    }
    this.#underWay++
  }

  async #send({ url, authorization, body }: ApiRequest): Promise<ApiAnswer> {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const headers = { 'content-type': 'application/json', ...(authorization && { authorization }) }
    let status: number
    let text: string
    try {
      const answer = await fetch(url, {
        ...{ method: 'POST', redirect: 'error', headers, signal },
        body: JSON.stringify(body),
      })
      status = answer.status
      text = await this.#read(answer)
    } catch (error) {
      if (error instanceof GatewayError) throw error
      // The cause may quote the address.
      if (signal.aborted) throw new GatewayError('timeout', `${this.#gateway} does not answer`)
      throw new GatewayError('network', `${this.#gateway} can not be reached`)
    }
    // From a proxy that does not reach the gateway.
    if (status >= 502 && status <= 504)
      throw new GatewayError('network', `${this.#gateway} answers status ${status}`)
    if (status === 401 || status === 403)
      throw new GatewayError('refused', `${this.#gateway} answers status ${status}`)
    const members = parsed(text)
    if (members === undefined) throw new GatewayError('malformed', `${this.#gateway} answered no JSON object`)
    return { status, members }
  }

  async #read({ body }: Response): Promise<string> {
    const chunks: Uint8Array[] = []
    let bytes = 0
    for await (const chunk of body ?? []) {
      bytes += chunk.length
      if (bytes > ANSWER_BYTES_MAX)
        throw new GatewayError('malformed', `${this.#gateway} answers without end`)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks).toString('utf8')
  }
}

function parsed(text: string): Members | undefined {
  try {
    return membersOf(JSON.parse(text))
  } catch {
    return undefined
  }
}

export function membersOf(value: unknown): Members | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Members) : undefined
}

/** A list from outside; any other value counts as an empty one. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

const TIMEOUT_MS = 1_500
const UNDER_WAY_MAX = 32
const WAITING_MAX = 10_000
/** A list of 10,000 rooms has about 5 MB at Janus, and 10 MB at LiveKit. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024
