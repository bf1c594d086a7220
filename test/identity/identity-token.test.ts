import { createHash, createPublicKey, generateKeyPairSync, type JsonWebKey, sign } from 'node:crypto'
import type { JWTPayload } from 'jose'
import t, { type Test } from 'tap'
import { IdentityProvider, type ProviderOptions } from '../../src/identity/identity-token.ts'
import {
  type Claims,
  json,
  OidcProvider,
  type OidcProviderOptions,
  signToken,
  writeToken,
} from '../support/oidc-provider.ts'

const APP = 'com.example.app'
const WEB = 'web.example'
const NOW_MS = Date.UTC(2030, 0, 1)
/** None that a provider signs with by itself. */
const ANOTHER_KEY = generateKeyPairSync('rsa', { modulusLength: 2048 })
const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n

interface Scene {
  readonly clock: { nowMs: number }
  readonly oidc: OidcProvider
  readonly provider: IdentityProvider
  /** A token of these claims, signed by the provider. */
  token(claims?: Claims): Promise<string>
}

async function scene(
  t: Test,
  options: Partial<ProviderOptions> = {},
  made: OidcProviderOptions = {},
): Promise<Scene> {
  const clock = { nowMs: NOW_MS }
  const oidc = await OidcProvider.start({ nowMs: () => clock.nowMs, ...made })
  t.after(() => oidc.stop())
  const known = { name: 'google', issuer: oidc.issuer, clientIds: [APP, WEB] }
  const provider = new IdentityProvider({ ...known, ...options }, { nowMs: () => clock.nowMs })
  return { clock, oidc, provider, token: claims => oidc.idToken(APP, claims) }
}

t.test('a token proves what its provider signed', async t => {
  const { oidc, provider, token } = await scene(t)
  const text = await token({ email: 'Ann@b.co', email_verified: true, name: 'Ann' })
  t.same(await provider.verify(text), {
    provider: 'google',
    issuer: oidc.issuer,
    subject: 'subject-1',
    audience: APP,
    email: 'Ann@b.co',
    isEmailVerified: true,
    isPrivateEmail: false,
    name: 'Ann',
    issuedAtMs: NOW_MS,
    expiresAtMs: NOW_MS + 3_660_000,
    tokenDigest: createHash('sha256')
      .update(text.slice(0, text.lastIndexOf('.')))
      .digest('hex'),
  })
})

t.test('a token may be signed with ES256', async t => {
  const { provider, token } = await scene(t, {}, { algorithm: 'ES256' })
  t.match(await provider.verify(await token()), { subject: 'subject-1' })
})

t.test('a token without e-mail and name proves a subject alone', async t => {
  const { provider, token } = await scene(t)
  const identity = await provider.verify(await token({ email_verified: true, is_private_email: true }))
  t.notOk('email' in identity || 'name' in identity)
  t.match(identity, { isEmailVerified: false, isPrivateEmail: false })
})

t.test('an e-mail is verified when the claim is true or "true"', async t => {
  const { provider, token } = await scene(t)
  const found: unknown[] = []
  for (const email_verified of [true, 'true', false, 'false', 1, 'TRUE', null, undefined, ['true']])
    found.push((await provider.verify(await token({ email: 'a@b.co', email_verified }))).isEmailVerified)
  t.same(found, [true, true, false, false, false, false, false, false, false])
})

t.test('an e-mail is private when the claim is true or "true"', async t => {
  const { provider, token } = await scene(t)
  const found: unknown[] = []
  for (const is_private_email of [true, 'true', 'false', 1])
    found.push((await provider.verify(await token({ email: 'a@b.co', is_private_email }))).isPrivateEmail)
  t.same(found, [true, true, false, false])
})

t.test('an e-mail that is not a text is none', async t => {
  const { provider, token } = await scene(t)
  const identity = await provider.verify(await token({ email: ['a@b.co'], email_verified: true, name: 7 }))
  t.notOk('email' in identity || 'name' in identity || identity.isEmailVerified)
})

t.test('a token is for us when one of its audiences is', async t => {
  const { provider, token } = await scene(t)
  t.match(await provider.verify(await token({ aud: WEB })), { audience: WEB })
  t.match(await provider.verify(await token({ aud: ['another', WEB] })), { audience: WEB })
  t.match(await provider.verify(await token({ aud: WEB, azp: APP })), { audience: WEB })
})

