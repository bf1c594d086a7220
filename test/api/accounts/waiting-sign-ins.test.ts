/**
 * Right codes for accounts that have a device to be asked, or whose number has been away for long: who waits, who answers,
 * and who gets in (contract 0.1, "2.2, 2.4").
 */

import t, { type Test } from 'tap'
import type { DeviceId, UserId } from '../../../src/domain/ids.ts'
import { REFUSED_SIGN_INS } from '../../../src/store/accounts/account-tables.ts'
import { prove } from '../../support/application.ts'
import { listBody, listOf, newPhone } from '../../support/device-lists.ts'
import { registerDevice } from '../../support/device-requests.ts'
import {
  answerSignature,
  answerSignIn,
  type Client,
  clientOf,
  DAY_MS,
  enterCode,
  fetchWaiting,
  proofOf,
  refresh,
  register,
  shownSignIns,
  signUp,
  startOver,
} from '../../support/sign-in-people.ts'
import { openTestApi, type TestApi, type TestApiOptions } from '../../support/test-api.ts'

const MAIL = 'ann@example.org'
const NUMBER = '+4915123456789'
const HOUR_MS = 3_600_000
const WAITING = { status: 403, body: { code: 'SIGN_IN_WAITING' } }
const REFUSED = { status: 403, body: { code: 'SIGN_IN_REFUSED' } }
const GONE = { status: 410, body: { code: 'SIGN_IN_GONE' } }

function open(t: Test, options: TestApiOptions = {}): Promise<TestApi> {
  return openTestApi(t, { log: 'appended', ...options })
}

/** Ann's phone, and a thief who has entered a right code for her address. */
async function thiefAtAnns(t: Test, options: TestApiOptions & { address?: string } = {}) {
  const { address = NUMBER, ...others } = options
  const api = await open(t, others)
  const ann = await signUp(api, address)
  await api.advance(DAY_MS)
  await refresh(api, ann)
  api.told.length = 0
  const answer = await enterCode(api, address)
  return { api, ann, answer, waitingId: answer.body.waitingId as string }
}

async function idShown(api: TestApi, client: Client): Promise<string> {
  const [shown] = await shownSignIns(api, client)
  return String(shown?.id)
}

/** Adds a mail address to the client's account. */
async function addMail(api: TestApi, client: Client) {
  await prove(api.world, client.token)
  return confirmAddress(api, client, 'email', MAIL)
}

/** Has the client's account confirm an address, new or its own. */
async function confirmAddress(api: TestApi, { token }: Client, kind: 'email' | 'phone', value: string) {
  await api.world.takeSent()
  const { body } = await api.send('POST /app/api/user/login-methods', { token, body: { kind, value } })
  const otp = await api.otpFor(value)
  return api.send('POST /app/api/verify', { token, body: { challengeId: body.challengeId, otp } })
}

async function deleteUser(api: TestApi, { token }: Client): Promise<void> {
  await prove(api.world, token)
  await api.send('DELETE /app/api/user', { token, body: { confirm: true } })
}

/** As `proofOf`, with the wish to have the new address for an account without one. */
function reclaimOf(client: Client) {
  return (challengeId: string) => ({ ...proofOf(client)(challengeId), reclaim: true })
}

function isoAfter({ world }: TestApi, ms: number): string {
  return new Date(world.nowMs() + ms).toISOString()
}

t.test(
  'a right code waits where a listed device was seen lately, and its owner hears of it at once',
  async t => {
    const { api, ann, answer, waitingId } = await thiefAtAnns(t)
    t.match(answer, { ...WAITING, body: { until: isoAfter(api, 72 * HOUR_MS) } })
    const [shown] = await shownSignIns(api, ann)
    t.match(shown, { method: 'phone', until: answer.body.until })
    t.equal(answer.body.signInCode, shown?.signInCode, 'both screens show the same digits')
    t.match(answer.body.signInCode, /^\d{5} \d{5} \d{5} \d{5}$/)
    t.match(api.told, [{ body: { kind: 'sign_in_waiting', id: shown?.id } }])
    t.strictSame(await api.letters(), [`sms ${NUMBER} sign-in-waiting`])
    t.match(await fetchWaiting(api, waitingId), WAITING)
  },
)

