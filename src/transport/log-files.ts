/**
 * Serves the log's public files (c2sp.org/tlog-tiles) by the rules of HTTP caching: ETag and If-None-Match, HEAD,
 * gzip where it is asked for and worth it. The caller's `findFile` decides which file a path names.
 */

import type uWS from 'uWebSockets.js'
import { SignalError } from '../errors.ts'
import { HSTS } from './answer-head.ts'
import { FILE_PREFLIGHT_HEADERS, PREFLIGHT_MARK } from './cors.ts'
import type { PublicFile } from './route.ts'

/** The files of one server, and how they reach it. */
export interface FileSite {
  readonly find: (path: string) => PublicFile | undefined
  /** See `HttpServerDeps.mayReadFiles`. */
  readonly mayRead: (() => Promise<void> | undefined) | undefined
  /** Whether the server itself ends TLS; browsers are then told to stay with it. */
  readonly isTls: boolean
}

/** Whether a path is one of the log's files, or of those of its index, there or not. */
export function namesFile(path: string): boolean {
  return path.startsWith('/tile/') || path === '/checkpoint' || isOfIndex(path)
}

function isOfIndex(path: string): boolean {
  return path.startsWith('/index/tile/') || path === '/index/checkpoint'
}

/** Answers a request for a file: `find` says which one, if any. */
export function serveFile(res: uWS.HttpResponse, req: uWS.HttpRequest, site: FileSite): void {
  const { isTls } = site
  const [method, path] = [req.getCaseSensitiveMethod(), req.getUrl()]
  if (method === 'OPTIONS' && req.getHeader(PREFLIGHT_MARK) !== '') return sendPreflight(res, isTls)
  if (method !== 'GET' && method !== 'HEAD')
    return sendText(res, '405 Method Not Allowed', 'GET or HEAD only\n', { method: 'GET', isTls })
  // One spelling per resource: a path with a query is another resource (contract 9).
  const query = req.getQuery()
  if (query !== '' && query !== undefined) return sendNone(res, { method, isTls })
  const asked = {
    method,
    path,
    ifNoneMatch: req.getHeader('if-none-match'),
    acceptEncoding: req.getHeader('accept-encoding'),
  }
  let until: Promise<void> | undefined
  try {
    until = site.mayRead?.()
  } catch {
    return sendBusy(res, { method, isTls })
  }
  if (until === undefined) return answer(res, asked, site)
  const client = abortable(res)
  until
    .then(() => client.isGone || answer(res, asked, site, client))
    .catch(() => client.isGone || sendBusy(res, { method, isTls }))
}

/** The request, which does not outlive its handler. */
interface AskedFile {
  readonly method: string
  readonly path: string
  readonly ifNoneMatch: string
  readonly acceptEncoding: string
}

interface Client {
  readonly isGone: boolean
}

/** For an answer that comes later; once for each. */
function abortable(res: uWS.HttpResponse): Client {
  const client = { isGone: false }
  res.onAborted(() => {
    client.isGone = true
  })
  return client
}

function answer(
  res: uWS.HttpResponse,
  { method, path, ifNoneMatch, acceptEncoding }: AskedFile,
  { find, isTls }: FileSite,
  known?: Client,
): void {
  let file: PublicFile | undefined
  try {
    file = find(path)
  } catch (error) {
    if (!(error instanceof SignalError && error.code === 'INDEX_UNAVAILABLE')) throw error
    return sendText(res, '503 Service Unavailable', `${error.message}\n`, { method, isTls })
  }
  if (file === undefined) return sendNone(res, { method, isTls })
  if (file.gzip === undefined || !acceptsGzip(acceptEncoding)) {
    return sendFile(res, file, { method, isTls, ifNoneMatch })
  }
  const gzipped = file.gzip()
  if (gzipped instanceof Uint8Array) return sendFile(res, file, { method, isTls, ifNoneMatch, gzipped })
  const client = known ?? abortable(res)
  gzipped.then(
    late => client.isGone || sendFile(res, file, { method, isTls, ifNoneMatch, gzipped: late }),
    () => client.isGone || res.close(),
  )
}

interface SendOptions {
  readonly method: string
  readonly isTls: boolean
  readonly ifNoneMatch: string
  readonly gzipped?: Uint8Array
}