t.test('a token for another app is refused', async t => {
  const { provider, token } = await scene(t)
  const foreign = [
    { aud: 'another' },
    { aud: ['another'] },
    { aud: [] },
    { aud: undefined },
    { aud: `${APP} ` },
    { aud: [[APP]] },
    { aud: { [APP]: true } },
    { aud: '' },
    { azp: 'another' },
    { azp: 1 },
    { azp: '' },
    { azp: [APP] },
  ]
  t.same(await refusals(provider, foreign, token), foreign.map(refused))
})

t.test('a token of another issuer is refused, be it only by a slash', async t => {
  const { oidc, provider, token } = await scene(t)
  const foreign = [
    `${oidc.issuer}/`,
    oidc.issuer.toUpperCase(),
    'https://another.example',
    undefined,
    [oidc.issuer],
  ]
  const claims = foreign.map(iss => ({ iss }))
  t.same(await refusals(provider, claims, token), claims.map(refused))
})

t.test('the two spellings of Google’s issuer are one', async t => {
  const spellings = ['accounts.google.com', 'https://accounts.google.com']
  for (const issuer of spellings) {
    const oidc = await OidcProvider.start({ nowMs: () => NOW_MS })
    t.after(() => oidc.stop())
    const options = { name: 'google', issuer, clientIds: [APP], jwksUri: oidc.jwksUri }
    const provider = new IdentityProvider(options, { nowMs: () => NOW_MS })
    for (const iss of spellings) {
      const { issuer: proven } = await provider.verify(await oidc.idToken(APP, { iss }))
      t.equal(proven, 'https://accounts.google.com', 'so that it is one account')
    }
    const foreign = ['http://accounts.google.com', 'accounts.google.com/', 'https://accounts.google.com/', '']
    const claims = foreign.map(iss => ({ iss }))
    t.same(await refusals(provider, claims, each => oidc.idToken(APP, each)), claims.map(refused))
  }
})

t.test('Google’s keys are found by either spelling of its issuer', async t => {
  const asked: string[] = []
  for (const [issuer, named] of [
    ['accounts.google.com', 'https://accounts.google.com'],
    ['https://accounts.google.com', 'accounts.google.com'],
  ] as const) {
    const oidc = await OidcProvider.start({ nowMs: () => NOW_MS })
    t.after(() => oidc.stop())
    const fetch = async (url: string | URL | Request) => {
      asked.push(String(url))
      const isKeys = String(url).endsWith('/keys')
      return Response.json(
        isKeys ? { keys: oidc.publicKeys } : { issuer: named, jwks_uri: 'https://g.example/keys' },
      )
    }
    const provider = new IdentityProvider(
      { name: 'g', issuer, clientIds: [APP] },
      { nowMs: () => NOW_MS, fetch },
    )
    t.match(await provider.verify(await oidc.idToken(APP, { iss: issuer })), { subject: 'subject-1' })
  }
  const discovery = 'https://accounts.google.com/.well-known/openid-configuration'
  t.same(asked, [discovery, 'https://g.example/keys', discovery, 'https://g.example/keys'])
})

const TENANT = '72f988bf-86f1-41af-91ab-2d7cd011db47'
const OTHER_TENANT = '9188040d-6c67-4c5b-b112-36a304b66dad'

/** A provider with an issuer for each tenant; its key may say for which tenant it signs. */
async function tenants(t: Test, keyTenant?: string) {
  const oidc = await OidcProvider.start({ nowMs: () => NOW_MS })
  t.after(() => oidc.stop())
  const issuer = `${oidc.issuer}/{tenantid}/v2.0`
  const issuerOf = (tid: unknown) => `${oidc.issuer}/${tid}/v2.0`
  const keys = oidc.publicKeys.map(key => ({ ...key, ...(keyTenant && { issuer: issuerOf(keyTenant) }) }))
  const discovery = '/common/v2.0/.well-known/openid-configuration'
  oidc.answerWith(discovery, json(200, { issuer, jwks_uri: `${oidc.issuer}/keys` }))
  oidc.answerWith('/keys', json(200, { keys }))
  const provider = new IdentityProvider({ name: 'ms', issuer, clientIds: [APP] }, { nowMs: () => NOW_MS })
  const token = (claims: Claims) => oidc.idToken(APP, claims)
  const ofTenant = (tid: unknown) => token({ tid, iss: issuerOf(tid) })
  return { provider, issuer, issuerOf, token, ofTenant }
}

