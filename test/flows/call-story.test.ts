/**
 * Calls as people make them: phones with @stomp/stompjs and real keys against the built server in production mode,
 * with an APNs stand-in. The rules have their own tests; these show that the whole story holds.
 */

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { endStory, friends, pushOf, rehearse, startCall } from '../support/call-story.ts'
import { Rehearsal } from '../support/rehearsal.ts'
import { BUNDLE_ID, befriend, isAsDocumented, Phone } from '../support/stompjs-phone.ts'

const house = await Rehearsal.share(t)

t.test('a call from the first ring to the history of it', async t => {
  const story = house.chapter()
  const [ann, bob] = await friends(story)
  const carol = await Phone.unpack(story, 'carol')
  await befriend(bob, carol)
  for (const phone of [ann, bob, carol]) await phone.connect()

  t.match(await ann.get(200, 'GET /asyncapi.json'), {
    asyncapi: '3.0.0',
    servers: { stomp: { host: 'call.example.org', pathname: '/ws', protocol: 'wss' } },
  })

  t.comment('Ann calls Bob')
  const callKey = randomBytes(32)
  const encryptedAESKeys = await ann.sealed(callKey, await ann.devicesOf(bob.userId))
  const start = { calleeIds: [bob.userId], encryptedAESKeys, isVideo: true }
  const call = await ann.get(201, 'POST /app/api/call/start', start)
  t.match(call, { status: 'ringing', hostUserId: ann.userId, keyEpoch: 1, isOnGoing: false })
  t.equal(call.encryptedAESKey, undefined)
  const { callId, roomId } = call
  await ann.watch(callId)

  const invitation = await bob.next('call_invitation')
  isAsDocumented(t, invitation)
  t.match(invitation.body, {
    callId,
    roomId,
    callerId: ann.userId,
    callerName: 'Ann',
    isVideo: true,
    isOnGoing: false,
    deviceId: bob.deviceId,
    keyEpoch: 1,
    encryptedAESKey: encryptedAESKeys[bob.self.name],
  })
  t.equal(Number(invitation.headers.expires), Date.parse(invitation.body.expiresAt))
  t.equal(Date.parse(invitation.body.expiresAt) - Date.parse(call.createdAt), 60_000)
  const push = await pushOf(story, bob, invitation.body.eventId)
  t.equal(push.token, bob.voipToken)
  t.match(push.headers, {
    'apns-topic': `${BUNDLE_ID}.voip`,
    'apns-push-type': 'voip',
    'apns-priority': '10',
  })
  const { v, version, participants, ...pushed } = invitation.body
  t.same(push.payload, { aps: {}, ...pushed }, 'the push says the same')

  t.comment('Bob’s phone rings, he answers')
  await bob.send(`/app/call/${callId}/ringing`, { eventId: invitation.body.eventId })
  t.match((await ann.next('participant_ringing')).body.participant, { userId: bob.userId, state: 'ringing' })
  const [caller] = (await bob.get(200, `GET /app/api/call/${callId}`)).participants
  const sealed = invitation.body.encryptedAESKey
  t.same(await bob.open(sealed, ann.userId, caller.deviceId), new Uint8Array(callKey), 'the key is Ann’s')
  const joined = await bob.get(200, `POST /app/api/call/${callId}/join`)
  t.match(joined, { status: 'active', encryptedAESKey: sealed, roomId })
  const arrival = await ann.next('participant_joined')
  isAsDocumented(t, arrival)
  t.match(arrival.body.participant, { userId: bob.userId, deviceId: bob.deviceId, state: 'joined' })
  t.equal((await ann.next('call_status')).body.status, 'active')

  t.comment('Bob’s app dies and asks to come back')
  await bob.drop()
  await bob.connect()
  const asked = await bob.get(202, `POST /app/api/call/${callId}/request-rejoin`)
  t.same(asked, { expiresIn: 30, asked: 1 })
  const request = await ann.next('participant_request_rejoin')
  isAsDocumented(t, request)
  t.match(request.body, { userId: bob.userId, deviceId: bob.deviceId, displayName: 'Bob' })
  const requester = await ann.deviceOf(request.body.userId, request.body.deviceId)
  const answer = await ann.sealed(callKey, [requester])
  await ann.send(`/app/call/${callId}/accept-rejoin`, {
    requesterUserId: request.body.userId,
    requesterDeviceId: request.body.deviceId,
    encryptedAESKey: answer[requester.name],
  })
  const acceptance = await bob.next('participant_accept_rejoin')
  isAsDocumented(t, acceptance)
  const { encryptedAESKey, fromUserId, fromDeviceId } = acceptance.body
  t.same(await bob.open(encryptedAESKey, fromUserId, fromDeviceId), new Uint8Array(callKey))
  t.match(await bob.get(200, `POST /app/api/call/${callId}/rejoin`), { roomId, status: 'active' })
  await bob.watch(callId)

  t.comment('Ann makes a new key')
  const nextKey = randomBytes(32)
  const renewed = { epoch: 2, reason: 'rotation', encryptedAESKeys: await ann.sealed(nextKey, [requester]) }
  await ann.send(`/app/call/${callId}/keys`, renewed)
  await ann.send(`/app/call/${callId}/keys`, renewed)
  const update = await bob.next('key_update')
  isAsDocumented(t, update)
  t.match(update.body, { epoch: 2, reason: 'rotation', fromUserId: ann.userId, fromDeviceId: ann.deviceId })
  t.same(await bob.open(update.body.encryptedAESKey, ann.userId, ann.deviceId), new Uint8Array(nextKey))
  const late = ann.send(`/app/call/${callId}/keys`, { ...renewed, reason: 'leave' })
  await t.rejects(late, { message: 'EPOCH_CONFLICT' }, 'an epoch is given once')

  t.comment('Bob brings Carol in')
  const keysOfCarol = await bob.sealed(nextKey, await bob.devicesOf(carol.userId))
  const invite = { calleeIds: [carol.userId], encryptedAESKeys: keysOfCarol }
  await bob.get(200, `POST /app/api/call/${callId}/invite`, invite)
  t.match((await ann.next('participant_invited')).body.participant, {
    userId: carol.userId,
    invitedBy: bob.userId,
  })
  const second = await carol.next('call_invitation')
  t.match(second.body, { isOnGoing: true, keyEpoch: 2, callerId: bob.userId, isVideo: true })
  t.match((await pushOf(story, carol, second.body.eventId)).payload, { isOnGoing: true })
  t.same(await carol.open(second.body.encryptedAESKey, bob.userId, bob.deviceId), new Uint8Array(nextKey))
  await carol.get(200, `POST /app/api/call/${callId}/join`)
  await carol.watch(callId)
  t.match((await ann.next('participant_joined')).body.participant, { userId: carol.userId })
  const [, devicesOfCarol] = await ann.devicesOf(bob.userId, carol.userId)
  t.equal(devicesOfCarol?.name, carol.self.name, 'the host can read the keys of who is in the call')

  t.comment('Ann leaves, Bob is the host and makes another key')
  await ann.get(204, `POST /app/api/call/${callId}/leave`)
  t.match((await carol.next('participant_left')).body.participant, { userId: ann.userId, state: 'left' })
  const handOver = await carol.next('host_changed')
  isAsDocumented(t, handOver)
  t.equal(handOver.body.hostUserId, bob.userId)
  const lastKey = randomBytes(32)
  const forCarol = await bob.sealed(lastKey, [await bob.deviceOf(carol.userId, carol.deviceId)])
  const rotation = { epoch: 3, reason: 'leave', encryptedAESKeys: forCarol }
  await bob.get(202, `POST /app/api/call/${callId}/keys`, rotation)
  const last = (await carol.next('key_update')).body
  t.same(await carol.open(last.encryptedAESKey, bob.userId, bob.deviceId), new Uint8Array(lastKey))

  for (const phone of [ann, bob, carol]) {
    const { items } = await phone.get(200, 'GET /app/api/call/history')
    t.match(items, [{ callId, status: 'active' }], 'also for who has left and may come back')
  }

  t.comment('the end')
  const over = await bob.get(200, 'POST /app/api/call/end', { callId })
  t.match(over, { status: 'ended', endReason: 'hangup', keyEpoch: 3 })
  const ended = await carol.next('call_ended')
  isAsDocumented(t, ended)
  t.match(ended.body, { callId, status: 'ended', endReason: 'hangup', endedBy: bob.userId })
  const statuses = [(await bob.next('call_status')).body, (await carol.next('call_status')).body]
  t.match(statuses, [{ status: 'ended' }, { status: 'ended' }], 'both see the end')
  t.equal(await ann.app.outcome(`POST /app/api/call/${callId}/join`), '410 CALL_ENDED')

  const rows = await Promise.all(
    [ann, bob, carol].map(async phone => (await phone.get(200, 'GET /app/api/call/history')).items[0]),
  )
  t.match(rows, [
    { callId, direction: 'outgoing', status: 'ended', isGroup: true, seen: true },
    { callId, direction: 'incoming', status: 'ended', isGroup: true, seen: true },
    { callId, direction: 'incoming', status: 'ended', isGroup: true, seen: true },
  ])
  t.same((await bob.get(200, 'GET /app/api/user')).badge, { total: 0, friendRequests: 0, missedCalls: 0 })
  t.same((await bob.get(200, 'GET /app/api/call/pending')).items, [])
  await endStory(t, story, ann, bob, carol)
})

