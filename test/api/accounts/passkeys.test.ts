/** Passkeys over the operations: made, used to sign in, refused, removed. */

import t from 'tap'
import type { UserId } from '../../../src/domain/ids.ts'
import { newDevice, newDeviceList, newSession, newUser } from '../../support/application.ts'
import { Authenticator, type Oddity, USED_FLAGS } from '../../support/authenticator.ts'
import { addPasskey, signInByPasskey } from '../../support/passkeys.ts'
import { openTestApi, type TestApi, tableDigests } from '../../support/test-api.ts'

const METHODS = '/app/api/user/login-methods'
const PATH = '/app/api/user/passkeys'

/** A user with a passkey. */
async function openWithPasskey(t: Parameters<typeof openTestApi>[0], options = {}) {
  const api = await openTestApi(t, options)
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  const authenticator = new Authenticator()
  const added = await addPasskey(api, ann, authenticator)
  return { api, ann, authenticator, added }
}

/** The id of the user's passkey. */
async function passkeyOf({ send }: TestApi, token: string): Promise<string> {
  const { body } = await send(`GET ${METHODS}`, { token })
  return body.items.find(({ kind }: { kind: string }) => kind === 'passkey')?.id
}

t.test('options name the user to the authenticator by an address and a handle', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  const { body } = await api.send(`POST ${PATH}/options`, { token: ann.token })
  t.match(body.options, {
    rp: { id: 'example.org', name: 'Callsign' },
    user: { name: 'ann@example.org', displayName: 'Ann' },
    pubKeyCredParams: [{ alg: -7 }, { alg: -8 }, { alg: -257 }],
    excludeCredentials: [],
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    attestation: 'none',
  })
  t.equal(Buffer.from(body.options.user.id, 'base64url').length, 32)
  await addPasskey(api, ann)
  const { body: next } = await api.send(`POST ${PATH}/options`, { token: ann.token })
  t.match(next.options.excludeCredentials, [{ type: 'public-key', transports: ['internal'] }])
  t.equal(next.options.user.id, body.options.user.id, 'the same user')
})

t.test('a passkey is added, told of, listed, and removed', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world, 'Ann', 'ann@example.org')
  const { deviceId } = await newDevice(api.world, ann.userId)
  const { body: asked } = await api.send(`POST ${PATH}/options`, { token: ann.token })
  const credential = new Authenticator().create(asked.options)
  const added = await api.send(`POST ${PATH}`, {
    token: ann.token,
    body: { credential, label: ' My  phone ' },
  })
  t.match(added, {
    status: 201,
    body: { kind: 'passkey', label: 'My phone', backedUp: true, primary: false, verified: true },
  })
  t.equal(added.body.value, undefined)
  t.same(await api.letters(), ['mail ann@example.org login-method-added'])
  t.match(api.told, [{ userId: ann.userId, body: { kind: 'profile_changed' }, except: deviceId }])
  const { body: user } = await api.send('GET /app/api/user', { token: ann.token })
  t.match(user.loginMethods, [
    { kind: 'email', primary: true },
    { kind: 'passkey', label: 'My phone' },
  ])
  const { id } = added.body
  t.match(await api.send(`PUT ${METHODS}/primary`, { token: ann.token, body: { id } }), {
    status: 409,
    body: { code: 'PASSKEY_NOT_PRIMARY' },
  })
  t.equal((await api.send(`DELETE ${METHODS}/${id}`, { token: ann.token })).status, 204)
  t.same(await api.letters(), ['mail ann@example.org login-method-removed'])
})

t.test('labels have the rules of names', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world)
  for (const label of ['', ' ', 'a\nb', 'a'.repeat(51), '\u202e']) {
    const { body } = await api.send(`POST ${PATH}/options`, { token: ann.token })
    const credential = new Authenticator().create(body.options)
    const answer = await api.send(`POST ${PATH}`, { token: ann.token, body: { credential, label } })
    t.match(answer, { status: 422, body: { errors: [{ pointer: '/label' }] } }, JSON.stringify(label))
  }
})

t.test('a passkey signs in at once, beside a device list too, and the owner hears of it', async t => {
  const { api, ann, authenticator, added } = await openWithPasskey(t)
  t.equal(added.status, 201)
  const { deviceId } = await newDevice(api.world, ann.userId)
  await newDeviceList(api.world, ann.userId, [deviceId])
  await api.letters()
  api.told.length = 0
  const { body: asked } = await api.send('POST /app/api/passkey/options')
  t.match(asked.options, { rpId: 'example.org', allowCredentials: [], userVerification: 'required' })
  const signedIn = await signInByPasskey(api, authenticator)
  t.match(signedIn, { status: 200, body: { verified: true, isNewUser: false, user: { displayName: 'Ann' } } })
  t.same(await api.letters(), ['mail ann@example.org session-started', 'push session_started'])
  t.match(api.told, [{ body: { kind: 'session_started', proof: 'passkey' } }])
  const { body } = await api.send('GET /app/api/user/sessions', { token: signedIn.body.accessToken })
  t.ok(body.items.some(({ proof }: { proof: string }) => proof === 'passkey'))
})

