import t from 'tap'
import type { Actor, Context, Reply } from '../../src/runtime/actor.ts'
import { kindOf, makeStage } from '../support/actors.ts'
import { Deferred } from '../support/deferred.ts'

/** Writes for every message but some, and notes handled messages and released effects. */
class Writer implements Actor<string> {
  readonly #context: Context<string>
  readonly #events: string[]
  readonly #writes: Deferred<void>[]

  constructor(context: Context<string>, events: string[], writes: Deferred<void>[]) {
    this.#context = context
    this.#events = events
    this.#writes = writes
    events.push('built')
  }

  receive(message: string): void {
    this.#events.push(`handled ${message}`)
    if (message === 'throw') throw new Error('broken')
    if (message === 'read') return
    const write = new Deferred<void>()
    this.#writes.push(write)
    this.#context.commit(write, () => {
      this.#events.push(`released ${message}`)
      if (message === 'bad effect') throw new Error('broken effect')
    })
  }
}

function makeWriter(onFailure: 'rebuild' | 'stop-process' = 'rebuild') {
  const stage = makeStage()
  const events: string[] = []
  const writes: Deferred<void>[] = []
  const writer = stage.system.define<string>({
    kind: 'writer',
    mailboxMessagesMax: 100,
    onFailure,
    create: (_id, context) => new Writer(context, events, writes),
  })('w')
  const tell = (...messages: string[]) => {
    for (const message of messages) writer.tell(message)
    stage.world.run()
  }
  /** Events since the last call. */
  const news = () => events.splice(0)
  return { ...stage, writer, writes, tell, news }
}

t.test('effects wait until the write is durable, and the actor goes on', async t => {
  const { world, system, writes, tell, news } = makeWriter()
  tell('one', 'read')
  t.same(news(), ['built', 'handled one', 'handled read'])
  t.equal(system.figures().commitsUnderWay, 1)
  writes[0]!.resolve()
  t.same(news(), [], 'released in a turn, not in the callback of the store')
  world.run()
  t.same(news(), ['released one'])
  t.equal(system.figures().commitsUnderWay, 0)
})

t.test('effects are released in the order of the commits, whichever is durable first', async t => {
  const { world, writes, tell, news } = makeWriter()
  tell('one', 'two', 'three')
  news()
  writes[2]!.resolve()
  writes[1]!.resolve()
  world.run()
  t.same(news(), [])
  writes[0]!.resolve()
  world.run()
  t.same(news(), ['released one', 'released two', 'released three'])
})

t.test('a real promise is waited for as well', async t => {
  const { world, system } = makeStage()
  const released: string[] = []
  const probe = system.define(
    kindOf<Promise<void>>((write, context) => context.commit(write, () => released.push('effects'))),
  )
  probe('a').tell(Promise.resolve())
  await world.settle()
  t.same(released, ['effects'])
})

t.test('a rejected commit discards its effects and later ones, and the actor is built anew', async t => {
  const { world, system, writes, tell, news, failures } = makeWriter()
  tell('one', 'two', 'three')
  news()
  writes[0]!.resolve()
  writes[1]!.reject(new Error('disk full'))
  writes[2]!.resolve()
  world.run()
  t.same(news(), ['released one'])
  world.advance(200)
  t.same(news(), ['built'], 'three was under way, so the actor is owed')
  tell('four')
  t.same(news(), ['handled four'])
  writes[3]!.resolve()
  world.run()
  t.same(news(), ['released four'])
  t.match(system.figures().kinds.writer, { commitFailures: 1, restarts: 0 })
  t.same(failures, ['writer/w: Error: disk full'])
})

t.test('an actor that writes as soon as it is built does not try again as fast as it is refused', async t => {
  const { world, system } = makeStage()
  let built = 0
  const probe = system.define<string>({
    ...kindOf<string>(() => {}),
    create(_id, context) {
      built += 1
      context.startTimer('t', 60_000, 'timer')
      context.commit(Promise.reject(new Error('disk full')), () => {})
      return { receive: () => {} }
    },
  })
  probe('a').tell('hello')
  for (let i = 0; i < 20; i++) {
    await world.settle()
    world.advance(50)
  }
  t.ok(built >= 4 && built <= 12, `${built} times in a second`)
})

