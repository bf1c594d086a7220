/** The OpenAPI document: what it says of operations, that it is well formed, and how it is served. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import Type from 'typebox'
import { plainOperations } from '../../../src/api/documents/log-operations.ts'
import { openApiDocument, openApiRoute } from '../../../src/api/documents/openapi.ts'
import { OPERATIONS } from '../../../src/api/operations.ts'
import {
  type OperationForm,
  operation,
  operationWithBody,
  readWithQuery,
} from '../../../src/api/table/operation.ts'
import { codesOf } from '../../../src/api/table/refusals.ts'
import { Uint64, Uint64Text } from '../../../src/schema/uint64.ts'
import { HttpServer } from '../../../src/transport/http.ts'
import { statusOf } from '../../../src/transport/problem.ts'
import { DocumentedAnswers } from '../../support/documented.ts'
import { lintOpenApi } from '../../support/openapi-lint.ts'

const rename = operationWithBody(Type.Object({ id: Uint64, name: Type.Optional(Type.String()) }), {
  id: 'renameThing',
  method: 'PUT',
  path: '/app/api/thing/{thingId}',
  tag: 'user',
  summary: 'Rename a thing',
  access: 'device',
  replies: { 200: Type.Object({ id: Uint64Text, name: Type.Optional(Type.String()) }), 204: null },
  codes: ['USER_NOT_FOUND', 'OTP_COOLDOWN'],
  isIdempotent: true,
  handle: () => ({ status: 204 }),
})

const ThingsQuery = Type.Object({
  limit: Type.Integer({ minimum: 1 }),
  ids: Type.Optional(Type.Array(Uint64)),
})

const list = readWithQuery(ThingsQuery, {
  id: 'listThings',
  method: 'GET',
  path: '/app/api/thing',
  tag: 'user',
  summary: 'The things',
  access: 'optional',
  replies: { 200: Type.Object({}) },
  codes: [],
  handle: () => ({ status: 200, body: {} }),
})

const forget = operation({
  id: 'forgetThings',
  method: 'DELETE',
  path: '/app/api/thing',
  tag: 'user',
  summary: 'Forget the things',
  access: 'public',
  replies: { 204: null },
  codes: [],
  handle: () => ({ status: 204 }),
})

const PARTS = { lookupsNeedToken: false, version: '1.2.3', serverUrl: 'https://here', statusOf }

// biome-ignore lint/suspicious/noExplicitAny: a document of any form
function documentOf(operations: readonly OperationForm[]): any {
  const document = openApiDocument({ ...PARTS, operations })
  return JSON.parse(JSON.stringify(document))
}

t.test('a request is documented by the schema that checks it', async t => {
  const document = documentOf([rename])
  const { put } = document.paths['/app/api/thing/{thingId}']
  t.equal(put.requestBody.required, true)
  t.same(put.requestBody.content['application/json'].schema, {
    $ref: '#/components/schemas/RenameThingRequest',
  })
  const { properties, required } = document.components.schemas.RenameThingRequest
  t.same(required, ['id'])
  t.match(
    properties.id,
    { type: 'string', format: 'uint64' },
    'the one of both forms that every language has',
  )
})

t.test('schemas have the forms that client generators make types of', async t => {
  const { paths, components } = documentOf(OPERATIONS)
  const { schemas } = components
  const { properties } = schemas.StartCallRequest
  t.match(properties.calleeIds.items, { type: 'string', format: 'uint64' })
  t.equal(properties.roomId.format, 'int64', 'a room is beyond 32 bits')
  t.equal(properties.encryptedAESKeys.additionalProperties.type, 'string')
  t.match(schemas.CallStatus, { type: 'string', enum: ['ringing', 'active'] })
  t.same(
    schemas.SignedIn.properties.verified,
    { type: 'boolean', 'x-const': true, description: 'Always `true`' },
    'no `const`, of which some generators make types that do not compile',
  )
  t.same(
    schemas.LoginReply.oneOf.map(({ $ref }: { $ref: string }) => $ref),
    ['#/components/schemas/LoginChallenge', '#/components/schemas/SignedIn'],
    'one of two, told apart by what they require',
  )
  for (const id of ['join', 'rejoin', 'end']) {
    const { schema } = paths[`/app/api/call/{callId}/${id}`].post.responses[200].content['application/json']
    t.same(schema, { $ref: '#/components/schemas/CallRecord' }, id)
  }
  t.same(schemas.Problem.properties.challenge, {
    $ref: '#/components/schemas/Challenge',
    description: 'With `ACCOUNT_EXISTS` and `STEP_UP_REQUIRED`: the code that was sent, to go on with',
  })
  const patterns = JSON.stringify(schemas).matchAll(/"pattern":"([^"]*)"/g)
  for (const [, pattern] of patterns) t.notMatch(pattern, /\\p/, 'a class that few languages know')
})

t.test('a reply is documented by its status, with ids as strings', async t => {
  const document = documentOf([rename])
  const { responses } = document.paths['/app/api/thing/{thingId}'].put
  t.same(responses[200].content['application/json'].schema, { $ref: '#/components/schemas/RenameThingReply' })
  t.equal(responses[204].content, undefined)
  t.match(document.components.schemas.RenameThingReply.properties.id, { type: 'string', format: 'uint64' })
})

t.test('values in the path, the query and headers are parameters', async t => {
  const { paths } = documentOf([rename, list])
  const names = (parameters: readonly { name?: string; $ref?: string }[]) =>
    parameters.map(({ name, $ref }) => name ?? $ref?.split('/').at(-1))
  t.same(names(paths['/app/api/thing/{thingId}'].put.parameters), [
    'thingId',
    'IdempotencyKey',
    'ClientVersion',
  ])
  const [limit, ids] = paths['/app/api/thing'].get.parameters
  t.match(limit, { name: 'limit', in: 'query', required: true })
  t.match(ids, { name: 'ids', in: 'query', required: false, style: 'form', explode: false })
})

t.test('the document names each operation’s callers by its security', async t => {
  const { paths, security } = documentOf([rename, list, forget])
  t.same(security, [{ session: [] }])
  t.equal(paths['/app/api/thing/{thingId}'].put.security, undefined)
  t.same(paths['/app/api/thing'].get.security, [{ session: [] }, {}])
  t.same(paths['/app/api/thing'].delete.security, [])
})

t.test('refusals are grouped by status, and all of its codes are there', async t => {
  const { responses } = documentOf([rename]).paths['/app/api/thing/{thingId}'].put
  const codesIn = (status: number): string[] => responses[status]['x-codes']
  t.same(codesIn(404), ['USER_NOT_FOUND'])
  t.same(codesIn(429), ['OTP_COOLDOWN', 'RATE_LIMITED'])
  t.same(codesIn(403), ['DEVICE_NOT_LISTED', 'DEVICE_NOT_REGISTERED', 'DEVICE_REQUIRED'])
  t.same(codesIn(401), ['SESSION_REVOKED', 'TOKEN_EXPIRED', 'TOKEN_INVALID', 'TOKEN_MISSING'])
  const statuses = Object.keys(responses).filter(status => Number(status) >= 400)
  t.same(statuses.flatMap(status => codesIn(Number(status))).sort(), codesOf(rename))
  t.same(responses[404].content['application/problem+json'].schema, { $ref: '#/components/schemas/Problem' })
  t.ok(responses[429].headers['Retry-After'])
  t.ok(responses[503].headers['Retry-After'])
  t.ok(responses[401].headers['WWW-Authenticate'])
})

t.test('codes come from access and form', async t => {
  t.same(codesOf(forget), [
    'BODY_TOO_LARGE',
    'CLIENT_TOO_OLD',
    'INTERNAL',
    'MALFORMED_REQUEST',
    'OUTCOME_UNKNOWN',
    'RATE_LIMITED',
    'STORE_UNAVAILABLE',
    'UNSUPPORTED_MEDIA_TYPE',
  ])
  t.notOk(codesOf(list).includes('TOKEN_MISSING'), 'a session is not asked for')
  t.ok(codesOf(list).includes('TOKEN_EXPIRED'), 'but one that is sent must be good')
  t.ok(codesOf(list).includes('VALIDATION_FAILED'), 'a query can be wrong')
  t.notOk(codesOf(list).includes('STORE_UNAVAILABLE'), 'what writes nothing can not fail to')
  t.ok(codesOf(rename).includes('IDEMPOTENCY_KEY_REUSED'))
  const meta = plainOperations(false).find(({ id }) => id === 'getMeta')!
  t.notOk(codesOf(meta).includes('CLIENT_TOO_OLD'), 'old clients hear from it that they are')
})

t.test('other spellings of a path appear in words only', async t => {
  const deprecatedAliases = [{ path: '/group-things', since: 0 }]
  const { paths } = documentOf([{ ...forget, aliases: ['/app/api/things'], deprecatedAliases }])
  const { description } = paths['/app/api/thing'].delete
  t.match(description, /Also at `\/api\/thing`, `\/app\/api\/things`\. Deprecated: `\/group-things`\./)
  t.notOk('/api/thing' in paths || '/app/api/things' in paths || '/group-things' in paths)
})

t.test('a text of another media type is documented as that', async t => {
  const replies = { 200: Type.String({ contentMediaType: 'image/svg+xml' }) }
  const { paths } = documentOf([{ ...forget, replies }])
  t.same(Object.keys(paths['/app/api/thing'].delete.responses[200].content), ['image/svg+xml'])
})

t.test('lookups need a session where the configuration says so', async t => {
  const documentWith = (lookupsNeedToken: boolean) =>
    JSON.parse(JSON.stringify(openApiDocument({ ...PARTS, lookupsNeedToken, operations: [] })))
  const { post } = documentWith(true).paths['/api/get-public-keys']
  t.equal(post.security, undefined)
  t.ok(post.responses[401])
  const { post: open } = documentWith(false).paths['/api/get-public-keys']
  t.same(open.security, [{ session: [] }, {}], 'else a token says only whom a lookup counts for')
  t.notOk(open.responses[401])
})

t.test('two operations in one place are a defect', async t => {
  t.throws(() => documentOf([list, list]), { message: /two operations at get/ })
})

t.test('every operation has its forms and its codes in the document', async t => {
  const document = documentOf(OPERATIONS)
  for (const operation of OPERATIONS) {
    const { id, method, path, bodySchema, replies } = operation
    const object = document.paths[path][method.toLowerCase()]
    t.equal(object.operationId, id)
    t.equal(object.requestBody !== undefined, bodySchema !== undefined, `${id}: body`)
    t.ok(Object.keys(replies).length > 0, `${id}: replies`)
    for (const [status, schema] of Object.entries(replies)) {
      t.equal(schema === null, status === '204', `${id}: only 204 has no body`)
      t.ok(object.responses[status], `${id}: ${status}`)
    }
    for (const code of codesOf(operation)) t.ok(object.responses[statusOf(code)], `${id}: ${code}`)
  }
  t.equal(new Set(OPERATIONS.map(({ id }) => id)).size, OPERATIONS.length, 'no id twice')
})

t.test('the document of the whole application passes the linter', async t => {
  const file = join(t.testdir(), 'openapi.json')
  writeFileSync(file, JSON.stringify(documentOf([...OPERATIONS, rename, list, forget])))
  const { code, stdout, stderr } = await lintOpenApi(file)
  t.equal(code, 0, stdout + stderr)
})

t.test('the linter finds a document’s faults', async t => {
  const document = documentOf([rename])
  document.paths['/app/api/thing/{thingId}'].put.parameters.shift()
  const file = join(t.testdir(), 'openapi.json')
  writeFileSync(file, JSON.stringify(document))
  const { code, stdout } = await lintOpenApi(file)
  t.equal(code, 1)
  t.match(stdout, /path-parameters-defined/)
})

t.test('the document is served with a tag, by which it is not sent twice', async t => {
  let made = 0
  const route = openApiRoute(() => {
    made++
    return { ...PARTS, operations: [forget] }
  })
  const noted = () => undefined
  const server = new HttpServer({ routes: [route], onRefused: noted, onFault: noted })
  const url = `http://127.0.0.1:${await server.listen('127.0.0.1', 0)}/openapi.json`
  t.teardown(() => server.close())

  const first = await fetch(url)
  const etag = first.headers.get('etag')!
  t.match(await first.json(), {
    openapi: '3.1.0',
    info: { version: '1.2.3' },
    servers: [{ url: 'https://here' }],
  })
  for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const again = await fetch(url, { headers: { 'if-none-match': known } })
    t.equal(again.status, 304, known)
    t.equal(await again.text(), '')
  }
  t.equal((await fetch(url, { headers: { 'if-none-match': '"other"' } })).status, 200)
  t.equal(made, 1, 'it is made once')
})

t.test('answers that the document does not foresee are found', async t => {
  const documented = new DocumentedAnswers([rename])
  const check = (status: number, body?: unknown) => () =>
    documented.check('PUT', '/app/api/thing/{thingId}', { status, body })
  t.doesNotThrow(check(200, { id: '7' }))
  t.doesNotThrow(check(204))
  t.doesNotThrow(check(404, { code: 'USER_NOT_FOUND' }))
  t.throws(check(201, { id: '7' }), /no reply of this status/)
  t.throws(check(200, { id: 7 }), /\/id/)
  t.throws(check(200, {}), /id/)
  t.throws(check(200, { id: '7', secret: 'x' }), /member \/secret/)
  t.throws(check(204, {}), /no body/)
  t.throws(check(409, { code: 'KEY_IN_USE' }), /code KEY_IN_USE/)
  t.throws(check(410, { code: 'USER_NOT_FOUND' }), /status 410/)
  t.throws(() => documented.check('GET', '/elsewhere', { status: 200, body: {} }), /no operation/)
})
