/** The list of media gateways: each fault is named by its gateway and member, and no value is shown. */

import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { refusalOfMedia } from '../../../src/media/current-media.ts'
import { type Config, ConfigError, readConfig } from '../../../src/server/settings/config.ts'

const SECRET = 'not-to-be-shown'

function entry(name: string, more: object = {}) {
  return {
    name,
    adminUrl: `http://${name}.example.org:7088/admin/`,
    adminSecret: SECRET,
    adminKey: SECRET,
    tokenSecret: SECRET,
    clientUrl: `wss://${name}.example.org`,
    eventsPassword: `${SECRET} of ${name}`,
    ...more,
  }
}

const EVENTS = { CALLSIGN_JANUS_EVENTS_PORT: '8089' }

function read(content: unknown, environment: object = EVENTS): Config | readonly string[] {
  const path = join(t.testdirName, 'gateways.json')
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  chmodSync(path, 0o600)
  try {
    return readConfig({ CALLSIGN_JANUS_FILE: path, ...environment }, { dev: true })
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

t.testdir()

function problems(gateways: readonly unknown[], environment?: object): readonly string[] {
  const outcome = read({ gateways }, environment)
  return Array.isArray(outcome) ? outcome : []
}

t.test('gateways with and without optional members', t => {
  const config = read({ gateways: [entry('a', { weight: 100, drain: true }), entry('b-2')] })
  t.match(config, {
    application: {
      media: {
        kind: 'janus',
        events: { host: '127.0.0.1', port: 8089 },
        gateways: [
          {
            name: 'a',
            weight: 100,
            isDraining: true,
            adminUrl: 'http://a.example.org:7088/admin',
            eventsLogin: { user: 'a', password: `${SECRET} of a` },
          },
          { name: 'b-2', weight: 1, isDraining: false },
        ],
      },
    },
    openFiles: [],
  })
  t.same(problems([entry('a', { eventsPassword: undefined })], {}), [])
  t.same(problems(Array.from({ length: 64 }, (_, at) => entry(`g${at}`))), [])
  t.end()
})

t.test('each wrong member is named', t => {
  for (const [more, problem] of [
    [{ name: undefined }, 'gateway 1: name is 1 to 32 of a-z, 0-9 and -'],
    [{ name: 'A' }, 'gateway 1: name is 1 to 32 of a-z, 0-9 and -'],
    [{ name: 'x'.repeat(33) }, 'gateway 1: name is 1 to 32 of a-z, 0-9 and -'],
    [{ adminUrl: 'ftp://a' }, '"a": adminUrl is an http or https address'],
    [{ clientUrl: 'https://a' }, '"a": clientUrl is a ws or wss address that devices reach'],
    [{ adminSecret: '' }, '"a": adminSecret is a text of 1 to 1024 characters'],
    [{ adminKey: 7 }, '"a": adminKey is a text of 1 to 1024 characters'],
    [{ tokenSecret: 'x'.repeat(1_025) }, '"a": tokenSecret is a text of 1 to 1024 characters'],
    [{ eventsPassword: null }, '"a": eventsPassword is a text of 1 to 1024 characters'],
    [{ weight: 0 }, '"a": weight is a whole number from 1 to 100'],
    [{ weight: 1.5 }, '"a": weight is a whole number from 1 to 100'],
    [{ weight: '1' }, '"a": weight is a whole number from 1 to 100'],
    [{ drain: 'yes' }, '"a": drain is true or false'],
    [{ drains: true }, '"a": "drains": no such member'],
    [
      { constructor: 1, [`${'5'.repeat(64)}`]: 1 },
      '"a": "constructor", a text of 64 characters: no such member',
    ],
    [{ eventsPassword: undefined }, '"a": eventsPassword and CALLSIGN_JANUS_EVENTS_PORT are set together'],
  ] as const)
    t.same(problems([entry('a', more), entry('b')]), [`CALLSIGN_JANUS_FILE: ${problem}`])
  t.same(problems([entry('a')], {}), [
    'CALLSIGN_JANUS_FILE: "a": eventsPassword and CALLSIGN_JANUS_EVENTS_PORT are set together',
  ])
  t.end()
})

t.test('gateways differ in what tells them apart', t => {
  for (const [member, more] of [
    ['adminUrl', { adminUrl: 'http://A.example.org:7088/admin' }],
    ['clientUrl', { clientUrl: 'wss://a.example.org/' }],
    ['eventsPassword', { eventsPassword: `${SECRET} of a` }],
  ] as const)
    t.same(problems([entry('a'), entry('b', more), entry('c')]), [
      `CALLSIGN_JANUS_FILE: "a", "b" have the same ${member}`,
    ])
  t.match(problems([entry('a'), entry('a')])[0], '"a", "a" have the same name')
  t.end()
})

t.test('anything but a list of 1 to 64 gateways', t => {
  const form = 'CALLSIGN_JANUS_FILE: is a JSON object with the one member "gateways", a list'
  for (const content of [`{"gateways":["${SECRET}"`, ''])
    t.same(read(content), ['CALLSIGN_JANUS_FILE: is not valid JSON'])
  for (const content of [[], null, {}, { gateways: {} }, { gateways: [], more: 1 }])
    t.same(read(content), [form])
  t.match(problems([]), ['CALLSIGN_JANUS_FILE: has 1 to 64 gateways, not 0'])
  const many = Array.from({ length: 65 }, (_, at) => entry(`g${at}`))
  t.match(problems(many), ['CALLSIGN_JANUS_FILE: has 1 to 64 gateways, not 65'])
  for (const each of [7, null, 'a', []])
    t.same(problems([each, entry('b')]), ['CALLSIGN_JANUS_FILE: gateway 1: is an object'])
  t.end()
})

t.test('no secret is shown', t => {
  const broken = {
    adminUrl: SECRET,
    clientUrl: SECRET,
    name: SECRET.repeat(3),
    weight: SECRET,
    [SECRET]: SECRET,
  }
  const shown = [...problems([entry('a', broken), SECRET]), ...(read(`{"${SECRET}`) as string[])]
  t.ok(shown.length > 5)
  t.notMatch(shown.join(), SECRET)
  t.end()
})

t.test('one gateway by variables, or several by the file', t => {
  const one = {
    CALLSIGN_JANUS_ADMIN_URL: 'http://127.0.0.1:7088/admin',
    CALLSIGN_JANUS_ADMIN_SECRET: SECRET,
    CALLSIGN_JANUS_ADMIN_KEY: SECRET,
    CALLSIGN_JANUS_TOKEN_SECRET: SECRET,
    CALLSIGN_JANUS_CLIENT_URL: 'ws://127.0.0.1:8188',
  }
  t.match(problems([entry('a')], { ...EVENTS, ...one }), [
    /^CALLSIGN_JANUS_FILE has all of the gateways: leave /,
  ])
  t.match(problems([entry('a')], { ...EVENTS, CALLSIGN_JANUS_EVENTS_PASSWORD: SECRET }), [
    /^CALLSIGN_JANUS_FILE has all of the gateways: leave /,
  ])
  t.end()
})

t.test('a running server takes another list, and neither another kind nor another place of events', t => {
  const mediaOf = (environment: object) =>
    (
      read(
        { gateways: [entry('a', environment === EVENTS ? {} : { eventsPassword: undefined })] },
        environment,
      ) as Config
    ).application.media
  const present = mediaOf(EVENTS)
  t.equal(refusalOfMedia(present, mediaOf(EVENTS)), undefined)
  t.match(refusalOfMedia(present, undefined), 'another kind of media gateway, or none, needs a restart')
  t.match(refusalOfMedia(undefined, present), 'another kind of media gateway, or none, needs a restart')
  t.match(refusalOfMedia(present, mediaOf({})), /CALLSIGN_JANUS_EVENTS_PORT need a restart$/)
  t.equal(refusalOfMedia(undefined, undefined), undefined)
  t.end()
})