t.test('one of several devices answers, another takes the call over', async t => {
  const story = house.chapter()
  const [ann, phone] = await friends(story)
  const tablet = await Phone.unpack(story, 'bob')
  for (const each of [ann, phone, tablet]) await each.connect()
  const { callId, callKey, encryptedAESKeys } = await startCall(ann, phone)
  t.equal(Object.keys(encryptedAESKeys).length, 2, 'a key for each of Bob’s devices')
  for (const device of [phone, tablet]) {
    const { body } = await device.next('call_invitation')
    t.equal(body.encryptedAESKey, encryptedAESKeys[device.self.name])
  }

  await phone.get(200, `POST /app/api/call/${callId}/join`)
  const elsewhere = await tablet.next('call_answered_elsewhere')
  isAsDocumented(t, elsewhere)
  t.match(elsewhere.body, { callId, callerId: ann.userId, callerName: 'Ann', reason: 'answered' })
  await ann.watch(callId)

  const moved = await tablet.get(200, `POST /app/api/call/${callId}/join`)
  t.same(await tablet.open(moved.encryptedAESKey, ann.userId, ann.deviceId), callKey, 'its own key')
  isAsDocumented(t, await phone.next('call_moved'))
  t.match((await ann.next('participant_joined')).body.participant, { deviceId: tablet.deviceId })
  const { participants } = await ann.get(200, `GET /app/api/call/${callId}/participants`)
  t.equal(participants.length, 2)

  await phone.send(`/app/call/${callId}/leave`)
  t.match((await tablet.get(200, `GET /app/api/call/${callId}`)).status, 'active', 'it had left already')
  await tablet.get(200, 'POST /app/api/call/end', { callId })
  await ann.next('call_ended')
  t.same(phone.untaken, [], 'a device that is not in the call hears no end')
  await endStory(t, story, ann, phone, tablet)
})

