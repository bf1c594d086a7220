/**
 * A story for each error code, over the whole application. No client should have to know a code that can't be
 * provoked.
 */

import { generateKeyPairSync } from 'node:crypto'
import type { Test } from 'tap'
import { formatSignInToken, possessionChallenge } from '../../src/domain/accounts/token.ts'
import type { ErrorCode } from '../../src/errors.ts'
import { SignalError } from '../../src/errors.ts'
import { indexLookupRoute } from '../../src/keyserver/index/index-route.ts'
import { type LookedUpLog, lookupRoutes, type Prover } from '../../src/keyserver/lookups.ts'
import { HttpServer } from '../../src/transport/http.ts'
import type { HttpServerDeps } from '../../src/transport/http-deps.ts'
import { AppleStandIn } from './apple-stand-in.ts'
import {
  newDevice,
  newDeviceList,
  newSession,
  newUser,
  type TestAnswer,
  type TestUser,
} from './application.ts'
import { Authenticator, type Oddity, USED_FLAGS } from './authenticator.ts'
import { CALL_PROVOCATIONS } from './call-provocations.ts'
import { listBody, listOf, newPhone, registrationOf } from './device-lists.ts'
import { WITH_LOG } from './device-requests.ts'
import { OidcProvider } from './oidc-provider.ts'
import { addPasskey, signInByPasskey } from './passkeys.ts'
import { sendRaw, statusesIn } from './raw-http.ts'
import { answerSignIn, enterCode, fetchWaiting, register, shownSignIns, signUp } from './sign-in-people.ts'
import { openTestApi, type TestApi, type TestApiOptions } from './test-api.ts'

const USER_TOKEN = 'POST /app/api/user/tokens'

/** The story's last answer. */
export type Heard = Pick<TestAnswer, 'status' | 'body'>

export type Story = (t: Test) => Promise<Heard>

/** A story of the application API; the providers are not there unless it starts them. */
function story(tell: (whole: TestApi, t: Test) => Promise<Heard>, options: TestApiOptions = {}): Story {
  return async t => tell(await openTestApi(t, options), t)
}

/** A story of one user with a session. */
function userStory(
  tell: (whole: TestApi, user: TestUser) => Promise<Heard>,
  options: TestApiOptions = {},
): Story {
  return story(async whole => tell(whole, await newUser(whole.world)), options)
}

/** A request that something in the server keeps from being answered, over the socket. */
async function overSocket(
  t: Test,
  parts: Partial<HttpServerDeps>,
  send: (url: string) => Promise<Response>,
): Promise<Heard> {
  const { application } = await openTestApi(t)
  const noted = () => undefined
  const server = new HttpServer({ routes: application.routes, onRefused: noted, onFault: noted, ...parts })
  t.teardown(() => server.close())
  const answer = await send(`http://127.0.0.1:${await server.listen('127.0.0.1', 0)}`)
  return { status: answer.status, body: await answer.json() }
}

function indexLookup(key: string): Story {
  return t =>
    overSocket(t, { routes: [indexLookupRoute(NO_INDEX)] }, url => fetch(`${url}/index/lookup/${key}`))
}

const NO_INDEX = { lookUp: fails('INDEX_UNAVAILABLE'), lookUpAll: () => undefined }

/** A lookup in a log that fails in this way. */
function lookup(faults: Partial<LookedUpLog>): Story {
  const head = { treeSize: 1, checkpoint: '', rootHash: new Uint8Array(32) }
  const log = { verifiedHead: () => head, newestKey: () => undefined, ...faults } as unknown as LookedUpLog
  const vrf: Prover = { cached: () => undefined, prove: fails('OVERLOADED') }
  const publicKeyHash = Buffer.alloc(64, 1).toString('base64')
  const body = JSON.stringify({ targets: [{ publicKeyHash }] })
  const headers = { 'content-type': 'application/json' }
  return t =>
    overSocket(t, { routes: lookupRoutes(log, vrf, NO_INDEX) }, url =>
      fetch(`${url}/api/get-public-keys`, { method: 'POST', headers, body }),
    )
}

function fails(code: ErrorCode): () => never {
  return () => {
    throw new SignalError(code, 'ordered by the test')
  }
}

