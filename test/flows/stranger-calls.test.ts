/** Calls by strangers, and a blocked user's view of them (contract 2.5, 4.3), through the built server. */

import t from 'tap'
import { endStory, rehearse, startCall } from '../support/call-story.ts'
import { Phone } from '../support/stompjs-phone.ts'

t.test(
  'a stranger calls who lets them, until a block, which the stranger can not tell from silence',
  async t => {
    const story = await rehearse(t)
    const [eve, bob] = [await Phone.unpack(story, 'eve'), await Phone.unpack(story, 'bob')]
    for (const phone of [eve, bob]) await phone.connect()
    const keysOf = async () => {
      const { users } = await eve.get(200, `GET /app/api/user/publicKeys?userIds=${bob.userId}`)
      return users[0]?.devices
    }
    t.equal(await keysOf(), undefined)
    await bob.get(200, 'PUT /app/api/user', { settings: { callsFromContactsOnly: false } })
    const before = await keysOf()
    const answered = await startCall(eve, bob)
    const { body } = await bob.next('call_invitation')
    t.match(body, { callId: answered.callId, callerName: 'Eve', displayName: 'Eve', isContact: false })
    t.same(await bob.open(body.encryptedAESKey, eve.userId, eve.deviceId), answered.callKey)
    await bob.get(200, `POST /app/api/call/${answered.callId}/join`)
    await eve.get(200, 'POST /app/api/call/end', { callId: answered.callId })
    await bob.next('call_ended')

    await bob.get(204, 'POST /app/api/block', { userId: eve.userId })
    const tablet = await Phone.unpack(story, 'bob')
    t.same(await keysOf(), before, 'the tablet is none of her business')
    const { callId } = await startCall(eve, bob)
    const { participants } = await eve.get(200, `GET /app/api/call/${callId}/participants`)
    t.match(participants, [{ state: 'joined' }, { userId: bob.userId, state: 'invited' }])
    t.equal(await bob.app.outcome(`GET /app/api/call/${callId}`), '404 CALL_NOT_FOUND')
    t.same((await bob.get(200, 'GET /app/api/call/pending')).items, [])
    await eve.get(200, 'POST /app/api/call/end', { callId })
    t.match((await eve.get(200, 'GET /app/api/call/history')).items, [
      { callId },
      { callId: answered.callId },
    ])
    const { items } = await bob.get(200, 'GET /app/api/call/history')
    t.same(
      items.map((row: { callId: string }) => row.callId),
      [answered.callId],
    )
    await bob.settled()
    t.same(bob.untaken, [])
    await endStory(t, story, eve, bob, tablet)
  },
)
