import t from 'tap'
import type { Reply } from '../../src/runtime/actor.ts'
import { kindOf, makeStage } from '../support/actors.ts'
import { Deferred } from '../support/deferred.ts'

/** Resolves to the promise's outcome so far, or to `open`. */
async function stateOf(promise: Promise<string>): Promise<string> {
  return Promise.race([promise, new Promise<string>(resolve => setImmediate(() => resolve('open')))])
}

t.test(
  'a stopping system finishes queued messages and their consequences, then ends every actor',
  async t => {
    const { world, system } = makeStage()
    const seen: string[] = []
    const stopped: string[] = []
    const write = new Deferred<void>()
    const work = new Deferred<void>()
    const witness = system.define(kindOf<string>(message => seen.push(message), { kind: 'witness' }))
    const probe = system.define(
      kindOf<string>(
        (message, context, id) => {
          seen.push(`${id} ${message}`)
          if (message !== 'go') return
          context.commit(write, () => witness('w').tell('durable'))
          context.tellOutcome(
            work,
            () => 'outcome',
            () => 'failed',
          )
          context.startTimer('never', 3_600_000, 'timer')
        },
        { onStopped: () => stopped.push('probe') },
      ),
    )
    probe('a').tell('go')
    const stop = system.drainAndStop(60_000)
    await world.settle()
    t.equal(probe('a').tell('from outside'), 'overloaded')
    t.equal(await stateOf(stop), 'open')
    write.resolve()
    await world.settle()
    t.same(seen, ['a go', 'durable'])
    t.equal(await stateOf(stop), 'open')
    work.resolve()
    await world.settle()
    t.equal(await stateOf(stop), 'finished')
    t.same(seen, ['a go', 'durable', 'a outcome'])
    t.same(stopped, ['probe'])
    t.match(system.figures(), { liveActors: 0, timersArmed: 0, deadLetters: { stopped: 1 } })
    t.equal(world.intervalsRunning, 0)
  },
)

t.test('an idle system stops at once, and stopping twice is stopping once', async t => {
  const { world, system } = makeStage()
  system
    .define(kindOf<string>(() => {}))('a')
    .tell('hello')
  world.run()
  const stop = system.drainAndStop(60_000)
  t.equal(await stop, 'finished')
  t.equal(system.drainAndStop(1), stop)
})

t.test('a stopping system waits for an actor that is to be built again after a failure', async t => {
  const { world, system } = makeStage()
  const seen: string[] = []
  const probe = system.define(
    kindOf<string>(message => {
      seen.push(message)
      if (message === 'throw') throw new Error('broken')
    }),
  )
  probe('a').tell('throw')
  probe('a').tell('after')
  world.run()
  const stop = system.drainAndStop(60_000)
  world.advance(1_000)
  t.equal(await stop, 'finished')
  t.same(seen, ['throw', 'after'])
})

t.test('at the deadline the rest is refused and counted', async t => {
  const { world, system } = makeStage()
  const probe = system.define(
    kindOf<string | { reply: Reply<string> }>((message, context) => {
      if (message === 'go') context.commit(new Deferred<void>(), () => {})
      if (message === 'stop') {
        context.commit(new Deferred<void>(), () => {})
        context.stop()
      }
    }),
  )
  probe('a').tell('go')
  const held = probe('a').ask<string>(reply => ({ reply }), 3_600_000)
  probe('b').tell('stop')
  world.run()
  probe('b').tell('waits for an actor that never ends')
  const queued = probe('b').ask<string>(reply => ({ reply }), 3_600_000)
  const stop = system.drainAndStop(2_000)
  await t.rejects(
    probe('c').ask<string>(reply => ({ reply }), 1_000),
    { code: 'STORE_UNAVAILABLE' },
  )
  world.advance(2_200)
  t.equal(await stop, 'deadline')
  await t.rejects(held, { code: 'STORE_UNAVAILABLE' })
  await t.rejects(queued, { code: 'STORE_UNAVAILABLE' })
  t.equal(system.figures().deadLetters.stopped, 3)
  probe('a').tellControl('after the end')
  t.equal(system.figures().deadLetters.stopped, 4)
  t.equal(system.figures().asksOpen, 0)
})

t.test('an ask whose actor stopped without an answer still ends', async t => {
  const { world, system } = makeStage()
  const probe = system.define(kindOf<{ reply: Reply<string> }>((_message, context) => context.stop()))
  const answer = probe('a').ask<string>(reply => ({ reply }), 3_600_000)
  world.run()
  const stop = system.drainAndStop(1_000)
  world.advance(1_200)
  t.equal(await stop, 'deadline')
  await t.rejects(answer, { code: 'DEADLINE_EXCEEDED' })
})

t.test('what an actor sends while it ends is accepted or counted, never silent', async t => {
  const { world, system } = makeStage()
  const results: string[] = []
  const probe = system.define<string>({
    ...kindOf<string>(() => {}),
    create: (_id, context) => ({
      receive: () => {},
      onStopped: () => results.push(context.self.tell('farewell')),
    }),
  })
  probe('a').tell('hello')
  world.run()
  await system.drainAndStop(1_000)
  world.run()
  t.same(results, ['overloaded'])
  t.match(system.figures(), { liveActors: 0, deadLetters: { stopped: 1 } })
})