t.test('a sign-in keeps an account that was to be erased', async t => {
  const { api, ann, authenticator } = await openWithPasskey(t)
  await api.send('DELETE /app/api/user', { token: ann.token, body: { confirm: true } })
  await api.world.advance(86_400_000)
  t.equal((await signInByPasskey(api, authenticator)).status, 200)
  const erasesAtMs = api.world.database.view(view => api.world.accounts.read(view, ann.userId)?.erasesAtMs)
  t.equal(erasesAtMs, undefined)
})

t.test('a challenge is good once, and for five minutes', async t => {
  const { api, authenticator } = await openWithPasskey(t)
  const { body } = await api.send('POST /app/api/passkey/options')
  const credential = authenticator.get(body.options)
  const login = () => api.send('POST /app/api/login/passkey', { body: { credential } })
  const both = await Promise.all([login(), login()])
  t.same(both.map(({ status }) => status).sort(), [200, 410], 'at once')
  t.match(await login(), { status: 410, body: { code: 'PASSKEY_CHALLENGE_GONE' } })
  const late = authenticator.get((await api.send('POST /app/api/passkey/options')).body.options)
  await api.world.advance(300_000)
  t.match(await api.send('POST /app/api/login/passkey', { body: { credential: late } }), {
    status: 410,
    body: { code: 'PASSKEY_CHALLENGE_GONE' },
  })
  t.match(await login(), { status: 410 }, 'the used one, once it is forgotten')
})

t.test('asking for options writes nothing, with and without a session', async t => {
  const { api, ann } = await openWithPasskey(t)
  await api.send('GET /app/api/user', { token: ann.token })
  const before = tableDigests(api.world.database)
  await api.send('POST /app/api/passkey/options')
  await api.send('POST /app/api/passkey/options', { token: ann.token })
  await api.send(`POST ${PATH}/options`, { token: ann.token })
  t.same(tableDigests(api.world.database), before)
})

const REFUSED: readonly (readonly [string, Oddity, string])[] = [
  ['another site', { origin: 'https://example.org.evil' }, 'PASSKEY_ORIGIN_REFUSED'],
  ['a page on this machine, in production', { origin: 'http://localhost:1' }, 'PASSKEY_ORIGIN_REFUSED'],
  [
    'an app of another certificate',
    { origin: `android:apk-key-hash:${'B'.repeat(43)}` },
    'PASSKEY_ORIGIN_REFUSED',
  ],
  ['a frame in another site', { clientData: { crossOrigin: true } }, 'PASSKEY_ORIGIN_REFUSED'],
  [
    'a frame that names the site',
    { clientData: { topOrigin: 'https://example.org' } },
    'PASSKEY_ORIGIN_REFUSED',
  ],
  ['another domain', { rpId: 'example.com' }, 'PASSKEY_RP_REFUSED'],
  ['a made-up challenge', { challenge: 'A'.repeat(72) }, 'PASSKEY_CHALLENGE_GONE'],
  ['the other ceremony', { type: 'webauthn.payment' }, 'PASSKEY_INVALID'],
  ['a user who was not verified', { flags: USED_FLAGS & ~4 }, 'PASSKEY_NOT_VERIFIED'],
  ['a user who was not present', { flags: USED_FLAGS & ~1 }, 'PASSKEY_INVALID'],
  ['a passkey that is no longer one to sync', { flags: USED_FLAGS & ~0x18 }, 'PASSKEY_INVALID'],
  ['a backup of what can’t have one', { flags: USED_FLAGS & ~8 }, 'PASSKEY_INVALID'],
  ['another key', { isForged: true }, 'PASSKEY_INVALID'],
  ['another key, of a user who was not verified', { isForged: true, flags: 1 }, 'PASSKEY_INVALID'],
  ['another user’s handle', { userHandle: Buffer.alloc(32).toString('base64url') }, 'PASSKEY_INVALID'],
  ['no handle', { userHandle: null }, 'PASSKEY_INVALID'],
  ['a passkey of nobody', { credentialId: Buffer.alloc(32, 1) }, 'PASSKEY_UNKNOWN'],
  ['no id', { credentialId: Buffer.alloc(0) }, 'PASSKEY_UNKNOWN'],
]

