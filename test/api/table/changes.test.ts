/**
 * Every change of the store is all or nothing and a function of what it is given: a success story of each operation and
 * of each command of the actors, in the whole application. Each change runs with a fault at every one of its writes,
 * after which every row must be as it was, and twice to its end (test/support/rehearsal-store.ts).
 *
 * What there is comes from the code's own tables, unions and lines: a new operation, kind or place that changes the
 * store fails this test until a story here covers it.
 */

import { decode } from 'msgpackr'
import t from 'tap'
import type { OutboxCommand, WebhookCommand } from '../../../actors/messages.ts'
import { outboxKind, type TooLate } from '../../../actors/outbox.ts'
import { webhookKind } from '../../../actors/webhook.ts'
import { OPERATIONS } from '../../../src/api/operations.ts'
import { SERVER_OPERATIONS } from '../../../src/api/server-api/operations.ts'
import type { OperationForm } from '../../../src/api/table/operation.ts'
import type { DeliveryOutcome, Skipped } from '../../../src/delivery/outcome.ts'
import type { WebhookOutcome } from '../../../src/delivery/webhook.ts'
import type { CallCommand } from '../../../src/domain/calls/call-command.ts'
import type { DeferredTask } from '../../../src/domain/contacts/deferred-task.ts'
import type { DeviceId, UserId } from '../../../src/domain/ids.ts'
import type { OutboxMessage } from '../../../src/domain/messages/outbox-message.ts'
import type { WebhookEventKind } from '../../../src/domain/operators/webhook-event.ts'
import { deriveSecrets } from '../../../src/domain/secrets.ts'
import { SignalError } from '../../../src/errors.ts'
import { IndexStore, type LeafBatch, type MapRows } from '../../../src/keyserver/index/index-store.ts'
import { LogStore } from '../../../src/keyserver/log-store.ts'
import { TreeTail } from '../../../src/log/integrate.ts'
import { signInAnswerMessage } from '../../../src/log/signing-messages.ts'
import { WEBHOOK_KINDS } from '../../../src/schema/webhook.ts'
import { EXPIRY } from '../../../src/store/engine/expiries.ts'
import { OutboxStore } from '../../../src/store/messages/outbox-store.ts'
import { WebhookQueue } from '../../../src/store/operators/webhook-queue.ts'
import { Sealed } from '../../../src/store/tables/sealed.ts'
import type { Send } from '../../support/application.ts'
import { Authenticator } from '../../support/authenticator.ts'
import {
  listBody,
  newPhone as listedPhone,
  listOf,
  registrationOf,
  signWith,
} from '../../support/device-lists.ts'
import { newKey } from '../../support/device-requests.ts'
import { membersOf } from '../../support/key-members.ts'
import { openLog } from '../../support/log-in-store.ts'
import { MemoryClient } from '../../support/memory-client.ts'
import { connectFrame } from '../../support/naive-client.ts'
import { headerOf } from '../../support/naive-stomp.ts'
import { OidcProvider } from '../../support/oidc-provider.ts'
import { changeSites, type ProvenChange, ProvenChanges } from '../../support/proven-changes.ts'
import { openServerApi } from '../../support/server-api.ts'
import { storedTable } from '../../support/stored-table.ts'
import { openTestApi } from '../../support/test-api.ts'

type Kind<Union extends { readonly kind: string }> = Union['kind']

/** Every kind of command to a call; a hint is never written. */
const CALL_COMMANDS: Readonly<Record<Kind<CallCommand>, 'written' | 'hint'>> = {
  start: 'written',
  invite: 'written',
  join: 'written',
  'request-rejoin': 'written',
  rejoin: 'written',
  ringing: 'written',
  leave: 'written',
  end: 'written',
  decline: 'written',
  remove: 'written',
  'accept-rejoin': 'written',
  keys: 'written',
  'device-online': 'written',
  'device-offline': 'written',
  'device-seen': 'hint',
  'device-signed-out': 'written',
  'device-removed': 'written',
  deadline: 'written',
  'inviter-blocked': 'written',
  'account-ended': 'written',
  'account-suspended': 'written',
  'media-admitted': 'written',
  'media-feeds': 'written',
  'media-lost': 'written',
  'operator-end': 'written',
  'operator-remove': 'written',
}
const DEFERRED_TASKS: Readonly<Record<Kind<DeferredTask>, true>> = {
  search: true,
  request_made: true,
  request_gone: true,
  renamed: true,
  circle_gone: true,
}
const OUTCOMES: Readonly<Record<Kind<DeliveryOutcome | Skipped | TooLate>, true>> = {
  sent: true,
  retry: true,
  refused: true,
  'token-gone': true,
  'token-unknown': true,
  skipped: true,
  'too-late': true,
}
/** Operations that only read, besides all GETs. */
const READS = [
  'resolveShareToken',
  'passkeyOptions',
  'newPasskeyOptions',
  'testWebhook',
  'createUserToken',
  'lookUpKeys',
]
/** GETs that leave a row of the audit. */
const AUDITED_READS = ['exportUserByRef']
/** Run by commands of an operator, before there are requests, or by the answer of a push provider or the login check. */
const SITES_ELSEWHERE =
  /^src\/(?:check\/log\/repair|store\/engine\/leased-store|server\/(?:fronts\/front-desks|writer\/(?:application|login-check|webhooks|writes))):/

