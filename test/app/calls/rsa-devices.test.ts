/** Calls with people whose devices have RSA-2048 keys, by apps of the SDK on a real server. */

import t, { type Test } from 'tap'
import type { Call, KeyEvent } from '../../../src/app/app.ts'
import { hashOfSet, readKeyMembers } from '../../../src/app/devices/key-members.ts'
import { newPublicKey } from '../../support/app.ts'
import { rejectionOf } from '../../support/app-sessions.ts'
import { settingsFor, signInAgain } from '../../support/call-people.ts'
import { openServer } from '../../support/open-server.ts'
import { newRsaDevice, openForRsa, type RsaDevice, rsaInfo, rsaKeys } from '../../support/rsa-device.ts'
import { type AppPerson, befriend, newPerson, until } from '../../support/whole-apps.ts'

async function newServer(t: Test, people: number): Promise<string> {
  const server = await openServer({ dataFolder: t.testdir(), environment: settingsFor(people) })
  t.teardown(() => server.end())
  return server.http
}

/** Signs in, joins and leaves with the SDK, whose part with keys `open` does. */
interface RsaPerson extends AppPerson {
  readonly device: RsaDevice
}

async function newRsaPerson(t: Test, http: string, at: number): Promise<RsaPerson> {
  const device = newRsaDevice()
  const keys = await rsaKeys(device)
  return { ...(await newPerson(t, http, at, { keysOf: async () => keys })), device }
}

interface Sealed {
  readonly text: string
  readonly epoch: number
  readonly fromUserId: string
  readonly fromDeviceId: string
}

/** The call's key, and the set that it is sealed for, by the sender's signing key in its device list. */
async function open({ me, device }: RsaPerson, callId: string, sealed: Sealed) {
  const { text, epoch, fromUserId, fromDeviceId } = sealed
  const { users } = await me.request('GET user/publicKeys', undefined, { userIds: fromUserId })
  const sender = users[0]!.devices.find(({ deviceId }) => deviceId === fromDeviceId)!
  const from = { userId: fromUserId, deviceId: fromDeviceId }
  const info = rsaInfo(callId, epoch, from, { userId: me.userId!, deviceId: me.deviceId! })
  const signingKey = Buffer.from(sender.signingKey!, 'base64')
  const opened = openForRsa(text, device, { info, signingKey })
  const { keyMembers } = await me.request('GET call/{callId}/key-members', undefined, {
    callId,
    epoch: String(epoch),
  } as never)
  t.same(opened.subarray(32, 64), hashOfSet(keyMembers), 'the set that was sealed')
  return { key: opened.toString('hex', 0, 32), names: readKeyMembers(keyMembers).map(({ name }) => name) }
}

const keyOf = (call: Call, epoch: number) =>
  Buffer.from(call.keys.find(one => one.epoch === epoch)!.key).toString('hex')

const nameOf = ({ me }: AppPerson) => `${me.userId}_${me.deviceId}`

/** The key of the next `key_update`. */
async function nextKey(person: RsaPerson, callId: string) {
  const { epoch, encryptedAESKey: text, fromUserId, fromDeviceId } = await person.me.once('key_update')
  return { epoch, ...(await open(person, callId, { text, epoch, fromUserId, fromDeviceId })) }
}