t.test('an invitation declined on one device ends on all, and for the caller', async t => {
  const story = house.chapter()
  const [ann, phone] = await friends(story)
  const tablet = await Phone.unpack(story, 'bob')
  for (const each of [ann, phone, tablet]) await each.connect()
  const { callId } = await startCall(ann, phone)
  await phone.next('call_invitation')
  await tablet.next('call_invitation')
  await phone.send(`/app/call/${callId}/decline`)
  t.match((await tablet.next('call_answered_elsewhere')).body, { callId, reason: 'declined' })
  t.match((await ann.next('call_ended')).body, { callId, status: 'declined', endReason: 'declined' })
  await phone.send('/app/call/7/decline').then(
    () => t.fail('a call that is not there is declined'),
    error => t.match(error, { message: 'CALL_NOT_FOUND' }),
  )
  t.equal(phone.closeCode, undefined, 'a refusal leaves the connection')
  t.match((await phone.get(200, 'GET /app/api/call/history')).items, [{ callId, status: 'declined' }])
  t.match((await phone.get(200, 'GET /app/api/user')).badge, { missedCalls: 0 })
  await endStory(t, story, ann, phone, tablet)
})

t.test('a caller who gives up stops the ringing, by socket or by a quiet push, and is missed', async t => {
  // It counts all pushes.
  const story = await rehearse(t)
  const [ann, phone] = await friends(story)
  const tablet = await Phone.unpack(story, 'bob')
  await ann.connect()
  await phone.connect()
  const { callId } = await startCall(ann, phone)
  await phone.next('call_invitation')
  await ann.get(200, 'POST /app/api/call/end', { callId })
  const cancelled = await phone.next('call_cancelled')
  isAsDocumented(t, cancelled)
  const badge = { total: 1, friendRequests: 0, missedCalls: 1 }
  t.same(cancelled.body.badge, badge)

  await tablet.connect()
  const { body } = await tablet.next('call_cancelled')
  t.same(body.badge, badge)
  t.same(tablet.untaken, [], 'the invitation has gone with it')
  const push = await pushOf(story, tablet, body.eventId)
  t.equal(push.token, tablet.apnsToken, 'never by VoIP')
  t.match(push.headers, { 'apns-topic': BUNDLE_ID, 'apns-push-type': 'background', 'apns-priority': '5' })
  t.match(push.payload, { type: 'call_cancel', reason: 'cancelled', callId })
  // With those of the friends before.
  await story.world.apns.received(8)
  const missed = story.world.apns.pushes.filter(({ payload }) => payload.type === 'missed_call')
  t.same(missed.map(({ token }) => token).sort(), [phone.apnsToken, tablet.apnsToken].sort())
  t.match(missed[0], {
    headers: { 'apns-push-type': 'alert', 'apns-collapse-id': callId },
    payload: { aps: { badge: 1 }, callId, callerId: ann.userId },
  })
  const rings = story.world.apns.pushes.filter(({ headers }) => headers['apns-push-type'] === 'voip')
  t.same(
    rings.map(({ payload }) => payload.type),
    ['call_invitation', 'call_invitation'],
    'nothing but calls on the VoIP topic',
  )
  const seen = async () => {
    const { missedCalls } = (await phone.get(200, 'GET /app/api/user')).badge
    const [row] = (await phone.get(200, 'GET /app/api/call/history')).items
    return [row.status, row.seen, missedCalls]
  }
  t.same(await seen(), ['missed', false, 1])
  await phone.get(204, 'POST /app/api/call/history/seen')
  t.same(await seen(), ['missed', true, 0])
  for (const [each, atFirst] of [
    [phone, 0],
    [tablet, 1],
  ] as const) {
    const badges = [await each.next('badge'), await each.next('badge')]
    t.same(
      badges.map(({ body }) => body.total),
      [atFirst, 0],
      'as it subscribed, and when nothing else said it',
    )
    isAsDocumented(t, badges[0]!)
  }
  await endStory(t, story, ann, phone, tablet)
})

