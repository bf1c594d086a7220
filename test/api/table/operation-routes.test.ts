/** Common to all operations: permitted requesters, rates, idempotency keys, unknown fields, the form of answers. */

import t, { type Test } from 'tap'
import Type from 'typebox'
import { type OperationForm, operation, operationWithBody } from '../../../src/api/table/operation.ts'
import { type Rates, USUAL_RATES } from '../../../src/domain/rates.ts'
import { SignalError } from '../../../src/errors.ts'
import { Uint64, Uint64Text } from '../../../src/schema/uint64.ts'
import {
  newDevice,
  newSession,
  newUser,
  openWorld,
  sender,
  type TestWorld,
} from '../../support/application.ts'

const Note = Type.Object({
  text: Type.String(),
  to: Type.Optional(Uint64),
  inner: Type.Optional(Type.Object({ known: Type.Optional(Type.String()) })),
})
const NoteReply = Type.Object({ id: Uint64Text, text: Type.String(), made: Type.Integer() })

function open(t: Test, options: { rates?: Rates } = {}): TestWorld {
  // Its operations count their runs.
  const world = openWorld(t.testdir(), undefined, { ...options, rehearses: false })
  t.teardown(() => world.database.close())
  return world
}

/** An operation that counts how often it was executed, and answers with the count. */
function noteOperation(
  rules: Partial<
    Pick<OperationForm, 'isIdempotent' | 'areRepliesOfSession' | 'rates' | 'id' | 'path'> & {
      access: 'device' | 'public'
    }
  > = {},
) {
  const seen = { made: 0 }
  const note = operationWithBody(Note, {
    id: 'makeNote',
    method: 'POST',
    path: '/app/api/note',
    tag: 'user',
    summary: 'Make a note',
    access: 'session' as 'device' | 'public',
    replies: { 200: NoteReply, 201: NoteReply },
    codes: [],
    isIdempotent: true,
    ...rules,
    handle: async (_: unknown, call) => {
      const { text } = call.body
      // A handler's possible wait before it writes.
      await Promise.resolve()
      return call.commit(() => {
        seen.made++
        return { status: 201, body: { id: 2n ** 63n, text, made: seen.made } }
      })
    },
  })
  return { note, seen }
}

t.test('a repeated request with its key gets the kept reply, byte for byte', async t => {
  const world = open(t)
  const { note, seen } = noteOperation()
  const send = sender(world, [note])
  const { token } = await newUser(world)
  const request = { token, body: { text: 'é “x” \u2028' }, headers: { 'idempotency-key': 'k1' } }
  const first = await send('POST /app/api/note', request)
  const second = await send('POST /app/api/note', request)
  t.equal(first.status, 201)
  t.equal(second.status, 201)
  t.equal(second.text, first.text)
  t.equal(first.body.id, '9223372036854775808')
  t.equal(seen.made, 1)
})

t.test('a key that comes with another body is refused, and nothing is done', async t => {
  const world = open(t)
  const { note, seen } = noteOperation()
  const send = sender(world, [note])
  const { token } = await newUser(world)
  const headers = { 'idempotency-key': 'k1' }
  await send('POST /app/api/note', { token, headers, body: { text: 'one' } })
  const other = await send('POST /app/api/note', { token, headers, body: { text: 'two' } })
  t.match(other, { status: 422, body: { code: 'IDEMPOTENCY_KEY_REUSED' } })
  t.equal(seen.made, 1)
})

t.test('requests of one key that come at once are executed once', async t => {
  const world = open(t)
  const { note, seen } = noteOperation()
  const send = sender(world, [note])
  const { token } = await newUser(world)
  const request = { token, body: { text: 'x' }, headers: { 'idempotency-key': 'k1' } }
  const answers = await Promise.all(Array.from({ length: 20 }, () => send('POST /app/api/note', request)))
  t.equal(seen.made, 1)
  t.equal(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size, 1)
})

