/**
 * Types of `@callsign/sdk/app` for bodies and events on the wire, and the names of their ids: made from the documents of a
 * running server, so that server, documents and apps have one source.
 */

import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..', '..', '..')

interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly description?: string
  readonly const?: string
  readonly 'x-const'?: string | number | boolean
  readonly enum?: readonly (string | number)[]
  readonly oneOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema
}

interface Parameter {
  readonly name?: string
  readonly in?: 'path' | 'query'
  readonly required?: boolean
  readonly schema: Schema
}

type Content = Readonly<Record<string, { readonly schema?: Schema }>>

interface OperationObject {
  readonly summary: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly required?: boolean; readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>
}

export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

export interface AsyncApiDocument {
  readonly channels: Readonly<Record<string, { readonly address: string; readonly messages: object }>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly messages: Readonly<Record<string, { readonly summary: string; readonly payload: Schema }>>
  }
}

/** The module, formatted. */
export function wireTypes(whole: OpenApiDocument, events: AsyncApiDocument): string {
  const openApi = withoutOthers(whole)
  const asyncApi = withoutWebhooks(events)
  const schemas = { ...asyncApi.components.schemas, ...openApi.components.schemas }
  const summaries = new Map(
    Object.values(asyncApi.components.messages).map(({ summary, payload }) => [
      nameOf(payload.$ref!),
      summary,
    ]),
  )
  const names = Object.keys(schemas).sort()
  const text = [
    '/** Bodies of requests, replies and messages, and the names of their ids. Made by scripts/support/write-wire-types.ts: do not edit. */',
    ...names.map(name => declaration(name, schemas[name]!, summaries.get(name))),
    union('QueueEvent', 'Messages of the queues of a device.', asyncApi, address =>
      ['calls', 'contacts', 'account'].some(queue => address === `/user/queue/${queue}`),
    ),
    union('CallTopicEvent', 'Messages to all who watch a call.', asyncApi, address =>
      address.startsWith('/topic/call.'),
    ),
    operations(openApi),
    replyForms(openApi),
    idMembers(Object.values(schemas)),
  ].join('\n\n')
  return formatted(text)
}

/** The module of `@callsign/sdk/server`: bodies of the server API and, of AsyncAPI, of webhooks. */
export function serverWireTypes(openApi: OpenApiDocument, asyncApi: AsyncApiDocument): string {
  const webhooks = Object.values(asyncApi.channels).filter(({ address }) => address === WEBHOOKS_ADDRESS)
  const events = webhooks
    .flatMap(({ messages }) => Object.keys(messages))
    .map(message => asyncApi.components.messages[message]!)
  const needed = new Map(Object.entries(openApi.components.schemas))
  for (const { payload } of events) collect(payload, asyncApi.components.schemas, needed)
  const names = [...needed.keys()].sort()
  const texts = [
    '/** Bodies of the server API and of webhooks. Made by scripts/support/write-wire-types.ts: do not edit. */',
    ...names.map(name => declaration(name, needed.get(name)!)),
    `/** Events of webhooks, by \`type\`. */\nexport type WebhookEvent = ${events.map(({ payload }) => nameOf(payload.$ref!)).join(' | ') || '{ readonly type: string }'}`,
    operations(openApi),
  ]
  return formatted(texts.join('\n\n'))
}

/** Adds the schema and all that it refers to. */
function collect(
  { $ref, items, oneOf = [], properties = {}, additionalProperties }: Schema,
  schemas: Readonly<Record<string, Schema>>,
  into: Map<string, Schema>,
): void {
  if ($ref !== undefined) {
    const name = nameOf($ref)
    if (into.has(name)) return
    into.set(name, schemas[name]!)
    return collect(schemas[name]!, schemas, into)
  }
  const parts = [...oneOf, ...Object.values(properties)]
  for (const part of [items, additionalProperties]) if (part !== undefined) parts.push(part)
  for (const part of parts) collect(part, schemas, into)
}

function formatted(text: string): string {
  const biome = join(ROOT, 'node_modules', '.bin', 'biome')
  return execFileSync(biome, ['format', '--stdin-file-path=wire.ts'], { cwd: ROOT, input: text }).toString()
}

/** Leaves out operations for the operator's own services, which no app asks for. */
function withoutOthers({ paths, components }: OpenApiDocument): OpenApiDocument {
  const { GetUserTokenKeysReply: _, ...schemas } = components.schemas
  const { '/.well-known/jwks.json': __, ...others } = paths
  return { paths: others, components: { ...components, schemas } }
}

