/** New keys of a contact are asked about, by apps on a real server. */

import t, { type Test } from 'tap'
import { type CallsignError, memoryStorage } from '../../../src/app/app.ts'
import { type AppPerson, becomeContacts, startOver, startPerson } from '../../support/app-people.ts'
import { rejectionOf } from '../../support/app-sessions.ts'
import { settingsFor } from '../../support/call-people.ts'
import { startLog } from '../../support/live-log.ts'

/** Ann, and Bob who has met her; Ann then starts over on a new device. */
async function openHouse(t: Test) {
  const server = await startLog(t, t.testdir(), settingsFor(3))
  const storage = memoryStorage()
  const [ann, bob] = [await startPerson(server, 0), await startPerson(server, 1, storage)]
  await ann.ownList.load()
  await becomeContacts(ann, bob)
  await bob.keyLog.devicesOf([ann.userId])
  return { server, ann, bob, storage, startsOver: () => startsAnew(server, 0) }
}

async function startsAnew(server: Parameters<typeof startPerson>[0], at: number): Promise<AppPerson> {
  const next = await startPerson(server, at)
  await startOver(next)
  return next
}

async function questionOf(person: AppPerson, userId: string) {
  const error = await person.keyLog.devicesOf([userId]).then(
    () => undefined,
    (error: CallsignError) => error,
  )
  return error && { ...error.members, code: error.code, listHash: `${error.members.listHash}` }
}

t.test('nothing is sealed for a person who started over, until those keys are accepted', async t => {
  const { server, ann, bob, storage, startsOver } = await openHouse(t)
  const { userId } = ann
  const second = await startsOver()
  const asked = await questionOf(bob, userId)
  t.match(asked, { code: 'KEYS_RESET', userId, kind: 'reset', listHash: /^[\w+/]{43}=$/ })
  t.equal(await rejectionOf(bob.keyLog.deviceOf(userId, second.deviceId)), 'KEYS_RESET')
  t.same(bob.events, [{ kind: 'reset', userId }], 'told once')
  t.match(await bob.keyLog.codeWith(userId), /^\d{5} /, 'to compare before the answer')
  await bob.session.request('DELETE friend/{userId}', undefined, { userId })
  await becomeContacts(second, bob)
  t.same(await questionOf(bob, userId), asked, 'contacts are no answer')

  const { listHash } = asked!
  t.equal(await rejectionOf(bob.keyLog.acceptKeys(userId, listHash.replace(/^./, '_'))), 'KEYS_RESET')
  const restarted = await startPerson(server, 1, storage)
  t.same(await questionOf(restarted, userId), asked)
  await restarted.keyLog.acceptKeys(userId, listHash)
  const again = await startPerson(server, 1, storage)
  t.same(
    (await again.keyLog.devicesOf([userId])).map(({ deviceId }) => deviceId),
    [second.deviceId],
  )

  await startsOver()
  const next = await questionOf(again, userId)
  t.match(next, { code: 'KEYS_RESET', kind: 'reset' })
  t.not(next!.listHash, listHash)
  t.equal(await rejectionOf(again.keyLog.acceptKeys(userId, listHash)), 'KEYS_RESET', 'of other keys')
})

t.test('devices that a known device signs for are no question, also for an app that was away', async t => {
  const { server, ann, bob } = await openHouse(t)
  for (let more = 0; more < 2; more++) {
    await startPerson(server, 0)
    await approveNext(ann)
  }
  const honest = bob.lie
  for (const lie of [
    async () => ({ lists: [] }),
    async () => Response.json({ code: 'USER_NOT_FOUND' }, { status: 404 }),
  ]) {
    bob.lie = path => (path.endsWith('/user/device-lists') ? lie() : undefined)
    t.equal(await rejectionOf(bob.keyLog.devicesOf([ann.userId])), 'LOG_UNANSWERED')
  }
  t.same(bob.events, [])
  bob.lie = honest
  t.equal((await bob.keyLog.devicesOf([ann.userId])).length, 3)
  t.same(
    bob.events.map(({ kind }) => kind),
    ['added-by-list', 'added-by-list'],
  )
})

t.test('the first of several people is asked about; a bot goes on, after the event', async t => {
  const { server, ann, bob, startsOver } = await openHouse(t)
  const cat = await startPerson(server, 2)
  await cat.ownList.load()
  await becomeContacts(cat, bob)
  const bot = await startPerson(server, 1, memoryStorage(), undefined, 'go-on')
  await approveNext(bob)
  const both = [ann.userId, cat.userId]
  for (const app of [bob, bot]) await app.keyLog.devicesOf(both)
  await startsOver()
  await startsAnew(server, 2)
  for (const userId of both) {
    const error = await bob.keyLog.devicesOf(both).catch(error => error)
    t.match(error, { code: 'KEYS_RESET', members: { userId } })
    await bob.keyLog.acceptKeys(userId, error.members.listHash)
  }
  t.equal((await bob.keyLog.devicesOf(both)).length, 2)
  t.equal((await bot.keyLog.devicesOf(both)).length, 2)
  t.same(
    bot.events.map(({ kind, userId }) => [kind, userId]),
    both.map(userId => ['reset', userId]),
  )
})

t.test('the own devices are no question', async t => {
  const { ann, startsOver } = await openHouse(t)
  await ann.keyLog.devicesOf([ann.userId])
  const second = await startsOver()
  t.same(
    (await ann.keyLog.devicesOf([ann.userId])).map(({ deviceId }) => deviceId),
    [second.deviceId],
  )
  t.same(ann.events, [{ kind: 'reset', userId: ann.userId }])
})

/** Has the person's device put the one that waits on their list. */
async function approveNext({ ownList }: AppPerson): Promise<void> {
  const state = await ownList.load()
  if (state.kind === 'listed') await ownList.approve(state.waiting[0]!)
}
