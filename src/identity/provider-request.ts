/**
 * A request to an identity provider: bounded in time and in bytes, answered at its own address or not at all. The
 * caller judges the answer's content.
 */

import { SignalError } from '../errors.ts'

/** The standard `fetch`. */
export type Fetch = typeof globalThis.fetch

/** Clock and network that a provider's tokens and requests depend on. */
export interface ProviderDeps {
  /** Wall clock, milliseconds since 1970. */
  nowMs(): number
  /** The process's own when left out. */
  readonly fetch?: Fetch
}

export interface ProviderRequest {
  readonly method: 'GET' | 'POST'
  /** Sent as `application/x-www-form-urlencoded`. */
  readonly form?: Readonly<Record<string, string>>
  /** Ends the request and the reading of its answer. */
  readonly signal: AbortSignal
}

export interface ProviderAnswer {
  readonly status: number
  /** The JSON value of the body, undefined when the body is none. */
  readonly json: unknown
}

/**
 * Sends a request and reads its whole answer, whatever the status. Rejects with `PROVIDER_UNAVAILABLE` when no answer
 * came in time, when it is a redirect or longer than `ANSWER_BYTES_MAX`.
 */
export async function askProvider(
  url: string,
  request: ProviderRequest,
  fetch: Fetch = globalThis.fetch,
): Promise<ProviderAnswer> {
  try {
    // A redirect would let the answering host choose another host for keys, codes and our client secret.
    const answer = await fetch(url, { ...initOf(request), redirect: 'error', signal: request.signal })
    return { status: answer.status, json: parseJson(await readText(answer)) }
  } catch (cause) {
    throw new SignalError('PROVIDER_UNAVAILABLE', `${url} gives no answer`, { cause })
  }
}

function initOf({ method, form }: ProviderRequest): RequestInit {
  const headers = { accept: 'application/json' }
  return form === undefined ? { method, headers } : { method, headers, body: new URLSearchParams(form) }
}

async function readText(answer: Response): Promise<string> {
  const pieces: Uint8Array[] = []
  let length = 0
  // Leaving the loop early cancels the body, so an endless one costs no more than the bound.
  for await (const piece of answer.body ?? []) {
    length += piece.length
    if (length > ANSWER_BYTES_MAX) throw new Error(`the answer has more than ${ANSWER_BYTES_MAX} bytes`)
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The members of a JSON object, none when `value` is something else. */
export function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}

/** The largest key sets known, of tenants with certificate chains in them, have some 20 kB. */
const ANSWER_BYTES_MAX = 128 * 1024
/** From the first byte sent to the last one read (contract 2.6). */
export const REQUEST_TIMEOUT_MS = 5_000
