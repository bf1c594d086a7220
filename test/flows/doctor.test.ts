/** The doctor beside a server and before its first start: each thing that it tries, well and broken. */

import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { type DiagnosisOptions, diagnose } from '../../scripts/doctor/diagnosis.ts'
import type { Check, Finding } from '../../scripts/doctor/finding.ts'
import { checkLog } from '../../scripts/doctor/log.ts'
import { checkServedIndex, judgeIndex } from '../../scripts/doctor/log-index.ts'
import { checkWebPush } from '../../scripts/doctor/push.ts'
import { checkRunning } from '../../scripts/doctor/running.ts'
import { checkTls } from '../../scripts/doctor/tls.ts'
import { checkTurn } from '../../scripts/doctor/turn.ts'
import { checkUserTokens } from '../../scripts/doctor/user-tokens.ts'
import { checkWitnesses } from '../../scripts/doctor/witnesses.ts'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { generateVapidKey, vapidPublicKey } from '../../src/delivery/vapid-key.ts'
import { generateUserTokenKey, userTokenKey } from '../../src/domain/accounts/user-token.ts'
import { INDEX_HEAD, SHOWN } from '../../src/keyserver/index/index-tables.ts'
import { INDEX_LOG } from '../../src/keyserver/kept-log.ts'
import { LogReader } from '../../src/keyserver/log-store.ts'
import { markerPath, writeRestoreMarker } from '../../src/keyserver/restore-marker.ts'
import { signCheckpoint } from '../../src/log/checkpoint.ts'
import { formatWitnessKey, witnessKeyFromSeed } from '../../src/log/cosignature.ts'
import { generateIndexKey } from '../../src/log/keys.ts'
import { formatVerifierKey, parseSignerKey } from '../../src/log/note.ts'
import { readConfig } from '../../src/server/settings/config.ts'
import { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { skipWithoutCoturn, startCoturn } from '../support/coturn.ts'
import { FilledIndex, setState } from '../support/filled-index.ts'
import { freePort } from '../support/free-port.ts'
import { skipWithoutJanus, startJanus } from '../support/janus.ts'
import { until } from '../support/nodes.ts'
import { openServer } from '../support/open-server.ts'
import { productionEnvironment, startOutsideWorld } from '../support/outside-world.ts'
import { runProgram, startedProgram } from '../support/programs.ts'
import { freshPublicKey } from '../support/server.ts'
import { shiftedClock } from '../support/shifted-clock.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'
import { startWitness } from '../support/witness-process.ts'

const TLS = join(PROJECT_ROOT, 'test/support/tls')
const DOCTOR = startedProgram('scripts/doctor')

interface Line {
  readonly check: string
  readonly ok: boolean | null
  readonly detail: string
}

interface Consultation {
  readonly code: number | string
  /** Everything that was printed. */
  readonly text: string
  readonly lines: readonly Line[]
  line(check: string): Line
}

function consult(
  environment: Readonly<Record<string, string>>,
  ...flags: readonly string[]
): Promise<Consultation> {
  return consultBy([process.execPath, DOCTOR, '--json', ...flags], environment)
}

type Report = Pick<Consultation, 'text' | 'lines' | 'line'>

/** All that the doctor finds, in the test's process: a program takes ten times as long. */
async function diagnosis(
  environment: Readonly<Record<string, string>>,
  options: Partial<DiagnosisOptions> = {},
): Promise<Report> {
  const findings: Finding[] = []
  for await (const finding of diagnose(environment, { dev: false, settingsFile: undefined, ...options }))
    findings.push(finding)
  return reportOf(findings)
}

/** One check of the doctor's, in the test's process. */
async function look(check: Check, environment: Readonly<Record<string, string>>): Promise<Report> {
  return reportOf(await check({ config: readConfig(environment, { dev: false }), skews: [] }))
}

function reportOf(findings: readonly Finding[]): Report {
  const lines = findings.map(({ check, state, detail }) => ({
    check,
    ok: state === 'off' ? null : state === 'ok',
    detail,
  }))
  const text = JSON.stringify(lines)
  return { text, lines, line: check => lineIn(lines, check, text) }
}

function lineIn(lines: readonly Line[], check: string, text: string): Line {
  const found = lines.find(line => line.check === check)
  if (found === undefined) throw new Error(`no line of ${check}: ${text}`)
  return found
}

/** As a user who owns nothing of what the tests write, also where these run as root. */
function consultAsAnother(environment: Readonly<Record<string, string>>): Promise<Report> {
  const another =
    process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : []
  return consultBy([...another, process.execPath, DOCTOR, '--json'], environment)
}

async function consultBy(
  [program = '', ...args]: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<Consultation> {
  const { code, stdout, stderr } = await runProgram(program, args, {
    environment: { NODE_EXTRA_CA_CERTS: join(TLS, 'ca.crt'), ...environment },
  })
  const lines: Line[] = stdout
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line))
  const text = stdout + stderr
  return { code, text, lines, line: check => lineIn(lines, check, text) }
}

