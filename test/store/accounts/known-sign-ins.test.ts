/** By what an account knows those who ask for codes, for how long, and what of it is on the disk. */

import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Address } from '../../../src/domain/accounts/challenge.ts'
import { formatRefreshToken } from '../../../src/domain/accounts/token.ts'
import { countedNetworks } from '../../../src/domain/network.ts'
import { EXPIRY } from '../../../src/store/engine/expiries.ts'
import { networkOf, parseAddress } from '../../../src/transport/remote-address.ts'
import { newSession, newUser, openWorld } from '../../support/application.ts'
import { storedTable } from '../../support/stored-table.ts'

const DAY_MS = 86_400_000
const ANN: Address = { kind: 'email', key: 'ann@example.org', shown: 'ann@example.org' }

async function openStage(t: Test) {
  const folder = t.testdir()
  const world = openWorld(folder)
  world.expiries.define(EXPIRY.sessionEnding, () => undefined)
  t.teardown(() => world.database.close())
  const ann = await newUser(world, 'Ann', ANN.key)
  const tokenOf = (sessionId: Uint8Array) =>
    formatRefreshToken(world.secrets.refreshToken, { sessionId, generation: 1 })
  return {
    folder,
    world,
    ann,
    tokenOf,
    note: (network: string, sessionId: Uint8Array = randomBytes(16)) =>
      world.database.change(
        change => world.knownSignIns.note(change, ann.userId, network, sessionId),
        world.nowMs(),
      ),
    askerOf: (network: string, refreshToken?: string, address = ANN) =>
      world.database.view(view =>
        world.knownSignIns.askerOf(view, address, { network, refreshToken }, world.nowMs()),
      ),
  }
}

t.test('a network is known for ninety days after it was last seen', async t => {
  const { world, note, askerOf } = await openStage(t)
  t.equal(askerOf('192.0.2.1'), 'stranger')
  await note('192.0.2.1')
  t.equal(askerOf('192.0.2.1'), 'network')
  t.equal(askerOf('192.0.2.2'), 'stranger')
  await world.advance(60 * DAY_MS)
  await note('192.0.2.1')
  await world.advance(89 * DAY_MS)
  t.equal(askerOf('192.0.2.1'), 'network')
  await world.advance(DAY_MS)
  t.equal(askerOf('192.0.2.1'), 'stranger')
  t.equal(world.database.rowCount(world.database.storedRows('known-sign-ins')), 0, 'nothing is left')
})

t.test(
  'a refresh token is known while its session lasts, and ninety days after it was last seen',
  async t => {
    const { world, ann, tokenOf, note, askerOf } = await openStage(t)
    t.equal(askerOf('x', tokenOf(ann.sessionId)), 'token', 'its session lasts')
    await note('192.0.2.1', ann.sessionId)
    await world.database.change(change => world.sessions.remove(change, ann.sessionId))
    t.equal(askerOf('x', tokenOf(ann.sessionId)), 'token', 'its session is over')
    await world.advance(90 * DAY_MS)
    t.equal(askerOf('x', tokenOf(ann.sessionId)), 'stranger')
  },
)

t.test('made-up tokens, another user’s and revoked ones leave an asker unknown', async t => {
  const { world, ann, tokenOf, note, askerOf } = await openStage(t)
  const bob = await newUser(world, 'Bob', 'bob@example.org')
  await note('192.0.2.1', ann.sessionId)
  for (const text of ['', 'krt_x', ann.token, tokenOf(randomBytes(16)), tokenOf(bob.sessionId)]) {
    t.equal(askerOf('x', text), 'stranger')
  }
  await world.database.change(
    change => world.sessions.revoke(change, ann.sessionId, 'refresh_token_reused'),
    world.nowMs(),
  )
  t.equal(askerOf('x', tokenOf(ann.sessionId)), 'stranger')
})

t.test('the prefixes around an IPv6 network are known with it, to its account alone', async t => {
  const { world, note } = await openStage(t)
  const network = networkOf(parseAddress('2001:db8:1:203::1')!)
  const knownOf = (address: string, key = ANN.key) =>
    countedNetworks(networkOf(parseAddress(address)!)).filter(prefix =>
      world.database.view(view =>
        world.knownSignIns.knowsPrefix(view, { ...ANN, key }, prefix, world.nowMs()),
      ),
    ).length
  t.equal(knownOf('2001:db8:1:203::1'), 0)
  await note(network)
  t.same(
    ['2001:db8:1:203::1', '2001:db8:1:2ff::1', '2001:db8:1:9::', '2001:db8:2::', '2001:db8:9900::'].map(
      each => knownOf(each),
    ),
    [4, 4, 3, 2, 1],
    'a /56, a /48, a /40 and a /32',
  )
  t.equal(knownOf('2001:db9::'), 0)
  t.equal(knownOf('2001:db8:1:203::1', 'nobody@example.org'), 0)
  await note('192.0.2.1')
  t.equal(knownOf('192.0.2.1'), 0, 'an IPv4 address has none')
  await world.advance(90 * DAY_MS)
  t.equal(knownOf('2001:db8:1:203::1'), 0)
})

t.test('what one account knows says nothing about another address', async t => {
  const { world, note, askerOf } = await openStage(t)
  await newUser(world, 'Bob', 'bob@example.org')
  await note('192.0.2.1')
  for (const key of ['bob@example.org', 'nobody@example.org']) {
    t.equal(askerOf('192.0.2.1', undefined, { ...ANN, key }), 'stranger')
  }
})

t.test('of many networks those seen last are known, and within a day each is written once', async t => {
  const { world, note, askerOf } = await openStage(t)
  const sessionId = randomBytes(16)
  for (let at = 0; at < 50; at++) await note(`network ${at}`, sessionId)
  const known = Array.from({ length: 50 }, (_, at) => at).filter(at => askerOf(`network ${at}`) === 'network')
  t.same(
    known,
    Array.from({ length: 24 }, (_, at) => 26 + at),
  )
  const row = () =>
    JSON.stringify(world.database.view(view => [...view.range(storedTable('known-sign-ins'))]))
  const before = row()
  world.tick(DAY_MS - 1)
  await note('network 49', sessionId)
  t.equal(row(), before)
})

t.test('neither a network nor a session is in the files of the store', async t => {
  const { folder, note } = await openStage(t)
  const sessionId = randomBytes(16)
  await note('192.0.2.123', sessionId)
  const bytes = readFileSync(join(folder, 'store', 'data.mdb'))
  t.ok(bytes.includes('ann@example.org'), 'this is the file')
  t.notOk(bytes.includes('192.0.2.123'))
  t.notOk(bytes.includes(sessionId))
})

t.test('nothing is left of a user who is erased', async t => {
  const { world, ann, note, askerOf } = await openStage(t)
  await note('192.0.2.1')
  await newSession(world, ann.userId)
  await world.database.change(change => world.knownSignIns.eraseOf(change, ann.userId))
  t.equal(askerOf('192.0.2.1'), 'stranger')
})
