import t from 'tap'
import type { Ref } from '../../src/runtime/actor.ts'
import { kindOf, makeStage } from '../support/actors.ts'

type Numbered = { readonly kind: 'numbered'; readonly from: string; readonly n: number }

const numbered = (from: string, n: number): Numbered => ({ kind: 'numbered', from, n })

t.test('a message is handled in a microtask after the callback that told it, not within tell', async t => {
  const { world, system } = makeStage()
  const seen: number[] = []
  const probe = system.define(kindOf<Numbered>(({ n }) => seen.push(n)))
  probe('a').tell(numbered('test', 1))
  probe('b').tell(numbered('test', 2))
  t.same(seen, [])
  t.equal(world.microtasksWaiting, 1, 'one drain for the whole callback')
  world.runMicrotasks()
  t.same(seen, [1, 2])
  t.ok(world.isIdle)
})

t.test('an actor handles one message to the end before the next, and before anyone else runs', async t => {
  const { world, system } = makeStage()
  const events: string[] = []
  const probe: (id: string) => Ref<string> = system.define(
    kindOf<string>((message, context, id) => {
      events.push(`${id} begins ${message}`)
      if (message === 'go') {
        context.self.tell('to self')
        probe('other').tell('to other')
      }
      events.push(`${id} ends ${message}`)
    }),
  )
  probe('one').tell('go')
  probe('one').tell('second')
  world.run()
  t.same(events, [
    'one begins go',
    'one ends go',
    'one begins second',
    'one ends second',
    'one begins to self',
    'one ends to self',
    'other begins to other',
    'other ends to other',
  ])
})

t.test('messages of one sender arrive in the order they were told', async t => {
  const { world, system } = makeStage()
  const lastFrom = new Map<string, number>()
  let misplaced = 0
  const receiver = system.define(
    kindOf<Numbered>(
      ({ from, n }) => {
        if (n !== (lastFrom.get(from) ?? -1) + 1) misplaced += 1
        lastFrom.set(from, n)
      },
      { kind: 'receiver', mailboxMessagesMax: 10_000 },
    ),
  )
  const sender = system.define(
    kindOf<number>((n, context, id) => {
      receiver('r').tell(numbered(id, n))
      if (n < 99) context.self.tell(n + 1)
    }),
  )
  for (const id of ['s1', 's2', 's3', 's4']) sender(id).tell(0)
  world.run()
  t.equal(misplaced, 0)
  t.same([...lastFrom.values()], [99, 99, 99, 99])
})

t.test('a full mailbox refuses aloud and counts it, and takes again when there is room', async t => {
  const { world, system } = makeStage()
  const seen: number[] = []
  const probe = system.define(kindOf<Numbered>(({ n }) => seen.push(n), { mailboxMessagesMax: 2 }))
  const results = [1, 2, 3, 4].map(n => probe('a').tell(numbered('test', n)))
  t.same(results, ['accepted', 'accepted', 'overloaded', 'overloaded'])
  const { deadLetters, deadLetterSample } = system.figures()
  t.equal(deadLetters.overloaded, 2)
  t.match(deadLetterSample, [
    { reason: 'overloaded', kind: 'probe', id: 'a', messageKind: 'numbered' },
    { reason: 'overloaded' },
  ])
  world.run()
  t.equal(probe('a').tell(numbered('test', 5)), 'accepted')
  world.run()
  t.same(seen, [1, 2, 5])
})

t.test('a full mailbox takes the substitute message, ahead of waiting ones', async t => {
  const { world, system } = makeStage()
  const seen: number[] = []
  const probe = system.define(kindOf<Numbered>(({ n }) => seen.push(n), { mailboxMessagesMax: 2 }))
  for (const n of [1, 2, 3]) probe('a').tellOr(numbered('test', n), numbered('test', -n))
  world.run()
  t.same(seen, [-3, 1, 2])
})

t.test('a control message overtakes user messages and is never refused', async t => {
  const { world, system } = makeStage()
  const seen: string[] = []
  const probe = system.define(kindOf<string>(message => seen.push(message), { mailboxMessagesMax: 2 }))
  for (const message of ['user 1', 'user 2', 'user 3']) probe('a').tell(message)
  for (const message of ['stop 1', 'stop 2', 'stop 3']) probe('a').tellControl(message)
  world.run()
  t.same(seen, ['stop 1', 'stop 2', 'stop 3', 'user 1', 'user 2'])
})

