/**
 * User tokens: by them a user shows the operator's own API who they are, and that API checks them without asking here. JWTs
 * (RFC 7519) with a type of their own (RFC 8725 3.11), signed by Ed25519 (RFC 8037) under keys that serve nothing else.
 */

import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'

/** A public key as verifiers find it (RFC 7517). */
export interface UserTokenJwk {
  readonly kty: 'OKP'
  readonly crv: 'Ed25519'
  readonly x: string
  readonly kid: string
  readonly alg: 'EdDSA'
  readonly use: 'sig'
}

export interface UserTokenKey {
  readonly privateKey: KeyObject
  readonly jwk: UserTokenJwk
}

/** Names as in the token, apart from times. */
export interface UserTokenClaims {
  readonly iss: string
  /** The user's id. */
  readonly sub: string
  /** The operator's own id of the user; undefined where they have named none. */
  readonly ext: string | undefined
  readonly aud: string
  /** The session that asked for it. */
  readonly sid: string
  readonly jti: string
}

/** A new key: base64 of PKCS #8, as `openssl genpkey -algorithm ed25519` has it between its lines. */
export function generateUserTokenKey(randomBytes: (length: number) => Uint8Array): string {
  return Buffer.concat([PKCS8_HEAD, randomBytes(SEED_BYTES)]).toString('base64')
}

/** Keys by commas or line ends, with or without the armour of PEM. Undefined where one is no key, or none is there. */
export function userTokenKeyTexts(text: string): readonly string[] | undefined {
  const texts = text
    .replaceAll('\\n', '\n')
    .replaceAll(PEM_ARMOUR, '\n')
    .split(/[\s,]+/)
    .filter(each => each !== '')
  return texts.length > 0 && texts.every(isKeyText) ? texts : undefined
}

/** `text` is one of `userTokenKeyTexts`. */
export function userTokenKey(text: string): UserTokenKey {
  const key = Buffer.from(text, 'base64')
  const privateKey = createPrivateKey({ key, format: 'der', type: 'pkcs8' })
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' })
  // RFC 7638: the members that make the key, in the order of their names.
  const thumbprint = createHash('sha256').update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`)
  const kid = thumbprint.digest('base64url')
  return { privateKey, jwk: { kty: 'OKP', crv: 'Ed25519', x, kid, alg: 'EdDSA', use: 'sig' } }
}

export function formatUserToken(
  { privateKey, jwk: { alg, kid } }: UserTokenKey,
  claims: UserTokenClaims,
  nowMs: number,
): string {
  const iat = Math.floor(nowMs / 1000)
  const header = encode({ alg, typ: USER_TOKEN_TYPE, kid })
  const signed = `${header}.${encode({ ...claims, iat, exp: iat + USER_TOKEN_S })}`
  return `${signed}.${sign(null, Buffer.from(signed), privateKey).toString('base64url')}`
}

function isKeyText(text: string): boolean {
  const bytes = Buffer.from(text, 'base64')
  const isWhole = bytes.length === PKCS8_HEAD.length + SEED_BYTES && bytes.toString('base64') === text
  return isWhole && PKCS8_HEAD.equals(bytes.subarray(0, PKCS8_HEAD.length))
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** How long a token is good for. */
export const USER_TOKEN_S = 300
const USER_TOKEN_TYPE = 'callsign-user+jwt'
/** A private key of Ed25519 without its public half begins so (RFC 8410); any 32 octets follow. */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex')
const SEED_BYTES = 32
const PEM_ARMOUR = /-----(?:BEGIN|END) PRIVATE KEY-----/g
