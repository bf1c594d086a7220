/**
 * One operation of the document (OpenAPI 3.1, 4.8.10): its parameters, body, replies, and refusals by status with the
 * codes that each can have.
 */

import Type, { type TObject, type TSchema } from 'typebox'
import type { ErrorCode } from '../../errors.ts'
import { BODY_BYTES_MAX } from '../../limits.ts'
import type { OperationForm } from '../table/operation.ts'
import { codesOf, isVersionChecked } from '../table/refusals.ts'
import { type DocumentSchemas, refTo } from './document-schemas.ts'

/** The HTTP status of a code. */
export type StatusOf = (code: ErrorCode) => number

/** The operation object; its schemas join those of the document. */
export function openApiOperation(
  operation: OperationForm,
  statusOf: StatusOf,
  schemas: DocumentSchemas,
): object {
  return {
    operationId: operation.id,
    tags: [operation.tag],
    summary: operation.summary,
    ...description(operation),
    ...security(operation),
    parameters: parameters(operation, schemas),
    ...requestBody(operation, schemas),
    responses: { ...replies(operation, schemas), ...refusals(operation, statusOf) },
  }
}

/** Without the parts that the document has once for all operations. */
function security({ access, scope, countsFor }: OperationForm): object {
  if (access === 'operator') return { security: [{ operator: [] }] }
  if (access === 'server-key') return { security: [{ serverKey: scope === undefined ? [] : [scope] }] }
  if (access === 'optional' || (access === 'public' && countsFor === 'good-token'))
    return { security: [{ session: [] }, {}] }
  return access === 'public' ? { security: [] } : {}
}

/** Such as `RegisterDeviceReply`. Statuses that answer in the same form share a name. */
function replyName(operation: OperationForm, status: number): string {
  const form = operation.replies[status as keyof OperationForm['replies']]
  const [first, ...others] = repliesOf(operation).filter(([, schema]) => schema !== null)
  const isOnlyForm = others.every(([, schema]) => schema === first?.[1])
  return `${capitalized(operation.id)}Reply${isOnlyForm || form === first?.[1] ? '' : status}`
}

function repliesOf({ replies }: OperationForm): [status: number, schema: TSchema | null][] {
  return Object.entries(replies).map(([status, schema]) => [Number(status), schema])
}

function description(operation: OperationForm): object {
  const { path, access, bodyBytesMax = BODY_BYTES_MAX, bodySchema, deprecatedAliases = [] } = operation
  const sentences = []
  const spellings = [...(path.startsWith('/app/api/') ? [shortened(path)] : []), ...(operation.aliases ?? [])]
  if (spellings.length > 0) sentences.push(`Also at ${listed(spellings)}.`)
  if (deprecatedAliases.length > 0) {
    sentences.push(`Deprecated: ${listed(deprecatedAliases.map(({ path }) => path))}.`)
  }
  if (access === 'device' || access === 'restricted-device')
    sentences.push('Needs a session that is bound to a device.')
  if (access === 'restricted' || access === 'restricted-device')
    sentences.push('Open to restricted sessions, too.')
  if (bodySchema !== undefined) sentences.push(`The body has at most ${bodyBytesMax} bytes.`)
  return sentences.length === 0 ? {} : { description: sentences.join(' ') }
}

/** `/api/X` stands for every `/app/api/X` (contract 1.1). */
function shortened(path: string): string {
  return path.slice('/app'.length)
}

function listed(paths: readonly string[]): string {
  return paths.map(path => `\`${path}\``).join(', ')
}

function parameters(operation: OperationForm, schemas: DocumentSchemas): object[] {
  const {
    path,
    querySchema,
    isIdempotent = false,
    readsIdempotencyKey = false,
    readsIfMatch = false,
  } = operation
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
  return [
    ...names.map(name => ({ name, in: 'path', required: true, schema: PATH_VALUES[name] ?? ID })),
    ...(querySchema === undefined ? [] : queryParameters(querySchema, schemas)),
    ...(isIdempotent || readsIdempotencyKey ? [{ $ref: '#/components/parameters/IdempotencyKey' }] : []),
    ...(readsIfMatch ? [{ $ref: '#/components/parameters/IfMatch' }] : []),
    ...(isVersionChecked(operation) ? [{ $ref: '#/components/parameters/ClientVersion' }] : []),
  ]
}

