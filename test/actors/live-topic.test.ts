/** A live topic by itself: its owner may take up other messages between two chunks. */

import t from 'tap'
import { LiveTopic } from '../../actors/live-topic.ts'
import type { StompSessionMessage } from '../../actors/stomp-session/world.ts'
import { FAN_OUT_CHUNK } from '../../src/limits.ts'
import { Broadcast } from '../../src/stomp/broadcast.ts'
import { kindOf, makeStage } from '../support/actors.ts'

function makeTopic() {
  const { system, world } = makeStage()
  const told: string[] = []
  const session = system.define(
    kindOf<StompSessionMessage>((message, _context, id) => {
      if (message.kind === 'topic-message') told.push(`${id} ${message.broadcast.messageId}`)
    }),
  )
  return { topic: new LiveTopic('x'), told, session, world }
}

function broadcast(messageId: string): Broadcast {
  return new Broadcast(messageId, [], new Uint8Array(0))
}

t.test('whoever comes while a broadcast is on its way gets what is published afterwards', async t => {
  const { topic, told, session, world } = makeTopic()
  for (let at = 0; at < FAN_OUT_CHUNK + 10; at++) topic.subscribe(session(`s${at}`), 1)
  t.notOk(topic.publish(broadcast('1')))
  t.notOk(topic.publish(broadcast('2')))
  topic.subscribe(session('late'), 1)
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
  t.same(heardBy('s0'), ['1'], 'whoever leaves hears no more than was told already')
})

t.test('a session that is dropped is told nothing, however many subscriptions it had', async t => {
  const { topic, told, session, world } = makeTopic()
  topic.subscribe(session('a'), 1)
  topic.subscribe(session('a'), 2)
  t.equal(topic.sessions, 1)
  topic.drop('a')
  topic.unsubscribe('a')
  t.ok(topic.publish(broadcast('1')))
  world.run()
  t.same(told, [])
  t.equal(topic.sessions, 0)
})