/** Settings of a server in production on ports of its own, its data in the folder. */
async function settings(dataFolder: string): Promise<Record<string, string>> {
  const [http, grpc, admin, serverApi] = await Promise.all([1, 2, 3, 4].map(freePort))
  return {
    ...productionEnvironment(),
    CALLSIGN_DATA_DIR: dataFolder,
    CALLSIGN_HTTP_PORT: `${http}`,
    CALLSIGN_GRPC_PORT: `${grpc}`,
    CALLSIGN_ADMIN_PORT: `${admin}`,
    CALLSIGN_SERVER_API_PORT: `${serverApi}`,
    CALLSIGN_PUBLIC_URL: `http://127.0.0.1:${http}`,
    // Its first leaf is late, but where a test waits for it.
    CALLSIGN_INDEX_SECONDS: '3600',
  }
}

function turnSettings(
  { port, tlsPort }: { readonly port: number; readonly tlsPort: number },
  secret: string,
) {
  return {
    CALLSIGN_TURN_SECRETS: secret,
    CALLSIGN_TURN_URL: `turn:127.0.0.1:${port}`,
    CALLSIGN_TURN_TLS_URL: `turns:localhost:${tlsPort}`,
  }
}

t.test(
  'beside a server with everything set, all is well and real messages arrive',
  { skip: skipWithoutCoturn || skipWithoutJanus },
  async t => {
    const folder = t.testdir({ coturn: {}, head: {}, witness: {} })
    const world = await startOutsideWorld(t)
    world.apns.decide = ({ token }) =>
      token === PUSH_TOKEN ? { status: 200 } : { status: 400, reason: 'BadDeviceToken' }
    const coturn = await startCoturn(t, join(folder, 'coturn'), ['relay-secret'], DENIED)
    const janus = await startJanus(t, join(folder, 'janus'))
    const plain = await settings(join(folder, 'data'))
    const [vkey, indexVkey] = [vkeyOf(plain), indexVkeyOf(plain)]
    const witness = await startWitness(t, {
      folder: join(folder, 'witness'),
      name: 'w.example',
      logs: [vkey, indexVkey],
    })
    const policy = join(folder, 'policy')
    writeFileSync(policy, `log ${vkey}\nlog ${indexVkey}\n${witness.policyLine}quorum w.example\n`)
    const tlsKey = join(folder, 'server.key')
    writeFileSync(tlsKey, readFileSync(join(TLS, 'server.key')), { mode: 0o600 })
    const vapidKey = generateVapidKey(randomBytes)
    const tokenKey = generateUserTokenKey(randomBytes)
    const environment = {
      ...plain,
      ...world.environment,
      ...turnSettings(coturn, 'relay-secret'),
      ...janus.environment,
      CALLSIGN_WITNESS_POLICY: policy,
      CALLSIGN_INDEX_SECONDS: '1',
      CALLSIGN_LOG_HEAD_FILE: join(folder, 'head', 'checkpoint'),
      CALLSIGN_VAPID_KEY: vapidKey,
      CALLSIGN_TOKEN_KEY: tokenKey,
      CALLSIGN_TOKEN_AUDIENCES: 'https://api.example.org',
      CALLSIGN_TLS_CERT: join(TLS, 'server.crt'),
      CALLSIGN_TLS_KEY: tlsKey,
      CALLSIGN_PUBLIC_URL: `https://localhost:${plain.CALLSIGN_HTTP_PORT}`,
    }
    const server = await openServer({ dataFolder: join(folder, 'data'), environment, dev: false })
    t.teardown(() => server.end())
    const client = new RegisterClient(server.grpc)
    await client.register(1n, 1n, freshPublicKey())
    client.close()
    const figures = async () => (await fetch(`${server.admin}/metrics`)).text()
    await until(async () => /^callsign_index_entries(\{.*\})? 1$/m.test(await figures()))

    const flags = ['--mail-to', 'ann@example.org', '--sms-to', '+84912345678', '--push-token', PUSH_TOKEN]
    const { code, lines, line, text } = await consult(environment, ...flags)
    t.same(
      lines.filter(({ ok }) => ok !== true),
      [],
    )
    t.equal(code, 0, text)
    t.match(line('store').detail, /kt\.example\.org\/log with 1 entries/)
    t.match(line('head file').detail, /at 1 entries/)
    t.match(line('index').detail, /has \d leaves, over 1 of 1 entries/)
    t.match(line('index served').detail, /\/index\/checkpoint is signed, of \d leaves/)
    t.match(line('witnesses').detail, /^1 of 1 answer$/)
    t.match(line('index witnesses').detail, /^1 of 1 answer$/)
    t.match(line('tls').detail, /until 2126-10-27, pin [A-Za-z0-9+/]{43}=/)
    for (const check of ['turn udp', 'turn tcp', 'turn tls'])
      t.match(line(check).detail, /relays by 127\.0\.0\.1:\d+/)
    t.match(await world.mail.mailTo('ann@example.org'), { isEncrypted: true, user: 'callsign' })
    t.match(await world.sms.smsTo('+84912345678'), /can send SMS/)
    t.ok(world.apns.pushes.some(({ token }) => token === PUSH_TOKEN))
    const secrets = [
      'smtp-password',
      'sms-key',
      'relay-secret',
      ...Object.values(janus.secrets),
      plain.KT_PRIVATE_KEY!,
      plain.CALLSIGN_SECRET!,
      vapidKey,
      tokenKey,
    ]
    t.same(
      secrets.filter(secret => text.includes(secret)),
      [],
      'no secret is printed',
    )
  },
)

