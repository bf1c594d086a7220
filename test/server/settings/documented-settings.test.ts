/**
 * The tables of docs/reference/settings.md, held against the server: the server takes every value that a row allows,
 * refuses any other by name, and uses the default where the setting is missing.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, hostname } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { generateVapidKey } from '../../../src/delivery/vapid-key.ts'
import { generateUserTokenKey } from '../../../src/domain/accounts/user-token.ts'
import { RATE_NAMES } from '../../../src/domain/rates.ts'
import { formatWitnessKey, witnessKeyFromSeed } from '../../../src/log/cosignature.ts'
import { generateIndexKey, generateKeys } from '../../../src/log/keys.ts'
import { type Config, ConfigError, listSettings, readConfig } from '../../../src/server/settings/config.ts'
import { PROJECT_ROOT } from '../../support/vectors.ts'
import { WEBHOOK_SECRET } from '../../support/webhooks.ts'

type Environment = Readonly<Record<string, string>>

interface Row {
  readonly name: string
  readonly takes: string
  readonly usual: string
  readonly isSecret: boolean
}

/** Texts that a setting takes and texts that it refuses. */
interface Values {
  readonly good: readonly string[]
  readonly bad: readonly string[]
}

const DOCUMENT = readFileSync(join(PROJECT_ROOT, 'docs/reference/settings.md'), 'utf8')
/** One of two gateways that send events. */
const gatewayOf = (name: string) => ({
  name,
  adminUrl: `http://${name}.example.org:7088/admin`,
  adminSecret: 'a secret',
  adminKey: 'a key',
  tokenSecret: 'another secret',
  clientUrl: `wss://${name}.example.org`,
  eventsPassword: `the password of ${name}`,
})
const gateways = JSON.stringify({ gateways: [gatewayOf('one'), gatewayOf('two')] })
const folder = t.testdir({ policy: '', gateways })
const [, settingLines = '', rateLines = ''] =
  /^```text\nNAME .*\n([\s\S]*?)\n\nRATE .*\n([\s\S]*?)\n```$/m.exec(DOCUMENT) ?? []
const RATES = cellsOf(rateLines)
const ROWS = cellsOf(settingLines).map(([marked = '', takes = '', usual = '']): Row => {
  const name = marked.replace('[_FILE]', '')
  return { name, takes, usual, isSecret: name !== marked }
})

function cellsOf(lines: string): readonly (readonly string[])[] {
  return lines.split('\n').map(line => line.split(/ {2,}/))
}

const tlsFile = (name: string) => join(PROJECT_ROOT, 'test/support/tls', name)
const log = generateKeys('kt.example.org/log', randomBytes)
const p8 = pemOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)
const rsa = readFileSync(tlsFile('rsa.key'), 'utf8')

const witness = formatWitnessKey(witnessKeyFromSeed('witness.example', randomBytes(32)))
const policy = `log ${log.ktPublicKey}\nlog ${log.ktIndexPublicKey}\nwitness one ${witness} https://witness.example\nquorum one\n`
writeFileSync(join(folder, 'policy'), policy)

function pemOf(key: ReturnType<typeof generateKeyPairSync>['privateKey']): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString().trim()
}

