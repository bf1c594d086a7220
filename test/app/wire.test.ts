/** The types of `@callsign/sdk/app` and `@callsign/sdk/server`, and the names of ids, are those that the server documents. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { serverWireTypes, wireTypes } from '../../scripts/support/wire-types.ts'
import { openServer } from '../support/open-server.ts'
import { PROJECT_ROOT } from '../support/vectors.ts'

t.test('the bodies of wire.ts are those of the documents', async t => {
  const server = await openServer({ dataFolder: t.testdir() })
  t.teardown(() => server.end())
  const read = async (url: string) => JSON.parse(await (await fetch(`${url}.json`)).text())
  const asyncApi = await read(`${server.http}/asyncapi`)
  const made = wireTypes(await read(`${server.http}/openapi`), asyncApi)
  const how = 'start a server with `npm start`, then run `node dist/scripts/support/write-wire-types.js`'
  t.equal(readFileSync(join(PROJECT_ROOT, 'src/app/wire.ts'), 'utf8'), made, how)
  const forBackends = serverWireTypes(await read(`${server.serverApi}/server/openapi`), asyncApi)
  t.equal(readFileSync(join(PROJECT_ROOT, 'src/backend/wire.ts'), 'utf8'), forBackends, how)
})

const WEBHOOK = { type: 'object', properties: { secretId: { type: 'string', format: 'uint64' } } }
const EVENTS = {
  channels: {
    webhooks: { address: 'webhooks', messages: { hook: {} } },
    calls: { address: '/user/queue/calls', messages: { ended: {} } },
    call: { address: '/topic/call.{callId}', messages: { ended: {} } },
  },
  components: {
    messages: {
      ended: { summary: 'It ended', payload: { $ref: '#/components/schemas/Outer' } },
      hook: { summary: 'For backends', payload: { $ref: '#/components/schemas/Hook' } },
    },
  },
}
const ID = { type: 'string', format: 'uint64' }

function madeOf(properties: Readonly<Record<string, object>>): string {
  const inner = { type: 'object', properties }
  const outer = { type: 'object', properties: { people: { type: 'array', items: inner } } }
  const { channels, components } = EVENTS
  const schemas = { Outer: outer, Hook: WEBHOOK }
  return wireTypes(
    { paths: {}, components: { schemas: { Outer: outer } } },
    { channels, components: { ...components, schemas } },
  )
}

t.test('a member is an id by its schema, in a list and within another member too', async t => {
  const made = madeOf({ owner: ID, others: { type: 'array', items: ID }, gridId: { type: 'integer' } })
  t.match(made, "ID_MEMBERS: ReadonlySet<string> = new Set(['others', 'owner'])")
  t.notMatch(made, /Hook|secretId/, 'what only backends get is not for apps')
})

t.test('a name that is an id here and a number there is refused', async t => {
  const inner = { type: 'object', properties: { owner: { type: 'integer' } } }
  t.throws(() => madeOf({ owner: ID, inner }), { message: /owner/ })
})

t.test('a constant is one by its mark, whatever its description says', async t => {
  const made = madeOf({
    marked: { type: 'boolean', 'x-const': true, description: 'Yes' },
    told: { type: 'boolean', description: 'Always `true`' },
  })
  t.match(made, /marked\?: true\n/)
  t.match(made, /told\?: boolean\n/)
})

t.test('the form of a choice of numbers is a number', async t => {
  const size = { type: 'integer', enum: [128, 256] }
  const schema = { type: 'object', properties: { size, kind: { type: 'string', enum: ['a'] } } }
  const responses = { 200: { content: { 'application/json': { schema } } } }
  const paths = { '/app/api/a': { get: { operationId: 'a', summary: 'A', responses } } }
  const { channels, components } = EVENTS
  const schemas = { Outer: {}, Hook: WEBHOOK }
  const made = wireTypes(
    { paths, components: { schemas: {} } },
    { channels, components: { ...components, schemas } },
  )
  t.match(made, /'size\?': 0/)
  t.match(made, /'kind\?': ''/)
})