t.test('before the first start nothing fails that is only not set, and nothing is written', async t => {
  const dataFolder = join(t.testdir(), 'data')
  const { line, lines, text } = await diagnosis(await settings(dataFolder))
  t.same(
    lines.filter(({ check, ok }) => ok === false && !OF_MACHINE.has(check)),
    [],
    text,
  )
  t.match(line('store').detail, /will be made at the first start/)
  t.match(line('index'), { ok: true, detail: /: will be built when the server starts$/ })
  t.match(line('ports'), { ok: true })
  const unset = lines.filter(({ ok }) => ok === null)
  t.same(
    unset.filter(({ detail }) => !/\bset CALLSIGN_|start the server|none runs|nobody/.test(detail)),
    [],
    'each says what to set',
  )
  t.match(
    unset.map(({ check }) => check).join(),
    /head file,witnesses,server,public url,tls,mail,sms,apns,fcm,web push,turn,media,providers,sign in with apple,user tokens,clock/,
  )
  t.notOk(existsSync(dataFolder), 'the data directory is still not there')
})

t.test('the key of pushes to browsers is named by its public half', async t => {
  const key = generateVapidKey(randomBytes)
  const plain = await settings(join(t.testdir(), 'data'))
  const { line, text } = await look(checkWebPush, { ...plain, CALLSIGN_VAPID_KEY: key })
  t.match(line('web push'), { ok: true, detail: vapidPublicKey(key) })
  t.notOk(text.includes(key))
})

t.test('the key of user tokens is looked for where those who check them do', async t => {
  const [signing, other] = [generateUserTokenKey(randomBytes), generateUserTokenKey(randomBytes)]
  const { kid } = userTokenKey(signing).jwk
  let answer = { status: 200, text: JSON.stringify({ keys: [userTokenKey(other).jwk, { kid }] }) }
  const server = createHttpServer((_, response) => void response.writeHead(answer.status).end(answer.text))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const environment = {
    ...(await settings(join(t.testdir(), 'data'))),
    CALLSIGN_TOKEN_KEY: `${signing},${other}`,
    CALLSIGN_TOKEN_AUDIENCES: 'https://api.example.org',
    CALLSIGN_PUBLIC_URL: url,
  }
  const seen = async (more = {}) =>
    (await look(checkUserTokens, { ...environment, ...more })).line('user tokens')
  t.match(await seen(), {
    ok: true,
    detail: `key ${kid} signs, for https://api.example.org; ${url}/.well-known`,
  })
  answer = { status: 200, text: JSON.stringify({ keys: [userTokenKey(other).jwk] }) }
  t.match(await seen(), { ok: false, detail: /does not list .* restart every node with the same keys/ })
  for (const odd of ['{"keys":{}}', 'null', '<html>']) {
    answer = { status: 200, text: odd }
    t.match(await seen(), { ok: false, detail: /answers 200, and no keys: have the proxy pass it on/ })
  }
  answer = { status: 404, text: '' }
  t.match(await seen(), { ok: false, detail: /answers 404/ })
  const nowhere = `http://127.0.0.1:${await freePort()}`
  t.match(await seen({ CALLSIGN_PUBLIC_URL: nowhere }), { ok: true, detail: /was not seen \(ECONNREFUSED\)/ })
  t.match(await seen({ CALLSIGN_TOKEN_AUDIENCES: '' }), { ok: null, detail: 'set CALLSIGN_TOKEN_AUDIENCES' })
  t.match(await seen({ CALLSIGN_TOKEN_AUDIENCES: '', CALLSIGN_TOKEN_KEY: '' }), {
    ok: null,
    detail: 'set CALLSIGN_TOKEN_KEY_FILE',
  })
})

