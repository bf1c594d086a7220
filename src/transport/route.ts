/** Routes, what they are asked and answer, and public files: plain data, without the library that carries it. */

import type { SignalError } from '../errors.ts'

export interface HttpRequest {
  readonly method: string
  /** As it was asked for, without the query. */
  readonly path: string
  /** The values of the route's `{name}` segments, in their order, percent-decoded. */
  readonly params: readonly string[]
  /** The text after the question mark, as sent; empty for none. */
  readonly query: string
  readonly requestId: string
  readonly contentType: string
  /** A header that the route names in `headers`, by its lower-case name; empty when it was not sent. */
  readonly header: (name: string) => string
  /** The client's network, seen through trusted proxies (see `networkOf`). Valid until: the answer. */
  readonly network: string
  /** Empty for none. Valid until: the handler returns, when its memory goes back. */
  readonly body: Uint8Array
}

/**
 * Whole, or made part by part while the client reads. Parts have some tens of kilobytes. `return` of their iterator is called
 * when the client goes; where `next` rejects after the first part, the client gets an answer that was cut off.
 */
export type AnswerBody = string | Uint8Array | AsyncIterable<Uint8Array>

export interface HttpAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: AnswerBody
  /** Adds `Cache-Control: no-store`. */
  readonly noStore?: boolean
  readonly headers?: readonly (readonly [string, string])[] | undefined
}

export interface HttpRoute {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** The canonical path, such as `/app/api/devices/{deviceId}`; also the route's name in metrics. */
  readonly path: string
  /** Other spellings of the path, with the same `{name}` segments in the same order. */
  readonly aliases?: readonly string[]
  /** Spellings that will go: answers say so, and name the canonical path (RFC 9745). `since` is in Unix seconds. */
  readonly deprecatedAliases?: readonly { readonly path: string; readonly since: number }[]
  /**
   * Lower-case names of the headers that the handler reads. `x-forwarded-*` stands for all that begin so: its text is their
   * names, empty for none.
   */
  readonly headers?: readonly string[]
  /** `BODY_BYTES_MAX` where it is left out. */
  readonly bodyBytesMax?: number
  /** Whether clients that are too old are turned away. */
  readonly isVersionChecked?: boolean
  /**
   * The token that a request counts for; the address alone where it is left out. A refresh token is in the body. With
   * `good-token` an access token that is not good counts as none, and the answer is the same with any token.
   */
  readonly countsFor?: 'access-token' | 'good-token' | 'refresh-token'
  /** Whether a request counts against the address as a look-up in the log, too. */
  readonly isLookup?: boolean
  /** Whether a request counts against nothing. */
  readonly isUncounted?: boolean
  /**
   * Looks at the head of a request, before any of its body is taken. Throws the refusal of one whose body need not be read.
   */
  readonly admit?: (request: Pick<HttpRequest, 'header' | 'network'>) => void
  /** Throws or rejects with a `SignalError` for what the peer may hear of. */
  readonly handle: (request: HttpRequest) => HttpAnswer | Promise<HttpAnswer>
}

/** The rate that a request counts against before its body is read. */
export type AdmissionScope = 'log-files' | 'lookup' | 'request'

/** Counts requests by network (of `networkOf`) and by token. Refusals are `RATE_LIMITED`. */
export interface RequestAdmission {
  /**
   * A request before its body is read. `authorization` is empty where its route does not go by it. Throws, also
   * `TOKEN_INVALID` for a token that this server has not made.
   */
  admit(network: string, scope: AdmissionScope, authorization: string): void
  /** Whether the session of the header's access token accepts it now. */
  isGood(authorization: string): boolean
  /** A request for new tokens, whose body has the old one. Throws. */
  admitRefresh(network: string, body: Uint8Array): void
  /** A WebSocket that is to be opened. Returns the refusal. */
  admitSocket(network: string): SignalError | undefined
  /** The token of a request that was admitted is not accepted. */
  onTokenRefused(network: string, authorization: string): void
}

/** A file of the log, as it is served. */
export interface PublicFile {
  /** Send at once: the bytes may belong to the store, until its next read. */
  readonly bytes: string | Uint8Array
  readonly contentType: string
  readonly cacheControl: string
  /** A strong entity tag with its quotes. */
  readonly etag: string
  /** The gzip form, for files that shrink. */
  readonly gzip?: () => Uint8Array | Promise<Uint8Array>
}
