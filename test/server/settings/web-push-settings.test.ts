/** Settings of push to browsers. */

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { generateVapidKey, vapidPublicKey } from '../../../src/delivery/vapid-key.ts'
import { EnvironmentReader } from '../../../src/server/settings/environment.ts'
import {
  readWebPushSettings,
  vapidContactOf,
  vapidKeyOf,
} from '../../../src/server/settings/web-push-settings.ts'

function read(environment: NodeJS.ProcessEnv) {
  const reader = new EnvironmentReader({ environment })
  return { config: readWebPushSettings(reader), problems: reader.problems }
}

t.test('without settings there is no key, and the push services of browsers are known', async t => {
  const { config, problems } = read({})
  t.same(problems, [])
  t.match(config, { vapidKey: undefined, vapidContact: undefined })
  t.ok(config.webPushHosts.includes('fcm.googleapis.com'))
  const { config: more } = read({ CALLSIGN_WEB_PUSH_HOSTS: 'push.example.org' })
  t.same(more.webPushHosts, [...config.webPushHosts, 'push.example.org'])
})

t.test('a key is one that keygen makes', async t => {
  for (const key of ['x', 'A'.repeat(43), '_'.repeat(43), `${generateVapidKey(randomBytes)}=`])
    t.same(read({ CALLSIGN_VAPID_KEY: key }).problems, ['CALLSIGN_VAPID_KEY is not a key that keygen makes'])
})

t.test('a contact is reached by mail or on a page', async t => {
  for (const good of ['mailto:push@example.org', 'https://example.org/push'])
    t.same(read({ CALLSIGN_VAPID_CONTACT: good }).problems, [])
  for (const bad of ['push@example.org', 'mailto:', 'http://example.org', 'https://localhost', 'tel:1'])
    t.equal(read({ CALLSIGN_VAPID_CONTACT: bad }).problems.length, 1, bad)
})

t.test('left out, the contact is the server’s address, if that leads to it', async t => {
  t.equal(vapidContactOf({}, 'https://call.example.org'), 'https://call.example.org')
  t.equal(vapidContactOf({ vapidContact: 'mailto:a@b.c' }, 'https://call.example.org'), 'mailto:a@b.c')
  for (const url of [undefined, 'http://127.0.0.1:8080', 'https://localhost:8080'])
    t.equal(vapidContactOf({}, url), 'mailto:nobody@example.org')
})

t.test(
  'a development server has a key of its own, which stays; production has the one in the settings',
  async t => {
    const [one, other] = [randomBytes(32), randomBytes(32)]
    const key = vapidKeyOf({}, true, one)
    t.ok(vapidPublicKey(key ?? ''))
    t.equal(vapidKeyOf({}, true, one), key)
    t.not(vapidKeyOf({}, true, other), key)
    t.equal(vapidKeyOf({}, false, one), undefined)
    t.equal(vapidKeyOf({ vapidKey: 'set' }, true, one), 'set')
  },
)

t.test('numbers that are no key are passed over', async t => {
  const zeroThenOne = [Buffer.alloc(32), Buffer.alloc(32, 1)]
  t.equal(
    generateVapidKey(() => zeroThenOne.shift()!),
    Buffer.alloc(32, 1).toString('base64url'),
  )
})