t.test('settings that are wrong are all named', async t => {
  const { code, lines } = await consult({ CALLSIGN_DATA_DIR: t.testdir(), CALLSIGN_HTTP_PROT: '1' })
  t.equal(code, 1)
  t.ok(lines.length > 4 && lines.every(({ check, ok }) => check === 'settings' && ok === false))
  t.ok(lines.some(({ detail }) => detail.includes('CALLSIGN_HTTP_PROT is not a setting')))
})

t.test('what the other side refuses is said with what to do', async t => {
  const world = await startOutsideWorld(t)
  const environment = {
    ...(await settings(join(t.testdir(), 'data'))),
    ...world.environment,
    CALLSIGN_SMTP_URL: world.mail.url.replace('smtp-password', 'another'),
    CALLSIGN_APNS_TEAM_ID: 'ZZZ999ZZZ9',
  }
  world.sms.answerNext({ status: 401 })
  world.fcm.answerNextPurchase({ status: 400, body: { error: 'invalid_grant' } })
  const { line, text } = await diagnosis(environment, { smsTo: '+84912345678' })
  t.match(line('mail'), { ok: false, detail: /login is refused: .*CALLSIGN_SMTP_URL/ })
  t.match(line('sms'), { ok: false, detail: /http-401.*CALLSIGN_SMS_HEADERS/ })
  t.match(line('apns production'), { ok: false, detail: /InvalidProviderToken.*CALLSIGN_APNS_KEY/ })
  t.match(line('fcm'), { ok: false, detail: /does not take the account/ })
  t.match(line('provider google'), { ok: true })
  t.match(line('clock'), { ok: true })
  t.notOk(text.includes('another@') || text.includes(':another'), 'the wrong password is not printed')
})

t.test('credentials are proven without a message: only the made-up address is refused', async t => {
  const world = await startOutsideWorld(t)
  world.apns.decide = () => ({ status: 400, reason: 'BadDeviceToken' })
  world.fcm.answerNext({
    status: 400,
    body: { error: { status: 'INVALID_ARGUMENT', message: 'The registration token is not valid' } },
  })
  const { line } = await diagnosis({ ...(await settings(join(t.testdir(), 'data'))), ...world.environment })
  for (const check of ['mail', 'sms', 'apns production', 'apns development', 'fcm']) {
    t.match(line(check), { ok: true }, check)
  }
  t.equal(world.mail.mails.length, 0, 'no mail was sent')
  t.equal(world.sms.requests.filter(({ method }) => method === 'POST').length, 0, 'no SMS was sent')
})

t.test('the doctor reports an address that does not answer', async t => {
  const port = await freePort()
  const world = await startOutsideWorld(t)
  const { line } = await diagnosis({
    ...(await settings(join(t.testdir(), 'data'))),
    ...world.environment,
    ...turnSettings({ port, tlsPort: port }, 'relay-secret'),
    CALLSIGN_SMTP_URL: `smtp://127.0.0.1:${port}`,
    CALLSIGN_SMS_URL: `http://127.0.0.1:${port}`,
    CALLSIGN_APNS_PORT: `${port}`,
    CALLSIGN_OIDC_PROVIDERS: `[{"name":"x","issuer":"http://127.0.0.1:${port}","clientIds":["y"]}]`,
  })
  for (const check of ['mail', 'sms', 'apns production', 'turn udp', 'turn tcp', 'turn tls', 'provider x']) {
    t.match(line(check), { ok: false }, check)
  }
})

t.test(
  'a relay that takes other secrets, or lets users into its own network, fails',
  { skip: skipWithoutCoturn },
  async t => {
    const folder = t.testdir({ coturn: {} })
    const coturn = await startCoturn(t, join(folder, 'coturn'), ['relay-secret'])
    const plain = await settings(join(folder, 'data'))
    const open = await look(checkTurn, { ...plain, ...turnSettings(coturn, 'relay-secret') })
    t.match(open.line('turn udp'), {
      ok: false,
      detail: /lets every user reach 127\.0\.0\.1 and 169\.254\.169\.254.*denied-peer-ip/,
    })
    const other = await consult({ ...plain, ...turnSettings(coturn, 'of-somebody-else') })
    for (const check of ['turn udp', 'turn tcp', 'turn tls']) {
      t.match(other.line(check), { ok: false, detail: /does not take our credentials/ })
    }
  },
)

function vkeyOf({ KT_PRIVATE_KEY = '' }: Readonly<Record<string, string>>): string {
  return formatVerifierKey(parseSignerKey(KT_PRIVATE_KEY))
}

