/** A live topic by itself: its owner may take up other messages between two chunks. */

import t from 'tap'
import { LiveTopic } from '../../actors/live-topic.ts'
import type { StompConnectionMessage, TopicMessage } from '../../actors/messages.ts'
import { FAN_OUT_CHUNK } from '../../src/limits.ts'
import { Broadcast } from '../../src/stomp/broadcast.ts'
import { kindOf, makeStage } from '../support/actors.ts'
import { linkedNodes } from '../support/linked-nodes.ts'

function makeTopic() {
  const { system, world } = makeStage()
  const told: string[] = []
  const connection = system.define(
    kindOf<StompConnectionMessage>((message, _context, id) => {
      if (message.kind === 'topic-message') told.push(`${id} ${message.broadcast.messageId}`)
    }),
  )
  return { topic: new LiveTopic('x'), told, connection, world }
}

function broadcast(messageId: string): Broadcast {
  return new Broadcast(messageId, [], new Uint8Array(0))
}

t.test('a connection that subscribes during a broadcast gets later broadcasts only', async t => {
  const { topic, told, connection, world } = makeTopic()
  for (let at = 0; at < FAN_OUT_CHUNK + 10; at++) topic.subscribe(connection(`s${at}`), 1)
  t.notOk(topic.publish(broadcast('1')))
  t.notOk(topic.publish(broadcast('2')))
  topic.subscribe(connection('late'), 1)
  t.notOk(topic.publish(broadcast('3')))
  topic.unsubscribe('s0')
  let turns = 0
  while (!topic.tellMore()) turns++
  world.run()
  t.ok(turns >= 2)
  t.ok(topic.isQuiet)
  const heardBy = (id: string) =>
    told.filter(line => line.startsWith(`${id} `)).map(line => line.split(' ')[1])
  t.same(heardBy('late'), ['3'])
  t.same(heardBy('s1'), ['1', '2', '3'])
  t.same(heardBy(`s${FAN_OUT_CHUNK + 9}`), ['1', '2', '3'])
  t.same(heardBy('s0'), ['1'], 'a connection that left hears nothing more')
})

t.test('a dropped connection hears nothing, however many subscriptions it had', async t => {
  const { topic, told, connection, world } = makeTopic()
  topic.subscribe(connection('a'), 1)
  topic.subscribe(connection('a'), 2)
  t.equal(topic.subscriberCount, 1)
  topic.drop('a')
  topic.unsubscribe('a')
  t.ok(topic.publish(broadcast('1')))
  world.run()
  t.same(told, [])
  t.equal(topic.subscriberCount, 0)
})

t.test('a connection of a lost process is dropped and hears nothing', async t => {
  const nodes = linkedNodes()
  const { system, link } = nodes.writer
  const topic = new LiveTopic('x')
  topic.subscribe(system.remoteRef<TopicMessage>(link, 'probe', 'a'), 1)
  nodes.front.link.close()
  await nodes.settle()
  t.ok(topic.publish(broadcast('1')))
  t.notOk(topic.has('a'))
  t.equal(system.figures().deadLetters.unreachable ?? 0, 0)
})