t.test('a request for a code is answered alike for every address', async t => {
  const { api } = await thiefAtAnns(t)
  const ask = async (identifier: string) => {
    const { status, body } = await api.send('POST /app/api/login', { body: { identifier } })
    const { challengeId: _, sentTo: __, ...rest } = body
    return { status, ...rest }
  }
  const strangers = await ask('+4915123456780')
  await api.advance(DAY_MS)
  t.strictSame(await ask(NUMBER), strangers)
})

t.test('an approved sign-in opens the account for the client that waited, and for no other', async t => {
  const { api, ann, waitingId } = await thiefAtAnns(t)
  const id = await idShown(api, ann)
  t.match(await answerSignIn(api, ann, id, true), { status: 204 })
  t.match(await fetchWaiting(api, id), GONE, 'the name that the phone shows opens nothing')
  const opened = await fetchWaiting(api, waitingId)
  t.match(opened, { status: 200, body: { user: { userId: ann.userId }, isNewUser: false } })
  t.strictSame((await fetchWaiting(api, waitingId)).body, opened.body, 'a lost reply comes again')
  const tablet = clientOf(opened, 'tablet')
  await api.send('GET /app/api/user', { token: tablet.token })
  await api.world.database.change(() => undefined)
  t.match(await fetchWaiting(api, waitingId), GONE, 'but not once the session is used')
  t.strictSame(await shownSignIns(api, ann), [])
})

t.test('a device that the list does not name hears of no sign-in that waits', async t => {
  const { api, ann, waitingId } = await thiefAtAnns(t)
  await answerSignIn(api, ann, await idShown(api, ann), true)
  const tablet = clientOf(await fetchWaiting(api, waitingId), 'tablet')
  await register(api, tablet)
  t.match(await enterCode(api, NUMBER), WAITING)
  const { world } = api
  const heard = ({ userId, phone }: Client) =>
    world.database
      .view(view =>
        world.inbox.after(view, BigInt(userId) as never, phone.deviceId as never, {
          offset: 0,
          limit: 50,
          nowMs: world.nowMs(),
        }),
      )
      .flatMap(({ item }) => (item.kind === 'notice' ? [item.body.kind] : []))
  t.strictSame(heard(ann).at(-1), 'sign_in_waiting')
  t.notOk(heard(tablet).includes('sign_in_waiting'))
})

t.test('an answer counts with a signature of the listed device that gives it, and once', async t => {
  const { api, ann, waitingId } = await thiefAtAnns(t)
  const id = await idShown(api, ann)
  const forged = { ...ann, phone: { ...newPhone('forger'), deviceId: ann.phone.deviceId } }
  t.match(await answerSignIn(api, forged, id, true), { status: 422 })
  const refusal = await answerSignIn(api, ann, id, false)
  t.equal(refusal.status, 204)
  t.match(await answerSignIn(api, ann, id, true), { status: 404, body: { code: 'SIGN_IN_NOT_FOUND' } })
  t.match(await fetchWaiting(api, waitingId), REFUSED)
})

t.test('the signature of a refusal approves nothing', async t => {
  const { api, ann } = await thiefAtAnns(t)
  const id = await idShown(api, ann)
  const body = { approve: true, signature: answerSignature(ann, id, false) }
  const path = `POST /app/api/user/waiting-sign-ins/${id}`
  t.match(await api.send(path, { token: ann.token, body }), { status: 422 })
})

t.test('an owner who lost all devices gets three notices, and is in after 72 hours', async t => {
  const { api, ann, waitingId } = await thiefAtAnns(t)
  for (let hour = 0; hour < 71; hour++) await api.advance(HOUR_MS)
  t.match(await fetchWaiting(api, waitingId), WAITING)
  const notices = api.told.filter(({ body }) => body.kind === 'sign_in_waiting')
  t.equal(notices.length, 3)
  await api.advance(HOUR_MS)
  const opened = await fetchWaiting(api, waitingId)
  t.ok(api.told.some(({ body }) => body.kind === 'sign_in_ended' && body.outcome === 'passed'))
  t.match(opened, { status: 200, body: { user: { userId: ann.userId } } })
  const found = clientOf(opened, 'found')
  t.equal((await register(api, found)).status, 201)
  t.match(await startOver(api, found, 0), { status: 403, body: { code: 'STEP_UP_REQUIRED', signed: false } })
  await prove(api.world, found.token)
  t.match(await startOver(api, found, 0), { status: 200 })
  t.match(await api.send('GET /app/api/friend', { token: found.token }), { status: 200 })
})