t.test('a long mailbox lets other actors run after 32 messages', async t => {
  const { world, system } = makeStage()
  const order: string[] = []
  const probe = system.define(kindOf<number>((_n, _context, id) => order.push(id)))
  for (let n = 0; n < 70; n++) probe('long').tell(n)
  probe('short').tell(0)
  world.run()
  t.equal(order.indexOf('short'), 32)
  t.equal(order.length, 71)
})

t.test('a drain yields to the sockets after two milliseconds and goes on in an immediate', async t => {
  const { world, system } = makeStage()
  let handled = 0
  const probe = system.define(
    kindOf<number>(() => {
      handled += 1
    }),
  )
  for (let i = 0; i < 10; i++) probe(`a${i}`).tell(i)
  world.readingCostMs = 1
  world.runMicrotasks()
  t.equal(handled, 2, 'the clock is read after each visit')
  t.equal(world.immediatesWaiting, 1)
  t.ok(system.figures().runQueueHeadAgeMs > 0)
  t.equal(system.figures().runQueueLength, 8)

  probe('late').tell(0)
  t.equal(world.microtasksWaiting, 0, 'a drain is under way already')
  world.run()
  t.equal(handled, 11)
})

t.test('the clock is read once for a visit of many messages', async t => {
  const { world, system } = makeStage()
  const probe = system.define(kindOf<number>(() => {}))
  for (let n = 0; n < 320; n++) probe('a').tell(n)
  const before = world.readings
  world.run()
  t.ok(world.readings - before <= 12, `${world.readings - before} readings for 320 messages`)
})

t.test('a message to an undefined kind is a dead letter', async t => {
  const { system } = makeStage()
  t.equal(system.ref('nobody', 'x').tell({ kind: 'hello' }), 'overloaded')
  system.ref('nobody', 'x').tellControl({ kind: 'hello' })
  t.equal(system.figures().deadLetters['unknown-kind'], 2)
  t.match(system.figures().deadLetterSample[0], { kind: 'nobody', id: 'x', messageKind: 'hello' })
})

t.test('a kind is defined once', async t => {
  const { system } = makeStage()
  system.define(kindOf(() => {}))
  t.throws(() => system.define(kindOf(() => {})), /defined twice/)
})

t.test('an id that the kind does not know takes no memory and loses its messages aloud', async t => {
  const { world, system } = makeStage()
  const probe = system.define({ ...kindOf<string>(() => {}), create: () => undefined })
  probe('nobody').tell('one')
  probe('nobody').tell('two')
  world.run()
  t.equal(system.figures().deadLetters.absent, 2)
  t.equal(system.figures().liveActors, 0)
})

t.test('live actors are bounded for user messages, and a known one still takes them', async t => {
  const { world, system } = makeStage({ liveActorsMax: 2 })
  const probe = system.define(kindOf<number>(() => {}))
  t.same(
    ['a', 'b', 'c', 'a'].map(id => probe(id).tell(1)),
    ['accepted', 'accepted', 'overloaded', 'accepted'],
  )
  probe('d').tellControl(1)
  world.run()
  t.equal(system.figures().deadLetters['too-many-actors'], 1)
  t.equal(system.figures().liveActors, 3)
})

t.test('the sample of dead letters holds the latest and stays small', async t => {
  const { system } = makeStage()
  for (let n = 0; n < 1_000; n++) system.ref('nobody', `${n}`).tell({ kind: 'lost' })
  const { deadLetterSample, deadLetters } = system.figures()
  t.equal(deadLetters['unknown-kind'], 1_000)
  t.same(
    deadLetterSample.map(({ id }) => Number(id)),
    Array.from({ length: 32 }, (_, i) => 968 + i),
  )
})

t.test('figures count turns, live actors, deepest mailbox and handling time by kind', async t => {
  const { world, system } = makeStage()
  const probe = system.define(
    kindOf<number>(() => {
      world.monotonicMs()
    }),
  )
  system.define(kindOf<number>(() => {}, { kind: 'unused' }))
  for (let n = 0; n < 5; n++) probe('a').tell(n)
  probe('b').tell(0)
  world.readingCostMs = 0.25
  world.run()
  const { kinds, liveActors } = system.figures()
  t.equal(liveActors, 2)
  t.match(kinds.probe, { turns: 6, live: 2, mailboxDepthMax: 5, restarts: 0 })
  t.match(kinds.probe, { handlingMs: 2, visitMsMax: 1.5 })
  t.match(kinds.unused, { turns: 0, live: 0, mailboxDepthMax: 0 })
})
