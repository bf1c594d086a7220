/** A user sends another phone's push token as their own (contract 2.5), through the built server. */

import t from 'tap'
import { endStory, pushOf, rehearse } from '../support/call-story.ts'
import { BUNDLE_ID, isAsDocumented, Phone } from '../support/stompjs-phone.ts'

t.test('a user whose phone lost its push token hears of it, and the next start brings it back', async t => {
  const story = await rehearse(t)
  const [phone, tablet] = [await Phone.unpack(story, 'ann'), await Phone.unpack(story, 'ann')]
  const eve = await Phone.unpack(story, 'eve')
  for (const each of [phone, tablet, eve]) await each.connect()
  const put = (by: Phone) =>
    by.get(204, 'PUT /app/api/devices/current/push', { apnsToken: phone.apnsToken, bundleId: BUNDLE_ID })
  await put(eve)
  const told = await tablet.next('device_push_lost')
  isAsDocumented(t, told)
  t.match(told.body, { deviceId: phone.deviceId, tokens: ['apnsToken'] })
  t.match((await phone.next('device_push_lost')).body, { eventId: told.body.eventId })
  const push = await pushOf(story, tablet, told.body.eventId)
  t.match(push, {
    token: tablet.apnsToken,
    headers: { 'apns-push-type': 'alert' },
    payload: {
      aps: { alert: { 'loc-key': 'device_push_lost' } },
      type: 'device_push_lost',
      deviceId: phone.deviceId,
    },
  })
  await put(phone)
  t.match((await eve.next('device_push_lost')).body, { deviceId: eve.deviceId, tokens: ['apnsToken'] })
  await endStory(t, story, phone, tablet, eve)
})