interface Phone {
  readonly email: string
  readonly userId: UserId
  readonly deviceId: DeviceId
  readonly publicKey: string
  readonly token: string
  readonly refreshToken: string
}

interface Asking {
  readonly token?: string
  readonly body?: unknown
  /** In place of the `{name}` segments of the path. */
  readonly params?: readonly unknown[]
  /** From its question mark on. */
  readonly query?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly address?: readonly number[]
}

const google = await OidcProvider.start({ nowMs: () => Date.UTC(2026, 0, 1), algorithm: 'ES256' })
t.teardown(() => google.stop())
let register: (...key: Parameters<typeof log.register>) => ReturnType<typeof log.register>
/** Effects of decisions that were written, by which `onDecided` knows them again. */
const applied = new Set<unknown>()
const covered = new Set<string>()
const whole = await openTestApi(t, {
  rates: true,
  config: { stepUpS: 600, providers: [{ name: 'google', issuer: google.issuer, clientIds: ['us'] }] },
  register: (...key) => register(...key),
  onDecided: ({ kind }, _, effects) =>
    void covered.add(`call command ${kind}, ${applied.has(effects) ? 'written' : 'hint'}`),
})
const { world, application, stores, system } = whole
const serverApi = await openServerApi(whole)
const proven = new ProvenChanges(world)
const log = await openLog(world.database)
register = log.register
t.teardown(() => log.system.drainAndStop(5_000))

const apply = stores.calls.apply.bind(stores.calls)
stores.calls.apply = (decision, ...more) => {
  applied.add(decision.effects)
  return apply(decision, ...more)
}
const peers: MemoryClient[] = []

// The outbox; this test is its provider.

const sent: OutboxMessage[] = []
const tried: Kind<DeliveryOutcome | Skipped | TooLate>[] = []
let outcome: DeliveryOutcome | Skipped = { kind: 'sent' }
const outboxOf = system.define<OutboxCommand>(
  outboxKind({
    queueOf: lane => application.outbox.queue(lane),
    async send(message) {
      sent.push(message)
      return outcome
    },
    onTried: (_, { kind }) => tried.push(kind),
    onNotWritten: error => {
      throw error
    },
  }),
)
world.database.subscribe('outbox-news', ({ lane }) => outboxOf(lane).tell({ kind: 'wake' }))

// The actors of webhooks; this test is their endpoint.

let webhookOutcome: WebhookOutcome = { kind: 'sent' }
const webhookKinds = new Set<WebhookEventKind>()
const webhookOf = system.define<WebhookCommand>(
  webhookKind({
    queueOf: endpointId => new WebhookQueue(world.database, stores.webhooks, endpointId),
    async send(_, __, { event }) {
      webhookKinds.add(event.kind)
      return webhookOutcome
    },
    onTried: () => undefined,
    onDied: () => undefined,
    onNotWritten: error => {
      throw error
    },
  }),
)
world.database.subscribe('webhook-news', ({ endpointId }) =>
  webhookOf(`${endpointId}`).tell({ kind: 'wake' }),
)

function otpFor(email: string): string {
  const mails = sent.flatMap(message =>
    message.channel === 'mail' && message.to === email && message.letter.kind === 'otp'
      ? [message.letter.otp]
      : [],
  )
  return mails.at(-1)!
}

/** Until everything that is under way has come to its end. */
async function quiet(): Promise<void> {
  for (let round = 0; round < 3; round++) {
    await stores.deviceInbox.settleNow()
    for (let turn = 0; turn < 4; turn++) await new Promise(resolve => setImmediate(resolve))
    for (const peer of peers) if (!peer.isClosed) peer.flush()
  }
}

/** The changes that `act` makes. */
async function changesOf(act: () => unknown): Promise<readonly ProvenChange[]> {
  await quiet()
  proven.take()
  await act()
  await quiet()
  return proven.take()
}

function isAskedBy({ sites }: ProvenChange, file: string): boolean {
  return sites.some(site => site.startsWith(`${file}:`))
}

/** The body of the answer to a request that succeeds. */
// biome-ignore lint/suspicious/noExplicitAny: answers of any form
async function ask(id: string, asking?: Asking): Promise<any> {
  const operation = OPERATIONS.find(each => each.id === id)!
  return askBy(whole.send, operation, `operation ${id}`, asking)
}

/** The same of the server API, by a key of all scopes or as the operator's command. */
// biome-ignore lint/suspicious/noExplicitAny: answers of any form
async function askServer(id: string, asking?: Asking): Promise<any> {
  const operation = SERVER_OPERATIONS.find(each => each.id === id)!
  return askBy(serverApi.send, operation, `server operation ${id}`, asking)
}

