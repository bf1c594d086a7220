/**
 * What the tables of settings can't say: where each goes, forms, settings that belong together, unsafe ones. Defaults,
 * bounds and files of secrets are checked row by row in documented-settings.test.ts.
 */
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { USUAL_RATES } from '../../../src/domain/rates.ts'
import { generateIndexKey, generateKeys } from '../../../src/log/keys.ts'
import { formatSignerKey, parseSignerKey, signerKeyFromSeed } from '../../../src/log/note.ts'
import { type Config, ConfigError, isLoopback, readConfig } from '../../../src/server/settings/config.ts'
import { PROJECT_ROOT } from '../../support/vectors.ts'

type Environment = Readonly<Record<string, string>>

const { origin, ktPrivateKey, vrfPrivateKey, secret } = generateKeys('kt.example.org/log', randomBytes)

/** The least that production starts with. */
const PRODUCTION: Environment = {
  CALLSIGN_ORIGIN: origin,
  CALLSIGN_PUBLIC_URL: 'https://kt.example.org',
  CALLSIGN_SECRET: secret,
  KT_PRIVATE_KEY: ktPrivateKey,
  VRF_PRIVATE_KEY: vrfPrivateKey,
}

function development(environment: Environment = {}): Config {
  return readConfig(environment, { dev: true })
}

function production(environment: Environment = {}): Config {
  return readConfig({ ...PRODUCTION, ...environment }, { dev: false })
}

