/** The OpenAPI document of the server API: every operation is in it, with its scope, and it is well formed. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { serverOpenApiDocument } from '../../../src/api/documents/server-openapi.ts'
import { SERVER_OPERATIONS } from '../../../src/api/server-api/operations.ts'
import { statusOf } from '../../../src/transport/problem.ts'
import { lintOpenApi } from '../../support/openapi-lint.ts'

const document = JSON.parse(
  JSON.stringify(
    serverOpenApiDocument({
      operations: SERVER_OPERATIONS,
      version: '1.2.3',
      serverUrl: 'https://here',
      statusOf,
    }),
  ),
)

t.test('each operation is there, with the scope that its key needs', async t => {
  for (const { id, method, path, scope, access, bodyMediaType } of SERVER_OPERATIONS) {
    const object = document.paths[path]?.[method.toLowerCase()]
    t.equal(object?.operationId, id)
    t.same(object.security, access === 'operator' ? [{ operator: [] }] : [{ serverKey: [scope] }], id)
    if (bodyMediaType !== undefined) t.ok(object.requestBody.content[bodyMediaType], id)
    const used = document.tags.some(({ name }: { name: string }) => name === object.tags[0])
    t.ok(used, `${id} has a tag that is described`)
  }
  t.equal(new Set(SERVER_OPERATIONS.map(({ id }) => id)).size, SERVER_OPERATIONS.length, 'no id twice')
})

t.test('it has no schema that none of its operations refers to', async t => {
  const text = JSON.stringify(document)
  const names = Object.keys(document.components.schemas)
  t.same(
    names.filter(name => !text.includes(`"#/components/schemas/${name}"`)),
    [],
  )
})

t.test('it passes the linter', async t => {
  const file = join(t.testdir(), 'server-openapi.json')
  writeFileSync(file, JSON.stringify(document))
  const { code, stdout, stderr } = await lintOpenApi(file)
  t.equal(code, 0, stdout + stderr)
})
