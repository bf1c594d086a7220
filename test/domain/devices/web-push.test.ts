/** Which addresses a browser may name for its pushes. */

import t from 'tap'
import { isPushEndpoint, isWebPushHost, USUAL_WEB_PUSH_HOSTS } from '../../../src/domain/devices/web-push.ts'

t.test('push services of browsers are taken', async t => {
  for (const endpoint of [
    'https://fcm.googleapis.com/fcm/send/dQw4w9WgXcQ:APA91b',
    'https://updates.push.services.mozilla.com/wpush/v2/gAAAA-_',
    'https://web.push.apple.com/QGJ',
    'https://db5p.notify.windows.com/w/?token=BQY%2b',
    'https://fcm.googleapis.com:443/fcm/send/x',
  ])
    t.ok(isPushEndpoint(endpoint, USUAL_WEB_PUSH_HOSTS), endpoint)
})

t.test('whatever else an address may be is refused', async t => {
  for (const endpoint of [
    '',
    'https://example.org/push',
    'http://fcm.googleapis.com/x',
    'HTTPS://fcm.googleapis.com/x',
    'https://fcm.googleapis.com:8443/x',
    'https://user@fcm.googleapis.com/x',
    'https://user:word@fcm.googleapis.com/x',
    'https://fcm.googleapis.com@127.0.0.1/x',
    'https://127.0.0.1\\@fcm.googleapis.com/x',
    'https://fcm.googleapis.com\\.example.org/x',
    'https://127.0.0.1/x',
    'https://2130706433/x',
    'https://0x7f.1/x',
    'https://[::1]/x',
    'https://[::ffff:127.0.0.1]/x',
    'https://localhost/x',
    'https://fcm.googleapis.com./x',
    'https://fcm.googleapis.com.example.org/x',
    'https://evilfcm.googleapis.com/x',
    'https://push.apple.com/x',
    'https://evilpush.apple.com/x',
    'https://a.push.apple.com.example.org/x',
    'https://fcm.googleapis.com/x y',
    'https://fcm.googleapis.com/x\n',
    'https://fcm.googleapis.com/ü',
    ' https://fcm.googleapis.com/x',
    'https:fcm.googleapis.com/x',
    'https:///fcm.googleapis.com/x',
    'https://fcm。googleapis.com/x',
  ])
    t.notOk(isPushEndpoint(endpoint, USUAL_WEB_PUSH_HOSTS), JSON.stringify(endpoint))
})

t.test('a list of hosts has names', async t => {
  for (const host of [...USUAL_WEB_PUSH_HOSTS, 'push.example.org', '*.example.org', 'xn--p1ai.example.org'])
    t.ok(isWebPushHost(host), host)
  for (const host of [
    '',
    '*',
    '*.',
    'localhost',
    '127.0.0.1',
    '[::1]',
    '*.com.',
    'https://a.b',
    'a.b:443',
    'A.B',
    'a_b.c',
    '*.*.example.org',
    'a..b',
  ])
    t.notOk(isWebPushHost(host), host)
})