t.test('an unlisted device starts over only after a wait without an answer', async t => {
  const { api, ann, waitingId } = await thiefAtAnns(t)
  await answerSignIn(api, ann, await idShown(api, ann), true)
  const approved = clientOf(await fetchWaiting(api, waitingId), 'approved')
  await register(api, approved)
  t.match(await startOver(api, approved, 0), { status: 403, body: { code: 'DEVICE_NOT_LISTED' } })
  const { body } = await enterCode(api, NUMBER)
  await api.advance(72 * HOUR_MS)
  await refresh(api, ann)
  const unanswered = clientOf(await fetchWaiting(api, body.waitingId), 'unanswered')
  await register(api, unanswered)
  await api.advance(DAY_MS)
  await refresh(api, unanswered)
  t.match(await startOver(api, unanswered, 0), { status: 403 }, 'within a day')
})

t.test('the owner may refuse as long as it is not in, also after its time', async t => {
  const { api, ann, waitingId } = await thiefAtAnns(t)
  await api.advance(73 * HOUR_MS)
  await refresh(api, ann)
  t.equal((await answerSignIn(api, ann, await idShown(api, ann), false)).status, 204)
  t.match(await fetchWaiting(api, waitingId), REFUSED)
})

t.test('a later sign-in takes the place of one whose time has passed', async t => {
  const { api, ann, waitingId } = await thiefAtAnns(t)
  await api.advance(73 * HOUR_MS)
  await refresh(api, ann)
  t.match(await enterCode(api, NUMBER), { ...WAITING, body: { until: isoAfter(api, 72 * HOUR_MS) } })
  t.match(await fetchWaiting(api, waitingId), GONE)
})

t.test('who waited when the owner ended the account does not bring it back', async t => {
  const { api, ann, waitingId } = await thiefAtAnns(t)
  await deleteUser(api, ann)
  await api.advance(72 * HOUR_MS)
  t.match(await fetchWaiting(api, waitingId), GONE)
  t.match(await enterCode(api, NUMBER, proofOf(ann)), { status: 200 }, 'its owner does')
})

t.test('a lost reply comes again for a day', async t => {
  const { api, waitingId } = await thiefAtAnns(t)
  await api.advance(72 * HOUR_MS)
  t.match(await fetchWaiting(api, waitingId), { status: 200 })
  await api.advance(DAY_MS - HOUR_MS)
  t.match(await fetchWaiting(api, waitingId), { status: 200 })
  await api.advance(HOUR_MS)
  t.match(await fetchWaiting(api, waitingId), GONE)
})

t.test('a sign-in that is not fetched within a week is gone', async t => {
  const { api, ann, waitingId } = await thiefAtAnns(t)
  await api.advance(72 * HOUR_MS + 7 * DAY_MS)
  t.match(await fetchWaiting(api, waitingId), GONE)
  await refresh(api, ann)
  t.match(
    await enterCode(api, NUMBER),
    { body: { until: isoAfter(api, 72 * HOUR_MS) } },
    'the next one begins anew',
  )
})

t.test(
  'a refused address opens nothing for a week, then an account of its own; the old one hears of it',
  async t => {
    const { api, ann, waitingId } = await thiefAtAnns(t)
    await addMail(api, ann)
    await answerSignIn(api, ann, await idShown(api, ann), false)
    const until = isoAfter(api, 7 * DAY_MS)
    t.match(await enterCode(api, NUMBER), { ...REFUSED, body: { until } })
    await api.advance(7 * DAY_MS - HOUR_MS)
    t.match(await fetchWaiting(api, waitingId), { ...REFUSED, body: { until } })
    await refresh(api, ann)
    await api.advance(HOUR_MS)
    t.match(await fetchWaiting(api, waitingId), GONE)
    api.told.length = 0
    const moved = await enterCode(api, NUMBER)
    t.match(moved, { status: 200, body: { isNewUser: true } })
    t.not(moved.body.user.userId, ann.userId)
    t.match(api.told, [{ body: { kind: 'login_method_lost', method: 'phone', value: NUMBER } }, {}])
    t.strictSame(await api.letters(), [`mail ${MAIL} login-method-lost`])
    await refresh(api, ann)
    const { body } = await api.send('GET /app/api/user', { token: ann.token })
    t.match(body, { userId: ann.userId, email: MAIL })
    t.equal(body.phone, undefined)
  },
)

