/**
 * Credentials of `GET /credentials` at a real relay: coturn takes them, also while secrets change, and refuses expired
 * credentials and those signed by another server. Skipped where Debian's coturn is not installed.
 */

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { getCredentials } from '../../src/api/calls/credentials.ts'
import { parseTurnUrl, type TurnRelay, turnAddresses } from '../../src/domain/calls/turn.ts'
import { newUser, openWorld, sender } from '../support/application.ts'
import { relayMessages, skipWithoutCoturn, startCoturn, startPeer } from '../support/coturn.ts'

const skip = skipWithoutCoturn
const [CURRENT, PREVIOUS] = ['a-secret-of-today', 'a-secret-of-yesterday']

/** A relay that knows the secrets, a peer behind it, and a device's credentials from a server with other secrets. */
async function open(t: Test, known: readonly string[]) {
  const folder = t.testdir({ coturn: {}, data: {} })
  const world = openWorld(join(folder, 'data'), Date.now())
  t.teardown(() => world.database.close())
  const coturn = await startCoturn(t, join(folder, 'coturn'), known)
  const peer = await startPeer(t)
  const [plain, tls] = [`turn:127.0.0.1:${coturn.port}`, `turns:127.0.0.1:${coturn.tlsPort}`].map(
    parseTurnUrl,
  )
  async function credentialsBy(secrets: TurnRelay['secrets']) {
    const relay = { secrets, addresses: turnAddresses(plain!, tls!), lifetimeS: LIFETIME_S }
    const send = sender({ ...world, relay }, [getCredentials])
    const { status, body } = await send('GET /credentials', await newUser(world))
    t.equal(status, 200)
    return { username: String(body.turnUsername), password: String(body.turnPassword) }
  }
  return { world, coturn, peer, credentialsBy }
}

t.test('the relay carries media for credentials of the server, by UDP and by TLS', { skip }, async t => {
  const { coturn, peer, credentialsBy } = await open(t, [CURRENT])
  const credentials = await credentialsBy([CURRENT])
  for (const isTls of [false, true]) {
    const before = peer.count()
    const { code, stdout } = await relayMessages(coturn, peer, { ...credentials, isTls })
    t.equal(code, 0, stdout)
    t.equal(peer.count() - before, 2, 'the peer heard it from the relay')
  }
  await coturn.says(`user <${credentials.username}>: incoming packet ALLOCATE processed, success`)
})

t.test('credentials are refused once they have expired', { skip }, async t => {
  const { world, coturn, peer, credentialsBy } = await open(t, [CURRENT])
  world.tick(-(LIFETIME_S + 1) * 1000)
  const credentials = await credentialsBy([CURRENT])
  t.not((await relayMessages(coturn, peer, credentials)).code, 0)
  await coturn.says(
    `user <${credentials.username}>: incoming packet message processed, error 401: Unauthorized`,
  )
  t.equal(peer.count(), 0)
})

t.test('while secrets change the relay takes those signed by either, and by no third', { skip }, async t => {
  const { coturn, peer, credentialsBy } = await open(t, [CURRENT, PREVIOUS])
  const isTaken = async (secrets: TurnRelay['secrets']) =>
    (await relayMessages(coturn, peer, await credentialsBy(secrets))).code === 0
  const taken = await Promise.all([
    isTaken([CURRENT, PREVIOUS]),
    isTaken([PREVIOUS]),
    isTaken(['a-secret-of-somebody-else', CURRENT]),
  ])
  t.same(taken, [true, true, false])
})

t.test('a name with another expiry than was signed is refused', { skip }, async t => {
  const { coturn, peer, credentialsBy } = await open(t, [CURRENT])
  const { username, password } = await credentialsBy([CURRENT])
  const later = username.replace(/^\d+/, expiry => String(Number(expiry) + 86_400))
  t.not((await relayMessages(coturn, peer, { username: later, password })).code, 0)
})

const LIFETIME_S = 43_200
