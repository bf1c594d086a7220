/**
 * An AsyncAPI 3.0 document as the page shows it: each channel with its messages, every `$ref` resolved, what a trait
 * adds put where it belongs. References outside the document are refused: nothing is fetched for them.
 */

export interface EventsDocument {
  readonly title: string
  readonly version: string
  readonly description: string
  readonly servers: readonly Server[]
  readonly channels: readonly Channel[]
}

export interface Server {
  readonly name: string
  readonly url: string
  readonly description: string
  /** What each of its security schemes says of itself. */
  readonly security: readonly string[]
}

export interface Channel {
  readonly id: string
  /** The STOMP destination, with `{callId}` where it names a call. */
  readonly address: string
  readonly summary: string
  readonly description: string
  /** `send`: the server sends and a device subscribes; `receive`: a device sends. */
  readonly action: 'send' | 'receive'
  readonly parameters: readonly { readonly name: string; readonly description: string }[]
  readonly messages: readonly Message[]
}

export interface Message {
  /** `<channel>/<name>`, unique on the page. */
  readonly id: string
  readonly name: string
  readonly summary: string
  readonly payload: Schema
  readonly headers?: Schema
  readonly examples: readonly unknown[]
}

/** JSON Schema, as far as the document uses it. */
export interface Schema {
  readonly type?: string
  readonly description?: string
  readonly format?: string
  readonly pattern?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly items?: Schema
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
}

type Json = Readonly<Record<string, unknown>>

/** Throws for a reference that leads nowhere, out of the document, or in a circle. */
export function readEventsDocument(source: unknown): EventsDocument {
  const root = resolved(source, source as Json) as Json
  const info = membersOf(root.info)
  const operations = Object.values(membersOf(root.operations)).map(membersOf)
  const actions = new Map(operations.map(({ channel, action }) => [membersOf(channel).address, action]))
  return {
    title: textOf(info.title),
    version: textOf(info.version),
    description: textOf(info.description),
    servers: Object.entries(membersOf(root.servers)).map(([name, each]) => serverOf(name, membersOf(each))),
    channels: Object.entries(membersOf(root.channels)).map(([id, each]) =>
      channelOf(id, membersOf(each), actions.get(membersOf(each).address) === 'receive' ? 'receive' : 'send'),
    ),
  }
}

function serverOf(name: string, server: Json): Server {
  const { protocol, host, pathname, description, security = [] } = server
  return {
    name,
    url: `${textOf(protocol)}://${textOf(host)}${textOf(pathname)}`,
    description: textOf(description),
    security: (security as readonly Json[]).map(scheme => textOf(scheme.description)),
  }
}

function channelOf(id: string, channel: Json, action: Channel['action']): Channel {
  const { address, summary, description, parameters, messages } = channel
  return {
    ...{ id, action, address: textOf(address), summary: textOf(summary), description: textOf(description) },
    parameters: Object.entries(membersOf(parameters)).map(([name, each]) => ({
      name,
      description: textOf(membersOf(each).description),
    })),
    messages: Object.entries(membersOf(messages)).map(([name, each]) => messageOf(id, name, membersOf(each))),
  }
}

/** A member of its own goes before that of a trait. */
function messageOf(channelId: string, name: string, message: Json): Message {
  const traits = (message.traits ?? []) as readonly Json[]
  const headers = [message, ...traits].map(each => each.headers as Schema | undefined).find(Boolean)
  const examples = (message.examples ?? []) as readonly Json[]
  return {
    id: `${channelId}/${name}`,
    name: textOf(message.name ?? name),
    summary: textOf(message.summary),
    payload: (message.payload ?? {}) as Schema,
    ...(headers === undefined ? {} : { headers }),
    examples: examples.map(({ payload }) => payload),
  }
}

/** A copy without references. `within` are those that are being resolved. */
function resolved(value: unknown, root: Json, within: readonly string[] = []): unknown {
  if (Array.isArray(value)) return value.map(each => resolved(each, root, within))
  if (typeof value !== 'object' || value === null) return value
  const { $ref } = value as { readonly $ref?: unknown }
  if (typeof $ref !== 'string') {
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [name, resolved(each, root, within)]),
    )
  }
  if (within.includes($ref)) throw new Error(`the reference ${$ref} leads to itself`)
  return resolved(referent($ref, root), root, [...within, $ref])
}

/** What a JSON pointer names (RFC 6901). */
function referent($ref: string, root: Json): unknown {
  if (!$ref.startsWith('#/')) throw new Error(`the reference ${$ref} leads out of the document`)
  const steps = $ref
    .slice(2)
    .split('/')
    .map(step => step.replaceAll('~1', '/').replaceAll('~0', '~'))
  const found = steps.reduce<unknown>((value, step) => membersOf(value)[step], root)
  if (found === undefined) throw new Error(`the reference ${$ref} leads nowhere`)
  return found
}

function membersOf(value: unknown): Json {
  return typeof value === 'object' && value !== null ? (value as Json) : {}
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