async function askBy(
  send: Send,
  operation: OperationForm,
  name: string,
  { params = [], query = '', ...request }: Asking = {},
): Promise<unknown> {
  let at = 0
  const path = operation.path.replaceAll(/\{\w+\}/g, () => encodeURIComponent(String(params[at++])))
  let body: unknown
  const changes = await changesOf(async () => {
    const answer = await send(`${operation.method} ${path}${query}`, request)
    if (answer.status >= 300) throw new Error(`${name}: ${answer.text}`)
    body = answer.body
  })
  // Each request of a session may note that its tokens are used.
  const own = changes.filter(each => !isAskedBy(each, 'src/server/application-stores'))
  if (isRead(operation)) t.same(own, [], `${name} only reads`)
  if (isRead(operation) || own.length > 0) covered.add(name)
  return body
}

function isRead({ id, method }: { readonly id: string; readonly method: string }): boolean {
  return (method === 'GET' && !AUDITED_READS.includes(id)) || READS.includes(id)
}

// People, each with a device.

let count = 0

async function signIn(email: string) {
  const address = [10, 0, 0, ++count]
  const { challengeId } = await ask('login', { body: { email }, address })
  const otp = otpFor(email)
  const { accessToken, refreshToken, challenge, user, sessionId } = await ask('verifyLogin', {
    body: { challengeId, otp },
    address,
  })
  return { userId: BigInt(user.userId) as UserId, token: accessToken, refreshToken, challenge, sessionId }
}

async function newPhone(name: string): Promise<Phone> {
  const email = `${name}@example.org`
  const session = await signIn(email)
  const publicKey = newKey()
  const body = { publicKey, push: { fcmToken: `token-of-${name}` } }
  const { deviceId } = await ask('registerDevice', { token: session.token, body })
  return { ...session, email, publicKey, deviceId: BigInt(deviceId) as DeviceId }
}

async function proveByCode({ token, email }: Phone): Promise<void> {
  const { challenge } = await ask('stepUp', { token, body: { send: 'code' } })
  const otp = otpFor(email)
  await ask('stepUp', { token, body: { challengeId: challenge.challengeId, otp } })
}

async function befriend(one: Phone, other: Phone): Promise<void> {
  await ask('requestById', { token: one.token, body: { targetUserId: other.userId } })
  await endAll()
  await ask('acceptRequest', { token: other.token, body: { userId: one.userId } })
}

/** Ends expired rows, one in a change. */
async function endAll(): Promise<void> {
  const [expiries, tasks] = [storedTable('expiries'), storedTable('errands')]
  for (;;) {
    const [key] = world.database.view(view => [...view.keys(expiries, { limit: 1 })])
    if (key === undefined || Buffer.from(key).readUIntBE(0, 6) > world.nowMs()) return
    const kind = Object.entries(EXPIRY).find(([, number]) => number === key[6])?.[0]
    const [task] = world.database.view(view => [...view.range(tasks, { limit: 1 })])
    proven.take()
    await application.expire(1)
    const change = proven.take().find(each => isAskedBy(each, 'src/store/engine/expiries'))
    const others = [...change!.tables].filter(name => name !== 'expiries' && name !== 'errands')
    if (kind === 'deferredTask') {
      if (others.length > 0) covered.add(`task ${decode(taskSeal.open(decode(task!.value))!).kind}`)
    } else if (others.length > 0) covered.add(`ending ${kind}`)
  }
}

const taskSeal = new Sealed(world.secrets, world.randomBytes, 'errand')

function connect({ token }: Phone): MemoryClient {
  const peer = new MemoryClient(whole.signalling.accept, {})
  peers.push(peer)
  peer.write(connectFrame(token))
  return peer
}

// Calls.

function keysFor(phones: readonly Phone[], fill = 1): Record<string, string> {
  const keyOf = (at: number) => Buffer.alloc(113, fill + at).toString('base64')
  return Object.fromEntries(phones.map(({ userId, deviceId }, at) => [`${userId}_${deviceId}`, keyOf(at)]))
}

function calleesOf(phones: readonly Phone[]) {
  return { calleeIds: phones.map(({ userId }) => userId), encryptedAESKeys: keysFor(phones) }
}

async function startCall(by: Phone, ...callees: Phone[]): Promise<string> {
  const headers = { 'idempotency-key': `call ${++count}`.replace(' ', '-') }
  const body = { ...calleesOf(callees), isVideo: false }
  return (await ask('startCall', { token: by.token, body, headers })).callId
}

let ann: Phone
let bob: Phone
let cid: Phone
let dan: Phone
let eve: Phone

/** Hears of all that follows, so that every event of it is written, sent and settled in these changes. */
let webhookId: string
t.test('the server API: an endpoint of webhooks', async () => {
  webhookId = (await askServer('createWebhook', { body: { url: 'http://127.0.0.1:9/' } })).id
  await askServer('rotateWebhookSecret', { params: [webhookId] })
})

