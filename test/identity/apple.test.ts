import { createHash, generateKeyPairSync } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import t, { type Test } from 'tap'
import { type AppleOptions, AppleSignIn } from '../../src/identity/apple.ts'
import { AppleStandIn } from '../support/apple-stand-in.ts'
import { HANG_UP, json, redirectTo, SILENCE } from '../support/oidc-provider.ts'

const APP = 'com.example.app'
const SERVICE = 'com.example.web'
const ANN = { subject: '000123.ann', clientId: APP }
const NOW_MS = Date.UTC(2030, 0, 1)

async function scene(t: Test, options: Partial<AppleOptions> = {}) {
  const clock = { nowMs: NOW_MS }
  const standIn = await AppleStandIn.start({ nowMs: () => clock.nowMs })
  t.after(() => standIn.stop())
  const { teamId, keyId, privateKey } = standIn
  const known = { clientIds: [APP, SERVICE], issuer: standIn.provider.issuer, teamId, keyId, privateKey }
  const apple = new AppleSignIn({ ...known, ...options }, { nowMs: () => clock.nowMs })
  return { clock, standIn, apple }
}

t.test('an identity token proves an Apple account', async t => {
  const { standIn, apple } = await scene(t)
  const claims = { email: 'x1@privaterelay.appleid.com', email_verified: 'true', is_private_email: 'true' }
  t.match(await apple.verify(await standIn.identityToken(ANN, claims)), {
    provider: 'apple',
    subject: ANN.subject,
    audience: APP,
    email: 'x1@privaterelay.appleid.com',
    isEmailVerified: true,
    isPrivateEmail: true,
  })
})

t.test('the nonce in the token is the SHA-256 of the raw one, in hexadecimal', async t => {
  const { standIn, apple } = await scene(t)
  const hash = createHash('sha256').update('raw')
  const hashed = await standIn.identityToken(ANN, { nonce: hash.copy().digest('hex') })
  t.match(await apple.verify(hashed, { rawNonce: 'raw' }), { subject: ANN.subject })
  await t.rejects(apple.verify(hashed), { code: 'PROVIDER_TOKEN_INVALID' })
  const others = ['raw', hash.copy().digest('base64'), hash.copy().digest('hex').toUpperCase(), undefined]
  const found: string[] = []
  for (const nonce of others)
    found.push(await codeOf(apple.verify(await standIn.identityToken(ANN, { nonce }), { rawNonce: 'raw' })))
  t.same(
    found,
    others.map(() => 'PROVIDER_TOKEN_INVALID'),
  )
})

t.test('a code is exchanged for the subject and a refresh token, once', async t => {
  const { standIn, apple } = await scene(t)
  const code = standIn.issueCode(ANN)
  const grant = await apple.exchange(code, APP)
  t.equal(grant.subject, ANN.subject)
  t.same([...standIn.refreshTokens.keys()], [grant.refreshToken])
  await t.rejects(apple.exchange(code, APP), { code: 'AUTH_CODE_INVALID' })
})

t.test('the exchange sends what Apple asks of a native app and nothing more', async t => {
  const { standIn, apple } = await scene(t)
  const code = standIn.issueCode(ANN)
  await apple.exchange(code, APP)
  const [{ client_secret, ...form }] = standIn.accepted as [Record<string, string>]
  t.same(form, { client_id: APP, grant_type: 'authorization_code', code })
})

t.test('the client secret is a JWT of the team, good for five minutes', async t => {
  const { standIn, apple } = await scene(t)
  await apple.exchange(standIn.issueCode(ANN), APP)
  const secret = standIn.accepted[0]!.client_secret!
  t.same(decodeProtectedHeader(secret), { alg: 'ES256', kid: standIn.keyId })
  t.same(decodeJwt(secret), {
    iss: standIn.teamId,
    sub: APP,
    aud: standIn.provider.issuer,
    iat: NOW_MS / 1000,
    exp: NOW_MS / 1000 + 300,
  })
})

