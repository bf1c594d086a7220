/** A store in which something of nearly every kind is, put there by people through the API, as a kill leaves it. */

import { App } from './app.ts'
import { Authenticator } from './authenticator.ts'
import { CODE, meetPeople, settingsFor, signInAgain, startCall } from './call-people.ts'
import { codeFor } from './dev-person.ts'
import { listOf, newPhone, registrationOf } from './device-lists.ts'
import { startServer } from './server.ts'
import { newServerKey } from './server-keys.ts'
import { answerSignature } from './sign-in-people.ts'
import { proveByCode } from './step-up.ts'
import { WEBHOOK_SECRET } from './webhooks.ts'

/** Tables that stay empty: a provider, a backend, a paid message, limited rates or a moment within a request would be needed. */
export const LEFT_EMPTY: ReadonlySet<string> = new Set([
  'devices-pending',
  'device-lists-pending',
  'identity-tokens',
  'sms-tallies',
  'sms-dial-codes',
  'outbox',
  'rates',
  'server-keys',
  'audit',
  'external-ids',
  'contact-addresses',
])

/** Fills a store and kills its server at once, so that nothing that waits is done. */
export async function fillStore(dataFolder: string): Promise<void> {
  const server = await startServer({
    dataFolder,
    environment: {
      CALLSIGN_LOG_LEVEL: 'error',
      CALLSIGN_SIGN_IN_WAIT_HOURS: '72',
      // No program listens there, so events wait, the first ones by themselves, and die where there are more.
      CALLSIGN_WEBHOOK_URL: 'http://127.0.0.1:9/',
      CALLSIGN_WEBHOOK_SECRET: WEBHOOK_SECRET,
      CALLSIGN_WEBHOOK_WAITING_MAX: '24',
      ...settingsFor(PEOPLE + 1),
    },
  })
  const [host, ...others] = await meetPeople(server.http, PEOPLE - 1)
  const [caller, callee, blocked, stranger, removed] = [host!, ...others]
  const again = await signInAgain(server.http, 0)
  const listed = await signInAgain(server.http, PEOPLE)
  const phone = newPhone('a phone')
  const { userId } = await listed.get(200, 'GET /app/api/user')
  const list = listOf(userId, [phone])
  await listed.get(201, 'POST /app/api/register_device', registrationOf(phone, listed.challenge!, list))
  const pushed = { fcmToken: 'f'.repeat(140), apnsToken: 'ab'.repeat(32), apnsVoipToken: 'cd'.repeat(32) }
  await callee!.app.get(204, 'PUT /app/api/devices/current/push', pushed)
  for (const end of ['end', 'keep'] as const) {
    const { body } = await startCall(caller, [callee!, stranger!])
    if (end === 'end') await caller.app.get(200, 'POST /app/api/call/end', { callId: body.callId })
    else await stranger!.app.get(204, `POST /app/api/call/${body.callId}/decline`)
  }
  await callee!.app.get(204, 'POST /app/api/call/history/seen')
  await removed!.app.get(204, `DELETE /app/api/devices/${removed!.deviceId}`)
  await caller.app.get(204, 'POST /app/api/block', { userId: blocked!.userId })
  const { token } = await callee!.app.get(201, 'POST /app/api/share-token', { label: 'at the fair' })
  await stranger!.app.get(201, 'POST /app/api/friend-request/by-token', { token })
  await stranger!.app.get(
    201,
    'POST /app/api/friend-request/by-id',
    { targetUserId: blocked!.userId, message: 'Hello' },
    { 'idempotency-key': 'a-request-that-may-come-again' },
  )
  await addPasskey(caller!.app)
  const report = { userId: caller!.userId, reason: 'spam', text: 'Hello all day' }
  await stranger!.app.get(201, 'POST /app/api/report', report)
  await refuseSignIn(server.http)
  await makeCircle(dataFolder, server, callee!.userId)
  // Left last: within a second the sweep does what they leave behind.
  await again.get(200, 'POST /app/api/login', { email: 'somebody@example.org' })
  await stranger!.app.get(202, 'POST /app/api/friend-request', { email: 'person1@example.org' })
  await server.end('SIGKILL')
}

/** The backend puts a user into a circle. */
async function makeCircle(
  dataFolder: string,
  server: { readonly serverApi: string },
  userId: string,
): Promise<void> {
  const key = await newServerKey(dataFolder, server, ['contacts'])
  const url = `${server.serverApi}/server/api/v1/circles/team/members/id:${userId}`
  const { status } = await fetch(url, { method: 'PUT', headers: { authorization: `Bearer ${key}` } })
  if (status !== 204) throw new Error(`a circle was answered ${status}`)
}

/** Adds a passkey, which uses a challenge up. */
async function addPasskey(app: App): Promise<void> {
  await proveByCode(app, () => CODE)
  const { options } = await app.get(200, 'POST /app/api/user/passkeys/options')
  const credential = new Authenticator('http://localhost').create(options)
  await app.get(201, 'POST /app/api/user/passkeys', { credential, label: 'a key' })
}

/** A stranger signs in to an account with a device list, and its phone refuses. */
async function refuseSignIn(http: string): Promise<void> {
  const email = 'refusing@example.org'
  const [app, phone] = [new App(http), newPhone('refusing')]
  let otp: string | undefined
  const enter = async () => {
    const { challengeId } = await app.get(200, 'POST /app/api/login', { email })
    otp = await codeFor(app, email, otp)
    return app.send('POST /app/api/verify-login', { challengeId, otp })
  }
  const { user } = app.take((await enter()).body)
  const list = listOf(user.userId, [phone])
  await app.get(201, 'POST /app/api/register_device', registrationOf(phone, app.challenge!, list))
  await enter()
  const { items } = await app.get(200, 'GET /app/api/user/waiting-sign-ins')
  const [{ id }] = items
  const signature = answerSignature({ userId: user.userId, phone }, id, false)
  await app.get(204, `POST /app/api/user/waiting-sign-ins/${id}`, { approve: false, signature })
}

const PEOPLE = 6