t.test('accounts, devices and contacts', async () => {
  ;[ann, bob, cid] = [await newPhone('ann'), await newPhone('bob'), await newPhone('cid')]
  ;[dan, eve] = [await newPhone('dan'), await newPhone('eve')]
  await ask('refreshToken', { body: { refreshToken: eve.refreshToken } })
  const { challengeId } = await ask('login', { body: { email: 'fay@example.org' } })
  world.tick(60_000)
  await ask('resendOtp', { body: { challengeId } })
  await ask('verify', { body: { challengeId, otp: otpFor('fay@example.org') } })
  for (const id of ['getUser', 'listLoginMethods', 'listDevices', 'getCredentials']) await ask(id, ann)
  await ask('createUserToken', { token: ann.token, body: { audience: 'reports' } })
  await ask('putUser', { token: ann.token, body: { displayName: 'Ann Lee' } })
  await ask('putPushTokens', { token: ann.token, body: { fcmToken: 'a-newer-token' } })
  await proveByCode(ann)
  const added = await ask('addLoginMethod', {
    token: ann.token,
    body: { kind: 'email', value: 'ann@home.example' },
  })
  const otp = otpFor('ann@home.example')
  const { user } = await ask('verify', { token: ann.token, body: { challengeId: added.challengeId, otp } })
  const { id } = user.loginMethods.find(({ primary }: { primary: boolean }) => !primary)
  await ask('setPrimaryLoginMethod', { token: ann.token, body: { id } })
  await ask('removeLoginMethod', { token: ann.token, params: [user.primaryMethodId] })
  const authenticator = new Authenticator()
  const { options } = await ask('newPasskeyOptions', ann)
  await ask('addPasskey', { token: ann.token, body: { credential: authenticator.create(options) } })
  await ask('passkeyOptions', ann)
  const forSignIn = (await ask('passkeyOptions', {})).options
  await ask('loginPasskey', { body: { credential: authenticator.get(forSignIn) } })
  const here = await signIn('fay@example.org')
  const there = await signIn('fay@example.org')
  await ask('listSessions', here)
  await ask('endSession', { token: here.token, params: [there.sessionId] })
  await ask('endOtherSessions', here)
  const idToken = await google.idToken('us', { sub: 'gus' })
  const claim = { platform: 'google', idToken }
  await ask('platformLogin', { body: claim })
  const another = await google.idToken('us', { sub: 'ann' })
  await ask('addLoginMethod', {
    token: ann.token,
    body: { kind: 'social', provider: 'google', idToken: another },
  })
  await ask('login', { body: { phone: '+84912345678' } })

  for (const other of [bob, cid, eve]) await befriend(ann, other)
  const headers = { 'idempotency-key': 'a-share-token' }
  const token = await ask('createShareToken', { token: ann.token, body: {}, headers })
  await ask('listShareTokens', ann)
  await ask('drawShareToken', { token: ann.token, params: [token.id] })
  await ask('resolveShareToken', { token: dan.token, body: { token: token.token } })
  const asked = await ask('requestByToken', { token: dan.token, body: { token: token.token } })
  await ask('listRequests', ann)
  await ask('declineRequest', { token: ann.token, body: { requestId: asked.requestId } })
  await ask('revokeShareToken', { token: ann.token, params: [token.id] })
  await ask('requestBySearch', { token: bob.token, body: { email: cid.email } })
  await endAll()
  const first = await ask('requestById', { token: bob.token, body: { targetUserId: dan.userId } })
  await ask('cancelRequest', { token: bob.token, body: { requestId: first.requestId } })
  await endAll()
  const second = await ask('requestById', { token: bob.token, body: { targetUserId: dan.userId } })
  await ask('cancelRequestAt', { token: bob.token, params: [second.requestId] })
  // Dan's request that she declined is open to Dan: her own makes them contacts.
  await ask('requestById', { token: ann.token, body: { targetUserId: dan.userId } })
  await ask('listContacts', ann)
  await ask('renameContact', { token: ann.token, params: [bob.userId], body: { alias: 'Bobby' } })
  await ask('putUser', { token: bob.token, body: { displayName: 'Robert' } })
  await endAll()
  await ask('removeContact', { token: bob.token, params: [ann.userId] })
  await befriend(bob, ann)
  await ask('readPublicKeys', ann)
})