t.test('a client secret is used again for four minutes, each client with its own', async t => {
  const { clock, standIn, apple } = await scene(t)
  const exchange = (clientId: string) => apple.exchange(standIn.issueCode({ ...ANN, clientId }), clientId)
  await exchange(APP)
  clock.nowMs += 239_999
  await exchange(APP)
  await exchange(SERVICE)
  clock.nowMs += 1
  await exchange(APP)
  clock.nowMs = NOW_MS - 60_000
  await exchange(APP)
  const secrets = standIn.accepted.map(form => form.client_secret)
  t.equal(secrets[1], secrets[0])
  t.same(new Set(secrets).size, 4)
})

t.test('a code of another person shows by its subject', async t => {
  const { standIn, apple } = await scene(t)
  const identity = await apple.verify(await standIn.identityToken(ANN))
  const grant = await apple.exchange(standIn.issueCode({ subject: 'eve', clientId: APP }), APP)
  t.not(grant.subject, identity.subject)
})

t.test('a code that Apple does not know, or knows from another app, is refused', async t => {
  const { standIn, apple } = await scene(t)
  await t.rejects(apple.exchange('c.made-up', APP), { code: 'AUTH_CODE_INVALID' })
  await t.rejects(apple.exchange(standIn.issueCode(ANN), SERVICE), { code: 'AUTH_CODE_INVALID' })
})

t.test('the token that answers a code is verified like any other', async t => {
  const { clock, standIn, apple } = await scene(t)
  const tokens = [
    await standIn.provider.idToken('another', { sub: ANN.subject }),
    await standIn.provider.idToken(SERVICE, { sub: ANN.subject }),
    await standIn.identityToken(ANN, { iss: 'https://another.example' }),
    await standIn.identityToken(ANN, { exp: clock.nowMs / 1000 - 61 }),
    `${(await standIn.identityToken(ANN)).slice(0, -4)}AAAA`,
  ]
  const found: string[] = []
  for (const id_token of tokens) {
    standIn.provider.answerWith('/auth/token', json(200, { id_token, refresh_token: 'r' }))
    found.push(await codeOf(apple.exchange('c', APP)))
  }
  t.same(
    found,
    tokens.map(() => 'PROVIDER_TOKEN_INVALID'),
  )
})

t.test('the token that answers a code may repeat the nonce of the sign-in', async t => {
  const { standIn, apple } = await scene(t)
  const id_token = await standIn.identityToken(ANN, { nonce: 'n-1' })
  standIn.provider.answerWith('/auth/token', json(200, { id_token }))
  t.same(await apple.exchange('c', APP), { subject: ANN.subject })
})

t.test('an answer without a refresh token is a grant without one', async t => {
  const { standIn, apple } = await scene(t)
  const id_token = await standIn.identityToken(ANN)
  for (const refresh_token of [undefined, '', 7]) {
    standIn.provider.answerWith('/auth/token', json(200, { id_token, refresh_token }))
    t.same(await apple.exchange('c', APP), { subject: ANN.subject })
  }
})

t.test('an exchange that Apple does not answer as documented can be tried again', async t => {
  const { standIn, apple } = await scene(t, { timeoutMs: 50 })
  const code = standIn.issueCode(ANN)
  const answers = [
    HANG_UP,
    SILENCE,
    json(500, {}),
    json(503, { error: 'invalid_grants' }),
    json(429, {}),
    json(400, { error: 'invalid_client' }),
    json(200, {}),
    json(200, { id_token: 7 }),
    redirectTo(standIn.tokenUrl),
  ]
  const found: string[] = []
  for (const answer of answers) {
    standIn.provider.answerWith('/auth/token', answer)
    found.push(await codeOf(apple.exchange(code, APP)))
  }
  t.same(
    found,
    answers.map(() => 'PROVIDER_UNAVAILABLE'),
  )
})

t.test('a client secret that Apple does not accept is our fault, and named', async t => {
  const { standIn, apple } = await scene(t, { keyId: 'KEY0000002' })
  await t.rejects(apple.exchange(standIn.issueCode(ANN), APP), {
    code: 'PROVIDER_UNAVAILABLE',
    message: 'Apple did not exchange the authorization code',
    cause: { message: /answers 400 invalid_client$/ },
  })
  t.same(standIn.accepted, [])
})

