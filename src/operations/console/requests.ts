/**
 * The last requests to a development server, for the console: a row for each with its outcome, and on demand the
 * bodies without their secrets. Bodies are kept raw and parsed only when read, so that a request costs one object.
 */

import { SignalError } from '../../errors.ts'
import { Recent } from '../../recent.ts'
import type { ServedRequest, ShownRequest } from '../../transport/http-deps.ts'
import type { HttpRoute } from '../../transport/route.ts'
import { jsonAnswer } from '../page-route.ts'
import type { RequestDetail, RequestRow } from './events.ts'

/** How requests are shown without secrets; what bodies are made of is the API's. */
export interface RequestReader {
  readonly pathOf: (path: string) => string
  readonly queryOf: (query: string) => string
  /** Undefined for a body that is no JSON. */
  readonly textOf: (body: Uint8Array) => string | undefined
  /** Pointers to members that the operation at this method and route does not know. */
  readonly unknownFieldsOf: (method: string, route: string, body: Uint8Array) => readonly string[]
}

type Requester = NonNullable<ShownRequest['requester']>

interface Kept extends Omit<ShownRequest, 'body' | 'answer'> {
  readonly sequence: number
  readonly atMs: number
  /** Undefined where it is too long, or has made room for newer ones. */
  body: Uint8Array | undefined
  answer: string | Uint8Array | undefined
}

export class RequestLog {
  readonly #nowMs: () => number
  readonly #bounds: typeof BOUNDS
  /** Oldest first. */
  #kept: Kept[] = []
  /** Bytes of the kept bodies, which belong to the newest requests. */
  #bytes = 0
  #sequence = 0
  /** By request id, of requests that are not answered yet. */
  readonly #requesters = new Recent<string, Requester>(REQUESTERS_MAX)
  #reader: RequestReader | undefined

  constructor(nowMs: () => number, bounds: Partial<typeof BOUNDS> = {}) {
    this.#nowMs = nowMs
    this.#bounds = { ...BOUNDS, ...bounds }
  }

  /** The newest row's number; 0 before the first. */
  get sequence(): number {
    return this.#sequence
  }

