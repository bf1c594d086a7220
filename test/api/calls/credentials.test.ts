/** Credentials for the relay, as a signed-in device asks for them. */

import t, { type Test } from 'tap'
import { getCredentials } from '../../../src/api/calls/credentials.ts'
import { developmentRelay, type TurnRelay } from '../../../src/domain/calls/turn.ts'
import { newUser, openWorld, sender } from '../../support/application.ts'

const RELAY: TurnRelay = {
  secrets: ['north', 'south'],
  addresses: {
    tlsUrl: 'turns:turn.example.org:5349?transport=tcp',
    noneTlsUrl: 'turn:turn.example.org:3478?transport=udp',
    uris: ['turn:turn.example.org:3478?transport=udp', 'turns:turn.example.org:5349?transport=tcp'],
    stunUrl: 'stun:turn.example.org:3478',
  },
  lifetimeS: 43_200,
}

async function open(t: Test, relay: TurnRelay | undefined, options: { rates?: boolean } = {}) {
  const world = openWorld(t.testdir(), Date.UTC(2026, 10, 20, 4, 0, 0, 500), options)
  t.teardown(() => world.database.close())
  return { world, user: await newUser(world), send: sender({ ...world, relay }, [getCredentials]) }
}

t.test('credentials are good for the user and twelve hours, and are not kept on the way', async t => {
  const { user, send } = await open(t, RELAY)
  const { status, headers, body } = await send('GET /credentials', user)
  const { turnUsername, turnPassword, ...rest } = body
  t.equal(status, 200)
  t.equal(headers['cache-control'], 'no-store')
  t.equal(turnUsername, `${Date.UTC(2026, 10, 20, 16) / 1000}:${user.userId}`)
  t.match(turnPassword, /^[A-Za-z0-9+/]{27}=$/)
  t.same(rest, { ...RELAY.addresses, ttl: 43_200, expiresAt: '2026-11-20T16:00:00.000Z' })
})

t.test('they are found at the root and under both forms of the API', async t => {
  const { user, send } = await open(t, RELAY)
  const paths = ['/credentials', '/app/api/credentials', '/api/credentials', '/credentials/']
  const bodies = await Promise.all(paths.map(async path => (await send(`GET ${path}`, user)).text))
  t.equal(new Set(bodies).size, 1)
})

t.test('credentials need a session', async t => {
  const { send } = await open(t, RELAY)
  t.match(await send('GET /credentials'), { status: 401, body: { code: 'TOKEN_MISSING' } })
  t.match(await send('GET /credentials', { token: 'forged' }), {
    status: 401,
    body: { code: 'TOKEN_INVALID' },
  })
})

t.test('a server without a relay says so, and not to ask again soon', async t => {
  const { user, send } = await open(t, undefined)
  const { status, headers, body } = await send('GET /credentials', user)
  t.match([status, body.code, headers['retry-after']], [503, 'TURN_NOT_CONFIGURED', '3600'])
})

t.test('a development server leaves STUN out', async t => {
  const { user, send } = await open(t, developmentRelay('127.0.0.1'))
  const { body } = await send('GET /credentials', user)
  t.match(body, { noneTlsUrl: 'turn:127.0.0.1:3478?transport=udp', ttl: 43_200 })
  t.notOk('stunUrl' in body)
})

t.test('a user asks thirty times in ten minutes, in whatever spelling', async t => {
  const { world, user, send } = await open(t, RELAY, { rates: true })
  const other = await newUser(world)
  let admitted = 0
  for (let at = 0; at < 30; at++) {
    const { status } = await send(at % 2 === 0 ? 'GET /credentials' : 'GET /api/credentials', user)
    if (status === 200) admitted++
  }
  t.equal(admitted, 30)
  t.match(await send('GET /app/api/credentials', user), {
    status: 429,
    body: { code: 'RATE_LIMITED', scope: 'user', retryIn: 20 },
  })
  t.equal((await send('GET /credentials', other)).status, 200, 'it is counted by user')
  world.tick(19_999)
  t.equal((await send('GET /credentials', user)).status, 429)
  world.tick(1)
  t.equal((await send('GET /credentials', user)).status, 200)
})
