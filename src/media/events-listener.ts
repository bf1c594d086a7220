/**
 * Takes the events of Janus, posted by its `sampleevh`: a listener of its own, on loopback or a private network. Each Janus has
 * a user and password of its own, which tell the sender of events. Bodies hold tokens and addresses of people, and get into
 * no log.
 */

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { JanusEventsSettings, JanusSettings } from './janus-settings.ts'

export interface EventsListener {
  readonly port: number
  readonly close: () => void
}

/** The name of a gateway for each login that a request may have. */
export type EventLogins = ReadonlyMap<string, string>

/** Leaves out gateways without a login. */
export function eventLoginsOf(gateways: readonly Pick<JanusSettings, 'name' | 'eventsLogin'>[]): EventLogins {
  return new Map(
    gateways.flatMap(({ name, eventsLogin }) => {
      if (eventsLogin === undefined) return []
      const { user, password } = eventsLogin
      return [[digestOf(`Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`), name] as const]
    }),
  )
}

/**
 * `take` gets the name of a gateway and what it posted, parsed; `onAnswered` hears of each request, for the metrics: `gateway`
 * is undefined for a stranger's. Rejects when the address can not be listened on.
 */
export async function listenForEvents(
  { host, port }: JanusEventsSettings,
  logins: () => EventLogins,
  take: (gateway: string, events: unknown) => void,
  onAnswered: (status: number, gateway: string | undefined) => void,
): Promise<EventsListener> {
  const server: Server = createServer(
    { requestTimeout: REQUEST_MS_MAX, headersTimeout: REQUEST_MS_MAX, maxHeaderSize: HEADER_BYTES_MAX },
    (request, response) => {
      const gateway = logins().get(digestOf(request.headers.authorization ?? ''))
      answer(request, gateway, take).then(
        status => {
          onAnswered(status, gateway)
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
  gateway: string | undefined,
  take: (gateway: string, events: unknown) => void,
): Promise<number> {
  if (gateway === undefined) return 401
  if (request.method !== 'POST') return 405
  const body = await readBody(request)
  if (body === undefined) return 413
  const events = parsed(body)
  if (events === undefined) return 400
  take(gateway, events)
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

/** How long a digest takes to be found says nothing of the text. */
function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}

const BODY_BYTES_MAX = 1024 * 1024
const HEADER_BYTES_MAX = 8 * 1024
const REQUEST_MS_MAX = 10_000
const CONNECTIONS_MAX = 64