t.test('an account that has lost its only address lives on, and takes a new one', async t => {
  const { api, ann } = await thiefAtAnns(t)
  await answerSignIn(api, ann, await idShown(api, ann), false)
  await api.advance(7 * DAY_MS)
  await enterCode(api, NUMBER)
  await refresh(api, ann)
  const { body } = await api.send('GET /app/api/user', { token: ann.token })
  t.strictSame(
    [body.userId, body.phone, body.primaryMethodId, body.loginMethods],
    [ann.userId, undefined, undefined, []],
  )
  const confirmed = await confirmAddress(api, ann, 'email', MAIL)
  t.match(confirmed, { status: 200, body: { user: { email: MAIL } } }, 'without a proof, for want of any')
  const { loginMethods } = (await api.send('GET /app/api/user', { token: ann.token })).body
  t.match(loginMethods, [{ value: MAIL, primary: true }])
})

t.test('a signed-out device opens the account that has no address left, with a new address', async t => {
  const { api, ann } = await thiefAtAnns(t)
  await answerSignIn(api, ann, await idShown(api, ann), false)
  await api.send('POST /app/api/logout', { token: ann.token, body: {} })
  await api.advance(7 * DAY_MS)
  await enterCode(api, NUMBER)
  const stranger = { ...ann, phone: { ...newPhone('stranger'), deviceId: ann.phone.deviceId } }
  const other = await enterCode(api, 'other@example.org', reclaimOf(stranger))
  t.not(other.body.user.userId, ann.userId, 'by its own signature alone')
  const guest = await enterCode(api, 'guest@example.org', proofOf(ann))
  t.not(guest.body.user.userId, ann.userId, 'and by wish alone: a guest may sign in on its phone')
  const back = await enterCode(api, MAIL, reclaimOf(ann))
  t.match(back, { status: 200, body: { user: { userId: ann.userId }, isNewUser: false } })
})

t.test('the owner keeps a refused address by confirming a code to it', async t => {
  const { api, ann } = await thiefAtAnns(t)
  await answerSignIn(api, ann, await idShown(api, ann), false)
  await prove(api.world, ann.token)
  t.match(await confirmAddress(api, ann, 'phone', NUMBER), { status: 200 })
  t.match(await enterCode(api, NUMBER), WAITING, 'the next one waits again')
  await api.advance(7 * DAY_MS)
  await refresh(api, ann)
  t.match(await enterCode(api, NUMBER), WAITING)
})

t.test('a refusal holds its week, though an earlier one that was taken back ends in it', async t => {
  const { api, ann } = await thiefAtAnns(t)
  await answerSignIn(api, ann, await idShown(api, ann), false)
  await prove(api.world, ann.token)
  await confirmAddress(api, ann, 'phone', NUMBER)
  await api.advance(36 * DAY_MS)
  await refresh(api, ann)
  await enterCode(api, NUMBER)
  await answerSignIn(api, ann, await idShown(api, ann), false)
  const until = isoAfter(api, 7 * DAY_MS)
  await api.advance(2 * DAY_MS)
  t.match(await enterCode(api, NUMBER), { ...REFUSED, body: { until } })
})

t.test('a refusal keeps out those too whose time had passed, and who have not come in yet', async t => {
  const { api, ann, waitingId } = await thiefAtAnns(t)
  await api.advance(73 * HOUR_MS)
  await refresh(api, ann)
  t.match(await enterCode(api, NUMBER), WAITING)
  await answerSignIn(api, ann, await idShown(api, ann), false)
  t.match(await fetchWaiting(api, waitingId), GONE)
})

t.test('a refusal that nothing follows is forgotten', async t => {
  const { api, ann } = await thiefAtAnns(t)
  await answerSignIn(api, ann, await idShown(api, ann), false)
  await api.advance(37 * DAY_MS)
  await refresh(api, ann)
  t.match(await enterCode(api, NUMBER), WAITING)
})