t.test('a template of an issuer is filled in with the token’s tenant', async t => {
  const { provider, issuer, issuerOf, token, ofTenant } = await tenants(t)
  for (const tid of [TENANT, OTHER_TENANT])
    t.match(await provider.verify(await ofTenant(tid)), { issuer: issuerOf(tid), subject: 'subject-1' })
  const foreign = [
    { iss: issuerOf(TENANT) },
    { iss: issuerOf(TENANT), tid: OTHER_TENANT },
    { iss: `${issuerOf(TENANT)}/`, tid: TENANT },
    { iss: issuer, tid: '{tenantid}' },
    { iss: issuerOf('common'), tid: 'common' },
    { iss: issuerOf('..'), tid: '..' },
    { iss: issuerOf(''), tid: '' },
    { iss: issuerOf(`${TENANT}/v2.0/x`), tid: `${TENANT}/v2.0/x` },
    { iss: issuerOf(TENANT.toUpperCase()), tid: TENANT.toUpperCase() },
    { iss: issuerOf(TENANT), tid: [TENANT] },
    { iss: undefined, tid: TENANT },
  ]
  t.same(await refusals(provider, foreign, token), foreign.map(refused))
})

t.test('an address of a tenant counts as not verified', async t => {
  const { provider, issuerOf, token } = await tenants(t)
  const claims = { tid: TENANT, iss: issuerOf(TENANT), email: 'ann@b.co', email_verified: true }
  t.match(await provider.verify(await token(claims)), { email: 'ann@b.co', isEmailVerified: false })
})

t.test('a key of one tenant signs for no other', async t => {
  const one = await tenants(t, TENANT)
  t.match(await one.provider.verify(await one.ofTenant(TENANT)), { subject: 'subject-1' })
  await t.rejects(one.provider.verify(await one.ofTenant(OTHER_TENANT)), {
    code: 'PROVIDER_TOKEN_INVALID',
    message: /its key signs for another issuer/,
  })
  const all = await tenants(t, '{tenantid}')
  for (const tid of [TENANT, OTHER_TENANT])
    t.match(await all.provider.verify(await all.ofTenant(tid)), { subject: 'subject-1' })
})

t.test('a token is accepted until a minute after its exp, and no longer', async t => {
  const { clock, provider, token } = await scene(t)
  const text = await token({ exp: NOW_MS / 1000 + 0.5 })
  const { expiresAtMs } = await provider.verify(text)
  clock.nowMs = expiresAtMs - 1
  t.match(await provider.verify(text), { expiresAtMs })
  clock.nowMs = expiresAtMs
  await t.rejects(provider.verify(text), { code: 'PROVIDER_TOKEN_INVALID', message: /expired/ })
})

t.test('a token may be issued up to a minute in the future', async t => {
  const { provider, token } = await scene(t)
  const nowSeconds = NOW_MS / 1000
  t.match(await provider.verify(await token({ iat: nowSeconds + 60 })), { subject: 'subject-1' })
  await t.rejects(provider.verify(await token({ iat: nowSeconds + 61 })), { code: 'PROVIDER_TOKEN_INVALID' })
  await t.rejects(provider.verify(await token({ nbf: nowSeconds + 61 })), { code: 'PROVIDER_TOKEN_INVALID' })
})

t.test('a token without usable times is refused', async t => {
  const { provider, token } = await scene(t)
  const timeless = [
    { exp: undefined },
    { iat: undefined },
    { exp: '9999999999' },
    { iat: null },
    { exp: 1e300 },
  ]
  t.same(await refusals(provider, timeless, token), timeless.map(refused))
})