function indexVkeyOf({ KT_INDEX_PRIVATE_KEY = '' }: Readonly<Record<string, string>>): string {
  return vkeyOf({ KT_PRIVATE_KEY: KT_INDEX_PRIVATE_KEY })
}

/** A server that has run in the folder, and its settings. */
async function afterRun(folder: string): Promise<Record<string, string>> {
  mkdirSync(join(folder, 'head'))
  const environment = {
    ...(await settings(join(folder, 'data'))),
    CALLSIGN_LOG_HEAD_FILE: join(folder, 'head', 'checkpoint'),
  }
  const server = await openServer({ dataFolder: join(folder, 'data'), environment, dev: false })
  const client = new RegisterClient(server.grpc)
  await client.register(1n, 1n, freshPublicKey())
  client.close()
  await server.end()
  return environment
}

t.test('the doctor distinguishes keys, store and head file of different logs', async t => {
  const folder = t.testdir()
  const environment = await afterRun(folder)
  const whole = await look(checkLog, environment)
  for (const check of ['keys', 'store', 'head file']) t.match(whole.line(check), { ok: true })

  const other = productionEnvironment()
  const { KT_PRIVATE_KEY, VRF_PRIVATE_KEY } = other
  const swapped = await look(checkLog, { ...environment, KT_PRIVATE_KEY: KT_PRIVATE_KEY! })
  t.match(swapped.line('store'), { ok: false, detail: /was made with kt\.example\.org\/log\+/ })
  t.match(swapped.line('head file'), {
    ok: false,
    detail: /is not a checkpoint of .* or set the KT_PRIVATE_KEY/,
  })
  t.match((await look(checkLog, { ...environment, VRF_PRIVATE_KEY: VRF_PRIVATE_KEY! })).line('store'), {
    ok: false,
  })
  const named = await diagnosis({ ...environment, CALLSIGN_ORIGIN: 'other.example.org/log' })
  t.match(named.line('settings'), { ok: false, detail: /CALLSIGN_ORIGIN is other\.example\.org\/log/ })
  const published = await look(checkLog, {
    ...environment,
    KT_PUBLIC_KEY: 'kt.example.org/log+00000000+AAAA',
  })
  t.match(published.line('keys'), { ok: false, detail: /KT_PUBLIC_KEY is not the public half/ })
  const ofIndex = { KT_INDEX_PUBLIC_KEY: 'kt.example.org/log/index+00000000+AAAA' }
  t.match((await look(checkLog, { ...environment, ...ofIndex })).line('keys'), {
    ok: false,
    detail: /KT_INDEX_PUBLIC_KEY is not the public half of KT_INDEX_PRIVATE_KEY, which is kt/,
  })
  t.match((await look(checkLog, { ...environment, ...ofIndex, KT_INDEX_PRIVATE_KEY: '' })).line('keys'), {
    ok: false,
    detail: /KT_INDEX_PUBLIC_KEY is set, and KT_INDEX_PRIVATE_KEY is not/,
  })
})

t.test('a head file that is ahead of the store, and a store that is broken, fail', async t => {
  const folder = t.testdir()
  const environment = await afterRun(folder)
  const empty = await look(checkLog, { ...environment, CALLSIGN_DATA_DIR: join(folder, 'older') })
  t.match(empty.line('head file'), { ok: false, detail: /has signed 1 entries, the store holds 0/ })
  const store = join(environment.CALLSIGN_DATA_DIR!, 'store', 'data.mdb')
  truncateSync(store, 3 * 4096)
  t.match((await look(checkLog, environment)).line('store'), { ok: false, detail: /fsck/ })
  writeFileSync(store, 'not a store'.repeat(1_000))
  const report = await look(checkLog, environment)
  t.match(report.line('store'), { ok: false, detail: /does not begin as a store does/ })
})

t.test('a restored store fails until something answers for it, as at the start of the server', async t => {
  const folder = t.testdir()
  const { CALLSIGN_LOG_HEAD_FILE, ...alone } = await afterRun(folder)
  await writeRestoreMarker(alone.CALLSIGN_DATA_DIR!, {
    restoredAt: '2026-01-02T03:04:05Z',
    backup: '/monday',
  })
  const asked = { ok: false, detail: /was restored from \/monday: start once with --known-checkpoint/ }
  t.match((await look(checkLog, alone)).line('store'), asked)
  const absent = { ...alone, CALLSIGN_LOG_HEAD_FILE: join(folder, 'none') }
  t.match((await look(checkLog, absent)).line('store'), asked)
  t.match((await look(checkLog, { ...alone, CALLSIGN_LOG_FROZEN: '1' })).line('store'), { ok: true })
  const answered = { ...alone, CALLSIGN_LOG_HEAD_FILE: CALLSIGN_LOG_HEAD_FILE! }
  t.match((await look(checkLog, answered)).line('store'), { ok: true })
})