/** What is wrong with an environment; empty when it is usable. */
function problemsOf(read: () => Config): readonly string[] {
  try {
    read()
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  return []
}

/** What the HTTP port believes and lets in from elsewhere, unless it is told. */
const OPEN_TO_NOBODY = { trustedProxies: [], corsOrigins: [], minClientVersions: [] }

t.test('nothing is open or on that is not asked for', async t => {
  for (const { http, grpc, stompTcpPort, log, application, nativeBinaries, rateLimits } of [
    development(),
    production(),
  ]) {
    t.match(http, OPEN_TO_NOBODY)
    t.same([http.tls, grpc.tls, grpc.token, stompTcpPort], Array(4).fill(undefined))
    const { mail, sms, apns, fcm, turn, apple, providers, testIdentifiers } = application
    t.same([mail, sms, apns, fcm, turn, apple], Array(6).fill(undefined))
    t.same([providers, testIdentifiers, nativeBinaries], [[], new Map(), []])
    t.same([log.isFrozen, log.headFile, rateLimits], [false, undefined, USUAL_RATES])
  }
})

t.test(
  'production needs keys, an origin, a secret and a public address; development none of them',
  async t => {
    t.match(development(), { isDevelopment: true, isExposed: false, log: { publicKeys: {} } })
    t.equal(development().log.keys, undefined)
    t.match(production(), {
      isDevelopment: false,
      publicUrl: 'https://kt.example.org',
      log: { keys: { origin, ktPrivateKey, vrfPrivateKey, secret } },
    })
    for (const name of Object.keys(PRODUCTION)) {
      const problems = problemsOf(() => production({ [name]: '' }))
      t.equal(problems.length, 1, name)
      t.match(problems[0], `${name} is missing`)
    }
  },
)

t.test('the flag or the variable makes it development', async t => {
  const isDevelopment = (dev: boolean, CALLSIGN_MODE: string) =>
    readConfig({ ...PRODUCTION, CALLSIGN_MODE }, { dev }).isDevelopment
  t.same(
    [
      isDevelopment(false, ''),
      isDevelopment(true, ''),
      isDevelopment(false, 'development'),
      isDevelopment(false, 'production'),
    ],
    [false, true, true, false],
  )
})

t.test('each setting goes where it belongs', async t => {
  const cases: [Environment, (config: Config) => unknown, unknown][] = [
    [{ CALLSIGN_DATA_DIR: 'somewhere/else' }, config => config.dataFolder, resolve('somewhere/else')],
    [{ CALLSIGN_DATA_DIR: '/srv/callsign' }, config => config.dataFolder, '/srv/callsign'],
    [
      { CALLSIGN_HTTP_HOST: '::1', CALLSIGN_HTTP_PORT: '1' },
      config => config.http,
      { host: '::1', port: 1, ...OPEN_TO_NOBODY },
    ],
    [
      { CALLSIGN_GRPC_HOST: 'localhost', CALLSIGN_GRPC_PORT: '2' },
      config => config.grpc,
      { host: 'localhost', port: 2 },
    ],
    [
      { CALLSIGN_ADMIN_HOST: '127.9.9.9', CALLSIGN_ADMIN_PORT: '0' },
      config => config.admin,
      { host: '127.9.9.9', port: 0 },
    ],
    [
      { CALLSIGN_SERVER_API_HOST: '127.9.9.9', CALLSIGN_SERVER_API_PORT: '0', CALLSIGN_SERVER_API: 'public' },
      config => config.serverApi,
      { host: '127.9.9.9', port: 0, isPublic: true },
    ],
    [
      { CALLSIGN_PUBLIC_URL: 'https://kt.example.org/app//' },
      config => config.publicUrl,
      'https://kt.example.org/app',
    ],
    [{ CALLSIGN_PUBLIC_URL: 'http://[::1]:8080' }, config => config.publicUrl, 'http://[::1]:8080'],
    [{ CALLSIGN_GRPC_TOKEN: 'a token' }, config => config.grpc.token, 'a token'],
    [{}, config => config.fronts, 0],
    [{ CALLSIGN_FRONTS: '1' }, config => config.fronts, 1],
    [{ CALLSIGN_FRONTS: '64' }, config => config.fronts, 64],
    [{ CALLSIGN_LOG_FROZEN: '1' }, config => config.log.isFrozen, true],
    [{ CALLSIGN_VRF_THREADS: '64' }, config => config.log.vrfThreads, 64],
    [{ CALLSIGN_VRF_CACHE_ENTRIES: '10000000' }, config => config.log.vrfCacheEntriesMax, 10_000_000],
    [{ CALLSIGN_RATE_LIMITS: 'off' }, config => config.rateLimits, undefined],
    [
      { CALLSIGN_RATES: '{"call-start":40,"request":600}' },
      ({ rateLimits }) => [rateLimits?.['call-start'], rateLimits?.request, rateLimits?.lookup],
      [
        { count: 40, perMs: 600_000, burst: 40 },
        { count: 600, perMs: 60_000, burst: 200 },
        USUAL_RATES.lookup,
      ],
    ],
    [{ CALLSIGN_DEV_EXPOSE: '1' }, config => config.http.host, '0.0.0.0'],
    [{ CALLSIGN_DEV_EXPOSE: '1', CALLSIGN_HTTP_HOST: '::' }, config => config.http.host, '::'],
    [{ CALLSIGN_LOG_LEVEL: 'fatal' }, config => config.logLevel, 'fatal'],
  ]
  for (const [environment, pick, expected] of cases)
    t.same(pick(development(environment)), expected, JSON.stringify(environment))
})

t.test('numbers are written as numbers', async t => {
  for (const text of ['1.5', '1e3', '0x10', ' 1', '1 ', '+1', '-1', 'x', '１', '9'.repeat(20), '80,81']) {
    t.same(
      problemsOf(() => development({ CALLSIGN_VRF_THREADS: text })),
      [`CALLSIGN_VRF_THREADS is a number from 1 to 64, not ${JSON.stringify(text)}`],
    )
  }
})

/** A relay as an operator sets it. */
const TURN: Environment = {
  CALLSIGN_TURN_SECRETS: 'today , yesterday,',
  CALLSIGN_TURN_URL: 'turn:turn.example.org:3478?transport=udp',
  CALLSIGN_TURN_TLS_URL: 'turns:turn.example.org:5349',
}

t.test('a relay has secrets (the first signs), two addresses and a time', async t => {
  const { turn } = development(TURN).application
  t.match(turn, {
    secrets: ['today', 'yesterday'],
    addresses: {
      noneTlsUrl: 'turn:turn.example.org:3478?transport=udp',
      tlsUrl: 'turns:turn.example.org:5349?transport=tcp',
    },
    lifetimeS: 43_200,
  })
  const path = join(t.testdir({ secrets: 'from-a-file\n' }), 'secrets')
  const { CALLSIGN_TURN_SECRETS: _, ...addresses } = TURN
  const fromFile = { ...addresses, CALLSIGN_TURN_SECRETS_FILE: path, CALLSIGN_TURN_TTL_SECONDS: '60' }
  t.match(development(fromFile).application.turn, { secrets: ['from-a-file'], lifetimeS: 60 })
})

t.test('a relay is set whole or not at all', async t => {
  const sentence = 'CALLSIGN_TURN_SECRETS, CALLSIGN_TURN_TLS_URL and CALLSIGN_TURN_URL are set together'
  for (const name of Object.keys(TURN)) {
    t.same(
      problemsOf(() => development({ ...TURN, [name]: '' })),
      [sentence],
      name,
    )
  }
})

t.test('a bad secret or address of a relay is refused and not shown', async t => {
  const tls = 'CALLSIGN_TURN_TLS_URL is an address of RFC 7065 such as turns:turn.example.org:5349'
  const plain = 'CALLSIGN_TURN_URL is an address of RFC 7065 such as turn:turn.example.org:3478'
  const sentences: [Environment, string][] = [
    [{ CALLSIGN_TURN_SECRETS: ' , ' }, 'CALLSIGN_TURN_SECRETS is a list of secrets, the current one first'],
    [{ CALLSIGN_TURN_TLS_URL: 'turn:turn.example.org' }, tls],
    [{ CALLSIGN_TURN_TLS_URL: 'https://turn.example.org' }, tls],
    [{ CALLSIGN_TURN_URL: 'turns:turn.example.org' }, plain],
    [{ CALLSIGN_TURN_URL: 'turn.example.org:3478' }, plain],
  ]
  for (const [environment, sentence] of sentences) {
    t.same(
      problemsOf(() => development({ ...TURN, ...environment })),
      [sentence],
    )
  }
})

t.test('a text of another form is refused with its form', async t => {
  const sentences: [Environment, string][] = [
    [
      { CALLSIGN_PUBLIC_URL: 'kt.example.org' },
      'CALLSIGN_PUBLIC_URL is an http or https address, not "kt.example.org"',
    ],
    ...['https://kt.example.org/?a=b', 'https://kt.example.org/#top'].map((text): [Environment, string] => [
      { CALLSIGN_PUBLIC_URL: text },
      'CALLSIGN_PUBLIC_URL has no query and no fragment: paths are put behind it',
    ]),
    [
      { CALLSIGN_DEEP_LINK_SCHEME: 'myapp://' },
      'CALLSIGN_DEEP_LINK_SCHEME is the name of a scheme such as callsign, without ://, not "myapp://"',
    ],
    [
      { CALLSIGN_DEEP_LINK_SCHEME: '1app' },
      'CALLSIGN_DEEP_LINK_SCHEME is the name of a scheme such as callsign, without ://, not "1app"',
    ],
    [
      { CALLSIGN_SMS_RETRIEVER_HASH: 'FA+9qCX9VS' },
      'CALLSIGN_SMS_RETRIEVER_HASH is the 11 characters (base64) that Android finds the app by, not "FA+9qCX9VS"',
    ],
    [
      { CALLSIGN_APNS_BUNDLE_ID: 'com.example/app' },
      'CALLSIGN_APNS_BUNDLE_ID is a bundle id, such as com.example.app, not "com.example/app"',
    ],
    [
      { CALLSIGN_SMS_URL: 'ftp://user:password@sms.example.org' },
      'CALLSIGN_SMS_URL is an https or http address',
    ],
    [
      { CALLSIGN_SMS_URL: 'http://sms.example.org/' },
      'CALLSIGN_SMS_URL is an https address, or an http address of this machine or a private network',
    ],
  ]
  for (const [environment, sentence] of sentences)
    t.same(
      problemsOf(() => development(environment)),
      [sentence],
    )
})

t.test('an unknown rate or a bad count is refused', async t => {
  const refused: readonly (readonly [string, string])[] = [
    ['off', 'CALLSIGN_RATES is a JSON object of rates and their counts such as {"call-start":40}'],
    ['[40]', 'CALLSIGN_RATES is a JSON object of rates and their counts such as {"call-start":40}'],
    ['{"search":"9"}', 'CALLSIGN_RATES: search is a number from 1 to 1000, no rate can be switched off'],
    ['{"call-strat":9}', 'CALLSIGN_RATES: "call-strat" is no rate; did you mean call-start?'],
    ['{"__proto__":9}', 'CALLSIGN_RATES: "__proto__" is no rate'],
  ]
  for (const [text, problem] of refused) {
    t.same(
      problemsOf(() => production({ CALLSIGN_RATES: text })),
      [problem],
      text,
    )
  }
})

t.test('a variable that no setting has is refused by its name', async t => {
  const problems = problemsOf(() =>
    development({
      CALLSIGN_HTTP_PROT: '1',
      CALLSIGN_: 'x',
      HTTP_PORT: '2',
      MY_CALLSIGN_X: '3',
      callsign_x: '4',
    }),
  )
  t.same(problems, [
    'CALLSIGN_HTTP_PROT is not a setting of this version; did you mean CALLSIGN_HTTP_PORT?',
    'CALLSIGN_ is not a setting of this version',
  ])
})

t.test('public keys may stand beside the private ones', async t => {
  const { log } = production({ KT_PUBLIC_KEY: 'x', VRF_PUBLIC_KEY: 'y', KT_INDEX_PUBLIC_KEY: 'z' })
  t.same(log.publicKeys, { ktPublicKey: 'x', vrfPublicKey: 'y', ktIndexPublicKey: 'z' })
})

t.test('the index has keys of its own, of its own name', async t => {
  const [KT_INDEX_PRIVATE_KEY, KT_INDEX_SECOND_PRIVATE_KEY] = [0, 1].map(
    () => generateIndexKey(origin, randomBytes).ktIndexPrivateKey,
  ) as [string, string]
  const problemsWith = (environment: Environment) => problemsOf(() => production(environment))
  t.equal(production().log.keys?.ktIndexPrivateKey, undefined)
  t.match(production({ KT_INDEX_PRIVATE_KEY, KT_INDEX_SECOND_PRIVATE_KEY }).log, {
    keys: { ktIndexPrivateKey: KT_INDEX_PRIVATE_KEY, secondKtIndexPrivateKey: KT_INDEX_SECOND_PRIVATE_KEY },
    indexSeconds: 10,
  })
  t.same(problemsWith({ KT_INDEX_PRIVATE_KEY: ktPrivateKey }), [
    `KT_INDEX_PRIVATE_KEY is of ${origin}, not of ${origin}/index: \`node dist/scripts/keygen.js --index --origin ${origin}\` makes one`,
    'KT_INDEX_PRIVATE_KEY is a key of the log under another name: the index needs a key of its own',
  ])
  const { seed } = parseSignerKey(ktPrivateKey)
  t.same(
    problemsWith({ KT_INDEX_PRIVATE_KEY: formatSignerKey(signerKeyFromSeed(`${origin}/index`, seed)) }),
    ['KT_INDEX_PRIVATE_KEY is a key of the log under another name: the index needs a key of its own'],
  )
  t.same(problemsWith({ KT_INDEX_SECOND_PRIVATE_KEY }), [
    'KT_INDEX_SECOND_PRIVATE_KEY goes with KT_INDEX_PRIVATE_KEY, which is missing',
  ])
  t.same(problemsWith({ KT_INDEX_PRIVATE_KEY, KT_INDEX_SECOND_PRIVATE_KEY: KT_INDEX_PRIVATE_KEY }), [
    'KT_INDEX_SECOND_PRIVATE_KEY is the same key as KT_INDEX_PRIVATE_KEY: leave it out',
  ])
  t.match(problemsWith({ KT_INDEX_PRIVATE_KEY: 'x' }), [/^KT_INDEX_PRIVATE_KEY: /])
  const long = 'x'.repeat(250)
  const named = (name: string) => formatSignerKey(signerKeyFromSeed(name, randomBytes(32)))
  t.same(
    problemsWith({
      CALLSIGN_ORIGIN: long,
      KT_PRIVATE_KEY: named(long),
      KT_INDEX_PRIVATE_KEY: named(`${long}/index`),
    }),
    [
      'CALLSIGN_ORIGIN leaves no room for the name of the index: checkpoint origin has 256 bytes, not 1 to 255',
    ],
  )
})

t.test('development takes all keys or none', async t => {
  t.match(development(PRODUCTION).log.keys, { origin, secret })
  const problems = problemsOf(() => development({ CALLSIGN_ORIGIN: origin }))
  t.same(
    problems.map(problem => problem.split(' ')[0]),
    ['KT_PRIVATE_KEY', 'VRF_PRIVATE_KEY', 'CALLSIGN_SECRET'],
  )
  t.ok(problems.every(problem => problem.includes('keygen.js --origin')))
})

t.test('the secret has 32 bytes', async t => {
  const secretOf = (bytes: number) => randomBytes(bytes).toString('base64')
  t.same(
    problemsOf(() => production({ CALLSIGN_SECRET: secretOf(31) })),
    ['CALLSIGN_SECRET is base64 of at least 32 bytes'],
  )
  t.same(
    problemsOf(() => production({ CALLSIGN_SECRET: secretOf(32) })),
    [],
  )
})

function tlsFile(name: string): string {
  return join(PROJECT_ROOT, 'test/support/tls', name)
}

/** gRPC with a certificate. */
const GRPC_TLS: Environment = {
  CALLSIGN_GRPC_TLS_CERT: tlsFile('server.crt'),
  CALLSIGN_GRPC_TLS_KEY: tlsFile('server.key'),
}

t.test('TLS for gRPC is whole or not there', async t => {
  const CALLSIGN_GRPC_TLS_CERT = tlsFile('server.crt')
  const CALLSIGN_GRPC_TLS_KEY = tlsFile('server.key')
  const CALLSIGN_GRPC_TLS_CLIENT_CA = tlsFile('ca.crt')
  const pins = ['a', 'b'].map(text => createHash('sha256').update(text).digest('base64'))
  const CALLSIGN_GRPC_TLS_CLIENT_PINS = ` ${pins.join(' , ')}\n`
  const certificate = readFileSync(CALLSIGN_GRPC_TLS_CERT)
  const key = readFileSync(CALLSIGN_GRPC_TLS_KEY)
  const clientAuthority = readFileSync(CALLSIGN_GRPC_TLS_CLIENT_CA)
  t.same(development({ CALLSIGN_GRPC_TLS_CERT, CALLSIGN_GRPC_TLS_KEY }).grpc.tls, {
    certificate,
    key,
    clientPins: [],
  })
  t.same(
    development({
      CALLSIGN_GRPC_TLS_CERT,
      CALLSIGN_GRPC_TLS_KEY,
      CALLSIGN_GRPC_TLS_CLIENT_CA,
      CALLSIGN_GRPC_TLS_CLIENT_PINS,
    }).grpc.tls,
    { certificate, key, clientAuthority, clientPins: pins },
  )
  const together = 'CALLSIGN_GRPC_TLS_CERT and CALLSIGN_GRPC_TLS_KEY are set together or not at all'
  t.same(
    problemsOf(() => development({ CALLSIGN_GRPC_TLS_CERT })),
    [together],
  )
  t.same(
    problemsOf(() => development({ CALLSIGN_GRPC_TLS_KEY })),
    [together],
  )
  t.same(
    problemsOf(() => development({ CALLSIGN_GRPC_TLS_CLIENT_CA })),
    ['CALLSIGN_GRPC_TLS_CLIENT_CA needs CALLSIGN_GRPC_TLS_CERT and CALLSIGN_GRPC_TLS_KEY'],
  )
  t.same(
    problemsOf(() =>
      development({ CALLSIGN_GRPC_TLS_CERT, CALLSIGN_GRPC_TLS_KEY, CALLSIGN_GRPC_TLS_CLIENT_PINS }),
    ),
    ['CALLSIGN_GRPC_TLS_CLIENT_PINS needs CALLSIGN_GRPC_TLS_CLIENT_CA'],
  )
})

t.test('a certificate of gRPC has its own key, and clients have an authority and whole pins', async t => {
  const folder = t.testdir({ empty: '' })
  const CALLSIGN_GRPC_TLS_CLIENT_CA = tlsFile('ca.crt')
  const mismatch = 'CALLSIGN_GRPC_TLS_CERT and CALLSIGN_GRPC_TLS_KEY are not a certificate and its key (PEM)'
  const noCertificate = 'CALLSIGN_GRPC_TLS_CLIENT_CA names a file without a certificate (PEM)'
  const form = 'a list of SHA-256 hashes of client keys in base64, as `callsign pin` prints them'
  const cases: [Environment, string[]][] = [
    [{ CALLSIGN_GRPC_TLS_KEY: tlsFile('other.key') }, [mismatch]],
    [{ CALLSIGN_GRPC_TLS_CERT: join(folder, 'empty') }, [mismatch]],
    [{ CALLSIGN_GRPC_TLS_CLIENT_CA: join(folder, 'empty') }, [noCertificate]],
    [{ CALLSIGN_GRPC_TLS_CLIENT_CA: tlsFile('server.key') }, [noCertificate]],
    [
      { CALLSIGN_GRPC_TLS_CLIENT_CA, CALLSIGN_GRPC_TLS_CLIENT_PINS: 'abc, def' },
      ['abc', 'def'].map(pin => `CALLSIGN_GRPC_TLS_CLIENT_PINS is ${form}, not "${pin}"`),
    ],
    [
      { CALLSIGN_GRPC_TLS_CLIENT_CA, CALLSIGN_GRPC_TLS_CLIENT_PINS: ' , ' },
      ['CALLSIGN_GRPC_TLS_CLIENT_PINS holds no pin'],
    ],
  ]
  for (const [environment, sentences] of cases)
    t.same(
      problemsOf(() => development({ ...GRPC_TLS, ...environment })),
      sentences,
    )
})

t.test('TLS for HTTP is a certificate with its key, or not there', async t => {
  const file = tlsFile
  const [CALLSIGN_TLS_CERT, CALLSIGN_TLS_KEY] = [file('server.crt'), file('server.key')]
  t.same(development({ CALLSIGN_TLS_CERT, CALLSIGN_TLS_KEY }).http.tls, {
    certificateFile: CALLSIGN_TLS_CERT,
    keyFile: CALLSIGN_TLS_KEY,
  })
  const together = 'CALLSIGN_TLS_CERT and CALLSIGN_TLS_KEY are set together or not at all'
  const mismatch = 'CALLSIGN_TLS_CERT and CALLSIGN_TLS_KEY are not a certificate and its key (PEM)'
  const cases: [Environment, string][] = [
    [{ CALLSIGN_TLS_CERT }, together],
    [{ CALLSIGN_TLS_KEY }, together],
    [{ CALLSIGN_TLS_CERT, CALLSIGN_TLS_KEY: file('other.key') }, mismatch],
    [{ CALLSIGN_TLS_CERT: CALLSIGN_TLS_KEY, CALLSIGN_TLS_KEY: CALLSIGN_TLS_CERT }, mismatch],
    [
      { CALLSIGN_TLS_CERT, CALLSIGN_TLS_KEY: file('none') },
      "CALLSIGN_TLS_KEY: can't read the file that it names (ENOENT)",
    ],
  ]
  for (const [environment, sentence] of cases)
    t.same(
      problemsOf(() => development(environment)),
      [sentence],
    )
})

t.test('keys of identity providers come by https, or from this machine', async t => {
  const provider = (issuer: string, more = {}) => ({ name: 'acme', issuer, clientIds: ['app'], ...more })
  const told = (environment: Environment) => problemsOf(() => development(environment))
  const refused = (address: string) => [
    `${address}: keys of an identity provider come by https, or whoever is on the way signs in as anybody`,
  ]
  const providers = (...list: object[]) => ({ CALLSIGN_OIDC_PROVIDERS: JSON.stringify(list) })
  for (const issuer of [
    'https://id.example.org',
    'http://127.0.0.1:9000',
    'http://[::1]:9000',
    'http://localhost',
    'accounts.google.com',
    'https://login.microsoftonline.com/{tenantid}/v2.0',
  ])
    t.equal(development(providers(provider(issuer))).application.providers[0]?.issuer, issuer)
  t.same(told(providers(provider('http://id.example.org'))), refused('http://id.example.org'))
  const jwksUri = 'http://10.0.0.1/keys'
  t.same(told(providers(provider('https://id.example.org', { jwksUri }))), refused(jwksUri))
  const apple = {
    CALLSIGN_APPLE_CLIENT_IDS: 'com.example.app',
    CALLSIGN_APPLE_TOKEN_URL: 'http://proxy.example',
  }
  t.same(told(apple), refused('http://proxy.example'))
  const [problem, ...more] = told({ ...apple, CALLSIGN_APPLE_TOKEN_URL: 'proxy' })
  t.match([problem, more], [/^CALLSIGN_APPLE_TOKEN_URL is an http or https address/, []])
})

t.test('an issuer is an address, or a template with the tenant in its path', async t => {
  for (const issuer of [
    'accounts.example.org',
    'https://{tenantid}.example.org/v2.0',
    'https://id.example.org/{tenant}/v2.0',
    'https://id.example.org/x{tenantid}/v2.0',
    'https://id.example.org/{tenantid}/{tenantid}',
    'https://id.example.org/?t={tenantid}',
    'https://{tenantid}@id.example.org/',
  ]) {
    const list = JSON.stringify([{ name: 'acme', issuer, clientIds: ['app'] }])
    t.match(
      problemsOf(() => development({ CALLSIGN_OIDC_PROVIDERS: list })),
      [/^CALLSIGN_OIDC_PROVIDERS is a JSON list/],
      issuer,
    )
  }
})

t.test('no two identity providers have one name', async t => {
  const provider = { name: 'acme', issuer: 'https://id.example.org', clientIds: ['app'] }
  const list = JSON.stringify([provider, { ...provider, issuer: 'https://id.example.com' }])
  t.match(
    problemsOf(() => development({ CALLSIGN_OIDC_PROVIDERS: list })),
    [/^CALLSIGN_OIDC_PROVIDERS is a JSON list .* with a name for each$/],
  )
})

t.test('lists have commas, and each item its form', async t => {
  const lists: [name: string, pick: (config: Config) => readonly string[], good: string[], bad: string[]][] =
    [
      [
        'CALLSIGN_TRUSTED_PROXIES',
        config => config.http.trustedProxies,
        ['192.0.2.1', '10.0.0.0/8', '0.0.0.0/0', '::1', 'fd00::/8', '2001:db8::/128'],
        [
          '10.0.0.0/33',
          '10.0.0/8',
          '::/129',
          'fe80::1%eth0',
          'proxy',
          '10.0.0.0/8/8',
          '10.0.0.0/-1',
          '10.0.0.0/',
        ],
      ],
      [
        'CALLSIGN_NATIVE_HASHES',
        config => config.nativeBinaries,
        ['0'.repeat(64), 'f4fa5d7b6975'.padEnd(64, 'a')],
        ['sha256', 'F4FA', '0x00'],
      ],
      [
        'CALLSIGN_CORS_ORIGINS',
        config => config.http.corsOrigins,
        ['https://app.example.org', 'http://localhost:5173', 'http://[::1]:8080', 'capacitor://localhost'],
        [
          '*',
          'null',
          'https://app.example.org/',
          'https://App.example.org',
          'https://x:443',
          'x.org',
          'https://*.x?',
        ],
      ],
      [
        'CALLSIGN_MIN_CLIENT_VERSION',
        config => config.http.minClientVersions,
        ['ios/1.4.0', 'android/2.0.0', 'web-beta/0.0.1'],
        ['ios', 'ios/1.4', 'iOS/1.4.0', 'ios/1.4.0-beta', '1.4.0', 'ios/1.4.0 (7)'],
      ],
      [
        'CALLSIGN_SMS_COUNTRIES',
        config => [...config.application.smsCountries],
        ['VN', 'DE', '+870', '+882', '*'],
        ['XX', 'vn', '84', '+84', '+979', '**'],
      ],
      [
        'CALLSIGN_BLOCKED_COUNTRIES',
        config => [...config.application.blockedCountries],
        ['KP', 'CU'],
        ['XX', 'UK', 'kp', 'KOR', '+53'],
      ],
    ]
  for (const [name, pick, good, bad] of lists) {
    t.same(pick(development({ [name]: ` ${good.join(' , ')},` })), good, name)
    const taken = bad.filter(item => problemsOf(() => development({ [name]: item })).length !== 1)
    t.same(taken, [], name)
    const [problem] = problemsOf(() => development({ [name]: `${good[0]},${bad[0]}` }))
    t.match(problem, new RegExp(`^${name} is a list of .*, not "`))
  }
})

t.test('a login check is at an https address, or on this machine or a private network', async t => {
  const check = (url: string, more: Environment = {}) =>
    development({ CALLSIGN_LOGIN_CHECK_URL: url, ...more })
  const good = [
    'https://check.example.org/sms?x=1',
    'http://127.0.0.1:9000/',
    'http://localhost',
    'http://[::1]:80/x',
    'http://10.0.0.7/',
    'http://checks:8080/',
  ]
  for (const url of good)
    t.same(check(url, { CALLSIGN_LOGIN_CHECK_TOKEN: 'x' }).application.loginCheck, { url, token: 'x' })
  t.equal(development({}).application.loginCheck, undefined)
  const bad = [
    'check.example.org',
    'http://check.example.org/',
    'http://localhost.example.org/',
    'http://127.0.0.1.example.org/',
    'ftp://127.0.0.1/',
    'http://169.254.169.254/',
    'https://user:password@check.example.org/',
    'https://',
  ]
  const form = 'an https address, or an http address of this machine or a private network, without a password'
  for (const url of bad) {
    const [problem, ...others] = problemsOf(() => check(url))
    t.match(problem, `CALLSIGN_LOGIN_CHECK_URL is ${form}, not `, url)
    t.same(others, [])
  }
  t.same(
    problemsOf(() => development({ CALLSIGN_LOGIN_CHECK_TOKEN: 'x' })),
    ['CALLSIGN_LOGIN_CHECK_TOKEN needs CALLSIGN_LOGIN_CHECK_URL'],
  )
  t.match(
    problemsOf(() => check(good[0]!, { CALLSIGN_LOGIN_CHECK_TOKEN: 'two words' })),
    [/^CALLSIGN_LOGIN_CHECK_TOKEN has /],
  )
})

t.test('two servers on one port are refused, by the names of both', async t => {
  const both = (one: string, other: string, port = 7_000) => [
    `CALLSIGN_${one}_PORT and CALLSIGN_${other}_PORT are both ${port}: each needs a port of its own`,
  ]
  const same = (...names: string[]) =>
    Object.fromEntries(names.map(name => [`CALLSIGN_${name}_PORT`, '7000']))
  const cases: [Environment, string[]][] = [
    [same('HTTP', 'STOMP_TCP'), both('HTTP', 'STOMP_TCP')],
    [same('GRPC', 'ADMIN'), both('GRPC', 'ADMIN')],
    [{ CALLSIGN_ADMIN_PORT: '8080' }, both('HTTP', 'ADMIN', 8_080)],
    [{ ...same('HTTP', 'ADMIN'), CALLSIGN_DEV_EXPOSE: '1' }, both('HTTP', 'ADMIN')],
    [{ ...same('HTTP', 'ADMIN'), CALLSIGN_ADMIN_HOST: 'localhost' }, both('HTTP', 'ADMIN')],
    [{ ...same('HTTP', 'ADMIN'), CALLSIGN_ADMIN_HOST: '127.0.0.2' }, []],
    [{ CALLSIGN_HTTP_PORT: '0', CALLSIGN_ADMIN_PORT: '0', CALLSIGN_STOMP_TCP_PORT: '0' }, []],
  ]
  for (const [environment, sentences] of cases)
    t.same(
      problemsOf(() => development(environment)),
      sentences,
    )
})

t.test('a password for the mail server is refused where the URL forgoes TLS on the way', t => {
  const problems = (url: string) =>
    problemsOf(() =>
      production({ CALLSIGN_SMTP_URL: url, CALLSIGN_MAIL_FROM: 'Callsign <no-reply@example.org>' }),
    )
  for (const query of ['ignoreTLS=true', 'opportunisticTLS=true', 'requireTLS=false']) {
    t.match(problems(`smtp://u:secret@mail.example.org?${query}`), [/allowPlain=true/], query)
    t.same(problems(`smtp://u:secret@mail.example.org?${query}&allowPlain=true`), [])
    t.same(problems(`smtp://u:secret@127.0.0.1?${query}`), [])
    t.same(problems(`smtp://mail.example.org?${query}`), [], 'no password')
    t.same(problems(`smtps://u:secret@mail.example.org?${query}`), [])
  }
  for (const host of ['localhost.example.org', '127.example.org', '127.0.0.1.example.org'])
    t.match(problems(`smtp://u:secret@${host}?ignoreTLS=true`), [/allowPlain=true/], host)
  t.same(problems('smtp://u:secret@mail.example.org'), [])
  t.match(problems('smtp:u:secret@mail.example.org'), [/is an address such as/], 'the library would add //')
  t.end()
})

t.test('a setting that does nothing without another is refused without it', async t => {
  const needed = {
    CALLSIGN_SMTP_URL: { CALLSIGN_SMTP_CA: tlsFile('ca.crt') },
    CALLSIGN_SMS_URL: { CALLSIGN_SMS_HEADERS: '{}', CALLSIGN_SMS_BODY: '{"a":"{to} {text}"}' },
    CALLSIGN_APNS_KEY: {
      CALLSIGN_APNS_HOST: 'localhost',
      CALLSIGN_APNS_PORT: '2197',
      CALLSIGN_APNS_CA: tlsFile('ca.crt'),
    },
    CALLSIGN_FCM_SERVICE_ACCOUNT: { CALLSIGN_FCM_URL: 'http://localhost' },
  }
  for (const [main, settings] of Object.entries(needed)) {
    t.same(
      problemsOf(() => development(settings)),
      Object.keys(settings).map(name => `${name} needs ${main}`),
    )
  }
  const { CALLSIGN_SMS_URL: more } = needed
  t.match(development({ ...more, CALLSIGN_SMS_URL: 'https://sms.example.org' }).application.sms, {
    body: '{"a":"{to} {text}"}',
  })
})

t.test('loopback is what no other machine reaches', async t => {
  t.ok(['127.0.0.1', '127.255.255.254', 'localhost', '::1'].every(isLoopback))
  const others = [
    '0.0.0.0',
    '::',
    '192.168.1.2',
    '10.0.0.1',
    '128.0.0.1',
    'localhost.example.org',
    '127.0.0.1.example.org',
    '127.1',
    '',
    '::ffff:127.0.0.1',
    'example.org',
  ]
  t.notOk(others.some(isLoopback))
})

t.test('gRPC beyond loopback wants a token or client certificates, in any mode', async t => {
  const exposed = { CALLSIGN_GRPC_HOST: '0.0.0.0' }
  const sentence =
    'CALLSIGN_GRPC_HOST 0.0.0.0 is not loopback: set CALLSIGN_GRPC_TOKEN or CALLSIGN_GRPC_TLS_CLIENT_CA'
  t.same(
    problemsOf(() => production(exposed)),
    [sentence],
  )
  t.same(
    problemsOf(() => production({ ...exposed, ...GRPC_TLS })),
    [sentence],
    'a server certificate shows nobody in',
  )
  t.same(
    problemsOf(() => development({ ...exposed, CALLSIGN_DEV_EXPOSE: '1' })),
    [sentence],
  )
  t.same(
    problemsOf(() => production({ ...exposed, CALLSIGN_GRPC_TOKEN: 'x' })),
    [],
  )
  t.same(
    problemsOf(() => production({ ...exposed, ...GRPC_TLS, CALLSIGN_GRPC_TLS_CLIENT_CA: tlsFile('ca.crt') })),
    [],
  )
})

t.test('development stays on loopback unless it is told to show itself', async t => {
  for (const listener of ['HTTP', 'GRPC', 'ADMIN']) {
    const exposed = { [`CALLSIGN_${listener}_HOST`]: '192.168.1.2', CALLSIGN_GRPC_TOKEN: 'x' }
    t.same(
      problemsOf(() => development(exposed)),
      [
        `CALLSIGN_${listener}_HOST 192.168.1.2: development stays on loopback, unless --lan or CALLSIGN_DEV_EXPOSE=1`,
      ],
    )
    t.same(
      problemsOf(() => development({ ...exposed, CALLSIGN_DEV_EXPOSE: '1' })),
      [],
    )
    t.same(
      problemsOf(() => production(exposed)),
      [],
    )
  }
  t.equal(
    development({ CALLSIGN_DEV_EXPOSE: '1' }).admin.host,
    '127.0.0.1',
    'only HTTP goes with it by itself',
  )
})

t.test('with --lan phones find the server at the address of this machine', async t => {
  const lanAddress = '192.168.1.20'
  const lan = (environment: Environment, flags = {}) =>
    readConfig(environment, { dev: true, lan: true, lanAddress, ...flags })
  t.match(lan({}), { isExposed: true, lanAddress, http: { host: lanAddress }, admin: { host: '127.0.0.1' } })
  t.equal(lan({ CALLSIGN_HTTP_HOST: '10.0.0.7' }).http.host, '10.0.0.7', 'another of its addresses')
  t.match(lan({ CALLSIGN_HTTP_HOST: '0.0.0.0' }), { lanAddress, http: { host: '0.0.0.0' } }, 'or all of them')
  const exposed = { CALLSIGN_DEV_EXPOSE: '1' }
  t.same(lan(exposed, { lan: false }), lan({}), 'the setting says the same')
  t.match(readConfig({}, { dev: true, lanAddress }), { isExposed: false, http: { host: '127.0.0.1' } })

  t.match(
    problemsOf(() => lan({}, { lanAddress: undefined }))[0],
    '--lan: this machine has no address on a network',
  )
  t.same(
    problemsOf(() => lan({ CALLSIGN_HTTP_HOST: '10.0.0.7' }, { lanAddress: undefined })),
    [],
  )
  t.match(problemsOf(() => lan({ CALLSIGN_HTTP_HOST: '127.0.0.1' }))[0], 'is this machine alone')
  t.same(
    problemsOf(() => readConfig(PRODUCTION, { dev: false, lan: true, lanAddress })),
    ['--lan works in development only'],
  )
})

t.test('settings for development only are refused in production', async t => {
  t.same(
    problemsOf(() => production({ CALLSIGN_RATE_LIMITS: 'off' })),
    ['CALLSIGN_RATE_LIMITS=off works in development only'],
  )
  t.same(
    problemsOf(() => production({ CALLSIGN_DEV_EXPOSE: '1' })),
    ['CALLSIGN_DEV_EXPOSE works in development only'],
  )
})

t.test('everything that is wrong is said at once', async t => {
  const environment = {
    CALLSIGN_HTTP_PORT: 'x',
    CALLSIGN_LOG_LEVEL: 'loud',
    CALLSIGN_LOG_FROZEN: 'yes',
    CALLSIGN_GRPC_HOST: '0.0.0.0',
    CALLSIGN_GRPC_TLS_KEY: '/no/such/file',
    CALLSIGN_RATE_LIMITS: 'off',
    CALLSIGN_TYPO: '1',
  }
  const problems = problemsOf(() => readConfig(environment, { dev: false }))
  const names = [...Object.keys(environment), ...Object.keys(PRODUCTION)]
  t.same(
    names.filter(name => !problems.some(problem => problem.startsWith(name))),
    [],
  )
  const error = new ConfigError(problems)
  t.equal(error.message.split('\n').length, 1 + problems.length, 'a line each')
})

t.test('a configuration does not change', async t => {
  t.ok(Object.isFrozen(development()))
})

t.test('passkeys are of the domain that is named, and of its origins and apps', async t => {
  const fingerprint = Array(32).fill('FF').join(':')
  const android = `android:apk-key-hash:${Buffer.alloc(32, 255).toString('base64url')}`
  const passkeysOf = (environment: Environment) => production(environment).application.passkeys
  t.equal(passkeysOf({}), undefined, 'off')
  const CALLSIGN_PASSKEY_RP_ID = 'example.org'
  t.same(passkeysOf({ CALLSIGN_PASSKEY_RP_ID }), {
    rpId: 'example.org',
    origins: ['https://example.org'],
    takesLoopback: false,
  })
  const CALLSIGN_ANDROID_APPS = `com.example.app=${fingerprint}`
  t.same(passkeysOf({ CALLSIGN_PASSKEY_RP_ID, CALLSIGN_ANDROID_APPS })?.origins, [
    'https://example.org',
    android,
  ])
  const CALLSIGN_PASSKEY_ORIGINS = `https://app.example.org:8443, ${android}`
  t.same(passkeysOf({ CALLSIGN_PASSKEY_RP_ID, CALLSIGN_ANDROID_APPS, CALLSIGN_PASSKEY_ORIGINS })?.origins, [
    'https://app.example.org:8443',
    android,
  ])
  t.match(development().application.passkeys, { rpId: 'localhost', takesLoopback: true })
  t.match(development({ CALLSIGN_PASSKEY_RP_ID }).application.passkeys, { takesLoopback: false })
})

t.test('a wrong domain or origin of passkeys is named', async t => {
  for (const CALLSIGN_PASSKEY_RP_ID of [
    'https://example.org',
    'Example.org',
    '10.0.0.1',
    '[::1]',
    'org',
    'a..b',
  ])
    t.match(
      problemsOf(() => production({ CALLSIGN_PASSKEY_RP_ID })),
      [/^CALLSIGN_PASSKEY_RP_ID is a domain/],
    )
  const CALLSIGN_PASSKEY_RP_ID = 'example.org'
  for (const CALLSIGN_PASSKEY_ORIGINS of [
    'http://example.org',
    'https://example.org/',
    'example.org',
    'android:apk-key-hash:AA',
  ])
    t.match(
      problemsOf(() => production({ CALLSIGN_PASSKEY_RP_ID, CALLSIGN_PASSKEY_ORIGINS })),
      [/^CALLSIGN_PASSKEY_ORIGINS is a list of origins/],
    )
  for (const CALLSIGN_PASSKEY_ORIGINS of [
    'https://example.com',
    'https://notexample.org',
    'https://example.org.com',
  ])
    t.match(
      problemsOf(() => production({ CALLSIGN_PASSKEY_RP_ID, CALLSIGN_PASSKEY_ORIGINS })),
      [/which is not of CALLSIGN_PASSKEY_RP_ID$/],
    )
  t.match(
    problemsOf(() => production({ CALLSIGN_PASSKEY_ORIGINS: 'https://example.org' })),
    ['CALLSIGN_PASSKEY_ORIGINS needs CALLSIGN_PASSKEY_RP_ID'],
  )
})
