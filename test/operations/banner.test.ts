/** What a person is told when a development server has started. */

import t from 'tap'
import { type BannerFacts, formatBanner } from '../../src/operations/banner.ts'

const ALL = { mail: true, sms: true, apns: true, fcm: true }
const FACTS: BannerFacts = {
  version: '1.2.3',
  http: 'http://127.0.0.1:8080',
  grpc: '127.0.0.1:50051',
  admin: 'http://127.0.0.1:9090',
  dataFolder: '/srv/dev',
  origin: 'localhost/callsign-dev',
  vkey: 'localhost/callsign-dev+00000000+AAAA',
  vrfPublicKey: 'AAAA',
  treeSize: 7,
  areKeysNew: false,
  isExposed: false,
  features: ALL,
}

t.test('says what runs where, and what to try first', async t => {
  const banner = formatBanner(FACTS)
  for (const text of ['Callsign 1.2.3', FACTS.http, FACTS.grpc, FACTS.admin, '/srv/dev', 'holds 7 entries']) {
    t.ok(banner.includes(text), text)
  }
  t.match(banner, `curl ${FACTS.http}/app/api/login -H 'content-type: application/json' -d '{"email":`)
  t.notMatch(banner, '!', 'nothing to worry about')
})

t.test('names the settings of each service that is missing, and of no other', async t => {
  const settings = {
    mail: 'CALLSIGN_SMTP_URL',
    sms: 'CALLSIGN_SMS_URL',
    apns: 'CALLSIGN_APNS_KEY',
    fcm: 'CALLSIGN_FCM_SERVICE_ACCOUNT',
  }
  t.notMatch(formatBanner(FACTS), /CALLSIGN_/)
  for (const [feature, setting] of Object.entries(settings)) {
    const banner = formatBanner({ ...FACTS, features: { ...ALL, [feature]: false } })
    t.same(banner.match(/CALLSIGN_\w+(?=,| )/)?.[0], setting, feature)
    t.equal(banner.match(/GET \/dev\//g)?.length, 1, feature)
  }
})

t.test('warns of new keys and of an open network', async t => {
  t.match(formatBanner({ ...FACTS, areKeysNew: true }), /! New development keys/)
  t.match(formatBanner({ ...FACTS, isExposed: true }), /! CALLSIGN_DEV_EXPOSE=1/)
})