/** A good value of each setting whose row has no example of one. */
const EXAMPLES: Environment = {
  CALLSIGN_HTTP_HOST: 'localhost',
  CALLSIGN_GRPC_HOST: 'localhost',
  CALLSIGN_ADMIN_HOST: 'localhost',
  CALLSIGN_SERVER_API_HOST: 'localhost',
  CALLSIGN_DATA_DIR: '/srv/callsign/data',
  CALLSIGN_TLS_CERT: tlsFile('server.crt'),
  CALLSIGN_TLS_KEY: tlsFile('server.key'),
  CALLSIGN_GRPC_TOKEN: 'a token',
  CALLSIGN_GRPC_TLS_CERT: tlsFile('server.crt'),
  CALLSIGN_GRPC_TLS_KEY: tlsFile('server.key'),
  CALLSIGN_GRPC_TLS_CLIENT_CA: tlsFile('ca.crt'),
  CALLSIGN_GRPC_TLS_CLIENT_PINS: randomBytes(32).toString('base64'),
  CALLSIGN_NODE_HOST: 'localhost',
  CALLSIGN_NODE_TLS_CERT: tlsFile('server.crt'),
  CALLSIGN_NODE_TLS_KEY: tlsFile('server.key'),
  CALLSIGN_NODE_TLS_CA: tlsFile('ca.crt'),
  CALLSIGN_LOG_HEAD_FILE: '/srv/callsign/head',
  CALLSIGN_ORIGIN: log.origin,
  KT_PRIVATE_KEY: log.ktPrivateKey,
  KT_SECOND_PRIVATE_KEY: generateKeys(log.origin, length => randomBytes(length)).ktPrivateKey,
  KT_INDEX_PRIVATE_KEY: log.ktIndexPrivateKey,
  KT_INDEX_SECOND_PRIVATE_KEY: generateIndexKey(log.origin, randomBytes).ktIndexPrivateKey,
  VRF_PRIVATE_KEY: log.vrfPrivateKey,
  CALLSIGN_SECRET: log.secret,
  CALLSIGN_WITNESS_POLICY: join(folder, 'policy'),
  KT_PUBLIC_KEY: 'x',
  VRF_PUBLIC_KEY: 'y',
  KT_INDEX_PUBLIC_KEY: 'z',
  CALLSIGN_SMS_RETRIEVER_HASH: 'FA+9qCX9VSu',
  CALLSIGN_TEST_IDENTIFIERS: '{"+15550100":"424242"}',
  CALLSIGN_APP_NAME: 'Example',
  CALLSIGN_SMTP_CA: tlsFile('ca.crt'),
  CALLSIGN_SMS_HEADERS: '{"authorization":"Bearer x"}',
  CALLSIGN_SMS_BODY: '{"a":"{to} {text}"}',
  CALLSIGN_APNS_KEY: p8,
  CALLSIGN_APNS_KEY_ID: 'ABCDE12345',
  CALLSIGN_APNS_TEAM_ID: 'ABCDE12345',
  CALLSIGN_APNS_HOST: 'localhost',
  CALLSIGN_APNS_CA: tlsFile('ca.crt'),
  CALLSIGN_FCM_SERVICE_ACCOUNT: JSON.stringify({ client_email: 'a@b', private_key: rsa, project_id: 'p' }),
  CALLSIGN_VAPID_KEY: generateVapidKey(randomBytes),
  CALLSIGN_TOKEN_KEY: generateUserTokenKey(randomBytes),
  CALLSIGN_SMS_COUNTRIES: 'VN',
  CALLSIGN_WEBHOOK_URL: 'https://app.example.org/hooks',
  CALLSIGN_WEBHOOK_SECRET: WEBHOOK_SECRET,
  CALLSIGN_LOGIN_CHECK_URL: 'https://check.example.org/sms',
  CALLSIGN_LOGIN_CHECK_CA: tlsFile('ca.crt'),
  CALLSIGN_LOGIN_CHECK_TOKEN: 'token-of-the-check',
  CALLSIGN_TURN_SECRETS: 'today,yesterday',
  CALLSIGN_JANUS_ADMIN_SECRET: 'a secret',
  CALLSIGN_JANUS_ADMIN_KEY: 'a key',
  CALLSIGN_JANUS_TOKEN_SECRET: 'another secret',
  CALLSIGN_JANUS_EVENTS_HOST: 'localhost',
  CALLSIGN_JANUS_EVENTS_USER: 'gateway',
  CALLSIGN_JANUS_EVENTS_PASSWORD: 'a password',
  CALLSIGN_JANUS_FILE: join(folder, 'gateways'),
  CALLSIGN_LIVEKIT_API_KEY: 'a key',
  CALLSIGN_LIVEKIT_API_SECRET: 'a secret of 32 characters and mor',
  CALLSIGN_OIDC_PROVIDERS: '[{"name":"acme","issuer":"https://id.example.org","clientIds":["app"]}]',
  CALLSIGN_APPLE_CLIENT_IDS: 'com.example.app',
  CALLSIGN_APPLE_TEAM_ID: 'ABCDE12345',
  CALLSIGN_APPLE_KEY_ID: 'ABCDE12345',
  CALLSIGN_APPLE_PRIVATE_KEY: p8,
  CALLSIGN_DEEP_LINK_SCHEME: 'myapp',
  CALLSIGN_ANDROID_APPS: `com.example.app=${Array(32).fill('AB').join(':')}`,
  CALLSIGN_PASSKEY_ORIGINS: `https://app.example.org,android:apk-key-hash:${'A'.repeat(43)}`,
  CALLSIGN_NATIVE_HASHES: randomBytes(32).toString('hex'),
}

