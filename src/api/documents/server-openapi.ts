/** The OpenAPI 3.1 document of the server API, made from its table of operations. */

import { SCOPES } from '../../domain/operators/server-key.ts'
import { assert } from '../../errors.ts'
import type { HttpRoute } from '../../transport/route.ts'
import type { ServerTag } from '../table/operation.ts'
import type { ServerOperation } from '../table/server-operation.ts'
import { documentRoute } from './document-route.ts'
import { DocumentSchemas } from './document-schemas.ts'
import { COMPONENTS, type OpenApiDeps, PROBLEM, sorted } from './openapi.ts'
import { openApiOperation } from './openapi-operation.ts'

type Described = Pick<OpenApiDeps, 'version' | 'serverUrl' | 'statusOf'> & {
  readonly operations: readonly ServerOperation<never>[]
}

/** `GET /server/openapi.json`. */
export function serverOpenApiRoute(deps: () => Described): HttpRoute {
  return documentRoute('/server/openapi.json', () => serverOpenApiDocument(deps()))
}

export function serverOpenApiDocument({ operations, version, serverUrl, statusOf }: Described): object {
  const paths: Record<string, Record<string, object>> = {}
  const schemas = new DocumentSchemas()
  schemas.refer('Problem', PROBLEM)
  for (const operation of operations) {
    const { path, bodyMediaType } = operation
    const method = operation.method.toLowerCase()
    assert(paths[path]?.[method] === undefined, `two operations at ${method} ${path}`)
    const form = openApiOperation(operation, statusOf, schemas)
    paths[path] = { ...paths[path], [method]: { ...form, ...bytesOf(bodyMediaType) } }
  }
  const { parameters, headers } = COMPONENTS
  const { IdempotencyKey } = parameters
  return {
    openapi: '3.1.0',
    info: { ...INFO, version },
    servers: [{ url: serverUrl }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: sorted(paths),
    components: {
      securitySchemes: SCHEMES,
      parameters: { IdempotencyKey },
      headers,
      schemas: sorted(referred(paths, schemas.components)),
    },
  }
}

/** Without schemas that only the application API has. */
function referred(
  paths: object,
  schemas: Readonly<Record<string, object>>,
): Readonly<Record<string, object>> {
  const found = new Map<string, object>()
  const visit = (part: object) => {
    for (const [, name = ''] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      const schema = schemas[name]
      if (schema === undefined || found.has(name)) continue
      found.set(name, schema)
      visit(schema)
    }
  }
  visit(paths)
  return Object.fromEntries(found)
}

function bytesOf(mediaType: string | undefined): object {
  if (mediaType === undefined) return {}
  return { requestBody: { required: true, content: { [mediaType]: { schema: { type: 'string' } } } } }
}

const INFO = {
  title: 'Callsign server API',
  summary: 'What a company’s own backend asks of its Callsign server',
  description: [
    'Asked for with a server key, which only the operator makes: `callsign server-key create`. A key has scopes, and 50',
    'requests a second. Whatever changes something is in the record of `GET audit`. Ids, times, refusals, pages and',
    '`Idempotency-Key` are as in the application API (`/openapi.json`).',
  ].join(' '),
  license: { name: 'Apache 2.0', identifier: 'Apache-2.0' },
}

const TAGS: Record<ServerTag, string> = {
  users: 'Users, by your own ids',
  'sign-in tokens': 'Signing in users whom your backend has made',
  'contacts and circles': 'Who may call whom',
  'calls of users': 'Calls: who, when, why they ended; never their keys',
  moderation: 'Suspension, reports, the record of what was done',
  operator: 'For the operator’s own commands, which prove that they have the server’s secret',
}

const SCHEMES = {
  serverKey: {
    type: 'http',
    scheme: 'bearer',
    description: `A server key, \`csk_...\`. Scopes: ${SCOPES.join(', ')}`,
  },
  operator: {
    type: 'http',
    scheme: 'bearer',
    description: 'Made by `callsign` commands; good for one request',
  },
}