t.test('calls', async () => {
  const line = connect(bob)
  let callId = await startCall(ann, bob, cid)
  await changesOf(() => line.write(`SEND\ndestination:/app/call/${callId}/ringing\n\n\0`))
  for (const id of ['getCall', 'getParticipants']) await ask(id, { ...bob, params: [callId] })
  await ask('getPendingCalls', bob)
  await ask('joinCall', { token: bob.token, params: [callId] })
  await changesOf(() => line.drop())
  await changesOf(() => connect(bob))
  await ask('inviteToCall', { token: ann.token, params: [callId], body: calleesOf([dan]) })
  await ask('declineCall', { token: dan.token, params: [callId] })
  await ask('joinCall', { token: cid.token, params: [callId] })
  const keyMembers = membersOf([ann, bob, cid])
  const keys = { epoch: 2, reason: 'rotation', encryptedAESKeys: keysFor([bob, cid], 7), keyMembers }
  await ask('sendKeys', { token: ann.token, params: [callId], body: keys })
  await ask('getKeyMembers', { token: bob.token, params: [callId], query: '?epoch=2' })
  await ask('requestRejoin', { token: cid.token, params: [callId] })
  const { userId: requesterUserId, deviceId: requesterDeviceId } = cid
  const encryptedAESKey = Buffer.alloc(113, 9).toString('base64')
  const body = { requesterUserId, requesterDeviceId, encryptedAESKey }
  await ask('acceptRejoin', { token: ann.token, params: [callId], body })
  await ask('leaveCall', { token: cid.token, params: [callId] })
  await ask('rejoinCall', { token: cid.token, params: [callId] })
  await ask('removeFromCall', { token: ann.token, params: [callId], body: { userId: cid.userId } })
  await ask('endCall', { token: ann.token, body: { callId } })

  callId = await startCall(ann, bob)
  await ask('endCallAt', { token: ann.token, params: [callId] })
  callId = await startCall(ann, bob)
  const room = whole.rooms.of(callId)
  const devices = [{ userId: ann.userId, deviceId: ann.deviceId }]
  const { roomId } = await ask('getCall', { token: ann.token, params: [callId] })
  await changesOf(() => room.tellControl({ kind: 'media-admitted', gateway: 'janus', roomId, devices }))
  await changesOf(() =>
    room.tellControl({ kind: 'media-feeds', gateway: 'janus', roomId, device: devices[0]!, feedIds: [77] }),
  )
  await changesOf(() => room.tellControl({ kind: 'media-lost' }))
  world.tick(70_000)
  await changesOf(() => system.ref('call-room', callId).tell({ kind: 'deadline' }))
  await startCall(ann, bob)
  const crossing = { token: bob.token, body: { ...calleesOf([ann]), isVideo: false } }
  await changesOf(() => whole.send('POST /app/api/call/start', crossing))
  world.tick(11_000)
  callId = await startCall(bob, ann)
  await ask('endCallAt', { token: bob.token, params: [callId] })
  await ask('listCallHistory', bob)
  await ask('markCallHistorySeen', bob)
  await ask('forgetCall', { token: bob.token, params: [callId] })
  await ask('forgetCallHistory', bob)

  await startCall(ann, dan)
  await ask('blockUser', { token: dan.token, body: { userId: ann.userId } })
  await ask('listBlocks', dan)
  await ask('unblockUser', { token: dan.token, body: { userId: ann.userId } })
  await ask('blockUser', { token: dan.token, body: { userId: ann.userId } })
  await ask('unblockUserAt', { token: dan.token, params: [ann.userId] })

  callId = await startCall(ann, bob, cid, eve)
  await ask('joinCall', { token: bob.token, params: [callId] })
  await ask('joinCall', { token: cid.token, params: [callId] })
  await ask('logout', bob)
  await ask('removeDevice', { token: cid.token, params: [cid.deviceId] })
  await proveByCode(eve)
  await ask('exportUser', eve)
  await ask('deleteUser', { token: eve.token, body: { confirm: true } })
})

t.test('device lists', async t => {
  const { userId, token, challenge } = await signIn('lou@example.org')
  const phone = listedPhone('lou')
  const first = listOf(userId, [phone])
  const body = registrationOf(phone, challenge, first)
  await ask('registerDevice', { token, body })
  await ask('registerDevice', { token, body })
  const second = listOf(userId, [phone], { previous: first })
  await ask('putDeviceList', { token, body: listBody(second), headers: { 'if-match': '"0"' } })
  await ask('readDeviceLists', { token })
  register = async () => {
    throw new SignalError('TOO_MANY_KEYS', 'ordered by a test')
  }
  const refused = { token, body: listBody(listOf(userId, [phone], { previous: second })) }
  await changesOf(async () => {
    const headers = { 'if-match': '"1"' }
    t.equal((await whole.send('PUT /app/api/user/device-list', { ...refused, headers })).status, 409)
  })
  register = log.register
})

