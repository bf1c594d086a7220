/** Access tokens to requesters: refusals, and that nothing remembered outlives its session row. */

import t, { type Test } from 'tap'
import { Authentication } from '../../../src/api/accounts/authentication.ts'
import { decideRefresh, type Session } from '../../../src/domain/accounts/session.ts'
import { formatAccessToken } from '../../../src/domain/accounts/token.ts'
import type { DeviceId } from '../../../src/domain/ids.ts'
import { deriveSecrets } from '../../../src/domain/secrets.ts'
import { sessionName } from '../../../src/store/accounts/session-store.ts'
import { newSession, newUser, openWorld, type TestUser, type TestWorld } from '../../support/application.ts'

const HOUR_MS = 3_600_000

async function open(t: Test): Promise<{ world: TestWorld; user: TestUser }> {
  const world = openWorld(t.testdir())
  t.teardown(() => world.database.close())
  return { world, user: await newUser(world) }
}

function read(world: TestWorld, { sessionId }: { sessionId: Uint8Array }): Session {
  return world.database.view(view => world.sessions.read(view, sessionId))!
}

/** A header's result: the requester's id, or the code of the refusal. */
function outcome(world: TestWorld, header: string): string {
  try {
    return String(world.authentication.requesterOf(header).userId)
  } catch (error) {
    return (error as { code: string }).code
  }
}

t.test('a genuine token leads to its session', async t => {
  const { world, user } = await open(t)
  const requester = world.authentication.requesterOf(`Bearer ${user.token}`)
  t.equal(requester.userId, user.userId)
  t.equal(requester.sessionName, sessionName(user.sessionId))
  t.equal(requester.deviceId, undefined)
})

t.test('the scheme is read by RFC 9110, and nothing else is a bearer token', async t => {
  const { world, user } = await open(t)
  const { token } = user
  const good = String(user.userId)
  t.equal(outcome(world, `bearer ${token}`), good)
  t.equal(outcome(world, `BEARER  ${token} `), good)
  t.equal(outcome(world, ''), 'TOKEN_MISSING')
  for (const header of [
    token,
    `Basic ${token}`,
    `Bearer${token}`,
    'Bearer',
    'Bearer ',
    `Bearer ${token} ${token}`,
    `Bearer ${token}, Bearer ${token}`,
    `Bearer "${token}"`,
    `Bearer ${token}=`,
    `Bearer ${token.slice(0, -1)}`,
    `Bearer kat_${'A'.repeat(10_000)}`,
  ]) {
    t.equal(outcome(world, header), 'TOKEN_INVALID', header.slice(0, 40))
  }
})

t.test('every other character in any place makes it another token', async t => {
  const { world, user } = await open(t)
  t.equal(outcome(world, `Bearer ${user.token}`), String(user.userId), 'remembered from now on')
  const accepted: string[] = []
  for (let at = 0; at < user.token.length; at++) {
    for (const other of 'AZaz09-_+/=. é') {
      if (user.token[at] === other) continue
      const flipped = user.token.slice(0, at) + other + user.token.slice(at + 1)
      if (outcome(world, `Bearer ${flipped}`) !== 'TOKEN_INVALID') accepted.push(`${at} ${other}`)
    }
  }
  t.same(accepted, [])
})

t.test('a refresh token is no access token, and one of another server none either', async t => {
  const { world, user } = await open(t)
  const { refreshToken } = world.authentication.tokensOf(user.sessionId, read(world, user))
  t.equal(outcome(world, `Bearer ${refreshToken}`), 'TOKEN_INVALID')
  t.equal(outcome(world, `Bearer ${refreshToken.replace('krt_', 'kat_')}`), 'TOKEN_INVALID')
  const foreign = formatAccessToken(deriveSecrets(Buffer.alloc(32, 8)).accessToken, {
    sessionId: user.sessionId,
    generation: 1,
    expiresAtS: Math.floor(world.nowMs() / 1000) + 3600,
  })
  t.equal(outcome(world, `Bearer ${foreign}`), 'TOKEN_INVALID')
})

t.test('a token ends on the second, even one that was accepted before', async t => {
  const { world, user } = await open(t)
  t.equal(outcome(world, `Bearer ${user.token}`), String(user.userId))
  await world.advance(HOUR_MS - 1)
  t.equal(outcome(world, `Bearer ${user.token}`), String(user.userId))
  await world.advance(1)
  t.equal(outcome(world, `Bearer ${user.token}`), 'TOKEN_EXPIRED')
})

