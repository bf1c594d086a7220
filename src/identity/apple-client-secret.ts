/**
 * The client secret of Sign in with Apple: a JWT that the developer team signs with its own key, in place of a password
 * ("Creating a client secret" of Apple's REST API). Apple allows six months; ours live five minutes.
 */

import { createPrivateKey, type KeyObject } from 'node:crypto'

export interface AppleKey {
  readonly teamId: string
  readonly keyId: string
  /** The text of the `.p8` file: PKCS #8 in PEM, P-256. */
  readonly privateKey: string
}

export class AppleClientSecrets {
  readonly #key: AppleKey
  readonly #privateKey: KeyObject
  readonly #audience: string
  readonly #nowMs: () => number
  /** By client id; the configuration bounds their number. */
  readonly #kept = new Map<string, { readonly secret: string; readonly issuedAtMs: number }>()

  /** `audience` is Apple's issuer. Throws when the key is not one that Apple issues. */
  constructor(key: AppleKey, audience: string, nowMs: () => number) {
    this.#key = key
    this.#privateKey = readKey(key.privateKey)
    this.#audience = audience
    this.#nowMs = nowMs
  }

  /** A secret for one of our client ids, good for a minute at least. */
  async secretOf(clientId: string): Promise<string> {
    const nowMs = this.#nowMs()
    const kept = this.#kept.get(clientId)
    if (kept !== undefined && nowMs >= kept.issuedAtMs && nowMs < kept.issuedAtMs + REUSE_MS)
      return kept.secret
    const secret = await this.#sign(clientId, Math.floor(nowMs / 1000))
    this.#kept.set(clientId, { secret, issuedAtMs: nowMs })
    return secret
  }

  async #sign(clientId: string, nowSeconds: number): Promise<string> {
    const { SignJWT } = await import('jose/jwt/sign')
    return new SignJWT({})
      .setProtectedHeader({ alg: 'ES256', kid: this.#key.keyId })
      .setIssuer(this.#key.teamId)
      .setSubject(clientId)
      .setAudience(this.#audience)
      .setIssuedAt(nowSeconds)
      .setExpirationTime(nowSeconds + LIFETIME_SECONDS)
      .sign(this.#privateKey)
  }
}

function readKey(pem: string): KeyObject {
  // The error of the parser stays out of it: it may quote what it could not read.
  const key = parsePem(pem)
  if (key?.asymmetricKeyDetails?.namedCurve !== 'prime256v1')
    throw new Error('the key of Sign in with Apple is not a P-256 private key in PEM')
  return key
}

function parsePem(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem)
  } catch {
    return undefined
  }
}

const LIFETIME_SECONDS = 5 * 60
/** The last minute is left for clocks that differ and requests under way. */
const REUSE_MS = (LIFETIME_SECONDS - 60) * 1000