t.test('a sign-in is refused', async t => {
  const { api, authenticator } = await openWithPasskey(t)
  for (const [name, oddity, code] of REFUSED) {
    const before = tableDigests(api.world.database)
    const { body } = await signInByPasskey(api, authenticator, oddity)
    t.equal(body.code, code, name)
    t.same(tableDigests(api.world.database), before, `${name}: nothing is written`)
  }
  const android = { origin: `android:apk-key-hash:${'A'.repeat(43)}` }
  t.equal((await signInByPasskey(api, authenticator, android)).status, 200, 'an app that is named')
})

t.test('a registration is refused', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world)
  for (const [name, { flags, ...oddity }, code] of REFUSED) {
    if (/key|handle|nobody|no id|to sync/.test(name)) continue
    const created = flags === undefined ? oddity : { ...oddity, flags: flags | 0x40 }
    const { body } = await addPasskey(api, ann, new Authenticator(), created)
    t.equal(body.code, code, name)
  }
  const rs1 = await addPasskey(api, ann, new Authenticator(), { algorithm: 'RS1' })
  t.match(rs1.body, { code: 'PASSKEY_INVALID' }, 'an algorithm that was not asked for')
})

t.test('bodies that are none are refused, and nothing throws', async t => {
  const { api, ann, authenticator } = await openWithPasskey(t)
  const { body } = await api.send('POST /app/api/passkey/options')
  const whole = authenticator.get(body.options)
  const { response } = whole
  const login = (credential: unknown) => api.send('POST /app/api/login/passkey', { body: { credential } })
  for (const credential of [
    null,
    {},
    { ...whole, id: 1 },
    { ...whole, type: 'password' },
    { ...whole, id: 'a'.repeat(1_365) },
    { ...whole, response: { ...response, clientDataJSON: 'a'.repeat(4_097) } },
    { ...whole, response: { ...response, authenticatorData: '+/' } },
    { ...whole, response: { ...response, signature: undefined } },
  ])
    t.equal((await login(credential)).status, 422)
  for (const credential of [
    { ...whole, rawId: 'AAAA' },
    { ...whole, response: { ...response, authenticatorData: '' } },
    { ...whole, response: { ...response, authenticatorData: response.authenticatorData.slice(0, 44) } },
    { ...whole, response: { ...response, clientDataJSON: '' } },
    { ...whole, response: { ...response, signature: '' } },
    { ...whole, response: { ...response, signature: `${response.signature.slice(0, -1)}` } },
    { ...whole, response: { ...response, authenticatorData: `${response.authenticatorData}AAAA` } },
  ]) {
    const { status, body } = await login(credential)
    t.ok(status === 400 && /^PASSKEY_(INVALID|RP_REFUSED)$/.test(body.code), JSON.stringify(credential))
  }
  t.equal((await login({ ...whole, clientExtensionResults: { prf: {} }, more: 1 })).status, 200)
  for (const attestationObject of ['', 'oA', Buffer.alloc(7_000, 0x81).toString('base64url')]) {
    const { body } = await api.send(`POST ${PATH}/options`, { token: ann.token })
    const credential = new Authenticator().create(body.options)
    const changed = { ...credential, response: { ...credential.response, attestationObject } }
    const answer = await api.send(`POST ${PATH}`, { token: ann.token, body: { credential: changed } })
    t.match(answer, { status: 400, body: { code: 'PASSKEY_INVALID' } })
  }
})

t.test('an answer in another spelling of base64url is refused', async t => {
  const { api, authenticator } = await openWithPasskey(t)
  const { body } = await api.send('POST /app/api/passkey/options')
  const whole = authenticator.get(body.options)
  // The last character of 37 octets has four bits that mean nothing.
  const authenticatorData = `${whole.response.authenticatorData.slice(0, -1)}B`
  const credential = { ...whole, response: { ...whole.response, authenticatorData } }
  const answer = await api.send('POST /app/api/login/passkey', { body: { credential } })
  t.match(answer, { status: 400, body: { code: 'PASSKEY_INVALID' } })
})

t.test('a session that ends while its passkey is judged adds none', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world)
  const { body } = await api.send(`POST ${PATH}/options`, { token: ann.token })
  const credential = new Authenticator().create(body.options)
  const adding = api.send(`POST ${PATH}`, { token: ann.token, body: { credential } })
  await api.world.database.change(change =>
    api.world.sessions.revoke(change, ann.sessionId, 'logged_out_everywhere'),
  )
  t.match(await adding, { status: 401, body: { code: 'SESSION_REVOKED' } })
})

