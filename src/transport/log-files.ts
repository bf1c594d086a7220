/**
 * Serves the log's public files (c2sp.org/tlog-tiles) by the rules of HTTP caching: ETag and If-None-Match, HEAD,
 * gzip where it is asked for and worth it. The caller's `findFile` decides which file a path names.
 */

import type uWS from 'uWebSockets.js'
import { HSTS } from './answer-head.ts'
import { FILE_PREFLIGHT_HEADERS, PREFLIGHT_MARK } from './cors.ts'
import type { PublicFile } from './route.ts'

/** The files of one server, and how they reach it. */
export interface FileSite {
  readonly find: (path: string) => PublicFile | undefined
  /** Whether the server itself ends TLS; browsers are then told to stay with it. */
  readonly isTls: boolean
}

/** Answers a request for a file: `find` says which one, if any. */
export function serveFile(
  res: uWS.HttpResponse,
  req: uWS.HttpRequest,
  method: string,
  path: string,
  { find, isTls }: FileSite,
): void {
  if (method === 'OPTIONS' && req.getHeader(PREFLIGHT_MARK) !== '') return sendPreflight(res, isTls)
  if (method !== 'GET' && method !== 'HEAD')
    return sendText(res, '405 Method Not Allowed', 'GET or HEAD only\n', { method: 'GET', isTls })
  // One spelling per resource: a path with a query is another one (contract 9).
  const query = req.getQuery()
  const file = query === '' || query === undefined ? find(path) : undefined
  if (file === undefined) return sendText(res, '404 Not Found', 'not in the log\n', { method, isTls })

  const ifNoneMatch = req.getHeader('if-none-match')
  if (file.gzip === undefined || !acceptsGzip(req.getHeader('accept-encoding'))) {
    return sendFile(res, file, { method, isTls, ifNoneMatch })
  }
  const gzipped = file.gzip()
  if (gzipped instanceof Uint8Array) return sendFile(res, file, { method, isTls, ifNoneMatch, gzipped })
  let isAborted = false
  res.onAborted(() => {
    isAborted = true
  })
  gzipped.then(
    late => isAborted || sendFile(res, file, { method, isTls, ifNoneMatch, gzipped: late }),
    () => isAborted || res.close(),
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

function sendText(
  res: uWS.HttpResponse,
  status: string,
  text: string,
  { method, isTls }: { readonly method: string; readonly isTls: boolean },
): void {
  res.cork(() => {
    res.writeStatus(status)
    res.writeHeader('Content-Type', 'text/plain; charset=utf-8')
    res.writeHeader('Cache-Control', 'no-store')
    res.writeHeader('Access-Control-Allow-Origin', '*')
    res.writeHeader('X-Content-Type-Options', 'nosniff')
    if (isTls) res.writeHeader('Strict-Transport-Security', HSTS)
    if (status.startsWith('405')) res.writeHeader('Allow', 'GET, HEAD')
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
