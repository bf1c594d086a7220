/**
 * A witness over HTTP: `POST /add-checkpoint`, and `GET /<hex SHA-256 of the origin>/checkpoint` for monitors. Any client
 * may ask, so bodies, times and connections are bounded.
 */

import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Witness, WitnessAnswer } from './witness.ts'

export interface WitnessServerDeps {
  readonly witness: Pick<Witness, 'addCheckpoint' | 'newest'>
  readonly origins: Iterable<string>
  /** Called with each answer to a checkpoint. */
  readonly onAnswer: (answer: WitnessAnswer) => void
  /** Called where a request could not be judged, as when the store can't be written. */
  readonly onFault: (error: unknown) => void
}

export function witnessServer({ witness, origins, onAnswer, onFault }: WitnessServerDeps): Server {
  const originOf = new Map(Array.from(origins, origin => [`/${hexSha256(origin)}/checkpoint`, origin]))
  const server = createServer(LIMITS, (request, response) => {
    answer(request, response).catch(error => {
      onFault(error)
      send(response, 500, 'the witness has a fault\n')
    })
  })
  server.maxConnections = CONNECTIONS_MAX
  return server

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === '/add-checkpoint') {
      if (request.method !== 'POST') return send(response, 405, 'only POST\n', { allow: 'POST' })
      return await addCheckpoint(request, response)
    }
    const origin = originOf.get(request.url ?? '')
    const note = origin === undefined ? undefined : witness.newest(origin)
    if (note === undefined) return send(response, 404, 'nothing is here\n')
    if (request.method !== 'GET') return send(response, 405, 'only GET\n', { allow: 'GET' })
    send(response, 200, note, { 'cache-control': 'no-cache' })
  }

  async function addCheckpoint(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const bytes = await readBody(request)
    if (bytes === undefined)
      return send(response, 413, `a body has at most ${BODY_BYTES_MAX} bytes\n`, { connection: 'close' })
    const body = textOf(bytes)
    if (body === undefined) return send(response, 400, 'the body is not UTF-8\n')
    const judged = await witness.addCheckpoint(body)
    onAnswer(judged)
    switch (judged.kind) {
      case 'cosigned':
        return send(response, 200, judged.lines)
      case 'conflict':
        return send(response, 409, `${judged.treeSize}\n`, { 'content-type': 'text/x.tlog.size' })
      case 'refused':
        return send(response, judged.status, `${judged.reason}\n`)
    }
  }
}

/** Undefined beyond the bound; the rest of it is not read then. */
async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += chunk.length
    if (bytes > BODY_BYTES_MAX) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function send(
  response: ServerResponse,
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, { ...HEADERS, ...headers }).end(body)
}

function hexSha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

const HEADERS = {
  'content-type': 'text/plain; charset=utf-8',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
}
/** A proof of 63 hashes and a checkpoint with sixteen of the largest signatures. */
const BODY_BYTES_MAX = 65_536
const CONNECTIONS_MAX = 1_000
const LIMITS = {
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  keepAliveTimeout: 60_000,
  maxHeaderSize: 8_192,
  connectionsCheckingInterval: 1_000,
}