t.test('the older forms are the same calls, and say which the newer ones are', async t => {
  const story = house.chapter()
  const [ann, bob] = await friends(story)
  const carol = await Phone.unpack(story, 'carol')
  await befriend(ann, carol)
  const linkTo = (path: string) => `<${path}>; rel="successor-version"`

  const callKey = randomBytes(32)
  const encryptedAESKeys = await ann.sealed(callKey, await ann.devicesOf(bob.userId))
  const start = { calleeIds: [bob.userId], encryptedAESKeys, isVideo: false, roomId: 815 }
  const started = await ann.app.send('POST /group-calls/start', start)
  t.match(started, { status: 201, body: { status: 'ringing', roomId: 815 } })
  t.match(started.headers.get('deprecation'), /^@\d+$/)
  t.equal(started.headers.get('link'), linkTo('/app/api/call/start'))

  const { callId } = started.body
  const joined = await bob.app.send(`POST /api/call/${callId}/join`)
  t.match(joined, { status: 200, body: { status: 'active' } })
  t.equal(joined.headers.get('deprecation'), null)
  const forCarol = await ann.sealed(callKey, await ann.devicesOf(carol.userId))
  const invite = { calleeIds: [carol.userId], encryptedAESKeys: forCarol, isVideo: false, roomId: 815 }
  const invited = await ann.app.send(`POST /group-calls/${callId}/invite`, invite)
  t.match(invited, { status: 200, body: { callId } })
  t.equal(invited.headers.get('link'), linkTo(`/app/api/call/${callId}/invite`))
  t.match((await carol.get(200, 'GET /api/call/pending')).items, [{ callId, isOnGoing: true }])
  t.match(await bob.get(202, `POST /api/call/${callId}/request-rejoin`), { asked: 1 })
  t.match(await bob.get(200, `POST /api/call/${callId}/rejoin`), { roomId: 815 })
  t.match(await ann.get(200, `POST /api/call/${callId}/end`), { status: 'ended' })
  await endStory(t, story)
})

t.test('a phone that may not call, or not like this, hears why', async t => {
  const story = house.chapter()
  const [ann, bob] = await friends(story)
  const eve = await Phone.unpack(story, 'eve')
  const callKey = new Uint8Array(randomBytes(32))
  const toBob = await ann.devicesOf(bob.userId)
  const encryptedAESKeys = await ann.sealed(callKey, toBob)
  const start = (phone: Phone, changes: object) =>
    phone.app.send('POST /app/api/call/start', {
      calleeIds: [bob.userId],
      encryptedAESKeys,
      isVideo: false,
      ...changes,
    })
  const outcomes = [
    await start(eve, {}),
    await start(ann, { calleeIds: [bob.userId, eve.userId] }),
    await start(ann, { encryptedAESKeys: {} }),
    await start(ann, { encryptedAESKeys: { [bob.self.name]: Buffer.from(callKey).toString('base64') } }),
  ]
  t.match(
    outcomes.map(({ status, body }) => ({ status, ...body })),
    [
      { status: 403, code: 'CALLEE_NOT_CONTACT', calleeIds: [bob.userId] },
      { status: 403, code: 'CALLEE_NOT_CONTACT', calleeIds: [eve.userId] },
      { status: 409, code: 'DEVICE_LIST_MISMATCH', missing: [bob.self.name], extra: [] },
      { status: 422, code: 'PLAINTEXT_KEY_SUSPECTED' },
    ],
  )
  const unbound = story.app()
  const login = await story.googleLogin('ann', { name: 'Ann' })
  unbound.take(await unbound.get(200, 'POST /app/api/login', login))
  const refused = { calleeIds: [bob.userId], encryptedAESKeys, isVideo: false }
  t.equal(await unbound.outcome('POST /app/api/call/start', refused), '403 DEVICE_REQUIRED')
  await endStory(t, story)
})
