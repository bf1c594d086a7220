/** The user's own device list in the SDK: several devices of one user on a real server, and a server that lies about it. */

import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import { webCryptoKeys } from '../../../src/app/devices/device-keys.ts'
import type { KeyEvent, KeyLog } from '../../../src/app/devices/key-log.ts'
import {
  OwnDeviceList,
  type OwnListState,
  type WaitingDevice,
} from '../../../src/app/devices/own-device-list.ts'
import { listedDevice, signedList } from '../../../src/app/devices/signed-list.ts'
import type { ReplyOf } from '../../../src/app/session/operations.ts'
import type { Server } from '../../../src/app/session/server.ts'
import type { Session } from '../../../src/app/session/session.ts'
import { memoryStorage } from '../../../src/app/storage/storage.ts'
import { parseDeviceList } from '../../../src/log/device-list.ts'
import { newPublicKey } from '../../support/app.ts'
import { type AppPerson, becomeContacts, startOver, startPerson } from '../../support/app-people.ts'
import { rejectionOf, signIn, startApp } from '../../support/app-sessions.ts'
import { settingsFor } from '../../support/call-people.ts'
import { listOf, newPhone } from '../../support/device-lists.ts'
import { type LiveLog, startLog } from '../../support/live-log.ts'
import { long } from '../../support/size.ts'

const KEYS = '/app/api/user/publicKeys'

async function openLog(t: Test): Promise<LiveLog> {
  return startLog(t, t.testdir(), settingsFor(2))
}

/** The devices that wait for a listed one. */
async function waitingFor({ ownList }: AppPerson): Promise<readonly WaitingDevice[]> {
  const state = await ownList.load()
  if (state.kind !== 'listed') throw new Error(`the device is ${state.kind}`)
  return state.waiting
}

async function newestList({ session, userId }: AppPerson) {
  const { users } = await session.request('GET user/publicKeys', undefined, { userIds: userId })
  const { seq, devices } = parseDeviceList(Buffer.from(users[0]!.deviceList!, 'base64'))
  return { seq, deviceIds: new Set(devices.map(({ deviceId }) => `${deviceId}`)) }
}

const idsOf = (...people: readonly AppPerson[]) => new Set(people.map(({ deviceId }) => deviceId))
const kindsOf = ({ events }: AppPerson) => events.map(({ kind }) => kind)
const ALONE: OwnListState = { kind: 'listed', waiting: [] }

t.test('a second device waits with a code, which the first one shows, and is approved', async t => {
  const log = await openLog(t)
  const [first, bob] = [await startPerson(log, 0), await startPerson(log, 1)]
  t.same(await first.ownList.load(), ALONE)
  await becomeContacts(first, bob)
  t.equal((await bob.keyLog.devicesOf([first.userId])).length, 1)

  const second = await startPerson(log, 0)
  const shown = await second.ownList.load()
  t.match(shown, { kind: 'waiting', code: /^(\d{5} ){3}\d{5}$/ })
  const [waiting] = await waitingFor(first)
  t.match(waiting, { deviceId: second.deviceId, code: (shown as { code: string }).code, name: String })
  t.equal((await bob.keyLog.devicesOf([first.userId])).length, 1, 'nothing is sealed for it yet')
  t.same(bob.events, [])

  t.same(await first.ownList.approve(waiting!), ALONE)
  t.same(await first.ownList.approve(waiting!), ALONE, 'once')
  t.same(await second.ownList.load(), ALONE)
  t.same(await newestList(first), { seq: 1, deviceIds: idsOf(first, second) })
  t.same(
    new Set((await bob.keyLog.devicesOf([first.userId])).map(each => each.deviceId)),
    idsOf(first, second),
  )
  t.same(bob.events, [{ kind: 'added-by-list', userId: first.userId, deviceId: second.deviceId }])
  t.same([...first.events, ...second.events], [])
})

t.test('a list is younger than the one before, also on a device with a slow clock', async t => {
  const keys = await webCryptoKeys(memoryStorage())('1')
  const device = { userId: '1', deviceId: '11', publicKeyHash: '', keys }
  const { publicKey, signingKey } = keys
  const own = listedDevice({ deviceId: '11', publicKey, signingKey })
  const createdAtMs = 1e12
  const deviceList = await signedList(device, [own, { ...own, deviceId: 12n }], createdAtMs)
  const list = parseDeviceList(Buffer.from(deviceList, 'base64'))
  let signed: string | undefined
  const user = { userId: '1', devices: [{ deviceId: '11' }], deviceList }
  const ownUser = async () =>
    signed === undefined ? { user, list } : { user, list: parseDeviceList(Buffer.from(signed, 'base64')) }
  const server = { nowMs: () => createdAtMs - 60_000 } as Server
  const session = {
    async request(_: string, body: { readonly list: string }) {
      signed = body.list
    },
  } as unknown as Session
  const keyLog = { ownUser } as unknown as KeyLog
  t.same(await new OwnDeviceList(server, session, device, keyLog).load(), ALONE)
  t.match(parseDeviceList(Buffer.from(signed!, 'base64')), { seq: 1, createdAtMs: createdAtMs + 1 })
})

