/**
 * Proofs that `@callsign/sdk/app` asks for: one question for several refused operations, each way to prove, and how the operations go on
 * or end.
 */

import t, { type Test } from 'tap'
import { CallsignError, type CallsignOptions, hasCode, type ProofNeeded } from '../../../src/app/app.ts'
import { rejectionOf } from '../../support/app-sessions.ts'
import { Authenticator } from '../../support/authenticator.ts'
import { CODE, emailOf, settingsFor } from '../../support/call-people.ts'
import { openServer } from '../../support/open-server.ts'
import { type AppPerson, newPerson } from '../../support/whole-apps.ts'

type Assertion = Awaited<ReturnType<NonNullable<CallsignOptions['passkeys']>['get']>>

const WRONG = '000000'
const STEP_UP = 'POST /app/api/user/step-up'

/** Makes passkeys for a server's pages, and counts how often it was asked. */
function platformPasskeys(http: string) {
  const authenticator = new Authenticator(http.replace('127.0.0.1', 'localhost'))
  return {
    authenticator,
    passkeys: {
      create: async options => authenticator.create(options),
      get: async options => authenticator.get(options) as Assertion,
    } satisfies CallsignOptions['passkeys'],
  }
}

/** The real `fetch`, with the bodies that each operation was asked with. */
function heardFetch() {
  const heard: { readonly operation: string; readonly body: Readonly<Record<string, unknown>> }[] = []
  const fetched: typeof fetch = (url, init) => {
    const operation = `${init?.method} ${new URL(String(url)).pathname}`
    heard.push({ operation, body: JSON.parse(String(init?.body ?? '{}')) })
    return fetch(url, init)
  }
  const bodiesOf = (operation: string) =>
    heard.filter(one => one.operation === operation).map(one => one.body)
  return { fetch: fetched, bodiesOf }
}

/** A person, the only device of their list, and the questions to their app. */
async function setUp(t: Test, options: Partial<CallsignOptions> = {}) {
  const server = await openServer({ dataFolder: t.testdir(), environment: settingsFor(2) })
  t.teardown(() => server.end())
  const heard = heardFetch()
  const person = await newPerson(t, server.http, 0, { fetch: heard.fetch, ...options })
  return { ...person, ...heard, server, questions: questionsOf(person) }
}

function questionsOf({ me }: AppPerson): ProofNeeded[] {
  const questions: ProofNeeded[] = []
  me.on('proof-needed', proof => void questions.push(proof))
  return questions
}

t.test('without a listener the operation is refused', async t => {
  const server = await openServer({ dataFolder: t.testdir(), environment: settingsFor(1) })
  t.teardown(() => server.end())
  const { me } = await newPerson(t, server.http, 0)
  const error = await me.account.delete().catch((error: unknown) => error)
  t.match(error, { code: 'STEP_UP_REQUIRED', status: 403, members: { ways: ['code'], signed: true } })
})

t.test('operations that are refused together wait for one proof, and are repeated', async t => {
  const { me, questions, bodiesOf } = await setUp(t)
  const asked = me.once('proof-needed')
  const { primaryMethodId } = me.user!
  const setting = Array.from({ length: 3 }, () => me.account.setPrimaryLoginMethod(primaryMethodId!))
  const proof = await asked
  t.match(proof, { ways: ['code'], sentTo: /^p•+@/ })
  await proof.confirm(` ${CODE.slice(0, 3)} ${CODE.slice(3)} `)
  t.equal((await Promise.all(setting)).length, 3)
  t.equal(questions.length, 1)
  t.match(bodiesOf(STEP_UP), [{ otp: CODE, deviceSignature: /^[\w+/]{86}==$/ }])
  await me.account.setPrimaryLoginMethod(primaryMethodId!)
  t.equal(questions.length, 1)
})

t.test(
  'an operation whose refusal comes after the proof of another is repeated without a question',
  async t => {
    let deliver = () => {}
    const delivery = new Promise<void>(resolve => {
      deliver = resolve
    })
    let isHeld = false
    const held: typeof fetch = async (url, init) => {
      const answer = await fetch(url, init)
      if (init?.method === 'DELETE' && !isHeld) {
        isHeld = true
        await delivery
      }
      return answer
    }
    const { me, questions } = await setUp(t, { fetch: held })
    const asked = me.once('proof-needed')
    const deleting = me.account.delete()
    const setting = me.account.setPrimaryLoginMethod(me.user!.primaryMethodId!)
    await (await asked).confirm(CODE)
    await setting
    deliver()
    t.ok(await deleting)
    t.equal(questions.length, 1)
  },
)

