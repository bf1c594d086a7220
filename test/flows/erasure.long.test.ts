/**
 * A person who is erased is gone: after the seven days, and what docs/run/privacy.md has the operator do, nothing of them is
 * in the octets of the store, of a backup, of PostgreSQL's files, of the log lines or the figures, in any usual encoding.
 */

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { generateVapidKey } from '../../src/delivery/vapid-key.ts'
import { addressIdentifier } from '../../src/domain/accounts/account.ts'
import { textKey } from '../../src/store/engine/keys.ts'
import { App, newPublicKey } from '../support/app.ts'
import { befriend, type Person, startCall } from '../support/call-people.ts'
import { runScript } from '../support/commands.ts'
import { freePort } from '../support/free-port.ts'
import { type Find, OctetSearch, type Sought } from '../support/octet-search.ts'
import { productionEnvironment } from '../support/outside-world.ts'
import { type PostgresServer, skipWithoutPostgres, startPostgres } from '../support/postgres.ts'
import { builtProgram, runProgram } from '../support/programs.ts'
import { Rehearsal } from '../support/rehearsal.ts'
import { shiftedClock } from '../support/shifted-clock.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

const DAY_MS = 86_400_000
const MAIL = 'petronella.quillfeather@example.org'
const PHONE = '+84987123654'
/** All that is looked for. */
const SOUGHT: Sought = {
  mail: MAIL,
  phone: PHONE.slice(1),
  name: 'Petronella Quillfeather',
  'new name': 'Nella Quillfeather-Smythe',
  'token of APNs': randomBytes(32).toString('hex'),
  'VoIP token': randomBytes(32).toString('hex'),
  'token of FCM': `fcm-registration:${randomBytes(40).toString('hex')}`,
  'web push endpoint': `https://push.invalid/wpush/v2/${randomBytes(30).toString('base64url')}`,
  'web push secret': randomBytes(16).toString('base64url'),
  'name of a device': 'petronellas-own-telephone',
  'user agent': 'PetronellasTelephone/9.1',
  'label of a link': 'petronellas-link-at-the-fair',
  'message of a request': 'petronella-asks-you-to-answer',
  'alias by a contact': 'the-quillfeather-of-yore',
  'words of a report': 'bob-called-petronella-at-night',
  'external id': 'customer-quillfeather-0471',
  'unproven mail': 'nella@quillfeather.example',
  'unproven phone': '84987123777',
  'note of a suspension': 'quillfeather-was-suspended-for-this',
  'hash of the mail': hashOf('email', MAIL),
  'hash of the phone': hashOf('phone', PHONE),
}

function hashOf(kind: 'email' | 'phone', key: string): string {
  return Buffer.from(textKey(addressIdentifier(kind, key))).toString('hex')
}

interface House {
  readonly story: Rehearsal
  readonly dataFolder: string
  /** The folder for a backup. */
  readonly copy: string
  readonly environment: Readonly<Record<string, string>>
}

async function open(t: Test, more: Readonly<Record<string, string>> = {}): Promise<House> {
  const folder = t.testdir()
  const [dataFolder, copy] = ['data', 'copy'].map(name => join(folder, name)) as [string, string]
  const environment = {
    ...productionEnvironment(),
    ...more,
    CALLSIGN_VAPID_KEY: generateVapidKey(randomBytes),
    CALLSIGN_WEB_PUSH_HOSTS: 'push.invalid',
  }
  return { story: await Rehearsal.start(t, { dataFolder, environment }), dataFolder, copy, environment }
}

/** With one node, which is the writer. */
async function nodeSettings(url: string): Promise<Record<string, string>> {
  const port = await freePort()
  return {
    CALLSIGN_DATABASE_URL: url,
    CALLSIGN_NODE_NAME: 'one',
    CALLSIGN_NODE_HOST: '127.0.0.1',
    CALLSIGN_NODE_PORT: `${port}`,
    CALLSIGN_FRONTS: '1',
  }
}

