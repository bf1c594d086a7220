/** Calls whose id the app chose, keys whose epoch it says, and the name of each key's sealer, over HTTP. */

import t from 'tap'
import { meetPeople, newCallKey, type Person, settingsFor } from '../support/call-people.ts'
import { openServer } from '../support/open-server.ts'

const CALL_ID = '6117204471893025'

function startBody(callees: readonly Person[], callId?: string) {
  const keys = callees.map(({ userId, deviceId }) => [`${userId}_${deviceId}`, newCallKey()])
  const calleeIds = callees.map(({ userId }) => userId)
  return { ...(callId && { callId }), calleeIds, encryptedAESKeys: Object.fromEntries(keys), isVideo: false }
}

const START = 'POST /app/api/call/start'

t.test('a start that comes again finds its call, also after its end and a restart', async t => {
  const options = { dataFolder: t.testdir(), environment: settingsFor(2) }
  let server = await openServer(options)
  t.teardown(() => server.end())
  const [ann, bob] = (await meetPeople(server.http, 2)) as [Person, Person]
  const body = startBody([bob], CALL_ID)
  t.match(await ann.app.get(201, START, body), { callId: CALL_ID, version: 1, status: 'ringing' })
  t.match(await ann.app.get(201, START, body), { callId: CALL_ID, version: 1, status: 'ringing' })
  const invited = await bob.app.get(200, 'GET /app/api/call/pending')
  const sealer = { keyFromUserId: ann.userId, keyFromDeviceId: ann.deviceId }
  t.match(invited.items, [{ callId: CALL_ID, ...sealer }])
  t.equal(invited.items.length, 1)
  t.match(await bob.app.get(200, `POST /app/api/call/${CALL_ID}/join`), sealer)
  await assertTaken()
  await ann.app.get(200, `POST /app/api/call/${CALL_ID}/end`)
  t.match(await ann.app.get(201, START, body), { callId: CALL_ID, status: 'ended' })
  await assertTaken()
  await server.end()
  server = await openServer(options)
  for (const { app } of [ann, bob]) app.http = server.http
  t.match(await ann.app.get(201, START, body), { callId: CALL_ID, status: 'ended' })
  await assertTaken()
  t.match(await ann.app.get(200, 'GET /app/api/call/history'), { items: [{ callId: CALL_ID }] })

  /** Every other start hears the same, the caller's own too. */
  async function assertTaken(): Promise<void> {
    const others = [
      [ann, { ...body, isVideo: true }],
      [ann, startBody([bob], CALL_ID)],
      [bob, startBody([ann], CALL_ID)],
    ] as const
    for (const [{ app }, other] of others) {
      const { requestId: _, ...problem } = await app.get(409, START, other)
      t.same(problem, {
        type: 'urn:problem:call-id-taken',
        title: 'Call id taken',
        status: 409,
        code: 'CALL_ID_TAKEN',
        detail: 'a call has this id, or had it: start with another one',
      })
    }
  }
})

t.test('ids out of range and epochs of another key are refused; clients need send neither', async t => {
  const server = await openServer({ dataFolder: t.testdir(), environment: settingsFor(3) })
  t.teardown(() => server.end())
  const [ann, bob, carol] = (await meetPeople(server.http, 3)) as [Person, Person, Person]
  for (const callId of ['4294967295', '9007199254740992', '0', '-1', '4294967296.5', 'x', '04294967296']) {
    const problem = await ann.app.get(422, START, startBody([bob], callId))
    t.match(problem, { code: 'VALIDATION_FAILED', errors: [{ pointer: '/callId' }] }, callId)
  }
  const { callId } = await ann.app.get(201, START, startBody([bob]))
  const path = `POST /app/api/call/${callId}`
  await bob.app.get(200, `${path}/join`)
  const keys = { epoch: 2, reason: 'rotation', ...onlyKeys(startBody([bob])) }
  await ann.app.get(202, `${path}/keys`, keys)
  const conflict = { code: 'EPOCH_CONFLICT', keyEpoch: 2 }
  t.match(await ann.app.get(409, `${path}/invite`, { ...startBody([carol]), epoch: 1 }), conflict)
  const answer = {
    requesterUserId: carol.userId,
    requesterDeviceId: carol.deviceId,
    encryptedAESKey: newCallKey(),
  }
  t.match(await ann.app.get(409, `${path}/accept-rejoin`, { ...answer, epoch: 3 }), conflict)
  for (const epoch of [0, 65_536, '2']) {
    t.match(await ann.app.get(422, `${path}/accept-rejoin`, { ...answer, epoch }), {
      errors: [{ pointer: '/epoch' }],
    })
  }
  await ann.app.get(202, `${path}/accept-rejoin`, { ...answer, epoch: 2 })
  await ann.app.get(202, `${path}/accept-rejoin`, answer)
  await bob.app.get(403, `${path}/invite`, { ...startBody([carol]), epoch: 2 })
  await ann.app.get(200, `${path}/invite`, { ...startBody([carol]), epoch: 2 })
  await ann.app.get(200, `${path}/invite`, startBody([carol]))
  t.match(await carol.app.get(200, 'GET /app/api/call/pending'), {
    items: [{ callId, keyFromUserId: ann.userId, keyFromDeviceId: ann.deviceId }],
  })
})

function onlyKeys({ encryptedAESKeys }: ReturnType<typeof startBody>) {
  return { encryptedAESKeys }
}
