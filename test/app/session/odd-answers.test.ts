/** Answers that no server of ours gives: the app hears a `CallsignError`, and nothing that it holds is spoilt. */

import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { CallsignError } from '../../../src/app/callsign-error.ts'
import { sentCode } from '../../../src/app/development.ts'
import type { OperationName } from '../../../src/app/session/operations.ts'
import { Server } from '../../../src/app/session/server.ts'
import { ID_MEMBERS, REPLY_FORMS } from '../../../src/app/wire.ts'
import { platformOf, signIn, startApp } from '../../support/app-sessions.ts'
import { settingsFor } from '../../support/call-people.ts'
import { openServer } from '../../support/open-server.ts'

const OPERATIONS = Object.keys(REPLY_FORMS).filter(name => name.includes(' ')) as OperationName[]
/** One that answers without a body. */
const SILENT = 'POST logout'
const PARAMS = { callId: '1', userId: '1', id: '1', deviceId: '1', epoch: '1' }

/** The value that an operation resolves with, or the code of its `CallsignError`; rejects with any other error. */
async function outcomeOf(operation: OperationName, answer: () => Response | Promise<Response>) {
  const server = new Server({
    url: 'http://server.example',
    platform: platformOf({ wait: async () => undefined }),
    fetch: async () => answer(),
  })
  try {
    return { value: await server.request(operation, undefined as never, PARAMS as never) }
  } catch (error) {
    if (error instanceof CallsignError) return { code: error.code }
    throw error
  }
}

const INVALID = { code: 'ANSWER_INVALID' }

/** A value of a form, with every member that is optional. */
function exampleOf(form: unknown): unknown {
  if (Array.isArray(form)) return [exampleOf(form[0]), exampleOf(form[0])]
  if (typeof form === 'string') {
    const name = form.split('|')[0]!
    if (name.startsWith('=')) return name === '=true' || name === '=false' ? name === '=true' : name.slice(1)
    return name === '' || name === '~' ? name : exampleOf(REPLY_FORMS[name])
  }
  if (typeof form !== 'object') return form
  return Object.fromEntries(
    Object.entries({ ...form }).map(([name, each]) => [name.replace('?', ''), exampleOf(each)]),
  )
}

interface Spoilt {
  readonly at: string
  readonly value: unknown
}

/** The value with one member of another type or missing, once for each member and type. */
function* spoiltOnes(value: unknown, form: unknown, at = ''): Generator<Spoilt> {
  if (typeof form === 'string' && form !== '') {
    if (form === '~') return
    // A value that doesn't fit one of two forms may fit the second.
    if (form.includes('|')) return
    if (!form.startsWith('=')) return yield* spoiltOnes(value, REPLY_FORMS[form], at)
  }
  for (const other of [null, 7, 'x', true, [], {}, [null]])
    if (!isRightToo(other, value, form)) yield { at: `${at} as ${JSON.stringify(other)}`, value: other }
  if (Array.isArray(form) && Array.isArray(value)) {
    for (const each of spoiltOnes(value[1], form[0], `${at}/1`))
      yield { at: each.at, value: [value[0], each.value] }
  } else if (typeof form === 'object' && typeof value === 'object') {
    for (const [key, member] of Object.entries({ ...form })) {
      const name = key.replace('?', '')
      const whole: Readonly<Record<string, unknown>> = { ...value }
      for (const each of spoiltOnes(whole[name], member, `${at}/${name}`)) {
        // Some operators' servers send ids as numbers.
        if (ID_MEMBERS.has(name) && /\/[a-z]+(?:\/1)? as 7$/i.test(each.at)) continue
        yield { at: each.at, value: { ...whole, [name]: each.value } }
      }
      const { [name]: _, ...rest } = whole
      if (name === key && key !== '*') yield { at: `${at} without ${name}`, value: rest }
    }
  }
}

/** Whether `other` has the form as well as `value` has. */
function isRightToo(other: unknown, value: unknown, form: unknown): boolean {
  if (typeof form === 'string' && form !== '') return other === value
  if (Array.isArray(form)) return Array.isArray(other) && other.length === 0
  if (typeof form !== 'object') return typeof other === typeof form
  const isObject = typeof other === 'object' && other !== null && !Array.isArray(other)
  return isObject && Object.keys({ ...form }).every(name => name.endsWith('?') || name === '*')
}