t.test('two devices approve at once: both of theirs are on the list', long(), async t => {
  const log = await openLog(t)
  const first = await startPerson(log, 0)
  const second = await startPerson(log, 0)
  await first.ownList.approve((await waitingFor(first))[0]!)
  const [third, fourth] = [await startPerson(log, 0), await startPerson(log, 0)]
  const waiting = await waitingFor(first)
  const named = ({ deviceId }: AppPerson) => waiting.find(each => each.deviceId === deviceId)!
  await Promise.all([first.ownList.approve(named(third)), second.ownList.approve(named(fourth))])
  t.same(await newestList(first), { seq: 3, deviceIds: idsOf(first, second, third, fourth) })

  const fifth = await startPerson(log, 0)
  const [same] = await waitingFor(first)
  await Promise.all([first, second, third].map(({ ownList }) => ownList.approve(same!)))
  t.same(await newestList(first), { seq: 4, deviceIds: idsOf(first, second, third, fourth, fifth) })
  t.same(
    [first, second, third, fourth, fifth].flatMap(kindsOf).filter(kind => kind !== 'added-by-list'),
    [],
  )
})

t.test('a device of the list that was removed is left out of the next one', long(), async t => {
  const log = await openLog(t)
  const [first, bob] = [await startPerson(log, 0), await startPerson(log, 1)]
  const second = await startPerson(log, 0)
  await first.ownList.approve((await waitingFor(first))[0]!)
  await becomeContacts(first, bob)
  await bob.keyLog.devicesOf([first.userId])
  await first.session.request('DELETE devices/{deviceId}', undefined, { deviceId: second.deviceId })
  t.same(await first.ownList.load(), ALONE)
  t.same(await newestList(first), { seq: 2, deviceIds: idsOf(first) })
  t.equal((await bob.keyLog.devicesOf([first.userId])).length, 1)
  t.same(bob.events, [{ kind: 'removed', userId: first.userId, deviceId: second.deviceId }])
})

t.test('a user who has lost all devices starts over, and everybody hears of it', async t => {
  const log = await openLog(t)
  const [first, bob] = [await startPerson(log, 0), await startPerson(log, 1)]
  await first.ownList.load()
  await becomeContacts(first, bob)
  await bob.keyLog.devicesOf([first.userId])
  const second = await startPerson(log, 0)
  t.match(await second.ownList.load(), { kind: 'waiting' })
  t.equal(await rejectionOf(second.ownList.startOver()), 'STEP_UP_REQUIRED')
  t.match(await startOver(second), { kind: 'listed', waiting: [{ deviceId: first.deviceId }] })
  t.match(await second.ownList.startOver(), { kind: 'listed' }, 'once')
  t.same(await newestList(second), { seq: 0, deviceIds: idsOf(second) })
  t.same(second.events, [], 'it has done that itself')
  t.match(await first.ownList.load(), { kind: 'waiting' })
  t.same(first.events, [{ kind: 'reset', userId: first.userId }])
  await t.rejects(bob.keyLog.devicesOf([first.userId]), { code: 'KEYS_RESET' })
  t.same(bob.events, [{ kind: 'reset', userId: first.userId }])
})

t.test('devices without a list: the only one makes the first list, else the user decides', async t => {
  const log = await openLog(t)
  const withOlder = async (at: number) => {
    const older = await startApp(log.http)
    await signIn(older, at)
    const publicKey = newPublicKey('P-256 X9.63')
    const { deviceId } = await older.session.request('POST register_device', { publicKey })
    const person = await startPerson(log, at)
    t.same(await person.ownList.load(), { kind: 'none' })
    return { person, deviceId }
  }
  const { person: ann, deviceId } = await withOlder(0)
  await ann.session.request('DELETE devices/{deviceId}', undefined, { deviceId })
  t.same(await ann.ownList.load(), ALONE)
  t.same(await newestList(ann), { seq: 0, deviceIds: idsOf(ann) })
  const { person: bob } = await withOlder(1)
  t.same(await bob.ownList.startOver(), ALONE, 'the older device can’t be on a list')
  t.same(await newestList(bob), { seq: 0, deviceIds: idsOf(bob) })
})

