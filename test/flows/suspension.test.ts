/**
 * A backend with users of its own: it makes them, signs them in by tokens, and suspends one during a call. Whole apps, and a server
 * with two fronts: each socket is at a front, and the suspension is the writer's.
 */

import t, { type Test } from 'tap'
import { Callsign, type CallsignError, memoryStorage } from '../../src/app/app.ts'
import { developmentPins } from '../../src/app/development.ts'
import { CallsignServer } from '../../src/backend/server.ts'
import { webSocket } from '../support/app-connections.ts'
import { startServer } from '../support/server.ts'
import { newServerKey } from '../support/server-keys.ts'
import { until } from '../support/whole-apps.ts'

async function open(t: Test) {
  const dataFolder = t.testdir()
  const environment = { CALLSIGN_FRONTS: '2', CALLSIGN_SIGN_IN_WAIT_HOURS: '72' }
  const server = await startServer({ dataFolder, environment })
  t.teardown(() => server.end())
  const key = await newServerKey(dataFolder, server, ['users', 'sign-in', 'contacts'])
  const backend = new CallsignServer({ url: server.serverApi, key })
  const pins = await developmentPins(server.http)
  const appOf = (storage = memoryStorage()): Callsign => {
    const me = new Callsign({ server: server.http, pins, storage, webSocket })
    t.teardown(() => me.close())
    return me
  }
  return {
    backend,
    appOf,
    /** An app of a user whom the backend knows by this name. */
    async signIn(ext: string, storage = memoryStorage()): Promise<Callsign> {
      const me = appOf(storage)
      await backend.users.put({ ext }, { displayName: ext })
      await me.signInByToken((await backend.users.signInToken({ ext })).token)
      return me
    },
  }
}

t.test(
  'a call of two ends when one is suspended, who hears why, and signs in again once it is lifted',
  async t => {
    const { backend, signIn } = await open(t)
    const storage = memoryStorage()
    const [ann, bob] = [await signIn('ann'), await signIn('bob', storage)]
    await backend.contacts.put({ ext: 'ann' }, { ext: 'bob' })
    const rung = bob.once('ringing')
    const call = await ann.call([bob.userId!])
    const bobs = await rung
    await bobs.answer()
    await until(call, ({ state }) => state === 'active')

    const [ended, endedAtBob, out] = [call.once('ended'), bobs.once('ended'), bob.once('signed-out')]
    await backend.users.suspend({ ext: 'bob' }, { reason: 'abuse' })
    t.same(await ended, { reason: 'hangup' })
    t.same(await endedAtBob, { reason: 'suspended' })
    t.match(await out, { code: 'SESSION_REVOKED' })
    t.equal(bob.userId, undefined)
    await t.rejects(backend.users.signInToken({ ext: 'bob' }), { code: 'ACCOUNT_SUSPENDED' })
    const unheard = await ann.call([call.participants.find(({ name }) => name === 'bob')!.userId])
    const isUnreachable = ({ participants }: typeof unheard) =>
      participants.some(({ isUnreachable }) => isUnreachable)
    await until(unheard, isUnreachable)
    t.equal(unheard.state, 'ringing')
    await unheard.end()

    await backend.users.unsuspend({ ext: 'bob' })
    const again = await signIn('bob', storage)
    t.equal(
      again.userId,
      call.participants.find(({ name }) => name === 'bob')!.userId,
      'on its device, at once',
    )
    await again.close()
  },
)

t.test('another device waits for the first, and a token is no second session of the same app', async t => {
  const { appOf, backend, signIn } = await open(t)
  const phone = await signIn('ann')
  await t.rejects(phone.signInByToken((await backend.users.signInToken({ ext: 'ann' })).token), {
    code: 'ALREADY_SIGNED_IN',
  })
  const asked = phone.once('sign_in_waiting')
  const storage = memoryStorage()
  const refusal = await signIn('ann', storage).catch((error: CallsignError) => error)
  t.match(refusal, { code: 'SIGN_IN_WAITING' })
  const { id, signInCode, method } = await asked
  t.equal(method, 'server')
  const me = appOf(storage)
  t.match(await me.waitingSignIn(), { address: '', signInCode })
  await phone.sessions.answer(id, true)
  t.match(await me.finishSignIn(), { userId: phone.userId, restriction: 'DEVICE_NOT_LISTED' })
})
