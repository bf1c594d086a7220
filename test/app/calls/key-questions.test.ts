/** Calls with people with new keys: a user calls them, is called by them, or invites them, once the keys are accepted. */

import t from 'tap'
import { CallsignError, memoryStorage } from '../../../src/app/app.ts'
import { settingsFor } from '../../support/call-people.ts'
import { LyingServer } from '../../support/lying-server.ts'
import { openServer } from '../../support/open-server.ts'
import {
  type AppPerson,
  befriend,
  listed,
  newFriends,
  newPerson,
  startOver,
  until,
} from '../../support/whole-apps.ts'

/** Loses all devices, signs in on a new one, and starts over there. */
async function startsAnew(
  t: Parameters<typeof newPerson>[0],
  person: AppPerson,
  at: number,
): Promise<AppPerson> {
  await person.me.close()
  const next = await newPerson(t, person.options.server, at, { storage: memoryStorage() })
  await listed(next, ({ kind }) => (kind === 'waiting' ? kind : undefined))
  await startOver(next)
  return next
}

/** The question about a person's keys, which the work waits for. */
async function questionAt(
  work: Promise<unknown>,
): Promise<{ readonly userId: string; readonly listHash: string }> {
  const error = await work.then(
    () => undefined,
    error => error,
  )
  if (!(error instanceof CallsignError)) throw new Error(`${error} where new keys are asked about`)
  return { ...error.members, code: error.code } as never
}

t.test('a person who started over is called once their keys were accepted, alone and in a group', async t => {
  const [ann, bob, cat] = await newFriends(t, 3)
  const [annId, catId] = [ann!.me.userId!, cat!.me.userId!]
  await befriend(bob!, cat!)
  const first = await bob!.me.call([annId, catId])
  await first.end()
  const newAnn = await startsAnew(t, ann!, 0)

  const asked = await questionAt(bob!.me.call([annId]))
  t.match(asked, { code: 'KEYS_RESET', userId: annId, kind: 'reset' })
  t.match(await questionAt(bob!.me.call([catId, annId])), asked, 'nobody rings')
  t.same(bob!.me.calls, [])
  const withCat = await bob!.me.call([catId])
  t.match(await questionAt(withCat.invite([annId])), asked, 'left out until it was asked')
  await withCat.end()

  await bob!.me.contacts.acceptKeys(annId, asked.listHash)
  const rung = newAnn.me.once('ringing')
  const call = await bob!.me.call([catId, annId])
  await (await rung).answer()
  await until(call, ({ participants }) =>
    participants.some(({ state, userId }) => state === 'joined' && userId === annId),
  )
})

t.test(
  'an incoming call of a person who started over rings, and is answered once they were accepted',
  async t => {
    const [ann, bob] = await newFriends(t)
    const annId = ann!.me.userId!
    await (await bob!.me.call([annId])).end()
    const newAnn = await startsAnew(t, ann!, 0)

    const rung = bob!.me.once('ringing')
    const call = await newAnn.me.call([bob!.me.userId!])
    const incoming = await rung
    await until(incoming, ({ isVerified }) => isVerified !== undefined)
    t.equal(incoming.isVerified, false)
    const asked = await questionAt(incoming.answer())
    t.match(asked, { code: 'KEYS_RESET', userId: annId, kind: 'reset' })
    t.equal(incoming.state, 'ringing', 'it may be answered again')
    await bob!.me.contacts.acceptKeys(annId, asked.listHash)
    await incoming.answer()
    await until(call, ({ state }) => state === 'active')
    t.equal(incoming.fingerprint, call.fingerprint)
  },
)

/** Gives what lets the server have lists of this person again: until then their devices have none. */
function withoutLists(lies: LyingServer): () => void {
  const stops = [
    lies.handle('POST register_device', (pass, { deviceList: _, ...body }) => pass(body)),
    lies.handle('PUT user/device-list', async () => Response.json({ code: 'NOT_LISTED' }, { status: 400 })),
  ]
  return () => {
    for (const stop of stops) stop()
  }
}

t.test(
  'a device that a contact without a list adds, and their first list, are asked about in each call',
  async t => {
    const server = await openServer({ dataFolder: t.testdir(), environment: settingsFor(3) })
    t.teardown(() => server.end())
    const { http } = server
    const [ann, bob] = [await newPerson(t, http, 0), await newPerson(t, http, 1)]
    await befriend(ann, bob)
    const lies = new LyingServer()
    const { fetch, webSocket } = lies
    const endLies = withoutLists(lies)
    const cat = await newPerson(t, http, 2, { fetch, webSocket })
    await befriend(cat, ann)
    const catId = cat.me.userId!
    const asksOf = async (kind: string) => {
      const asked = await questionAt(ann.me.call([catId]))
      t.match(asked, { code: 'KEYS_RESET', userId: catId, kind })
      t.match(await questionAt(ann.me.call([bob.me.userId!, catId])), asked)
      t.same([...ann.me.calls, ...bob.me.calls, ...cat.me.calls], [], 'nobody rings')

      const rung = ann.me.once('ringing')
      const call = await cat.me.call([ann.me.userId!])
      const incoming = await rung
      await until(incoming, ({ isVerified }) => isVerified !== undefined)
      t.equal(incoming.isVerified, false)
      t.match(await questionAt(incoming.answer()), asked)
      await ann.me.contacts.acceptKeys(catId, asked.listHash)
      await incoming.answer()
      await until(call, ({ state }) => state === 'active')
      const ended = call.once('ended')
      await incoming.end()
      await ended
    }
    await (await ann.me.call([catId])).end()

    await newPerson(t, http, 2, { fetch, webSocket, storage: memoryStorage() })
    await asksOf('added')
    endLies()
    await startOver(cat)
    await asksOf('first-list')
  },
)