t.test('the index line shows progress, a held index and the key', async t => {
  const environment = await afterRun(t.testdir())
  const key = parseSignerKey(environment.KT_INDEX_PRIVATE_KEY!)
  const vkey = formatVerifierKey(key)
  const indexLine = async (more: Readonly<Record<string, string>> = {}) =>
    (await look(checkLog, { ...environment, ...more })).line('index')
  const change = async (act: (store: LmdbStore) => Promise<unknown>) => {
    const store = LmdbStore.open(environment.CALLSIGN_DATA_DIR!)
    await act(store)
    await store.close()
  }
  t.match(await indexLine(), { ok: true, detail: `${vkey}: is being built, 0 of 1 entries` })
  await change(async store => new FilledIndex(store, key).addLeaf(new LogReader(store).head()!))
  t.match(await indexLine(), { ok: true, detail: `${vkey} has 1 leaves, over 1 of 1 entries` })

  const other = generateIndexKey('kt.example.org/log', randomBytes)
  const changed = { KT_INDEX_PRIVATE_KEY: other.ktIndexPrivateKey }
  t.match(await indexLine(changed), { ok: false, detail: /throws away the index .* put that key back/ })
  const changing = { KT_INDEX_SECOND_PRIVATE_KEY: environment.KT_INDEX_PRIVATE_KEY!, ...changed }
  t.match(await indexLine(changing), { ok: true, detail: /has 1 leaves/ })
  t.match(await indexLine({ KT_INDEX_PRIVATE_KEY: '' }), {
    ok: false,
    detail: /^KT_INDEX_PRIVATE_KEY is not set, .* put that key back/,
  })

  const headFile = `${environment.CALLSIGN_LOG_HEAD_FILE}.index`
  const headOf = (treeSize: number) => signCheckpoint({ treeSize, rootHash: new Uint8Array(32) }, key)
  writeFileSync(headFile, headOf(1))
  t.match(await indexLine(), { ok: true })
  writeFileSync(headFile, headOf(2))
  t.match(await indexLine(), {
    ok: false,
    detail: /has signed 2 leaves, the store holds 1: it is an older copy/,
  })
  await writeRestoreMarker(environment.CALLSIGN_DATA_DIR!, { restoredAt: 'now', backup: '/monday' })
  writeFileSync(headFile, headOf(1))
  t.match(await indexLine(), { ok: true }, 'the head file answers for a restored store')
  rmSync(headFile)
  t.match(await indexLine(), {
    ok: false,
    detail: /was restored from \/monday: start once with --known-index-checkpoint/,
  })
  t.match(await indexLine({ CALLSIGN_LOG_FROZEN: '1' }), { ok: true })
  rmSync(markerPath(environment.CALLSIGN_DATA_DIR!, INDEX_LOG))

  const signers = [vkey.split('+', 2).join('+')]
  const state = { vkey, entries: 1, leaves: 1, isHeld: false, signers, earlierSigners: [] as string[] }
  const withState = (more: Partial<typeof state>) =>
    change(store => store.change(each => setState(each, { ...state, ...more })))
  await withState({ earlierSigners: signers })
  t.match(await indexLine(), { ok: false, detail: /^will be held: .*has signed an earlier index/ })
  await withState({ isHeld: true })
  t.match(await indexLine(), { ok: false, detail: /^is held, .*index-held/ })
  const foreign = signCheckpoint(
    { treeSize: 1, rootHash: new Uint8Array(32) },
    parseSignerKey(other.ktIndexPrivateKey),
  )
  await withState({})
  await change(store =>
    store.change(each => each.put(INDEX_HEAD, SHOWN, { treeSize: 1, checkpoint: foreign })),
  )
  t.match(await indexLine(), { ok: false, detail: /is not signed by/ })
  await change(store => store.change(each => each.remove(INDEX_HEAD, SHOWN)))
  await withState({ leaves: 0, entries: 0 })
  t.match(await indexLine(), { ok: true, detail: /is being built, 0 of 1 entries/ })
  t.match(await indexLine(changed), { ok: true, detail: /will be begun anew, .* is of kt\.example/ })
})

t.test('an index far behind its log fails', async t => {
  const key = parseSignerKey(productionEnvironment().KT_INDEX_PRIVATE_KEY!)
  const shown = signCheckpoint({ treeSize: 1, rootHash: new Uint8Array(32) }, key)
  const state = {
    vkey: formatVerifierKey(key),
    entries: 1,
    leaves: 1,
    isHeld: false,
    signers: [formatVerifierKey(key).split('+', 2).join('+')],
    earlierSigners: [],
  }
  const config = readConfig(productionEnvironment(), { dev: false })
  const judged = (treeSize: number) =>
    judgeIndex(config, 'kt.example.org/log', [key], {
      index: { state, shown, signedSize: 1 },
      treeSize,
      headNote: undefined,
    })
  t.match(judged(8_193), { state: 'ok' })
  t.match(judged(8_194), { state: 'fails', detail: /^is 8193 entries behind/ })
})