t.test('a key is of one user and one operation', async t => {
  const world = open(t)
  const { note, seen } = noteOperation()
  const other = noteOperation({ id: 'makeOther', path: '/app/api/other' })
  const send = sender(world, [note, other.note])
  const [ann, bob] = [await newUser(world), await newUser(world)]
  const request = { body: { text: 'x' }, headers: { 'idempotency-key': 'k1' } }
  await send('POST /app/api/note', { ...request, token: ann.token })
  await send('POST /app/api/note', { ...request, token: bob.token })
  await send('POST /app/api/other', { ...request, token: ann.token })
  t.equal(seen.made, 2)
  t.equal(other.seen.made, 1)
})

t.test('a key outlives the session, which a client may lose before it repeats', async t => {
  const world = open(t)
  const { note, seen } = noteOperation()
  const send = sender(world, [note])
  const { token, userId } = await newUser(world)
  const again = await newSession(world, userId)
  const request = { body: { text: 'x' }, headers: { 'idempotency-key': 'k1' } }
  await send('POST /app/api/note', { ...request, token })
  await send('POST /app/api/note', { ...request, token: again.token })
  t.equal(seen.made, 1)
})

t.test('but not where the reply is about the session itself', async t => {
  const world = open(t)
  const { note, seen } = noteOperation({ areRepliesOfSession: true })
  const send = sender(world, [note])
  const { token, userId } = await newUser(world)
  const again = await newSession(world, userId)
  const request = { body: { text: 'x' }, headers: { 'idempotency-key': 'k1' } }
  for (const bearer of [token, token, again.token])
    await send('POST /app/api/note', { ...request, token: bearer })
  t.equal(seen.made, 2)
})

t.test('a key that comes with another path is refused, and nothing is done', async t => {
  const world = open(t)
  const { note, seen } = noteOperation({ path: '/app/api/note/{to}' })
  const send = sender(world, [note])
  const { token } = await newUser(world)
  const request = { token, body: { text: 'x' }, headers: { 'idempotency-key': 'k1' } }
  t.equal((await send('POST /app/api/note/1', request)).status, 201)
  t.match(await send('POST /app/api/note/2', request), {
    status: 422,
    body: { code: 'IDEMPOTENCY_KEY_REUSED' },
  })
  t.equal((await send('POST /app/api/note/1', request)).status, 201)
  t.equal(seen.made, 1)
})

t.test('the kept reply comes before anything that the first request has changed', async t => {
  const world = open(t)
  let isSpent = false
  const spend = operation({
    id: 'spend',
    method: 'POST',
    path: '/app/api/spend',
    tag: 'user',
    summary: 'Spend what is there once',
    access: 'session',
    replies: { 204: null },
    codes: ['SHARE_TOKEN_EXPIRED'],
    isIdempotent: true,
    handle: async (_: unknown, call) => {
      if (isSpent) throw new SignalError('SHARE_TOKEN_EXPIRED', 'over')
      return call.commit(() => {
        isSpent = true
        return { status: 204 }
      })
    },
  })
  const send = sender(world, [spend])
  const { token } = await newUser(world)
  const request = { token, headers: { 'idempotency-key': 'k1' } }
  t.equal((await send('POST /app/api/spend', request)).status, 204)
  t.equal((await send('POST /app/api/spend', request)).status, 204)
  t.equal((await send('POST /app/api/spend', { token })).status, 410)
})

t.test('after a day a key is forgotten', async t => {
  const world = open(t)
  const { note, seen } = noteOperation()
  const send = sender(world, [note])
  const { userId, token } = await newUser(world)
  const request = { body: { text: 'x' }, headers: { 'idempotency-key': 'k1' } }
  await send('POST /app/api/note', { ...request, token })
  await world.advance(86_400_000 - 1)
  await send('POST /app/api/note', { ...request, token: (await newSession(world, userId)).token })
  t.equal(seen.made, 1)
  await world.advance(1)
  await send('POST /app/api/note', { ...request, token: (await newSession(world, userId)).token })
  t.equal(seen.made, 2)
})