t.test('requests that are refused after a change, and work finished at a start', async t => {
  const gus = await newPhone('gus')
  const { token } = gus
  const lost = { publicKey: newKey() }
  await changesOf(async () => {
    register = async (...key) => {
      await log.register(...key)
      throw new SignalError('LOG_UNAVAILABLE', 'ordered by a test')
    }
    t.equal((await whole.send('POST /app/api/register_device', { token, body: lost })).status, 503)
    // The log has the key already, and writes nothing alongside.
    register = (userId, deviceId, publicKey) => log.register(userId, deviceId, publicKey)
    await ask('registerDevice', { token, body: { publicKey: newKey() } })
    register = async (...key) => {
      await log.register(...key)
      return new Promise(() => undefined)
    }
    void whole.send('POST /app/api/register_device', { token, body: lost })
    await quiet()
    register = log.register
    t.match(await application.registration.repairPending(), { finished: 1 })
    await ask('registerDevice', { token, body: { publicKey: gus.publicKey } })
    const unknown = { token: `c_${'A'.repeat(22)}` }
    t.equal((await whole.send('POST /app/api/share-token/resolve', { token, body: unknown })).status, 404)
    world.tick(601_000)
    const value = { kind: 'email', value: 'gus@home.example' }
    const { body } = await whole.send('POST /app/api/user/login-methods', { token, body: value })
    await quiet()
    const { challengeId } = body.challenge
    await ask('verify', { token, body: { challengeId, otp: otpFor(gus.email) } })
  })
  const [device] = world.database.view(view => stores.devices.activeDevicesOf(view, ann.userId))
  const owner = { userId: ann.userId, deviceId: device!.deviceId }
  await world.database.change(change => stores.devices.setApnsEnvironment(change, owner, 'production'))
  const { fcmToken = '' } = device?.push ?? {}
  const gone = { name: 'fcmToken', token: fcmToken, verdict: 'gone', atMs: world.nowMs() + 1 } as const
  await world.database.change(change => stores.devices.judgeToken(change, owner, gone))
  await world.database.change(change => stores.inbox.renewEpochs(change))
  await befriend(dan, ann)
  const callId = await startCall(ann, dan)
  const calls = storedTable('calls')
  await world.database.change(change => {
    const [row] = change.range(calls, { limit: 1 })
    const otherSecret = Uint8Array.from(row!.value)
    otherSecret[otherSecret.length - 1]! ^= 1
    change.put(calls, Buffer.alloc(8, 1), otherSecret)
  })
  t.ok([...stores.calls.live()].some(call => String(call.callId) === callId))
  await quiet()
  t.notOk(
    world.database.view(view => view.has(calls, Buffer.alloc(8, 1))),
    'a call that another secret has sealed is gone',
  )
})

t.test('connections', async t => {
  await endAll()
  const line = connect(dan)
  await quiet()
  line.take()
  const write = (text: string) => changesOf(() => line.write(`${text}\0`))
  const marked = [
    ...(await write('SUBSCRIBE\nid:0\ndestination:/user/queue/calls\nack:client-individual\n\n')),
    ...(await write('SUBSCRIBE\nid:1\ndestination:/user/queue/dev.notes\nack:client-individual\n\n')),
    ...(await changesOf(() =>
      system.ref('stomp-connection', line.id).tell({ kind: 'timer', timer: 'mark' }),
    )),
  ]
  const [invitation] = line.take()
  t.ok(
    marked.some(each => isAskedBy(each, 'src/store/messages/inbox-writes')),
    'what was delivered is marked',
  )
  const acknowledged = await write(`ACK\nid:${headerOf(invitation, 'ack')}\nreceipt:1\n\n`)
  t.ok(
    acknowledged.some(({ tables }) => tables.has('inbox-groups') || tables.has('inbox-settled')),
    'what is acknowledged goes',
  )
  const kept = await write('SEND\ndestination:/user/queue/dev.notes\nreceipt:2\n\nhello')
  t.ok(
    kept.some(({ tables }) => tables.has('inbox-live')),
    'what is sent to an own queue is kept',
  )
  t.same(
    line.take().map(frame => frame.command),
    ['RECEIPT', 'MESSAGE', 'RECEIPT'],
  )
  line.write('SEND\ndestination:/user/queue/dev.notes\n\nnobody acknowledges it\0')
  t.ok(
    (await changesOf(() => world.advance(60_000))).some(each =>
      isAskedBy(each, 'src/store/messages/inbox-store'),
    ),
    'what is live for a minute moves',
  )
})

t.test('the outbox', async () => {
  const outcomes: readonly (DeliveryOutcome | Skipped)[] = [
    { kind: 'sent' },
    { kind: 'refused', reason: 'unknown' },
    { kind: 'token-gone', reason: 'unknown' },
    { kind: 'token-unknown', reason: 'unknown' },
    { kind: 'skipped' },
    { kind: 'retry', reason: 'busy', isOfMessage: true },
  ]
  const settled = async (act: () => unknown) => {
    tried.length = 0
    const changes = await changesOf(act)
    const isWritten = changes.some(each => isAskedBy(each, 'src/store/messages/outbox-store'))
    if (isWritten) for (const kind of tried) covered.add(`outcome ${kind}`)
  }
  for (const each of outcomes) {
    outcome = each
    await settled(() => whole.send('POST /app/api/login', { body: { email: `${each.kind}@example.org` } }))
  }
  await settled(() => {
    world.tick(3_600_000)
    outboxOf('mail').tell({ kind: 'wake' })
  })
  const others = new OutboxStore(world.database, deriveSecrets(Buffer.alloc(32, 1)), world.randomBytes)
  const message = sent.find(({ channel }) => channel === 'mail')!
  await changesOf(() => world.database.change(change => others.add(change, message)))
  outcome = { kind: 'sent' }
})