/** What rows say of a setting that takes any text. */
const ANY_TEXT = new Set([
  'text',
  'address or name',
  'path of a folder',
  'path of a file',
  'bundle ids; by commas',
  'texts by commas; the first signs',
  'key from keygen; the server ignores it',
])
const DEVELOPMENT_ONLY = ', in development only'
const BY_COMMAS = '; by commas'

function valuesOf(row: Row): Values {
  const takes = row.takes.replace(DEVELOPMENT_ONLY, '')
  const [, min, max] = /^(\d+) to (\d+)/.exec(takes) ?? []
  if (min !== undefined && max !== undefined) {
    return { good: [min, max], bad: [`${Number(min) - 1}`, `${Number(max) + 1}`] }
  }
  if (row.usual === 'not set') return { good: [takes], bad: ['0', 'on', 'true'] }
  const choices = takes.split(' | ')
  if (choices.length > 1) return { good: choices, bad: ['x', ...choices.map(each => each.toUpperCase())] }
  if (takes === 'http or https address') {
    return { good: ['https://example.org/a', 'http://[::1]:8080'], bad: ['ftp://example.org', 'example.org'] }
  }
  const [, example] = /such as (.+?)(?:, without .*|; by commas)?$/.exec(takes) ?? []
  const good = EXAMPLES[row.name] ?? example
  if (good === undefined) throw new Error(`${row.name} has no example of what it takes`)
  if (ANY_TEXT.has(takes)) return { good: [good], bad: [] }
  if (!takes.endsWith(BY_COMMAS)) return { good: [good], bad: ['?'] }
  return {
    good: [good, ` ${good} , ${good},`],
    bad: ['?', `${good},?`, ...(takes.startsWith('one or two ') ? ['a,b,c'] : [])],
  }
}

function environmentOf(rows: readonly Row[]): Environment {
  return Object.fromEntries(rows.map(row => [row.name, numberIn(row.usual) ?? valuesOf(row).good[0]!]))
}

/** The number that a default begins with; an address is none. */
function numberIn(usual: string): string | undefined {
  return /^\d+(?=$|, )/.exec(usual)?.[0]
}

/** Settings that exclude each other: a server has one kind or the other. */
const ALTERNATIVES: readonly { readonly these: RegExp; readonly others: RegExp }[] = [
  { these: /^CALLSIGN_JANUS_FILE$/, others: /^CALLSIGN_JANUS_(?!FILE|EVENTS_HOST|EVENTS_PORT)/ },
  { these: /^CALLSIGN_LIVEKIT_/, others: /^CALLSIGN_JANUS_/ },
]
const alternativeOf = ({ name }: Row) => ALTERNATIVES.find(({ these }) => these.test(name))
const USUAL_ROWS = ROWS.filter(row => alternativeOf(row) === undefined)

/** Servers with every setting of their mode, but for alternatives. */
const PRODUCTION = environmentOf(USUAL_ROWS.filter(row => !isForDevelopment(row)))
const DEVELOPMENT = { ...environmentOf(USUAL_ROWS), CALLSIGN_HTTP_HOST: '10.0.0.7' }

