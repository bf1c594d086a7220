/** `verifyToken` with tokens of a running server, with forgeries of them, and where the server's keys change or can't be had. */

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { verifyToken } from '../../src/backend/server.ts'
import { formatUserToken, generateUserTokenKey, userTokenKey } from '../../src/domain/accounts/user-token.ts'
import { openServer } from '../support/open-server.ts'
import { AUDIENCE, forgeriesOf, signedIn, tokenSettings } from '../support/user-tokens.ts'

const [one, two] = [generateUserTokenKey(randomBytes), generateUserTokenKey(randomBytes)]
const [keyOne, keyTwo] = [userTokenKey(one), userTokenKey(two)]
const CLAIMS = { sub: '7', ext: undefined, aud: AUDIENCE, sid: '8', jti: '9' }

t.test('the user of a server’s token, and of no other text', async t => {
  const server = await openServer({ dataFolder: t.testdir(), environment: tokenSettings(one) })
  t.teardown(() => server.end())
  const { app, userId, tokenFor } = await signedIn(server.http)
  const options = { jwksUrl: `${server.http}/.well-known/jwks.json`, audience: AUDIENCE }
  const token = await tokenFor()
  const { items } = await app.get(200, 'GET /app/api/user/sessions')
  const user = await verifyToken(token, options)
  t.match(user, { userId, externalId: undefined, sessionId: items[0].id })
  const inS = (user.expiresAt.getTime() - Date.now()) / 1000
  t.ok(inS > 0 && inS <= 300, 'five minutes')

  for (const [fault, forgery] of Object.entries(forgeriesOf(token, keyOne, keyTwo)))
    await t.rejects(verifyToken(forgery, options), { code: 'TOKEN_INVALID' }, fault)
  const others = { 'an access token': app.accessToken!, 'for another service': await tokenFor('reports') }
  for (const [fault, other] of Object.entries(others))
    await t.rejects(verifyToken(other, options), { code: 'TOKEN_INVALID' }, fault)
  const elsewhere = { ...options, issuer: 'https://call.example.org' }
  await t.rejects(verifyToken(token, elsewhere), { code: 'TOKEN_INVALID' }, 'another issuer')
})

/** A server's list of keys, as the test sets it, at its own address. */
async function listing(t: Test, answer: RequestListener) {
  const server = createServer(answer).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const madeAtMs = Date.now()
  const tokenBy = (key: typeof keyOne, ext?: string) =>
    formatUserToken(key, { ...CLAIMS, ext, iss: issuer }, madeAtMs)
  return { tokenBy, options: { jwksUrl: `${issuer}/.well-known/jwks.json`, audience: AUDIENCE } }
}

t.test('the list is kept, and asked for again for a key that it lacks', async t => {
  let listed = [keyOne]
  let asked = 0
  const { tokenBy, options } = await listing(t, (_, answer) => {
    asked++
    answer.end(JSON.stringify({ keys: listed.map(({ jwk }) => jwk) }))
  })
  t.match(await verifyToken(tokenBy(keyOne, 'Ångström 1'), options), {
    userId: '7',
    externalId: 'Ångström 1',
  })
  await verifyToken(tokenBy(keyOne), options)
  t.equal(asked, 1)
  listed = [keyTwo, keyOne]
  const { now } = Date
  t.teardown(() => {
    Date.now = now
  })
  await t.rejects(verifyToken(tokenBy(keyTwo), options), { code: 'TOKEN_INVALID' })
  t.equal(asked, 1, 'unknown keys do not make it ask more than twice a minute')
  Date.now = () => now() + 31_000
  t.match(await verifyToken(tokenBy(keyTwo), options), { userId: '7' })
  t.equal(asked, 2)
  listed = [keyTwo]
  Date.now = () => now() + 31_000 + 300_000
  await t.rejects(
    verifyToken(tokenBy(keyOne), options),
    { code: 'TOKEN_INVALID' },
    'a key that was taken out',
  )
})

t.test('where the keys can’t be had, the token is not at fault', async t => {
  const answers: Record<string, RequestListener> = {
    'an error': (_, answer) => void answer.writeHead(503).end(),
    'no JSON': (_, answer) => void answer.end('<html>'),
    'no list': (_, answer) => void answer.end('{"keys":7}'),
    'a redirect': (_, answer) => void answer.writeHead(302, { location: '/keys' }).end(),
    'a broken connection': request => void request.socket.destroy(),
  }
  for (const [what, answer] of Object.entries(answers)) {
    const { tokenBy, options } = await listing(t, answer)
    await t.rejects(verifyToken(tokenBy(keyOne), options), { code: 'NO_ANSWER' }, what)
  }
})

t.test('options that are none are the caller’s mistake, whatever the token', async t => {
  const jwksUrl = 'http://127.0.0.1:1/.well-known/jwks.json'
  const unset = undefined as unknown as string
  for (const options of [
    { jwksUrl, audience: unset },
    { jwksUrl, audience: '' },
    { jwksUrl: unset, audience: AUDIENCE },
    { jwksUrl: 'keys', audience: AUDIENCE },
    { jwksUrl: 'http://127.0.0.1:1/keys', audience: AUDIENCE },
  ])
    await t.rejects(verifyToken('', options), TypeError)
})
