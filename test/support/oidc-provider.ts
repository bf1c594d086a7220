/**
 * An OpenID Connect provider in the test process: oauth2-mock-server behind a listener of our own, which counts
 * requests, lets a test answer in the provider's place, and can go away. It signs tokens of any claims.
 */

import { createPrivateKey, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose'
import { OAuth2Issuer, OAuth2Service } from 'oauth2-mock-server'
import { tlsFile } from './tls.ts'

/** Answers in the provider's place. */
export type Answer = (request: IncomingMessage, response: ServerResponse) => void

/** Claims by name; one that is undefined is left out of the token. */
export type Claims = Readonly<Record<string, unknown>>

export interface OidcProviderOptions {
  /** The clock its tokens are dated by. */
  readonly nowMs?: () => number
  readonly algorithm?: 'RS256' | 'ES256'
}

export class OidcProvider {
  readonly #nowMs: () => number
  readonly #algorithm: 'RS256' | 'ES256'
  readonly #server: Server
  readonly #answers = new Map<string, Answer>()
  readonly #counts = new Map<string, number>()
  #url = ''
  #keysUsed = 0
  #issuer = new OAuth2Issuer()
  #service = new OAuth2Service(this.#issuer)

  private constructor({ nowMs = Date.now, algorithm = 'RS256' }: OidcProviderOptions) {
    this.#nowMs = nowMs
    this.#algorithm = algorithm
    this.#server = createServer((request, response) => this.#onRequest(request, response))
  }

  /** Listens on a free port of the loopback address, with one key. */
  static async start(options: OidcProviderOptions = {}): Promise<OidcProvider> {
    const provider = new OidcProvider(options)
    await new Promise<void>(resolve => provider.#server.listen(0, '127.0.0.1', resolve))
    provider.#url = `http://127.0.0.1:${(provider.#server.address() as AddressInfo).port}`
    await provider.rotateKey()
    return provider
  }

  /** The issuer, which is also its address. */
  get issuer(): string {
    return this.#url
  }

  get jwksUri(): string {
    return `${this.#url}/jwks`
  }

  /** The name of the key that signs now. */
  get keyId(): string {
    return this.#issuer.keys.get()!.kid
  }

  /** The key set as it is published. */
  get publicKeys(): readonly Readonly<Record<string, unknown>>[] {
    return this.#issuer.keys.toJSON()
  }

  /** How often a path was asked for, such as `/jwks`. */
  requests(path: string): number {
    return this.#counts.get(path) ?? 0
  }

  /** Withdraws the key and publishes a second one, under a new name unless `keyId` names it. */
  async rotateKey(keyId?: string): Promise<void> {
    this.#issuer = new OAuth2Issuer()
    this.#issuer.url = this.#url
    this.#service = new OAuth2Service(this.#issuer)
    const key = await signingKey(this.#algorithm, this.#keysUsed++)
    await this.#issuer.keys.add({ ...key, kid: keyId ?? randomUUID() })
  }

  /** An ID token for `audience`, good for an hour; `claims` add to and replace the usual ones. */
  idToken(audience: string, claims: Claims = {}): Promise<string> {
    const nowSeconds = Math.floor(this.#nowMs() / 1000)
    const dates = { iat: nowSeconds, exp: nowSeconds + 3_600, nbf: undefined }
    return this.#issuer.buildToken({
      scopesOrTransform: (_header, payload) =>
        Object.assign(payload, { aud: audience, sub: 'subject-1', ...dates, ...claims }),
    })
  }

  /** Answers `path` with `answer`; without one, the provider answers again. */
  answerWith(path: string, answer: Answer | undefined): void {
    if (answer === undefined) this.#answers.delete(path)
    else this.#answers.set(path, answer)
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise(resolve => this.#server.close(resolve))
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    const path = new URL(request.url ?? '/', this.#url).pathname
    this.#counts.set(path, this.requests(path) + 1)
    const answer = this.#answers.get(path) ?? this.#service.requestHandler
    answer(request, response)
  }
}

const SIGNING_KEYS = new Map<string, Promise<JWK>>()

/** The same for all providers of a process, since making one takes as long as many tests do. */
function signingKey(alg: string, at: number): Promise<JWK> {
  const name = `${alg} ${at}`
  const key = SIGNING_KEYS.get(name) ?? (name === 'RS256 0' ? keptSigningKey() : newSigningKey(alg))
  SIGNING_KEYS.set(name, key)
  return key
}

/** Most tests need but one key of RSA, the dearest to make. */
async function keptSigningKey(): Promise<JWK> {
  return { ...(await exportJWK(createPrivateKey(tlsFile('rsa.key')))), alg: 'RS256' }
}

async function newSigningKey(alg: string): Promise<JWK> {
  const { privateKey } = await generateKeyPair(alg, { extractable: true })
  return { ...(await exportJWK(privateKey)), alg }
}

/** Drops the connection instead of answering. */
export const HANG_UP: Answer = request => request.socket.destroy()

/** Takes the request and never answers. */
export const SILENCE: Answer = () => {}

/** Answers 200 with a body that does not end. */
export const ENDLESS: Answer = (_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.write('{"keys":[')
  const pour = () => {
    while (!response.destroyed && response.write(' '.repeat(16_384)));
    if (!response.destroyed) response.once('drain', pour)
  }
  pour()
}

export function redirectTo(url: string): Answer {
  return (_request, response) => response.writeHead(302, { location: url }).end()
}

export function json(status: number, body: unknown): Answer {
  return (_request, response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

/** A token signed with any key under any header, for claims and headers a provider would not sign. */
export function signToken(
  header: { readonly alg: string } & Claims,
  claims: JWTPayload,
  key: Parameters<SignJWT['sign']>[0],
): Promise<string> {
  return new SignJWT(claims).setProtectedHeader(header).sign(key)
}

/** A token of these parts as they are, under any signature. */
export function writeToken(header: Claims, claims: Claims, signature = ''): string {
  const parts = [header, claims].map(part => Buffer.from(JSON.stringify(part)).toString('base64url'))
  return `${parts.join('.')}.${signature}`
}
