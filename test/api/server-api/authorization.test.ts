/** Permissions of the server API: each operation with every kind of credential that is not the one it takes. */

import t from 'tap'
import { SERVER_OPERATIONS } from '../../../src/api/server-api/operations.ts'
import type { ServerOperation } from '../../../src/api/table/server-operation.ts'
import { CONSOLE_SESSION_MS, formatConsoleToken } from '../../../src/domain/operators/console-session.ts'
import { formatOperatorCredential, SCOPES, type Scope } from '../../../src/domain/operators/server-key.ts'
import { newUser, routeSender, type Send } from '../../support/application.ts'
import { openTestApi, type TestApi, tableDigests } from '../../support/test-api.ts'

/** The intended scopes; `operator` is open to the operator's command alone. */
const ACCESS: Readonly<Record<string, Scope | 'operator'>> = {
  lookUpKeys: 'users',
  listReports: 'reports',
  getReport: 'reports',
  changeReport: 'reports',
  listAudit: 'audit',
  startConsoleSession: 'console',
  suspendUser: 'users',
  unsuspendUser: 'users',
  createSignInToken: 'sign-in',
  putUser: 'users',
  listUsers: 'users',
  listUserChanges: 'users',
  getUser: 'users',
  deleteUser: 'users',
  listUserSessions: 'users',
  listUserDevices: 'users',
  listUserCalls: 'users',
  signOutUser: 'users',
  importUsers: 'users',
  linkContacts: 'contacts',
  unlinkContacts: 'contacts',
  addCircleMember: 'contacts',
  removeCircleMember: 'contacts',
  listCircleMembers: 'contacts',
  endCircle: 'contacts',
  listCalls: 'calls',
  getCallOfUsers: 'calls',
  endCallOfUsers: 'calls',
  removeUserFromCall: 'calls',
  createServerKey: 'operator',
  listServerKeys: 'operator',
  revokeServerKey: 'operator',
  exportUserByRef: 'export',
  createWebhook: 'operator',
  listWebhooks: 'operator',
  deleteWebhook: 'operator',
  rotateWebhookSecret: 'operator',
  testWebhook: 'operator',
  retryWebhooks: 'operator',
  listDeadWebhooks: 'operator',
}

interface Setup {
  readonly whole: TestApi
  readonly send: Send
  readonly newKey: (scopes: readonly Scope[], expiresInMs?: number) => Promise<{ keyId: string; key: string }>
}

async function setUp(t: Parameters<typeof openTestApi>[0]): Promise<Setup> {
  const whole = await openTestApi(t, { rehearses: false })
  const { world, application } = whole
  return {
    whole,
    send: routeSender(application.serverRoutes, SERVER_OPERATIONS),
    newKey: (scopes, expiresInMs) =>
      world.database.change(change => {
        const expiresAtMs = expiresInMs && world.nowMs() + expiresInMs
        return world.serverKeys.create(change, { name: 'test', scopes, expiresAtMs })
      }),
  }
}

type Credential = string | undefined
type Make = (setup: Setup, operation: ServerOperation<never>) => Promise<Credential>

/** How to get a credential that no operation takes, and its refusal. */
const BAD: Readonly<Record<string, { readonly make: Make; readonly code: string }>> = {
  none: { make: async () => undefined, code: 'SERVER_KEY_INVALID' },
  garbage: { make: async () => 'csk_garbage', code: 'SERVER_KEY_INVALID' },
  'a user’s access token': {
    make: async ({ whole }) => (await newUser(whole.world)).token,
    code: 'SERVER_KEY_INVALID',
  },
  'a key that was never made': {
    make: async () => `csk_${'0'.repeat(12)}_${'0'.repeat(64)}`,
    code: 'SERVER_KEY_INVALID',
  },
  'a key with another secret': {
    make: async ({ newKey }) => `csk_${(await newKey(SCOPES)).keyId}_${'0'.repeat(64)}`,
    code: 'SERVER_KEY_INVALID',
  },
  'a session of the operators’ page, of another secret': {
    make: async ({ whole, newKey }) =>
      consoleToken(whole, await newKey(SCOPES), whole.world.secrets.accessToken),
    code: 'SERVER_KEY_INVALID',
  },
  'an operator’s credential of another secret': {
    make: async ({ whole }, operation) => credentialFor(operation, whole.world.secrets.accessToken, whole),
    code: 'SERVER_KEY_INVALID',
  },
}

