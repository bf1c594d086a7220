/**
 * The application API when its process ends: killed, it still sends a promised code and still counts earlier
 * attempts; stopped, it answers open requests; without room on its disk, it refuses aloud.
 */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { RegisterClient } from '../../scripts/support/register-client.ts'
import { type Answer, App, newPublicKey } from '../support/app.ts'
import { openServer } from '../support/open-server.ts'
import { runProgram } from '../support/programs.ts'
import { Rehearsal } from '../support/rehearsal.ts'
import {
  freshPublicKey,
  type OpenServer,
  type RunningServer,
  type StartOptions,
  startServer,
} from '../support/server.ts'
import { bySize, long } from '../support/size.ts'
import { codeIn, startSilentServer } from '../support/smtp-sink.ts'

function rehearse(t: Test, environment: Readonly<Record<string, string>> = {}): Promise<Rehearsal> {
  return Rehearsal.start(t, { dataFolder: join(t.testdir(), 'data'), environment })
}

t.test('a code that was promised before kill -9 is sent after it, and accepted', async t => {
  const silent = await startSilentServer()
  t.teardown(() => silent.close())
  const story = await rehearse(t, { CALLSIGN_SMTP_URL: `smtp://127.0.0.1:${silent.port}` })
  const ann = story.app('ann@example.org')
  const { challengeId } = await ann.get(200, 'POST /app/api/login', { email: 'ann@example.org' })
  await silent.reached
  await story.restart('SIGKILL', {})
  const mail = await story.world.mail.mailTo('ann@example.org')
  const otp = ann.hide(codeIn(mail))
  ann.take(await ann.get(200, 'POST /app/api/verify-login', { challengeId, otp }))
  t.equal(await ann.outcome('GET /app/api/user'), '200')
  t.equal(story.world.mail.mails.length, 1)
  await story.endWithoutLeaks(t)
})

t.test('a killed server keeps each session, device and count of attempts', async t => {
  const story = await rehearse(t)
  const ann = await story.signIn('ann@example.org')
  const old = ann.refreshToken
  ann.take(await ann.get(200, 'POST /app/api/refresh-token', { refreshToken: old }))
  const device = await ann.get(201, 'POST /app/api/register_device', {
    publicKey: newPublicKey('P-256 SPKI'),
  })
  for (let search = 0; search < 10; search++) {
    await ann.get(202, 'POST /app/api/friend-request', { email: `nobody${search}@example.org` })
  }
  const bob = story.app('bob@example.org')
  const { challengeId } = await bob.get(200, 'POST /app/api/login', { email: 'bob@example.org' })
  const otp = bob.hide(codeIn(await story.world.mail.mailTo('bob@example.org')))
  const wrong = { challengeId, otp: otp === '000000' ? '111111' : '000000' }
  t.match((await bob.send('POST /app/api/verify-login', wrong)).body, { attemptsLeft: 4 })

  await story.restart('SIGKILL')
  t.match((await ann.get(200, 'GET /app/api/user')).device, { deviceId: device.deviceId })
  const search = { email: 'nobody@example.org' }
  t.match((await ann.send('POST /app/api/friend-request', search)).body, {
    code: 'RATE_LIMITED',
    scope: 'user',
  })
  t.equal(await bob.outcome('POST /app/api/resend-otp', { challengeId }), '429 OTP_COOLDOWN')
  t.match((await bob.send('POST /app/api/verify-login', wrong)).body, { attemptsLeft: 3 })
  t.equal(await bob.outcome('POST /app/api/verify-login', { challengeId, otp }), '200')

  await story.restart('SIGKILL')
  ann.take(await ann.get(200, 'POST /app/api/refresh-token', { refreshToken: ann.refreshToken }))
  t.equal(await ann.outcome('POST /app/api/refresh-token', { refreshToken: old }), '401 REFRESH_TOKEN_REUSED')
  t.equal(await ann.outcome('GET /app/api/user'), '401 SESSION_REVOKED')
  await story.restart('SIGKILL')
  t.equal(await ann.outcome('GET /app/api/user'), '401 SESSION_REVOKED')
  await story.endWithoutLeaks(t)
})

t.test(
  'a mail server that says nothing holds up no stop, and the code is sent after the next start',
  async t => {
    const silent = await startSilentServer()
    t.teardown(() => silent.close())
    const story = await rehearse(t, { CALLSIGN_SMTP_URL: `smtp://127.0.0.1:${silent.port}` })
    const ann = story.app('ann@example.org')
    await ann.get(200, 'POST /app/api/login', { email: 'ann@example.org' })
    await silent.reached
    const { process } = story.server
    await story.restart('SIGTERM', {})
    t.equal(process.exitCode, 0)
    const mail = await story.world.mail.mailTo('ann@example.org')
    ann.hide(codeIn(mail))
    await story.endWithoutLeaks(t)
  },
)

const PEOPLE = 24

/** Signs in people with fixed codes, each on a connection of their own. */
async function signInMany(http: string): Promise<App[]> {
  const signIn = async (_: unknown, at: number) => {
    const app = new App(http)
    const { challengeId } = await app.get(200, 'POST /app/api/login', { email: emailOf(at) })
    const body = { challengeId, otp: '424242' }
    app.take(await app.get(200, 'POST /app/api/verify-login', body))
    return app
  }
  return Promise.all(Array.from({ length: PEOPLE }, signIn))
}