async function registered(app: App, more: object = {}): Promise<Person> {
  const publicKey = newPublicKey('P-256 X9.63')
  const { userId } = await app.get(200, 'GET /app/api/user')
  const device = await app.get(201, 'POST /app/api/register_device', { publicKey, ...more })
  return { app, userId, publicKey, deviceId: device.deviceId, publicKeyHash: device.publicKeyHash }
}

interface People {
  readonly petronella: Person
  readonly bob: Person
  readonly backend: App
}

/** Petronella uses all there is, and Bob is her contact. */
async function live(house: House): Promise<People> {
  const { story } = house
  const bob = await registered(await story.signIn('bob@example.org'))
  const app = story.app()
  const agent = { 'user-agent': SOUGHT['user agent']! }
  const login = { email: MAIL, displayName: SOUGHT.name }
  const { challengeId } = await app.get(200, 'POST /app/api/login', login, agent)
  const { text } = await story.world.mail.mailTo(MAIL)
  const otp = /\b\d{6}\b/.exec(text)![0]
  app.take(await app.get(200, 'POST /app/api/verify-login', { challengeId, otp }, agent))
  const petronella = await registered(app, {
    deviceInfo: { platform: 'ios', name: SOUGHT['name of a device'] },
    push: {
      apnsToken: SOUGHT['token of APNs'],
      apnsVoipToken: SOUGHT['VoIP token'],
      apnsEnvironment: 'production',
      bundleId: 'org.example.callsign',
      pushKey: randomBytes(32).toString('base64'),
    },
  })
  await befriend(bob, petronella)
  await bob.app.get(200, `PUT /app/api/friend/${petronella.userId}`, { alias: SOUGHT['alias by a contact'] })
  const { callId } = (await startCall(bob, [petronella])).body
  await app.get(200, `POST /app/api/call/${callId}/join`, {})
  await bob.app.get(200, `POST /app/api/call/${callId}/end`, {})
  await callUnanswered(petronella, bob)
  await ask(story, petronella)
  await app.get(201, 'POST /app/api/share-token', { label: SOUGHT['label of a link'] })
  await addPhone(story, app)
  await app.get(200, 'PUT /app/api/user', { displayName: SOUGHT['new name'] })
  await addDevices(app)
  const report = { reason: 'other', text: SOUGHT['words of a report'] }
  await app.get(201, 'POST /app/api/report', { userId: bob.userId, ...report })
  await bob.app.get(201, 'POST /app/api/report', { userId: petronella.userId, ...report })
  const backend = await openBackend(house)
  await backend.get(200, `PUT ${atServer(petronella)}`, {
    externalId: SOUGHT['external id'],
    email: SOUGHT['unproven mail'],
    phone: `+${SOUGHT['unproven phone']}`,
  })
  return { petronella, bob, backend }
}

function atServer({ userId }: Person): string {
  return `/server/api/v1/users/id:${userId}`
}

/** With a key of the server API, made as the operator makes it. */
async function openBackend({ story, dataFolder, environment }: House): Promise<App> {
  const { serverApi } = story.server
  const args = ['create', '--name', 'test', '--scopes', 'users', '--url', serverApi]
  const program = [builtProgram('scripts/server-key'), ...args]
  const settings = { ...environment, CALLSIGN_DATA_DIR: dataFolder }
  const { stdout, stderr } = await runProgram(process.execPath, program, { environment: settings })
  const key = /csk_\w+/.exec(stdout)?.[0]
  if (key === undefined) throw new Error(stderr)
  const backend = new App(serverApi)
  backend.accessToken = key
  return backend
}

async function callUnanswered(caller: Person, callee: Person): Promise<void> {
  const { callId } = (await startCall(caller, [callee])).body
  await caller.app.get(200, `POST /app/api/call/${callId}/end`, {})
}

/** A request that waits, with a message, to a person who never answers. */
async function ask(story: Rehearsal, { app }: Person): Promise<void> {
  const carol = await registered(await story.signIn('carol@example.org'))
  const request = { targetUserId: carol.userId, message: SOUGHT['message of a request'] }
  await app.get(201, 'POST /app/api/friend-request/by-id', request)
}