t.test('a right reply is taken, and one with a member missing or of another type is refused', async t => {
  let count = 0
  for (const operation of OPERATIONS) {
    const form = REPLY_FORMS[operation]
    const right = exampleOf(form)
    t.ok('value' in (await outcomeOf(operation, () => Response.json(right))), operation)
    for (const { at, value } of spoiltOnes(right, form)) {
      count++
      const outcome = await outcomeOf(operation, () => Response.json(value))
      if (!('code' in outcome) || outcome.code !== INVALID.code) t.fail(`${operation} ${at} is taken`)
    }
  }
  t.ok(count > 2_000, `${count} replies`)
})

t.test('an answer that is no JSON, no object, cut or empty is refused', async t => {
  for (const operation of OPERATIONS) {
    const right = JSON.stringify(exampleOf(REPLY_FORMS[operation]))
    const odd = [
      '<!doctype html><p>Sign in to the Wi-Fi</p>',
      'null',
      '[]',
      '[{}]',
      '"x"',
      '7',
      'true',
      ' ',
      '{"a":1',
      '',
    ]
    const cuts = [1, 2, Math.floor(right.length / 2), right.length - 1].map(length => right.slice(0, length))
    for (const text of [...odd, ...cuts.filter(cut => cut !== right)]) {
      const headers = { 'content-type': 'text/html; charset=utf-8' }
      t.same(
        await outcomeOf(operation, () => new Response(text, { headers })),
        INVALID,
        `${operation} ${text}`,
      )
    }
    t.same(await outcomeOf(operation, () => new Response(null, { status: 204 })), INVALID, operation)
  }
  t.same(await outcomeOf(SILENT, () => new Response(null, { status: 204 })), { value: undefined })
  for (const text of ['{}', '<html>', '[]'])
    t.same(await outcomeOf(SILENT, () => new Response(text)), INVALID, `a body where none is due: ${text}`)
})

t.test('a refusal with an odd body is an error with the status', async t => {
  for (const text of [
    '',
    '<html>',
    'null',
    '[]',
    '"x"',
    '{"code":7}',
    '{"code":""}',
    '{"code":null,"errors":5}',
    '{',
  ]) {
    const outcome = await outcomeOf('GET user', () => new Response(text, { status: 418 }))
    t.match(outcome, { code: /^HTTP_418$/ }, text)
  }
  for (const retryAfter of ['never', '-1', '1e9', '99999999999999999999', '1.5']) {
    const headers = { 'retry-after': retryAfter }
    t.match(await outcomeOf('GET user', () => new Response('{}', { status: 503, headers })), {
      code: 'HTTP_503',
    })
  }
})