t.test('sign-ins that wait', async t => {
  const { userId, challenge, ...mia } = await signIn('mia@example.org')
  let { token } = mia
  const phone = listedPhone('mia')
  await ask('registerDevice', { token, body: registrationOf(phone, challenge, listOf(userId, [phone])) })
  const enter = async () => {
    const address = [10, 0, 0, ++count]
    const { challengeId } = await ask('login', { body: { email: 'mia@example.org' }, address })
    const body = { challengeId, otp: otpFor('mia@example.org') }
    let waitingId = ''
    await changesOf(async () => {
      waitingId = (await whole.send('POST /app/api/verify-login', { body, address })).body.waitingId
    })
    return waitingId
  }
  const answer = async (approve: boolean) => {
    const [{ id }] = (await ask('listWaitingSignIns', { token })).items
    const message = signInAnswerMessage(userId, Buffer.from(id, 'base64url'), approve)
    const signature = Buffer.from(signWith(phone.signer, message)).toString('base64')
    await ask('answerWaitingSignIn', { token, params: [id], body: { approve, signature } })
  }
  const waitingId = await enter()
  world.tick(24 * 3_600_000)
  await endAll()
  t.ok(covered.has('ending waitingSignIn'), 'the owner is told once more')
  token = (await ask('refreshToken', { body: { refreshToken: mia.refreshToken } })).accessToken
  await answer(true)
  await ask('fetchWaitingLogin', { body: { waitingId } })
  await enter()
  await answer(false)
})

t.test('reports, and the work of moderators', async () => {
  const { token } = await signIn('ray@example.org')
  await ask('listReportReasons', { token })
  const report = { userId: ann.userId, callId: 1n, reason: 'threat', text: 'At night' }
  const { reportId } = await ask('reportUser', { token, body: report })
  await askServer('listReports')
  await askServer('getReport', { params: [reportId] })
  await askServer('changeReport', { params: [reportId], body: { state: 'resolved', note: 'Talked to' } })
  await askServer('startConsoleSession')
  await askServer('listAudit')
  const targets = [{ publicKeyHash: Buffer.alloc(64).toString('base64') }]
  await askServer('lookUpKeys', { body: { targets } })
})

t.test('the server API: keys', async () => {
  const body = { name: 'backend', scopes: ['users'] }
  const { id } = await askServer('createServerKey', { body })
  await askServer('listServerKeys')
  await askServer('revokeServerKey', { params: [id] })
})

t.test('the server API: users', async () => {
  const [nina, otto] = [await newPhone('nina'), await newPhone('otto')]
  await befriend(nina, otto)
  await startCall(nina, otto)
  const body = { displayName: 'Olga', email: 'olga@example.org', phone: '+84912345679' }
  await askServer('putUser', { params: ['ext:olga'], body })
  await askServer('putUser', { params: ['ext:olga'], body: { displayName: 'Olga Lee', phone: '' } })
  for (const id of ['listUsers', 'listUserChanges']) await askServer(id)
  for (const id of ['getUser', 'listUserSessions', 'listUserDevices', 'listUserCalls'])
    await askServer(id, { params: [`id:${nina.userId}`] })
  const file = Buffer.from('{"ref":"ext:olga","reachable":"all"}\nnothing\n{"ref":"ext:pia"}\n')
  await askServer('importUsers', { body: file, headers: { 'content-type': 'application/x-ndjson' } })
  await askServer('signOutUser', { params: [`id:${nina.userId}`] })
  await askServer('deleteUser', { params: [`id:${nina.userId}`] })
  await askServer('deleteUser', { params: ['ext:olga'], query: '?now=true' })
})

t.test('the server API: signing in a user that it has made, and suspending one', async () => {
  await askServer('putUser', { params: ['ext:quinn'], body: { displayName: 'Quinn' } })
  const { token } = await askServer('createSignInToken', { params: ['ext:quinn'] })
  await ask('login', { body: { verified: true, signInToken: token } })
  const [rita, sam] = [await newPhone('rita'), await newPhone('sam')]
  await befriend(rita, sam)
  const callId = await startCall(rita, sam)
  await ask('joinCall', { token: sam.token, params: [callId] })
  const params = [`id:${sam.userId}`]
  const untilAt = new Date(world.nowMs() + 86_400_000).toISOString()
  await askServer('suspendUser', { params, body: { reason: 'abuse', untilAt } })
  await askServer('unsuspendUser', { params })
  await askServer('suspendUser', { params, body: { reason: 'abuse', untilAt } })
})

t.test('the server API: contacts, circles and calls', async () => {
  const [tom, uma, vic] = [await newPhone('tom'), await newPhone('uma'), await newPhone('vic')]
  const [a, b] = [`id:${tom.userId}`, `id:${uma.userId}`]
  await askServer('linkContacts', { body: { a, b } })
  await askServer('unlinkContacts', { query: `?a=${a}&b=${b}` })
  for (const { userId } of [tom, uma, vic])
    await askServer('addCircleMember', { params: ['team', `id:${userId}`] })
  await askServer('listCircleMembers', { params: ['team'] })
  const callId = await startCall(tom, uma, vic)
  await askServer('listCalls')
  await askServer('removeUserFromCall', { params: [callId], body: { ref: `id:${vic.userId}` } })
  await askServer('getCallOfUsers', { params: [callId] })
  await askServer('endCallOfUsers', { params: [callId] })
  await askServer('removeCircleMember', { params: ['team', `id:${vic.userId}`] })
  await askServer('endCircle', { params: ['team'] })
})