t.test('neither code nor secret is in a refusal', async t => {
  const { standIn, apple } = await scene(t)
  const said: string[] = []
  for (const answer of [json(400, { error: 'invalid_grant' }), json(500, {}), HANG_UP]) {
    standIn.provider.answerWith('/auth/token', answer)
    const error = await apple.exchange('c.secret', APP).catch(error => error)
    said.push(`${error.stack} ${error.cause?.stack} ${error.cause?.cause?.stack}`)
  }
  t.same(
    said.filter(text => /c\.secret|eyJ/.test(text)),
    [],
  )
})

t.test('a revoked refresh token has ended at Apple, and may be revoked again', async t => {
  const { standIn, apple } = await scene(t)
  const { refreshToken } = await apple.exchange(standIn.issueCode(ANN), APP)
  t.equal(await apple.revoke(refreshToken!, APP), 'revoked')
  t.equal(standIn.refreshTokens.size, 0)
  const { client_secret, ...form } = standIn.accepted.at(-1)!
  t.same(form, { client_id: APP, token: refreshToken, token_type_hint: 'refresh_token' })
  t.equal(await apple.revoke(refreshToken!, APP), 'revoked')
})

t.test('a token of an app that is no longer configured can still be revoked', async t => {
  const { apple } = await scene(t)
  t.equal(await apple.revoke('r.old', 'com.example.former'), 'revoked')
})

t.test('a revocation is to be repeated while Apple is down, not when Apple refuses', async t => {
  const { standIn, apple } = await scene(t, { timeoutMs: 50 })
  const found: string[] = []
  const answers = [
    HANG_UP,
    SILENCE,
    json(500, {}),
    json(429, {}),
    redirectTo('/'),
    json(400, {}),
    json(401, {}),
  ]
  for (const answer of answers) {
    standIn.provider.answerWith('/auth/revoke', answer)
    found.push(await apple.revoke('r', APP))
  }
  t.same(found, ['retry', 'retry', 'retry', 'retry', 'retry', 'refused', 'refused'])
})

t.test('without a key tokens are verified, and nothing is exchanged', async t => {
  const { standIn } = await scene(t)
  const clientIds = [APP]
  const world = { nowMs: () => NOW_MS }
  const apple = new AppleSignIn({ clientIds, issuer: standIn.provider.issuer }, world)
  t.notOk(apple.canExchange)
  t.match(await apple.verify(await standIn.identityToken(ANN)), { subject: ANN.subject })
  await t.rejects(apple.exchange('c', APP), /has no key/)
  await t.rejects(apple.revoke('r', APP), /has no key/)
})

t.test('a key that is incomplete or not of Apple’s kind is refused at the start, and not shown', async t => {
  const { standIn } = await scene(t)
  const { teamId, keyId, privateKey } = standIn
  const make = (key: Partial<AppleOptions>) => () =>
    new AppleSignIn({ clientIds: [APP], ...key }, { nowMs: () => NOW_MS })
  t.throws(make({ teamId, keyId }), /together/)
  t.throws(make({ privateKey }), /together/)
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey
  for (const key of [rsa, p384]) {
    const pem = key.export({ type: 'pkcs8', format: 'pem' }).toString()
    t.throws(make({ teamId, keyId, privateKey: pem }), /not a P-256 private key/)
  }
  t.throws(make({ teamId, keyId, privateKey: 's3cret' }), /^(?!.*s3cret).*not a P-256 private key/)
  t.ok(make({ teamId, keyId, privateKey })().canExchange)
})

t.test('Apple’s own addresses are used when none are given, and no discovery', async t => {
  const { standIn } = await scene(t)
  const asked: string[] = []
  const fetch = async (url: unknown) => {
    asked.push(String(url))
    return new Response(null, { status: 500 })
  }
  const { teamId, keyId, privateKey } = standIn
  const apple = new AppleSignIn(
    { clientIds: [APP], teamId, keyId, privateKey },
    { nowMs: () => NOW_MS, fetch },
  )
  await t.rejects(apple.verify(await standIn.identityToken(ANN)), { code: 'PROVIDER_UNAVAILABLE' })
  await t.rejects(apple.exchange('c', APP), { code: 'PROVIDER_UNAVAILABLE' })
  t.equal(await apple.revoke('r', APP), 'retry')
  t.same(asked, [
    'https://appleid.apple.com/auth/keys',
    'https://appleid.apple.com/auth/token',
    'https://appleid.apple.com/auth/revoke',
  ])
})

function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'none',
    error => error.code ?? String(error),
  )
}