t.test('the checkpoint of the index is looked for where clients look', async t => {
  const key = parseSignerKey(productionEnvironment().KT_INDEX_PRIVATE_KEY!)
  const other = parseSignerKey(productionEnvironment().KT_INDEX_PRIVATE_KEY!)
  let answer = { status: 200, text: signCheckpoint({ treeSize: 3, rootHash: new Uint8Array(32) }, key) }
  const server = createHttpServer((_, response) => void response.writeHead(answer.status).end(answer.text))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  t.match(await checkServedIndex(url, [key]), {
    state: 'ok',
    detail: `${url}/index/checkpoint is signed, of 3`,
  })
  t.match(await checkServedIndex(url, [other, key]), { state: 'ok' })
  t.match(await checkServedIndex(url, [other]), {
    state: 'fails',
    detail: /is not a checkpoint of kt\.example/,
  })
  answer = { status: 503, text: '' }
  t.match(await checkServedIndex(url, [key]), { state: 'off', detail: /answers 503: start the server/ })
  answer = { status: 404, text: '' }
  t.match(await checkServedIndex(url, [key]), { state: 'fails', detail: /answers 404: have the proxy/ })
  const nowhere = `http://127.0.0.1:${await freePort()}`
  t.match(await checkServedIndex(nowhere, [key]), { state: 'fails', detail: /ECONNREFUSED/ })
})

t.test('a certificate that has ended, or is for another host, fails', async t => {
  const plain = await settings(join(t.testdir(), 'data'))
  const environment = {
    ...plain,
    CALLSIGN_TLS_CERT: join(TLS, 'server.crt'),
    CALLSIGN_TLS_KEY: join(TLS, 'server.key'),
  }
  const elsewhere = await look(checkTls, { ...environment, CALLSIGN_PUBLIC_URL: 'https://call.example.org' })
  t.match(elsewhere.line('tls'), { ok: false, detail: /is not for call\.example\.org/ })
  const later = await consult({ ...environment, ...shiftedClock(YEARS_100_MS) })
  t.match(later.line('tls'), { ok: false, detail: /expired on 2126-10-27.*restart/ })
})

t.test('a port that another program has is named', async t => {
  const environment = await settings(join(t.testdir(), 'data'))
  const squatter = createServer().listen(Number(environment.CALLSIGN_GRPC_PORT), '127.0.0.1')
  await once(squatter, 'listening')
  t.teardown(() => new Promise(resolve => squatter.close(resolve)))
  const { line } = await look(checkRunning, environment)
  t.match(line('ports'), {
    ok: false,
    detail: /CALLSIGN_GRPC_PORT: 127\.0\.0\.1:\d+ is taken \(EADDRINUSE\)/,
  })
  const stomp = { CALLSIGN_GRPC_PORT: '0', CALLSIGN_STOMP_TCP_PORT: environment.CALLSIGN_GRPC_PORT! }
  t.match((await look(checkRunning, { ...environment, ...stomp })).line('ports'), {
    ok: false,
    detail: /^CALLSIGN_STOMP_TCP_PORT: 127\.0\.0\.1:\d+ is taken/,
  })
})

t.test('a data directory that is a file, or of another user, fails', async t => {
  const folder = t.testdir({ file: '' })
  const environment = await settings(join(folder, 'file'))
  t.match((await look(checkLog, environment)).line('store'), { ok: false, detail: /file is a file/ })
  const below = { ...environment, CALLSIGN_DATA_DIR: join(folder, 'file', 'data') }
  t.match((await look(checkLog, below)).line('store'), { ok: false, detail: /file is a file/ })
  const closed = join(folder, 'closed')
  mkdirSync(closed, { mode: 0o500 })
  for (const dataFolder of [closed, join(closed, 'data')]) {
    const { line } = await consultAsAnother({ ...environment, CALLSIGN_DATA_DIR: dataFolder })
    t.match(line('store'), {
      ok: false,
      detail: new RegExp(`^${closed} belongs to user ${process.getuid?.()} and is not writable`),
    })
  }
})

t.test('a restore that did not finish is no place for a first start', async t => {
  const dataFolder = t.testdir({ unfinished: {} })
  await writeRestoreMarker(dataFolder, { restoredAt: '2026-07-28T08:00:00Z', backup: '/backup/monday' })
  const { line } = await look(checkLog, await settings(dataFolder))
  t.match(line('store'), { ok: false, detail: /did not finish: empty it and restore again/ })
})

