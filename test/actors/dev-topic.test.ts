/** Topics: receivers, order, and how many sessions a turn serves. */

import t from 'tap'
import { devTopicKind } from '../../actors/dev-topic.ts'
import type { DevTopicMessage, StompConnectionMessage } from '../../actors/messages.ts'
import { FAN_OUT_CHUNK } from '../../src/limits.ts'
import { SubscriptionHead } from '../../src/stomp/serializer.ts'
import { kindOf, makeStage } from '../support/actors.ts'

const HEAD = new SubscriptionHead('1.2', 's', '/topic/dev.t', false)

function makeTopic(options: { mailboxMessagesMax?: number } = {}) {
  const stage = makeStage()
  const told: string[] = []
  const connections = stage.system.define(
    kindOf<StompConnectionMessage>((message, _context, id) => void told.push(`${id} ${said(message)}`), {
      kind: 'stomp-connection',
      ...options,
    }),
  )
  const topic = stage.system.define(devTopicKind())('dev.t')
  const tell = (...messages: DevTopicMessage[]) => {
    for (const message of messages) topic.tell(message)
    stage.world.run()
  }
  const subscribe = (id: string, tag = 1): DevTopicMessage => ({
    kind: 'subscribe',
    subscriber: connections(id),
    tag,
  })
  return { ...stage, told, tell, topic, subscribe }
}

function publish(body: string): DevTopicMessage {
  return { kind: 'publish', headers: [], body: Buffer.from(body) }
}

function said(message: StompConnectionMessage): string {
  if (message.kind === 'topic-joined') return `joined ${message.tag}`
  if (message.kind !== 'topic-message') return message.kind
  return `${message.topic} ${message.broadcast.encode(HEAD).toString().split('\n\n')[1]?.slice(0, -1)}`
}

t.test('subscribers receive later messages in order, until they leave', async t => {
  const { told, tell, subscribe } = makeTopic()
  tell(publish('0'), subscribe('a', 5), publish('1'), subscribe('b'), publish('2'))
  tell({ kind: 'unsubscribe', connectionId: 'a' }, publish('3'))
  t.same(
    told.filter(line => line.startsWith('a')),
    ['a joined 5', 'a dev.t 1', 'a dev.t 2'],
  )
  t.same(
    told.filter(line => line.startsWith('b')),
    ['b joined 1', 'b dev.t 2', 'b dev.t 3'],
  )
})

t.test('a session with two subscriptions receives a message once, until it has none', async t => {
  const { told, tell, subscribe } = makeTopic()
  tell(subscribe('a', 1), subscribe('a', 2), publish('1'))
  tell({ kind: 'unsubscribe', connectionId: 'a' }, publish('2'))
  tell({ kind: 'unsubscribe', connectionId: 'a' }, { kind: 'unsubscribe', connectionId: 'a' }, publish('3'))
  t.same(told, ['a joined 1', 'a joined 2', 'a dev.t 1', 'a dev.t 2'])
})

t.test('many receivers are served some at a time, and each in order', async t => {
  const { told, tell, subscribe, topic, world } = makeTopic()
  const many = 2 * FAN_OUT_CHUNK + 200
  tell(...Array.from({ length: many }, (_, at) => subscribe(`s${at}`)))
  told.length = 0
  topic.tell(publish('1'))
  topic.tell(publish('2'))
  topic.tell(subscribe('late'))
  topic.tell(publish('3'))
  world.run()
  const late = told.filter(line => line.startsWith('late'))
  t.same(late, ['late joined 1', 'late dev.t 3'], 'what was published before it came is not for it')
  const rest = told.filter(line => !line.startsWith('late'))
  t.equal(rest.length, 3 * many)
  const out = Array.from({ length: many }, (_, at) => at).filter(
    at =>
      rest.filter(line => line.startsWith(`s${at} `)).join() !==
      `s${at} dev.t 1,s${at} dev.t 2,s${at} dev.t 3`,
  )
  t.same(out, [])
})

t.test('a chunk is no more than it says', async t => {
  const { told, subscribe, topic, world, tell } = makeTopic()
  tell(...Array.from({ length: FAN_OUT_CHUNK + 1 }, (_, at) => subscribe(`s${at}`)))
  const turns = () => world.microtasksWaiting + world.immediatesWaiting
  told.length = 0
  // The clock passes by more than a drain may last with each reading, so each drain makes one visit.
  world.readingCostMs = 5
  topic.tell(publish('1'))
  world.runOne()
  t.equal(told.length, 0)
  t.ok(turns() > 0)
  world.run()
  t.equal(told.length, FAN_OUT_CHUNK + 1)
})

t.test('a receiver that has no room is ended, for it would miss something', async t => {
  const { told, tell, subscribe } = makeTopic({ mailboxMessagesMax: 1 })
  tell(subscribe('a'))
  tell(publish('1'), publish('2'))
  t.ok(told.includes('a overrun'))
})

t.test('messages of two lives of a topic have ids of their own', async t => {
  const ids = new Set<string>()
  const { system, world } = makeStage()
  const connections = system.define(
    kindOf<StompConnectionMessage>(message => {
      if (message.kind === 'topic-message') ids.add(message.broadcast.messageId)
    }),
  )
  const topic = system.define(devTopicKind())('dev.t')
  for (let life = 0; life < 2; life++) {
    topic.tell({ kind: 'subscribe', subscriber: connections('a'), tag: 1 })
    topic.tell(publish('x'))
    topic.tell({ kind: 'unsubscribe', connectionId: 'a' })
    world.run()
    world.advance(70_000)
    t.equal(system.figures().kinds['dev-topic']?.live, 0, 'without subscribers it is let go')
  }
  t.equal(ids.size, 2)
  for (const id of ids) t.match(id, /^[\w-]+$/)
})

t.test('a topic with subscribers is not let go', async t => {
  const { told, tell, subscribe, world } = makeTopic()
  tell(subscribe('a'))
  world.advance(200_000)
  tell(publish('1'))
  t.same(told, ['a joined 1', 'a dev.t 1'])
})