/** The server that the setting is tried in. */
function baseFor(row: Row): Environment {
  const alternative = alternativeOf(row)
  if (alternative === undefined) return isForDevelopment(row) ? DEVELOPMENT : PRODUCTION
  const { these, others } = alternative
  const kept = Object.entries(PRODUCTION).filter(([name]) => !others.test(name))
  return { ...Object.fromEntries(kept), ...environmentOf(ROWS.filter(({ name }) => these.test(name))) }
}

function isForDevelopment({ takes }: Row): boolean {
  return takes.endsWith(DEVELOPMENT_ONLY)
}

/** What `readWith` gave: to read a whole server takes 10 ms of keys and certificates. */
const outcomes = new Map<string, Config | readonly string[]>()

/** The configuration or its faults, with this value for one setting of a whole server; undefined: missing. */
function readWith(row: Row, value: string | undefined): Config | readonly string[] {
  const asked = JSON.stringify([row.name, value])
  const isDevelopment = isForDevelopment(row)
  const outcome = outcomes.get(asked) ?? readAll({ ...baseFor(row), [row.name]: value }, isDevelopment)
  outcomes.set(asked, outcome)
  return outcome
}

function readAll(environment: NodeJS.ProcessEnv, isDevelopment = false): Config | readonly string[] {
  try {
    return readConfig(environment, { dev: isDevelopment })
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

/** The sentences that refuse a value; none: it is taken. */
function problemsWith(row: Row, value: string): readonly string[] {
  return problemsOf(readWith(row, value))
}

function problemsOf(outcome: Config | readonly string[]): readonly string[] {
  return Array.isArray(outcome) ? outcome : []
}

t.test('the tables have every setting and every rate', async t => {
  t.same(ROWS, listSettings())
  t.same(
    RATES.map(([name]) => name),
    RATE_NAMES,
  )
})

t.test('every setting takes what its row says, and does something', async t => {
  for (const row of ROWS) {
    const { good } = valuesOf(row)
    for (const value of good) t.same(problemsWith(row, value), [], `${row.name}=${value}`)
    const missing = readWith(row, undefined)
    t.ok(
      good.some(value => !isDeepStrictEqual(readWith(row, value), missing)),
      `${row.name} changes nothing`,
    )
    t.same(readWith(row, ''), missing, `${row.name} that is empty is missing`)
  }
})

t.test('every setting refuses the rest, in sentences that name it', async t => {
  for (const row of ROWS) {
    for (const value of valuesOf(row).bad) {
      const [problem = 'taken'] = problemsWith(row, value)
      t.ok(problem.includes(row.name), `${row.name}=${value}: ${problem}`)
    }
  }
})

t.test('the sentence about a number or a choice lists the allowed values', async t => {
  for (const row of ROWS) {
    const takes = row.takes.replace(DEVELOPMENT_ONLY, '')
    const [, min, max] = /^(\d+) to (\d+)/.exec(takes) ?? []
    const says = (allowed: string) => t.equal(problemsWith(row, 'x')[0], `${row.name} is ${allowed}, not "x"`)
    if (min !== undefined) says(`a number from ${min} to ${max}`)
    else if (takes.includes(' | ')) says(`one of ${takes.replaceAll(' | ', ', ')}`)
    else if (row.usual === 'not set') says(`${takes} or not set`)
  }
})

/** Defaults that a row says in words, as the setting would be written. */
const IN_WORDS: Environment = {
  'from CALLSIGN_LIVEKIT_URL': 'https://livekit.example.org',
  "the machine's name": hostname(),
  'one less than cores': String(Math.max(1, availableParallelism() - 1)),
  'one less than cores, at most 8': String(Math.min(8, availableParallelism() - 1)),
  'the usual counts': JSON.stringify(
    Object.fromEntries(RATES.map(([name, , usual]) => [name, Number(usual)])),
  ),
}
/** Missing settings leave something out; whose address it is then, tests of push and of Sign in with Apple know. */
const NO_VALUE = new Set(['none', 'not set', 'Google’s', 'Apple’s', 'the public address'])

t.test('a setting that is missing has its default', async t => {
  for (const row of ROWS.filter(({ usual }) => !NO_VALUE.has(usual))) {
    const [first = '', inDevelopment] = row.usual.split(', in development ')
    const value = numberIn(first) ?? IN_WORDS[first] ?? first
    t.same(readWith(row, undefined), readWith(row, value), row.name)
    if (inDevelopment === undefined) continue
    const development = (environment: Environment) => readAll(environment, true)
    t.same(development({}), development({ [row.name]: inDevelopment }), row.name)
  }
})

t.test('every secret, and nothing else, can come from a file, without its last line end', async t => {
  const folder = t.testdir({ secret: 'x' })
  const path = join(folder, 'secret')
  chmodSync(path, 0o600)
  for (const row of ROWS) {
    const { name, isSecret } = row
    const whole = isForDevelopment(row) ? PRODUCTION : baseFor(row)
    const { [name]: value = '', ...others } = whole
    const fileName = `${name}_FILE`
    if (!isSecret) {
      const [problem] = problemsOf(readAll({ [fileName]: path }, true))
      if (name.startsWith('CALLSIGN_')) t.match(problem, `${fileName} is not a setting`)
      continue
    }
    for (const lineEnd of ['', '\n', '\r\n']) {
      writeFileSync(path, `${value}${lineEnd}`)
      t.same(readAll({ ...others, [fileName]: path }), readAll(whole), fileName)
    }
    const both = `${name} and ${fileName} are both set: keep one`
    t.same(readAll({ ...whole, [fileName]: path }), [both])
    for (const [missing, reason] of [
      [join(folder, 'none'), 'ENOENT'],
      [folder, 'EISDIR'],
    ] as const) {
      t.match(readAll({ [fileName]: missing }, true), [
        `${fileName}: can't read the file that it names (${reason})`,
      ])
    }
  }
})

t.test('a secret in the wrong setting is not shown', async t => {
  // A host and the head file are shown as they are, for an operator to recognise.
  const rows = ROWS.filter(({ takes }) => takes !== 'address or name' && takes !== 'path of a file')
  const names = [...rows.map(({ name }) => name), ...ROWS.map(({ name }) => `${name}_FILE`), 'CALLSIGN_TYPO']
  for (const secret of [log.secret, log.ktPrivateKey, randomBytes(32).toString('hex')]) {
    const shown = names.filter(name => JSON.stringify(readAll({ [name]: secret })).includes(secret))
    t.same(shown, [])
  }
})

t.test('every rate can be as low and as high as its row says, and not beyond', async t => {
  const rates = ROWS.find(({ name }) => name === 'CALLSIGN_RATES')!
  for (const [name = '', takes = '', usual] of RATES) {
    const [, min, max, seconds] = /^(\d+) to (\d+) in (\d+) seconds$/.exec(takes)?.map(Number) ?? []
    const problems = (count: number) =>
      problemsOf(readAll({ [rates.name]: JSON.stringify({ [name]: count }) }, true))
    t.same([problems(min!), problems(max!)], [[], []], name)
    const refusal = `CALLSIGN_RATES: ${name} is a number from ${min} to ${max}, no rate can be switched off`
    t.same([problems(min! - 1), problems(max! + 1)], [[refusal], [refusal]])
    const { rateLimits } = readConfig({}, { dev: true })
    t.match(rateLimits, { [name]: { count: Number(usual), perMs: seconds! * 1_000 } })
  }
})

/** Rows of the table of meanings: names, and the defaults that they have in this order, each once. */
const MEANINGS = [...DOCUMENT.matchAll(/^\| (`[A-Z].*?) \| (.*?) \| .* \|$/gm)].map(
  ([, names = '', usual = '']) => ({
    names: names.replaceAll('`', '').split(', '),
    usual: usual.replaceAll('`', ''),
  }),
)

t.test('the table of meanings has every setting, with its default', async t => {
  t.same(MEANINGS.flatMap(({ names }) => names).sort(), ROWS.map(({ name }) => name).sort())
  for (const { names, usual } of MEANINGS) {
    const defaults = names.map(name => ROWS.find(row => row.name === name)?.usual)
    t.equal(usual, [...new Set(defaults)].join('; '), names.join(', '))
  }
})
