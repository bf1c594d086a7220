/**
 * A key for a device is heard by that device alone: every other device subscribes to all existing destinations and
 * all plausible ones, and every octet any of them receives is searched for every key.
 */

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { Compile } from 'typebox/schema'
import { endStory, friends, startCall } from '../support/call-story.ts'
import { Rehearsal } from '../support/rehearsal.ts'
import { befriend, Phone } from '../support/stompjs-phone.ts'

const house = await Rehearsal.share(t)

/** Names of one device's queues, as an attacker might write them. */
function destinationsOf({ userId, deviceId }: Phone): string[] {
  return [
    `/user/${userId}/queue/calls`,
    `/user/${userId}/queue/signalling`,
    `/user/${userId}/${deviceId}/queue/calls`,
    `/topic/user.${userId}`,
    `/topic/user/${userId}`,
    `/queue/calls-user${userId}`,
    `/queue/calls-${deviceId}`,
    `/queue/${userId}/calls`,
    `/topic/device.${deviceId}`,
    `/user/queue/calls/../../${userId}/queue/calls`,
    `/user/${userId}%2Fqueue/calls`,
    `/user/ ${userId}/queue/calls`,
    `/user/0${userId}/queue/calls`,
  ]
}

const PATTERNS = [
  '/user/*/queue/calls',
  '/user/#',
  '/topic/>',
  '/topic/call.*',
  '/queue/>',
  '>',
  '/topic/dev.x',
]

/** The own queues under all their names, in all ways to acknowledge. */
const OWN = [
  '/user/queue/calls',
  '/user/queue/signalling',
  '/queue/calls',
  '/queue/account',
  '/user/queue/contacts',
]

/** Whether this connection was let in, or why not. */
async function tryTo(phone: Phone, destination: string): Promise<string> {
  return phone.subscribe(destination, { ack: 'client' }).then(
    () => 'subscribed',
    (error: Error) => error.message,
  )
}

t.test('a key reaches the device it was made for, and no other device by any name', async t => {
  const story = house.chapter()
  const [ann, bob] = await friends(story)
  const annsTablet = await Phone.unpack(story, 'ann')
  const bobsTablet = await Phone.unpack(story, 'bob')
  const carol = await Phone.unpack(story, 'carol')
  const eve = await Phone.unpack(story, 'eve')
  await befriend(ann, carol)
  const phones = [ann, annsTablet, bob, bobsTablet, carol, eve]
  for (const phone of phones) await phone.connect()

  const outcomes = new Map<string, Set<string>>()
  for (const spy of phones) {
    for (const destination of OWN) t.equal(await tryTo(spy, destination), 'subscribed', destination)
    for (const other of phones) {
      if (other.userId === spy.userId) continue
      for (const destination of [...destinationsOf(other), ...PATTERNS]) {
        const outcome = await tryTo(spy, destination)
        outcomes.set(outcome, (outcomes.get(outcome) ?? new Set()).add(destination))
      }
    }
  }
  t.same([...outcomes.keys()].sort(), ['DESTINATION_FORBIDDEN', 'NOT_FOUND'], 'and nobody is cut off')

  const keys = new Map<string, string>()
  const note = (map: Readonly<Record<string, string>>) => {
    for (const [name, value] of Object.entries(map)) keys.set(value, name)
    return map
  }
  const { callId, encryptedAESKeys } = await startCall(ann, bob, carol)
  note(encryptedAESKeys)
  for (const phone of [bob, bobsTablet, carol]) await phone.next('call_invitation')
  const topics = [`/topic/call.${callId}`, `/topic/call/${callId}`]
  for (const topic of topics) {
    t.equal(await tryTo(eve, topic), 'CALL_NOT_FOUND')
    for (const phone of [ann, annsTablet, bob, bobsTablet, carol]) {
      t.equal(await tryTo(phone, topic), 'subscribed')
    }
  }
  for (const phone of phones) await phone.get(phone === eve ? 404 : 200, `GET /app/api/call/${callId}`)
  for (const phone of phones) await phone.get(200, 'GET /app/api/call/pending')
  await bob.get(200, `POST /app/api/call/${callId}/join`)
  await carol.get(200, `POST /app/api/call/${callId}/join`)

  await bob.get(202, `POST /app/api/call/${callId}/request-rejoin`)
  for (const answerer of [ann, carol]) {
    const { body } = await answerer.next('participant_request_rejoin')
    const { userId: requesterUserId, deviceId: requesterDeviceId } = body
    const requester = await answerer.deviceOf(requesterUserId, requesterDeviceId)
    const answer = note(await answerer.sealed(randomBytes(32), [requester]))
    const encryptedAESKey = answer[requester.name]
    await answerer.send(`/app/call/${callId}/accept-rejoin`, {
      requesterUserId,
      requesterDeviceId,
      encryptedAESKey,
    })
    await bob.next('participant_accept_rejoin')
  }
  const inCall = [
    await ann.deviceOf(bob.userId, bob.deviceId),
    await ann.deviceOf(carol.userId, carol.deviceId),
  ]
  const renewed = note(await ann.sealed(randomBytes(32), inCall))
  await ann.send(`/app/call/${callId}/keys`, { epoch: 2, reason: 'rotation', encryptedAESKeys: renewed })
  for (const phone of [bob, carol]) await phone.next('key_update')

  const forEve = await ann.sealed(randomBytes(32), [await eve.deviceOf(eve.userId, eve.deviceId)])
  const astray = ann.send(`/app/call/${callId}/keys`, {
    epoch: 3,
    reason: 'rotation',
    encryptedAESKeys: forEve,
  })
  await t.rejects(astray, { message: 'DEVICE_LIST_MISMATCH' }, 'a key for somebody who is not in the call')
  for (const phone of phones) {
    await phone.get(200, 'GET /app/api/call/history')
    await phone.settled()
  }

  t.equal(keys.size, 7)
  const heardBy = [...keys].map(([key, name]) => ({
    name,
    by: phones.filter(({ heard }) => heard.includes(key)).map(({ self }) => self.name),
  }))
  t.same(
    heardBy.filter(({ name, by }) => by.length !== 1 || by[0] !== name),
    [],
    'each key by its device',
  )
  const pushed = story.world.apns.pushes.filter(({ body }) =>
    [...keys.keys()].some(key => body.includes(key)),
  )
  t.ok(pushed.length >= 3)
  for (const { token, payload } of pushed) {
    const owner = phones.find(({ voipToken }) => voipToken === token)
    t.equal(
      keys.get(payload.encryptedAESKey as string),
      owner?.self.name,
      'a push goes to the device of its key',
    )
  }
  await endStory(t, story, ...phones)
})

