/** Sessions of `@callsign/sdk/app` with the real server: sign-in, tokens, restarts of either side, and how a session ends. */

import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { CallsignError } from '../../../src/app/callsign-error.ts'
import { Server, withTextIds } from '../../../src/app/session/server.ts'
import { type AppStorage, memoryStorage } from '../../../src/app/storage/storage.ts'
import { platformOf, rejectionOf, signIn, startApp } from '../../support/app-sessions.ts'
import { CODE, emailOf, settingsFor } from '../../support/call-people.ts'
import { freePort } from '../../support/free-port.ts'
import { openServer } from '../../support/open-server.ts'
import { startServer } from '../../support/server.ts'
import { shiftedClock } from '../../support/shifted-clock.ts'

const HOUR_MS = 3_600_000

interface Tokens {
  readonly refreshToken: string
}

async function open(t: Test, environment: Readonly<Record<string, string>> = {}) {
  const server = await openServer({
    dataFolder: t.testdir(),
    environment: { ...settingsFor(2), ...environment },
  })
  t.teardown(() => server.end())
  return server
}

/** The real `fetch`, and the paths that it was asked for. */
function countedFetch() {
  const paths: string[] = []
  const counted: typeof fetch = (url, init) => {
    paths.push(new URL(String(url)).pathname)
    return fetch(url, init)
  }
  return {
    paths,
    fetch: counted,
    countOf: (path: string) => paths.filter(each => each.endsWith(path)).length,
  }
}

t.test('a person signs in by code, and the app goes on after a restart', async t => {
  const { http } = await open(t)
  const app = await startApp(http)
  t.equal(app.session.userId, undefined)
  t.equal(await rejectionOf(app.session.request('GET user', undefined)), 'SIGNED_OUT')
  const { user, isNewUser } = await signIn(app)
  t.equal(isNewUser, true)
  const again = await startApp(http, { storage: app.storage })
  t.equal(again.session.userId, user.userId)
  t.match(await again.session.request('GET user', undefined), { userId: user.userId, email: emailOf(0) })
})

t.test('wrong codes are counted, and the challenge ends', async t => {
  const { http } = await open(t)
  const { session } = await startApp(http)
  const challenge = await session.login({ email: emailOf(0) })
  if (challenge.verified) throw new Error('a code was to be asked for')
  const { challengeId } = challenge
  const otp = '000000'
  const wrong = await session.verifyLogin({ challengeId, otp }).catch((error: unknown) => error)
  t.ok(wrong instanceof CallsignError)
  t.match(wrong, { code: 'OTP_INVALID', status: 400, members: { attemptsLeft: 4 } })
  for (let left = 3; left > 0; left--)
    t.equal(await rejectionOf(session.verifyLogin({ challengeId, otp })), 'OTP_INVALID')
  await rejectionOf(session.verifyLogin({ challengeId, otp }))
  t.equal(await rejectionOf(session.verifyLogin({ challengeId, otp: CODE })), 'CHALLENGE_GONE')
  t.equal(session.userId, undefined)
})

t.test('ten requests at once renew the tokens once', async t => {
  const { http } = await open(t)
  const { paths, fetch, countOf } = countedFetch()
  const before = await startApp(http)
  await signIn(before)
  const { storage } = before
  const { session } = await startApp(http, {
    storage,
    fetch,
    platform: platformOf({ aheadMs: 0.9 * HOUR_MS }),
  })
  const users = await Promise.all(Array.from({ length: 10 }, () => session.request('GET user', undefined)))
  t.equal(new Set(users.map(({ userId }) => userId)).size, 1)
  t.equal(countOf('/refresh-token'), 1)
  t.equal(paths.length, 11)
})

t.test('tokens that the server calls expired are renewed once', async t => {
  const dataFolder = t.testdir()
  const first = await startServer({ dataFolder, environment: settingsFor(1) })
  const before = await startApp(first.http)
  await signIn(before)
  await first.end()
  const second = await startServer({
    dataFolder,
    environment: { ...settingsFor(1), ...shiftedClock(2 * HOUR_MS) },
  })
  t.teardown(() => second.end())
  const { fetch: counted, countOf } = countedFetch()
  let hasNewToken: (() => void) | undefined
  const newToken = new Promise<void>(resolve => {
    hasNewToken = resolve
  })
  // The first request hears that its token has expired only when there is a new one.
  const fetch: typeof counted = async (url, init) => {
    const answer = counted(url, init)
    if (countOf('/user') === 11) hasNewToken?.()
    if (countOf('/user') === 1) await newToken
    return answer
  }
  const { session } = await startApp(second.http, { storage: before.storage, fetch })
  await Promise.all(Array.from({ length: 10 }, () => session.request('GET user', undefined)))
  t.equal(countOf('/refresh-token'), 1)
  t.equal(countOf('/user'), 20)
})

