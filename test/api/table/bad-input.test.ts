/**
 * What no client should send, to every operation: bodies that are no JSON, or not of their form in one member, queries
 * and paths likewise. Each is refused with a stable code that says where, nothing is stored, and nothing is our fault.
 */

import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { TSchema } from 'typebox'
import { OPERATIONS } from '../../../src/api/operations.ts'
import type { OperationForm } from '../../../src/api/table/operation.ts'
import type { DeviceId } from '../../../src/domain/ids.ts'
import { BODY_BYTES_MAX } from '../../../src/limits.ts'
import { isUint64Schema } from '../../../src/schema/uint64.ts'
import { HttpServer } from '../../../src/transport/http.ts'
import { newDevice, newSession, newUser, type TestAnswer } from '../../support/application.ts'
import { type Damage, damaged, damages, fitting, formatRaw } from '../../support/bodies.ts'
import { seedOf } from '../../support/seed.ts'
import { openTestApi, type TestApi, tableDigests } from '../../support/test-api.ts'

const WITH_BODY = OPERATIONS.filter(({ bodySchema }) => bodySchema !== undefined)
const WITH_QUERY = OPERATIONS.filter(({ querySchema }) => querySchema !== undefined)
const WITH_PATH = OPERATIONS.filter(({ path }) => path.includes('{'))

/** Sends bodies to one operation as a user with a device, who has used the session before. */
class Sender {
  readonly whole: TestApi
  readonly #operation: OperationForm
  readonly #token: string

  constructor(whole: TestApi, operation: OperationForm, token: string) {
    this.whole = whole
    this.#operation = operation
    this.#token = token
  }

  static async open(t: Test, operation: OperationForm): Promise<Sender> {
    const whole = await openTestApi(t)
    const { userId } = await newUser(whole.world)
    const { deviceId } = await newDevice(whole.world, userId)
    const { token } = await newSession(whole.world, userId, deviceId as DeviceId)
    await whole.send('GET /app/api/user', { token })
    await whole.world.database.change(() => undefined)
    return new Sender(whole, operation, token)
  }

  /** Rejects when the answer is a fault of ours, or not documented. */
  send(body: string | Uint8Array, contentType = 'application/json'): Promise<TestAnswer> {
    const headers = { 'content-type': contentType }
    return this.whole.send(placeOf(this.#operation), {
      // A token that is not asked for is not looked at.
      token: this.#token,
      headers,
      body: Buffer.from(body),
    })
  }