t.test('only people in the call can send what they alone may', async t => {
  const story = house.chapter()
  const [ann, bob] = await friends(story)
  const eve = await Phone.unpack(story, 'eve')
  for (const phone of [ann, bob, eve]) await phone.connect()
  const { callId, encryptedAESKeys } = await startCall(ann, bob)
  await bob.next('call_invitation')
  const keys = { epoch: 2, reason: 'rotation', encryptedAESKeys }
  const answer = {
    requesterUserId: bob.userId,
    requesterDeviceId: bob.deviceId,
    encryptedAESKey: encryptedAESKeys[bob.self.name],
  }
  const outcomeOf = (phone: Phone, destination: string, body?: unknown) =>
    phone.send(destination, body).then(
      () => 'done',
      (error: Error) => error.message,
    )
  const at = (command: string) => `/app/call/${callId}/${command}`
  t.equal(await outcomeOf(eve, at('keys'), keys), 'CALL_NOT_FOUND')
  t.equal(await outcomeOf(eve, at('accept-rejoin'), answer), 'CALL_NOT_FOUND')
  t.equal(await outcomeOf(eve, at('decline')), 'CALL_NOT_FOUND')
  t.equal(await outcomeOf(eve, `/user/${bob.userId}/queue/calls`, answer), 'DESTINATION_FORBIDDEN')
  t.equal(await outcomeOf(eve, '/user/queue/calls', answer), 'DESTINATION_FORBIDDEN')
  t.equal(await outcomeOf(eve, `/topic/call.${callId}`, answer), 'DESTINATION_FORBIDDEN')
  t.equal(await outcomeOf(bob, at('keys'), keys), 'CALL_NOT_ACTIVE')
  await bob.get(200, `POST /app/api/call/${callId}/join`)
  t.equal(await outcomeOf(bob, at('keys'), keys), 'NOT_HOST')
  t.equal(await outcomeOf(ann, at('keys'), { ...keys, epoch: 5 }), 'EPOCH_CONFLICT')
  t.equal(await outcomeOf(ann, at('keys'), '{"epoch":'), 'VALIDATION_FAILED')
  const { components } = await ann.get(200, 'GET /asyncapi.json')
  const documented = components.schemas.ErrorEvent
  t.same(
    Compile({ ...documented, components }).Errors(ann.lastRefusal)[1],
    [],
    'a refusal is as the document says',
  )
  t.same(Object.keys(ann.lastRefusal).sort(), Object.keys(documented.properties).sort())
  for (const phone of [ann, bob]) await phone.settled()
  t.same(bob.untaken, [])
  t.same(ann.untaken, [])
  await endStory(t, story, ann, bob, eve)
})
