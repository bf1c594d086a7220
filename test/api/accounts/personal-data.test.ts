/** All that is held of a person: what no list shows is in it too, and a document of any length costs a few portions. */

import t, { type Test } from 'tap'
import { personalData } from '../../../src/api/accounts/personal-data.ts'
import type { CallId, UserId } from '../../../src/domain/ids.ts'
import { SignalError } from '../../../src/errors.ts'
import { sessionIdOf } from '../../../src/store/accounts/session-store.ts'
import { CallIndex } from '../../../src/store/calls/call-index.ts'
import type { View } from '../../../src/store/engine/store.ts'
import { newDevice, newUser, type TestWorld } from '../../support/application.ts'
import { plantHistory } from '../../support/history-effect.ts'
import { openTestApi } from '../../support/test-api.ts'

const CALLS = 10_000

/** Puts ten thousand calls into the person's history, which the server itself keeps the last thousand of. */
function putCalls({ database, nowMs }: TestWorld, userId: UserId): Promise<void> {
  return database.change(change => {
    for (let at = 0; at < CALLS; at++) {
      const callId = BigInt(4_294_967_296 + at) as CallId
      plantHistory(change, userId, { callId, createdAtMs: nowMs() - at * 1_000, status: 'ended' })
    }
  })
}

async function open(t: Test) {
  const api = await openTestApi(t, { rehearses: false })
  const { world } = api
  const ann = await newUser(world, 'Ann')
  const request = {
    userId: ann.userId,
    nowMs: world.nowMs(),
    idsAs: 'string',
    assertAllowed: () => {},
  } as const
  return { api, world, ann, request, deps: { ...world, callIndex: new CallIndex() } }
}

t.test('ten thousand calls are read as their reader takes them', async t => {
  const { world, ann, request, deps } = await open(t)
  await putCalls(world, ann.userId)
  let views = 0
  const database = Object.assign(Object.create(world.database), {
    view<Value>(read: (view: View) => Value): Value {
      views += 1
      return world.database.view(read)
    },
  })
  const parts = personalData({ ...deps, database }, request)
  t.equal(views, 0, 'nothing is read for one who takes nothing')
  const texts: string[] = []
  let [viewsBefore, mostViews, mostBytes] = [0, 0, 0]
  for await (const part of parts) {
    texts.push(Buffer.from(part).toString())
    mostBytes = Math.max(mostBytes, part.length)
    if (texts.length > 1) mostViews = Math.max(mostViews, views - viewsBefore)
    viewsBefore = views
  }
  const { calls } = JSON.parse(texts.join(''))
  t.equal(calls.length, CALLS)
  t.equal(new Set(calls.map(({ callId }: { callId: string }) => callId)).size, CALLS)
  t.ok(texts.length > 100, `${texts.length} parts`)
  t.ok(mostViews <= 3, `${mostViews} portions are read for a part`)
  t.ok(mostBytes <= 65_536, `a part has ${mostBytes} bytes at most`)
})

t.test('a reader who goes away has nothing more read', async t => {
  const { world, ann, request, deps } = await open(t)
  await putCalls(world, ann.userId)
  let portions = 0
  const parts = personalData(deps, { ...request, assertAllowed: () => void portions++ })
  for (let at = 0; at < 10; at++) await parts.next()
  const before = portions
  await parts.return(undefined)
  t.same(await parts.next(), { done: true, value: undefined })
  t.equal(portions, before)
})

t.test('an asker who may have no more is refused midway', async t => {
  const { world, ann, request, deps } = await open(t)
  await putCalls(world, ann.userId)
  let isAllowed = true
  const assertAllowed = () => {
    if (!isAllowed) throw new SignalError('SESSION_REVOKED', 'the session was ended: sign in again')
  }
  const parts = personalData(deps, { ...request, assertAllowed })
  await parts.next()
  isAllowed = false
  await t.rejects(parts.next(), { code: 'SESSION_REVOKED' })
})

t.test('the session that asks may be ended by its owner', async t => {
  const { api, world, ann } = await open(t)
  await putCalls(world, ann.userId)
  const { sessionName } = world.authentication.requesterOf(`Bearer ${ann.token}`)
  const { sessions, database } = world
  const view = database.view.bind(database)
  let reads = 0
  database.view = read => {
    // By its tenth portion the session is gone.
    if (++reads === 10)
      void database.change(change => sessions.revoke(change, sessionIdOf(sessionName), 'ended_by_user'))
    return view(read)
  }
  t.match(await api.send('GET /app/api/user/export', { token: ann.token }), {
    body: { code: 'SESSION_REVOKED' },
  })
})