  ask(target: string): Promise<TestAnswer> {
    return this.whole.send(`${this.#operation.method} ${target}`, { token: this.#token })
  }

  /** Runs it, and says in which tables anything is other than before. */
  async changes(run: () => Promise<void>): Promise<string[]> {
    const before = tableDigests(this.whole.world.database)
    await run()
    await this.whole.world.database.change(() => undefined)
    const after = tableDigests(this.whole.world.database)
    return Object.keys(after).filter(name => after[name] !== before[name])
  }
}

function placeOf({ method, path }: OperationForm, id = '4503599627370497'): string {
  return `${method} ${path.replaceAll(/\{\w+\}/g, id)}`
}

function nested(levels: number): string {
  return `${'['.repeat(levels)}${']'.repeat(levels)}`
}

const NOT_JSON: Readonly<Record<string, string | Uint8Array>> = {
  'a text that is cut off': '{"a":',
  'a text with something behind it': '{} {}',
  'a byte order mark': '\ufeff{}',
  'bytes that are not UTF-8': Buffer.from('7b2261223a22ff227d', 'hex'),
  'an overlong encoding': Buffer.from('7b2261223a22c0af227d', 'hex'),
  'an encoded surrogate': Buffer.from('7b2261223a22eda080227d', 'hex'),
  'UTF-16': Buffer.from('{}', 'utf16le'),
  'a thousand lists': nested(1_000),
  'a thousand objects': `${'{"a":'.repeat(1_000)}1${'}'.repeat(1_000)}`,
  'a thousand levels in a member': `{"email":${nested(1_000)}}`,
  'brackets that never close': '['.repeat(15_000),
  'a member twice': '{"email":"a@b.co","email":"a@b.co"}',
  'a member twice, once with an escape': '{"email":"a@b.co","\\u0065mail":"c@d.co"}',
  'an inner member twice': '{"settings":{"a":1,"a":2}}',
  'a lone surrogate': '{"email":"\\ud800"}',
  'a lone surrogate in a name': '{"\\udc00":1}',
  'a NUL between tokens': '{\u0000}',
  'a NUL in a string': '{"email":"a\u0000"}',
  'a number that is none': '{"id":01}',
  NaN: '{"id":NaN}',
  'single quotes': "{'a':1}",
  'a comment': '{/* */}',
  'a trailing comma': '{"a":1,}',
}

const NOT_OBJECTS = ['[]', '[{}]', '"x"', '""', '7', '18446744073709551616', '-1.5e400', 'true', 'null']
const OTHER_TYPES = [
  '',
  'text/plain',
  'application/jsonx',
  'application/x-www-form-urlencoded',
  'json',
  '*/*',
]

for (const operation of WITH_BODY) {
  t.test(`${operation.id}: a body that is no JSON is refused as that`, async t => {
    const sender = await Sender.open(t, operation)
    const changed = await sender.changes(async () => {
      for (const [name, body] of Object.entries(NOT_JSON)) {
        const { status, body: problem } = await sender.send(body)
        t.same([status, problem.code], [400, 'MALFORMED_JSON'], name)
        t.notOk('stack' in problem)
      }
    })
    t.same(changed, [])
  })

  t.test(
    `${operation.id}: a body that is no object is refused, and a missing one where it is needed`,
    async t => {
      const sender = await Sender.open(t, operation)
      const changed = await sender.changes(async () => {
        for (const body of NOT_OBJECTS) {
          const { status, body: problem } = await sender.send(body)
          t.same([status, problem.code, problem.errors?.[0].pointer], [422, 'VALIDATION_FAILED', ''], body)
        }
        if (operation.isBodyOptional) return
        t.match(await sender.send(''), { status: 400, body: { code: 'MALFORMED_JSON' } })
      })
      t.same(changed, [])
    },
  )

  t.test(`${operation.id}: another media type is refused, whatever the body is`, async t => {
    const sender = await Sender.open(t, operation)
    const changed = await sender.changes(async () => {
      for (const contentType of OTHER_TYPES) {
        const { status, body } = await sender.send('{}', contentType)
        t.same([status, body.code], [415, 'UNSUPPORTED_MEDIA_TYPE'], contentType)
      }
    })
    t.same(changed, [])
  })

  const { bodySchema } = operation
  t.test(`${operation.id}: each member that is not of its form is refused by name`, async t => {
    const sender = await Sender.open(t, operation)
    const [base] = fc.sample(fitting(bodySchema!), { numRuns: 1, seed: 1 })
    const faults: string[] = []
    const changed = await sender.changes(async () => {
      for (const { path, wrong } of damages(bodySchema!)) {
        for (const value of wrong) {
          const body = formatRaw(damaged(base!, path, value))
          const answer = await sender.send(body)
          if (!isRefusedAt(answer, path))
            faults.push(`${path.join('.')} in ${body.slice(0, 200)}: ${answer.text}`)
        }
      }
    })
    t.same(faults, [])
    t.same(changed, [])
  })

  t.test(`${operation.id}: random bodies with one member damaged store nothing`, async t => {
    const sender = await Sender.open(t, operation)
    const options = damages(bodySchema!).flatMap(({ path, wrong }) => wrong.map(value => ({ path, value })))
    if (options.length === 0) return
    const bodies = fc.tuple(fitting(bodySchema!), fc.constantFrom(...options))
    const property = fc.asyncProperty(bodies, async ([body, { path, value }]) =>
      isRefusedAt(await sender.send(formatRaw(damaged(body, path, value))), path),
    )
    t.same(await sender.changes(() => fc.assert(property, { numRuns: 40, seed: seedOf() })), [])
  })

  t.test(`${operation.id}: random bodies of its form are no fault of ours`, async t => {
    const sender = await Sender.open(t, operation)
    const property = fc.asyncProperty(fitting(bodySchema!), async body => {
      await sender.send(formatRaw(body))
    })
    // A fault, or an answer that is not documented, rejects.
    await fc.assert(property, { numRuns: 60, seed: seedOf() })
    t.pass('there was none')
  })

  t.test(
    `${operation.id}: texts as long as a body are refused, or ignored where nobody reads them`,
    async t => {
      const sender = await Sender.open(t, operation)
      const [base] = fc.sample(fitting(bodySchema!), { numRuns: 1, seed: 2 })
      for (const path of placesOf(bodySchema!, 'text')) {
        for (const unit of ['x', '9', 'é', '\u202e', ' ', '\u0000', '\u0301']) {
          const text = unit.repeat(Math.floor(14_000 / Buffer.byteLength(JSON.stringify(unit).slice(1, -1))))
          const { status } = await sender.send(formatRaw(damaged(base!, path, text)))
          if (status < 300) await assertNotStored(sender, text.slice(0, 5_000), path)
        }
      }
      t.pass('none was stored')
    },
  )

  const ids = placesOf(bodySchema!, 'id')
  if (ids.length > 0) {
    t.test(`${operation.id}: ids of the whole range are taken, as texts and as numbers`, async t => {
      const sender = await Sender.open(t, operation)
      const [base] = fc.sample(fitting(bodySchema!), { numRuns: 1, seed: 3 })
      for (const path of ids) {
        for (const id of [0n, 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n, 2n ** 64n - 1n]) {
          const asText = await sender.send(formatRaw(damaged(base!, path, String(id))))
          const asNumber = await sender.send(formatRaw(damaged(base!, path, id)))
          t.notOk(pointersOf(asText).includes(`/${path.join('/')}`), `${path.join('.')} ${id}`)
          t.equal(asNumber.status, asText.status)
          t.equal(asNumber.body?.code, asText.body?.code)
        }
      }
    })
  }
}

t.test('a member named __proto__ is unknown like any other, and changes nothing', async t => {
  for (const operation of WITH_BODY) {
    const sender = await Sender.open(t, operation)
    const plain = await sender.send('{}')
    for (const name of ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty']) {
      const members = '{"verified":true,"email":"a@b.co","confirm":true,"allDevices":true,"id":"1"}'
      const { status, body } = await sender.send(`{"${name}":${members}}`)
      t.same([status, body?.code], [plain.status, plain.body?.code], `${operation.id} ${name}`)
    }
  }
  t.equal(({} as Record<string, unknown>).verified, undefined)
  t.equal(({} as Record<string, unknown>).confirm, undefined)
})

t.test('a query that is not of its form is refused by name', async t => {
  for (const operation of WITH_QUERY) {
    const sender = await Sender.open(t, operation)
    const path = placeOf(operation).split(' ')[1]
    const changed = await sender.changes(async () => {
      for (const [name, schema] of Object.entries(operation.querySchema!.properties)) {
        for (const text of wrongTexts(schema)) {
          const { status, body } = await sender.ask(`${path}?${name}=${text}`)
          t.same(
            [status, body.code],
            [422, 'VALIDATION_FAILED'],
            `${operation.id} ${name} ${text.slice(0, 40)}`,
          )
          t.ok(body.errors[0].pointer.startsWith(`/${name}`))
        }
        const twice = await sender.ask(`${path}?${name}=1&${name}=1`)
        t.match(twice, { status: 422, body: { errors: [{ code: 'DUPLICATE' }] } })
      }
      for (const query of ['&&&', '=', 'x', '__proto__=1', 'unknown=%zz', `${'a=1&'.repeat(2_000)}`]) {
        t.ok((await sender.ask(`${path}?${query}`)).status < 500, query.slice(0, 40))
      }
    })
    t.same(changed, [])
  }
})

t.test('a path segment that is no id leads nowhere, like an unused id', async t => {
  for (const operation of WITH_PATH) {
    const sender = await Sender.open(t, operation)
    const changed = await sender.changes(async () => {
      const absent = await sender.ask(placeOf(operation).split(' ')[1]!)
      // Removing an absent object succeeds, where the reply could reveal nothing more. An operation that needs a body or
      // a query is refused for want of it, whatever the path names.
      t.ok([404, 204, 400, 422].includes(absent.status), operation.id)
      const uint64s = ['0', String(2n ** 53n), String(2n ** 64n - 1n)]
      const others = ['01', '-1', '1.5', 'abc', '1e3', '%00', '%20', '%e2%80%a8', '..', String(2n ** 64n)]
      for (const id of [...uint64s, ...others, '9'.repeat(900)]) {
        const { status, body } = await sender.ask(placeOf(operation, id).split(' ')[1]!)
        t.same([status, body?.code], [absent.status, absent.body?.code], `${operation.id} ${id.slice(0, 20)}`)
      }
    })
    t.same(changed, [])
  }
})

t.test('a body that is too large is refused unread, by every operation that takes one', async t => {
  const { application, world } = await openTestApi(t)
  const faults: unknown[] = []
  const server = new HttpServer({
    routes: application.routes,
    onRefused: () => undefined,
    onFault: error => faults.push(error),
  })
  const url = `http://127.0.0.1:${await server.listen('127.0.0.1', 0)}`
  t.teardown(() => server.close())
  const before = tableDigests(world.database)
  for (const operation of OPERATIONS.filter(({ method }) => method !== 'GET')) {
    const [method, path] = placeOf(operation).split(' ')
    const body = `"${'x'.repeat(operation.bodyBytesMax ?? BODY_BYTES_MAX)}"`
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(`${url}${path}`, { method: method!, headers, body })
    t.match(
      { status: answer.status, body: await answer.json() },
      { status: 413, body: { code: 'BODY_TOO_LARGE' } },
    )
  }
  t.same(tableDigests(world.database), before)
  t.same(faults, [])
})

/** Whether it names the member, or what the member is in. */
function isRefusedAt(answer: TestAnswer, path: readonly string[]): boolean {
  return pointersOf(answer).some(pointer => `/${path.join('/')}`.startsWith(pointer))
}

/** The elements that a refused form names. */
function pointersOf({ status, body }: TestAnswer): string[] {
  if (status !== 422 || body.code !== 'VALIDATION_FAILED') return []
  return body.errors.map(({ pointer }: { pointer: string }) => pointer)
}

function placesOf(schema: TSchema, kind: Damage['kind']): (readonly string[])[] {
  return damages(schema).flatMap(damage => (damage.kind === kind ? [damage.path] : []))
}

function wrongTexts(schema: TSchema): string[] {
  const [id = []] = [isUint64Schema(schema) ? ['-1', '01', 'x', '1.5', String(2n ** 64n)] : undefined]
  const { type, maxItems = 0 } = schema as { type?: string; maxItems?: number }
  if (type === 'integer')
    return ['x', '-1', '1.5', '1e2', '99999999999999999999', '%00', '%zz', '%ff', 'true']
  if (type === 'boolean') return ['1', 'yes', 'TRUE', '%zz']
  if (type === 'array')
    return [
      'x',
      '1,,2',
      ',',
      '-1',
      '%ff',
      Array(maxItems + 1)
        .fill('1')
        .join(),
    ]
  return [...id, '%zz', '%ff']
}

async function assertNotStored({ whole }: Sender, text: string, path: readonly string[]): Promise<void> {
  const { database } = whole.world
  for (const name of database.tableNames()) {
    for (const { value } of database.storedRows(name).getRange()) {
      if (Buffer.from(value).includes(text)) throw new Error(`${path.join('.')} is stored in ${name}`)
    }
  }
}
