/**
 * A witness over HTTP: `POST /add-checkpoint`, and `GET /<hex SHA-256 of the origin>/checkpoint` for monitors. Any client
 * may ask, so bodies, times and connections are bounded.
 */

import { createHash } from 'node:crypto'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { sendText, textServer } from '../support/text-server.ts'
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
  return textServer(LIMITS, (request, response) => {
    answer(request, response).catch(error => {
      onFault(error)
      sendText(response, 500, 'the witness has a fault\n')
    })
  })

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === '/add-checkpoint') {
      if (request.method !== 'POST') return sendText(response, 405, 'only POST\n', { allow: 'POST' })
      return await addCheckpoint(request, response)
    }
    const origin = originOf.get(request.url ?? '')
    const note = origin === undefined ? undefined : witness.newest(origin)
    if (note === undefined) return sendText(response, 404, 'nothing is here\n')
    if (request.method !== 'GET') return sendText(response, 405, 'only GET\n', { allow: 'GET' })
    sendText(response, 200, note, { 'cache-control': 'no-cache' })
  }

  async function addCheckpoint(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const bytes = await readBody(request)
    if (bytes === undefined)
      return sendText(response, 413, `a body has at most ${BODY_BYTES_MAX} bytes\n`, { connection: 'close' })
    const body = textOf(bytes)
    if (body === undefined) return sendText(response, 400, 'the body is not UTF-8\n')
    const judged = await witness.addCheckpoint(body)
    onAnswer(judged)
    switch (judged.kind) {
      case 'cosigned':
        return sendText(response, 200, judged.lines)
      case 'conflict':
        return sendText(response, 409, `${judged.treeSize}\n`, { 'content-type': 'text/x.tlog.size' })
      case 'refused':
        return sendText(response, judged.status, `${judged.reason}\n`)
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

function hexSha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** A proof of 63 hashes and a checkpoint with sixteen of the largest signatures. */
const BODY_BYTES_MAX = 65_536
const LIMITS = { connectionsMax: 1_000, keepAliveTimeout: 60_000 }
