/**
 * Takes the events of Janus, posted by its `sampleevh`: a listener of its own, on loopback or a private network. Janus has
 * to know user and password. Bodies hold tokens and addresses of people, and get into no log.
 */

import { createHash, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { JanusEventsSettings } from './janus-settings.ts'

export interface EventsListener {
  readonly port: number
  readonly close: () => void
}

/**
 * `take` gets what was posted, parsed; `onAnswered` hears of each request, for the metrics. Rejects when the address can not
 * be listened on.
 */
export async function listenForEvents(
  { host, port, user, password }: JanusEventsSettings,
  take: (events: unknown) => void,
  onAnswered: (status: number) => void,
): Promise<EventsListener> {
  const expected = digestOf(`Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`)
  const server: Server = createServer(
    { requestTimeout: REQUEST_MS_MAX, headersTimeout: REQUEST_MS_MAX, maxHeaderSize: HEADER_BYTES_MAX },
    (request, response) => {
      answer(request, expected, take).then(
        status => {
          onAnswered(status)
          // The rest of a body that is not wanted is not read.
          response.writeHead(status, status === 200 ? {} : { connection: 'close' }).end()
        },
        () => request.destroy(),
      )
    },
  )
  server.maxConnections = CONNECTIONS_MAX
  server.listen(port, host)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

async function answer(
  request: IncomingMessage,
  expected: Uint8Array,
  take: (events: unknown) => void,
): Promise<number> {
  if (!timingSafeEqual(digestOf(request.headers.authorization ?? ''), expected)) return 401
  if (request.method !== 'POST') return 405
  const body = await readBody(request)
  if (body === undefined) return 413
  const events = parsed(body)
  if (events === undefined) return 400
  take(events)
  return 200
}

/** Undefined for one that is too long. Rejects when it breaks off. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request) {
    bytes += chunk.length
    if (bytes > BODY_BYTES_MAX) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** All digests have one length, so that a comparison takes one time. */
function digestOf(text: string): Uint8Array {
  return createHash('sha256').update(text).digest()
}

const BODY_BYTES_MAX = 1024 * 1024
const HEADER_BYTES_MAX = 8 * 1024
const REQUEST_MS_MAX = 10_000
const CONNECTIONS_MAX = 64
