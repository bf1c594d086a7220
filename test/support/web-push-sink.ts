/**
 * Stands in for a browser and its push service: makes subscriptions, takes requests over TLS, and opens them by the
 * text of RFC 8291, 8188 and 8292 alone. Answers on command.
 */

import {
  createDecipheriv,
  createECDH,
  createHmac,
  createPublicKey,
  type ECDH,
  randomBytes,
  verify,
} from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { type AgentOptions, createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { WebPushSubscription } from '../../src/domain/devices/web-push.ts'
import { tlsFile } from './tls.ts'

export interface ReceivedWebPush {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** Octets of the body. */
  readonly bytes: number
  /** As its browser reads it. */
  readonly text: string
  /** In the token that the server has signed. */
  readonly claims: Readonly<Record<string, unknown>>
  /** The key that it is signed with, base64url. */
  readonly signer: string
}

/** `endless`: an answer whose body never ends. */
export type WebPushAct =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  | 'silence'
  | 'close'
  | 'endless'

/** The name that subscriptions have by default; it is the sink's for those who open sockets by `sockets`. */
export const SINK_HOST = 'push.example'

export class WebPushSink {
  readonly received: ReceivedWebPush[] = []
  /** How many connections have come. */
  connections = 0
  readonly #server = createServer({ key: tlsFile('server.key'), cert: tlsFile('server.crt') })
  readonly #browsers = new Map<string, { readonly pair: ECDH; readonly auth: Buffer }>()
  readonly #acts: WebPushAct[] = []

  static async start(): Promise<WebPushSink> {
    const sink = new WebPushSink()
    await new Promise<void>(resolve => sink.#server.listen(0, '127.0.0.1', resolve))
    return sink
  }

  private constructor() {
    this.#server.on('connection', () => this.connections++)
    this.#server.on('request', async (request, response) => {
      this.received.push(this.#opened(request, await bodyOf(request)))
      const act = this.#acts.shift() ?? { status: 201 }
      if (act === 'silence') return
      if (act === 'close') return void response.destroy()
      if (act === 'endless') {
        response.writeHead(201)
        const more = () => response.destroyed || response.write('x'.repeat(65_536), more)
        return void more()
      }
      response.writeHead(act.status, act.headers).end('{}')
    })
  }

  /** Leads connections for any host here. */
  get sockets(): AgentOptions {
    const { port } = this.#server.address() as AddressInfo
    const lookup: AgentOptions['lookup'] = (_, options, callback) =>
      options.all ? callback(null, [{ address: '127.0.0.1', family: 4 }]) : callback(null, '127.0.0.1', 4)
    return { port, ca: tlsFile('ca.crt'), servername: 'localhost', lookup }
  }

  /** A new browser's. */
  subscription(host = SINK_HOST): WebPushSubscription {
    const pair = createECDH('prime256v1')
    const p256dh = pair.generateKeys('base64url')
    const auth = randomBytes(16)
    const path = `/send/${randomBytes(12).toString('base64url')}`
    this.#browsers.set(path, { pair, auth })
    return { endpoint: `https://${host}${path}`, keys: { p256dh, auth: auth.toString('base64url') } }
  }

  /** For the next pushes; then 201. */
  answerNext(...acts: WebPushAct[]): void {
    this.#acts.push(...acts)
  }

  close(): Promise<void> {
    this.#server.closeAllConnections()
    return new Promise(resolve => this.#server.close(() => resolve()))
  }

  #opened({ url: path = '', headers }: IncomingMessage, body: Buffer): ReceivedWebPush {
    const browser = this.#browsers.get(path)
    if (browser === undefined) throw new Error(`${path} is no subscription`)
    const { claims, signer } = verified(headers.authorization ?? '')
    return {
      path,
      headers,
      bytes: body.length,
      text: decrypt(body, browser.pair, browser.auth),
      claims,
      signer,
    }
  }
}

/** RFC 8291, section 3.4, and RFC 8188 with one record. */
function decrypt(body: Buffer, pair: ECDH, auth: Buffer): string {
  const salt = body.subarray(0, 16)
  const recordBytes = body.readUInt32BE(16)
  const keyBytes = body[20]!
  const sender = body.subarray(21, 21 + keyBytes)
  const record = body.subarray(21 + keyBytes)
  if (keyBytes !== 65 || record.length > recordBytes) throw new Error('not one record of an uncompressed key')
  const hmac = (key: Buffer, ...parts: (Buffer | string)[]) =>
    parts.reduce((mac, part) => mac.update(part), createHmac('sha256', key)).digest()
  const one = Buffer.from([1])
  const prkKey = hmac(auth, pair.computeSecret(sender))
  const ikm = hmac(prkKey, 'WebPush: info\0', pair.getPublicKey(), sender, one)
  const prk = hmac(salt, ikm)
  const key = hmac(prk, 'Content-Encoding: aes128gcm\0', one).subarray(0, 16)
  const nonce = hmac(prk, 'Content-Encoding: nonce\0', one).subarray(0, 12)
  const cipher = createDecipheriv('aes-128-gcm', key, nonce)
  cipher.setAuthTag(record.subarray(-16))
  const plain = Buffer.concat([cipher.update(record.subarray(0, -16)), cipher.final()])
  const end = plain.findLastIndex(byte => byte !== 0)
  if (plain[end] !== 2) throw new Error('the last record ends otherwise')
  return plain.subarray(0, end).toString('utf8')
}

/** RFC 8292, section 3. */
function verified(authorization: string): Pick<ReceivedWebPush, 'claims' | 'signer'> {
  const [, token = '', signer = ''] = /^vapid t=([\w.-]+), ?k=([\w-]+)$/.exec(authorization) ?? []
  const [head = '', claims = '', signature = ''] = token.split('.')
  const point = Buffer.from(signer, 'base64url')
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map(half => half.toString('base64url'))
  const key = createPublicKey({ format: 'jwk', key: { kty: 'EC', crv: 'P-256', x: x!, y: y! } })
  const isSigned = verify(
    'sha256',
    Buffer.from(`${head}.${claims}`),
    { key, dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  )
  if (!isSigned) throw new Error('not signed by the key that it names')
  return { claims: JSON.parse(Buffer.from(claims, 'base64url').toString('utf8')), signer }
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks)
}
