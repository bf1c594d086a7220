/** Call keys between apps of the SDK on a real server, which lies in the second half. */

import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type KeyHolder, keyHolder, makeCallKey, sealCallKey } from '../../../src/app/devices/call-key.ts'
import type { PublishedUser } from '../../../src/app/devices/key-log.ts'
import { hashOfSet, keyMembersOf } from '../../../src/app/devices/key-members.ts'
import type { ReplyOf } from '../../../src/app/session/operations.ts'
import { memoryStorage } from '../../../src/app/storage/storage.ts'
import { packCallKey } from '../../../src/client/client.ts'
import { parseCheckpoint } from '../../../src/log/checkpoint.ts'
import { generateKeys } from '../../../src/log/keys.ts'
import { newPublicKey } from '../../support/app.ts'
import { type Answer, type AppPerson, becomeContacts, startPerson } from '../../support/app-people.ts'
import { rejectionOf, signIn, startApp } from '../../support/app-sessions.ts'
import { settingsFor } from '../../support/call-people.ts'
import { type LiveLog, registerUsers, startLog } from '../../support/live-log.ts'
import { long } from '../../support/size.ts'

interface House {
  readonly server: LiveLog
  readonly ann: AppPerson
  readonly bob: AppPerson
  /** Knows neither of them. */
  readonly cat: AppPerson
}

async function openHouse(t: Test): Promise<House> {
  const server = await startLog(t, t.testdir(), settingsFor(3))
  const [ann, bob] = [await startPerson(server, 0), await startPerson(server, 1)]
  await becomeContacts(ann, bob)
  return { server, ann, bob, cat: await startPerson(server, 2) }
}

const BINDING = { callId: '6117204471893025', epoch: 1 }
const nameOf = ({ userId, deviceId }: AppPerson) => `${userId}_${deviceId}`

t.test(
  'a key is sealed for a contact’s devices, and opened as coming from the one that sealed it',
  async t => {
    const { ann, bob, cat } = await openHouse(t)
    t.match(await ann.keyLog.checkOwn(), { kind: 'clean', entries: { length: 1 } })
    const key = makeCallKey()
    const sealed = await ann.exchange.sealForUsers(key, [bob.userId], BINDING)
    t.same(Object.keys(sealed.texts), [nameOf(bob)])
    const text = sealed.texts[nameOf(bob)]!
    t.equal(Buffer.from(text, 'base64').length, 262, 'with a checkpoint')
    const { keyMembers } = sealed
    const hints = { sets: [keyMembers] }
    const opened = await bob.exchange.open(text, [ann], BINDING, hints)
    t.same(opened.members.toSorted(), [ann, bob].map(nameOf).toSorted())
    t.match(opened, { key, userId: ann.userId, deviceId: ann.deviceId, keyMembers })

    t.equal(await rejectionOf(bob.exchange.open(text, [bob], BINDING, hints)), 'CALL_KEY_INVALID')
    for (const other of [{ callId: '7' }, { epoch: 2 }, { nonce: new Uint8Array(16).fill(1) }])
      t.equal(
        await rejectionOf(bob.exchange.open(text, [ann], { ...BINDING, ...other }, hints)),
        'CALL_KEY_INVALID',
      )
    t.equal(
      await rejectionOf(bob.exchange.open(text, [{ ...bob, userId: ann.userId }], BINDING, hints)),
      'KEYS_UNAVAILABLE',
    )
    t.equal(
      await rejectionOf(ann.exchange.sealForUsers(key, [bob.userId, cat.userId], BINDING)),
      'CALLEE_NOT_CONTACT',
    )
    t.same([...ann.events, ...bob.events], [])
  },
)

const participant = ({ userId, deviceId }: AppPerson, state: 'joined' | 'invited' | 'left') => ({
  userId,
  deviceId,
  state,
  displayName: '',
  isHost: false,
  invitedBy: userId,
  invitedAt: '',
  mediaName: userId,
})

t.test(
  'a call’s key goes to those who are in the call or ring, and opens as from the one who has sealed it',
  async t => {
    const { ann, bob } = await openHouse(t)
    const key = makeCallKey()
    const sealedFor = async (state: 'joined' | 'invited' | 'left', person: AppPerson) => {
      const participants = [participant(ann, 'joined'), participant(person, state)]
      const { texts, without } = await ann.exchange.sealForCall(key, { participants }, BINDING)
      return [Object.keys(texts), without]
    }
    t.same(await sealedFor('joined', bob), [[nameOf(bob)], []])
    t.same(await sealedFor('invited', bob), [[nameOf(bob)], []])
    t.same(await sealedFor('left', bob), [[], []])
    t.same(
      await sealedFor('joined', { ...bob, deviceId: '7' }),
      [[], [`${bob.userId}_7`]],
      'another device of theirs is in the call, which is left out',
    )

    const { texts, keyMembers } = await ann.exchange.sealForUsers(key, [bob.userId], BINDING)
    const sealed = texts[nameOf(bob)]!
    const hints = { sets: [keyMembers] }
    const from = { userId: ann.userId, deviceId: ann.deviceId }
    t.match(await bob.exchange.open(sealed, [bob, ann], BINDING, hints), { key, ...from })
    t.equal(
      await rejectionOf(bob.exchange.open(sealed.replace('A', 'B'), [bob, ann], BINDING, hints)),
      'CALL_KEY_INVALID',
    )
    t.equal(await rejectionOf(bob.exchange.open(sealed, [], BINDING, hints)), 'CALL_KEY_INVALID')
  },
)

