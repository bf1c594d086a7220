/**
 * Attacks of a hostile operator, against a real server with answers changed on the way: each is refused, or leaves a trail
 * that the victim's own app shows at its next check. SECURITY.md has the whole table, with the tests of the rest.
 */

import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import {
  ContactDevices,
  type Fetch,
  type KnownUser,
  LogClient,
  MemoryStore,
  type NamedUser,
  packCallKey,
  readCallKey,
} from '../../src/client/client.ts'
import { generateKeys } from '../../src/log/keys.ts'
import { type App, newPublicKey } from '../support/app.ts'
import { type Person, settingsFor, signInAgain, signInPerson } from '../support/call-people.ts'
import { type ListedPhone, listBody, listOf, newPhone, registrationOf } from '../support/device-lists.ts'
import { type LiveLog, registerUsers, startLog } from '../support/live-log.ts'

/** Changes an answer of the log's server, or leaves it. */
type Lie = (path: string, asked: unknown, answer: () => Promise<unknown>) => Promise<unknown> | undefined

/** An app's view of log and contacts. */
class Phone {
  readonly log: LogClient
  readonly contacts: ContactDevices
  /** What the operator does to what this app is answered. */
  lie: Lie = () => undefined

  constructor({ http, vkey, vrfPublicKey }: LiveLog) {
    const fetchLying: Fetch = async (url, init) => {
      const asked = init.body === undefined ? undefined : JSON.parse(init.body)
      const honest = () => fetch(url, init)
      const lied = await this.lie(new URL(url).pathname, asked, async () => (await honest()).json())
      return lied === undefined ? honest() : new Response(JSON.stringify(lied))
    }
    this.log = new LogClient({ vkey, vrfPublicKey, url: http, store: new MemoryStore(), fetch: fetchLying })
    const kept = new Map<string, KnownUser>()
    const store = {
      get: (userId: string) => kept.get(userId),
      put: (known: KnownUser) => void kept.set(known.userId, known),
    }
    this.contacts = new ContactDevices(this.log, store, async () => [])
  }

  /** The devices that this app would encrypt for, and the kinds of events; or the check that failed. */
  async sees(user: NamedUser): Promise<unknown> {
    const verdict = await this.contacts.verify(user)
    if (verdict.kind !== 'verified') return verdict.kind === 'refused' ? verdict.check : verdict.detail
    await this.contacts.shown(user.userId, verdict.events)
    return [verdict.devices.map(({ deviceId }) => deviceId), verdict.events.map(({ kind }) => kind)]
  }
}

/** Ann with a phone and a device list, and Bob, who are contacts. */
interface House {
  readonly server: LiveLog
  readonly ann: { readonly app: App; readonly phone: ListedPhone; readonly userId: string }
  readonly bob: Person
  readonly first: Uint8Array
  readonly annsPhone: Phone
  readonly bobsPhone: Phone
  /** Ann as the server names her to Bob. */
  named(): Promise<NamedUser>
}

async function openHouse(t: Test): Promise<House> {
  const server = await startLog(t, t.testdir(), settingsFor(2))
  const app = await signInAgain(server.http, 0)
  const { userId } = await app.get(200, 'GET /app/api/user')
  const phone = newPhone('phone')
  const first = listOf(userId, [phone])
  await app.get(201, 'POST /app/api/register_device', registrationOf(phone, app.challenge!, first))
  const bob = await signInPerson(server.http, 1)
  await app.get(201, 'POST /app/api/friend-request/by-id', { targetUserId: bob.userId })
  await bob.app.get(200, 'POST /app/api/friend-request/accept', { userId })
  const named = async () => {
    const { users } = await bob.app.get(200, `GET /app/api/user/publicKeys?userIds=${userId}`)
    return users[0]
  }
  const [annsPhone, bobsPhone] = [new Phone(server), new Phone(server)]
  const house = { server, ann: { app, phone, userId }, bob, first, annsPhone, bobsPhone, named }
  t.same(await annsPhone.sees(await named()), [[`${phone.deviceId}`], []])
  t.same(await bobsPhone.sees(await named()), [[`${phone.deviceId}`], []])
  return house
}