async function addPhone(story: Rehearsal, app: App): Promise<void> {
  await story.prove(app, MAIL)
  const added = await app.get(202, 'POST /app/api/user/login-methods', { kind: 'phone', value: PHONE })
  const { text } = JSON.parse(await story.world.sms.smsTo(PHONE))
  const otp = /\b\d{6}\b/.exec(text)![0]
  await app.get(200, 'POST /app/api/verify', { challengeId: added.challengeId, otp })
}

async function addDevices(app: App): Promise<void> {
  await registered(app, { deviceInfo: { platform: 'android' }, push: { fcmToken: SOUGHT['token of FCM'] } })
  const keys = { p256dh: newPublicKeyOfBrowser(), auth: SOUGHT['web push secret'] }
  const webPush = { endpoint: SOUGHT['web push endpoint'], keys }
  await registered(app, { deviceInfo: { platform: 'web' }, push: { webPush } })
}

function newPublicKeyOfBrowser(): string {
  return Buffer.from(newPublicKey('P-256 X9.63'), 'base64').toString('base64url')
}

async function endByPerson({ petronella }: People): Promise<void> {
  await petronella.app.get(202, 'DELETE /app/api/user', { confirm: true })
}

async function endBySuspension({ petronella, backend }: People): Promise<void> {
  const suspension = { reason: 'other', note: SOUGHT['note of a suspension'] }
  await backend.get(200, `POST ${atServer(petronella)}/suspend`, suspension)
  await backend.get(202, `DELETE ${atServer(petronella)}`)
}

/** Eight days pass. Resolves when Bob's history has no name of Petronella. */
async function wait({ story, environment }: House, { bob: { app } }: People) {
  await story.restart('SIGTERM', { ...environment, ...shiftedClock(8 * DAY_MS) })
  app.take(await app.get(200, 'POST /app/api/refresh-token', { refreshToken: app.refreshToken }))
  for (let hasName = true; hasName; await setTimeout(PAUSE_MS)) {
    const { items } = await app.get(200, 'GET /app/api/call/history')
    if (items.length !== 2) throw new Error(`Bob remembers ${items.length} calls`)
    hasName = items.some(({ peers }: { peers: { displayName: string }[] }) => peers[0]!.displayName !== '')
  }
}

/** As the operator does: backs up, which asks for a compaction, and restarts. Resolves with the figures. */
async function compact(t: Test, { story, dataFolder, copy, environment }: House): Promise<Buffer> {
  const args = ['--data-dir', dataFolder, '--to', copy, '--compact']
  t.match(await runScript('backup', args), { code: 0 })
  await story.restart('SIGTERM', { ...environment, ...shiftedClock(8 * DAY_MS) })
  t.match(story.server.stderr(), /"event":"store-compacted"/)
  return Buffer.from(await (await fetch(`${story.server.admin}/metrics`)).text())
}

/** Statements of docs/run/privacy.md, by the database's owner. Until no segment has octets of earlier ones. */
async function vacuum(postgres: PostgresServer, url: string): Promise<void> {
  const page = readFileSync(join(PROJECT_ROOT, 'docs/run/privacy.md'), 'utf8').toLowerCase()
  const run = (text: string) => {
    assert(page.includes(text.replace(' as segments', '')), `the page lacks: ${text}`)
    return postgres.query<{ readonly segments: string }>(url, text)
  }
  // A transaction of any session, autovacuum's too, keeps rows that were removed before its end.
  await until(async () => {
    const said = await postgres.saidOf(url, 'vacuum (full, verbose)')
    return !said.some(line => /[1-9]\d* dead row versions cannot be removed/.test(line))
  })
  await run('alter system set wal_recycle = off')
  await run('select pg_reload_conf()')
  const [{ segments = '0' } = {}] = await run('select count(*) as segments from pg_ls_waldir()')
  for (let segment = 0; segment <= Number(segments); segment++) {
    await run('checkpoint')
    await run('select pg_switch_wal()')
  }
  await run('checkpoint')
  await run('alter system reset wal_recycle')
}

const PAUSE_MS = 50

