/** How the page of events reads an AsyncAPI document: references, traits, and schemas as rows. */

import t from 'tap'
import { asyncApiDocument } from '../../src/api/documents/asyncapi.ts'
import { readEventsDocument } from '../../web/events/document.ts'
import { isShown, matching } from '../../web/events/filter.ts'
import { type MemberRow, memberRows } from '../../web/events/schema-rows.ts'

const source = JSON.parse(
  JSON.stringify(asyncApiDocument({ version: '1.2.3', serverUrl: 'https://x.example' })),
)
const document = readEventsDocument(source)

function row(rows: readonly MemberRow[], name: string): MemberRow {
  return rows.find(each => each.name === name)!
}

t.test('the document of the server is read whole', async t => {
  t.match(document, {
    title: 'Callsign over STOMP',
    version: '1.2.3',
    servers: [{ url: 'wss://x.example/ws' }],
  })
  t.same(
    document.channels.map(({ action }) => action),
    [...Array(6).fill('send'), ...Array(5).fill('receive')],
  )
  const messages = document.channels.flatMap(channel => channel.messages)
  t.equal(messages.length, Object.keys(source.components.messages).length)
  for (const { id, summary, headers, examples } of messages) {
    t.ok(summary.length > 5 && headers !== undefined && examples.length === 1, id)
  }
  for (const { id, description } of document.channels)
    t.match(description, /^The server posts| may (?:SUBSCRIBE|SEND)/, id)
})

t.test('what is described where it stands is shown so, with all of its members', async t => {
  const messages = document.channels.flatMap(channel => channel.messages)
  const rows = memberRows(messages.find(({ name }) => name === 'error')!.payload)
  t.match(row(rows, 'challenge').description, /ACCOUNT_EXISTS/)
  t.equal(row(rows, 'challengeId').depth, 2)
})

t.test('references that lead out of the document, nowhere, or in a circle are refused', async t => {
  const withChannel = (reference: string) => ({ ...source, channels: { a: { $ref: reference } } })
  t.throws(() => readEventsDocument(withChannel('https://elsewhere/x.json')), /out of the document/)
  t.throws(() => readEventsDocument(withChannel('#/components/nothing')), /nowhere/)
  t.throws(() => readEventsDocument(withChannel('#/channels/a')), /to itself/)
})

t.test('a schema is shown with types, values, bounds, and what is nested', async t => {
  const rows = memberRows({
    type: 'object',
    required: ['id'],
    properties: {
      id: { type: 'string', format: 'uint64', pattern: '^[0-9]+$' },
      kind: {
        anyOf: [
          { type: 'string', const: 'a' },
          { type: 'string', const: 'b' },
        ],
      },
      size: { type: 'integer', minimum: 1, maximum: 9 },
      keys: { type: 'object', patternProperties: { '^.*$': { type: 'string', maxLength: 3 } } },
      people: { type: 'array', items: { type: 'object', properties: { name: { type: 'string' } } } },
    },
  })
  t.match(row(rows, 'id'), { isRequired: true, type: 'string, uint64', bounds: [], depth: 0 })
  t.match(row(rows, 'kind'), { isRequired: false, type: 'string', values: ['"a"', '"b"'] })
  t.same(row(rows, 'size').bounds, ['1 to 9'])
  t.equal(row(rows, 'keys').type, 'map of strings')
  t.equal(row(rows, 'people').type, 'list of objects')
  t.match(row(rows, 'name'), { depth: 1, type: 'string' })
})

t.test('the filter wants every word, in any of the texts', async t => {
  const idsOf = (filter: string) =>
    matching(document.channels, filter).flatMap(({ messages }) => messages.map(({ id }) => id))
  t.equal(idsOf('').length, 60)
  t.same(idsOf('hangup'), ['calls/call_ended', 'webhooks/call.ended'])
  t.same(idsOf('BADGE total'), [
    'calls/call_cancelled',
    'calls/call_missed',
    'account/profile_changed',
    'account/badge',
  ])
  t.ok(isShown(document.channels, 'badge', 'account/badge'))
  t.notOk(isShown(document.channels, 'badge', 'keys/keys'))
})