/** The same of the messages that only the operator's own services get. */
function withoutWebhooks({ channels, components }: AsyncApiDocument): AsyncApiDocument {
  const webhooks = Object.values(channels).find(({ address }) => address === WEBHOOKS_ADDRESS)
  const messages = Object.fromEntries(
    Object.entries(components.messages).filter(([name]) => !(name in (webhooks?.messages ?? {}))),
  )
  const needed = new Map<string, Schema>()
  for (const { payload } of Object.values(messages)) collect(payload, components.schemas, needed)
  return { channels, components: { schemas: Object.fromEntries(needed), messages } }
}

function declaration(name: string, schema: Schema, summary = schema.description): string {
  const comment = summary === undefined ? '' : `${commentOf(summary)}\n`
  const isInterface = Object.keys(schema.properties ?? {}).length > 0
  if (!isInterface) return `${comment}export type ${name} = ${typeOf(schema)}`
  return `${comment}export interface ${name} ${typeOf(schema)}`
}

function union(
  name: string,
  comment: string,
  { channels, components }: AsyncApiDocument,
  isOne: (address: string) => boolean,
): string {
  const messages = Object.values(channels).flatMap(channel =>
    isOne(channel.address) ? Object.keys(channel.messages) : [],
  )
  const names = messages.map(message => nameOf(components.messages[message]!.payload.$ref!))
  return `${commentOf(comment)}\nexport type ${name} = ${names.join(' | ')}`
}

function operations({ paths }: OpenApiDocument): string {
  const members = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => {
      // Beside the operations stand parameters of the path.
      if (Array.isArray(operation)) return []
      const reply = replyOf(operation)
      if (reply === undefined) return []
      const name = nameOfOperation(method, path)
      const { summary, requestBody } = operation
      const body = requestBody === undefined ? 'undefined' : typeOf(jsonOf(requestBody.content)!)
      const isOptional = requestBody?.required === false
      return `${commentOf(summary)}\n'${name}': { readonly params: ${paramsOf(operation)}, readonly body: ${body}${isOptional ? ' | undefined' : ''}, readonly reply: ${reply} }`
    }),
  )
  return `/** Operations by method and path, which begins behind \`/app/api/\` or \`/server/api/v1/\` unless it is a whole one. */\nexport interface Operations {\n${members.join('\n')}\n}`
}

/** Undefined for an operation that does not answer in JSON. */
function replyOf(operation: OperationObject): string | undefined {
  const schemas = replySchemas(operation)
  if (schemas === undefined) return undefined
  const replies = schemas.map(schema => (schema === 'none' ? 'undefined' : typeOf(schema)))
  return [...new Set(replies)].join(' | ')
}

/** Schemas of all replies but refusals; undefined where one reply is not JSON. */
function replySchemas({ responses }: OperationObject): readonly (Schema | 'none')[] | undefined {
  const schemas: (Schema | 'none')[] = []
  for (const [status, { content }] of Object.entries(responses)) {
    if (!status.startsWith('2')) continue
    const schema = content === undefined ? 'none' : jsonOf(content)
    if (schema === undefined) return undefined
    schemas.push(schema)
  }
  return schemas
}

/** An example of each reply, for `src/app/session/reply-form.ts` to check replies by. */
function replyForms({ paths, components: { schemas } }: OpenApiDocument): string {
  const named = new Set<string>()
  const formOf = (schema: Schema): string => {
    const { $ref, items, properties, required = [], additionalProperties } = schema
    const always = constantOf(schema)
    if ($ref !== undefined) {
      const name = nameOf($ref)
      if (schemas[name]!.properties === undefined && schemas[name]!.oneOf === undefined)
        return formOf(schemas[name]!)
      named.add(name)
      return `'${name}'`
    }
    if (always !== undefined) return `'=${always}'`
    if (schema.type === 'string' || typeof schema.enum?.[0] === 'string') return `''`
    if (schema.oneOf !== undefined) return `'${schema.oneOf.map(each => nameOf(each.$ref!)).join('|')}'`
    if (schema.type === 'boolean') return 'true'
    if (schema.type === 'integer' || schema.type === 'number') return '0'
    if (items !== undefined) return `[${formOf(items)}]`
    if (schema.type !== 'object') return `'~'`
    if (properties === undefined) return `{ '*': ${formOf(additionalProperties ?? {})} }`
    const members = Object.entries(properties).map(
      ([name, member]) => `'${name}${required.includes(name) ? '' : '?'}': ${formOf(member)}`,
    )
    return `{ ${members.join(', ')} }`
  }
  const forms = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => {
      const replies = Array.isArray(operation) ? undefined : replySchemas(operation)
      if (replies === undefined || replies.every(reply => reply === 'none')) return []
      const all = [...new Set(replies.map(reply => (reply === 'none' ? `'none'` : formOf(reply))))]
      const form = all.length === 1 ? all[0] : `'${all.map(each => each.slice(1, -1)).join('|')}'`
      return `'${nameOfOperation(method, path)}': ${form},`
    }),
  )
  // Grows while it is read.
  for (const name of named) {
    const { oneOf = [], ...schema } = schemas[name]!
    for (const { $ref } of oneOf) named.add(nameOf($ref!))
    const form = oneOf.length > 0 ? `'${oneOf.map(({ $ref }) => nameOf($ref!)).join('|')}'` : formOf(schema)
    forms.push(`${name}: ${form},`)
  }
  return `/** Examples of replies, by operation and by name. An operation that is not among them answers without a body. */\nexport const REPLY_FORMS: Readonly<Record<string, unknown>> = {\n${forms.join('\n')}\n}`
}

