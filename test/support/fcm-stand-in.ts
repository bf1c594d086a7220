/**
 * Stands in for Google: the token endpoint, which verifies the service account's assertion, and FCM's HTTP v1, which
 * takes only tokens that were bought there. Answers on command, every message kept.
 */

import { createPublicKey, type KeyObject, randomUUID, verify } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import {
  constants,
  createServer as createHttp2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import { tlsFile } from './tls.ts'

export interface ReceivedMessage {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The `message` member of the body. */
  readonly message: Readonly<Record<string, unknown>>
}

export interface HttpScript {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** `silence`: the request is taken and never answered; `close`: the connection ends in its place. */
export type HttpAct = HttpScript | 'silence' | 'close'
/** `goaway`: the server takes no more on the connection, and says that it has not dealt with the request. */
export type Http2Act = HttpAct | 'goaway'

export interface FcmStandIn {
  readonly url: string
  /** The account with accepted assertions; its `token_uri` is the stand-in's. */
  readonly serviceAccount: {
    readonly type: 'service_account'
    readonly client_email: string
    readonly private_key: string
    readonly private_key_id: string
    readonly project_id: string
    readonly token_uri: string
  }
  readonly messages: readonly ReceivedMessage[]
  /** The claims of every assertion that was sold a token. */
  readonly assertions: readonly Readonly<Record<string, unknown>>[]
  /** For the next messages, and for the next purchases of a token; then 200. */
  answerNext(...acts: Http2Act[]): void
  answerNextPurchase(...acts: HttpAct[]): void
  /** Hears of each message as it comes. */
  onMessage: () => void
  /** Takes back every token sold so far: they get 401. */
  revokeTokens(): void
  /** Resolves when so many requests of either kind have come since the start. */
  received(count: number): Promise<void>
  /** How many are open. */
  readonly sessions: () => number
  close(): Promise<void>
}

export async function startFcmStandIn({ expiresIn = 3_599 } = {}): Promise<FcmStandIn> {
  const privateKey = tlsFile('rsa.key')
  const publicKey = createPublicKey(privateKey)
  const messages: ReceivedMessage[] = []
  const assertions: Record<string, unknown>[] = []
  const sold = new Set<string>()
  const [acts, purchaseActs]: [Http2Act[], HttpAct[]] = [[], []]
  const waiting: { count: number; resolve: () => void }[] = []
  let requests = 0

  function sell(body: string): HttpAct {
    const form = new URLSearchParams(body)
    const claims = verifiedClaims(form.get('assertion') ?? '', publicKey, standIn.serviceAccount)
    if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer' || claims === undefined) {
      return { status: 400, body: { error: 'invalid_grant' } }
    }
    assertions.push(claims)
    const token = randomUUID()
    sold.add(token)
    return { status: 200, body: { access_token: token, expires_in: expiresIn, token_type: 'Bearer' } }
  }
  function take(request: Http2ServerRequest, body: string): Http2Act {
    const token = request.headers.authorization?.replace(/^Bearer /, '') ?? ''
    if (!sold.has(token)) return { status: 401, body: { error: { status: 'UNAUTHENTICATED' } } }
    standIn.onMessage()
    messages.push({ path: request.url!, headers: request.headers, message: JSON.parse(body).message })
    return acts.shift() ?? { status: 200, body: { name: 'projects/p/messages/1' } }
  }
  function count(): void {
    requests++
    for (const waiter of waiting) if (requests >= waiter.count) waiter.resolve()
  }
  const seller = createServer(async (request, response) => {
    const body = await bodyOf(request)
    if (request.url !== '/token') return perform({ status: 404 }, response)
    count()
    perform(purchaseActs.shift() ?? sell(body), response)
  })
  const sessions = new Set<ServerHttp2Session>()
  const server = createHttp2Server(async (request, response) => {
    const body = await bodyOf(request)
    count()
    performOverHttp2(take(request, body), response)
  })
  server.on('session', session => {
    sessions.add(session.on('error', () => {}))
    session.once('close', () => sessions.delete(session))
  })
  const [url, sellerUrl] = await Promise.all([urlOf(server), urlOf(seller)])
  const standIn: FcmStandIn = {
    url,
    serviceAccount: {
      type: 'service_account',
      client_email: 'push@callsign-test.iam.gserviceaccount.com',
      private_key: privateKey,
      private_key_id: 'key-1',
      project_id: 'callsign-test',
      token_uri: `${sellerUrl}/token`,
    },
    messages,
    assertions,
    onMessage: () => undefined,
    answerNext: (...next) => void acts.push(...next),
    answerNextPurchase: (...next) => void purchaseActs.push(...next),
    revokeTokens: () => sold.clear(),
    received: count =>
      new Promise(resolve => {
        if (requests >= count) resolve()
        else waiting.push({ count, resolve })
      }),
    sessions: () => sessions.size,
    close() {
      for (const session of sessions) session.destroy()
      seller.closeAllConnections()
      const closed = [server, seller].map(each => new Promise<void>(resolve => each.close(() => resolve())))
      return Promise.all(closed).then(() => undefined)
    },
  }
  return standIn
}

async function urlOf(server: Server): Promise<string> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** FCM's answer to a token that no app instance has any more. */
export const UNREGISTERED: HttpScript = {
  status: 404,
  body: {
    error: {
      code: 404,
      message: 'Requested entity was not found.',
      status: 'NOT_FOUND',
      details: [
        { '@type': 'type.googleapis.com/google.firebase.fcm.v1.FcmError', errorCode: 'UNREGISTERED' },
      ],
    },
  },
}

function verifiedClaims(
  assertion: string,
  publicKey: KeyObject,
  account: { readonly client_email: string; readonly token_uri: string; readonly private_key_id: string },
): Record<string, unknown> | undefined {
  const [head = '', claims = '', signature = ''] = assertion.split('.')
  const isSigned = verify(
    'RSA-SHA256',
    Buffer.from(`${head}.${claims}`),
    publicKey,
    Buffer.from(signature, 'base64url'),
  )
  if (!isSigned) return undefined
  const { alg, kid } = JSON.parse(Buffer.from(head, 'base64url').toString('utf8'))
  const parsed = JSON.parse(Buffer.from(claims, 'base64url').toString('utf8'))
  const isRight = parsed.iss === account.client_email && parsed.aud === account.token_uri
  return isRight && alg === 'RS256' && kid === account.private_key_id ? parsed : undefined
}

export async function bodyOf(request: IncomingMessage | Http2ServerRequest): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

export function perform(act: HttpAct, response: ServerResponse): void {
  if (act === 'silence') return
  if (act === 'close') return void response.destroy()
  const { status, body, headers = {} } = act
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(typeof body === 'string' ? body : JSON.stringify(body))
}

function performOverHttp2(act: Http2Act, response: Http2ServerResponse): void {
  const { session } = response.stream
  switch (act) {
    case 'silence':
      return
    case 'close':
      return session?.destroy()
    case 'goaway':
      return session?.goaway(constants.NGHTTP2_NO_ERROR, response.stream.id! - 2)
    default: {
      const { status, body, headers = {} } = act
      response.writeHead(status, { 'content-type': 'application/json', ...headers })
      response.end(typeof body === 'string' ? body : JSON.stringify(body))
    }
  }
}