t.test('a listed device signs in without waiting, by its signature over the challenge', async t => {
  const { api, ann } = await thiefAtAnns(t)
  t.match(await enterCode(api, NUMBER, proofOf(ann)), { status: 200, body: { user: { userId: ann.userId } } })
  const bob = await signUp(api, '+4915123456700', 'bob')
  t.match(await enterCode(api, NUMBER, proofOf(bob)), WAITING, 'another user’s device is none')
  t.match(await enterCode(api, NUMBER, proofOf({ ...ann, phone: bob.phone })), WAITING)
  const another = proofOf(ann)('AAAAAAAAAAAAAAAAAAAAAA')
  t.match(await enterCode(api, NUMBER, another), WAITING, 'nor does it sign for another challenge')
})

t.test('the refresh token of a listed device skips the wait, and no other token does', async t => {
  const { api, ann, waitingId } = await thiefAtAnns(t)
  const { refreshToken } = ann
  t.match(await enterCode(api, NUMBER, { refreshToken }), { status: 200 })
  await answerSignIn(api, ann, await idShown(api, ann), true)
  const tablet = clientOf(await fetchWaiting(api, waitingId), 'tablet')
  await register(api, tablet)
  t.match(
    await enterCode(api, NUMBER, { refreshToken: tablet.refreshToken }),
    WAITING,
    'of an unlisted device',
  )
  await refresh(api, ann)
  await refresh(api, ann)
  t.match(await enterCode(api, NUMBER, { refreshToken }), WAITING, 'replaced twice')
  await api.send('POST /app/api/logout', { token: ann.token, body: {} })
  t.match(
    await enterCode(api, NUMBER, { refreshToken: ann.refreshToken }),
    WAITING,
    'of a session that is over',
  )
})

t.test('a refresh token whose use would end its session proves nothing', async t => {
  const { api, ann } = await thiefAtAnns(t)
  const { refreshToken } = ann
  await refresh(api, ann)
  t.match(await enterCode(api, NUMBER, { refreshToken }), { status: 200 }, 'the reply may have been lost')
  await api.send('GET /app/api/user', { token: ann.token })
  await api.advance(HOUR_MS)
  t.match(await enterCode(api, NUMBER, { refreshToken }), WAITING)
})

t.test('an answer that overtakes its device’s removal on the way does not count', async t => {
  const { api, ann, waitingId } = await thiefAtAnns(t)
  const id = await idShown(api, ann)
  const [removed, answered] = await Promise.all([
    api.send(`DELETE /app/api/devices/${ann.phone.deviceId}`, { token: ann.token }),
    answerSignIn(api, ann, id, true),
  ])
  t.same([removed.status, answered.status], [204, 401])
  t.match(await fetchWaiting(api, waitingId), WAITING)
})

t.test('a stolen token that removes the listed devices makes no way for a stolen code', async t => {
  const { api, ann } = await thiefAtAnns(t)
  const { phone, token } = ann
  t.equal((await api.send(`DELETE /app/api/devices/${phone.deviceId}`, { token })).status, 204)
  const { body } = await enterCode(api, NUMBER)
  t.match(body, { code: 'SIGN_IN_WAITING' })
  await api.advance(72 * HOUR_MS)
  t.equal((await fetchWaiting(api, body.waitingId)).status, 200, 'after the time of an answer')
})

t.test('a device that was removed proves nothing, though the list still names it', async t => {
  const { api, ann } = await thiefAtAnns(t)
  const approved = await fetchWaiting(api, (await enterCode(api, NUMBER)).body.waitingId)
  t.match(approved, WAITING)
  const { waitingId } = approved.body
  await answerSignIn(api, ann, await idShown(api, ann), true)
  const tablet = clientOf(await fetchWaiting(api, waitingId), 'tablet')
  await register(api, tablet)
  const first = listOf(ann.userId, [ann.phone])
  const both = listOf(ann.userId, [ann.phone, tablet.phone], { previous: first, signer: ann.phone })
  const headers = { 'if-match': '"0"' }
  await api.send('PUT /app/api/user/device-list', { token: ann.token, body: listBody(both), headers })
  await api.send(`DELETE /app/api/devices/${tablet.phone.deviceId}`, { token: ann.token })
  t.match(await enterCode(api, NUMBER, proofOf(tablet)), WAITING)
})

