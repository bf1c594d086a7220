/**
 * A network that is away for so long in real time, in the middle of a call of three: nothing is refused, nothing arrives.
 * `CALLSIGN_TEST_ABSENCES_S` has the seconds, such as `5,60,600`.
 */

import t, { type Test } from 'tap'
import { settingsFor } from '../../support/call-people.ts'
import { DroppingProxy } from '../../support/dropping-proxy.ts'
import { openServer } from '../../support/open-server.ts'
import { befriend, newPerson } from '../../support/whole-apps.ts'

const absencesS = (process.env.CALLSIGN_TEST_ABSENCES_S ?? '').split(',').filter(Boolean).map(Number)
/** By then the server has closed a socket that says nothing, and has called its participant lost 90 seconds later. */
const LOST_S = 130

async function beAway(t: Test, awayS: number): Promise<void> {
  const server = await openServer({ dataFolder: t.testdir(), environment: settingsFor(3) })
  t.teardown(() => server.end())
  const proxy = await DroppingProxy.open(t, Number(new URL(server.http).port))
  const ann = await newPerson(t, server.http, 0)
  const bob = await newPerson(t, `http://127.0.0.1:${proxy.port}`, 1)
  const cat = await newPerson(t, server.http, 2)
  for (const other of [bob, cat]) await befriend(other, ann)
  for (const { me } of [bob, cat]) me.on('ringing', call => call.answer())
  const call = await ann.me.call([bob.me.userId!, cat.me.userId!])
  const areJoined = (count: number) =>
    call.participants.filter(one => one.state === 'joined').length === count
  while (!areJoined(3)) await call.once('changed')
  const [bobs] = bob.me.calls
  while (bobs!.state !== 'active') await bobs!.once('state')
  const states: string[] = []
  bobs!.on('state', state => states.push(state))

  proxy.cut()
  await new Promise(resolve => setTimeout(resolve, (awayS * 1000) / 2))
  await call.renewKey()
  await new Promise(resolve => setTimeout(resolve, (awayS * 1000) / 2))
  t.equal(areJoined(2), awayS > LOST_S, 'whether Bob is lost to the others')
  proxy.mend()
  while (bobs!.fingerprint !== call.fingerprint || bobs!.state !== 'active') await bobs!.once('changed')
  while (!areJoined(3)) await call.once('changed')
  t.same(states, awayS > LOST_S ? ['rejoining', 'active'] : [])
  t.same(
    [ann, bob, cat].map(({ errors }) => errors),
    [[], [], []],
  )
}

const skip = absencesS.length === 0 && 'CALLSIGN_TEST_ABSENCES_S has no seconds to be away, such as 5,60,600'
for (const awayS of absencesS) {
  t.test(`a call goes on after ${awayS} seconds without a network`, t => beAway(t, awayS))
}
t.test('a call goes on after minutes without a network', { skip }, async () => {})
