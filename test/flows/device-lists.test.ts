/** Device lists on a running server: what contacts see, whom they can call, what the log proves, and what a kill leaves. */

import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { judgeDeviceList } from '../../src/log/device-list.ts'
import { readLogKeys, verifyLookup } from '../strangers/verifier.ts'
import type { Answer, App } from '../support/app.ts'
import { newCallKey, settingsFor, signInAgain, signInPerson } from '../support/call-people.ts'
import { type ListedPhone, listBody, listOf, newPhone, registrationOf } from '../support/device-lists.ts'
import { lookUp, startLog } from '../support/live-log.ts'
import { randomFrom, seedOf } from '../support/seed.ts'
import { type OpenServer, type RunningServer, startServer } from '../support/server.ts'
import { quorumOf, startWitnessOf, witnessedLog } from '../support/witnessed-log.ts'

const KILLS = 3
const KILLED_WITHIN_MS = 40
const POLL_MS = 50

const ENVIRONMENT = { CALLSIGN_LOG_LEVEL: 'error', ...settingsFor(2) }

/** In a process of its own, to be killed. */
async function start(t: Test, dataFolder: string): Promise<RunningServer> {
  const server = await startServer({ dataFolder, environment: ENVIRONMENT })
  t.teardown(() => server.end())
  return server
}

/** A session of the person with a phone, which may bring a first list. */
async function unpack(
  app: App,
  name: string,
  userId?: string,
): Promise<ListedPhone & { first?: Uint8Array }> {
  const phone = newPhone(name)
  const first = userId === undefined ? undefined : listOf(userId, [phone])
  const body = registrationOf(phone, app.challenge!, first)
  const { deviceId } = await app.get(201, 'POST /app/api/register_device', body)
  phone.deviceId = BigInt(deviceId)
  return { ...phone, ...(first && { first }) }
}

function put(app: App, list: Uint8Array, seq: number): Promise<Answer> {
  return app.send('PUT /app/api/user/device-list', listBody(list), { 'if-match': `"${seq}"` })
}

async function keysOf(app: App, userId: string) {
  const { users } = await app.get(200, `GET /app/api/user/publicKeys?userIds=${userId}`)
  return users[0]
}

/** Whether the log proves that this is the user's newest list. */
async function isProven(server: OpenServer, userId: string, keys: Record<string, string>): Promise<boolean> {
  const [result] = await lookUp(server.http, [keys.deviceListHash!])
  const list = Buffer.from(keys.deviceList!, 'base64')
  const publicKey = createHash('sha256').update(list).digest('base64')
  const expected = { userId: BigInt(userId), deviceId: 0n, publicKey }
  const { index } = verifyLookup(readLogKeys(server.vkey, server.vrfPublicKey), expected, result!)
  return index === Number(keys.deviceListIndex)
}

