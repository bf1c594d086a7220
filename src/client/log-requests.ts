/**
 * The log's HTTP operations as a client uses them, over any `fetch`. Answers are not verified here, only bounded in
 * time and in bytes. Every operation rejects with `NoAnswer` when nothing came back that could be verified.
 */

import { messageOf } from '../errors.ts'
import { PUBLIC_KEY_CHARS_MAX, VRF_HASH_CHARS } from '../log/entry.ts'
import { HASH_BYTES } from '../log/hash.ts'
import { formatTilePath, parseBundle, TILE_WIDTH, type Tile } from '../log/tile.ts'

/** The part of the standard `fetch` in use. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchAnswer>

export interface FetchInit {
  readonly method: string
  readonly headers: Record<string, string>
  readonly body?: string
  readonly redirect: 'error'
  readonly signal: AbortSignal
}

/** React Native answers without a `body` to read from piece by piece. */
export interface FetchAnswer {
  readonly status: number
  readonly body?: { getReader?(): BodyReader } | null
  arrayBuffer(): Promise<ArrayBuffer>
  text(): Promise<string>
}

interface BodyReader {
  read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>
  cancel(): Promise<void>
}

/** No network, a refusal of the server, or an answer of something that is not the log's server. */
export class NoAnswer extends Error {
  /** The HTTP status, when there was one. */
  readonly status: number | undefined
  /** The code of the server's problem document (contract 1.5), when there was one. */
  readonly code: string | undefined

  constructor(message: string, status?: number, code?: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

/** `url` is the log's prefix; a request with its answer may take `timeoutMs`. */
export class LogRequests {
  readonly #prefix: string
  readonly #fetch: Fetch
  readonly #timeoutMs: number

  constructor(url: string, fetch: Fetch, timeoutMs: number) {
    this.#prefix = url.replace(/\/+$/, '')
    // A browser's fetch refuses to be called as a method of anything but the window.
    this.#fetch = (target, init) => fetch(target, init)
    this.#timeoutMs = timeoutMs
  }

  /** The JSON that answers a POST of `body`. */
  post(path: string, body: unknown): Promise<unknown> {
    const request = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }
    return this.#request(path, request, async answer => {
      const text = await readText(answer, ANSWER_BYTES_MAX)
      if (answer.status !== 200)
        throw new NoAnswer(`${path} answers ${answer.status}`, answer.status, codeIn(text))
      const value = parseJson(text)
      if (value === undefined) throw new NoAnswer(`${path} answers something else than JSON`, answer.status)
      return value
    })
  }

  /** The log's current signed note. */
  checkpoint(): Promise<string> {
    return this.#request('checkpoint', GET, answer => {
      if (answer.status === 200) return readText(answer, NOTE_BYTES_MAX)
      throw new NoAnswer(`checkpoint answers ${answer.status}`, answer.status)
    })
  }

  /**
   * The hashes of a tile, or a bundle of entries. A log may drop a partial one once it has the full one, which begins with it.
   */
  async tile(tile: Tile): Promise<Uint8Array> {
    try {
      return await this.#tile(tile, tile.width)
    } catch (error) {
      if (tile.width === TILE_WIDTH || (error as NoAnswer).status === undefined) throw error
      return this.#tile({ ...tile, width: TILE_WIDTH }, tile.width)
    }
  }

  /** The beginning of a tile, as wide as asked for. */
  #tile(tile: Tile, width: number): Promise<Uint8Array> {
    const path = formatTilePath(tile)
    const bytesMax = tile.width * (tile.level === 'entries' ? ENTRY_BYTES_MAX : HASH_BYTES)
    return this.#request(path, GET, async answer => {
      const { status } = answer
      if (status !== 200) throw new NoAnswer(`${path} answers ${status}`, status)
      const bytes = await readBytes(answer, bytesMax)
      const end = beginningEnd(tile, bytes, width)
      if (end !== undefined) return bytes.subarray(0, end)
      throw new NoAnswer(`${path} has ${bytes.length} bytes, which are not ${tile.width} parts`, status)
    })
  }

  async #request<Value>(
    path: string,
    request: Omit<FetchInit, 'redirect' | 'signal'>,
    read: (answer: FetchAnswer) => Promise<Value>,
  ): Promise<Value> {
    const abort = new AbortController()
    const timer = setTimeout(() => abort.abort(), this.#timeoutMs)
    try {
      const url = `${this.#prefix}/${path}`
      return await read(await this.#fetch(url, { ...request, redirect: 'error', signal: abort.signal }))
    } catch (error) {
      if (error instanceof NoAnswer) throw error
      if (abort.signal.aborted) throw new NoAnswer(`${path} was not answered in ${this.#timeoutMs} ms`)
      throw new NoAnswer(`${path} cannot be fetched: ${messageOf(error)}`)
    } finally {
      clearTimeout(timer)
    }
  }
}

/** Where the first `width` hashes or entries of a tile end; undefined where it has not as many in all as its path says. */
function beginningEnd(tile: Tile, bytes: Uint8Array, width: number): number | undefined {
  if (tile.level !== 'entries')
    return bytes.length === tile.width * HASH_BYTES ? width * HASH_BYTES : undefined
  const entries = parseBundle(bytes)
  const last = entries[width - 1]
  if (entries.length !== tile.width || last === undefined) return undefined
  return last.byteOffset + last.length - bytes.byteOffset
}

/** Where an engine has no TextDecoder, as React Native's, its answers cannot be read piece by piece either. */
async function readText(answer: FetchAnswer, bytesMax: number): Promise<string> {
  if (typeof TextDecoder === 'undefined') return answer.text()
  return new TextDecoder().decode(await readBytes(answer, bytesMax))
}

async function readBytes(answer: FetchAnswer, bytesMax: number): Promise<Uint8Array> {
  const reader = answer.body?.getReader?.()
  const pieces: Uint8Array[] = []
  if (reader === undefined) pieces.push(new Uint8Array(await answer.arrayBuffer()))
  let length = pieces[0]?.length ?? 0
  for (let read = await reader?.read(); read?.value !== undefined; read = await reader?.read()) {
    pieces.push(read.value)
    length += read.value.length
    if (length > bytesMax) break
  }
  if (length > bytesMax) {
    await reader?.cancel()
    throw new NoAnswer(`an answer has more than ${bytesMax} bytes`, answer.status)
  }
  const bytes = new Uint8Array(length)
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function codeIn(problem: string): string | undefined {
  const { code }: { code?: unknown } = { ...(parseJson(problem) as object) }
  return typeof code === 'string' ? code : undefined
}

const GET = { method: 'GET', headers: {} }
/** The longest key history, a thousand keys of 1,024 characters, has 2.3 MB in a log of a million entries. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024
const NOTE_BYTES_MAX = 1_000_000
/** In a bundle, with its length, of the longest key that Register takes. */
const ENTRY_BYTES_MAX = 2 + VRF_HASH_CHARS + 1 + PUBLIC_KEY_CHARS_MAX + 1