t.test('a wrong code leaves the question open, and one that has ended is replaced', async t => {
  const { me, questions } = await setUp(t)
  const asked = me.once('proof-needed')
  const deleting = me.account.delete()
  const proof = await asked
  const wrong = await proof.confirm(WRONG).catch((error: unknown) => error)
  t.match(wrong, { code: 'OTP_INVALID', members: { attemptsLeft: 4 } })
  for (let left = 4; left > 0; left--) await rejectionOf(proof.confirm(WRONG))
  t.equal(await rejectionOf(proof.confirm(CODE)), 'CHALLENGE_GONE')
  t.match(await proof.sendCode(), { sentTo: proof.sentTo! })
  await proof.confirm(CODE)
  t.ok(await deleting)
  t.equal(questions.length, 1)
})

t.test('refused, the operation is; the next one asks again', async t => {
  const { me, questions } = await setUp(t)
  const stop = me.on('proof-needed', proof => proof.refuse())
  t.equal(await rejectionOf(me.account.delete()), 'STEP_UP_REQUIRED')
  t.equal(await rejectionOf(questions[0]!.confirm(CODE)), 'CHALLENGE_GONE')
  stop()
  const asked = me.once('proof-needed')
  const deleting = me.account.delete()
  await (await asked).confirm(CODE)
  t.ok(await deleting)
})

t.test('a listener that fails refuses, and the app hears of the failure', async t => {
  const { me, errors } = await setUp(t)
  me.on('proof-needed', () => Promise.reject(new CallsignError('OFFLINE', 'no dialog')))
  t.equal(await rejectionOf(me.account.delete()), 'STEP_UP_REQUIRED')
  t.ok(errors.some(error => hasCode(error, 'OFFLINE')))
})

t.test('a sign-out ends the operation, and the old question proves nothing for the next user', async t => {
  const { me, bodiesOf } = await setUp(t)
  const asked = me.once('proof-needed')
  const deleting = rejectionOf(me.account.delete())
  const proof = await asked
  await me.signOut()
  t.equal(await deleting, 'SIGNED_OUT')
  await me.signIn(emailOf(1), () => CODE, { displayName: 'Person 1' })
  t.equal(await rejectionOf(proof.confirm(CODE)), 'CHALLENGE_GONE')
  t.equal(await rejectionOf(proof.sendCode()), 'CHALLENGE_GONE')
  t.same(bodiesOf(STEP_UP), [])
})

t.test('an operation ends when another device ends the session', async t => {
  const { me, server, storage } = await setUp(t).then(up => ({ ...up, storage: up.options.storage }))
  const asked = me.once('proof-needed')
  const deleting = rejectionOf(me.account.delete())
  const proof = await asked
  const other = await newPerson(t, server.http, 0, { storage })
  await other.me.signOut({ allDevices: true })
  await rejectionOf(proof.confirm(CODE))
  t.equal(await deleting, 'SIGNED_OUT')
})

t.test('a token of a provider goes as it is, with the signature', async t => {
  const { me, bodiesOf } = await setUp(t)
  const asked = me.once('proof-needed')
  const deleting = rejectionOf(me.account.delete())
  const proof = await asked
  const signed = { idToken: 'aa.bb.cc', nonce: 'n' }
  await t.rejects(proof.byProvider('google', signed))
  t.match(bodiesOf(STEP_UP), [{ provider: 'google', ...signed, deviceSignature: String }])
  proof.refuse()
  t.equal(await deleting, 'STEP_UP_REQUIRED')
})

t.test('a passkey is added, signs in, and proves who the user is', async t => {
  const server = await openServer({ dataFolder: t.testdir(), environment: settingsFor(1) })
  t.teardown(() => server.end())
  const { passkeys } = platformPasskeys(server.http)
  const { me } = await newPerson(t, server.http, 0, { passkeys })
  const asked = me.once('proof-needed')
  const adding = me.addPasskey({ label: 'Phone' })
  await (await asked).confirm(CODE)
  t.match(await adding, { kind: 'passkey', label: 'Phone', primary: false })
  await me.signOut()
  t.match(await me.signInByPasskey(), { email: emailOf(0) })
  // Its sign-in is a proof, but for a listed device, which signs it.
  const again = me.once('proof-needed')
  const deleting = me.account.delete()
  const proof = await again
  t.match(proof, { ways: ['code', 'passkey'], sentTo: undefined })
  await proof.byPasskey()
  t.ok(await deleting)
})

t.test('without an authenticator no passkey is offered or made', async t => {
  const { me } = await setUp(t)
  t.equal(await rejectionOf(me.addPasskey()), 'PASSKEY_UNAVAILABLE')
  await me.signOut()
  t.equal(await rejectionOf(me.signInByPasskey()), 'PASSKEY_UNAVAILABLE')
})