t.test('after the only commit was rejected nothing is left until the next message', async t => {
  const { world, system, writes, tell, news } = makeWriter()
  tell('one')
  writes[0]!.reject(new Error('disk full'))
  world.run()
  t.equal(system.figures().liveActors, 0)
  t.same(news(), ['built', 'handled one'])
  tell('two')
  t.same(news(), ['built', 'handled two'])
})

t.test('once a commit is rejected no message is handled on the state that was built on it', async t => {
  const { world, writes, tell, news } = makeWriter()
  tell('one', 'two')
  news()
  writes[1]!.reject(new Error('disk full'))
  tell('three')
  t.same(news(), [], 'the first commit has not settled, so the actor can not end yet')
  writes[0]!.resolve()
  world.run()
  t.same(news(), ['released one', 'built', 'handled three'])
})

t.test('an actor is not built anew before every commit of the dropped one has settled', async t => {
  const { world, writes, tell, news } = makeWriter()
  tell('one', 'two', 'three')
  news()
  writes[0]!.reject(new Error('disk full'))
  tell('four')
  world.advance(1_000)
  t.same(news(), [])
  writes[1]!.reject(new Error('disk full'))
  world.advance(1_000)
  t.same(news(), [])
  writes[2]!.resolve()
  world.run()
  t.same(news(), ['built', 'handled four'])
})

t.test('after a throw, too, the next actor waits for the commits of the last', async t => {
  const { world, writes, tell, news } = makeWriter()
  tell('one', 'throw', 'two')
  world.advance(5_000)
  t.same(news(), ['built', 'handled one', 'handled throw'])
  writes[0]!.resolve()
  world.run()
  t.same(news(), ['built', 'handled two'], 'the effects of one were dropped with the actor that held them')
})

t.test('a throwing effect is a failure of its actor, and no message is blamed', async t => {
  const { world, system, writes, tell, news } = makeWriter()
  tell('bad effect', 'two')
  news()
  writes[0]!.resolve()
  writes[1]!.resolve()
  world.run()
  t.same(news(), ['released bad effect'])
  const { kinds, deadLetters } = system.figures()
  t.equal(kinds.writer?.restarts, 1)
  t.equal(deadLetters.poison, 0)
})

t.test('rejected commits do not add up to giving an actor up, and stop no process', async t => {
  const { world, system, writes, tell, news, fatal } = makeWriter('stop-process')
  for (let i = 0; i < 10; i++) {
    tell(`write ${i}`)
    writes[i]!.reject(new Error('disk full'))
    world.run()
  }
  tell('read')
  t.equal(news().at(-1), 'handled read')
  t.equal(system.figures().kinds.writer?.commitFailures, 10)
  t.same(fatal, [])
})

type Question = { readonly reply: Reply<string> }

t.test('asks that wait for a rejected commit are refused, those after it are handled', async t => {
  const { world, system } = makeStage()
  const writes: Deferred<void>[] = []
  const probe = system.define(
    kindOf<Question>(({ reply }, context) => {
      const write = new Deferred<void>()
      writes.push(write)
      context.commit(write, () => reply.answer('durable'))
    }),
  )
  const ask = () => probe('a').ask<string>(reply => ({ reply }), 5_000)
  const [first, second, third] = [ask(), ask(), ask()]
  for (const refused of [second, third]) refused.catch(() => {})
  world.run()
  writes[0]!.resolve()
  writes[1]!.reject(new Error('disk full'))
  world.run()
  const fourth = ask()
  writes[2]!.reject(new Error('disk full'))
  world.advance(200)
  writes[3]!.resolve()
  world.run()
  t.equal(await first, 'durable')
  await t.rejects(second, { code: 'STORE_UNAVAILABLE' })
  await t.rejects(third, { code: 'STORE_UNAVAILABLE' })
  t.equal(await fourth, 'durable')
  t.equal(system.figures().asksOpen, 0)
})

t.test('a message sent in receive does not wait for a commit of the same turn', async t => {
  const { world, system } = makeStage()
  const seen: string[] = []
  const witness = system.define(kindOf<string>(message => seen.push(message), { kind: 'witness' }))
  const probe = system.define(
    kindOf<string>((_message, context) => {
      context.commit(new Deferred<void>(), () => witness('w').tell('after'))
      witness('w').tell('at once')
    }),
  )
  probe('a').tell('go')
  world.run()
  t.same(seen, ['at once'])
})