t.test('the search finds a text in each form, and none that is not there', async t => {
  const search = new OctetSearch({ mail: MAIL })
  const plain = Buffer.from(MAIL)
  const behind = (before: number) =>
    Buffer.from(Buffer.from(`${'ab'.slice(0, before)}${MAIL}xyz`).toString('base64'))
  const planted = [
    plain,
    Buffer.from(plain.toString('hex')),
    Buffer.from(plain.toString('hex').toUpperCase()),
    Buffer.from(MAIL, 'utf16le'),
    Buffer.from(MAIL, 'utf16le').swap16(),
    ...[0, 1, 2].map(behind),
  ]
  for (const octets of planted)
    t.not(search.in(Buffer.concat([randomBytes(99), octets, randomBytes(99)]), '').length, 0)
  t.same(search.in(Buffer.concat([plain.subarray(1), randomBytes(99_999)]), ''), [])
})

t.test('nothing of an erased person is left on one machine', async t => {
  const house = await open(t)
  const { story, dataFolder } = house
  const people = await live(house)
  const search = new OctetSearch(SOUGHT)
  t.same(notFound(search.below(dataFolder)), [], 'the search finds all that is there in the clear')
  const logs = [story.server.stderr()]
  await endByPerson(people)
  await wait(house, people)
  logs.push(story.server.stderr())
  t.not(search.below(dataFolder).length, 0, 'it can still be read')
  const figures = await compact(t, house)
  await story.server.end()
  logs.push(story.server.stderr())
  assertNothing(t, search, house, [figures, ...logs.map(log => Buffer.from(log))])
})

t.test('nothing of an erased person is left with nodes', { skip: skipWithoutPostgres }, async t => {
  const postgres = await startPostgres(t)
  const url = await postgres.newDatabase()
  const house = await open(t, await nodeSettings(url))
  const { story, dataFolder } = house
  const people = await live(house)
  const search = new OctetSearch(SOUGHT)
  t.same(notFound(search.below(dataFolder)), [], 'the search finds all that is there in the clear')
  // A second after the changes.
  await until(async () => {
    await postgres.query(url, 'checkpoint')
    return notFound(search.below(join(postgres.dataFolder, 'base'))).length === 0
  })
  // As PostgreSQL does by itself in time.
  await postgres.query(url, 'analyze')
  const logs = [story.server.stderr()]
  await endBySuspension(people)
  await wait(house, people)
  logs.push(story.server.stderr())
  const figures = await compact(t, house)
  // PostgreSQL keeps the newest of its old changes, which may be the erasure's own.
  await people.bob.app.get(200, 'PUT /app/api/user', { displayName: 'Robert' })
  // Hours pass: for the changes, and for what the starts of the node have held back.
  await postgres.query(url, `update callsign.changes set at = at - interval '1 day'`)
  await postgres.query(url, `update callsign.holds set ends = ends - interval '1 day'`)
  await until(async () => {
    const rows = await postgres.query(
      url,
      `select from callsign.changes where at < now() - interval '23 hours'`,
    )
    return rows.length <= 1
  })
  await story.server.end()
  logs.push(story.server.stderr())
  t.not(
    search.below(join(postgres.dataFolder, 'base')).length,
    0,
    'it can still be read in PostgreSQL’s files',
  )
  await vacuum(postgres, url)
  assertNothing(t, search, house, [figures, ...logs.map(log => Buffer.from(log))])
  t.same(search.below(postgres.dataFolder), [], 'PostgreSQL')
})

/** Texts that a store holds in the clear, and that were not found. */
function notFound(found: readonly Find[]): string[] {
  const clear = [
    'mail',
    'phone',
    'new name',
    'token of APNs',
    'VoIP token',
    'token of FCM',
    'web push endpoint',
  ]
  return clear.filter(name => !found.some(find => find.startsWith(`${name} plain in`)))
}

function assertNothing(
  t: Test,
  search: OctetSearch,
  { dataFolder, copy }: House,
  said: readonly Buffer[],
): void {
  t.same(search.below(dataFolder), [], 'the data directory')
  t.same(search.below(copy), [], 'the backup')
  t.same(
    said.flatMap(octets => search.in(octets, 'figures and log lines')),
    [],
  )
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await setTimeout(PAUSE_MS)
}
