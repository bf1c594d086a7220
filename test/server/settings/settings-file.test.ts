/** The settings file beside the environment, and guesses at misspelt names. */

import { randomBytes } from 'node:crypto'
import { chmodSync, copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { generateKeys } from '../../../src/log/keys.ts'
import { ConfigError, readConfig } from '../../../src/server/settings/config.ts'
import { guessOf } from '../../../src/server/settings/spelling.ts'
import { notesOf, warningsOf } from '../../../src/server/settings/warnings.ts'
import { tlsPath } from '../../support/tls.ts'

const keys = generateKeys('kt.example.org/log', randomBytes)
const PRODUCTION = {
  CALLSIGN_ORIGIN: keys.origin,
  CALLSIGN_PUBLIC_URL: 'https://kt.example.org',
  CALLSIGN_SECRET: keys.secret,
  KT_PRIVATE_KEY: keys.ktPrivateKey,
  VRF_PRIVATE_KEY: keys.vrfPrivateKey,
}

function fileOf(t: Test, content: string | object): string {
  const path = join(t.testdir(), 'settings')
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

function readWith(config: string, environment = {}) {
  return readConfig(environment, { dev: false, config })
}

function problemsOf(config: string, environment = {}): readonly string[] {
  try {
    readWith(config, environment)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

t.test('lines and JSON give the same settings', async t => {
  const lines = Object.entries({ ...PRODUCTION, CALLSIGN_HTTP_PORT: '80', CALLSIGN_LOG_FROZEN: '1' })
  const asLines = readWith(fileOf(t, lines.map(([name, value]) => `${name}=${value}\n`).join('')))
  const asJson = readWith(fileOf(t, { ...PRODUCTION, CALLSIGN_HTTP_PORT: 80, CALLSIGN_LOG_FROZEN: true }))
  t.equal(asLines.http.port, 80)
  t.same(asJson, asLines)
})

t.test('lists and objects of JSON are what texts would be', async t => {
  const provider = { name: 'acme', issuer: 'https://id.example.org', clientIds: ['app'] }
  const config = readWith(
    fileOf(t, {
      ...PRODUCTION,
      CALLSIGN_TRUSTED_PROXIES: ['127.0.0.1', '10.0.0.0/8'],
      CALLSIGN_OIDC_PROVIDERS: [provider],
      CALLSIGN_KT_REQUIRE_AUTH: false,
    }),
  )
  t.same(config.http.trustedProxies, ['127.0.0.1', '10.0.0.0/8'])
  t.match(config.application.providers, [provider])
  t.equal(config.application.lookupsNeedToken, false)
})

t.test('the environment wins over the file, a secret together with its _FILE', async t => {
  const folder = t.testdir({ secret: 'from-a-file\n' })
  const path = join(folder, 'settings')
  const settings = { ...PRODUCTION, CALLSIGN_HTTP_PORT: 80, CALLSIGN_GRPC_TOKEN: 'from-settings' }
  writeFileSync(path, JSON.stringify(settings))
  const config = readWith(path, {
    CALLSIGN_HTTP_PORT: '81',
    CALLSIGN_GRPC_TOKEN_FILE: join(folder, 'secret'),
  })
  t.equal(config.http.port, 81)
  t.equal(config.grpc.token, 'from-a-file')
  t.equal(readWith(path, { CALLSIGN_HTTP_PORT: '' }).http.port, 80, 'an empty variable is none')
})

t.test('a file that can’t be read, or is broken JSON, is a sentence without its text', async t => {
  t.match(problemsOf('/no/such/file'), [/^--config \/no\/such\/file can't be read \(ENOENT\)$/])
  const problems = problemsOf(fileOf(t, '{ "CALLSIGN_SECRET": "hush'))
  t.match(problems, [/^--config .* begins as JSON and is none$/])
  t.notMatch(problems.join('\n'), 'hush')
})

t.test('a name that is no setting is a fault in the file, whatever it begins with, with a guess', async t => {
  const path = fileOf(t, { ...PRODUCTION, CALLSIGN_HTTP_PROT: 80, KT_PRIVATKEY: 'x', NODE_OPTIONS: 'x' })
  t.same(problemsOf(path, { PATH: '/bin', CALLSIGN_SMPT_URL_FILE: 'x' }), [
    'CALLSIGN_SMPT_URL_FILE is not a setting of this version; did you mean CALLSIGN_SMTP_URL_FILE?',
    'CALLSIGN_HTTP_PROT is not a setting of this version; did you mean CALLSIGN_HTTP_PORT?',
    'KT_PRIVATKEY is not a setting of this version; did you mean KT_PRIVATE_KEY?',
    'NODE_OPTIONS is not a setting of this version',
  ])
})

t.test('a setting that does nothing without another is named from the file too', async t => {
  t.same(problemsOf(fileOf(t, { ...PRODUCTION, CALLSIGN_SMS_BODY: 'x' })), [
    'CALLSIGN_SMS_BODY needs CALLSIGN_SMS_URL',
  ])
})

t.test('keys that do not belong together are named beside every other fault', async t => {
  const problems = problemsOf(
    fileOf(t, {
      ...PRODUCTION,
      CALLSIGN_ORIGIN: 'other.example.org',
      VRF_PRIVATE_KEY: 'AAAA',
      CALLSIGN_HTTP_PORT: 'x',
    }),
  )
  t.equal(problems.length, 3)
  t.match(
    problems.join('\n'),
    /KT_PRIVATE_KEY is of kt\.example\.org\/log, CALLSIGN_ORIGIN is other\.example\.org/,
  )
  t.match(problems.join('\n'), /VRF_PRIVATE_KEY: /)
})

t.test(
  'production that nobody can sign in to warns, and any way in ends that; without proofs of a user it warns, too',
  async t => {
    const events = (environment: object) =>
      warningsOf(readConfig({ ...PRODUCTION, ...environment }, { dev: false })).map(({ event }) => event)
    t.same(events({ CALLSIGN_LOG_HEAD_FILE: '/head' }), ['nobody-can-sign-in'])
    const ways = [
      { CALLSIGN_SMTP_URL: 'smtp://localhost', CALLSIGN_MAIL_FROM: 'a@example.org' },
      { CALLSIGN_SMS_URL: 'https://sms.example.org' },
      { CALLSIGN_OIDC_PROVIDERS: '[{"name":"a","issuer":"https://a.example","clientIds":["b"]}]' },
      { CALLSIGN_TEST_IDENTIFIERS: '{"+15550100":"424242"}' },
    ]
    for (const way of ways) t.same(events(way), ['log-head-file-unset'], Object.keys(way)[0]!)
    t.same(warningsOf(readConfig({}, { dev: true })), [], 'development shows codes itself')
    const off = { ...ways[0], CALLSIGN_LOG_HEAD_FILE: '/head', CALLSIGN_AUTH_STEP_UP_SECONDS: '0' }
    t.same(events(off), ['step-up-off'])
  },
)

t.test('production without an index is noted; with one, or in development, nothing is', async t => {
  const events = (environment: object, dev = false) =>
    notesOf(readConfig({ ...PRODUCTION, ...environment }, { dev })).map(({ event }) => event)
  t.same(events({}), ['index-unset'])
  t.same(events({ KT_INDEX_PRIVATE_KEY: keys.ktIndexPrivateKey }), [])
  t.same(events({}, true), [])
})

t.test('a file of secrets that other users may read is named, and no other file', async t => {
  const folder = t.testdir({ key: PRODUCTION.KT_PRIVATE_KEY, config: '' })
  const [key, config] = [join(folder, 'key'), join(folder, 'config')]
  const tlsKey = join(folder, 'server.key')
  copyFileSync(tlsPath('server.key'), tlsKey)
  writeFileSync(config, `KT_PRIVATE_KEY_FILE=${key}\nCALLSIGN_SECRET=${PRODUCTION.CALLSIGN_SECRET}\n`)
  const environment: Record<string, string> = {
    ...PRODUCTION,
    CALLSIGN_TLS_CERT: tlsPath('server.crt'),
    CALLSIGN_TLS_KEY: tlsKey,
  }
  for (const name of ['KT_PRIVATE_KEY', 'CALLSIGN_SECRET']) delete environment[name]
  const open = (flags = {}) => {
    const warnings = warningsOf(readConfig(environment, { dev: false, config, ...flags }))
    return warnings.flatMap(({ event, advice }) => (event === 'secret-file-open' ? advice : []))
  }
  for (const path of [key, config, tlsKey]) chmodSync(path, 0o600)
  t.same(open(), [])
  for (const [name, path] of Object.entries({
    CALLSIGN_TLS_KEY: tlsKey,
    KT_PRIVATE_KEY_FILE: key,
    '--config': config,
  })) {
    for (const mode of ['604', '640', '602', '644']) {
      chmodSync(path, Number.parseInt(mode, 8))
      t.same(open(), [
        `${name}: other users of this machine may read the file that it names, mode ${mode}: make it 600`,
      ])
      t.same(open({ dev: true }).length, 1, 'in development, too')
    }
    chmodSync(path, 0o600)
  }
  writeFileSync(config, `KT_PRIVATE_KEY_FILE=${key}\n`)
  chmodSync(config, 0o644)
  environment.CALLSIGN_SECRET = PRODUCTION.CALLSIGN_SECRET
  t.same(open(), [], 'no secret is in it')
})

t.test('a guess needs most of the letters', async t => {
  const names = ['CALLSIGN_HTTP_PORT', 'CALLSIGN_GRPC_PORT']
  t.equal(guessOf('CALLSIGN_HTTPPORT', names), '; did you mean CALLSIGN_HTTP_PORT?')
  t.equal(guessOf('CALLSIGN_GRCP_PORT', names), '; did you mean CALLSIGN_GRPC_PORT?')
  t.equal(guessOf('CALLSIGN_SOMETHING_ELSE', names), '')
})

t.test('a guess names two where both are as near, and no more', async t => {
  const names = [
    'CALLSIGN_TLS_CERT',
    'CALLSIGN_APPLE_KEY',
    'CALLSIGN_TLS_KEY',
    'CALLSIGN_FCM_KEY',
    'CALLSIGN_TLA_KEY',
  ]
  t.equal(guessOf('CALLSIGN_TLX_KEY', names), '; did you mean CALLSIGN_TLS_KEY or CALLSIGN_TLA_KEY?')
  t.equal(
    guessOf('CALLSIGN_FMC_KEY', names),
    '; did you mean CALLSIGN_FCM_KEY?',
    'two letters swapped are one change',
  )
  t.equal(guessOf('CALLSIGN_TLS_KEYS', names), '; did you mean CALLSIGN_TLS_KEY?', 'one is nearer')
  t.equal(guessOf('aaaX', ['aaab', 'aaac', 'aaad']), '; did you mean aaab or aaac?')
})