/** Keys that are good no more; to the operator's command a key is none in any case. */
const ENDED: typeof BAD = {
  'a revoked key': {
    async make({ whole: { world }, newKey }) {
      const { key, keyId } = await newKey(SCOPES)
      await world.database.change(change => world.serverKeys.revoke(change, keyId))
      return key
    },
    code: 'SERVER_KEY_REVOKED',
  },
  'a session of a revoked key': {
    async make({ whole, newKey }) {
      const key = await newKey(SCOPES)
      const token = consoleToken(whole, key)
      await whole.world.database.change(change => whole.world.serverKeys.revoke(change, key.keyId))
      return token
    },
    code: 'SERVER_KEY_REVOKED',
  },
  'a session that has ended': {
    async make({ whole, newKey }) {
      const token = consoleToken(whole, await newKey(SCOPES))
      await whole.advance(CONSOLE_SESSION_MS)
      return token
    },
    code: 'SERVER_KEY_EXPIRED',
  },
  'an expired key': {
    async make({ whole, newKey }) {
      const { key } = await newKey(SCOPES, 60_000)
      await whole.advance(60_000)
      return key
    },
    code: 'SERVER_KEY_EXPIRED',
  },
}

/** A session of the operators' page by this key. */
function consoleToken(
  { world }: TestApi,
  { keyId }: { readonly keyId: string },
  secret = world.secrets.consoleSession,
) {
  return formatConsoleToken(secret, { keyId, expiresAtMs: world.nowMs() + CONSOLE_SESSION_MS })
}

/** Good for a GET of the path or a request without a body. */
function credentialFor(
  { method, path }: ServerOperation<never>,
  key: TestApi['world']['secrets']['accessToken'],
  { world }: TestApi,
): string {
  return formatOperatorCredential(key, { method, path: filled(path), body: Buffer.alloc(0) }, world.nowMs())
}

function filled(path: string): string {
  return path.replaceAll(/\{\w+\}/g, 'id:1')
}

t.test('the scope of each operation is the one that it is meant to have', async t => {
  const actual = SERVER_OPERATIONS.map(({ id, scope = 'operator' }) => [id, scope])
  t.same(Object.fromEntries(actual), ACCESS)
})

for (const [name, { make, code }] of Object.entries({ ...BAD, ...ENDED })) {
  t.test(`${name} opens nothing, and changes nothing`, async t => {
    const setup = await setUp(t)
    for (const operation of SERVER_OPERATIONS) {
      const { id, method, path, access } = operation
      const token = await make(setup, operation)
      const before = tableDigests(setup.whole.world.database)
      const answer = await setup.send(`${method} ${filled(path)}`, { ...(token !== undefined && { token }) })
      t.equal(answer.body.code, access === 'operator' ? 'SERVER_KEY_INVALID' : code, id)
      t.equal(answer.status, 401, id)
      t.same(tableDigests(setup.whole.world.database), before, id)
    }
  })
}

t.test('no body is taken of a request without a good key', async t => {
  const setup = await setUp(t)
  const headOf = (token: string | undefined) => ({
    header: (name: string) => (name === 'authorization' && token !== undefined ? `Bearer ${token}` : ''),
    network: '192.0.2.1',
  })
  const ofKeys = SERVER_OPERATIONS.filter(({ access }) => access === 'server-key')
  const routes = setup.whole.application.serverRoutes.filter(({ admit }) => admit !== undefined)
  t.same(
    routes.map(({ method, path }) => `${method} ${path}`),
    ofKeys.map(({ method, path }) => `${method} ${path}`),
  )
  for (const [name, { make, code }] of Object.entries({ ...BAD, ...ENDED })) {
    const token = await make(setup, ofKeys[0]!)
    for (const { admit } of routes) t.throws(() => admit!(headOf(token)), { code }, name)
  }
  const made = await setup.newKey(['audit'])
  for (const token of [made.key, consoleToken(setup.whole, made)])
    for (const { admit } of routes) t.doesNotThrow(() => admit!(headOf(token)))
})