t.test('the server API: an export', async () => {
  const { userId } = await signIn('ned@example.org')
  await askServer('exportUserByRef', { params: [`id:${userId}`] })
})

t.test('the server API: webhooks', async t => {
  await askServer('listWebhooks')
  await askServer('testWebhook', { params: [webhookId] })
  const { id: other } = await askServer('createWebhook', { body: { url: 'http://127.0.0.1:9/' } })
  webhookOutcome = { kind: 'retry', reason: 'http-500' }
  await newPhone('wes')
  webhookOutcome = { kind: 'hopeless', reason: 'too-large' }
  await newPhone('wyn')
  await askServer('deleteWebhook', { params: [other] })
  const { items } = await askServer('listDeadWebhooks', { params: [webhookId] })
  t.ok(items.length > 2)
  webhookOutcome = { kind: 'sent' }
  await askServer('retryWebhooks', { params: [webhookId], body: { from: items[0].seq } })
  webhookOutcome = { kind: 'hopeless', reason: 'too-large' }
  await newPhone('wil')
  webhookOutcome = { kind: 'gone' }
  await newPhone('wim')
  t.same((await askServer('listWebhooks')).items[0].state, 'gone')
  webhookOutcome = { kind: 'sent' }
  await askServer('retryWebhooks', { params: [webhookId], body: {} })
  webhookOutcome = { kind: 'hopeless', reason: 'too-large' }
  await newPhone('wes-again')
  webhookOutcome = { kind: 'sent' }
})

t.test('endings', async () => {
  for (const days of [1, 8, 90, 400]) {
    world.tick(days * 86_400_000)
    await endAll()
  }
  let { refreshToken } = await signIn('hal@example.org')
  for (let refreshes = 0; refreshes < 8; refreshes++) {
    world.tick(45 * 86_400_000)
    await endAll()
    refreshToken = (await ask('refreshToken', { body: { refreshToken } })).refreshToken
  }
})

t.test('a log with witnesses, and one that changes its key', async () => {
  const shown = new LogStore(world.database)
  for (const act of [
    () => shown.keepShown(shown.head()!),
    () => shown.forgetShown(),
    () => shown.changeMaker({ ...shown.maker()!, vkey: 'another' }),
  ])
    await changesOf(act)
})

t.test('the index of the log', async () => {
  const index = new IndexStore(world.database)
  const rows: MapRows = [[1, Uint8Array.of(1, 2, 3)]]
  const nextLeaf = (): LeafBatch => {
    const tail = new TreeTail(index.openTail(index.head()?.treeSize ?? 0))
    const leaf = tail.treeSize
    return { leaf, integration: tail.integrate([Buffer.from(`leaf ${leaf}`)]), checkpoint: `${leaf + 1}` }
  }
  for (const act of [
    () => index.begin('first key', ['first'], []),
    () => index.build(rows),
    () => index.build(rows, 2),
    () => index.append(nextLeaf(), { rows, entries: 2 }),
    () => index.append(nextLeaf()),
    () => index.show({ treeSize: 2, checkpoint: 'cosigned' }, { rows, entries: 3 }),
    () => index.changeKey('second key', ['second']),
    () => index.hold(true),
    () => index.forgetMap(),
    () => index.empty(),
    () => index.built(),
    () => index.begin('third key', ['third'], ['first', 'second']),
  ])
    await changesOf(act)
})

t.test('every place is covered', async t => {
  const expected = [
    ...OPERATIONS.map(({ id }) => `operation ${id}`),
    ...SERVER_OPERATIONS.map(({ id }) => `server operation ${id}`),
    ...Object.entries(CALL_COMMANDS).map(([kind, how]) => `call command ${kind}, ${how}`),
    ...Object.keys(EXPIRY)
      .filter(kind => kind !== 'deferredTask')
      .map(kind => `ending ${kind}`),
    ...Object.keys(DEFERRED_TASKS).map(kind => `task ${kind}`),
    ...Object.keys(OUTCOMES).map(kind => `outcome ${kind}`),
  ]
  t.same(
    WEBHOOK_KINDS.filter(kind => !webhookKinds.has(kind)),
    [],
    'each event has been told of',
  )
  t.same(
    expected.filter(each => !covered.has(each)),
    [],
    'each has a success story in this file that changes the store',
  )
  t.same(
    changeSites().filter(site => !SITES_ELSEWHERE.test(site) && !proven.sitesSeen.has(site)),
    [],
    'no line that asks for a change is left out',
  )
  const { writes, injected } = proven.counts
  t.equal(injected, writes, 'each write of each change failed once')
  t.comment(`${world.rehearsals.changes} changes, ${injected} faults`)
  t.same(world.rehearsals.faults, [])
})
