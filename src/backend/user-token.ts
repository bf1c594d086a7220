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

export interface ExpectedToken {
  /** `<public URL>/.well-known/jwks.json`. Its keys are kept, and fetched again for a key that is not among them. */
  readonly jwksUrl: string
  /** Your own API, as `CALLSIGN_TOKEN_AUDIENCES` names it. */
  readonly audience: string
  /** The server's public URL, the tokens' issuer; if left out, taken from `jwksUrl`. */
  readonly issuer?: string
}

/**
 * The user of a token. Rejects with `CallsignServerError`: `TOKEN_INVALID`, or `NO_ANSWER` where the keys can't be had; with
 * `TypeError` for options that are none, such as a variable of the environment that is not set.
 */
export async function verifyToken(token: string, options: ExpectedToken): Promise<TokenUser> {
  const { jwksUrl, audience } = options
  const keys = keysAt(jwksUrl)
  const issuer = options.issuer ?? issuerOf(jwksUrl)
  // The verifier takes a token for any service where it is given none.
  if (typeof audience !== 'string' || audience === '') throw new TypeError('audience is missing')
  try {
    const { payload } = await jwtVerify(token, keys, {
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

/** Whether the token is at fault, and not the way to the keys. */
function isOfToken(error: unknown): boolean {
  if (!(error instanceof errors.JOSEError)) return false
  return (
    !(error instanceof errors.JWKSTimeout) &&
    !(error instanceof errors.JWKSInvalid) &&
    error.code !== 'ERR_JOSE_GENERIC'
  )
}

function issuerOf(jwksUrl: string): string {
  if (!jwksUrl.endsWith(JWKS_PATH))
    throw new TypeError(`issuer is missing: jwksUrl does not end with ${JWKS_PATH}`)
  return jwksUrl.slice(0, -JWKS_PATH.length)
}

function keysAt(jwksUrl: string): JWTVerifyGetKey {
  const known = KEYS.get(jwksUrl)
  if (known !== undefined) return known
  if (!URL.canParse(jwksUrl)) throw new TypeError('jwksUrl is not an address')
  const keys = createRemoteJWKSet(new URL(jwksUrl), { cacheMaxAge: KEYS_MS })
  KEYS.set(jwksUrl, keys)
  return keys
}

const JWKS_PATH = '/.well-known/jwks.json'
/** As long as the server lets its list be kept: a key that it no longer lists is refused after that. */
const KEYS_MS = 300_000
const KEYS = new Map<string, JWTVerifyGetKey>()
