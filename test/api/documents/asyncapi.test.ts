/** The AsyncAPI document: that all that is said over STOMP is in it, truly, and that it is well formed. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { TSchema } from 'typebox'
import { Compile } from 'typebox/schema'
import { asyncApiDocument, asyncApiRoute } from '../../../src/api/documents/asyncapi.ts'
import { queueOfNotice } from '../../../src/domain/messages/inbox.ts'
import type { Notice } from '../../../src/domain/messages/notice.ts'
import { parseCallCommand } from '../../../src/schema/call-request.ts'
import { EVENTS } from '../../../src/schema/event.ts'
import { WEBHOOKS } from '../../../src/schema/webhook.ts'
import { type CallCommandName, parseDestination } from '../../../src/stomp/destination.ts'
import { HttpServer } from '../../../src/transport/http.ts'
import { runProgram } from '../../support/programs.ts'
import { PROJECT_ROOT } from '../../support/vectors.ts'

const PARTS = { version: '1.2.3', serverUrl: 'https://call.example.org' }

interface DocumentMessage {
  readonly name: string
  readonly payload: { readonly $ref: string }
  readonly examples: readonly [{ readonly payload: { readonly type?: string } }]
}

interface DocumentChannel {
  readonly address: string
  readonly parameters?: object
  readonly messages: Readonly<Record<string, { readonly $ref: string }>>
}

// biome-ignore lint/suspicious/noExplicitAny: a document of any form
function documentOf(parts = PARTS): any {
  return JSON.parse(JSON.stringify(asyncApiDocument(parts)))
}

const document = documentOf()
const channels: Readonly<Record<string, DocumentChannel>> = document.channels
const messages: Readonly<Record<string, DocumentMessage>> = document.components.messages

/** The schema of a message, with those that it refers to. */
function schemaOf({ payload }: DocumentMessage): TSchema {
  const { components } = document
  return { ...components.schemas[payload.$ref.split('/').at(-1)!], components }
}

function namesIn(id: string): string[] {
  return Object.keys(channels[id]!.messages)
}

const DEVICE_CHANNELS = ['calls', 'contacts', 'account', 'callTopic']

t.test('every message to devices is in one place of the document', async t => {
  const told = DEVICE_CHANNELS.flatMap(namesIn)
  t.same(told.sort(), Object.keys(EVENTS).sort())
  for (const queue of ['calls', 'contacts', 'account']) {
    const kinds = namesIn(queue) as Notice['kind'][]
    t.ok(kinds.length > 2)
    t.ok(
      kinds.every(kind => queueOfNotice(kind) === queue),
      queue,
    )
  }
  t.same(namesIn('errors'), ['error'])
  t.same(namesIn('webhooks'), Object.keys(WEBHOOKS))
})

t.test('every destination is one that a session knows, and means what the document says', async t => {
  const reader = { userId: '7', hasTestTopics: false }
  const stomp = Object.entries(channels).filter(([id]) => id !== 'webhooks')
  const kinds = stomp.map(([id, { address, parameters }]) => {
    t.equal(address.includes('{callId}'), parameters !== undefined, id)
    const destination = parseDestination(address.replace('{callId}', '42'), reader)
    if (typeof destination === 'string') return `${id}: ${destination}`
    return destination.kind === 'call-command' ? destination.command : destination.kind
  })
  const commands = ['ringing', 'decline', 'leave', 'accept-rejoin', 'keys']
  t.same(kinds, ['queue', 'queue', 'queue', 'errors', 'call-topic', ...commands])
  t.same(
    Object.values(document.operations).map(operation => (operation as { action: string }).action),
    [...Array(6).fill('send'), ...Array(5).fill('receive')],
    'as the server sees it',
  )
})

t.test('every example is of the form that its message has', async t => {
  t.ok(Object.keys(messages).length > 25)
  for (const [name, message] of Object.entries(messages)) {
    const [{ payload }] = message.examples
    t.same(Compile(schemaOf(message)).Errors(payload)[1], [], name)
    const { properties = {} } = schemaOf(message) as { readonly properties?: object }
    t.same(
      Object.keys(payload).filter(member => !(member in properties)),
      [],
      `${name} has no member more`,
    )
    if (name in EVENTS) t.equal(payload.type, name)
  }
})

