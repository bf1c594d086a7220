/**
 * User tokens of a running server: an API takes them by the code that docs/build/backend.md shows for Node, refuses all else, and
 * goes on while their key is replaced. Other languages are in `user-tokens-strangers.long.test.ts`.
 */

import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createRemoteJWKSet, type JWTPayload, jwtVerify } from 'jose'
import t from 'tap'
import { Callsign } from '../../src/app/callsign.ts'
import { memoryStorage } from '../../src/app/storage/storage.ts'
import { generateUserTokenKey, userTokenKey } from '../../src/domain/accounts/user-token.ts'
import { webSocket } from '../support/app-connections.ts'
import { rejectionOf } from '../support/app-sessions.ts'
import { CODE, emailOf } from '../support/call-people.ts'
import { freePort } from '../support/free-port.ts'
import { openServer } from '../support/open-server.ts'
import { AUDIENCE, forgeriesOf, signedIn, tokenSettings, verifierOnPage } from '../support/user-tokens.ts'

type Verify = (token: string) => Promise<JWTPayload>

const [one, two] = [generateUserTokenKey(randomBytes), generateUserTokenKey(randomBytes)]
const [keyOne, keyTwo] = [userTokenKey(one), userTokenKey(two)]
const jwksOf = async (http: string) => (await fetch(`${http}/.well-known/jwks.json`)).json()

/** The page's verifier, with no keys yet. */
async function newVerifier(folder: string, http: string): Promise<Verify> {
  const path = join(folder, 'verifier.mjs')
  writeFileSync(path, verifierOnPage('js', http))
  return (await import(`${pathToFileURL(path)}?${randomBytes(8).toString('hex')}`)).claimsOf
}

t.test('an API knows the user by a token, and takes nothing else for one', async t => {
  const folder = t.testdir({ data: {} })
  const server = await openServer({ dataFolder: join(folder, 'data'), environment: tokenSettings(one) })
  t.teardown(() => server.end())
  const { app, userId, tokenFor } = await signedIn(server.http)
  const claimsOf = await newVerifier(folder, server.http)
  const token = await tokenFor()
  const { items } = await app.get(200, 'GET /app/api/user/sessions')
  const claims = await claimsOf(token)
  t.match(claims, { iss: server.http, sub: userId, aud: AUDIENCE, sid: items[0].id })
  t.notOk('ext' in claims)
  for (const [fault, forgery] of Object.entries(forgeriesOf(token, keyOne, keyTwo)))
    await t.rejects(claimsOf(forgery), fault)
  await t.rejects(claimsOf(app.accessToken!), 'an access token')
  await t.rejects(claimsOf(await tokenFor('reports')), 'for another service')
  const other = await app.send('POST /app/api/user/tokens', { audience: 'https://other.example.org' })
  t.match([other.status, other.body.code], [422, 'AUDIENCE_UNKNOWN'])

  await app.get(204, 'POST /app/api/logout', {})
  const over = await app.send('POST /app/api/user/tokens', { audience: AUDIENCE })
  t.match([over.status, over.body.code], [401, 'TOKEN_INVALID'])
  t.match(await claimsOf(token), { sub: userId }, 'what was given is good to its end')
})

t.test('the list of keys is for all, and may be kept for five minutes', async t => {
  const server = await openServer({ dataFolder: t.testdir(), environment: tokenSettings(two, one) })
  t.teardown(() => server.end())
  const answer = await fetch(`${server.http}/.well-known/jwks.json`)
  t.equal(answer.headers.get('cache-control'), 'public, max-age=300')
  t.same(await answer.json(), { keys: [keyTwo.jwk, keyOne.jwk] })
  const etag = answer.headers.get('etag')!
  const again = await fetch(`${server.http}/.well-known/jwks.json`, { headers: { 'if-none-match': etag } })
  t.equal(again.status, 304)
})