t.test('an exp beyond all numbers is refused', async t => {
  const { oidc, provider } = await scene(t)
  const { privateKey, publicKey } = ANOTHER_KEY
  publish(oidc, { ...publicKey.export({ format: 'jwk' }), kid: 'own' })
  const claims = JSON.stringify(usualClaims(oidc)).replace(/"exp":\d+/, '"exp":1e999')
  const text = [JSON.stringify({ alg: 'RS256', kid: 'own' }), claims]
    .map(part => Buffer.from(part).toString('base64url'))
    .join('.')
  const signature = sign('sha256', Buffer.from(text), privateKey).toString('base64url')
  await t.rejects(provider.verify(`${text}.${signature}`), {
    code: 'PROVIDER_TOKEN_INVALID',
    message: /exp is not a time/,
  })
})

t.test('the nonce must be the one the client sent', async t => {
  const { provider, token } = await scene(t)
  t.match(await provider.verify(await token({ nonce: 'n-1' }), { nonce: 'n-1' }), { subject: 'subject-1' })
  const others = [{}, { nonce: 'n-2' }, { nonce: 'n-1 ' }, { nonce: ['n-1'] }, { nonce: null }, { nonce: '' }]
  t.same(await refusals(provider, others, token, 'n-1'), others.map(refused))
  await t.rejects(provider.verify(await token(), { nonce: '' }), { code: 'PROVIDER_TOKEN_INVALID' })
})

t.test('a token with a nonce is refused when the client sends none', async t => {
  const { provider, token } = await scene(t)
  const bound = [{ nonce: 'n-1' }, { nonce: '' }, { nonce: null }, { nonce: 0 }, { nonce: ['n-1'] }]
  t.same(await refusals(provider, bound, token), bound.map(refused))
})

t.test('a token that answers a code may have any nonce', async t => {
  const { provider, token } = await scene(t)
  t.match(await provider.verifyGranted(await token({ nonce: 'n-1' })), { subject: 'subject-1' })
})

t.test('a subject has 1 to 255 characters of ASCII', async t => {
  const { provider, token } = await scene(t)
  for (const sub of ['1', 's'.repeat(255), '000008.0bbb.1510', 'auth0|5f7'])
    t.equal((await provider.verify(await token({ sub }))).subject, sub)
  const subs = [undefined, '', 's'.repeat(256), 42, null, ['s'], 'sübject', 's\u0000', 's\n', '\ud800']
  const claims = subs.map(sub => ({ sub }))
  t.same(await refusals(provider, claims, token), claims.map(refused))
})

t.test('a token without a signature is refused, whatever it calls that', async t => {
  const { oidc, provider } = await scene(t)
  const tokens = ['none', 'None', 'NONE', '', undefined, 'RS256'].map(alg =>
    writeToken({ alg, kid: oidc.keyId }, usualClaims(oidc)),
  )
  t.same(await codes(provider, tokens), tokens.map(refused))
})

t.test('the public key is no secret to sign with', async t => {
  const { oidc, provider } = await scene(t)
  const jwk = oidc.publicKeys[0] as JsonWebKey
  const key = createPublicKey({ key: jwk, format: 'jwk' })
  const secrets = [
    key.export({ type: 'spki', format: 'pem' }),
    key.export({ type: 'pkcs1', format: 'pem' }),
    key.export({ type: 'spki', format: 'der' }),
    JSON.stringify(jwk),
    Buffer.from(jwk.n!, 'base64url'),
  ].map(secret => Buffer.from(secret))
  const tokens: string[] = []
  for (const alg of ['HS256', 'HS512'])
    for (const secret of secrets)
      tokens.push(await signToken({ alg, kid: oidc.keyId }, usualClaims(oidc), secret))
  t.same(await codes(provider, tokens), tokens.map(refused))
})

t.test('a token signed with another key under the same name is refused', async t => {
  const { oidc, provider } = await scene(t)
  const { privateKey } = ANOTHER_KEY
  const forged = await signToken({ alg: 'RS256', kid: oidc.keyId }, usualClaims(oidc), privateKey)
  await t.rejects(provider.verify(forged), { code: 'PROVIDER_TOKEN_INVALID', message: /not signed by/ })
})

