/**
 * A server that is killed in the middle of a call: the call goes on where it was, each device gets its unacknowledged
 * messages once, and no phone rings for longer than the first invitation said.
 */

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { endStory, friends, rehearse, startCall } from '../support/call-story.ts'
import { Phone } from '../support/stompjs-phone.ts'

t.test('a call that rings goes on ringing after kill -9, as long as it was meant to', async t => {
  const story = await rehearse(t)
  const [ann, phone] = await friends(story)
  const tablet = await Phone.unpack(story, 'bob')
  await ann.connect()
  await tablet.connect()
  const { callId, callKey, encryptedAESKeys } = await startCall(ann, phone)
  const acknowledged = await tablet.next('call_invitation')
  await tablet.send(`/app/call/${callId}/ringing`, { eventId: acknowledged.body.eventId })
  const [before] = (await phone.get(200, 'GET /app/api/call/pending')).items
  await story.restart('SIGKILL')
  for (const each of [ann, tablet]) await each.closed()

  const [after] = (await phone.get(200, 'GET /app/api/call/pending')).items
  t.same(after, before, 'the same call, key and times')
  t.equal(after.participants[1].state, 'ringing')
  await phone.connect({ isAcking: false })
  const invitation = await phone.next('call_invitation')
  t.equal(invitation.headers.redelivered, undefined, 'it had not reached this device')
  t.equal(invitation.body.expiresAt, acknowledged.body.expiresAt, 'the ring ends when it was to end')
  t.equal(invitation.body.encryptedAESKey, encryptedAESKeys[phone.self.name])
  await tablet.connect()
  await tablet.settled()
  t.same(tablet.untaken, [], 'what was acknowledged does not come again')

  await phone.settled()
  t.same(phone.untaken, [], 'once')
  await phone.drop()
  await phone.connect({ isAcking: false })
  const again = await phone.next('call_invitation')
  t.match(again.headers, { redelivered: 'true', 'message-id': invitation.headers['message-id'] })
  t.same(again.body, invitation.body)
  await story.restart('SIGKILL')
  await phone.closed()
  await phone.connect({ isAcking: false })
  const third = await phone.next('call_invitation')
  t.equal(third.headers['message-id'], invitation.headers['message-id'])
  third.ack()
  await phone.settled()
  await phone.drop()
  await phone.connect()
  await phone.settled()
  t.same(phone.untaken, [])

  const joined = await phone.get(200, `POST /app/api/call/${callId}/join`)
  t.same(await phone.open(joined.encryptedAESKey, ann.userId, ann.deviceId), callKey)
  await ann.connect()
  await ann.get(200, 'POST /app/api/call/end', { callId })
  t.match((await phone.next('call_ended')).body, { callId, status: 'ended' })
  await endStory(t, story, ann, phone, tablet)
})

t.test('a call that is on goes on after kill -9, and keys that were on their way arrive once', async t => {
  const story = await rehearse(t)
  const [ann, bob] = await friends(story)
  await ann.connect()
  await bob.connect()
  const { callId, callKey } = await startCall(ann, bob)
  await bob.next('call_invitation')
  await bob.get(200, `POST /app/api/call/${callId}/join`)
  await bob.drop()
  const bobsPhone = await ann.deviceOf(bob.userId, bob.deviceId)
  const nextKey = new Uint8Array(randomBytes(32))
  const encryptedAESKeys = await ann.sealed(nextKey, [bobsPhone])
  await ann.send(`/app/call/${callId}/keys`, { epoch: 2, reason: 'rotation', encryptedAESKeys })
  const recordOf = async (phone: Phone) => phone.get(200, `GET /app/api/call/${callId}`)
  const before = await recordOf(ann)
  await story.restart('SIGKILL')
  t.same(await recordOf(ann), before, 'the room is as it was')
  t.match(before, { status: 'active', keyEpoch: 2 })

  await bob.connect()
  const update = await bob.next('key_update')
  t.equal(update.headers.redelivered, undefined)
  t.same(await bob.open(update.body.encryptedAESKey, ann.userId, ann.deviceId), nextKey)
  await bob.settled()
  t.same(bob.untaken, [], 'nothing of before')
  t.match(await bob.get(202, `POST /app/api/call/${callId}/request-rejoin`), { asked: 1 })
  await story.restart('SIGKILL')

  await ann.connect()
  await ann.watch(callId)
  const { body: request } = await ann.next('participant_request_rejoin')
  t.equal(request.deviceId, bob.deviceId, 'the request was waiting')
  const answer = await ann.sealed(callKey, [bobsPhone])
  await ann.send(`/app/call/${callId}/accept-rejoin`, {
    requesterUserId: bob.userId,
    requesterDeviceId: bob.deviceId,
    encryptedAESKey: answer[bobsPhone.name],
  })
  await story.restart('SIGKILL')
  await bob.connect()
  const { body } = await bob.next('participant_accept_rejoin')
  t.same(await bob.open(body.encryptedAESKey, ann.userId, ann.deviceId), callKey)
  t.match(await bob.get(200, `POST /app/api/call/${callId}/rejoin`), { status: 'active', keyEpoch: 2 })

  await bob.get(204, `POST /app/api/call/${callId}/leave`)
  await ann.connect()
  t.match(await ann.get(200, 'POST /app/api/call/end', { callId }), { status: 'ended' })
  await story.restart('SIGKILL')
  t.equal(await bob.app.outcome(`GET /app/api/call/${callId}`), '410 CALL_ENDED')
  t.match((await bob.get(200, 'GET /app/api/call/history')).items, [{ callId, status: 'ended' }])
  await endStory(t, story, ann, bob)
})

t.test('every way to acknowledge leaves the same messages acknowledged', async t => {
  const story = await rehearse(t)
  const [ann, bob] = await friends(story)
  await ann.connect()
  for (const ack of ['auto', 'client', 'client-individual'] as const) {
    const { callId } = await startCall(ann, bob)
    await bob.connect({ ack, isAcking: false })
    const invitation = await bob.next('call_invitation')
    await ann.get(200, 'POST /app/api/call/end', { callId })
    const cancelled = await bob.next('call_cancelled')
    if (ack !== 'auto') cancelled.ack()
    await bob.settled()
    await bob.disconnect()
    await story.restart('SIGKILL')
    await bob.connect({ isAcking: true })
    await bob.settled()
    t.same(bob.untaken, [], `${ack}: the invitation was withdrawn, its end acknowledged`)
    await bob.disconnect()

    const position = cancelled.headers['message-id']!
    t.not(invitation.headers['message-id'], position)
    await bob.connect({ since: position })
    await bob.settled()
    t.same(bob.untaken, [], `${ack}: nothing has come since`)
    await bob.disconnect()
    await ann.connect()
  }
  await endStory(t, story, ann, bob)
})

t.test('a server that stops says so, and phones that come back miss nothing', async t => {
  const story = await rehearse(t)
  const [ann, bob] = await friends(story)
  await bob.connect({ isBinary: true })
  const { callId } = await startCall(ann, bob)
  await bob.next('call_invitation')
  await story.restart('SIGTERM')
  await bob.closed()
  t.equal(bob.closeCode, 1012)
  t.match(bob.lastError?.headers, { reason: 'draining', retry: 'after', 'retry-after': /^\d+$/ })
  await ann.get(200, 'POST /app/api/call/end', { callId })
  await bob.connect({ isBinary: true })
  await bob.next('call_cancelled')
  t.same(bob.untaken, [])
  await endStory(t, story, ann, bob)
})