/** The latest code that waits to be sent; empties the outbox. */
async function codeFor({ world }: TestApi): Promise<string> {
  const codes = (await world.takeSent()).flatMap(message =>
    message.channel === 'mail' && message.letter.kind === 'otp' ? [message.letter.otp] : [],
  )
  const code = codes.at(-1)
  if (code === undefined) throw new Error('no code was sent')
  return code
}

async function beginLogin({ send }: TestApi, email = 'new@example.org'): Promise<string> {
  return (await send('POST /app/api/login', { body: { email } })).body.challengeId
}

function publicKey(): string {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
}

function registerDevice({ send }: TestApi, { token }: TestUser, key = publicKey()) {
  return send('POST /app/api/register_device', { token, body: { publicKey: key } })
}

const SESSION: Readonly<Partial<Record<ErrorCode, Story>>> = {
  TOKEN_MISSING: story(({ send }) => send('GET /app/api/user')),
  TOKEN_INVALID: story(({ send }) => send('GET /app/api/user', { token: 'kat_garbage' })),
  TOKEN_EXPIRED: userStory(async ({ send, advance }, { token }) => {
    await advance(3_600_000)
    return send('GET /app/api/user', { token })
  }),
  SESSION_REVOKED: userStory(async ({ send, world }, user) => {
    const other = await newSession(world, user.userId)
    await send('POST /app/api/logout', { token: user.token, body: { allDevices: true } })
    return send('GET /app/api/user', { token: other.token })
  }),
  REFRESH_TOKEN_INVALID: story(({ send }) =>
    send('POST /app/api/refresh-token', { body: { refreshToken: 'krt_garbage' } }),
  ),
  REFRESH_TOKEN_REUSED: userStory(async ({ send, world, advance }, { sessionId }) => {
    const tokens = () =>
      world.authentication.tokensOf(
        sessionId,
        world.database.view(view => world.sessions.read(view, sessionId))!,
      )
    const { refreshToken } = tokens()
    for (let times = 0; times < 2; times++) {
      await send('POST /app/api/refresh-token', { body: { refreshToken: tokens().refreshToken } })
    }
    await advance(31_000)
    return send('POST /app/api/refresh-token', { body: { refreshToken } })
  }),
  DEVICE_NOT_REGISTERED: userStory(({ send }, { token }) =>
    send('PUT /app/api/devices/current/push', { token, body: {} }),
  ),
  DEVICE_REQUIRED: userStory(async ({ send, world }, { userId }) => {
    await newDevice(world, userId)
    return send('GET /app/api/friend', { token: (await newSession(world, userId)).token })
  }),
  DEVICE_NOT_LISTED: userStory(async ({ send, world }, { userId, token }) => {
    await newDevice(world, userId)
    await newDeviceList(world, userId, [(await newDevice(world, userId)).deviceId])
    return send('GET /app/api/friend', { token })
  }),
}

const REQUESTS: Readonly<Partial<Record<ErrorCode, Story>>> = {
  MALFORMED_REQUEST: t =>
    overSocket(t, {}, async url => {
      const lengths = 'Content-Length: 2\r\nContent-Length: 2'
      const text = `POST /app/api/login HTTP/1.1\r\nHost: x\r\n${lengths}\r\n\r\n{}`
      const heard = await sendRaw(Number(new URL(url).port), text)
      return new Response(heard.slice(heard.indexOf('\r\n\r\n')), { status: statusesIn(heard)[0]! })
    }),
  MALFORMED_JSON: story(({ send }) => send('POST /app/api/login', { body: Buffer.from('{') })),
  VALIDATION_FAILED: story(({ send }) => send('POST /app/api/login', { body: { email: 7 } })),
  UNSUPPORTED_MEDIA_TYPE: story(({ send }) =>
    send('POST /app/api/login', { body: {}, headers: { 'content-type': 'text/plain' } }),
  ),
  BODY_TOO_LARGE: t =>
    overSocket(t, {}, url => fetch(`${url}/app/api/login`, { method: 'POST', body: 'x'.repeat(20_000) })),
  CLIENT_TOO_OLD: t =>
    overSocket(t, { requiredClient: () => 'ios/9.0.0' }, url => fetch(`${url}/app/api/user`)),
  RATE_LIMITED: userStory(
    async ({ send }, { token }) => {
      const change = () => send('PUT /app/api/user', { token, body: { displayName: 'Bob' } })
      let answer = await change()
      for (let times = 0; times < 20; times++) answer = await change()
      return answer
    },
    { rates: true },
  ),
  IDEMPOTENCY_KEY_REUSED: userStory(async ({ send }, { token }) => {
    const headers = { 'idempotency-key': 'k' }
    await send('POST /app/api/share-token', { token, headers, body: { label: 'one' } })
    return send('POST /app/api/share-token', { token, headers, body: { label: 'two' } })
  }),
  STORE_UNAVAILABLE: userStory(async ({ send, world }, { token }) => {
    world.database.change = async () => fails('STORE_UNAVAILABLE')()
    return send('PUT /app/api/user', { token, body: { displayName: 'Bob' } })
  }),
  OUTCOME_UNKNOWN: userStory(async ({ send, world }, { token }) => {
    world.database.change = async () => fails('OUTCOME_UNKNOWN')()
    return send('PUT /app/api/user', { token, body: { displayName: 'Bob' } })
  }),
  INTERNAL: t =>
    overSocket(t, { requiredClient: () => JSON.parse('no JSON') }, url => fetch(`${url}/app/api/user`)),
}