t.test('a listed RSA device is called, alone and in a group, and does not become host', async t => {
  const http = await newServer(t, 3)
  const [ann, dan] = [await newPerson(t, http, 0), await newPerson(t, http, 2)]
  const bob = await newRsaPerson(t, http, 1)
  await befriend(bob, ann)
  await befriend(dan, ann)

  const rung = bob.me.once('ringing')
  const call = await ann.me.call([bob.me.userId!])
  await rung
  const { callId } = call
  const [item] = (await bob.me.request('GET call/pending', undefined)).items
  const { encryptedAESKey, keyEpoch: epoch, keyFromUserId, keyFromDeviceId } = item!
  const from = { fromUserId: keyFromUserId!, fromDeviceId: keyFromDeviceId! }
  const first = await open(bob, callId, { text: encryptedAESKey!, epoch, ...from })
  t.equal(first.key, keyOf(call, 1))
  t.same(first.names.toSorted(), [ann, bob].map(nameOf).toSorted())
  await bob.me.request('POST call/{callId}/join', undefined, { callId })
  await until(call, ({ state }) => state === 'active')

  const danRings = dan.me.once('ringing')
  const invited = nextKey(bob, callId)
  await call.invite([dan.me.userId!])
  const second = await invited
  t.match(second, { epoch: 2, key: keyOf(call, 2) })
  t.same(second.names.toSorted(), [ann, bob, dan].map(nameOf).toSorted())
  const dans = await danRings
  await dans.answer()
  t.equal(dans.isVerified, true, 'the log proves the RSA device in the set')
  t.equal(keyOf(dans, 2), second.key)

  const afterAnn = (async () => {
    for (;;) {
      const next = await nextKey(bob, callId)
      if (!next.names.includes(nameOf(ann))) return next
    }
  })()
  await call.leave()
  const third = await afterAnn
  t.same(third.names.toSorted(), [bob, dan].map(nameOf).toSorted())
  t.equal(dans.hostUserId, dan.me.userId)
  t.equal(keyOf(dans, third.epoch), third.key)
})

t.test('an app with an RSA key starts no call', async t => {
  const http = await newServer(t, 2)
  const [ann, bob] = [await newPerson(t, http, 0), await newRsaPerson(t, http, 1)]
  await befriend(bob, ann)
  for (const without of ['refuse', 'leave-out'] as const)
    t.equal(await rejectionOf(bob.me.call([ann.me.userId!], { without })), 'KEY_UNSUPPORTED')
})

t.test('people whose RSA device stands in no list are refused, or left out of the call', async t => {
  const http = await newServer(t, 5)
  const [ann, bob, dan] = [
    await newPerson(t, http, 0),
    await newPerson(t, http, 1),
    await newPerson(t, http, 4),
  ]
  await befriend(bob, ann)
  await befriend(dan, ann)
  const bobId = bob.me.userId!
  const old: { userId: string; deviceId: string }[] = []
  for (const at of [2, 3]) {
    const app = await signInAgain(http, at)
    const { userId } = await app.get(200, 'GET /app/api/user')
    const publicKey = newPublicKey('RSA SPKI')
    const { deviceId } = await app.get(201, 'POST /app/api/register_device', { publicKey })
    await ann.me.request('POST friend-request/by-id', { targetUserId: userId })
    await app.get(200, 'POST /app/api/friend-request/accept', { userId: ann.me.userId })
    old.push({ userId, deviceId })
  }
  const oldIds = old.map(({ userId }) => userId)
  const told: KeyEvent[] = []
  ann.me.on('keys', event => told.push(event))

  const refused = await ann.me.call([bobId, ...oldIds]).catch(error => error)
  t.match(refused, { code: 'KEY_UNSUPPORTED', members: old[0]! })
  const alone = ann.me.call(oldIds, { without: 'leave-out' })
  t.equal(await rejectionOf(alone), 'KEY_UNSUPPORTED', 'nobody is left')
  t.same(ann.me.calls, [])

  told.length = 0
  const rung = bob.me.once('ringing')
  const call = await ann.me.call([oldIds[0]!, bobId, oldIds[1]!], { without: 'leave-out' })
  t.same(
    told,
    old.map(device => ({ kind: 'left-out', ...device })),
  )
  const bobs = await rung
  await bobs.answer()
  t.same(call.participants.map(({ userId }) => userId).toSorted(), [ann.me.userId!, bobId].toSorted())

  t.equal(await rejectionOf(call.invite(oldIds)), 'KEY_UNSUPPORTED')
  t.equal(await rejectionOf(call.invite(oldIds, { without: 'leave-out' })), 'KEY_UNSUPPORTED')
  t.equal(call.participants.length, 2)
  told.length = 0
  await call.invite([oldIds[1]!, dan.me.userId!], { without: 'leave-out' })
  t.same(told, [{ kind: 'left-out', ...old[1]! }])
  await until(call, ({ participants }) => participants.some(({ userId }) => userId === dan.me.userId))
  t.equal(call.participants.length, 3)
})
