/**
 * The AsyncAPI 3.0 document of messages over STOMP, as seen by the server: it sends to queues and topics, and receives
 * what devices send to `/app`. Bodies have the schemas that write and check them, in the forms of the OpenAPI document.
 */

import Type from 'typebox'
import type { HttpRoute } from '../../transport/route.ts'
import { type Channel, channels, LIVE_IN_QUEUES } from './asyncapi-channels.ts'
import { exampleOf } from './asyncapi-examples.ts'
import { summaryOf } from './asyncapi-summaries.ts'
import { documentRoute } from './document-route.ts'
import { DocumentSchemas } from './document-schemas.ts'
import { type OpenApiDeps, PROBLEM } from './openapi.ts'

type Served = Pick<OpenApiDeps, 'version' | 'serverUrl'>

/** The document, as a value that `JSON.stringify` writes. */
export function asyncApiDocument({ version, serverUrl }: Served): object {
  const schemas = new DocumentSchemas({ isForEvents: true })
  const all = channels(Type.Unsafe<unknown>(schemas.refer('Problem', PROBLEM)))
  const messages = Object.fromEntries(all.flatMap(channel => messagesOf(channel, schemas)))
  return {
    asyncapi: '3.0.0',
    info: { ...INFO, version },
    defaultContentType: 'application/json',
    servers: { stomp: server(new URL(serverUrl)) },
    channels: Object.fromEntries(all.map(channel => [channel.id, channelObject(channel)])),
    operations: Object.fromEntries(all.map(operationEntry)),
    components: {
      schemas: schemas.usedBy(messages),
      messages,
      messageTraits: TRAITS,
      parameters: { callId: { description: 'The id of the call, decimal' } },
      securitySchemes: {
        session: {
          type: 'http',
          scheme: 'bearer',
          description: 'The access token of a session that is bound to a device, in a header of CONNECT',
        },
      },
    },
  }
}

/** `GET /asyncapi.json`. */
export function asyncApiRoute(served: () => Served): HttpRoute {
  return documentRoute('/asyncapi.json', () => asyncApiDocument(served()))
}

function server({ protocol, host, pathname }: URL): object {
  return {
    host,
    pathname: `${pathname.replace(/\/$/, '')}/ws`,
    protocol: protocol === 'https:' ? 'wss' : 'ws',
    description:
      'STOMP 1.2, 1.1 or 1.0 (sub-protocols `v12.stomp`, `v11.stomp`, `v10.stomp`), without SockJS. Also at `/stomp`, ' +
      '`/app/ws` and `/ws/websocket`. CONNECT carries `Authorization: Bearer <access token>` or the token as `passcode`',
    security: [{ $ref: '#/components/securitySchemes/session' }],
  }
}

function channelObject({ address, summary, description, messages }: Channel): object {
  const names = Object.keys(messages)
  return {
    address,
    summary,
    description,
    messages: Object.fromEntries(names.map(name => [name, { $ref: `#/components/messages/${name}` }])),
    ...(address.includes('{callId}')
      ? { parameters: { callId: { $ref: '#/components/parameters/callId' } } }
      : {}),
  }
}

function operationEntry({ id, kind, summary, messages }: Channel): [string, object] {
  const isCommand = kind === 'command'
  const name = `${isCommand ? 'receive' : 'send'}${id.charAt(0).toUpperCase()}${id.slice(1)}`
  return [
    name,
    {
      action: isCommand ? 'receive' : 'send',
      channel: { $ref: `#/channels/${id}` },
      summary,
      messages: Object.keys(messages).map(each => ({ $ref: `#/channels/${id}/messages/${each}` })),
    },
  ]
}

function messagesOf(
  { messages, kind }: Channel,
  schemas: DocumentSchemas,
): [name: string, message: object][] {
  return Object.entries(messages).map(([name, schema]) => [
    name,
    {
      name,
      summary: summaryOf(name),
      contentType: 'application/json',
      traits: [{ $ref: `#/components/messageTraits/${LIVE_IN_QUEUES.has(name) ? 'state' : kind}` }],
      payload: schemas.refer(schemaName(name, kind), schema),
      examples: [{ name, payload: exampleOf(name) }],
    },
  ])
}

/** Such as `CallEndedEvent` and `AcceptRejoinCommand`: many languages have a `Keys` or an `Error` already. */
function schemaName(message: string, kind: Channel['kind']): string {
  const words = message.split(/[_.]/).map(word => word.charAt(0).toUpperCase() + word.slice(1))
  return `${words.join('')}${SUFFIXES[kind]}`
}

const SUFFIXES: Readonly<Record<Channel['kind'], string>> = {
  queue: 'Event',
  topic: 'Event',
  command: 'Command',
  webhook: 'Webhook',
}

const INFO = {
  title: 'Callsign over STOMP',
  description: [
    'What the server sends to devices and takes from them. Told from the side of the server: `send` is what a device',
    'gets on a SUBSCRIBE, `receive` is what it may SEND. Ids are 64-bit unsigned integers: decimal strings in what the',
    'server sends, strings or integers in what it takes. Absent and null mean the same; members and messages may be',
    'added, so ignore those that you do not know. `eventId` names an event, in its push too: show it once.',
  ].join(' '),
  license: { name: 'Apache 2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
}

function text(description: string): object {
  return { type: 'string', description }
}

/** Headers that matter to a client beside those of STOMP itself. */
const TRAITS = {
  queue: {
    headers: {
      type: 'object',
      required: ['message-id', 'type', 'timestamp', 'expires'],
      properties: {
        'message-id': text(
          '`<epoch>-<offset>`: the place in the inbox of the device, for ACK and for `since`',
        ),
        type: text('As in the body'),
        timestamp: text('`sentAt` of the body'),
        expires: text('Milliseconds since 1970 after which the message is not delivered any more'),
        redelivered: text('`true` when a connection before this one was given it'),
      },
    },
  },
  state: {
    headers: {
      type: 'object',
      required: ['message-id', 'type', 'timestamp'],
      properties: {
        'message-id': text(
          '`<epoch>-<offset>-<eventId>`: the place of the kept message before it, for `since`; an ACK is not needed',
        ),
        type: text('As in the body'),
        timestamp: text('`sentAt` of the body'),
      },
    },
  },
  topic: {
    headers: {
      type: 'object',
      required: ['message-id', 'type', 'timestamp'],
      properties: {
        'message-id': text('The `eventId`'),
        type: text('As in the body'),
        timestamp: text('`sentAt` of the body'),
      },
    },
  },
  webhook: {
    headers: {
      type: 'object',
      required: ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
      properties: {
        'webhook-id': text('Names the event; the same at each try'),
        'webhook-timestamp': text('Of this try, in seconds since 1970'),
        'webhook-signature': text(
          '`v1,` and base64 of HMAC-SHA256 over id, time and body with points between; two while the secret changes',
        ),
      },
    },
  },
  command: {
    headers: {
      type: 'object',
      properties: {
        receipt: text('Is answered once what was sent is carried out and durable; a refusal gets no RECEIPT'),
        transaction: text('Carried out at the COMMIT'),
      },
    },
  },
}
