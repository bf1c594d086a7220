/** Tokens for the operator's own services: who gets one, for whom, and what it says. */

import { createLocalJWKSet, jwtVerify } from 'jose'
import t from 'tap'
import { sessionIdText } from '../../../src/store/accounts/session-store.ts'
import { newDevice, newDeviceList, newSession, newUser } from '../../support/application.ts'
import { openTestApi, USER_TOKEN_KEY } from '../../support/test-api.ts'

const TOKENS = 'POST /app/api/user/tokens'
const AUDIENCE = 'https://api.example.org'

t.test('a token says who, by which session, for whom and until when', async t => {
  const { send, world, advance } = await openTestApi(t)
  const { token, userId, sessionId } = await newUser(world)
  await advance(999)
  const { status, body, headers } = await send(TOKENS, { token, body: { audience: AUDIENCE } })
  t.match({ status, headers }, { status: 200, headers: { 'cache-control': 'no-store' } })
  t.equal(body.expiresIn, 300)
  const { payload } = await jwtVerify(body.token, createLocalJWKSet({ keys: [USER_TOKEN_KEY.jwk] }), {
    typ: 'callsign-user+jwt',
    issuer: world.publicUrl(),
    audience: AUDIENCE,
    currentDate: new Date(world.nowMs()),
  })
  const iat = Math.floor(world.nowMs() / 1000)
  const { jti, ...claims } = payload
  const sid = sessionIdText(sessionId)
  t.same(claims, { iss: world.publicUrl(), sub: `${userId}`, aud: AUDIENCE, sid, iat, exp: iat + 300 })
  t.match(jti, /^[A-Za-z0-9_-]{22}$/)
  const again = await send(TOKENS, { token, body: { audience: AUDIENCE } })
  t.not(claimsOf(again.body.token).jti, jti, 'each has an id of its own')
})

t.test("the operator's own id of the user is in it, whatever characters it has", async t => {
  const { send, world } = await openTestApi(t)
  const { token, userId } = await newUser(world)
  for (const externalId of ['7', 'a"b\\c\u0000d/😀', 'é'.repeat(128)]) {
    await world.database.change(change => {
      world.accounts.put(change, userId, { ...world.accounts.read(change, userId)!, externalId })
    })
    const { body } = await send(TOKENS, { token, body: { audience: 'reports' } })
    t.match(claimsOf(body.token), { ext: externalId, aud: 'reports' })
  }
})

t.test('a service that is not listed gets none, and neither does a text that could be none', async t => {
  const { send, world } = await openTestApi(t)
  const { token } = await newUser(world)
  const ask = async (body: object) => (await send(TOKENS, { token, body })).body.code
  for (const audience of [
    `${AUDIENCE}/`,
    AUDIENCE.toUpperCase(),
    'report',
    'reports,x',
    '*',
    'a'.repeat(256),
  ])
    t.equal(await ask({ audience }), 'AUDIENCE_UNKNOWN', audience)
  for (const body of [{}, { audience: '' }, { audience: ['reports'] }, { audience: 'a'.repeat(257) }])
    t.equal(await ask(body), 'VALIDATION_FAILED')
})

t.test('a server without audiences makes no tokens', async t => {
  const { send, world } = await openTestApi(t, { config: { tokenAudiences: [] } })
  const { token } = await newUser(world)
  const { body } = await send(TOKENS, { token, body: { audience: AUDIENCE } })
  t.equal(body.code, 'AUDIENCE_UNKNOWN')
})

t.test('a session that is restricted, over, or of a suspended user gets none', async t => {
  const { send, world } = await openTestApi(t)
  const { userId } = await newUser(world)
  const { deviceId } = await newDevice(world, userId)
  const { token } = await newSession(world, userId)
  const listed = await newSession(world, userId, deviceId)
  const ask = async (token: string) => {
    const { status, body } = await send(TOKENS, { token, body: { audience: 'reports' } })
    return body.code ?? status
  }
  t.equal(await ask(token), 'DEVICE_REQUIRED')
  await newDeviceList(world, userId, [deviceId])
  t.equal(await ask(token), 'DEVICE_NOT_LISTED')
  t.equal(await ask(listed.token), 200)
  await world.database.change(change => {
    const user = world.accounts.read(change, userId)!
    world.accounts.put(change, userId, { ...user, suspension: { reason: 'abuse', atMs: 1 } })
  })
  t.match(await send(TOKENS, { token: listed.token, body: { audience: 'reports' } }), {
    status: 403,
    body: { code: 'ACCOUNT_SUSPENDED', reason: 'abuse' },
  })
  await send('POST /app/api/logout', { token: listed.token })
  t.equal(await ask(listed.token), 'TOKEN_INVALID')
})

t.test('sixty a minute, for all sessions of a user together', async t => {
  const { send, world, advance } = await openTestApi(t, { rates: true })
  const { token, userId } = await newUser(world)
  const other = await newSession(world, userId)
  const ask = (by = token) => send(TOKENS, { token: by, body: { audience: 'reports' } })
  for (let count = 0; count < 60; count++) t.equal((await ask()).status, 200)
  t.match(await ask(other.token), { status: 429, body: { code: 'RATE_LIMITED', scope: 'user' } })
  await advance(60_000)
  t.equal((await ask()).status, 200)
})

function claimsOf(token: string) {
  return JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString())
}