const SIGN_IN: Readonly<Partial<Record<ErrorCode, Story>>> = {
  OTP_INVALID: story(async whole => {
    const challengeId = await beginLogin(whole)
    const otp = (await codeFor(whole)) === '000000' ? '000001' : '000000'
    return whole.send('POST /app/api/verify-login', { body: { challengeId, otp } })
  }),
  OTP_EXPIRED: story(async whole => {
    const challengeId = await beginLogin(whole)
    const otp = await codeFor(whole)
    await whole.advance(300_000)
    return whole.send('POST /app/api/verify-login', { body: { challengeId, otp } })
  }),
  OTP_COOLDOWN: story(async whole => {
    const challengeId = await beginLogin(whole)
    return whole.send('POST /app/api/resend-otp', { body: { challengeId } })
  }),
  CHALLENGE_GONE: story(({ send }) =>
    send('POST /app/api/verify-login', { body: { challengeId: 'A'.repeat(22), otp: '000000' } }),
  ),
  BLOCKED_COUNTRY: story(({ send }) => send('POST /app/api/login', { body: { phone: '+8501912345678' } })),
  DELIVERY_UNAVAILABLE: story(
    ({ send }) => send('POST /app/api/login', { body: { email: 'a@example.org' } }),
    {
      isDevelopment: false,
    },
  ),
  PROVIDER_TOKEN_REQUIRED: story(({ send }) => send('POST /app/api/login', { body: { verified: true } })),
  PROVIDER_TOKEN_INVALID: async t => {
    const config = { providers: [{ name: 'google', issuer: 'http://127.0.0.1:1', clientIds: ['us'] }] }
    const { send } = await openTestApi(t, { config })
    return send('POST /app/api/login', { body: { verified: true, provider: 'google', idToken: 'a.b.c' } })
  },
  PROVIDER_UNAVAILABLE: t => socialLogin(t, async provider => provider.stop()),
  ACCOUNT_EXISTS: async t => socialLogin(t, async () => undefined),
  AUTH_CODE_INVALID: async t => {
    const apple = await AppleStandIn.start({ nowMs: () => Date.UTC(2026, 0, 1), algorithm: 'ES256' })
    t.teardown(() => apple.stop())
    const { teamId, keyId, privateKey } = apple
    const options = { clientIds: ['us'], issuer: apple.provider.issuer, teamId, keyId, privateKey }
    const { send } = await openTestApi(t, { config: { apple: options } })
    const identityToken = await apple.identityToken({ subject: 'ann', clientId: 'us' })
    return send('POST /app/api/platform-login', { body: { identityToken, authorizationCode: 'c.unknown' } })
  },
}

/** Signs in by a provider whose token names a registered user's proven address. */
async function socialLogin(t: Test, before: (provider: OidcProvider) => Promise<void>): Promise<Heard> {
  const provider = await OidcProvider.start({ nowMs: () => Date.UTC(2026, 0, 1), algorithm: 'ES256' })
  t.teardown(() => provider.stop())
  const config = { providers: [{ name: 'google', issuer: provider.issuer, clientIds: ['us'] }] }
  const { send, world } = await openTestApi(t, { config })
  const { email } = await newUser(world)
  const idToken = await provider.idToken('us', { email, email_verified: true })
  await before(provider)
  return send('POST /app/api/login', { body: { verified: true, provider: 'google', idToken } })
}