t.test('a list is sent again after a lost answer, also after the app has ended', long(), async t => {
  const log = await openLog(t)
  const first = await startPerson(log, 0)
  for (const isLast of [false, true]) {
    await startPerson(log, 0)
    const [waiting] = await waitingFor(first)
    const { seq } = await newestList(first)
    let lost = 0
    first.lie = (path, answer) => {
      if (!path.endsWith('device-list') || (!isLast && lost > 0)) return undefined
      lost++
      if (isLast) return Promise.resolve(new Response('{"code":"INTERNAL"}', { status: 500 }))
      return answer().then(() => Promise.reject(new Error('the answer is lost')))
    }
    const code = await rejectionOf(first.ownList.approve(waiting!))
    first.lie = () => undefined
    t.equal(code, isLast ? 'INTERNAL' : 'none')
    const restarted = await startPerson(log, 0, first.storage)
    await restarted.ownList.approve(waiting!)
    t.equal(lost, 1)
    t.equal((await newestList(first)).seq, seq + 1)
  }
})

t.test('nothing is signed by what a lying server says of the own list', async t => {
  const log = await openLog(t)
  const first = await startPerson(log, 0)
  const second = await startPerson(log, 0)
  const state = await second.ownList.load()
  await first.ownList.load()
  const before = await newestList(first)
  type Keys = ReplyOf<'GET user/publicKeys'>
  const answering =
    (change: (user: Keys['users'][number]) => object): AppPerson['lie'] =>
    (path, answer) =>
      path === KEYS
        ? answer<Keys>().then(({ users }) => ({ users: users.map(change), unavailable: [] }))
        : undefined

  t.comment('the list is left out, with all other devices')
  const { deviceId } = first
  first.lie = answering(({ deviceList, deviceListHash, devices, ...user }) => ({
    ...user,
    devices: devices.filter(device => device.deviceId === deviceId),
  }))
  t.equal(await rejectionOf(first.ownList.load()), 'KEYS_REFUSED')
  t.equal(await rejectionOf(first.ownList.startOver()), 'KEYS_REFUSED')
  t.match(first.events, [{ kind: 'refused', userId: first.userId, check: 'deviceList' }, { kind: 'refused' }])
  let registrations = 0
  const restarted = await startPerson(log, 0, first.storage, (path, answer) => {
    if (path.endsWith('register_device')) registrations++
    return first.lie(path, answer)
  })
  t.equal(registrations, 1, 'it has not tried a first list')
  t.equal(await rejectionOf(restarted.ownList.load()), 'KEYS_REFUSED')

  t.comment('a device that waits has another key')
  const phone = newPhone('ghost')
  first.lie = answering(({ devices, ...user }) => ({
    ...user,
    devices: devices.map(device =>
      device.deviceId === deviceId
        ? device
        : { ...device, signingKey: Buffer.from(phone.signer.signingKey).toString('base64') },
    ),
  }))
  const [waiting] = await waitingFor(first)
  t.not(waiting?.code, (state as { code: string }).code, 'its code is not the one on its screen')
  first.lie = () => undefined
  t.equal(await rejectionOf(first.ownList.approve(waiting!)), 'VALIDATION_FAILED')
  t.same(await newestList(first), before)

  t.comment('a list in the name of this device, with another signing key')
  const own = (await first.session.request('GET user/publicKeys', undefined)).users[0]!
  const publicKey = own.devices.find(device => device.deviceId === deviceId)!.publicKey
  const forged = listOf(first.userId, [{ ...phone, deviceId: BigInt(deviceId), publicKey }])
  const hash = createHash('sha256').update(forged).digest('base64')
  await log.client.register(BigInt(first.userId), 0n, hash)
  first.lie = answering(user => ({ ...user, deviceList: Buffer.from(forged).toString('base64') }))
  const events = first.events.length
  t.equal(await rejectionOf(first.ownList.load()), 'KEYS_REFUSED')
  const refused: readonly KeyEvent[] = first.events.slice(events)
  t.match(refused, [{ kind: 'refused', userId: first.userId, check: 'deviceList' }])
  first.lie = () => undefined
  t.equal(await rejectionOf(first.ownList.load()), 'KEYS_REFUSED', 'the log has another list than the server')
})