t.test(
  'generators make types of it: each body has a name, an id is a text, a choice of texts an enum',
  async t => {
    const { schemas } = document.components
    for (const { name, payload } of Object.values(messages)) {
      t.match(payload.$ref, /^#\/components\/schemas\/\w+(?:Event|Command|Webhook)$/)
      if (name in EVENTS) t.match(schemaOf(messages[name]!), { properties: { type: { const: name } } })
    }
    const used = new Set(JSON.stringify(document).match(/(?<=#\/components\/schemas\/)\w+/g))
    t.same(Object.keys(schemas).sort(), [...used].sort(), 'none is missing, none is of HTTP alone')
    for (const [name, { title }] of Object.entries<{ title: string }>(schemas)) t.equal(title, name)
    const { v, type, sentAt, endReason } = schemas.CallEndedEvent.properties
    t.match(
      { v, type, sentAt },
      { v: { type: 'integer' }, type: { const: 'call_ended' }, sentAt: { format: 'int64' } },
    )
    t.same(endReason, { $ref: '#/components/schemas/CallEndReason' })
    t.match(schemas.CallEndReason, { type: 'string', enum: ['hangup'] })
    t.match(schemas.AcceptRejoinCommand.properties.requesterUserId, { type: 'string', format: 'uint64' })
    t.match(schemas.KeysCommand.properties.encryptedAESKeys, { additionalProperties: { type: 'string' } })
    t.notMatch(JSON.stringify(schemas), /"(?:anyOf|patternProperties)":/)
  },
)

t.test('the examples of what devices send are taken by the server', async t => {
  const commands = Object.values(channels).filter(({ address }) => address.startsWith('/app/'))
  for (const { address, messages: references } of commands) {
    const command = address.split('/').at(-1) as CallCommandName
    for (const name of Object.keys(references)) {
      const [{ payload }] = messages[name]!.examples
      const said = parseCallCommand(command, Buffer.from(JSON.stringify(payload)))
      t.match(said, { kind: command }, name)
    }
  }
  t.same(parseCallCommand('leave', new Uint8Array()), { kind: 'leave' }, 'a body may be left out')
})

t.test('the document has the server’s address, whichever scheme it has', async t => {
  t.match(document.servers.stomp, { host: 'call.example.org', pathname: '/ws', protocol: 'wss' })
  const { stomp } = documentOf({ version: '1', serverUrl: 'http://127.0.0.1:8080/' }).servers
  t.match(stomp, { host: '127.0.0.1:8080', pathname: '/ws', protocol: 'ws' })
})

t.test('the document passes the linter, which finds faults', async t => {
  const passed = await lint(t, document)
  t.equal(passed.code, 0, passed.stdout + passed.stderr)
  const broken = documentOf()
  broken.operations.sendCalls.action = 'publish'
  broken.channels.calls.messages.badge = { $ref: '#/components/messages/nothing' }
  broken.channels.calls.title2 = ''
  const { code, stdout } = await lint(t, broken)
  t.equal(code, 1)
  t.match(stdout, /only: "send", "receive"/)
  t.match(stdout, /no-unresolved-refs/)
  t.match(stdout, /`title2` is not expected/)
})

/** `redocly lint` without anything of it on the network. */
function lint(t: Test, value: object) {
  const file = join(t.testdir(), 'asyncapi.json')
  writeFileSync(file, JSON.stringify(value))
  const redocly = join(PROJECT_ROOT, 'node_modules/@redocly/cli/bin/cli.js')
  const config = join(PROJECT_ROOT, 'test/support/redocly-asyncapi.yaml')
  const environment = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  const args = [redocly, 'lint', file, '--config', config, '--format', 'stylish']
  return runProgram(process.execPath, args, { environment })
}

t.test('it is served with a tag, by which it is not sent twice', async t => {
  const noted = () => undefined
  const server = new HttpServer({ routes: [asyncApiRoute(() => PARTS)], onRefused: noted, onFault: noted })
  const url = `http://127.0.0.1:${await server.listen('127.0.0.1', 0)}/asyncapi.json`
  t.teardown(() => server.close())
  const first = await fetch(url)
  t.equal(first.headers.get('content-type'), 'application/json; charset=utf-8')
  t.match(await first.json(), { asyncapi: '3.0.0', info: { version: '1.2.3' } })
  const again = await fetch(url, { headers: { 'if-none-match': first.headers.get('etag')! } })
  t.equal(again.status, 304)
})