/** An account that the operator's backend has made, and a token that signs it in. */
async function madeUser({ world }: TestApi, { userId }: TestUser): Promise<string> {
  await world.database.change(change => {
    const { primaryMethodId: _, ...user } = world.accounts.read(change, userId)!
    for (const method of world.accounts.methodsOf(change, userId))
      world.accounts.removeMethod(change, userId, method)
    world.accounts.put(change, userId, { ...user, isMadeByServer: true })
  })
  const content = { userId, nonce: Buffer.alloc(16), expiresAtMs: world.nowMs() + 60_000 }
  return formatSignInToken(world.secrets.signInToken, content)
}

const SERVER_SIGN_IN: Readonly<Partial<Record<ErrorCode, Story>>> = {
  SIGN_IN_TOKEN_INVALID: userStory(async (whole, user) => {
    const body = { verified: true, signInToken: await madeUser(whole, user) }
    await whole.send('POST /app/api/login', { body })
    return whole.send('POST /app/api/login', { body })
  }),
  USER_OWNS_SIGN_IN: userStory(async (whole, user) => {
    const signInToken = await madeUser(whole, user)
    await addEmail(whole, user, 1)
    return whole.send('POST /app/api/login', { body: { verified: true, signInToken } })
  }),
}

const USER_TOKENS: Readonly<Partial<Record<ErrorCode, Story>>> = {
  AUDIENCE_UNKNOWN: userStory(({ send }, { token }) =>
    send(USER_TOKEN, { token, body: { audience: 'other' } }),
  ),
  ACCOUNT_SUSPENDED: userStory(async ({ send, world }, { token, userId }) => {
    await world.database.change(change => {
      const user = world.accounts.read(change, userId)!
      world.accounts.put(change, userId, { ...user, suspension: { reason: 'abuse', atMs: 1 } })
    })
    return send(USER_TOKEN, { token, body: { audience: 'reports' } })
  }),
}

const LOGIN_METHODS: Readonly<Partial<Record<ErrorCode, Story>>> = {
  METHOD_EXISTS: userStory(({ send }, { token, email }) =>
    send('POST /app/api/user/login-methods', { token, body: { kind: 'email', value: email } }),
  ),
  LOGIN_METHOD_LIMIT: userStory(async whole => {
    const user = await newUser(whole.world)
    for (let held = 1; held < 5; held++) await addEmail(whole, user, held)
    return addEmail(whole, user, 5)
  }),
  LOGIN_METHOD_NOT_FOUND: userStory(({ send }, { token }) =>
    send('DELETE /app/api/user/login-methods/7', { token }),
  ),
  SESSION_NOT_FOUND: userStory(({ send }, { token }) => send('DELETE /app/api/user/sessions/7', { token })),
  LAST_LOGIN_METHOD: userStory(async ({ send, world }, { token, userId }) => {
    const [method] = world.database.view(view => world.accounts.methodsOf(view, userId))
    return send(`DELETE /app/api/user/login-methods/${method!.id}`, { token })
  }),
  SIGN_IN_WAITING: userStory(async (whole, user) => enterCode(whole, (await listed(whole, user)).email)),
  SIGN_IN_REFUSED: story(async whole => {
    const ann = await signUp(whole, 'ann@example.org')
    const { waitingId } = (await enterCode(whole, 'ann@example.org')).body
    const [shown] = await shownSignIns(whole, ann)
    await answerSignIn(whole, ann, String(shown?.id), false)
    return fetchWaiting(whole, waitingId)
  }, WITH_LOG),
  SIGN_IN_GONE: story(whole => fetchWaiting(whole, 'A'.repeat(22))),
  SIGN_IN_NOT_FOUND: story(async whole => {
    const ann = await signUp(whole, 'ann@example.org')
    return answerSignIn(whole, ann, 'A'.repeat(22), true)
  }, WITH_LOG),
  STEP_UP_REQUIRED: userStory(
    async ({ send, advance }, { token }) => {
      await advance(61_000)
      return send('DELETE /app/api/user', { token, body: { confirm: true } })
    },
    { config: { stepUpS: 60 } },
  ),
}

/** A sign-in by a passkey, which differs so from a right one. */
function passkeyLogin(oddity: Oddity): Story {
  return userStory(async (whole, user) => {
    const authenticator = new Authenticator()
    await addPasskey(whole, user, authenticator)
    return signInByPasskey(whole, authenticator, oddity)
  })
}

