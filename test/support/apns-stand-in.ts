/**
 * Stands in for APNs: HTTP/2 over TLS, provider tokens verified as Apple does, answers on command, every push kept.
 * Reached as `localhost` and as `127.0.0.1`, so that one of it can be both environments.
 */

import { generateKeyPairSync, type KeyObject, verify } from 'node:crypto'
import {
  constants,
  createSecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import { tlsFile, tlsPath } from './tls.ts'

export interface ReceivedPush {
  readonly token: string
  /** The host that the client asked for. */
  readonly host: string
  readonly headers: IncomingHttpHeaders
  /** As it was sent. */
  readonly body: string
  readonly payload: Readonly<Record<string, unknown>>
  readonly providerToken: string
  /** Counts the TLS connections, from 1. */
  readonly session: number
}

export type ApnsAnswer =
  /** Refused with a status, a reason and, for 410, since when. */
  | { readonly status: number; readonly reason?: string; readonly timestamp?: number }
  /** The connection ends before an answer: by a GOAWAY that disowns the push, a reset stream, or no word at all. */
  | 'goaway'
  | 'reset'
  | 'close'
  | 'silence'
  /** A 200, after which the connection says goodbye in peace. */
  | 'last'

export interface ApnsStandIn {
  readonly port: number
  readonly ca: string
  readonly caFile: string
  /** Text of the .p8 file; the stand-in takes its tokens. */
  readonly key: string
  readonly keyId: string
  readonly teamId: string
  readonly pushes: readonly ReceivedPush[]
  /** TLS connections so far, and those open now. */
  readonly sessions: () => number
  readonly openSessions: () => number
  /** Answers for the next pushes, in order; when they are used up, `decide`. */
  answerNext(...answers: ApnsAnswer[]): void
  /** For every push without an answer of its own; a 200 unless it is replaced. */
  decide: (push: ReceivedPush) => ApnsAnswer
  /** Resolves when so many pushes have come since the start. */
  received(count: number): Promise<void>
  close(): Promise<void>
}

export async function startApnsStandIn(): Promise<ApnsStandIn> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const [keyId, teamId] = ['ABC123DEFG', 'DEF123GHIJ']
  const pushes: ReceivedPush[] = []
  const answers: ApnsAnswer[] = []
  const open = new Set<ServerHttp2Session>()
  const waiting: { count: number; resolve: () => void }[] = []
  let sessions = 0

  const server = createSecureServer({ key: tlsFile('server.key'), cert: tlsFile('server.crt') })
  server.on('session', session => {
    const ordinal = ++sessions
    open.add(session.on('error', () => {}))
    session.once('close', () => open.delete(session))
    session.on(
      'stream',
      (stream, headers) =>
        void onStream(
          stream.on('error', () => {}),
          headers,
          ordinal,
        ),
    )
  })
  async function onStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, session: number) {
    const push = await readPush(stream, headers, session)
    pushes.push(push)
    const fault = tokenFault(push.providerToken, { publicKey, keyId, teamId })
    const answer = fault ?? answers.shift() ?? standIn.decide(push)
    for (const waiter of waiting) if (pushes.length >= waiter.count) waiter.resolve()
    give(stream, answer, push.headers['apns-id'])
  }
  await new Promise<void>(resolve => server.listen(0, () => resolve()))
  const standIn: ApnsStandIn = {
    port: (server.address() as AddressInfo).port,
    ca: tlsFile('ca.crt'),
    caFile: tlsPath('ca.crt'),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    keyId,
    teamId,
    pushes,
    sessions: () => sessions,
    openSessions: () => open.size,
    answerNext: (...next) => void answers.push(...next),
    decide: () => ({ status: 200 }),
    received: count =>
      new Promise(resolve => {
        if (pushes.length >= count) resolve()
        else waiting.push({ count, resolve })
      }),
    close() {
      for (const session of open) session.destroy()
      return new Promise(resolve => server.close(() => resolve()))
    },
  }
  return standIn
}

async function readPush(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  session: number,
): Promise<ReceivedPush> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  const body = Buffer.concat(chunks).toString('utf8')
  return {
    token: headers[':path']?.replace('/3/device/', '') ?? '',
    host: headers[':authority'] ?? '',
    headers,
    body,
    payload: JSON.parse(body),
    providerToken: headers.authorization?.replace(/^bearer /i, '') ?? '',
    session,
  }
}

function give(stream: ServerHttp2Stream, answer: ApnsAnswer, id: string | string[] | undefined): void {
  const { session } = stream
  switch (answer) {
    case 'silence':
      return
    case 'close':
      return session?.destroy()
    case 'reset':
      return stream.close(constants.NGHTTP2_INTERNAL_ERROR)
    case 'goaway':
      // The last stream that was dealt with is none: the client may send them all again elsewhere.
      return session?.goaway(constants.NGHTTP2_NO_ERROR, 0)
    case 'last':
      stream.respond({ ':status': 200, 'apns-id': id })
      stream.end()
      return session?.close()
    default: {
      const { status, reason, timestamp } = answer
      stream.respond({ ':status': status, 'apns-id': id })
      stream.end(reason === undefined ? '' : JSON.stringify({ reason, timestamp }))
    }
  }
}

/** Apple's answer to a provider token that it refuses; undefined for a good one. */
function tokenFault(
  token: string,
  owner: { publicKey: KeyObject; keyId: string; teamId: string },
): ApnsAnswer | undefined {
  const [head = '', claims = '', signature = ''] = token.split('.')
  if (signature === '') return { status: 403, reason: 'MissingProviderToken' }
  const { alg, kid } = fromBase64Url(head)
  const { iss, iat } = fromBase64Url(claims)
  const isSigned = verify(
    'sha256',
    Buffer.from(`${head}.${claims}`),
    { key: owner.publicKey, dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  )
  if (!isSigned || alg !== 'ES256' || kid !== owner.keyId || iss !== owner.teamId) {
    return { status: 403, reason: 'InvalidProviderToken' }
  }
  const ageSeconds = Date.now() / 1000 - Number(iat)
  return ageSeconds >= 0 && ageSeconds < 3600 ? undefined : { status: 403, reason: 'ExpiredProviderToken' }
}

function fromBase64Url(text: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
}