t.test('a key that a token brings along is not used', async t => {
  const { oidc, provider } = await scene(t)
  const { privateKey, publicKey } = ANOTHER_KEY
  const jwk = publicKey.export({ format: 'jwk' })
  const header = { alg: 'RS256', kid: oidc.keyId, jwk, jku: 'http://127.0.0.1:1/keys' }
  await t.rejects(provider.verify(await signToken(header, usualClaims(oidc), privateKey)), {
    code: 'PROVIDER_TOKEN_INVALID',
  })
})

t.test('other signature algorithms are refused, even with a key that is published', async t => {
  const { oidc, provider } = await scene(t)
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-384' })
  const kids = { RS384: ANOTHER_KEY, RS512: ANOTHER_KEY, PS256: ANOTHER_KEY, ES384: ec }
  const keys = Object.entries(kids).map(([kid, { publicKey }]) => ({
    ...publicKey.export({ format: 'jwk' }),
    kid,
  }))
  publish(oidc, ...keys)
  const tokens: string[] = []
  for (const [alg, { privateKey }] of Object.entries(kids))
    tokens.push(await signToken({ alg, kid: alg }, usualClaims(oidc), privateKey))
  t.same(await codes(provider, tokens), tokens.map(refused))
})

t.test('a key of fewer than 2048 bits is not used', async t => {
  const { oidc, provider } = await scene(t)
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
  publish(oidc, { ...publicKey.export({ format: 'jwk' }), kid: 'small' })
  // jose would not sign with such a key either.
  const text = writeToken({ alg: 'RS256', kid: 'small' }, usualClaims(oidc))
  const signature = sign('sha256', Buffer.from(text.slice(0, -1)), privateKey).toString('base64url')
  await t.rejects(provider.verify(text + signature), { code: 'PROVIDER_TOKEN_INVALID' })
})

t.test('a private or symmetric key that is published by mistake is not used', async t => {
  const { oidc, provider } = await scene(t)
  const { privateKey } = ANOTHER_KEY
  const secret = Buffer.alloc(32, 7)
  publish(
    oidc,
    { ...privateKey.export({ format: 'jwk' }), kid: 'private' },
    { kty: 'oct', k: secret.toString('base64url'), kid: 'oct' },
  )
  const tokens = [
    await signToken({ alg: 'RS256', kid: 'private' }, usualClaims(oidc), privateKey),
    await signToken({ alg: 'HS256', kid: 'oct' }, usualClaims(oidc), secret),
  ]
  t.same(await codes(provider, tokens), tokens.map(refused))
})

t.test('a key for encryption signs nothing', async t => {
  const { oidc, provider } = await scene(t)
  const { privateKey, publicKey } = ANOTHER_KEY
  publish(oidc, { ...publicKey.export({ format: 'jwk' }), kid: 'own', use: 'enc' })
  const text = await signToken({ alg: 'RS256', kid: 'own' }, usualClaims(oidc), privateKey)
  await t.rejects(provider.verify(text), { code: 'PROVIDER_TOKEN_INVALID' })
})

t.test('an access token of the same issuer is not an ID token', async t => {
  const { oidc, provider } = await scene(t)
  const { privateKey, publicKey } = ANOTHER_KEY
  publish(oidc, { ...publicKey.export({ format: 'jwk' }), kid: 'own' })
  const found: string[] = []
  for (const typ of [undefined, 'JWT', 'application/jwt', 'at+jwt', 'logout+jwt', 'secevent+jwt'])
    found.push(
      ...(await codes(provider, [
        await signToken({ alg: 'RS256', kid: 'own', typ }, usualClaims(oidc), privateKey),
      ])),
    )
  t.same(found, ['none', 'none', 'none', refused(), refused(), refused()])
})

t.test('what is not a token is refused before the provider is asked', async t => {
  const { oidc, provider, token } = await scene(t)
  const text = await token()
  const tokens = ['', '.', '..', '...', 'a.b.c', text.replaceAll('.', '~'), `${text}.`, 'é'.repeat(30)]
  const oversized = await token({ padding: 'x'.repeat(9_000) })
  const noObject = [`${text.split('.')[0]}.${Buffer.from('[]').toString('base64url')}.AAAA`]
  const all = [...tokens, oversized]
  t.same(await codes(provider, all), all.map(refused))
  t.equal(oidc.requests('/jwks'), 0)
  t.same(await codes(provider, noObject), noObject.map(refused))
})