/** A device that only the operator has, with its key in the log. */
async function addGhost({ server, ann }: House) {
  const ghost = newPhone('ghost')
  const { vrfHash } = await server.client.register(BigInt(ann.userId), ghost.deviceId, ghost.publicKey)
  const device = { deviceId: `${ghost.deviceId}`, keyAlgorithm: 'P-256', publicKey: ghost.publicKey }
  return { ghost, device: { ...device, publicKeyHash: vrfHash } }
}

/** Logs a list in Ann's name, which none of her devices made. */
async function logList({ server, ann }: House, list: Uint8Array): Promise<void> {
  const hash = createHash('sha256').update(list).digest('base64')
  await server.client.register(BigInt(ann.userId), 0n, hash)
}

t.test('A1: a ghost device, with its key in the log', async t => {
  const house = await openHouse(t)
  const { ann, annsPhone, bobsPhone, first } = house
  const { ghost, device } = await addGhost(house)
  const named = await house.named()
  const devices = [...named.devices, device]
  t.same(await bobsPhone.sees({ ...named, devices }), [[`${ann.phone.deviceId}`], ['unlisted']])

  t.comment('and with a list that the operator signs with the ghost’s key, as the next one of Ann’s')
  const forged = listOf(ann.userId, [ann.phone, ghost], { previous: first, signer: ghost })
  await logList(house, forged)
  const deviceList = Buffer.from(forged).toString('base64')
  t.equal(await bobsPhone.sees({ ...named, devices, deviceList }), 'deviceList')
  t.match(await annsPhone.contacts.checkOwnList(ann.userId), { kind: 'alert' }, 'Ann sees it in the log')
})

t.test('A1: a ghost device, by starting over in the user’s name', async t => {
  const house = await openHouse(t)
  const { ann, annsPhone, bobsPhone } = house
  const { ghost, device } = await addGhost(house)
  const list = listOf(ann.userId, [ghost])
  await logList(house, list)
  const named = { ...(await house.named()), devices: [device] }
  const deviceList = Buffer.from(list).toString('base64')
  const [devices, events] = (await bobsPhone.sees({ ...named, deviceList })) as [string[], string[]]
  t.same([devices, events], [[device.deviceId], ['reset']], 'Bob is told that Ann has started over')
  t.match(await annsPhone.contacts.checkOwnList(ann.userId), { kind: 'alert' })
})

t.test('A2: a second key under the user’s own hash, left out of what the user is answered', async t => {
  const house = await openHouse(t)
  const { server, ann, annsPhone, bobsPhone } = house
  const falseKey = newPublicKey('P-256 X9.63')
  const { deviceId, publicKey } = ann.phone
  const own = (await house.named()).devices[0]!
  const before = await annsPhone.log.lookUp({ ...own, userId: ann.userId, vrfHash: own.publicKeyHash })
  t.equal(before.kind, 'verified')
  const { vrfHash } = await server.client.register(BigInt(ann.userId), deviceId, falseKey)

  annsPhone.lie = (path, _, answer) =>
    path !== '/api/get-key-history'
      ? undefined
      : answer().then(history => {
          const { entries, ...rest } = history as { entries: readonly { publicKey: string }[] }
          return { ...rest, entries: entries.filter(entry => entry.publicKey !== falseKey) }
        })
  const report = await annsPhone.log.checkOwnKeys({
    userId: ann.userId,
    deviceId: `${deviceId}`,
    vrfHash,
    publicKeys: [publicKey],
  })
  t.match(report, { kind: 'refused', check: 'history' }, 'the history lacks what a lookup shows')

  const named = await house.named()
  const devices = named.devices.map(device => ({ ...device, publicKey: falseKey }))
  t.equal(await bobsPhone.sees({ ...named, devices }), 'deviceList', 'the list has the key’s hash')
  t.equal(
    await bobsPhone.sees(named),
    'publicKey',
    'and the key of the list is not the newest one in the log',
  )
})

