/**
 * Sign in with Apple in the test process: an issuer, and the token and revoke endpoints as Apple documents them. They
 * verify the client secret as Apple does, with the public half of the team's key.
 */

import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { jwtVerify } from 'jose'
import { type Claims, json, OidcProvider, type OidcProviderOptions } from './oidc-provider.ts'

/** Whom a code, or the refresh token had for it, is of. */
export interface AppleGrantee {
  readonly subject: string
  readonly clientId: string
}

export class AppleStandIn {
  readonly provider: OidcProvider
  readonly teamId = 'TEAM000001'
  readonly keyId = 'KEY0000001'
  /** The text of the `.p8` file. */
  readonly privateKey: string
  /** The forms that were posted and whose client secret held, oldest first. */
  readonly accepted: Readonly<Record<string, string>>[] = []
  /** Refresh tokens that are good. */
  readonly refreshTokens = new Map<string, AppleGrantee>()
  readonly #publicKey: KeyObject
  readonly #nowMs: () => number
  readonly #codes = new Map<string, AppleGrantee>()

  private constructor(provider: OidcProvider, nowMs: () => number) {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    this.privateKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    this.#publicKey = publicKey
    this.provider = provider
    this.#nowMs = nowMs
    this.#serve('/auth/token', form => this.#exchange(form))
    this.#serve('/auth/revoke', form => this.#revoke(form))
  }

  static async start(options: OidcProviderOptions = {}): Promise<AppleStandIn> {
    return new AppleStandIn(await OidcProvider.start(options), options.nowMs ?? Date.now)
  }

  get tokenUrl(): string {
    return `${this.provider.issuer}/auth/token`
  }

  get revokeUrl(): string {
    return `${this.provider.issuer}/auth/revoke`
  }

  /** An authorization code, good once. */
  issueCode(grantee: AppleGrantee): string {
    const code = `c.${randomUUID()}`
    this.#codes.set(code, grantee)
    return code
  }

  /** An identity token as Apple writes it. */
  identityToken({ subject, clientId }: AppleGrantee, claims: Claims = {}): Promise<string> {
    return this.provider.idToken(clientId, { sub: subject, nonce_supported: true, ...claims })
  }

  stop(): Promise<void> {
    return this.provider.stop()
  }

  #serve(path: string, act: (form: Readonly<Record<string, string>>) => Promise<Reply>): void {
    this.provider.answerWith(path, async (request, response) => {
      const form = await readForm(request)
      const [status, body] = (await this.#isClient(form)) ? await act(form) : INVALID_CLIENT
      reply(request, response, status, body)
    })
  }

  async #isClient(form: Readonly<Record<string, string>>): Promise<boolean> {
    const { client_id: clientId = '', client_secret: secret = '' } = form
    try {
      const { payload, protectedHeader } = await jwtVerify(secret, this.#publicKey, {
        algorithms: ['ES256'],
        issuer: this.teamId,
        subject: clientId,
        audience: this.provider.issuer,
        requiredClaims: ['iat', 'exp'],
        maxTokenAge: SECRET_SECONDS_MAX,
        currentDate: new Date(this.#nowMs()),
      })
      if (protectedHeader.kid !== this.keyId || payload.exp! - payload.iat! > SECRET_SECONDS_MAX) return false
      this.accepted.push(form)
      return true
    } catch {
      return false
    }
  }

  async #exchange(form: Readonly<Record<string, string>>): Promise<Reply> {
    const { code = '', client_id: clientId, grant_type: grantType } = form
    if (grantType !== 'authorization_code') return [400, { error: 'unsupported_grant_type' }]
    const grantee = this.#codes.get(code)
    if (grantee === undefined || grantee.clientId !== clientId) return [400, { error: 'invalid_grant' }]
    this.#codes.delete(code)
    const refreshToken = `r.${randomUUID()}`
    this.refreshTokens.set(refreshToken, grantee)
    const tokens = {
      access_token: `a.${randomUUID()}`,
      token_type: 'Bearer',
      expires_in: 3_600,
      refresh_token: refreshToken,
      id_token: await this.identityToken(grantee),
    }
    return [200, tokens]
  }

  /** Answers alike for a token that is good and one that is not, as Apple does. */
  async #revoke({ token = '' }: Readonly<Record<string, string>>): Promise<Reply> {
    this.refreshTokens.delete(token)
    return [200, undefined]
  }
}

type Reply = readonly [status: number, body: unknown]

async function readForm(request: IncomingMessage): Promise<Readonly<Record<string, string>>> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece)
  return Object.fromEntries(new URLSearchParams(Buffer.concat(pieces).toString('utf8')))
}

function reply(request: IncomingMessage, response: ServerResponse, status: number, body: unknown): void {
  if (body === undefined) response.writeHead(status).end()
  else json(status, body)(request, response)
}

const INVALID_CLIENT: Reply = [400, { error: 'invalid_client' }]
/** Six months. */
const SECRET_SECONDS_MAX = 15_777_000
