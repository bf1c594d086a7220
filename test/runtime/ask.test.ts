import t from 'tap'
import { SignalError } from '../../src/errors.ts'
import type { Ref, Reply } from '../../src/runtime/actor.ts'
import { kindOf, makeStage } from '../support/actors.ts'
import { Deferred } from '../support/deferred.ts'

type Question = { readonly kind: 'question'; readonly reply: Reply<string> }

const question = (reply: Reply<string>): Question => ({ kind: 'question', reply })

t.test('an ask resolves with the answer and leaves nothing behind', async t => {
  const { world, system } = makeStage()
  const oracle = system.define(kindOf<Question>(({ reply }, _context, id) => reply.answer(`from ${id}`)))
  const answer = oracle('o').ask(question, 1_000)
  world.run()
  t.equal(await answer, 'from o')
  t.equal(system.figures().asksOpen, 0)
  t.equal(system.figures().timersArmed, 0)
})

t.test('an ask rejects with the code the actor refuses with', async t => {
  const { world, system } = makeStage()
  const oracle = system.define(
    kindOf<Question>(({ reply }) => reply.refuse(new SignalError('NOT_FOUND', 'no such thing'))),
  )
  const answer = oracle('o').ask(question, 1_000)
  world.run()
  await t.rejects(answer, { code: 'NOT_FOUND' })
})

t.test('an ask of a full mailbox is refused at once', async t => {
  const { system } = makeStage()
  const oracle = system.define(kindOf<Question>(() => {}, { mailboxMessagesMax: 1 }))
  oracle('o')
    .ask(question, 1_000)
    .catch(() => {})
  await t.rejects(oracle('o').ask(question, 1_000), { code: 'OVERLOADED' })
  t.equal(system.figures().deadLetters.overloaded, 1)
  t.equal(system.figures().asksOpen, 1)
})

t.test('an ask beyond the bound on live actors is refused at once', async t => {
  const { system } = makeStage({ liveActorsMax: 0 })
  const oracle = system.define(kindOf<Question>(() => {}))
  await t.rejects(oracle('o').ask(question, 1_000), { code: 'OVERLOADED' })
})

t.test('an ask rejects at its deadline, and the answer that comes later is a dead letter', async t => {
  const { world, system } = makeStage()
  const replies: Reply<string>[] = []
  const oracle = system.define(kindOf<Question>(({ reply }) => replies.push(reply)))
  let outcome = 'open'
  const answer = oracle('o').ask(question, 1_000)
  answer.catch(error => {
    outcome = error.code
  })
  world.advance(900)
  await world.settle()
  t.equal(outcome, 'open')
  world.advance(200)
  await t.rejects(answer, { code: 'DEADLINE_EXCEEDED' })
  replies[0]!.answer('too late')
  t.equal(system.figures().deadLetters['late-reply'], 1)
  t.equal(system.figures().asksOpen, 0)
})

t.test('a second answer is harmless and counted', async t => {
  const { world, system } = makeStage()
  const oracle = system.define(
    kindOf<Question>(({ reply }) => {
      reply.answer('first')
      reply.answer('second')
      reply.refuse(new SignalError('INTERNAL', 'third'))
    }),
  )
  const answer = oracle('o').ask(question, 1_000)
  world.run()
  t.equal(await answer, 'first')
  t.equal(system.figures().deadLetters['duplicate-reply'], 2)
})

t.test('an ask whose deadline has passed in the mailbox is not handled any more', async t => {
  const { world, system } = makeStage()
  let handled = 0
  const oracle = system.define(
    kindOf<Question>(() => {
      handled += 1
    }),
  )
  const answer = oracle('o').ask(question, 1_000)
  // The clock ticks, but no drain gets to run.
  world.jump(1_100)
  await t.rejects(answer, { code: 'DEADLINE_EXCEEDED' })
  world.run()
  t.equal(handled, 0)
  t.equal(system.figures().deadLetters['expired-ask'], 1)
})

t.test('an ask of an undefined kind, or of an id unknown to the kind, says so', async t => {
  const { world, system } = makeStage()
  await t.rejects(system.ref<Question>('nobody', 'x').ask(question, 1_000), { code: 'INTERNAL' })
  const oracle = system.define({ ...kindOf<Question>(() => {}), create: () => undefined })
  const answer = oracle('x').ask(question, 1_000)
  world.run()
  await t.rejects(answer, { code: 'NOT_FOUND' })
})

