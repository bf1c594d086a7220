import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import type { Context, Ref, Reply } from '../../src/runtime/actor.ts'
import { kindOf, makeStage } from '../support/actors.ts'
import { Deferred } from '../support/deferred.ts'

t.test('an idle actor is passivated after its time, not before, and the next message builds it', async t => {
  const { world, system } = makeStage()
  let built = 0
  const seen: string[] = []
  const probe = system.define<string>({
    ...kindOf<string>(() => {}, { idleMs: 60_000 }),
    create() {
      built += 1
      return { receive: message => void seen.push(message) }
    },
  })
  const ref = probe('a')
  ref.tell('one')
  world.advance(59_900)
  ref.tell('two')
  world.advance(60_000)
  t.equal(system.figures().liveActors, 1)
  world.advance(300)
  t.match(system.figures(), { liveActors: 0, kinds: { probe: { passivations: 1 } } })
  t.equal(ref.tell('three'), 'accepted')
  world.run()
  t.same(seen, ['one', 'two', 'three'])
  t.equal(built, 2)
})

t.test('an actor without an idle time stays', async t => {
  const { world, system } = makeStage()
  system
    .define(kindOf<string>(() => {}))('a')
    .tell('one')
  world.advance(24 * 3_600_000)
  t.equal(system.figures().liveActors, 1)
})

t.test('an actor with something under way is not idle', async t => {
  const write = new Deferred<void>()
  const work = new Deferred<string>()
  const replies: Reply<string>[] = []
  const busy: Record<string, (context: Context<string>) => void> = {
    timer: context => context.startTimer('t', 30_000, 'done'),
    commit: context => context.commit(write, () => {}),
    outcome: context =>
      context.tellOutcome(
        work,
        () => 'done',
        () => 'failed',
      ),
    ask: () => {},
    nothing: () => {},
  }
  const { world, system } = makeStage()
  const probe = system.define(
    kindOf<string | { reply: Reply<string> }>(
      (message, context, id) => {
        if (typeof message === 'object') replies.push(message.reply)
        else if (message === 'go') busy[id]!(context)
      },
      { idleMs: 1_000 },
    ),
  )
  for (const id of Object.keys(busy)) probe(id).tell('go')
  const answer = probe('ask').ask<string>(reply => ({ reply }), 600_000)
  world.advance(20_000)
  t.equal(system.figures().liveActors, 4)
  write.resolve()
  work.resolve('')
  replies[0]!.answer('answer')
  world.advance(12_000)
  t.equal(system.figures().liveActors, 0)
  t.equal(await answer, 'answer')
})

t.test('an actor that does not agree is kept and asked again later', async t => {
  const { world, system, failures } = makeStage()
  let asked = 0
  const probe = system.define(
    kindOf<string>(() => {}, {
      idleMs: 1_000,
      canPassivate() {
        asked += 1
        if (asked === 3) throw new Error('in canPassivate')
        return false
      },
    }),
  )
  probe('a').tell('one')
  world.advance(2_500)
  t.equal(asked, 2)
  t.equal(system.figures().liveActors, 1)
  world.advance(1_500)
  t.equal(system.figures().liveActors, 0, 'one whose hook throws is better built anew')
  t.match(failures, [/in canPassivate/])
})

t.test('a message that arrives while an actor is being passivated is not lost', async t => {
  const { world, system } = makeStage()
  const seen: string[] = []
  const probe: (id: string) => Ref<string> = system.define<string>({
    kind: 'probe',
    mailboxMessagesMax: 10,
    onFailure: 'rebuild',
    idleMs: 1_000,
    create: (id, context) => ({
      receive: message => void seen.push(`${id} ${message}`),
      canPassivate() {
        if (id === 'asked' && seen.length < 4) context.self.tell('from canPassivate')
        return true
      },
      onStopped() {
        if (id === 'stopped' && seen.length < 4) probe(id).tell('from onStopped')
      },
    }),
  })
  probe('asked').tell('one')
  probe('stopped').tell('one')
  world.run()
  world.advance(1_300)
  t.same(seen.sort(), ['asked from canPassivate', 'asked one', 'stopped from onStopped', 'stopped one'])
})

t.test('a busy actor stays while idle ones of its kind go', async t => {
  const { world, system } = makeStage()
  const probe = system.define(kindOf<string>(() => {}, { idleMs: 1_000 }))
  for (let i = 0; i < 20; i++) probe(`${i}`).tell('hello')
  for (let i = 0; i < 30; i++) {
    world.advance(500)
    probe('7').tell('again')
  }
  t.equal(system.figures().liveActors, 1)
})

t.test('one tick passivates a bounded number', async t => {
  const { world, system } = makeStage()
  const probe = system.define(kindOf<string>(() => {}, { idleMs: 1_000 }))
  for (let i = 0; i < 1_000; i++) probe(`${i}`).tell('hello')
  world.run()
  world.jump(10_000)
  t.equal(system.figures().liveActors, 744)
  world.advance(1_000)
  t.equal(system.figures().liveActors, 0)
})

t.test('an idle actor costs under 200 bytes besides its own state, a passivated one nothing', async t => {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const { world, system } = makeStage()
  const shared = { receive: () => {} }
  const probe = system.define<string>({
    ...kindOf<string>(() => {}, { idleMs: 1_000 }),
    create: () => shared,
  })
  const count = 140_000
  const ids = Array.from({ length: count }, (_, i) => `user-${i}`)
  const heapBytes = () => {
    collectGarbage()
    return process.memoryUsage().heapUsed
  }
  const beforeBytes = heapBytes()
  for (const id of ids) {
    probe(id).tell('hello')
    world.run()
  }
  const idleBytes = (heapBytes() - beforeBytes) / count
  t.equal(system.figures().liveActors, count)
  t.comment(`${idleBytes.toFixed(0)} bytes per idle actor`)
  t.ok(idleBytes < 200, `${idleBytes.toFixed(0)} bytes per idle actor`)
  world.advance(120_000)
  t.equal(system.figures().liveActors, 0)
  const leftBytes = (heapBytes() - beforeBytes) / count
  t.ok(leftBytes < 60, `${leftBytes.toFixed(0)} bytes left of each`)
})
