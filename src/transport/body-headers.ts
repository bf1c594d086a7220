/**
 * What a request says of its body, and where it ends (RFC 9112, section 6). uWebSockets.js takes some requests that two readers
 * could end at two places: behind a proxy that reads the other one, a client's bytes would pass for another client's
 * request (11.2).
 */

import type uWS from 'uWebSockets.js'

export interface BodyHeaders {
  /** The first value of each header; empty for none. */
  readonly contentLength: string
  readonly contentType: string
  readonly contentEncoding: string
  /** The fault in the headers that say where the request ends, as a sentence; undefined when there is none. */
  readonly fault: string | undefined
}

/**
 * Reads them. Choice: GET and HEAD are looked through only when they name a length or a coding: without either
 * uWebSockets reads no body, and `forEach` costs half a microsecond for each header.
 */
export function readBodyHeaders(req: uWS.HttpRequest, method: string): BodyHeaders {
  const isUsuallyEmpty = method === 'GET' || method === 'HEAD'
  if (isUsuallyEmpty && req.getHeader('content-length') === '' && req.getHeader('transfer-encoding') === '')
    return NO_BODY
  lengths = codings = hosts = 0
  length = coding = type = encoding = ''
  req.forEach(keepHeader)
  return { contentLength: length, contentType: type, contentEncoding: encoding, fault: faultOfKept() }
}

/** As `fault`, for a WebSocket upgrade: frames follow it, no body. */
export function upgradeFault(req: uWS.HttpRequest): string | undefined {
  const { fault, contentLength } = readBodyHeaders(req, 'GET')
  if (fault !== undefined) return fault
  const isEmpty = (contentLength === '' || contentLength === '0') && req.getHeader('transfer-encoding') === ''
  return isEmpty ? undefined : 'a WebSocket upgrade has no body'
}

// Fields that `keepHeader` fills for a request: a closure for each request would cost more.
let lengths = 0
let codings = 0
let hosts = 0
let length = ''
let coding = ''
let type = ''
let encoding = ''

function keepHeader(name: string, value: string): void {
  switch (name) {
    case 'content-length':
      if (lengths++ === 0) length = value
      break
    case 'transfer-encoding':
      if (codings++ === 0) coding = value
      break
    case 'host':
      hosts++
      break
    case 'content-type':
      if (type === '') type = value
      break
    case 'content-encoding':
      if (encoding === '') encoding = value
  }
}

function faultOfKept(): string | undefined {
  if (hosts > 1) return 'send one Host header'
  if (codings + lengths > 1) return 'send one Content-Length or one Transfer-Encoding: chunked'
  if (codings === 1 && coding.toLowerCase() !== 'chunked') return 'the only Transfer-Encoding here is chunked'
  if (lengths === 1 && !DIGITS.test(length)) return 'Content-Length is a number of bytes'
  return undefined
}

const DIGITS = /^\d+$/
const NO_BODY: BodyHeaders = { contentLength: '', contentType: '', contentEncoding: '', fault: undefined }