t.test('a token that was accepted does not bring a revoked session back', async t => {
  const { world, user } = await open(t)
  t.equal(outcome(world, `Bearer ${user.token}`), String(user.userId))
  await world.database.change(
    change => world.sessions.revoke(change, user.sessionId, 'logged_out_everywhere'),
    world.nowMs(),
  )
  t.equal(outcome(world, `Bearer ${user.token}`), 'SESSION_REVOKED')
  await world.advance(HOUR_MS)
  t.equal(
    world.database.view(view => world.sessions.read(view, user.sessionId)),
    undefined,
    'its row goes when no token can hear of it',
  )
  t.equal(outcome(world, `Bearer ${user.token}`), 'TOKEN_INVALID')
})

t.test('nor one that was ended', async t => {
  const { world, user } = await open(t)
  t.equal(outcome(world, `Bearer ${user.token}`), String(user.userId))
  await world.database.change(change => world.sessions.remove(change, user.sessionId))
  t.equal(outcome(world, `Bearer ${user.token}`), 'TOKEN_INVALID')
})

t.test('what the session row says is read anew: a device bound since is known at once', async t => {
  const { world, user } = await open(t)
  world.authentication.requesterOf(`Bearer ${user.token}`)
  await world.database.change(change => world.sessions.bind(change, user.sessionId, 77n as DeviceId))
  t.equal(world.authentication.requesterOf(`Bearer ${user.token}`).deviceId, 77n)
})

t.test('the pair before the current one is good until it expires, older ones are over', async t => {
  const { world, user } = await open(t)
  const tokens = [user.token]
  for (let generation = 1; generation <= 3; generation++) {
    await world.advance(1_000)
    await rotate(world, user)
    tokens.push(world.authentication.tokensOf(user.sessionId, read(world, user)).accessToken)
  }
  const good = String(user.userId)
  t.same(
    tokens.map(token => outcome(world, `Bearer ${token}`)),
    ['TOKEN_EXPIRED', 'TOKEN_EXPIRED', good, good],
  )
})

t.test('a token of a generation that is not there yet is refused: the store was rolled back', async t => {
  const { world, user } = await open(t)
  const ahead = world.authentication.tokensOf(user.sessionId, { ...read(world, user), generation: 2 })
  t.equal(outcome(world, `Bearer ${ahead.accessToken}`), 'TOKEN_INVALID')
})

t.test('the first use of the current pair is noted, the previous pair’s is not', async t => {
  const { world, user } = await open(t)
  await rotate(world, user)
  world.authentication.requesterOf(`Bearer ${user.token}`)
  await world.database.change(() => undefined)
  t.equal(read(world, user).isPairUsed, false)
  const { accessToken } = world.authentication.tokensOf(user.sessionId, read(world, user))
  world.authentication.requesterOf(`Bearer ${accessToken}`)
  await world.database.change(() => undefined)
  t.equal(read(world, user).isPairUsed, true)
})

t.test('a pair is the same text until it is renewed, with the time that it has left', async t => {
  const { world, user } = await open(t)
  const first = world.authentication.tokensOf(user.sessionId, read(world, user))
  await world.advance(600_000)
  const second = world.authentication.tokensOf(user.sessionId, read(world, user))
  t.equal(second.accessToken, first.accessToken)
  t.equal(second.refreshToken, first.refreshToken)
  t.same([first.expiresIn, second.expiresIn], [3600, 3000])
  await rotate(world, user)
  const third = world.authentication.tokensOf(user.sessionId, read(world, user))
  t.not(third.accessToken, first.accessToken)
  t.not(third.refreshToken, first.refreshToken)
  t.equal(third.expiresIn, 3600)
})

t.test('sessions of one user are apart: ending one leaves the other', async t => {
  const { world, user } = await open(t)
  const other = await newSession(world, user.userId)
  await world.database.change(change => world.sessions.remove(change, user.sessionId))
  t.equal(outcome(world, `Bearer ${user.token}`), 'TOKEN_INVALID')
  t.equal(outcome(world, `Bearer ${other.token}`), String(user.userId))
})

t.test('a use that could not be noted does not fail the request', async t => {
  const { world, user } = await open(t)
  const markPairUsed = () => Promise.reject(new Error('no room'))
  const authentication = new Authentication({ ...world, markPairUsed })
  t.equal(authentication.requesterOf(`Bearer ${user.token}`).userId, user.userId)
})

/** As a refresh does. */
function rotate(world: TestWorld, user: TestUser): Promise<void> {
  return world.database.change(change => {
    const session = world.sessions.read(change, user.sessionId)!
    const decision = decideRefresh(
      session,
      { generation: session.generation, nowMs: change.nowMs, isListed: false },
      world.lifetimes,
    )
    if (decision.kind === 'rotate') world.sessions.put(change, user.sessionId, decision.session)
  })
}