for (const by of ['key', 'session of the page'])
  t.test(`a ${by} opens what it has the scope for, and nothing else`, async t => {
    const { send, newKey, whole } = await setUp(t)
    for (const held of SCOPES) {
      const made = await newKey([held])
      const token = by === 'key' ? made.key : consoleToken(whole, made)
      for (const { id, method, path, scope } of SERVER_OPERATIONS) {
        const { status, body } = await send(`${method} ${filled(path)}`, { token })
        if (scope === undefined) t.equal(body.code, 'SERVER_KEY_INVALID', `${id} with ${held}`)
        else if (scope !== held) t.same([status, body.code], [403, 'SCOPE_MISSING'], `${id} with ${held}`)
        else if (by !== 'key' && id === 'startConsoleSession')
          t.equal(body.code, 'SERVER_KEY_INVALID', 'no session prolongs itself')
        else t.notOk(status === 401 || body?.code === 'SCOPE_MISSING', `${id} with ${held}`)
      }
    }
  })

t.test('the operator’s command opens nothing that is for a key', async t => {
  const { send, whole } = await setUp(t)
  for (const operation of SERVER_OPERATIONS.filter(({ access }) => access === 'server-key')) {
    const token = credentialFor(operation, whole.world.secrets.operatorCommand, whole)
    const { body } = await send(`${operation.method} ${filled(operation.path)}`, { token })
    t.equal(body.code, 'SERVER_KEY_INVALID', operation.id)
  }
})

t.test('an operator’s credential is good for one request, once, for a minute', async t => {
  const { send, whole } = await setUp(t)
  const { world } = whole
  const path = '/server/api/v1/server-keys'
  const body = { name: 'shop', scopes: ['users'] }
  const bytes = Buffer.from(JSON.stringify(body))
  const made = (atMs = world.nowMs(), request: object = {}) =>
    formatOperatorCredential(
      world.secrets.operatorCommand,
      { method: 'POST', path, body: bytes, ...request },
      atMs,
    )
  const refused = async (token: string, what: string) =>
    t.equal((await send(`POST ${path}`, { token, body })).body.code, 'SERVER_KEY_INVALID', what)
  await refused(made(world.nowMs(), { body: Buffer.from('{}') }), 'another body')
  await refused(made(world.nowMs(), { path: `${path}/1` }), 'another path')
  await refused(made(world.nowMs(), { method: 'DELETE' }), 'another method')
  await refused(made(world.nowMs() - 61_000), 'a clock that is behind')
  await refused(made(world.nowMs() + 61_000), 'a clock that is ahead')
  const token = made(world.nowMs() - 59_000)
  t.equal((await send(`POST ${path}`, { token, body })).status, 201)
  await refused(token, 'a second use')
  await whole.advance(60_000)
  await refused(token, 'a second use, later')
})

t.test('requests are counted by key, and those without a good key by their address', async t => {
  const whole = await openTestApi(t, { rates: true, rehearses: false })
  const { world, application } = whole
  const send = routeSender(application.serverRoutes, SERVER_OPERATIONS)
  const keyOf = () =>
    world.database.change(change => world.serverKeys.create(change, { name: 'test', scopes: ['users'] }).key)
  const [one, other] = [await keyOf(), await keyOf()]
  const [operation] = SERVER_OPERATIONS.filter(({ scope }) => scope !== undefined)
  if (operation === undefined) return
  const ask = async (token: string, last = 1) => {
    const place = `${operation.method} ${filled(operation.path)}`
    return (await send(place, { token, address: [10, 0, 0, last] })).body?.code
  }
  for (let count = 0; count < 100; count++) t.not(await ask(one), 'RATE_LIMITED')
  t.equal(await ask(one, 2), 'RATE_LIMITED', 'from another address, too')
  t.not(await ask(other), 'RATE_LIMITED')
  whole.world.tick(1_000)
  t.not(await ask(one), 'RATE_LIMITED')
  const codes = new Set<string>()
  for (let count = 0; count < 500; count++) codes.add(await ask('csk_garbage'))
  t.same([...codes], ['SERVER_KEY_INVALID', 'RATE_LIMITED'])
  t.equal(await ask('csk_garbage', 2), 'SERVER_KEY_INVALID', 'another address has its own count')
  t.not(await ask(other), 'RATE_LIMITED', 'guesses from an address keep no good key out')
})