t.test('a refusal is not kept: the same key may try again', async t => {
  const world = open(t)
  let isRefused = true
  const picky = operation({
    id: 'pick',
    method: 'POST',
    path: '/app/api/pick',
    tag: 'user',
    summary: 'Picky',
    access: 'session',
    replies: { 204: null },
    codes: ['USER_NOT_FOUND'],
    isIdempotent: true,
    handle: (_: unknown, call) =>
      call.commit(() => {
        if (isRefused) throw new SignalError('USER_NOT_FOUND', 'nobody')
        return { status: 204 }
      }),
  })
  const send = sender(world, [picky])
  const request = { token: (await newUser(world)).token, headers: { 'idempotency-key': 'k1' } }
  t.match(await send('POST /app/api/pick', request), { status: 404 })
  isRefused = false
  t.equal((await send('POST /app/api/pick', request)).status, 204)
  isRefused = true
  t.equal((await send('POST /app/api/pick', request)).status, 204, 'kept, though it has no body')
})

t.test('what is no key is refused: too long, with spaces or bytes of other alphabets', async t => {
  const world = open(t)
  const { note, seen } = noteOperation()
  const send = sender(world, [note])
  const { token } = await newUser(world)
  for (const key of ['x'.repeat(129), 'a b', 'é', 'a\tb', 'a\u0000']) {
    const answer = await send('POST /app/api/note', {
      token,
      body: { text: 'x' },
      headers: { 'idempotency-key': key },
    })
    t.match(
      answer,
      { status: 422, body: { code: 'VALIDATION_FAILED', errors: [{ code: 'HEADER' }] } },
      JSON.stringify(key),
    )
  }
  t.equal(seen.made, 0)
})

t.test('a key where none is honoured does nothing', async t => {
  const world = open(t)
  const { note, seen } = noteOperation({ isIdempotent: false })
  const send = sender(world, [note])
  const { token } = await newUser(world)
  const headers = { 'idempotency-key': 'k1' }
  await send('POST /app/api/note', { token, headers, body: { text: 'x' } })
  await send('POST /app/api/note', { token, headers, body: { text: 'x' } })
  t.equal(seen.made, 2)
})

const ONCE_A_MINUTE = { count: 1, perMs: 60_000, burst: 2 }
const FEW_SEARCHES = { ...USUAL_RATES, search: ONCE_A_MINUTE, login: ONCE_A_MINUTE }

t.test('operations whose rates have one name share its count', async t => {
  const world = open(t, { rates: FEW_SEARCHES })
  const rates = [{ name: 'search' as const, by: 'user' as const }]
  const [one, two] = [noteOperation({ rates }), noteOperation({ id: 'two', path: '/app/api/two', rates })]
  const send = sender(world, [one.note, two.note])
  const { token } = await newUser(world)
  const request = { token, body: { text: 'x' } }
  t.equal((await send('POST /app/api/note', request)).status, 201)
  t.equal((await send('POST /app/api/two', request)).status, 201)
  const third = await send('POST /app/api/note', request)
  t.match(third, { status: 429, body: { code: 'RATE_LIMITED', retryIn: 60, scope: 'user' } })
  t.equal(third.headers['retry-after'], '60')
  t.equal(third.headers.ratelimit, '"user";r=0;t=60')
  t.equal(third.headers['ratelimit-policy'], '"user";q=1;w=60')
  t.notOk('quota' in third.body)
  t.equal((await send('POST /app/api/note', { ...request, token: (await newUser(world)).token })).status, 201)
  await world.advance(60_000)
  t.equal((await send('POST /app/api/two', request)).status, 201)
  t.equal((await send('POST /app/api/note', request)).status, 429)
})

t.test('rates by address count strangers, and each session of those who are signed in', async t => {
  const world = open(t, { rates: FEW_SEARCHES })
  const rates = [{ name: 'login' as const, by: 'address' as const }]
  const byAddress = noteOperation({ rates })
  const ofStrangers = noteOperation({ id: 'three', path: '/app/api/three', access: 'public', rates })
  const bySession = noteOperation({
    id: 'two',
    path: '/app/api/two',
    rates: [{ name: 'search', by: 'session' }],
  })
  const send = sender(world, [byAddress.note, bySession.note, ofStrangers.note])
  const user = await newUser(world)
  const other = await newSession(world, user.userId)
  const statusOf = async (path: string, token: string | undefined, address: readonly number[]) =>
    (await send(`POST ${path}`, { ...(token && { token }), address, body: { text: 'x' } })).status
  const [here, there] = [[1, 1, 1, 1] as const, [2, 2, 2, 2] as const]
  t.same(
    [
      await statusOf('/app/api/note', user.token, here),
      await statusOf('/app/api/note', other.token, here),
      await statusOf('/app/api/note', user.token, here),
      await statusOf('/app/api/note', user.token, there),
    ],
    [201, 201, 201, 429],
    'two for each session, wherever it is',
  )
  t.same(
    [
      await statusOf('/app/api/three', undefined, here),
      await statusOf('/app/api/three', other.token, here),
      await statusOf('/app/api/three', undefined, here),
      await statusOf('/app/api/three', undefined, there),
    ],
    [201, 201, 429, 201],
    'two for each address, whose users took nothing of it',
  )
  t.same(
    [
      await statusOf('/app/api/two', user.token, here),
      await statusOf('/app/api/two', user.token, there),
      await statusOf('/app/api/two', user.token, here),
      await statusOf('/app/api/two', other.token, here),
    ],
    [201, 201, 429, 201],
  )
})