t.test('requests wait for a server that restarts', async t => {
  const dataFolder = t.testdir()
  const environment = { ...settingsFor(1), CALLSIGN_HTTP_PORT: `${await freePort()}` }
  let server = await openServer({ dataFolder, environment })
  t.teardown(() => server.end())
  const waits: number[] = []
  let restarted: Promise<void> | undefined
  const platform = platformOf({
    wait: ms => {
      waits.push(ms)
      restarted ??= openServer({ dataFolder, environment }).then(opened => {
        server = opened
      })
      return restarted
    },
  })
  const app = await startApp(server.http, { platform })
  const { user } = await signIn(app)
  await server.end()
  t.match(await app.session.request('GET user', undefined), { userId: user.userId })
  t.same(waits, [250])
})

t.test('a revoked session signs the app out, once, also after a restart', async t => {
  const { http } = await open(t)
  const [app, other] = [await startApp(http), await startApp(http)]
  await signIn(app)
  await signIn(other)
  const over: string[] = []
  app.session.onOver(({ code }) => over.push(code))
  await other.session.logout({ allDevices: true })
  t.equal(other.session.userId, undefined)
  const codes = await Promise.all([1, 2].map(() => rejectionOf(app.session.request('GET user', undefined))))
  t.same(new Set(codes), new Set(['SESSION_REVOKED']))
  t.same(over, ['SESSION_REVOKED'])
  const again = await startApp(http, { storage: app.storage })
  t.equal(again.session.userId, undefined)
  t.match(await app.storage.get('session'), { kind: 'signed-out', refreshToken: /^krt_/ })
  await signIn(again)
  t.ok(again.session.userId)
})

t.test('without an answer the app stays signed in', async t => {
  const server = await open(t)
  const app = await startApp(server.http, { platform: platformOf() })
  const { user } = await signIn(app)
  await server.end()
  t.equal(await rejectionOf(app.session.request('GET user', undefined)), 'NO_ANSWER')
  t.equal(await rejectionOf(app.session.logout()), 'NO_ANSWER')
  t.equal(app.session.userId, user.userId)
})

t.test('tokens that could not be kept are not used, and the app stays signed in', async t => {
  const { http } = await open(t)
  const inner = memoryStorage()
  let isFull = false
  const storage: AppStorage = {
    ...inner,
    put: (key, value) => (isFull ? Promise.reject(new Error('full')) : inner.put(key, value)),
  }
  await signIn(await startApp(http, { storage }))
  const platform = platformOf({ aheadMs: 2 * HOUR_MS })
  const { session } = await startApp(http, { storage, platform })
  isFull = true
  const kept = await storage.get('session')
  t.equal(await rejectionOf(session.request('GET user', undefined)), 'STORAGE_FAILED')
  t.same(await storage.get('session'), kept)
  isFull = false
  t.match(await session.request('GET user', undefined), { userId: session.userId })
  t.not(((await storage.get('session')) as Tokens).refreshToken, (kept as Tokens).refreshToken)
})

t.test('a tab takes the tokens that another tab has renewed', async t => {
  const { http } = await open(t)
  const first = await startApp(http)
  await signIn(first)
  const platform = platformOf({ aheadMs: 0.9 * HOUR_MS })
  const { storage } = first
  const late = await startApp(http, { storage, platform })
  const { fetch, countOf } = countedFetch()
  const early = await startApp(http, { storage, platform, fetch })
  await early.session.request('GET user', undefined)
  t.equal(await late.session.accessToken(), await early.session.accessToken())
  t.equal(countOf('/refresh-token'), 1)
})

t.test('a tab whose person has signed out in another tab is signed out too', async t => {
  const { http } = await open(t)
  const first = await startApp(http)
  await signIn(first)
  const { storage } = first
  const late = await startApp(http, { storage, platform: platformOf({ aheadMs: 0.9 * HOUR_MS }) })
  const over: string[] = []
  late.session.onOver(({ code }) => over.push(code))
  await first.session.logout()
  t.equal(await rejectionOf(late.session.request('GET user', undefined)), 'SIGNED_OUT')
  t.same(over, ['SIGNED_OUT'])
})

t.test('a tab in whose storage another person has signed in is signed out, and acts for nobody', async t => {
  const storage = memoryStorage()
  const paths: string[] = []
  const offline: typeof fetch = async url => {
    paths.push(String(url))
    throw new Error('nothing is asked')
  }
  const signedIn = (userId: string, untilMs: number) => {
    const tokens = {
      sessionId: userId,
      accessToken: `kat_${userId}`,
      refreshToken: `krt_${userId}`,
      challenge: '',
    }
    return { kind: 'signed-in', userId, ...tokens, renewAtMs: untilMs, expiresAtMs: untilMs }
  }
  await storage.put('session', signedIn('1', 0))
  const { session } = await startApp('http://127.0.0.1:9', {
    storage,
    fetch: offline,
    platform: platformOf(),
  })
  const over: string[] = []
  session.onOver(({ code }) => over.push(code))
  const other = signedIn('2', Date.now() + HOUR_MS)
  await storage.put('session', other)
  t.equal(await rejectionOf(session.request('GET user', undefined)), 'SIGNED_OUT')
  t.same([session.userId, over, paths], [undefined, ['SIGNED_OUT'], []])
  t.same(await storage.get('session'), other, 'the other person stays')
})