t.test('an ask over which the actor fails is refused, and so are those it had not answered', async t => {
  const { world, system } = makeStage()
  let handled = 0
  const oracle = system.define(
    kindOf<Question>(() => {
      handled += 1
      if (handled === 2) throw new Error('broken')
    }),
  )
  const first = oracle('o').ask(question, 10_000)
  const second = oracle('o').ask(question, 10_000)
  const third = oracle('o').ask(question, 10_000)
  third.catch(() => {})
  world.run()
  await t.rejects(first, { code: 'INTERNAL' })
  await t.rejects(second, { code: 'INTERNAL' })
  t.equal(system.figures().asksOpen, 1, 'the one that still waits is for the next actor object')
  world.advance(1_000)
  t.equal(handled, 3)
})

t.test('a reply may be passed on and answered by another actor', async t => {
  const { world, system } = makeStage()
  const second = system.define(kindOf<Question>(({ reply }) => reply.answer('second'), { kind: 'second' }))
  const first = system.define(kindOf<Question>(message => second('s').tell(message), { kind: 'first' }))
  const answer = first('f').ask(question, 1_000)
  world.run()
  t.equal(await answer, 'second')
})

type Hop =
  | { readonly kind: 'hop'; readonly reply: Reply<string>; readonly path: readonly string[] }
  | { readonly kind: 'nothing' }

/** Actors that ask the next one of a path, from `receive`, from an effect or from an outcome. */
function relay(how: 'receive' | 'effects' | 'outcome', refuseAskCycles = true) {
  const stage = makeStage({ refuseAskCycles })
  const hop: (id: string) => Ref<Hop> = stage.system.define(
    kindOf<Hop>((message, context) => {
      if (message.kind === 'nothing') return
      const next = () => askNext(message.path, message.reply)
      if (how === 'receive' || message.path.length === 0) return next()
      const done = new Deferred<void>()
      if (how === 'effects') context.commit(done, next)
      else
        context.tellOutcome(
          done,
          () => {
            next()
            return { kind: 'nothing' }
          },
          () => ({ kind: 'nothing' }),
        )
      done.resolve()
    }),
  )
  function askNext([to, ...rest]: readonly string[], reply: Reply<string>): void {
    if (to === undefined) return reply.answer('arrived')
    hop(to)
      .ask<string>(onward => ({ kind: 'hop', path: rest, reply: onward }), 1_000)
      .then(
        answer => reply.answer(answer),
        error => reply.refuse(error),
      )
  }
  const start = (path: readonly string[]) => {
    const answer = hop('a').ask<string>(reply => ({ kind: 'hop', path, reply }), 1_000)
    // Looked at later in the test; until then it is not unhandled.
    answer.catch(() => {})
    return answer
  }
  return { ...stage, start }
}

t.test('a cycle of asks is refused where it closes', async t => {
  const { world, start, failures } = relay('receive')
  const answer = start(['b', 'c', 'a'])
  await world.settle()
  await t.rejects(answer, { code: 'INTERNAL' })
  t.match(failures, [/probe\/c: SignalError: cycle of asks: probe\/a -> probe\/b -> probe\/c -> probe\/a/])
})

t.test('an actor that asks itself is refused', async t => {
  const { world, start, failures } = relay('receive')
  const answer = start(['a'])
  await world.settle()
  await t.rejects(answer, { code: 'INTERNAL' })
  t.equal(failures.length, 1)
})

t.test('a cycle that closes in an effect or an outcome is refused too', async t => {
  for (const how of ['effects', 'outcome'] as const) {
    const { world, start, failures } = relay(how)
    const answer = start(['b', 'a'])
    await world.settle()
    await t.rejects(answer, { code: 'INTERNAL' }, how)
    t.match(failures[0], /cycle of asks/, how)
  }
})

t.test('asks without a cycle pass, and the same actor may be asked twice in a row', async t => {
  const { world, start, failures } = relay('receive')
  const answers = [start(['b', 'c']), start(['c', 'b'])]
  await world.settle()
  t.same(await Promise.all(answers), ['arrived', 'arrived'])
  t.same(failures, [])
})

t.test('cycles are not looked for where the system does not ask for it', async t => {
  const { world, start, failures } = relay('receive', false)
  const answer = start(['b', 'a'])
  await world.settle()
  t.equal(await answer, 'arrived', 'handlers do not wait, so this one even comes to an end')
  t.same(failures, [])
})