async function listen(t: Test, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

t.test('a redirect is not followed: codes and tokens are for this server', async t => {
  const followed: string[] = []
  const elsewhere = await listen(t, (request, response) => {
    followed.push(request.url!)
    response.end('{}')
  })
  for (const status of [301, 302, 303, 307, 308]) {
    const answer = () => fetch(at, { method: 'POST', body: '{}', redirect: 'manual' })
    const at = await listen(t, (_, response) =>
      response.writeHead(status, { location: `${elsewhere}/taken` }).end(),
    )
    const server = new Server({ url: at, platform: platformOf() })
    const sent = server.request('POST refresh-token', { refreshToken: 'secret' })
    await t.rejects(sent, { name: 'CallsignError', code: 'ANSWER_INVALID' }, String(status))
    t.same(await outcomeOf('GET user', answer), INVALID)
  }
  t.same(followed, [])
})

t.test('an endless answer is given up, and a cut one is none', async t => {
  let sent = 0
  const endless = await listen(t, (_, response) => {
    const piece = ' '.repeat(1 << 16)
    const pour = () => {
      while (!response.destroyed && response.write(piece)) sent += piece.length
      if (!response.destroyed) response.once('drain', pour)
    }
    pour()
  })
  const server = new Server({ url: endless, platform: platformOf() })
  await t.rejects(server.request('GET user', undefined), { code: 'ANSWER_INVALID' })
  t.ok(sent < 64 << 20, `${sent} bytes were taken`)
  const cut = await listen(t, (_, response) => {
    response.writeHead(200, { 'content-length': '100' })
    response.write('{"userId"')
    setImmediate(() => response.destroy())
  })
  const platform = platformOf({ wait: async () => undefined })
  const other = new Server({ url: cut, platform })
  await t.rejects(other.request('GET user', undefined), { name: 'CallsignError', code: 'NO_ANSWER' })
})

t.test('an odd answer to a renewal leaves the tokens as they are', async t => {
  const { http, end } = await openServer({ dataFolder: t.testdir(), environment: settingsFor(1) })
  t.teardown(end)
  let odd: string | undefined
  const app = await startApp(http, {
    fetch: (url, init) =>
      odd !== undefined && String(url).endsWith('/refresh-token')
        ? Promise.resolve(new Response(odd))
        : fetch(url, init),
  })
  await signIn(app)
  const token = await app.session.accessToken()
  for (odd of ['{}', '[]', 'null', '', '<html>', '{"accessToken":5,"refreshToken":6}'])
    await t.rejects(app.session.renew(token), { name: 'CallsignError', code: 'ANSWER_INVALID' }, odd)
  t.equal(await app.session.accessToken(), token)
  odd = undefined
  await app.session.renew(token)
  const again = await startApp(http, { storage: app.storage })
  t.equal(again.session.userId, app.session.userId)
})

t.test('a development server’s odd inbox has no code', async t => {
  for (const [status, text] of [
    [200, '<html>'],
    [200, 'null'],
    [200, '{"items":5}'],
    [404, '{"code":"NOT_FOUND"}'],
    [403, '<html>'],
  ] as const) {
    const url = await listen(t, (_, response) => response.writeHead(status).end(text))
    await t.rejects(sentCode(url, 'ann@b.co'), { name: 'CallsignError', code: 'NOT_FOUND' }, text)
  }
})

t.test('a development server’s refusal is the error, and so is its silence', async t => {
  const refusal = { code: 'HOST_NOT_ALLOWED', detail: 'not through a tunnel' }
  const url = await listen(t, (_, response) => response.writeHead(403).end(JSON.stringify(refusal)))
  const refused = { code: 'HOST_NOT_ALLOWED', message: refusal.detail, status: 403 }
  await t.rejects(sentCode(url, 'ann@b.co'), refused)
  await t.rejects(sentCode('http://127.0.0.1:9', 'ann@b.co'), { name: 'CallsignError', code: 'NO_ANSWER' })
})

t.test('a page that may not read an answer at all hears which setting lets it', async t => {
  const { fetch } = globalThis
  const origin = 'http://app.example:5173'
  t.teardown(() => {
    globalThis.fetch = fetch
    Reflect.deleteProperty(globalThis, 'location')
  })
  Object.assign(globalThis, { location: { origin } })
  globalThis.fetch = async (_, init) => {
    if (init?.mode === 'no-cors') return new Response()
    throw new TypeError('Failed to fetch')
  }
  const message = new RegExp(`CALLSIGN_CORS_ORIGINS=${origin},`)
  await t.rejects(sentCode('http://127.0.0.1:8080', 'ann@b.co'), { code: 'ORIGIN_NOT_ALLOWED', message })
})

t.test('without an answer, a foreign page hears of the setting that could be the reason', async t => {
  const fetch = () => Promise.reject(new TypeError('Failed to fetch'))
  const platform = platformOf({ wait: async () => undefined })
  const server = new Server({ url: 'https://call.example.org', fetch, platform })
  const messageAt = async (origin: string | undefined) => {
    Object.assign(globalThis, { location: origin === undefined ? undefined : { origin } })
    const failed: CallsignError = await server.request('GET meta', undefined).catch(error => error)
    t.equal(failed.code, 'NO_ANSWER')
    return failed.message
  }
  t.teardown(() => Reflect.deleteProperty(globalThis, 'location'))
  const plain = 'The server does not answer.'
  t.equal(await messageAt(undefined), plain)
  t.equal(await messageAt('https://call.example.org'), plain)
  for (const origin of ['https://app.example.org', 'https://call.example.or'])
    t.match(await messageAt(origin), `CALLSIGN_CORS_ORIGINS lacks ${origin}.`)
})