t.test('a damaged session is an error, and no one is signed out', async t => {
  const { http } = await open(t)
  for (const damaged of ['text', 7, {}, { kind: 'signed-in', refreshToken: 'krt_1' }]) {
    const storage = memoryStorage()
    await storage.put('session', damaged)
    t.equal(await rejectionOf(startApp(http, { storage })), 'STORAGE_CORRUPT')
    t.same(await storage.get('session'), damaged)
  }
})

t.test('ids are text also where the server sends numbers', async t => {
  const { http } = await open(t, { CALLSIGN_JSON_IDS: 'number' })
  const app = await startApp(http)
  t.equal(typeof (await signIn(app)).user.userId, 'string')
  const { users } = await app.session.request('GET user/publicKeys', undefined)
  t.equal(users[0]?.userId, app.session.userId)
})

t.test('a member is an id where the documents say so, whatever its name', async t => {
  const read = (text: string) => JSON.parse(text, withTextIds)
  const ids = '{"userId":1,"invitedBy":2,"endedBy":null,"unavailable":[3],"calleeIds":[4,"5"]}'
  t.same(read(ids), {
    userId: '1',
    invitedBy: '2',
    endedBy: null,
    unavailable: ['3'],
    calleeIds: ['4', '5'],
  })
  const others = { roomId: 6, gridId: 7, paid: 8, roomIds: [9], keyEpoch: 10 }
  t.same(read(JSON.stringify(others)), others)
})

t.test('the time is the server’s, also on a machine with a wrong clock', async t => {
  const { http } = await open(t)
  const { server, session } = await startApp(http, { platform: platformOf({ aheadMs: 24 * HOUR_MS }) })
  await session.login({ email: emailOf(0) })
  t.ok(Math.abs(server.nowMs() - Date.now()) < HOUR_MS)
  server.hearTime(1_000_000)
  t.ok(server.nowMs() < 1_000_000 + HOUR_MS)
})

/** Answers in turn; the last one again and again. */
async function listen(t: Test, ...listeners: readonly RequestListener[]): Promise<string> {
  let at = 0
  const server = createServer((request, response) => {
    const listener = listeners[Math.min(at++, listeners.length - 1)]!
    listener(request, response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const busy =
  (status: number, retryAfter?: string, code = 'OVERLOADED'): RequestListener =>
  (_, response) => {
    if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter)
    response.writeHead(status).end(JSON.stringify({ code, detail: 'come again' }))
  }
const cut: RequestListener = (_, response) => response.destroy()
const well: RequestListener = (_, response) => response.end('{"userId":"1","displayName":"Ann"}')

t.test('a busy server is asked again after the time it names, or after a random one that grows', async t => {
  const url = await listen(t, busy(503, '3'), busy(429, '1'), busy(503), cut, busy(502), well)
  const waits: number[] = []
  const server = new Server({ url, platform: platformOf({ wait: async ms => void waits.push(ms) }) })
  t.same(await server.request('GET user', undefined), { userId: '1', displayName: 'Ann' })
  t.same(waits, [3500, 1500, 1000, 2000, 4000])
})

t.test(
  'it gives up in the end, and at once where waiting is too long or repeating would count twice',
  async t => {
    const waits: number[] = []
    const platform = platformOf({ wait: async ms => void waits.push(ms) })
    const askedOf = async (...listeners: readonly RequestListener[]) =>
      new Server({ url: await listen(t, ...listeners), platform })
    t.equal(await rejectionOf((await askedOf(busy(503))).request('GET user', undefined)), 'OVERLOADED')
    t.equal(waits.length, 5)
    waits.length = 0
    const later = await askedOf(busy(429, '3600', 'RATE_LIMITED'))
    t.equal(await rejectionOf(later.request('GET user', undefined)), 'RATE_LIMITED')
    const code = { challengeId: 'a', otp: '123456' }
    t.equal(await rejectionOf((await askedOf(cut)).request('POST verify-login', code)), 'NO_ANSWER')
    const resent = await askedOf(busy(429, '5', 'OTP_COOLDOWN'))
    t.equal(await rejectionOf(resent.request('POST resend-otp', { challengeId: 'a' })), 'OTP_COOLDOWN')
    const garbled = await askedOf((_, response) => response.end('<html>'))
    t.equal(await rejectionOf(garbled.request('GET user', undefined)), 'ANSWER_INVALID')
    const proxy = await askedOf((_, response) => response.writeHead(418).end('<html>'))
    t.equal(await rejectionOf(proxy.request('GET user', undefined)), 'HTTP_418')
    t.same(waits, [])
  },
)

t.test('an answer that does not come in time is none', async t => {
  const url = await listen(t, () => {})
  const server = new Server({ url, platform: platformOf(), answerWithinMs: 1 })
  t.equal(await rejectionOf(server.request('POST verify-login', { challengeId: 'a' })), 'NO_ANSWER')
})