t.test('the outcome of slow work comes back as a message of the control lane', async t => {
  const { world, system } = makeStage()
  const seen: string[] = []
  const work = new Deferred<number>()
  const broken = new Deferred<number>()
  const probe = system.define(
    kindOf<string>(
      (message, context) => {
        seen.push(message)
        const failed = (error: unknown) => `failed ${error}`
        if (message === 'begin') context.tellOutcome(work, n => `outcome ${n}`, failed)
        if (message === 'begin broken') context.tellOutcome(broken, n => `outcome ${n}`, failed)
      },
      { mailboxMessagesMax: 2 },
    ),
  )
  probe('a').tell('begin')
  probe('a').tell('begin broken')
  world.run()
  t.equal(system.figures().outcomesUnderWay, 2)
  probe('a').tell('user 1')
  probe('a').tell('user 2')
  work.resolve(7)
  broken.reject('why')
  t.equal(seen.length, 2, 'in a turn, not in the callback of the work')
  world.run()
  t.same(seen.slice(2), ['outcome 7', 'failed why', 'user 1', 'user 2'])
  t.equal(system.figures().outcomesUnderWay, 0)
})

t.test('an outcome does not reach the actor that was built after the one that began the work', async t => {
  const { world, system } = makeStage()
  const seen: string[] = []
  const works = [new Deferred<string>(), new Deferred<string>()]
  const probe = system.define(
    kindOf<string>((message, context) => {
      seen.push(message)
      if (message === 'throw') throw new Error('broken')
      if (message !== 'begin') return
      for (const work of works) {
        context.tellOutcome(
          work,
          outcome => outcome,
          () => 'failed',
        )
      }
    }),
  )
  probe('a').tell('begin')
  world.run()
  probe('a').tell('throw')
  // One outcome is in the mailbox when the actor is dropped, one comes when the next has been built.
  probe('a').tellControl('throw')
  works[0]!.resolve('outcome in the mailbox')
  world.run()
  world.advance(1_000)
  probe('a').tell('next')
  works[1]!.resolve('outcome after the end')
  world.advance(1_000)
  t.same(seen, ['begin', 'throw', 'throw', 'next'])
  t.equal(system.figures().deadLetters['stale-outcome'], 2)
})

t.test('what an actor began before it stopped has no other one built', async t => {
  const { world, system } = makeStage()
  const works = [new Deferred<string>(), new Deferred<string>()]
  const write = new Deferred<void>()
  const probe = system.define(
    kindOf<string>((message, context) => {
      if (message === 'stop') return context.stop()
      for (const work of works) {
        context.tellOutcome(
          work,
          outcome => outcome,
          () => 'failed',
        )
      }
      context.startTimer('timer', 100, 'timer')
      context.commit(write, () => {})
    }),
  )
  probe('a').tell('begin')
  world.run()
  // Behind the stop there are a firing and an outcome; a second outcome comes while it waits for its commit.
  probe('a').tellControl('stop')
  works[0]!.resolve('outcome behind the stop')
  world.advance(200)
  works[1]!.resolve('outcome after the stop')
  write.resolve()
  world.run()
  t.match(system.figures(), { liveActors: 0, timersArmed: 0, deadLetters: { 'stale-outcome': 2 } })
  t.equal(probe('a').tell('stop'), 'accepted')
  world.run()
  t.equal(system.figures().liveActors, 0)
})

t.test('the context of an ended actor object does nothing', async t => {
  const { world, system } = makeStage()
  const contexts: Context<string>[] = []
  const seen: string[] = []
  const probe = system.define(
    kindOf<string>((message, context) => {
      contexts.push(context)
      seen.push(message)
      if (message === 'stop') context.stop()
    }),
  )
  probe('a').tell('stop')
  world.run()
  const [ended] = contexts
  ended!.commit(Promise.reject(new Error('nobody looks')), () => seen.push('effects'))
  ended!.tellOutcome(
    Promise.resolve(1),
    () => 'outcome',
    () => 'failed',
  )
  ended!.startTimer('t', 100, 'timer')
  ended!.stop()
  await world.settle()
  world.advance(1_000)
  t.same(seen, ['stop'])
  t.match(system.figures(), { liveActors: 0, timersArmed: 0, commitsUnderWay: 0, outcomesUnderWay: 0 })
})