t.test('anything that a user asks for counts together, whatever it is', async t => {
  const world = open(t, { rates: FEW_SEARCHES })
  const { note } = noteOperation()
  const send = sender(world, [note])
  const { token } = await newUser(world)
  const statuses = []
  for (let sent = 0; sent < 201; sent++) {
    statuses.push((await send('POST /app/api/note', { token, body: { text: 'x' } })).status)
  }
  t.equal(statuses.indexOf(429), 200, 'a burst of two hundred, and no more')
})

t.test('a request over one rate uses up nothing of scarcer ones', async t => {
  const world = open(t, { rates: FEW_SEARCHES })
  const scarce = { rates: [{ name: 'search' as const, by: 'user' as const }] }
  const { note } = noteOperation(scarce)
  const { note: plenty } = noteOperation({ id: 'two', path: '/app/api/two' })
  const send = sender(world, [note, plenty])
  const { token } = await newUser(world)
  const ask = async (path: string) => (await send(`POST ${path}`, { token, body: { text: 'x' } })).status
  for (let sent = 0; sent < 200; sent++) await ask('/app/api/two')
  for (let sent = 0; sent < 3; sent++) t.equal(await ask('/app/api/note'), 429)
  await world.advance(1_000)
  t.equal(await ask('/app/api/note'), 201)
})

t.test('a repeated request gets its kept reply also where its rate is used up', async t => {
  const world = open(t, { rates: FEW_SEARCHES })
  const { note, seen } = noteOperation({ rates: [{ name: 'search', by: 'user' }] })
  const send = sender(world, [note])
  const { token } = await newUser(world)
  const ask = async (key: string) =>
    (await send('POST /app/api/note', { token, headers: { 'idempotency-key': key }, body: { text: 'x' } }))
      .status
  t.same(
    [await ask('k1'), await ask('k1'), await ask('k2'), await ask('k2'), await ask('k3'), await ask('k1')],
    [201, 201, 201, 201, 429, 201],
  )
  t.equal(seen.made, 2)
})

t.test('a refused body counts too, so that guessing is not free', async t => {
  const world = open(t, { rates: FEW_SEARCHES })
  const { note } = noteOperation({ rates: [{ name: 'search', by: 'user' }] })
  const send = sender(world, [note])
  const { token } = await newUser(world)
  const statuses = []
  for (let sent = 0; sent < 3; sent++) {
    statuses.push((await send('POST /app/api/note', { token, body: { text: 7 } })).status)
  }
  t.same(statuses, [422, 422, 429])
})

t.test('who has no session is refused before anything is counted or read', async t => {
  const world = open(t, { rates: FEW_SEARCHES })
  const { note } = noteOperation({ rates: [{ name: 'search', by: 'address' }] })
  const send = sender(world, [note])
  const statuses = []
  for (let sent = 0; sent < 4; sent++) {
    statuses.push((await send('POST /app/api/note', { body: Buffer.from('{') })).status)
  }
  t.same(statuses, [401, 401, 401, 401])
})