t.test('a token of the greatest length is read', async t => {
  const { provider, token } = await scene(t)
  const bare = (await token({ padding: '' })).length
  const text = await token({ padding: 'x'.repeat(Math.floor(((8_192 - bare) * 3) / 4) - 2) })
  t.ok(text.length > 8_180 && text.length <= 8_192, `${text.length} characters`)
  t.match(await provider.verify(text), { subject: 'subject-1' })
})

t.test('a changed byte anywhere in a token is found', async t => {
  const { provider, token } = await scene(t)
  const text = await token()
  let accepted = 0
  for (let at = 0; at < text.length - 1; at += 7) {
    const changed = text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1)
    if ((await codes(provider, [changed]))[0] !== refused()) accepted++
  }
  t.equal(accepted, 0)
})

t.test('another signature over the same claims does not make another token of it', async t => {
  const { provider, token } = await scene(t, {}, { algorithm: 'ES256' })
  const text = await token()
  const at = text.lastIndexOf('.') + 1
  const signature = Buffer.from(text.slice(at), 'base64url')
  const s = P256_ORDER - BigInt(`0x${signature.subarray(32).toString('hex')}`)
  const other = Buffer.concat([
    signature.subarray(0, 32),
    Buffer.from(s.toString(16).padStart(64, '0'), 'hex'),
  ])
  const twin = text.slice(0, at) + other.toString('base64url')
  t.not(twin, text)
  t.equal((await provider.verify(twin)).tokenDigest, (await provider.verify(text)).tokenDigest)
})

t.test('no refusal repeats the token or what it says', async t => {
  const { oidc, provider, token } = await scene(t)
  const secret = 'c0ffee-secret'
  const said: string[] = []
  for (const claims of [
    { aud: secret },
    { iss: secret },
    { exp: 1 },
    { sub: `${secret}\n` },
    { nonce: secret },
  ]) {
    const text = await token({ email: `${secret}@b.co`, ...claims })
    const error = await provider.verify(text, { nonce: 'n' }).catch(error => error)
    said.push(`${error.message} ${JSON.stringify(error.cause ?? null)} ${error.stack}`)
  }
  const header = { alg: 'RS256', kid: oidc.keyId, crit: [secret], [secret]: 1 }
  const critical = writeToken(header, usualClaims(oidc), 'AAAA')
  said.push((await provider.verify(critical).catch(error => error)).message)
  t.equal(said.length, 6)
  t.same(
    said.filter(text => text.includes(secret)),
    [],
  )
})

t.test('a provider without client ids is not made', async t => {
  const options = { name: 'google', issuer: 'https://issuer.example' }
  const world = { nowMs: () => NOW_MS }
  t.throws(() => new IdentityProvider({ ...options, clientIds: [] }, world), /client ids/)
  t.throws(() => new IdentityProvider({ ...options, clientIds: [APP, ''] }, world), /client id/)
})

/** The code each token is refused with, `none` where it is accepted. */
async function codes(
  provider: IdentityProvider,
  tokens: readonly string[],
  nonce?: string,
): Promise<string[]> {
  const found: string[] = []
  for (const token of tokens)
    found.push(
      await provider.verify(token, nonce === undefined ? {} : { nonce }).then(
        () => 'none',
        error => error.code ?? String(error),
      ),
    )
  return found
}

async function refusals(
  provider: IdentityProvider,
  claims: readonly Claims[],
  token: Scene['token'],
  nonce?: string,
): Promise<string[]> {
  return codes(provider, await Promise.all(claims.map(token)), nonce)
}

function refused(): string {
  return 'PROVIDER_TOKEN_INVALID'
}

function usualClaims(oidc: OidcProvider): JWTPayload {
  const nowSeconds = NOW_MS / 1000
  return { iss: oidc.issuer, aud: APP, sub: 'subject-1', iat: nowSeconds, exp: nowSeconds + 600 }
}

function publish(oidc: OidcProvider, ...keys: readonly unknown[]): void {
  oidc.answerWith('/jwks', json(200, { keys }))
}
