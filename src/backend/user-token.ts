/** Verifies user tokens: who asks one's own API, as the Callsign server vouches for it. */

import { createRemoteJWKSet, errors, type JWTVerifyGetKey, jwtVerify } from 'jose'
import { CallsignServerError } from './callsign-server-error.ts'

/** Whom a token names. */
export interface TokenUser {
  readonly userId: string
  /** Your own id of the user, where your backend has given one. */
  readonly externalId: string | undefined
  /** The sign-in session that asked for the token. */
  readonly sessionId: string
  /** When the token ends. */
  readonly expiresAt: Date
}

export interface VerifyTokenOptions {
  /** `<public URL>/.well-known/jwks.json`. Its keys are kept, and fetched again for a key that is not among them. */
  readonly jwksUrl: string
  /** Your own API, as `CALLSIGN_TOKEN_AUDIENCES` names it. */
  readonly audience: string
  /** The server's public URL, the tokens' issuer; if left out, that of `jwksUrl`. */
  readonly issuer?: string
}

/** The user of a token. Rejects with `CallsignServerError`: `TOKEN_INVALID`, or `NO_ANSWER` where the keys can't be had. */
export async function verifyToken(token: string, options: VerifyTokenOptions): Promise<TokenUser> {
  const { jwksUrl, audience, issuer = issuerOf(jwksUrl) } = options
  try {
    const { payload } = await jwtVerify(token, keysAt(jwksUrl), {
      issuer,
      audience,
      typ: 'callsign-user+jwt',
      algorithms: ['EdDSA'],
      requiredClaims: ['sub', 'exp', 'sid'],
    })
    const { sub = '', exp = 0, sid, ext } = payload
    return {
      userId: sub,
      externalId: typeof ext === 'string' ? ext : undefined,
      sessionId: String(sid),
      expiresAt: new Date(exp * 1000),
    }
  } catch (cause) {
    if (isOfToken(cause))
      throw new CallsignServerError(
        'TOKEN_INVALID',
        `the token is not accepted: ${(cause as Error).message}`,
        { cause },
      )
    throw new CallsignServerError('NO_ANSWER', `the keys at ${jwksUrl} can’t be had`, { cause })
  }
}

function isOfToken(error: unknown): boolean {
  if (!(error instanceof errors.JOSEError)) return false
  return (
    !(error instanceof errors.JWKSTimeout) &&
    !(error instanceof errors.JWKSInvalid) &&
    error.code !== 'ERR_JOSE_GENERIC'
  )
}

function issuerOf(jwksUrl: string): string {
  return jwksUrl.replace(/\/\.well-known\/jwks\.json$/, '')
}

function keysAt(jwksUrl: string): JWTVerifyGetKey {
  const known = KEYS.get(jwksUrl)
  if (known !== undefined) return known
  const keys = createRemoteJWKSet(new URL(jwksUrl))
  KEYS.set(jwksUrl, keys)
  return keys
}

const KEYS = new Map<string, JWTVerifyGetKey>()