t.test('a device that asks for the key gets it by the hash of its own key alone', async t => {
  const { ann, bob } = await openHouse(t)
  const key = makeCallKey()
  const { publicKeyHash } = await ann.keyLog.deviceOf(bob.userId, bob.deviceId)
  const { keyMembers } = await ann.exchange.sealForUsers(key, [bob.userId], BINDING)
  const asked = { ...BINDING, nonce: randomBytes(16) }
  const sealed = await ann.exchange.sealForDevice(key, keyMembers, { ...bob, publicKeyHash }, asked)
  const hints = { sets: [keyMembers] }
  t.match(await bob.exchange.open(sealed, [ann], asked, hints), { key })
  t.equal(
    await rejectionOf(bob.exchange.open(sealed, [ann], { ...BINDING, nonce: randomBytes(16) }, hints)),
    'CALL_KEY_INVALID',
    'the answer to another ask',
  )
  const other = (await ann.keyLog.deviceOf(ann.userId, ann.deviceId)).publicKeyHash
  t.equal(
    await rejectionOf(ann.exchange.sealForDevice(key, keyMembers, { ...bob, publicKeyHash: other }, BINDING)),
    'KEYS_REFUSED',
  )
  t.match(ann.events, [{ kind: 'refused', userId: bob.userId, check: 'vrfHash' }])
})

t.test('two people compare sixty digits, and make sure of each other by a link', async t => {
  const { ann, bob, cat } = await openHouse(t)
  const code = await ann.keyLog.codeWith(bob.userId)
  t.match(code, /^(\d{5} ){11}\d{5}$/)
  t.equal(await bob.keyLog.codeWith(ann.userId), code)

  const person = (await ann.keyLog.openShared(await bob.keyLog.shareFragment()))!
  t.equal(`${person.userId}`, bob.userId)
  await ann.keyLog.expect(person)
  t.equal((await ann.keyLog.devicesOf([bob.userId])).length, 1)
  t.equal(await ann.keyLog.openShared(''), undefined, 'of a person without a list')

  const catsLink = (await ann.keyLog.openShared(await cat.keyLog.shareFragment()))!
  await ann.keyLog.expect({ ...catsLink, userId: BigInt(bob.userId) })
  t.equal(await rejectionOf(ann.keyLog.devicesOf([bob.userId])), 'KEYS_REFUSED')
  t.match(ann.events, [{ kind: 'refused', check: 'deviceList', userId: bob.userId }])
})