function sendFile(
  res: uWS.HttpResponse,
  file: PublicFile,
  { method, isTls, ifNoneMatch, gzipped }: SendOptions,
): void {
  const etag = gzipped === undefined ? file.etag : `${file.etag.slice(0, -1)}-gzip"`
  const isFresh = hasTag(ifNoneMatch, etag)
  const body = gzipped ?? file.bytes
  res.cork(() => {
    res.writeStatus(isFresh ? '304 Not Modified' : '200 OK')
    res.writeHeader('Content-Type', file.contentType)
    res.writeHeader('Cache-Control', file.cacheControl)
    res.writeHeader('ETag', etag)
    res.writeHeader('Access-Control-Allow-Origin', '*')
    res.writeHeader('X-Content-Type-Options', 'nosniff')
    if (isTls) res.writeHeader('Strict-Transport-Security', HSTS)
    if (file.gzip !== undefined) res.writeHeader('Vary', 'Accept-Encoding')
    if (gzipped !== undefined) res.writeHeader('Content-Encoding', 'gzip')
    if (isFresh) res.endWithoutBody()
    else if (method === 'HEAD') endHead(res, Buffer.byteLength(body))
    else res.end(body)
  })
}

/**
 * Ends the answer to a HEAD request. Not by `endWithoutBody(length)`: this version of uWebSockets takes that for no
 * answer at all and ends the process.
 */
export function endHead(res: uWS.HttpResponse, contentLength: number): void {
  res.writeHeader('Content-Length', String(contentLength))
  res.endWithoutBody()
}

function sendNone(res: uWS.HttpResponse, options: Pick<SendOptions, 'method' | 'isTls'>): void {
  sendText(res, '404 Not Found', 'not in the log\n', options)
}

function sendBusy(res: uWS.HttpResponse, options: Pick<SendOptions, 'method' | 'isTls'>): void {
  sendText(res, '503 Service Unavailable', 'cannot be read at the moment\n', options)
}

function sendText(
  res: uWS.HttpResponse,
  status: string,
  text: string,
  { method, isTls }: Pick<SendOptions, 'method' | 'isTls'>,
): void {
  res.cork(() => {
    res.writeStatus(status)
    res.writeHeader('Content-Type', 'text/plain; charset=utf-8')
    res.writeHeader('Cache-Control', 'no-store')
    res.writeHeader('Access-Control-Allow-Origin', '*')
    res.writeHeader('X-Content-Type-Options', 'nosniff')
    if (isTls) res.writeHeader('Strict-Transport-Security', HSTS)
    if (status.startsWith('405')) res.writeHeader('Allow', 'GET, HEAD')
    if (status.startsWith('503')) res.writeHeader('Retry-After', '1')
    if (method === 'HEAD') endHead(res, text.length)
    else res.end(text)
  })
}

/** A page whose request has a header of its own, such as a token that only lookups need, asks before it (Fetch, 4.8). */
function sendPreflight(res: uWS.HttpResponse, isTls: boolean): void {
  res.cork(() => {
    res.writeStatus('204 No Content')
    res.writeHeader('Access-Control-Allow-Origin', '*')
    for (const [name, value] of FILE_PREFLIGHT_HEADERS) res.writeHeader(name, value)
    if (isTls) res.writeHeader('Strict-Transport-Security', HSTS)
    res.endWithoutBody()
  })
}

/** RFC 9110 12.5.3, for gzip alone: named or covered by `*`, and not with weight 0. */
function acceptsGzip(header: string): boolean {
  if (header === '') return false
  const weights = new Map<string, boolean>()
  for (const item of header.toLowerCase().split(',')) {
    const [coding, ...parameters] = item.split(';').map(part => part.trim())
    const isRefused = parameters.some(parameter => /^q=0(\.0*)?$/.test(parameter))
    if (coding !== undefined) weights.set(coding, !isRefused)
  }
  return weights.get('gzip') ?? weights.get('*') ?? false
}

/** RFC 9110 13.1.2: weak comparison against a list of tags or `*`. */
function hasTag(header: string, etag: string): boolean {
  if (header === '') return false
  return header.split(',').some(item => {
    const tag = item.trim()
    return tag === '*' || tag === etag || tag === `W/${etag}`
  })
}