t.test('an operation that needs a device refuses sessions without one', async t => {
  const world = open(t)
  const { note } = noteOperation({ access: 'device' })
  const send = sender(world, [note])
  const { userId, token } = await newUser(world)
  const refused = await send('POST /app/api/note', { token, body: { text: 'x' } })
  t.match(refused, { status: 403, body: { code: 'DEVICE_NOT_REGISTERED' } })
  const { deviceId } = await newDevice(world, userId)
  const bound = await newSession(world, userId, deviceId)
  t.equal((await send('POST /app/api/note', { token: bound.token, body: { text: 'x' } })).status, 201)
})

t.test('unknown members are named in development only', async t => {
  const world = open(t)
  const { note } = noteOperation()
  const { token } = await newUser(world)
  const request = { token, body: { text: 'x', extra: 1, inner: { known: 'y', typo: 2 } } }
  const named = await sender(world, [note])('POST /app/api/note', request)
  t.equal(named.headers['x-unknown-fields'], '/extra, /inner/typo')
  const silent = await sender({ ...world, isDevelopment: false }, [note])('POST /app/api/note', request)
  t.equal(silent.headers['x-unknown-fields'], undefined)
  const clean = await sender(world, [note])('POST /app/api/note', { token, body: { text: 'x' } })
  t.equal(clean.headers['x-unknown-fields'], undefined)
})

t.test('no name of a member can add a header or a line to one', async t => {
  const world = open(t)
  const { note } = noteOperation()
  const send = sender(world, [note])
  const { token } = await newUser(world)
  const names = [
    'a\r\nX-Evil: 1',
    '\n',
    '\u0000',
    '\u2028',
    'é\u0085',
    '\ud83d\ude00',
    '__proto__',
    'constructor',
    '%0d%0a',
    'x'.repeat(10_000),
  ]
  for (const [at, name] of names.entries()) {
    const body = Buffer.from(`{"text":"x",${JSON.stringify(name)}:1}`)
    const { status, headers } = await send('POST /app/api/note', { token, body })
    t.equal(status, 201)
    t.match(headers['x-unknown-fields'], /^[\x20-\x7e]{1,256}$/, `name ${at}`)
    t.notOk('x-evil' in headers)
  }
})

t.test('no cache on the way keeps answers', async t => {
  const world = open(t)
  const { note } = noteOperation()
  const send = sender(world, [note])
  const { token } = await newUser(world)
  t.equal(
    (await send('POST /app/api/note', { token, body: { text: 'x' } })).headers['cache-control'],
    'no-store',
  )
  t.equal((await send('POST /app/api/note', { token, body: {} })).headers['cache-control'], 'no-store')
  t.equal((await send('POST /app/api/note', {})).headers['cache-control'], 'no-store')
})

t.test('ids are written as digits where the configuration says so, also in kept replies', async t => {
  const world = open(t)
  const { note } = noteOperation()
  const numbers = {
    ...note,
    replies: { 201: Type.Object({ id: Type.Number(), text: Type.String(), made: Type.Integer() }) },
  }
  const send = sender({ ...world, idsAs: 'number' as never }, [numbers])
  const { token } = await newUser(world)
  const request = { token, body: { text: 'x' }, headers: { 'idempotency-key': 'k' } }
  t.match((await send('POST /app/api/note', request)).text, /"id":9223372036854775808,/)
  t.match((await send('POST /app/api/note', request)).text, /"id":9223372036854775808,/)
})

t.test('an optional body may be missing, an obligatory one may not', async t => {
  const world = open(t)
  const optional = operationWithBody(Type.Object({ all: Type.Optional(Type.Boolean()) }), {
    id: 'leave',
    method: 'POST',
    path: '/app/api/leave',
    tag: 'user',
    summary: 'Leave',
    access: 'public',
    replies: { 200: Type.Object({ all: Type.Boolean() }) },
    codes: [],
    isBodyOptional: true,
    handle: (_: unknown, { body }) => ({ status: 200, body: { all: body.all ?? false } }),
  })
  const { note } = noteOperation()
  const send = sender(world, [optional, note])
  const { token } = await newUser(world)
  t.same((await send('POST /app/api/leave', { headers: { 'content-type': '' } })).body, { all: false })
  t.same((await send('POST /app/api/leave', { body: { all: true } })).body, { all: true })
  t.match(await send('POST /app/api/note', { token }), { status: 400, body: { code: 'MALFORMED_JSON' } })
})