t.test('a lying server gets no key', async t => {
  const { server, ann, bob, cat } = await openHouse(t)
  await ann.keyLog.devicesOf([bob.userId])
  const { users } = await cat.session.request('GET user/publicKeys', undefined)
  const cats = users[0]!
  const falseKey = newPublicKey('P-256 X9.63')
  const answersKeys = (change: (user: PublishedUser) => object) => async (answer: Answer) => {
    const { users, unavailable } = await answer<ReplyOf<'GET user/publicKeys'>>()
    return { users: users.map(change), unavailable }
  }
  const answersLog = (change: (result: object) => object) => async (answer: Answer) => {
    const { results } = await answer<{ readonly results: readonly object[] }>()
    return { results: results.map(change) }
  }
  const withDevice = (change: (device: object) => object | null) =>
    answersKeys(user => ({ ...user, devices: user.devices.map(change) }))
  const [KEYS, LOG] = ['/app/api/user/publicKeys', '/api/get-public-keys']
  const lies: Readonly<
    Record<string, readonly [string, (answer: Answer) => Promise<unknown>, string, string?]>
  > = {
    'another person': [KEYS, answersKeys(() => cats), 'KEYS_UNAVAILABLE'],
    'another person by the name': [
      KEYS,
      answersKeys(({ userId }) => ({ ...cats, userId })),
      'KEYS_REFUSED',
      'deviceList',
    ],
    'another key': [
      KEYS,
      withDevice(device => ({ ...device, publicKey: falseKey })),
      'KEYS_REFUSED',
      'deviceList',
    ],
    'no list': [
      KEYS,
      answersKeys(({ deviceList, deviceListHash, ...user }) => user),
      'KEYS_REFUSED',
      'deviceList',
    ],
    'no device': [KEYS, answersKeys(user => ({ ...user, devices: [] })), 'KEYS_UNAVAILABLE'],
    'no users': [KEYS, async () => ({ users: null }), 'ANSWER_INVALID'],
    'no valid device': [KEYS, withDevice(() => null), 'ANSWER_INVALID'],
    'another key in the log': [
      LOG,
      answersLog(result => ({ ...result, publicKey: falseKey })),
      'KEYS_REFUSED',
      'inclusion',
    ],
    'no proof': [LOG, answersLog(() => ({})), 'KEYS_REFUSED', 'proof'],
    'no answer': [LOG, async () => new Response('', { status: 503 }), 'LOG_UNANSWERED'],
  }
  for (const [what, [at, lie, code, check]] of Object.entries(lies)) {
    const before = ann.events.length
    ann.lie = (path, answer) => (path === at ? lie(answer) : undefined)
    t.equal(await rejectionOf(ann.exchange.sealForUsers(makeCallKey(), [bob.userId], BINDING)), code, what)
    const event = { kind: 'refused', userId: bob.userId, check }
    t.match(ann.events.slice(before), check === undefined ? [] : [event], what)
    t.equal(ann.events.length, before + (check === undefined ? 0 : 1))
  }

  t.comment('a ghost device, with its key in the log')
  const ghost = { deviceId: '77', keyAlgorithm: 'P-256', publicKey: falseKey, publicKeyIndex: '0' }
  const { vrfHash } = await server.client.register(BigInt(bob.userId), 77n, falseKey)
  const withGhost = answersKeys(user => ({
    ...user,
    devices: [...user.devices, { ...ghost, publicKeyHash: vrfHash }],
  }))
  ann.lie = (path, answer) => (path === KEYS ? withGhost(answer) : undefined)
  const sealed = await ann.exchange.sealForUsers(makeCallKey(), [bob.userId], BINDING)
  t.same(Object.keys(sealed.texts), [nameOf(bob)])
  t.same(ann.events.at(-1), { kind: 'unlisted', userId: bob.userId, deviceId: '77' })
})

t.test('a key is taken with the set alone that was sealed, of devices that the log proves', async t => {
  const { ann, bob, cat } = await openHouse(t)
  const [from, to] = [ann.keyLog.self, bob.keyLog.self]
  const sealedWith = async (...holders: readonly KeyHolder[]) => {
    const keyMembers = keyMembersOf(holders)
    const key = { callKey: makeCallKey(), setHash: hashOfSet(keyMembers), sealedAtMs: Date.now() }
    return { keyMembers, text: await sealCallKey(packCallKey(key), from, to, BINDING) }
  }
  const openedBy = (text: string, sets: readonly string[]) =>
    rejectionOf(bob.exchange.open(text, [ann], BINDING, { sets }))

  const { text, keyMembers } = await sealedWith(from, to)
  const other = keyMembersOf([from, to, cat.keyLog.self])
  const answer = (set: string) => {
    const reply = { callId: BINDING.callId, epoch: BINDING.epoch, keyMembers: set }
    bob.lie = path => (path.endsWith('/key-members') ? Promise.resolve(reply) : undefined)
  }
  answer(other)
  t.equal(await openedBy(text, []), 'KEY_MEMBERS_REFUSED', 'another set than the sealed one')
  t.equal(await openedBy(text, [other, '?']), 'KEY_MEMBERS_REFUSED', 'also where the record has it')
  t.equal(await openedBy(text, [other, keyMembers]), 'none', 'the right one among them is found')
  answer(keyMembers)
  t.equal(await openedBy(text, []), 'none', 'or read')

  const ghostKey = newPublicKey('P-256 X9.63')
  const sets: Readonly<Record<string, readonly KeyHolder[]>> = {
    'without this device': [from],
    'without the device that sealed it': [to],
    'with another key of this device': [from, keyHolder(to.userId, to.deviceId, ghostKey)],
    'with another key of its sealer': [keyHolder(from.userId, from.deviceId, ghostKey), to],
    'with a device of one’s own that nobody approved': [from, to, keyHolder(to.userId, '77', ghostKey)],
    'with a ghost of the sealer’s user': [from, to, keyHolder(from.userId, '77', ghostKey)],
  }
  for (const [what, holders] of Object.entries(sets)) {
    const sealed = await sealedWith(...holders)
    t.equal(await openedBy(sealed.text, [sealed.keyMembers]), 'KEY_MEMBERS_REFUSED', what)
  }
})

