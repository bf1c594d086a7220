/** User tokens of a running server, forgeries of them, and the verifiers that docs/build/backend.md shows. */

import { createHmac, sign } from 'node:crypto'
import type { UserTokenKey } from '../../src/domain/accounts/user-token.ts'
import { settingsFor, signInAgain } from './call-people.ts'
import { blocksOf } from './your-users.ts'

export const AUDIENCE = 'https://api.example.org'

/** Settings of a server with these keys, where person 0 signs in. */
export function tokenSettings(...keys: readonly string[]): Readonly<Record<string, string>> {
  return {
    ...settingsFor(1),
    CALLSIGN_TOKEN_KEY: keys.join(),
    CALLSIGN_TOKEN_AUDIENCES: `reports,${AUDIENCE}`,
  }
}

/** Signs person 0 in. */
export async function signedIn(http: string) {
  const app = await signInAgain(http, 0)
  const { userId } = await app.get(200, 'GET /app/api/user')
  const tokenFor = async (audience = AUDIENCE): Promise<string> =>
    (await app.get(200, 'POST /app/api/user/tokens', { audience })).token
  return { app, userId, tokenFor }
}

/** The page's block in a language, for a server at this address. */
export function verifierOnPage(language: 'js' | 'go' | 'python', issuer: string): string {
  const block = blocksOf('build/backend.md').find(
    ({ language: its, text }) => its === language && text.includes('https://call.example.org'),
  )
  if (block === undefined) throw new Error(`no verifier in ${language}`)
  return block.text.replaceAll('https://call.example.org', issuer)
}

type Members = Readonly<Record<string, unknown>>

/** Texts that are no good token, by their fault; `key` is the server's, `other` one that it does not list. */
export function forgeriesOf(
  token: string,
  key: UserTokenKey,
  other: UserTokenKey,
): Readonly<Record<string, string>> {
  const [header, claims] = token.split('.').slice(0, 2).map(decode) as [Members, Members]
  const by = (signing: UserTokenKey, head: Members, body: Members) => {
    const text = `${encode(head)}.${encode(body)}`
    return `${text}.${sign(null, Buffer.from(text), signing.privateKey).toString('base64url')}`
  }
  const signed = (head: Members, body: Members = {}) =>
    by(key, { ...header, ...head }, { ...claims, ...body })
  const macBy = (secret: string | Buffer) => {
    const text = `${encode({ ...header, alg: 'HS256' })}.${encode(claims)}`
    return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
  }
  const nowS = Math.floor(Date.now() / 1000)
  return {
    'no signature': `${encode({ ...header, alg: 'none' })}.${encode(claims)}.`,
    'no signature, as if there were one': token.slice(0, token.lastIndexOf('.') + 1),
    'the public key as a secret': macBy(Buffer.from(key.jwk.x, 'base64url')),
    'the public key as a secret, in JSON': macBy(JSON.stringify(key.jwk)),
    'another algorithm by name': signed({ alg: 'ES256' }),
    'another type': signed({ typ: 'JWT' }),
    'the type of an access token': signed({ typ: 'at+jwt' }),
    'no type': signed({ typ: undefined }),
    'another service': signed({}, { aud: 'reports' }),
    'no service': signed({}, { aud: undefined }),
    'another server': signed({}, { iss: 'https://other.example.org' }),
    'no server': signed({}, { iss: undefined }),
    'an hour old': signed({}, { iat: nowS - 3_900, exp: nowS - 3_600 }),
    'without end': signed({}, { exp: undefined }),
    'without user': signed({}, { sub: undefined }),
    'another key under the name of the right one': by(other, header, claims),
    'a key that nobody lists': by(other, { ...header, kid: other.jwk.kid }, claims),
    'a key of its own': by(other, { ...header, kid: other.jwk.kid, jwk: other.jwk }, claims),
    'another user': token.replace(/\.[^.]+\./, `.${encode({ ...claims, sub: '1' })}.`),
    'no token': 'kat_AQAAAAAAAAAAAAAAAAAAAAA',
    'an empty text': '',
  }
}

function decode(part: string): Members {
  return JSON.parse(Buffer.from(part, 'base64url').toString())
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
