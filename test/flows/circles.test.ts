/**
 * A backend says who may call whom, and an operator ends calls: with apps of `@callsign/sdk/app` on a running server, with fronts, too,
 * and by the requests that docs/build/backend.md prints.
 */

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { settingsFor } from '../support/call-people.ts'
import { openServer } from '../support/open-server.ts'
import { newServerKey } from '../support/server-keys.ts'
import { newPerson, until } from '../support/whole-apps.ts'
import { blocksOf } from '../support/your-users.ts'

/** A server, three people without contacts, and its backend. */
async function setUp(t: Test, settings: Readonly<Record<string, string>> = {}) {
  const dataFolder = join(t.testdir({ data: {} }), 'data')
  const server = await openServer({ dataFolder, environment: { ...settingsFor(3), ...settings } })
  t.teardown(() => server.end())
  const key = await newServerKey(dataFolder, server, ['users', 'contacts', 'calls'])
  const [ann, bob, cat] = [
    await newPerson(t, server.http, 0),
    await newPerson(t, server.http, 1),
    await newPerson(t, server.http, 2),
  ]
  const ask = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${server.serverApi}/server/api/v1/${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) }
  }
  return { server, ann: ann.me, bob: bob.me, cat: cat.me, ask }
}

for (const fronts of ['0', '2']) {
  t.test(`members of a circle call each other, and an operator ends it: with ${fronts} fronts`, async t => {
    const { ann, bob, cat, ask } = await setUp(t, { CALLSIGN_FRONTS: fronts })
    const refusal = { code: 'CALLEE_NOT_CONTACT', members: { calleeIds: [bob.userId] } }
    await t.rejects(ann.call([bob.userId!]), refusal)
    for (const { userId } of [ann, bob, cat])
      t.equal((await ask('PUT', `circles/team%201/members/id:${userId}`)).status, 204)

    const ringing = [bob.once('ringing'), cat.once('ringing')]
    const call = await ann.call([bob.userId!, cat.userId!])
    const [bobs, cats] = [await ringing[0]!, await ringing[1]!]
    t.match(bobs.caller, { name: 'Person 0', isContact: true })
    await bobs.answer()
    await cats.answer()
    await until(call, ({ participants }) => participants.every(({ state }) => state === 'joined'))
    t.same((await ann.contacts.list()).items, [])

    const gone = cats.once('ended')
    const path = `calls/${call.callId}`
    const remove = () => ask('POST', `${path}/remove`, { ref: `id:${cat.userId}` })
    const removals = await Promise.all([remove(), remove(), remove()])
    t.same(
      removals.map(({ status }) => status),
      [204, 204, 204],
    )
    t.same(await gone, { reason: 'removed' })
    const ends = [call.once('ended'), bobs.once('ended')]
    const endings = await Promise.all([1, 2, 3, 4].map(() => ask('POST', `${path}/end`)))
    t.same(new Set(endings.map(({ status }) => status)), new Set([204]))
    t.same(await Promise.all(ends), [{ reason: 'operator' }, { reason: 'operator' }])
    const { body } = await ask('GET', path)
    t.match(body, { status: 'ended', endReason: 'operator' })
    t.same(
      body.timeLine.filter(({ event }: { event: string }) => event === 'removed' || event === 'ended').length,
      2,
    )
    t.same((await ask('GET', 'calls?live=true')).body, { items: [] })

    await ask('DELETE', `circles/team%201/members/id:${bob.userId}`)
    await t.rejects(ann.call([bob.userId!]), refusal)
  })
}

t.test('where a backend makes contacts, an app sends no requests and hears of new contacts', async t => {
  const { server, ann, bob, ask } = await setUp(t, { CALLSIGN_CONTACTS: 'server' })
  const meta = await (await fetch(`${server.http}/app/api/meta`)).json()
  t.match(meta, { features: { contacts: 'server' } })
  const refusal = { code: 'CONTACTS_BY_SERVER' }
  await t.rejects(ann.contacts.request({ userId: bob.userId! }), refusal)
  await t.rejects(ann.contacts.shareLink(), refusal)
  const heard = [ann.once('contact_added'), bob.once('contact_added')]
  await ask('PUT', 'contacts', { a: `id:${ann.userId}`, b: `id:${bob.userId}` })
  t.match(await Promise.all(heard), [{ userId: bob.userId }, { userId: ann.userId }])
  t.match((await ann.contacts.list()).items, [{ userId: bob.userId }])
  const rung = bob.once('ringing')
  const call = await ann.call([bob.userId!])
  t.match((await rung).caller, { isContact: true })
  await call.end()
  const gone = bob.once('contact_removed')
  await ask('DELETE', `contacts?a=id:${ann.userId}&b=id:${bob.userId}`)
  t.match(await gone, { userId: ann.userId })
})

t.test('each request that the page prints is taken', async t => {
  const { ann, bob, cat, ask } = await setUp(t)
  for (const [id, { userId }] of [['42', bob] as const, ['57', cat] as const])
    t.equal((await ask('PUT', `users/id:${userId}`, { externalId: id })).status, 200)
  for (const { userId } of [ann, bob, cat]) await ask('PUT', `circles/all/members/id:${userId}`)
  const { callId } = await ann.call([bob.userId!, cat.userId!])
  const requests = blocksOf('build/backend.md')
    .filter(({ language }) => language === 'http')
    .flatMap(({ text }) => text.trimEnd().split('\n'))
  t.ok(requests.length > 10)
  for (const request of requests) {
    const [, method = '', path = '', body] = /^(\w+) (\S+)(?: +(\{.+\}))?$/.exec(request) ?? []
    const { status } = await ask(method, path.replace('{callId}', callId), body && JSON.parse(body))
    t.ok(status === 200 || status === 204, `${request}: ${status}`)
  }
  t.equal((await ask('GET', `calls/${callId}`)).body.endReason, 'operator')
})
