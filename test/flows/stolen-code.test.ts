/**
 * The story of a stolen code, on a running server: its owner hears of it on the phone at once, and the thief is outside, or
 * inside with nothing to see. And the owner's own new device gets in.
 */

import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { Callsign, type CallsignOptions, memoryStorage } from '../../src/app/app.ts'
import { developmentPins } from '../../src/app/development.ts'
import { App } from '../support/app.ts'
import { DevPerson } from '../support/dev-person.ts'
import { openServer } from '../support/open-server.ts'

const server = await openServer({
  dataFolder: t.testdir(),
  environment: { CALLSIGN_SIGN_IN_WAIT_HOURS: '72' },
})
t.teardown(() => server.end())
const { http } = server
const pins = await developmentPins(http)

/** Each attempt has something that an intruder would want; the requests change nothing where they are refused. */
const WANTED: readonly (readonly [string, object?])[] = [
  ['GET /app/api/friend'],
  ['GET /app/api/friend-request'],
  ['GET /app/api/call/history'],
  ['GET /app/api/user/login-methods'],
  ['POST /app/api/share-token', {}],
  ['PUT /app/api/user', { displayName: 'Mum' }],
  ['DELETE /app/api/friend/77'],
  ['DELETE /app/api/user', { confirm: true }],
  ['DELETE /app/api/user/sessions'],
  ['POST /app/api/logout', { allDevices: true }],
]

const used = new Set<string>()

/** The code that was just sent to the address: the thief reads the same mailbox. */
async function codeTo(email: string): Promise<string> {
  for (;;) {
    const { items } = await new App(http).get(200, `GET /dev/inbox?to=${encodeURIComponent(email)}`)
    const fresh = items.find(({ otp }: { otp?: string }) => otp !== undefined && !used.has(otp))
    if (fresh !== undefined) {
      used.add(fresh.otp)
      return fresh.otp
    }
    await new Promise(resolve => setImmediate(resolve))
  }
}

async function enterCode(app: App, email: string) {
  const { challengeId } = await app.get(200, 'POST /app/api/login', { email })
  return app.send('POST /app/api/verify-login', { challengeId, otp: await codeTo(email) })
}

function appOf(t: Test, more: Partial<CallsignOptions> = {}): Callsign {
  const me = new Callsign({
    server: http,
    pins,
    storage: memoryStorage(),
    webSocket: WebSocket as never,
    ...more,
  })
  t.teardown(() => me.close())
  return me
}

/** A signed-in owner with a device on a list, and a push token. */
async function owner(t: Test, email: string, fcmToken: string): Promise<Callsign> {
  const me = appOf(t, { device: { push: { fcmToken } } })
  await me.signIn(email, () => codeTo(email))
  await me.once('ready')
  return me
}

t.test('of an account with a device list, the thief waits, and the owner refuses on the phone', async t => {
  const email = 'ann@example.org'
  const ann = await owner(t, email, 'token-of-ann')
  const asked = ann.once('sign_in_waiting')
  const thief = new App(http)
  const answer = await enterCode(thief, email)
  t.match(answer, { status: 403, body: { code: 'SIGN_IN_WAITING' } })
  const { waitingId, signInCode } = answer.body
  const { id, ...shown } = await asked
  t.match(shown, { signInCode, method: 'email', userAgent: 'node', network: '127.0.0.0/24' })
  const { items } = await new App(http).get(200, `GET /dev/pushes?userId=${ann.userId}`)
  t.match(items, [{ payload: { data: { type: 'sign_in_waiting', signInCode } } }])
  thief.accessToken = waitingId
  for (const [request, body] of WANTED) t.equal((await thief.send(request, body)).status, 401, request)
  await ann.sessions.answer(id, false)
  thief.accessToken = undefined
  t.match(await thief.send('POST /app/api/login/waiting', { waitingId }), {
    status: 403,
    body: { code: 'SIGN_IN_REFUSED' },
  })
  t.equal((await ann.sessions.list()).length, 1)
})

t.test(
  'of an account without a list, the thief gets a session with nothing in it, and the owner ends it',
  async t => {
    const bob = await DevPerson.signIn(http, 'Bob')
    const peer = await bob.connect(t)
    peer.write('SUBSCRIBE\nid:account\ndestination:/user/queue/account\n\n\0')
    const thief = new App(http)
    const { status, body } = await enterCode(thief, bob.email)
    t.equal(status, 200)
    t.strictSame(body.user, { userId: bob.userId, displayName: 'Bob', restriction: 'DEVICE_REQUIRED' })
    thief.take(body)
    const message = await peer.frame(({ octets }) => octets.includes('session_started'))
    const told = JSON.parse(message.body.toString())
    t.match(told, { sessionId: body.sessionId, network: '127.0.0.0/24', proof: 'otp' })
    for (const [request, wanted] of WANTED)
      t.match(await thief.send(request, wanted), { status: 403, body: { code: 'DEVICE_REQUIRED' } }, request)
    await bob.app.get(204, `DELETE /app/api/user/sessions/${told.sessionId}`)
    t.match(await thief.send('GET /app/api/user'), { status: 401, body: { code: 'SESSION_REVOKED' } })
  },
)

t.test('the owner’s new device waits, is approved twice on the phone, and has everything then', async t => {
  const email = 'cid@example.org'
  const cid = await owner(t, email, 'token-of-cid')
  const storage = memoryStorage()
  const before = appOf(t, { storage })
  const asked = cid.once('sign_in_waiting')
  const refusal = await before.signIn(email, () => codeTo(email)).catch(error => error)
  t.equal(refusal.code, 'SIGN_IN_WAITING')
  await before.close()
  const tablet = appOf(t, { storage })
  t.equal(await tablet.resume(), undefined)
  const kept = await tablet.waitingSignIn()
  const { id, signInCode } = await asked
  t.match(kept, { address: email, signInCode })
  t.match(await cid.sessions.waiting(), [{ id, signInCode }])
  const added = cid.once('device_added')
  await cid.sessions.answer(id, true)
  t.match(await tablet.finishSignIn(), { userId: cid.userId, restriction: 'DEVICE_NOT_LISTED' })
  t.equal(await tablet.waitingSignIn(), undefined)
  await added
  await t.rejects(tablet.contacts.list(), { code: 'DEVICE_NOT_LISTED' })
  await cid.devices.load()
  const { listState } = cid.devices
  const [waiting] = listState?.kind === 'listed' ? listState.waiting : []
  const ready = tablet.once('ready')
  await cid.devices.approve(waiting!)
  await ready
  while (tablet.restriction !== undefined) await tablet.once('changed')
  t.strictSame((await tablet.contacts.list()).items, [])
})

t.test('a device of the list signs in again without waiting', async t => {
  const email = 'dan@example.org'
  const storage = memoryStorage()
  const dan = appOf(t, { storage })
  await dan.signIn(email, () => codeTo(email))
  await dan.signOut()
  const user = await dan.signIn(email, () => codeTo(email))
  t.match(user, { restriction: undefined })
  t.equal((await dan.contacts.list()).items.length, 0)
})
