/** A small HTTP server of texts. Any client may ask it, so requests, times and connections are bounded. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'

export interface TextServerLimits {
  readonly connectionsMax: number
  /** How long a connection without a request stays open. */
  readonly keepAliveTimeout: number
}

/** A server that does not listen yet. */
export function textServer(
  { connectionsMax, keepAliveTimeout }: TextServerLimits,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Server {
  const server = createServer({ ...LIMITS, keepAliveTimeout }, answer)
  server.maxConnections = connectionsMax
  return server
}

/** Does nothing where the request was answered, or its client has gone. */
export function sendText(
  response: ServerResponse,
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, { ...HEADERS, 'content-length': Buffer.byteLength(body), ...headers }).end(body)
}

const HEADERS = {
  'content-type': 'text/plain; charset=utf-8',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
}
const LIMITS = {
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  maxHeaderSize: 8_192,
  connectionsCheckingInterval: 1_000,
}