t.test('what no list shows is in it, and no secret', async t => {
  const { world, ann, request, deps } = await open(t)
  const { deviceId } = await newDevice(world, ann.userId)
  const { accounts, devices, database } = world
  await database.change(change => {
    const user = accounts.read(change, ann.userId)!
    accounts.put(change, ann.userId, {
      ...user,
      externalId: 'crm-7 é',
      isMadeByServer: true,
      contactData: { email: 'said@example.org', phone: '+84912345678' },
      suspension: { reason: 'abuse', note: 'told by Bob', atMs: change.nowMs, untilMs: change.nowMs + 1_000 },
    })
    const device = devices.active(change, ann.userId, deviceId)!
    const info = { platform: 'ios', osVersion: '26.1', locale: 'vi', timeZone: 'Asia/Saigon' }
    devices.put(change, ann.userId, {
      ...device,
      info,
      push: { apnsVoipToken: 'secret-token', registeredAtMs: { apnsVoipToken: change.nowMs } },
    })
  })
  const bob = await newUser(world, 'Bob')
  await database.change(change => {
    world.circles.add(change, 'team é', ann.userId)
    const told = { reason: 'spam', isCallKnown: false } as const
    const by = { reporterId: ann.userId, reportedId: bob.userId, text: 'said by Ann' }
    world.reports.add(change, { ...told, ...by })
    const about = { reporterId: bob.userId, reportedId: ann.userId, text: 'said by Bob' }
    world.reports.add(change, { ...told, ...about })
  })
  const gone = await newDevice(world, ann.userId)
  await database.change(change => void devices.remove(change, ann.userId, gone.deviceId))
  const texts: Buffer[] = []
  for await (const part of personalData(deps, request)) texts.push(Buffer.from(part))
  const text = Buffer.concat(texts).toString()
  t.match(JSON.parse(text), {
    account: {
      externalId: 'crm-7 é',
      madeByServer: true,
      contactData: { email: 'said@example.org', phone: '+84912345678' },
      suspension: {
        reason: 'abuse',
        suspendedAt: '2026-01-01T00:00:00.000Z',
        until: '2026-01-01T00:00:01.000Z',
      },
    },
    deviceDetails: [
      {
        deviceId: String(deviceId),
        osVersion: '26.1',
        locale: 'vi',
        timeZone: 'Asia/Saigon',
        push: [{ service: 'apns-voip', registeredAt: '2026-01-01T00:00:00.000Z' }],
      },
    ],
    circles: ['team é'],
    reports: [{ userId: String(bob.userId), reason: 'spam', text: 'said by Ann' }],
    removedDevices: [{ deviceId: String(gone.deviceId), removedAt: '2026-01-01T00:00:00.000Z' }],
  })
  for (const secret of ['secret-token', 'told by Bob', 'said by Bob']) t.notMatch(text, secret)
})

t.test('identities at providers and passkeys', async t => {
  const { world, ann, request, deps } = await open(t)
  const { accounts: own, database } = world
  const times = { addedAtMs: 1, lastUsedAtMs: 2 }
  const held = database.view(view => own.methodsOf(view, ann.userId))
  const social = {
    ...{ ...times, kind: 'social', id: 1n, provider: 'google', issuer: 'https://accounts.example' },
    ...{ subject: '1234', sealedRefreshToken: Buffer.from('sealed') },
  }
  const passkey = {
    ...{ ...times, kind: 'passkey', id: 2n, credentialId: 'Y3JlZA', publicKey: Buffer.from('key') },
    ...{ userHandle: Buffer.from('h'), counter: 3, transports: ['usb'], aaguid: 'a' },
    ...{ isSyncable: false, isBackedUp: false },
  }
  const accounts = Object.assign(Object.create(own), {
    methodsOf: () => [...held, social, passkey],
  })
  const texts: Buffer[] = []
  for await (const part of personalData({ ...deps, accounts }, request)) texts.push(Buffer.from(part))
  const exported = JSON.parse(Buffer.concat(texts).toString())
  t.same(exported.identities, [
    { methodId: '1', provider: 'google', issuer: 'https://accounts.example', subject: '1234' },
  ])
  const made = { methodId: '2', credentialId: 'Y3JlZA', publicKey: 'a2V5' }
  t.same(exported.passkeys, [{ ...made, signCount: 3, transports: ['usb'], aaguid: 'a' }])
})