t.test('a challenge of one purpose or session serves no other', async t => {
  const { api, ann, authenticator } = await openWithPasskey(t)
  const bob = await newUser(api.world, 'Bob')
  const other = await newSession(api.world, ann.userId)
  const gone = { status: 410, body: { code: 'PASSKEY_CHALLENGE_GONE' } }
  const stepUp = await api.send('POST /app/api/passkey/options', { token: ann.token })
  t.match(stepUp.body.options.allowCredentials, [{ type: 'public-key' }])
  const credential = authenticator.get(stepUp.body.options)
  t.match(
    await api.send('POST /app/api/login/passkey', { body: { credential } }),
    gone,
    'a proof signs nobody in',
  )
  const { body } = await api.send(`POST ${PATH}/options`, { token: ann.token })
  for (const { token } of [bob, other]) {
    const made = new Authenticator().create(body.options)
    t.match(await api.send(`POST ${PATH}`, { token, body: { credential: made } }), gone, 'of another session')
  }
  const signIn = await api.send('POST /app/api/passkey/options')
  const made = new Authenticator().create({ ...body.options, challenge: signIn.body.options.challenge })
  t.match(await api.send(`POST ${PATH}`, { token: ann.token, body: { credential: made } }), gone)
})

t.test('a count that goes back is logged, and the sign-in goes on', async t => {
  const { api, ann, authenticator } = await openWithPasskey(t)
  const back: UserId[] = []
  api.world.database.subscribe('passkey-counter-back', ({ userId }) => back.push(userId))
  for (const [counter, times] of [
    [0, 0],
    [5, 0],
    [6, 0],
    [6, 1],
    [2, 2],
    [0, 3],
    [0, 3],
  ] as const) {
    t.equal((await signInByPasskey(api, authenticator, { counter })).status, 200)
    t.equal(back.length, times, `${counter}`)
  }
  t.equal(back[0], ann.userId)
})

t.test('a removed passkey opens nothing, and its user keeps another method', async t => {
  const { api, ann, authenticator } = await openWithPasskey(t)
  const { body } = await api.send(`GET ${METHODS}`, { token: ann.token })
  const [address] = body.items
  t.match(await api.send(`DELETE ${METHODS}/${address.id}`, { token: ann.token }), {
    status: 409,
    body: { code: 'LAST_LOGIN_METHOD' },
  })
  const id = await passkeyOf(api, ann.token)
  t.equal((await api.send(`DELETE ${METHODS}/${id}`, { token: ann.token })).status, 204)
  t.match((await signInByPasskey(api, authenticator)).body, { code: 'PASSKEY_UNKNOWN' })
})

t.test('a passkey is one account’s, and an account has ten', async t => {
  const { api, ann, authenticator } = await openWithPasskey(t)
  const credentialId = authenticator.passkeys[0]!.id
  t.match((await addPasskey(api, ann, new Authenticator(), { credentialId })).body, { code: 'METHOD_EXISTS' })
  const bob = await newUser(api.world, 'Bob')
  t.match((await addPasskey(api, bob, new Authenticator(), { credentialId })).body, {
    code: 'ACCOUNT_EXISTS',
  })
  for (let held = 1; held < 10; held++) t.equal((await addPasskey(api, ann)).status, 201)
  t.match((await addPasskey(api, ann)).body, { code: 'LOGIN_METHOD_LIMIT' })
})

t.test('an account without an address or an identity takes no passkey', async t => {
  const api = await openTestApi(t)
  const ann = await newUser(api.world)
  await api.world.database.change(change => {
    const [method] = api.world.accounts.methodsOf(change, ann.userId)
    api.world.accounts.removeMethod(change, ann.userId, method!)
  })
  t.match((await addPasskey(api, ann)).body, { code: 'PASSKEY_NOT_PRIMARY' })
})

t.test('a new passkey needs a fresh proof', async t => {
  const api = await openTestApi(t, { config: { stepUpS: 600 } })
  const ann = await newUser(api.world)
  await api.world.advance(600_000)
  const { status, body } = await api.send(`POST ${PATH}/options`, { token: ann.token })
  t.equal(status, 200, 'fresh for ten minutes')
  await api.world.advance(1)
  const stale = { status: 403, body: { code: 'STEP_UP_REQUIRED' } }
  t.match(await api.send(`POST ${PATH}/options`, { token: ann.token }), stale)
  const credential = new Authenticator().create(body.options)
  t.match(await api.send(`POST ${PATH}`, { token: ann.token, body: { credential } }), stale)
})

t.test('where passkeys are off, nothing is asked or taken', async t => {
  const api = await openTestApi(t, { config: { passkeys: undefined } })
  const ann = await newUser(api.world)
  const off = { status: 404, body: { code: 'PASSKEYS_OFF' } }
  t.match(await api.send('POST /app/api/passkey/options'), off)
  t.match(await api.send(`POST ${PATH}/options`, { token: ann.token }), off)
  const credential = { ...new Authenticator().create({ challenge: '', rp: { id: '' }, user: { id: '' } }) }
  t.match(await api.send(`POST ${PATH}`, { token: ann.token, body: { credential } }), off)
})