t.test(
  'a later sign-in takes the place of one that waits, and the last one is in after twice the time',
  async t => {
    const { api, ann, answer, waitingId } = await thiefAtAnns(t)
    await api.advance(60 * HOUR_MS)
    const second = await enterCode(api, NUMBER)
    t.match(second, { ...WAITING, body: { until: isoAfter(api, 72 * HOUR_MS) } })
    t.not(second.body.signInCode, answer.body.signInCode)
    t.match(await fetchWaiting(api, waitingId), GONE)
    await refresh(api, ann)
    t.equal((await shownSignIns(api, ann)).length, 1)
    await api.advance(60 * HOUR_MS)
    const third = await enterCode(api, NUMBER)
    t.match(third, { ...WAITING, body: { until: isoAfter(api, 24 * HOUR_MS) } }, '144 hours after the first')
  },
)

t.test('the client that waits may enter another code: its time goes on', async t => {
  const { api, answer, waitingId } = await thiefAtAnns(t)
  await api.advance(24 * HOUR_MS)
  const again = await enterCode(api, NUMBER, { waitingId })
  const { until, signInCode } = answer.body
  t.match(again, { ...WAITING, body: { waitingId, until, signInCode } })
})

t.test('a code opens the account at once where the operator says so', async t => {
  const { answer } = await thiefAtAnns(t, { config: { signInWaitH: 0 } })
  t.equal(answer.status, 200)
})

t.test('a code opens an account without a device list, or with thirty days of silence, at once', async t => {
  const api = await open(t)
  const seed = clientOf(await enterCode(api, MAIL))
  await registerDevice(api, seed)
  t.match(await enterCode(api, MAIL), { status: 200, body: { user: { userId: seed.userId } } })
  const ann = await signUp(api, NUMBER)
  await api.advance(30 * DAY_MS)
  t.match(await enterCode(api, NUMBER), { status: 200, body: { user: { userId: ann.userId } } })
})

t.test('a reviewer with a fixed code does not wait', async t => {
  const config = { testIdentifiers: new Map([[NUMBER, '424242']]) }
  const api = await open(t, { config })
  const enter = async () => {
    const { body } = await api.send('POST /app/api/login', { body: { identifier: NUMBER } })
    return api.send('POST /app/api/verify-login', { body: { challengeId: body.challengeId, otp: '424242' } })
  }
  await register(api, clientOf(await enter()), true)
  t.match(await enter(), { status: 200 })
})

t.test('a number of an account that was silent for 180 days opens an account of its own', async t => {
  const api = await open(t)
  const ann = await signUp(api, NUMBER)
  await api.advance(180 * DAY_MS)
  api.told.length = 0
  const next = await enterCode(api, NUMBER)
  t.match(next, { status: 200, body: { isNewUser: true } })
  t.not(next.body.user.userId, ann.userId)
  t.match(
    api.told.map(({ body }) => body.kind),
    ['login_method_lost', 'profile_changed', 'session_revoked'],
  )
  const back = await enterCode(api, MAIL, reclaimOf(ann))
  t.match(
    back,
    { status: 200, body: { user: { userId: ann.userId } } },
    'its device takes it back within the grace',
  )
  await api.advance(8 * DAY_MS)
  t.match(await api.send('POST /app/api/refresh-token', { body: { refreshToken: back.body.refreshToken } }), {
    status: 200,
  })
})

t.test('without its device, such an account is erased after the grace', async t => {
  const api = await open(t)
  const ann = await signUp(api, NUMBER)
  await api.advance(180 * DAY_MS)
  await enterCode(api, NUMBER)
  await api.advance(7 * DAY_MS)
  t.equal(
    api.world.database.view(view => api.world.accounts.read(view, BigInt(ann.userId) as never)),
    undefined,
  )
  t.match((await enterCode(api, MAIL, reclaimOf(ann))).body, { isNewUser: true })
})

t.test('a silent number of an account with another method waits, and then opens a fresh account', async t => {
  const api = await open(t)
  const ann = await signUp(api, NUMBER)
  await addMail(api, ann)
  await api.advance(180 * DAY_MS)
  const { body } = await enterCode(api, NUMBER)
  t.match(body, WAITING.body)
  t.strictSame(await api.letters(), [`mail ${MAIL} sign-in-waiting`, `sms ${NUMBER} sign-in-waiting`])
  await api.advance(72 * HOUR_MS)
  const fresh = await fetchWaiting(api, body.waitingId)
  t.match(fresh, { status: 200, body: { isNewUser: true } })
  t.strictSame((await fetchWaiting(api, body.waitingId)).body, fresh.body, 'a lost reply comes again')
  t.not(fresh.body.user.userId, ann.userId)
  t.match(
    await enterCode(api, MAIL),
    { status: 200, body: { user: { userId: ann.userId } } },
    'the owner is in by mail',
  )
})