const PASSKEYS: Readonly<Partial<Record<ErrorCode, Story>>> = {
  PASSKEYS_OFF: story(({ send }) => send('POST /app/api/passkey/options'), {
    config: { passkeys: undefined },
  }),
  PASSKEY_UNKNOWN: passkeyLogin({ credentialId: Buffer.alloc(32) }),
  PASSKEY_ORIGIN_REFUSED: passkeyLogin({ origin: 'https://example.com' }),
  PASSKEY_RP_REFUSED: passkeyLogin({ rpId: 'example.com' }),
  PASSKEY_CHALLENGE_GONE: passkeyLogin({ challenge: 'A'.repeat(72) }),
  PASSKEY_NOT_VERIFIED: passkeyLogin({ flags: USED_FLAGS & ~4 }),
  PASSKEY_INVALID: passkeyLogin({ isForged: true }),
  PASSKEY_NOT_PRIMARY: userStory(async (whole, user) => {
    const { body } = await addPasskey(whole, user)
    return whole.send('PUT /app/api/user/login-methods/primary', { token: user.token, body: { id: body.id } })
  }),
}

/** Gives the user a device on a device list. */
async function listed({ world }: TestApi, user: TestUser): Promise<TestUser> {
  await newDeviceList(world, user.userId, [(await newDevice(world, user.userId)).deviceId])
  return user
}

/** Asks for an address and confirms it; the first answer when that is a refusal. */
async function addEmail(whole: TestApi, { token }: TestUser, number: number): Promise<Heard> {
  const body = { kind: 'email', value: `other${number}@example.org` }
  const begun = await whole.send('POST /app/api/user/login-methods', { token, body })
  if (begun.status !== 202) return begun
  const confirmation = { challengeId: begun.body.challengeId, otp: await codeFor(whole) }
  return whole.send('POST /app/api/verify', { token, body: confirmation })
}

const DEVICES: Readonly<Partial<Record<ErrorCode, Story>>> = {
  DEVICE_NOT_FOUND: userStory(({ send }, { token }) => send('DELETE /app/api/devices/7', { token })),
  DEVICE_LIMIT: userStory(async (whole, user) => {
    for (let held = 0; held < 10; held++) await newDevice(whole.world, user.userId)
    return registerDevice(whole, user)
  }),
  SESSION_HAS_DEVICE: story(async whole => {
    const ann = await signUp(whole, 'ann@example.org')
    return register(whole, { ...ann, phone: newPhone('thief') })
  }, WITH_LOG),
  KEY_IN_USE: userStory(async (whole, user) => {
    const key = publicKey()
    await registerDevice(whole, await newUser(whole.world), key)
    return registerDevice(whole, user, key)
  }),
  PUSH_ENDPOINT_REFUSED: userStory(async ({ world, send }, { userId }) => {
    const { token } = await newSession(world, userId, (await newDevice(world, userId)).deviceId)
    const body = { webPush: { endpoint: 'https://example.org/push' } }
    return send('PUT /app/api/devices/current/push', { token, body })
  }),
  LOG_UNAVAILABLE: userStory(registerDevice, { register: async () => fails('LOG_UNAVAILABLE')() }),
  OVERLOADED: userStory(registerDevice, { register: async () => fails('OVERLOADED')() }),
  DEVICE_LIST_CONFLICT: userStory(async ({ world, send }, { userId, sessionId, token }) => {
    const phone = newPhone('phone')
    const first = listOf(userId, [phone])
    const challenge = possessionChallenge(world.secrets.possession, sessionId)
    await send('POST /app/api/register_device', { token, body: registrationOf(phone, challenge, first) })
    const body = listBody(listOf(userId, [phone], { previous: first }))
    return send('PUT /app/api/user/device-list', { token, body, headers: { 'if-match': '"1"' } })
  }),
}

/** A change that is made a thousand times need not be rehearsed each time. */
const MANY: TestApiOptions = { rehearses: false }