t.test('contacts see and call the listed devices, and the log proves the list', async t => {
  const server = await startLog(t, t.testdir(), ENVIRONMENT)
  const ann = await signInAgain(server.http, 0)
  const { userId } = await ann.get(200, 'GET /app/api/user')
  const phone = await unpack(ann, 'phone', userId)
  const bob = await signInPerson(server.http, 1)
  await ann.get(201, 'POST /app/api/friend-request/by-id', { targetUserId: bob.userId })
  const accepted = await bob.app.get(200, 'POST /app/api/friend-request/accept', { userId })
  const shown = await keysOf(bob.app, userId)
  t.equal(accepted.deviceList, Buffer.from(phone.first!).toString('base64'))
  t.same([shown.deviceList, shown.deviceListHash], [accepted.deviceList, accepted.deviceListHash])
  t.ok(await isProven(server, userId, shown))
  t.equal(judgeDeviceList(BigInt(userId), undefined, Buffer.from(shown.deviceList, 'base64')).kind, 'first')

  const onTablet = await signInAgain(server.http, 0)
  const tablet = await unpack(onTablet, 'tablet')
  t.same((await keysOf(bob.app, userId)).devices.length, 1, 'a device that no list names is not shown')
  t.same((await keysOf(onTablet, userId)).devices.length, 2, 'but to its user')

  const call = async (...phones: readonly ListedPhone[]) => {
    const keys = phones.map(({ deviceId }) => [`${userId}_${deviceId}`, newCallKey()])
    const answer = await bob.app.send('POST /app/api/call/start', {
      calleeIds: [userId],
      encryptedAESKeys: Object.fromEntries(keys),
      isVideo: false,
    })
    if (answer.status === 201)
      await bob.app.get(200, 'POST /app/api/call/end', { callId: answer.body.callId })
    return answer
  }
  t.match((await call(phone, tablet)).body, {
    code: 'DEVICE_LIST_MISMATCH',
    missing: [],
    extra: [`${userId}_${tablet.deviceId}`],
    deviceListSeqs: { [userId]: 0 },
  })
  t.equal((await call(phone)).status, 201)

  const second = listOf(userId, [phone, tablet], { previous: phone.first! })
  t.equal((await put(ann, second, 0)).status, 200)
  t.match((await call(phone)).body, {
    missing: [`${userId}_${tablet.deviceId}`],
    deviceListSeqs: { [userId]: 1 },
  })
  t.equal((await call(phone, tablet)).status, 201)
  await ann.get(204, `DELETE /app/api/devices/${tablet.deviceId}`)
  t.equal((await call(phone, tablet)).status, 201, 'the list names it still')
  t.equal((await call(phone)).status, 201, 'though it gets no key')
  t.ok(await isProven(server, userId, await keysOf(bob.app, userId)))
})

t.test('after a kill at any moment, the newest list is the one that the log proves', async t => {
  const folder = t.testdir()
  const seed = seedOf()
  const random = randomFrom(seed)
  let server = await start(t, folder)
  const ann = await signInAgain(server.http, 0)
  const { userId } = await ann.get(200, 'GET /app/api/user')
  const phone = await unpack(ann, 'phone', userId)
  let [list, seq] = [phone.first!, 0]
  for (let kill = 0; kill < KILLS; kill++) {
    const killed = pause(random() * KILLED_WITHIN_MS).then(() => server.end('SIGKILL'))
    for (;;) {
      const next = listOf(userId, [phone], { previous: list })
      const answer = await put(ann, next, seq).catch(() => undefined)
      if (answer === undefined) {
        await killed
        server = await start(t, folder)
        ann.http = server.http
        const again = await put(ann, next, seq)
        t.equal(again.status, 200, again.text)
        ;[list, seq] = [next, seq + 1]
        break
      }
      t.equal(answer.status, 200, answer.text)
      ;[list, seq] = [next, seq + 1]
    }
    const keys = await keysOf(ann, userId)
    t.equal(keys.deviceList, Buffer.from(list).toString('base64'))
    t.ok(await isProven(server, userId, keys))
  }
  t.comment(`${seq} lists, seed ${seed}`)
})

t.test(
  'a list that the witnesses kept waiting is served once they are back, without another request',
  async t => {
    const log = witnessedLog(t)
    const witness = await startWitnessOf(t, log, 'one.example')
    log.setPolicy(quorumOf(1, [witness]))
    const server = await startLog(t, log.dataFolder, { ...log.environment, ...settingsFor(1) })
    const ann = await signInAgain(server.http, 0)
    const { userId } = await ann.get(200, 'GET /app/api/user')
    const phone = await unpack(ann, 'phone', userId)
    await witness.end('SIGKILL')
    const second = Buffer.from(listOf(userId, [phone], { previous: phone.first! }))
    t.match(await put(ann, second, 0), { status: 503, body: { code: 'LOG_UNAVAILABLE' } })
    t.notOk(second.equals(Buffer.from((await keysOf(ann, userId)).deviceList, 'base64')))
    await startWitnessOf(t, log, 'one.example', witness.port)
    while (!second.equals(Buffer.from((await keysOf(ann, userId)).deviceList, 'base64'))) await pause(POLL_MS)
    const { deviceListHash, deviceListIndex } = await keysOf(ann, userId)
    const [result] = await lookUp(server.http, [deviceListHash])
    t.equal(result!.publicKey, createHash('sha256').update(second).digest('base64'))
    t.match(await put(ann, second, 0), { status: 200, body: { deviceListIndex } })
  },
)