t.test('a mail address is not taken for another person’s, however long it was silent', async t => {
  const api = await open(t)
  const ann = await signUp(api, MAIL)
  await api.advance(365 * DAY_MS)
  t.match(await enterCode(api, MAIL), { status: 200, body: { user: { userId: ann.userId } } })
})

t.test('an account that is erased while a sign-in waits opens no more', async t => {
  const { api, ann, waitingId } = await thiefAtAnns(t)
  await deleteUser(api, ann)
  await api.advance(7 * DAY_MS)
  t.match(await fetchWaiting(api, waitingId), GONE)
  t.match(await enterCode(api, NUMBER), { status: 200, body: { isNewUser: true } })
})

t.test('who ends all other sessions keeps those out too who were let in and have not come yet', async t => {
  const { api, ann, waitingId } = await thiefAtAnns(t)
  await answerSignIn(api, ann, await idShown(api, ann), true)
  const second = await enterCode(api, NUMBER)
  t.equal((await api.send('DELETE /app/api/user/sessions', { token: ann.token })).status, 204)
  t.match(await fetchWaiting(api, waitingId), GONE)
  t.match(await fetchWaiting(api, second.body.waitingId), WAITING, 'who waits still is asked about')
})

t.test('who deletes the account while a sign-in waits does not leave it to that', async t => {
  const { api, ann, waitingId } = await thiefAtAnns(t)
  await deleteUser(api, ann)
  await api.advance(72 * HOUR_MS)
  t.match(await fetchWaiting(api, waitingId), GONE)
  const { erasesAtMs } = api.world.database.view(
    view => api.world.accounts.read(view, BigInt(ann.userId) as UserId)!,
  )
  t.type(erasesAtMs, 'number')
})

t.test('a refusal names its user no longer than the address is theirs', async t => {
  const { api, ann } = await thiefAtAnns(t)
  await addMail(api, ann)
  await answerSignIn(api, ann, await idShown(api, ann), false)
  const refusals = () => api.world.database.view(view => [...view.keys(REFUSED_SIGN_INS)].length)
  t.equal(refusals(), 1)
  const { body } = await api.send('GET /app/api/user', { token: ann.token })
  const { id } = body.loginMethods.find(({ value }: { value: string }) => value === NUMBER)
  await api.send(`DELETE /app/api/user/login-methods/${id}`, { token: ann.token })
  t.equal(refusals(), 0)
})

t.test('a listed device alone hears who waits, and which address was lost', async t => {
  const { api, ann, waitingId } = await thiefAtAnns(t)
  const { world } = api
  const heard = ({ userId, phone }: Client) =>
    world.database
      .view(view => {
        const [user, device] = [BigInt(userId) as UserId, BigInt(phone.deviceId) as DeviceId]
        return world.inbox.after(view, user, device, { offset: 0, limit: 100, nowMs: world.nowMs() })
      })
      .map(({ item }) => (item.kind === 'notice' ? item.body.kind : item.kind))
  await answerSignIn(api, ann, await idShown(api, ann), true)
  const old = clientOf(await fetchWaiting(api, waitingId), 'old')
  await register(api, old)
  await enterCode(api, NUMBER)
  await answerSignIn(api, ann, await idShown(api, ann), false)
  t.ok(heard(ann).includes('sign_in_waiting'))
  t.same(heard(old), [])
  await api.advance(7 * DAY_MS)
  await enterCode(api, NUMBER)
  t.same(heard(ann), ['login_method_lost', 'profile_changed'])
  t.same(heard(old), ['profile_changed'])
})

t.test('the wait and a refusal outlive a restart', async t => {
  const folder = t.testdir()
  const first = await thiefAtAnns(t, { folder })
  const nowMs = first.api.world.nowMs()
  await first.api.close()
  const api = await open(t, { folder })
  api.world.tick(nowMs - api.world.nowMs())
  await refresh(api, first.ann)
  t.match(await fetchWaiting(api, first.waitingId), WAITING)
  t.match(await answerSignIn(api, first.ann, await idShown(api, first.ann), false), { status: 204 })
  t.match(await enterCode(api, NUMBER), REFUSED)
})