t.test(
  'who opens a key learns which devices of their own are on no list, and when it was sealed',
  async t => {
    const server = await startLog(t, t.testdir(), settingsFor(2))
    const older = await startApp(server.http)
    await signIn(older, 1)
    const body = { publicKey: newPublicKey('P-256 X9.63') }
    const { deviceId } = await older.session.request('POST register_device', body)
    const [ann, bob] = [await startPerson(server, 0), await startPerson(server, 1)]
    await becomeContacts(ann, bob)
    const openedBy = async (to: AppPerson, from: AppPerson) => {
      const { texts, keyMembers } = await from.exchange.sealForUsers(makeCallKey(), [to.userId], BINDING)
      t.equal(Object.keys(texts).length, 2, 'for both devices')
      return to.exchange.open(texts[nameOf(to)]!, [from], BINDING, { sets: [keyMembers] })
    }
    const { unlisted } = await openedBy(bob, ann)
    t.same(unlisted, [`${bob.userId}_${deviceId}`], 'not the one that opens it')

    await startPerson(server, 0)
    const state = await ann.ownList.load()
    for (const waiting of state.kind === 'listed' ? state.waiting : []) await ann.ownList.approve(waiting)
    t.same((await openedBy(ann, bob)).unlisted, [], 'a list names both')

    const keyMembers = keyMembersOf([ann.keyLog.self, bob.keyLog.self])
    const content = { callKey: makeCallKey(), setHash: hashOfSet(keyMembers), sealedAtMs: 86_400_000 }
    const old = await sealCallKey(packCallKey(content), ann.keyLog.self, bob.keyLog.self, BINDING)
    const opened = await bob.exchange.open(old, [ann], BINDING, { sets: [keyMembers] })
    t.match(opened, { sealedAtMs: 86_400_000 })
    t.same(opened.unlisted, [], 'it is not for the other device')
  },
)

t.test('a log that shows two people two trees is found out by their call, and the proof is kept', async t => {
  const { origin, ktPrivateKey, vrfPrivateKey, secret } = generateKeys('log.example/twins', length =>
    randomBytes(length),
  )
  const environment = {
    ...settingsFor(2),
    CALLSIGN_ORIGIN: origin,
    KT_PRIVATE_KEY: ktPrivateKey,
    VRF_PRIVATE_KEY: vrfPrivateKey,
    CALLSIGN_SECRET: secret,
  }
  const folder = t.testdir({ one: {}, two: {} })
  const one = await startLog(t, join(folder, 'one'), environment)
  const two = await startLog(t, join(folder, 'two'), environment)
  const [ann, bob] = [await startPerson(one, 0), await startPerson(one, 1)]
  await becomeContacts(ann, bob)
  const annsKey = await bob.keyLog.deviceOf(ann.userId, ann.deviceId)
  const key = makeCallKey()
  const keyMembers = keyMembersOf([bob.keyLog.self, annsKey])
  const content = { callKey: key, setHash: hashOfSet(keyMembers), sealedAtMs: Date.now() }
  /** Ann opens a key that comes with the newest checkpoint of the other server. */
  const openWithNote = async () => {
    const note = await (await fetch(`${two.http}/checkpoint`)).text()
    const { treeSize, rootHash } = parseCheckpoint(`${note.split('\n\n')[0]}\n`)
    const other = { origin, treeSize, rootHash: Buffer.from(rootHash).toString('base64'), note }
    const sealed = await sealCallKey(packCallKey(content, other), bob.keyLog.self, annsKey, BINDING)
    t.match(await ann.exchange.open(sealed, [bob], BINDING, { sets: [keyMembers] }), { key })
    return note
  }
  await registerUsers(two.client, 100, 1)
  const note = await openWithNote()
  await openWithNote()
  t.match(ann.events[0], {
    kind: 'refused',
    userId: bob.userId,
    check: 'consistency',
    evidence: { length: 2 },
  })
  const { length } = ann.events
  await registerUsers(two.client, 200, 9)
  await openWithNote()
  t.equal(ann.events.length, length, 'no word of a person while her log has no tiles of the other tree')
  const restarted = await startPerson(one, 0, ann.storage)
  const evidence = await restarted.keyLog.evidence()
  t.equal(evidence.length, 1, 'once')
  t.ok(evidence[0]!.includes(note))
})

t.test('one storage for two users, and for a log that starts anew', long(), async t => {
  const storage = memoryStorage()
  const folder = t.testdir({ one: {}, two: {} })
  for (const name of ['one', 'two']) {
    const server = await startLog(t, join(folder, name), settingsFor(2))
    for (const at of [0, 1]) {
      const person = await startPerson(server, at, storage)
      t.match(await person.keyLog.checkOwn(), { kind: 'clean' })
      await person.session.logout()
    }
  }
})
