/** Apps whose policy names the log's index: nothing of the server's is taken that is not proved to be complete. */

import t, { type Test } from 'tap'
import { hasCode, type KeyEvent, memoryStorage } from '../../src/app/app.ts'
import { developmentPins } from '../../src/app/development.ts'
import { settingsFor } from '../support/call-people.ts'
import { startLog } from '../support/live-log.ts'
import { until as untilSo } from '../support/nodes.ts'
import { long } from '../support/size.ts'
import { type AppPerson, befriend, listed, newPerson, restart, until } from '../support/whole-apps.ts'

/** A server whose index has its first leaf, and the policy that names both. */
async function startIndexed(t: Test) {
  const environment = { ...settingsFor(6), CALLSIGN_INDEX_SECONDS: '1' }
  const server = await startLog(t, t.testdir(), environment)
  const { vkey, vrfPublicKey, indexVkey } = await developmentPins(server.http)
  const pins = { policy: `log ${vkey}\nlog ${indexVkey}\nquorum none\n`, vrfPublicKey }
  await server.client.register(2n ** 40n, 1n, 'AAAA')
  await untilSo(async () => (await fetch(`${server.http}/index/checkpoint`)).ok)
  return { server, pins }
}

const { server, pins } = await startIndexed(t)

/** Changes answers of the server to one app. */
function lyingFetch(lie: (path: string, answer: Record<string, unknown>) => unknown): typeof fetch {
  return async (url, init) => {
    const answer = await fetch(url, init)
    const path = new URL(String(url)).pathname
    if (!/get-public-keys|publicKeys/.test(path)) return answer
    const body = (await answer.json()) as Record<string, unknown>
    return Response.json(lie(path, body) ?? body, { status: answer.status })
  }
}

async function refusedCheck(act: Promise<unknown>): Promise<unknown> {
  try {
    await act
    return 'taken'
  } catch (error) {
    return hasCode(error, 'KEYS_REFUSED') ? error.members.check : error
  }
}

t.test('keys are proved to be the newest, people meet by a link, and call', async t => {
  const ann = await newPerson(t, server.http, 0, { pins })
  const bob = await newPerson(t, server.http, 1, { pins })
  t.match(await ann.me.devices.checkKey(), { kind: 'clean', complete: true, isProved: false })
  await befriend(ann, bob)
  const rung = bob.me.once('ringing')
  const call = await ann.me.call([bob.me.userId!])
  const bobs = await rung
  await bobs.answer()
  await until(call, ({ state }) => state === 'active')
  await call.leave()
  t.same([ann.errors, bob.errors], [[], []])
})

t.test('without its proofs nothing is sealed, and that is remembered', long(), async t => {
  const bob = await newPerson(t, server.http, 3)
  let lie: (path: string, answer: Record<string, unknown>) => unknown = () => undefined
  const storage = memoryStorage()
  const fetchLying = lyingFetch((path, answer) => lie(path, answer))
  const events: KeyEvent[] = []
  const meet = async (options: object) => {
    const ann = await newPerson(t, server.http, 2, { storage, fetch: fetchLying, ...options })
    ann.me.on('keys', event => events.push(event))
    return ann
  }
  let ann: AppPerson = await meet({ pins })
  // Without a link, which would name the list.
  await ann.me.contacts.request({ userId: bob.me.userId! })
  await bob.me.contacts.accept(ann.me.userId!)
  await listed(bob, ({ kind }) => kind === 'listed' || undefined)

  const withoutList = (path: string, answer: Record<string, unknown>) =>
    path.endsWith('publicKeys') && {
      ...answer,
      users: (answer.users as { readonly userId: string }[]).map(user =>
        user.userId === bob.me.userId ? { ...user, deviceList: undefined, deviceListHash: undefined } : user,
      ),
    }
  const withoutProof = (path: string, answer: Record<string, unknown>) =>
    path.endsWith('get-public-keys') && {
      results: (answer.results as object[]).map(result => ({ ...result, indexProof: undefined })),
    }
  for (const each of [withoutList, withoutProof]) {
    lie = (path, answer) => each(path, answer) || undefined
    t.equal(await refusedCheck(ann.me.call([bob.me.userId!])), 'completeness')
    t.match(events.at(-1), { kind: 'refused', check: 'completeness', userId: bob.me.userId })
  }
  lie = () => undefined
  t.match(await ann.me.devices.checkKey(), { kind: 'clean', complete: true })
  ann.me.close()

  ann = await restart(t, { ...ann, options: { ...ann.options, completeness: 'when-offered' } })
  lie = (path, answer) => withoutProof(path, answer) || undefined
  t.equal(await refusedCheck(ann.me.devices.checkKey()), 'completeness', 'it is remembered')
  ann.me.close()
  ann = await restart(t, { ...ann, options: { ...ann.options, completeness: 'off' } })
  t.match(await ann.me.devices.checkKey(), { kind: 'clean', complete: 'unindexed' })
})

t.test('a second key under a device’s hash is refused at once', long(), async t => {
  const ann = await newPerson(t, server.http, 4, { pins })
  const bob = await newPerson(t, server.http, 5, { pins })
  await befriend(ann, bob)
  await server.client.register(BigInt(bob.me.userId!), BigInt(bob.me.deviceId!), 'AAAA')
  t.equal(await refusedCheck(ann.me.call([bob.me.userId!])), 'publicKey')
  t.match(await bob.me.devices.checkKey(), {
    kind: 'alert',
    foreign: [{ publicKey: 'AAAA' }],
    complete: true,
  })
})
