/** An installation of the app, as far as the server can tell: it keeps its tokens and sends them with each request. */

import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'

export interface Answer {
  readonly status: number
  readonly headers: Headers
  /** The parsed JSON; undefined for none. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any form
  readonly body: any
  readonly text: string
}

interface TokenReply {
  readonly accessToken: string
  readonly refreshToken: string
  readonly challenge?: string
}

export class App {
  /** Where the server is. */
  http: string
  /** Secrets that the server's log must never hold: codes, tokens, keys, addresses. */
  readonly secrets: string[] = []
  accessToken: string | undefined
  refreshToken: string | undefined
  /** The session's, for possession of a signing key. */
  challenge: string | undefined

  constructor(http: string) {
    this.http = http
  }

  /** Sends a request such as `GET /app/api/user`. */
  async send(
    methodAndPath: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    const [method = '', path = ''] = methodAndPath.split(' ')
    const answer = await fetch(this.http + path, {
      method,
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(this.accessToken === undefined ? {} : { authorization: `Bearer ${this.accessToken}` }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    const isJson = /json/.test(answer.headers.get('content-type') ?? '') && text !== ''
    return {
      status: answer.status,
      headers: answer.headers,
      body: isJson ? JSON.parse(text) : undefined,
      text,
    }
  }

  /** The body of an answer with this status. Throws for any other status. */
  async get(
    status: number,
    methodAndPath: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer['body']> {
    const answer = await this.send(methodAndPath, body, headers)
    if (answer.status !== status)
      throw new Error(`${methodAndPath} answers ${answer.status}, not ${status}: ${answer.text}`)
    return answer.body
  }

  /** Status and code of an answer, such as `400 OTP_INVALID`. */
  async outcome(methodAndPath: string, body?: unknown, headers?: Record<string, string>): Promise<string> {
    const { status, body: reply } = await this.send(methodAndPath, body, headers)
    return reply?.code === undefined ? `${status}` : `${status} ${reply.code}`
  }

  /** Uses the tokens of a reply for later requests, and returns the reply. */
  take<Reply extends TokenReply>(reply: Reply): Reply {
    this.accessToken = reply.accessToken
    this.refreshToken = reply.refreshToken
    this.challenge = reply.challenge
    this.secrets.push(reply.accessToken, reply.refreshToken)
    return reply
  }

  /** Notes a secret that must not be in the server's log. */
  hide<Secret extends string>(secret: Secret): Secret {
    this.secrets.push(secret)
    return secret
  }
}

/** The encodings that apps send keys in: SPKI of P-256 and of RSA, the point of X9.63, PKCS#1. */
export type KeyForm = 'P-256 SPKI' | 'P-256 X9.63' | 'RSA SPKI' | 'RSA PKCS#1'

/** The base64 of a fresh public key. */
export function newPublicKey(form: KeyForm): string {
  const publicKey = form.startsWith('RSA')
    ? newRsaPublicKey()
    : generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey
  const type = form === 'RSA PKCS#1' ? 'pkcs1' : 'spki'
  const der = publicKey.export({ type, format: 'der' })
  return (form === 'P-256 X9.63' ? der.subarray(-65) : der).toString('base64')
}

/** Of a random odd modulus: nobody decrypts with it, and two primes of this size take long to find. */
function newRsaPublicKey(): KeyObject {
  const modulus = randomBytes(RSA_BITS / 8)
  modulus[0]! |= 0x80
  modulus[modulus.length - 1]! |= 1
  return createPublicKey({
    key: { kty: 'RSA', n: modulus.toString('base64url'), e: 'AQAB' },
    format: 'jwk',
  })
}

const RSA_BITS = 2048