/** Lists are written with commas between their elements. */
function queryParameters({ properties }: TObject, schemas: DocumentSchemas): object[] {
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: !Type.IsOptional(schema),
    ...(Type.IsArray(schema) ? { style: 'form', explode: false } : {}),
    schema: schemas.form(schema),
  }))
}

function requestBody({ id, bodySchema, isBodyOptional }: OperationForm, schemas: DocumentSchemas): object {
  if (bodySchema === undefined) return {}
  const schema = schemas.refer(`${capitalized(id)}Request`, bodySchema)
  return { requestBody: { required: !isBodyOptional, content: { 'application/json': { schema } } } }
}

function replies(operation: OperationForm, schemas: DocumentSchemas): object {
  const entries = repliesOf(operation).map(([status, schema]) => {
    if (schema === null) return [status, { description: MEANINGS[status] }]
    const reference = schemas.refer(replyName(operation, status), schema)
    return [
      status,
      { description: MEANINGS[status], content: { [mediaTypeOf(schema)]: { schema: reference } } },
    ]
  })
  return Object.fromEntries(entries)
}

/** JSON, unless the schema is of a text of another type. */
function mediaTypeOf(schema: TSchema): string {
  return (schema as { readonly contentMediaType?: string }).contentMediaType ?? 'application/json'
}

function refusals(operation: OperationForm, statusOf: StatusOf): object {
  const byStatus: Record<number, ErrorCode[]> = {}
  for (const code of codesOf(operation)) {
    const status = statusOf(code)
    byStatus[status] ??= []
    byStatus[status].push(code)
  }
  return Object.fromEntries(
    Object.entries(byStatus).map(([status, codes]) => [status, refusal(Number(status), codes)]),
  )
}

/** All have one schema, so that a generated client has one type to handle. */
function refusal(status: number, codes: readonly ErrorCode[]): object {
  return {
    description: codes.map(code => `\`${code}\``).join(', '),
    ...(HEADERS[status] === undefined ? {} : { headers: HEADERS[status] }),
    content: { 'application/problem+json': { schema: refTo('Problem') } },
    'x-codes': codes,
  }
}

function capitalized(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1)
}

const MEANINGS: Record<number, string> = {
  200: 'Done',
  201: 'Created',
  202: 'Taken: it is to be confirmed, or goes on by itself',
  204: 'Done; there is nothing to say',
}
const RETRY = { 'Retry-After': { $ref: '#/components/headers/RetryAfter' } }
const HEADERS: Record<number, object> = {
  401: { 'WWW-Authenticate': { $ref: '#/components/headers/WwwAuthenticate' } },
  429: {
    ...RETRY,
    RateLimit: { $ref: '#/components/headers/RateLimit' },
    'RateLimit-Policy': { $ref: '#/components/headers/RateLimitPolicy' },
  },
  503: RETRY,
}
/** The id of a user, a device or a call; most values in a path are one (contract 1.3). */
export const ID = { type: 'string', format: 'uint64', pattern: '^(0|[1-9][0-9]{0,19})$' }

/** Values in paths that are no such id. */
const PATH_VALUES: Readonly<Record<string, object>> = {
  ref: {
    type: 'string',
    description: '`id:` and the user’s id, or `ext:` and your own id of the user, percent-encoded',
  },
  keyId: { type: 'string', pattern: '^[0-9a-f]{12}$' },
  indexKey: {
    type: 'string',
    pattern: '^[0-9a-f]{64}$',
    description: 'SHA-256 of the base64 text of a VRF hash, in lower-case hexadecimal',
  },
  webhookId: { type: 'string', pattern: '^(settings|wh_[0-9a-f]{12})$' },
}