function emailOf(at: number): string {
  return `person${at}@example.org`
}

function environmentForMany(): Readonly<Record<string, string>> {
  const codes = Object.fromEntries(Array.from({ length: PEOPLE }, (_, at) => [emailOf(at), '424242']))
  return { CALLSIGN_TEST_IDENTIFIERS: JSON.stringify(codes), CALLSIGN_LOG_LEVEL: 'fatal' }
}

function startForMany(dataFolder: string, more: Pick<StartOptions, 'wrapper'> = {}): Promise<RunningServer> {
  return startServer({ dataFolder, ...more, environment: environmentForMany() })
}

/** The next server there, in the test's process. */
function openForMany(dataFolder: string): Promise<OpenServer> {
  return openServer({ dataFolder, environment: environmentForMany() })
}

t.test('SIGTERM answers open requests, and their changes are there after the next start', async t => {
  const dataFolder = t.testdir()
  const server = await startForMany(dataFolder)
  const people = await signInMany(server.http)
  let exit: Promise<unknown> | undefined
  const registered = people.map(async app => {
    const body = { publicKey: newPublicKey('P-256 X9.63') }
    const answer = await app.get(201, 'POST /app/api/register_device', body)
    exit ??= server.end()
    return answer.deviceId
  })
  const links = people.map(app => app.outcome('POST /app/api/share-token', {}))
  const outcomes = await Promise.allSettled([...registered, ...links])
  const unanswered = outcomes.flatMap(outcome => (outcome.status === 'rejected' ? [`${outcome.reason}`] : []))
  t.same(unanswered, [])
  t.equal(await exit, 0)

  const next = await openForMany(dataFolder)
  t.teardown(() => next.end())
  const missing: string[] = []
  for (const [at, { accessToken }] of people.entries()) {
    const app = new App(next.http)
    app.accessToken = accessToken
    const { device } = await app.get(200, 'GET /app/api/user')
    if (device?.deviceId !== (await registered[at])) missing.push(emailOf(at))
  }
  t.same(missing, [])
})

const FILE_KILOBYTES_MAX = bySize({ short: 1_000, long: 1_500 })
/** A soft limit, which can be lifted while the server runs. */
const FULL_DISK = ['bash', '-c', `ulimit -S -f ${FILE_KILOBYTES_MAX}; exec "$@"`, '-']
const PRLIMIT = '/usr/bin/prlimit'
const AT_ONCE = 16

/** Fills the disk by keys that are registered, then asks for codes until that is refused, which it resolves with. */
async function fillDisk({ grpc, http }: RunningServer): Promise<Answer> {
  const client = new RegisterClient(grpc)
  const longKey = 'A'.repeat(976) + freshPublicKey()
  let user = 0n
  const registerUntilRefused = async () => {
    for (let isTaken = true; isTaken; ) {
      isTaken = await client.register(++user, 1n, longKey).then(
        () => true,
        () => false,
      )
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, registerUntilRefused))
  client.close()
  return loginUntilRefused(new App(http))
}

async function loginUntilRefused(app: App): Promise<Answer> {
  for (let stranger = 0; stranger < 20_000; stranger += AT_ONCE) {
    const emails = Array.from({ length: AT_ONCE }, (_, at) => `stranger${stranger + at}@example.org`)
    const answers = await Promise.all(emails.map(email => app.send('POST /app/api/login', { email })))
    const refused = answers.find(({ status }) => status !== 200)
    if (refused !== undefined) return refused
  }
  throw new Error('the disk is not full')
}

t.test('a full disk refuses sign-ins aloud, reads go on, and it passes', long(), async t => {
  const dataFolder = t.testdir()
  const server = await startForMany(dataFolder, { wrapper: FULL_DISK })
  const [ann] = await signInMany(server.http)
  const refused = await fillDisk(server)
  t.match(refused.body, { status: 503, code: 'STORE_UNAVAILABLE' })
  t.ok(Number(refused.headers.get('retry-after')) > 0)
  t.equal(await ann!.outcome('GET /app/api/user'), '200')
  t.equal((await fetch(`${server.admin}/readyz`)).status, 503)

  const stranger = new App(server.http)
  const login = { email: 'late@example.org' }
  if (existsSync(PRLIMIT)) {
    await runProgram(PRLIMIT, [`--pid=${server.process.pid}`, '--fsize=unlimited'])
    t.equal(await stranger.outcome('POST /app/api/login', login), '200', 'with room again')
  }
  t.equal(await server.end(), 0, 'stops cleanly')

  const roomy = await openForMany(dataFolder)
  t.teardown(() => roomy.end())
  for (const app of [ann!, stranger]) app.http = roomy.http
  t.equal(await ann!.outcome('GET /app/api/user'), '200')
  t.equal(await stranger.outcome('POST /app/api/login', { email: 'later@example.org' }), '200')
  const key = { publicKey: newPublicKey('P-256 SPKI') }
  t.equal(await ann!.outcome('POST /app/api/register_device', key), '201', 'and the log goes on')
})
