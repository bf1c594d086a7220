/** The message to a person when a development server has started. */

import { stripVTControlCharacters } from 'node:util'
import t from 'tap'
import { type BannerFacts, formatBanner } from '../../src/operations/banner.ts'

const ALL = { mail: true, sms: true, apns: true, fcm: true, turn: true, media: 'janus' as const }
const FACTS: BannerFacts = {
  version: '1.2.3',
  http: 'http://127.0.0.1:8080',
  grpc: '127.0.0.1:50051',
  serverApi: 'http://127.0.0.1:9070',
  admin: 'http://127.0.0.1:9090',
  dataFolder: '/srv/dev',
  origin: 'localhost/callsign-dev',
  vkey: `localhost/callsign-dev+00000000+${'A'.repeat(44)}`,
  treeSize: 7,
  areKeysNew: false,
  isTerminal: false,
  features: ALL,
}

t.test('lists each address and its service', async t => {
  const banner = formatBanner(FACTS)
  const pages = ['/dev', '/dev/client', '/docs', '/checkpoint'].map(path => `${FACTS.http}${path} `)
  for (const text of [
    'Callsign 1.2.3',
    ...pages,
    FACTS.grpc,
    FACTS.admin,
    '/srv/dev',
    '7 entries',
    FACTS.vkey,
  ]) {
    t.ok(banner.includes(text), text)
  }
  t.notMatch(banner, '!', 'nothing to worry about')
})

t.test('ends with what to try first: two tabs of the client, or a command', async t => {
  const [, toTry] = formatBanner({ ...FACTS, areKeysNew: true }).split('  Try: ')
  t.match(toTry, `open ${FACTS.http}/dev/client in two browser tabs`)
  t.match(toTry, `curl ${FACTS.http}/app/api/login \\\n`)
  t.ok(toTry?.endsWith('\n\n'))
})

t.test('names the settings of each service that is missing, and of no other', async t => {
  const settings = {
    mail: 'CALLSIGN_SMTP_URL',
    sms: 'CALLSIGN_SMS_URL',
    apns: 'CALLSIGN_APNS_KEY',
    fcm: 'CALLSIGN_FCM_SERVICE_ACCOUNT',
    turn: 'CALLSIGN_TURN_URL',
    media: 'CALLSIGN_JANUS_',
  }
  t.notMatch(formatBanner(FACTS), /CALLSIGN_/)
  for (const [feature, setting] of Object.entries(settings)) {
    const banner = formatBanner({ ...FACTS, features: { ...ALL, [feature]: false } })
    t.same(banner.match(/CALLSIGN_\w+/g)?.[0], setting, feature)
    t.equal(banner.match(/^ {4}\S.*CALLSIGN_/gm)?.length, 1, feature)
  }
})

t.test('fits a usual terminal when everything is missing', async t => {
  const features = { mail: false, sms: false, apns: false, fcm: false, turn: false, media: false as const }
  const lines = formatBanner({ ...FACTS, features, areKeysNew: true }).split('\n')
  t.ok(lines.length <= 30, `${lines.length} lines`)
  t.same(
    lines.filter(line => line.length > 100),
    [],
  )
})

t.test('names the kind of the media gateway', async t => {
  const mediaUrl = 'wss://media.example.org'
  const lineWith = (media: 'janus' | 'livekit') => {
    const banner = formatBanner({ ...FACTS, mediaUrl, features: { ...ALL, media } })
    return banner.match(/^ {2}media .*$/m)?.[0]
  }
  t.match(lineWith('janus'), /wss:\/\/media\.example\.org +Janus, for encrypted group calls/)
  t.match(lineWith('livekit'), /wss:\/\/media\.example\.org +LiveKit, for encrypted group calls/)
})

t.test('warns of new keys', async t => {
  t.match(formatBanner({ ...FACTS, areKeysNew: true }), /! New development keys/)
})

t.test('says where phones find the server, as a QR code too, and what the network may see', async t => {
  const phones = 'http://192.168.1.20:8080'
  const plain = formatBanner({ ...FACTS, phones })
  t.match(plain, `On this network: ${phones}`)
  t.match(plain, /! Everybody on this network can use the API, the WebSocket, \/dev\/client and \/docs/)
  t.match(plain, `stay on this machine: ${FACTS.http}/dev`)
  t.notMatch(plain, '\x1b')
  const code = plain.split('\n').filter(line => /[█▀▄]/.test(line))
  t.equal(code.length, 15, 'half a character for each square')
  t.ok(
    code.every(line => line.length === 2 + 29),
    'all of it, and its margin',
  )
  const inColours = formatBanner({ ...FACTS, phones, isTerminal: true })
  t.equal(stripVTControlCharacters(inColours), plain)
  t.match(inColours, '\x1b[97;40m')
})