function nameOfOperation(method: string, path: string): string {
  return `${method.toUpperCase()} ${path.replace(/^\/app\/api\/|^\/server\/api\/v1\//, '')}`
}

function jsonOf(content: Content): Schema | undefined {
  return content['application/json']?.schema
}

function paramsOf({ parameters = [] }: OperationObject): string {
  const own = parameters.filter(each => each.in === 'path' || each.in === 'query')
  if (own.length === 0) return 'object'
  const members = own.map(each => {
    // Lists are written with commas.
    const type = each.schema.type === 'array' ? 'string' : typeOf(each.schema)
    return `readonly ${each.name}${each.required ? '' : '?'}: ${type}`
  })
  return `{ ${members.join('; ')} }`
}

function typeOf(schema: Schema): string {
  if (schema.$ref !== undefined) return nameOf(schema.$ref)
  const always = constantOf(schema)
  if (always !== undefined) return JSON.stringify(always)
  if (schema.enum !== undefined) return schema.enum.map(text => JSON.stringify(text)).join(' | ')
  if (schema.oneOf !== undefined) return schema.oneOf.map(typeOf).join(' | ')
  switch (schema.type) {
    case 'string':
    case 'boolean':
      return schema.type
    case 'integer':
    case 'number':
      return 'number'
    case 'array':
      return `readonly (${typeOf(schema.items!)})[]`
    case 'object':
      return objectOf(schema)
    default:
      return 'unknown'
  }
}

function objectOf({ properties, required = [], additionalProperties }: Schema): string {
  if (properties === undefined) return `Readonly<Record<string, ${typeOf(additionalProperties ?? {})}>>`
  if (Object.keys(properties).length === 0) return 'object'
  const members = Object.entries(properties).map(([name, schema]) => {
    const { description } = schema
    const isSaid = description === undefined || schema.$ref !== undefined || constantOf(schema) !== undefined
    const comment = isSaid ? '' : `${commentOf(description)}\n`
    return `${comment}readonly ${name}${required.includes(name) ? '' : '?'}: ${typeOf(schema)}`
  })
  return `{\n${members.join('\n')}\n}`
}

function constantOf(schema: Schema): string | number | boolean | undefined {
  return schema.const ?? schema['x-const']
}

function commentOf(sentence: string): string {
  const text = sentence.charAt(0).toUpperCase() + sentence.slice(1)
  return `/** ${/[.!?`]$/.test(text) ? text : `${text}.`} */`
}

/** The names are all that a reader of JSON goes by: none may stand for an id here and for a number there. */
function idMembers(schemas: readonly Schema[]): string {
  const [ids, numbers] = [new Set<string>(), new Set<string>()]
  const visit = (schema: Schema, name?: string): void => {
    const { type, format, items, oneOf = [], properties = {}, additionalProperties } = schema
    if (name !== undefined && format === 'uint64') ids.add(name)
    else if (name !== undefined && (type === 'integer' || type === 'number')) numbers.add(name)
    if (items !== undefined) visit(items, name)
    if (additionalProperties !== undefined) visit(additionalProperties)
    for (const choice of oneOf) visit(choice, name)
    for (const [member, form] of Object.entries(properties)) visit(form, member)
  }
  for (const schema of schemas) visit(schema)
  const both = [...ids].filter(name => numbers.has(name))
  if (both.length > 0) throw new Error(`ids in one schema, numbers in another: ${both.join(', ')}`)
  const names = [...ids].sort().map(name => `'${name}'`)
  return `/** Members that are ids, or lists of ids. */\nexport const ID_MEMBERS: ReadonlySet<string> = new Set([${names.join(', ')}])`
}

/** The channel that stands for the operator's webhooks. */
const WEBHOOKS_ADDRESS = 'webhooks'

/** The component that a reference names. */
function nameOf(reference: string): string {
  return reference.split('/').at(-1)!
}