t.test('a key is replaced in steps, and no good token is refused on the way', async t => {
  const folder = t.testdir({ data: {} })
  const port = await freePort()
  const started = async (...keys: readonly string[]) => {
    const environment = { ...tokenSettings(...keys), CALLSIGN_HTTP_PORT: `${port}` }
    return openServer({ dataFolder: join(folder, 'data'), environment })
  }
  let server = await started(one)
  t.teardown(() => server.end())
  const { http } = server
  const person = await signedIn(http)
  const kidOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString()).kid
  const restart = async (...keys: readonly string[]) => {
    await server.end()
    server = await started(...keys)
  }
  const byOne = await person.tokenFor()

  await restart(one, two)
  t.equal(kidOf(await person.tokenFor()), keyOne.jwk.kid, 'the old key signs')
  const patient = await newVerifier(folder, http)
  await patient(byOne)

  await restart(two, one)
  const byTwo = await person.tokenFor()
  t.equal(kidOf(byTwo), keyTwo.jwk.kid, 'the new key signs')
  // It has asked for no keys since the step before, and may not within half a minute.
  for (const claimsOf of [patient, await newVerifier(folder, http)])
    for (const token of [byOne, byTwo]) t.match(await claimsOf(token), { sub: person.userId })

  await restart(two)
  const late = await newVerifier(folder, http)
  t.match(await late(byTwo), { sub: person.userId })
  await t.rejects(late(byOne), { code: 'ERR_JWKS_NO_MATCHING_KEY' })
})

t.test('fronts give the tokens of one server, and count them in one place', async t => {
  const rates = { CALLSIGN_RATE_LIMITS: '', CALLSIGN_RATES: '{"user-token":8}' }
  const environment = { ...tokenSettings(one), ...rates, CALLSIGN_FRONTS: '2' }
  const server = await openServer({ dataFolder: t.testdir(), environment })
  t.teardown(() => server.end())
  const { app, userId } = await signedIn(server.http)
  const keys = createRemoteJWKSet(new URL(`${server.http}/.well-known/jwks.json`))
  // Each by a connection of its own, which either front may get.
  const ANYWHERE = { connection: 'close' }
  const ask = () => app.send('POST /app/api/user/tokens', { audience: AUDIENCE }, ANYWHERE)
  for (let count = 0; count < 8; count++) {
    const listed = await fetch(`${server.http}/.well-known/jwks.json`, { headers: ANYWHERE })
    t.same(await listed.json(), { keys: [keyOne.jwk] })
    const { body } = await ask()
    const { payload } = await jwtVerify(body.token, keys, { audience: AUDIENCE, issuer: server.http })
    t.equal(payload.sub, userId)
  }
  t.match(await ask(), { status: 429, body: { code: 'RATE_LIMITED' } })
})

t.test('a development server has a key of its own, which lasts', async t => {
  const dataFolder = t.testdir()
  const environment = { ...tokenSettings(), CALLSIGN_TOKEN_KEY: '' }
  const first = await openServer({ dataFolder, environment })
  const { keys } = (await jwksOf(first.http)) as { keys: object[] }
  t.equal(keys.length, 1)
  await first.end()
  const second = await openServer({ dataFolder, environment })
  t.teardown(() => second.end())
  t.same(await jwksOf(second.http), { keys })
  const { tokenFor } = await signedIn(second.http)
  await jwtVerify(await tokenFor(), createRemoteJWKSet(new URL(`${second.http}/.well-known/jwks.json`)))
})

t.test('the SDK gives the same token again, and none after the sign-out', async t => {
  const folder = t.testdir({ data: {} })
  const server = await openServer({ dataFolder: join(folder, 'data'), environment: tokenSettings(one) })
  t.teardown(() => server.end())
  const pins = { vkey: server.vkey, vrfPublicKey: server.vrfPublicKey }
  const me = new Callsign({ server: server.http, pins, storage: memoryStorage(), webSocket })
  t.teardown(() => me.close())
  t.equal(await rejectionOf(me.tokenFor(AUDIENCE)), 'SIGNED_OUT')
  const { userId } = await me.signIn(emailOf(0), () => CODE)
  const [token, same] = await Promise.all([me.tokenFor(AUDIENCE), me.tokenFor(AUDIENCE)])
  t.equal(same, token)
  t.match(await (await newVerifier(folder, server.http))(token), { sub: userId })
  t.equal(await rejectionOf(me.tokenFor('other')), 'AUDIENCE_UNKNOWN')
  await me.signOut()
  t.equal(await rejectionOf(me.tokenFor(AUDIENCE)), 'SIGNED_OUT')
  await me.signIn(emailOf(0), () => CODE)
  t.not(await me.tokenFor(AUDIENCE), token, 'another session')
})
