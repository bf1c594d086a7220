/**
 * Program: stands for APNs (HTTP/2 over TLS) or FCM (without TLS, and with the seller of its tokens) and does the least:
 * answers as many pushes as its parent allows, and has the rest wait.
 */

import { generateKeyPairSync } from 'node:crypto'
import { createServer as createHttpServer } from 'node:http'
import {
  createSecureServer,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import { tlsFile, tlsPath } from '../../test/support/tls.ts'
import type { PushProvider } from './people.ts'
import { serveParent } from './program.ts'

export interface PushSinkProtocol {
  readonly setup: { readonly provider: PushProvider }
  /** `answer` resolves when so many more pushes are answered; from `answer-all` on every push is. */
  readonly request:
    | { readonly kind: 'ask' | 'answer-all' }
    | { readonly kind: 'answer'; readonly count: number }
  readonly answer: PushSinkState
}

export interface PushSinkState {
  readonly origin: string
  /** The settings of a server that uses it. */
  readonly environment: Readonly<Record<string, string>>
  readonly answered: number
  /** Some of the pushes that came, whole. */
  readonly samples: readonly SamplePush[]
}

export interface SamplePush {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

serveParent<PushSinkProtocol>(async ({ provider }) => {
  const sink = new Sink()
  const server =
    provider === 'apns'
      ? createSecureServer({ key: tlsFile('server.key'), cert: tlsFile('server.crt') })
      : createServer()
  sink.serve(server as Http2Server)
  const port = await listen(server)
  const origin = provider === 'apns' ? `https://localhost:${port}` : `http://127.0.0.1:${port}`
  const environment = provider === 'apns' ? apnsEnvironment(port) : await fcmEnvironment(origin)
  return async request => {
    if (request.kind === 'answer') await sink.answer(request.count)
    if (request.kind === 'answer-all') void sink.answer(Number.POSITIVE_INFINITY)
    const { answered, samples } = sink
    return { origin, environment, answered, samples }
  }
})

class Sink {
  readonly samples: SamplePush[] = []
  answered = 0
  readonly #waiting: ServerHttp2Stream[] = []
  /** How many more may be answered. */
  #allowed = 0
  #onDone = () => {}

  serve(server: Http2Server): void {
    server.on('session', session => void session.on('error', () => undefined))
    server.on('stream', (stream, headers) => {
      stream.on('error', () => undefined)
      if (this.samples.length < SAMPLES_MAX) this.#keep(stream, headers)
      else stream.resume()
      stream.once('end', () => {
        this.#waiting.push(stream)
        this.#answerAllowed()
      })
    })
  }

  answer(count: number): Promise<void> {
    return new Promise(resolve => {
      this.#onDone = resolve
      this.#allowed = count
      this.#answerAllowed()
    })
  }

  #keep(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    let body = ''
    stream.setEncoding('utf8').on('data', chunk => {
      body += chunk
    })
    const texts = Object.entries(headers).map(([name, value]) => [name, String(value)])
    stream.once('end', () => this.samples.push({ headers: Object.fromEntries(texts), body }))
  }

  #answerAllowed(): void {
    while (this.#allowed > 0 && this.#waiting.length > 0) {
      const stream = this.#waiting.shift()!
      // A closed session needs no answer.
      if (stream.destroyed) continue
      stream.respond(ANSWER_HEAD)
      stream.end(ANSWER)
      this.answered++
      if (--this.#allowed === 0) this.#onDone()
    }
  }
}

function apnsEnvironment(port: number): Readonly<Record<string, string>> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    CALLSIGN_APNS_KEY: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    CALLSIGN_APNS_KEY_ID: 'ABC123DEFG',
    CALLSIGN_APNS_TEAM_ID: 'DEF123GHIJ',
    CALLSIGN_APNS_HOST: 'localhost',
    CALLSIGN_APNS_PORT: String(port),
    CALLSIGN_APNS_CA: tlsPath('ca.crt'),
  }
}

/** With a seller who gives everybody the same token. */
async function fcmEnvironment(origin: string): Promise<Readonly<Record<string, string>>> {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const sold = JSON.stringify({ access_token: 'x'.repeat(200), expires_in: 3_599, token_type: 'Bearer' })
  const seller = createHttpServer((_, response) => response.end(sold))
  return {
    CALLSIGN_FCM_SERVICE_ACCOUNT: JSON.stringify({
      type: 'service_account',
      client_email: 'push@bench.example',
      private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      project_id: 'bench',
      token_uri: `http://127.0.0.1:${await listen(seller)}/token`,
    }),
    CALLSIGN_FCM_URL: origin,
  }
}

function listen(server: Server): Promise<number> {
  return new Promise(resolve =>
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)),
  )
}

const SAMPLES_MAX = 256
const ANSWER_HEAD = { ':status': 200, 'content-type': 'application/json' }
const ANSWER = JSON.stringify({ name: 'projects/bench/messages/1' })