t.test('A3: a removed device is listed again', async t => {
  const house = await openHouse(t)
  const { ann, bobsPhone, first, server } = house
  const onTablet = await signInAgain(server.http, 0)
  const tablet = newPhone('tablet')
  const { deviceId } = await onTablet.get(
    201,
    'POST /app/api/register_device',
    registrationOf(tablet, onTablet.challenge!),
  )
  tablet.deviceId = BigInt(deviceId)
  const put = (list: Uint8Array, seq: number) =>
    ann.app.send('PUT /app/api/user/device-list', listBody(list), { 'if-match': `"${seq}"` })
  const both = listOf(ann.userId, [ann.phone, tablet], { previous: first })
  t.equal((await put(both, 0)).status, 200)
  const withTablet = await house.named()
  t.match(await bobsPhone.sees(withTablet), [{ length: 2 }, ['added-by-list']])
  const alone = listOf(ann.userId, [ann.phone], { previous: both })
  t.equal((await put(alone, 1)).status, 200)
  const named = await house.named()
  t.same(await bobsPhone.sees(named), [[`${ann.phone.deviceId}`], ['removed']])

  t.equal(await bobsPhone.sees(withTablet), 'deviceList', 'the old list')
  const devices = withTablet.devices
  t.same(await bobsPhone.sees({ ...named, devices }), [[`${ann.phone.deviceId}`], ['unlisted']])
})

t.test('A7: a share link is answered with another person', async t => {
  const house = await openHouse(t)
  const { ann, bobsPhone, first } = house
  const linked = {
    userId: BigInt(ann.userId),
    listHash: createHash('sha256').update(first).digest('base64'),
  }
  const named = await house.named()
  t.match(await bobsPhone.contacts.verifyShared(named, linked), { kind: 'verified' })
  for (const other of [
    { ...linked, userId: linked.userId + 1n },
    { ...linked, listHash: createHash('sha256').digest('base64') },
  ])
    t.match(await bobsPhone.contacts.verifyShared(named, other), { kind: 'refused', check: 'deviceList' })
})

t.test('A9: a server that refuses a call until it is sealed for the ghost', async t => {
  const house = await openHouse(t)
  const { ann, bob, bobsPhone } = house
  const { device } = await addGhost(house)
  const named = await house.named()
  const [devices] = (await bobsPhone.sees({ ...named, devices: [...named.devices, device] })) as [string[]]
  t.same(devices, [`${ann.phone.deviceId}`], 'however often it is asked for')
  const sealedFor = (ids: readonly string[]) =>
    bob.app.send('POST /app/api/call/start', {
      calleeIds: [ann.userId],
      encryptedAESKeys: Object.fromEntries(
        ids.map(id => [`${ann.userId}_${id}`, Buffer.alloc(113, 7).toString('base64')]),
      ),
      isVideo: false,
    })
  t.equal((await sealedFor(devices)).status, 201, 'our server takes exactly the devices of the list')
})

t.test('A10: two servers of one key are found out when two people call each other', async t => {
  const keys = generateKeys('log.example/twins', length => randomBytes(length))
  const environment = {
    CALLSIGN_ORIGIN: keys.origin,
    KT_PRIVATE_KEY: keys.ktPrivateKey,
    VRF_PRIVATE_KEY: keys.vrfPrivateKey,
    CALLSIGN_SECRET: keys.secret,
  }
  const folder = t.testdir({ one: {}, two: {} })
  const [one, two] = [
    await startLog(t, join(folder, 'one'), environment),
    await startLog(t, join(folder, 'two'), environment),
  ]
  await registerUsers(one.client, 1, 5)
  const [ann, bob] = [new Phone(one), new Phone(two)]
  const annHears = async () => {
    for (const { log } of [ann, bob]) t.match(await log.refreshCheckpoint(), { kind: 'verified' })
    const half = new Uint8Array(32)
    const content = { callKey: half, setHash: half, sealedAtMs: 0 }
    const sealed = packCallKey(content, await bob.log.highestCheckpoint())
    return ann.log.compareWith(readCallKey(sealed, keys.origin).note!)
  }
  const evidence = { length: 2 }
  await registerUsers(two.client, 100, 5)
  t.match(await annHears(), { kind: 'refused', check: 'fork', evidence })
  await registerUsers(two.client, 100, 3)
  t.match(await annHears(), { kind: 'unanswered', check: 'tiles' }, 'her server has no tile of that tree')
  await registerUsers(one.client, 1, 9)
  const refused = { kind: 'refused', check: 'consistency', evidence }
  t.match(await ann.log.refreshCheckpoint(), refused, 'once her log has grown past it')
})