const CONTACTS: Readonly<Partial<Record<ErrorCode, Story>>> = {
  USER_NOT_FOUND: userStory((whole, user) => ask(whole, user, 7n)),
  SELF_REQUEST: userStory((whole, user) => ask(whole, user, user.userId)),
  ALREADY_FRIENDS: userStory(async (whole, user) => {
    const friend = await newUser(whole.world)
    await ask(whole, friend, user.userId)
    await ask(whole, user, friend.userId)
    return ask(whole, user, friend.userId)
  }),
  CONTACTS_BY_SERVER: userStory((whole, user) => ask(whole, user, 7n), { config: { contactsBy: 'server' } }),
  USER_BLOCKED: userStory(async (whole, user) => {
    const { userId } = await newUser(whole.world)
    await whole.send('POST /app/api/block', { token: user.token, body: { userId } })
    return ask(whole, user, userId)
  }),
  PENDING_LIMIT: userStory(async (whole, user) => {
    const [last, ...others] = await newUsers(whole, 101)
    await Promise.all(others.map(({ userId }) => ask(whole, user, userId)))
    return ask(whole, user, last!.userId)
  }),
  REQUEST_NOT_FOUND: userStory(({ send }, { token }) =>
    send('POST /app/api/friend-request/accept', { token, body: { requestId: '7' } }),
  ),
  REQUEST_CLOSED: userStory(async (whole, user) => {
    const { token, userId } = await newUser(whole.world)
    const { requestId } = (await ask(whole, user, userId)).body
    await whole.send('POST /app/api/friend-request/decline', { token, body: { requestId } })
    return whole.send('POST /app/api/friend-request/accept', { token, body: { requestId } })
  }),
  SHARE_TOKEN_NOT_FOUND: userStory(({ send }, { token }) =>
    send('POST /app/api/share-token/resolve', { token, body: { token: `c_${'A'.repeat(22)}` } }),
  ),
  SHARE_TOKEN_EXPIRED: userStory(async ({ send }, { token }) => {
    const made = await send('POST /app/api/share-token', { token, body: {} })
    await send(`DELETE /app/api/share-token/${made.body.id}`, { token })
    return send('POST /app/api/share-token/resolve', { token, body: { token: made.body.token } })
  }),
  SHARE_TOKEN_LIMIT: userStory(async ({ send }, { token }) => {
    for (let made = 0; made < 20; made++) await send('POST /app/api/share-token', { token, body: {} })
    return send('POST /app/api/share-token', { token, body: {} })
  }),
  CONTACT_LIMIT: userStory(async (whole, user) => {
    const [last, ...friends] = await newUsers(whole, 1_001)
    // At once, so that they share their transactions.
    await Promise.all(friends.map(friend => ask(whole, friend, user.userId)))
    await Promise.all(friends.map(friend => ask(whole, user, friend.userId)))
    return ask(whole, user, last!.userId)
  }, MANY),
  BLOCK_LIMIT: userStory(async (whole, { token }) => {
    const [last, ...others] = await newUsers(whole, 1_001)
    const block = ({ userId }: TestUser) => whole.send('POST /app/api/block', { token, body: { userId } })
    await Promise.all(others.map(block))
    return block(last!)
  }, MANY),
}

function newUsers({ world }: TestApi, count: number): Promise<TestUser[]> {
  return Promise.all(Array.from({ length: count }, () => newUser(world)))
}

function ask({ send }: TestApi, { token }: TestUser, targetUserId: bigint) {
  return send('POST /app/api/friend-request/by-id', { token, body: { targetUserId } })
}

const LOOKUPS: Readonly<Partial<Record<ErrorCode, Story>>> = {
  UNKNOWN_PUBLIC_KEY_HASH: lookup({}),
  IDENTITY_MISMATCH: lookup({ newestKey: () => ({ vrfHash: new Uint8Array(64).fill(7) }) as never }),
  CHECKPOINT_INVALID: lookup({ verifiedHead: fails('CHECKPOINT_INVALID') }),
  INDEX_UNAVAILABLE: indexLookup('0'.repeat(64)),
  NOT_FOUND: indexLookup('0'.repeat(63)),
}

/** By code, how it comes about. */
export const PROVOCATIONS: Readonly<Partial<Record<ErrorCode, Story>>> = {
  ...SESSION,
  ...REQUESTS,
  ...SIGN_IN,
  ...SERVER_SIGN_IN,
  ...USER_TOKENS,
  ...LOGIN_METHODS,
  ...PASSKEYS,
  ...DEVICES,
  ...CONTACTS,
  ...CALL_PROVOCATIONS,
  ...LOOKUPS,
}