t.test('--dev on data of a server in production says what the server would', async t => {
  const folder = t.testdir()
  const { CALLSIGN_DATA_DIR } = await afterRun(folder)
  const { line } = await diagnosis({ CALLSIGN_DATA_DIR: CALLSIGN_DATA_DIR! }, { dev: true })
  t.match(line('keys'), { ok: false, detail: /development-keys\.env is missing.*in production/ })
})

t.test('who reads only the first line gets no stack', async t => {
  const pipeline = '"$0" "$1" | head -1'
  const { stdout, stderr } = await runProgram('/bin/sh', ['-c', pipeline, process.execPath, DOCTOR], {
    environment: await settings(join(t.testdir(), 'data')),
  })
  t.match(stdout, /^ok +settings/)
  t.equal(stderr, '')
})

t.test('a clock far from a provider’s is found', async t => {
  const server = createHttpServer((_request, response) => {
    response.setHeader('date', new Date(Date.now() - 120_000).toUTCString())
    response.end('{"keys":[{"kty":"RSA"}]}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => new Promise(resolve => server.close(resolve)))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const provider = { name: 'x', issuer: url, jwksUri: `${url}/keys`, clientIds: ['y'] }
  const { line } = await diagnosis({
    ...(await settings(join(t.testdir(), 'data'))),
    CALLSIGN_OIDC_PROVIDERS: JSON.stringify([provider]),
  })
  t.match(line('provider x'), { ok: true, detail: /shows 1 keys/ })
  t.match(line('clock'), { ok: false, detail: /1[12]\d s ahead of that of 127\.0\.0\.1.*NTP/ })
})

t.test('a public address that leads elsewhere is found while the server runs', async t => {
  const folder = t.testdir()
  const environment = await settings(join(folder, 'data'))
  const server = await openServer({ dataFolder: join(folder, 'data'), environment, dev: false })
  t.teardown(() => server.end())
  t.match((await look(checkRunning, environment)).line('public url'), { ok: true })
  const { line } = await look(checkRunning, { ...environment, CALLSIGN_PUBLIC_URL: server.admin })
  t.match(line('public url'), { ok: false, detail: /answers 404/ })
})

/** A little more: the certificate of the tests ends in 2126. */
const YEARS_100_MS = 101 * 366 * 86_400_000
const PUSH_TOKEN = 'ab'.repeat(32)
/** Not every machine that tests run on has room. */
const OF_MACHINE = new Set(['disk', 'head file disk', 'open files'])
const DENIED = ['denied-peer-ip=127.0.0.0-127.255.255.255', 'denied-peer-ip=169.254.0.0-169.254.255.255']

t.test(
  'witnesses that are down or do not know the log are named, and fail only without a quorum',
  async t => {
    const folder = t.testdir({ knows: {}, other: {} })
    const environment = await settings(join(folder, 'data'))
    const [vkey, indexVkey] = [vkeyOf(environment), indexVkeyOf(environment)]
    const knows = await startWitness(t, {
      folder: join(folder, 'knows'),
      name: 'knows.example',
      logs: [vkey],
    })
    const others = vkeyOf(productionEnvironment())
    const other = await startWitness(t, {
      folder: join(folder, 'other'),
      name: 'other.example',
      logs: [others],
    })
    const gone = `witness gone ${formatWitnessKey(witnessKeyFromSeed('gone.example', randomBytes(32)))} http://127.0.0.1:${await freePort()}\n`
    const policy = join(folder, 'policy')
    const withQuorum = async (threshold: number) => {
      const lines = `${knows.policyLine}${other.policyLine}${gone}group g ${threshold} knows.example other.example gone\n`
      writeFileSync(policy, `log ${vkey}\nlog ${indexVkey}\n${lines}quorum g\n`)
      return await look(checkWitnesses, { ...environment, CALLSIGN_WITNESS_POLICY: policy })
    }
    const detail =
      /1 of 3 answer; .*other\.example does not know this log \(403\): ask its operator to add kt\.example/
    const one = await withQuorum(1)
    t.match(one.line('witnesses'), { ok: true, detail })
    t.match(one.line('index witnesses'), {
      ok: false,
      detail:
        /^no quorum: 0 of 3 .*knows\.example does not know this log \(404\): ask its operator to add kt\.example\.org\/log\/index\+/,
    })
    t.match((await withQuorum(2)).line('witnesses'), {
      ok: false,
      detail: /^no quorum: 1 of 3 answer; .*gone can't be reached/,
    })
    const monitored = createHash('sha256').update(vkey.split('+')[0]!).digest('hex')
    t.equal((await fetch(`${knows.http}/${monitored}/checkpoint`)).status, 404, 'nothing was cosigned')
  },
)