  /** Size of the kept rows and bodies. */
  get size(): { readonly rows: number; readonly bytes: number } {
    return { rows: this.#kept.length, bytes: this.#bytes }
  }

  /** The request's token was good; its answer comes to `add` or `put`. */
  readonly noteRequester = ({ requestId }: { readonly requestId: string }, requester: Requester): void => {
    this.#requesters.set(requestId, requester)
  }

  /** Returns false for requests of the console and other pages of a development server, which are many, and ours. */
  add({ body, answer, ...served }: ServedRequest): boolean {
    if (OWN_PAGES.test(served.path)) return false
    this.put({
      ...served,
      requester: undefined,
      bodyBytes: body.length,
      body: body.length <= BODY_BYTES_MAX ? body : undefined,
      answer: served.answerBytes <= BODY_BYTES_MAX ? answer : undefined,
    })
    return true
  }

  /** A request that a front has answered, as its own log had it. */
  put(shown: ShownRequest): void {
    const { requestId } = shown
    this.#sequence += 1
    const kept: Kept = {
      ...shown,
      sequence: this.#sequence,
      atMs: this.#nowMs(),
      requester: shown.requester ?? this.#requesters.get(requestId),
    }
    this.#requesters.delete(requestId)
    this.#kept.push(kept)
    this.#bytes += bytesOf(kept)
    if (this.#kept.length > this.#bounds.rowsMax) this.#bytes -= bytesOf(this.#kept.shift()!)
    if (this.#bytes > this.#bounds.bytesMax) this.#forgetBodies()
  }

  /** The kept requests, which are forgotten by it. */
  take(): readonly ShownRequest[] {
    const taken = this.#kept
    this.#kept = []
    this.#bytes = 0
    return taken
  }

  /** The JSON of those after one, oldest first, at most the newest `countMax` of them. */
  rowsAfter(after: number, countMax: number): readonly string[] {
    const reader = this.#reader
    if (reader === undefined) return []
    const isNew = Math.min(this.#sequence - after, countMax)
    return isNew <= 0 ? [] : this.#kept.slice(-isNew).map(kept => JSON.stringify(rowOf(kept, reader)))
  }

  /** One request with its bodies. After this, `reader` reads requests. */
  route(reader: RequestReader): HttpRoute {
    this.#reader = reader
    return {
      method: 'GET',
      path: '/dev/requests/{sequence}',
      handle: ({ params: [sequence] }) => {
        const kept = this.#kept.find(each => String(each.sequence) === sequence)
        if (kept === undefined) throw new SignalError('NOT_FOUND', 'this request is no longer kept')
        return jsonAnswer(200, JSON.stringify(detailOf(kept, reader)))
      },
    }
  }

  #forgetBodies(): void {
    for (const kept of this.#kept) {
      this.#bytes -= bytesOf(kept)
      kept.body = undefined
      kept.answer = undefined
      if (this.#bytes <= this.#bounds.bytesMax) return
    }
  }
}

function bytesOf({ body, answer }: Kept): number {
  return (body?.length ?? 0) + (answer?.length ?? 0)
}

function rowOf(kept: Kept, reader: RequestReader): RequestRow {
  const { sequence, atMs, method, path, query, status, code, pointer, seconds, requestId, requester } = kept
  const shownPath = reader.pathOf(path.slice(0, PATH_CHARS_MAX))
  const shownQuery = query === '' ? '' : `?${reader.queryOf(query.slice(0, PATH_CHARS_MAX))}`
  const unknown =
    kept.body === undefined || kept.bodyBytes === 0
      ? []
      : reader.unknownFieldsOf(method, kept.route, kept.body)
  return {
    sequence,
    atMs,
    method: method.slice(0, METHOD_CHARS_MAX),
    path: shownPath + shownQuery,
    status,
    ...(code === undefined ? {} : { code }),
    ...(pointer === undefined ? {} : { pointer: reader.pathOf(pointer.slice(0, PATH_CHARS_MAX)) }),
    ms: Math.round(seconds * 10_000) / 10,
    requestId,
    ...(unknown.length === 0 ? {} : { unknownFields: unknown }),
    ...(requester === undefined ? {} : { userId: `${requester.userId}` }),
    ...(requester?.deviceId === undefined ? {} : { deviceId: `${requester.deviceId}` }),
  }
}

function detailOf(kept: Kept, reader: RequestReader): RequestDetail {
  const { route, contentType, body, bodyBytes, answer, answerBytes, answerType } = kept
  return {
    ...rowOf(kept, reader),
    route,
    request: shown(body, bodyBytes, contentType, reader),
    answer: shown(typeof answer === 'string' ? Buffer.from(answer) : answer, answerBytes, answerType, reader),
  }
}

/** A body as text, or a sentence in parentheses in its place. */
function shown(
  body: Uint8Array | undefined,
  bytes: number,
  contentType: string,
  reader: RequestReader,
): string {
  if (bytes === 0) return ''
  if (body === undefined) return `(${bytes} bytes, not kept)`
  const text = reader.textOf(body)
  // The media type is a text of the sender's.
  const type = /^[\w.+/-]{1,60}/.exec(contentType)?.[0] ?? 'no media type'
  if (text === undefined) return `(${bytes} bytes, ${type}, no JSON)`
  return text.length <= TEXT_CHARS_MAX
    ? text
    : `${text.slice(0, TEXT_CHARS_MAX)}\n(cut: ${bytes} bytes in all)`
}

const OWN_PAGES = /^\/(?:dev|docs)(?:\/|$)|^\/$/
/** `bytesMax` is the sum over all bodies. */
const BOUNDS = { rowsMax: 300, bytesMax: 4_000_000 }
/** More than are answered at the same time. */
const REQUESTERS_MAX = 1_000
/** Limit for one body. */
const BODY_BYTES_MAX = 32_768
const TEXT_CHARS_MAX = 12_000
const PATH_CHARS_MAX = 300
const METHOD_CHARS_MAX = 16
