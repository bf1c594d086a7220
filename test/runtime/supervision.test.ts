import t from 'tap'
import type { ActorKind, Context } from '../../src/runtime/actor.ts'
import { kindOf, makeStage } from '../support/actors.ts'
import { Deferred } from '../support/deferred.ts'

/** A kind that throws over `throw` and over nothing else. */
function makeFragile(options: Partial<ActorKind<string>> = {}) {
  const stage = makeStage()
  const seen: string[] = []
  const stopped: string[] = []
  const fragile = stage.system.define({
    ...kindOf<string>(message => {
      seen.push(message)
      if (message === 'throw') throw new Error('broken')
    }),
    ...options,
  })
  const tell = (...messages: string[]) => {
    for (const message of messages) fragile('f').tell(message)
    stage.world.run()
  }
  return { ...stage, fragile, tell, seen, stopped }
}

t.test('a message that makes the handler throw is parked, the rest are handled anew', async t => {
  const { world, system, tell, seen, failures } = makeFragile()
  tell('one', 'throw', 'two', 'three')
  t.same(seen, ['one', 'throw'])
  world.advance(200)
  t.same(seen, ['one', 'throw', 'two', 'three'])
  world.advance(120_000)
  t.same(seen.length, 4, 'it is not tried again')
  t.equal(system.figures().deadLetters.poison, 1)
  t.equal(system.figures().kinds.probe?.restarts, 1)
  t.same(failures, ['probe/f: Error: broken'])
})

t.test('each failure doubles the pause before the actor is built again', async t => {
  const { world, tell, seen } = makeFragile()
  const pausesMs: number[] = []
  for (const expectedMs of [100, 200, 400]) {
    tell('throw', 'after')
    const failures = seen.length
    let pausedMs = 0
    while (seen.length === failures) {
      world.advance(20)
      pausedMs += 20
    }
    pausesMs.push(pausedMs)
    t.ok(pausedMs >= expectedMs && pausedMs <= expectedMs + 120, `${pausedMs} for ${expectedMs}`)
  }
  t.ok(pausesMs[0]! < pausesMs[1]! && pausesMs[1]! < pausesMs[2]!)
})

t.test('an actor that fails a fourth time in a minute is given up, and its kind hears of it', async t => {
  const givenUp: string[] = []
  const { world, system, fragile, tell, seen } = makeFragile({ onGivenUp: id => givenUp.push(id) })
  for (let i = 0; i < 3; i++) {
    tell('throw')
    world.advance(10_000)
  }
  t.same(givenUp, [])
  tell('throw', 'waiting')
  t.same(givenUp, ['f'])
  t.equal(fragile('f').tell('refused'), 'overloaded')
  fragile('f').tellControl('refused')
  await t.rejects(
    fragile('f').ask(() => 'refused', 1_000),
    { code: 'INTERNAL' },
  )
  t.equal(system.figures().deadLetters['given-up'], 4)
  t.equal(system.figures().kinds.probe?.givenUp, 1)
  t.equal(system.figures().liveActors, 0)

  world.advance(60_200)
  tell('a minute later')
  t.same(seen, ['throw', 'throw', 'throw', 'throw', 'a minute later'])
})

t.test('failures more than a minute apart are forgiven', async t => {
  const givenUp: string[] = []
  const { world, tell, seen } = makeFragile({ onGivenUp: id => givenUp.push(id) })
  for (let i = 0; i < 12; i++) {
    tell('throw')
    world.advance(21_000)
  }
  t.same(givenUp, [], 'never more than three in a minute')
  t.equal(seen.length, 12)
})

t.test('when create throws the messages wait and are handled when it no longer does', async t => {
  let builds = 0
  const { world, system, tell, seen } = makeFragile({
    create: () => {
      builds += 1
      if (builds < 3) throw new Error('store is busy')
      return { receive: message => void seen.push(message) }
    },
  })
  tell('one', 'two')
  world.advance(1_000)
  t.same(seen, ['one', 'two'])
  t.equal(system.figures().deadLetters.poison, 0)
})

t.test('an actor whose kind stops the process calls fatal once and never runs again', async t => {
  const { world, tell, seen, fatal, fragile } = makeFragile({ onFailure: 'stop-process' })
  const waiting = fragile('f').ask(() => 'one', 60_000)
  tell('throw', 'two')
  await t.rejects(waiting, { code: 'INTERNAL' })
  world.advance(300_000)
  tell('three')
  t.same(seen, ['one', 'throw'])
  t.match(fatal, [{ message: 'broken' }])
})

t.test('while one actor waits after its failure, its kind’s other actors go on', async t => {
  const { world, fragile, tell, seen } = makeFragile()
  tell('throw', 'waits')
  fragile('other').tell('goes on')
  world.run()
  t.same(seen, ['throw', 'goes on'])
})

t.test('timers of a dropped actor are not seen by the next one, armed or fired', async t => {
  const { world, system } = makeStage()
  const seen: string[] = []
  const probe = system.define(
    kindOf<string>((message, context) => {
      seen.push(message)
      if (message === 'arm') {
        context.startTimer('soon', 100, 'soon')
        context.startTimer('later', 700, 'later')
      }
      if (message === 'throw') throw new Error('broken')
    }),
  )
  probe('a').tell('arm')
  world.run()
  // Both the throw and the firing wait in the mailbox when the drain runs, the throw first.
  probe('a').tellControl('throw')
  world.jump(200)
  world.run()
  probe('a').tell('next')
  world.advance(2_000)
  t.same(seen, ['arm', 'throw', 'next'])
  t.equal(system.figures().timersArmed, 1, 'only the memory of the failure')
})

t.test('an actor that is dropped with something under way is built again without a message', async t => {
  const under: Record<string, (context: Context<string>) => void> = {
    timer: context => context.startTimer('t', 60_000, 'timer'),
    commit: context => context.commit(write, () => {}),
    outcome: context => context.tellOutcome(work, String, String),
    nothing: () => {},
  }
  const write = new Deferred<void>()
  const work = new Deferred<void>()
  const { world, system } = makeStage()
  const built: string[] = []
  const probe = system.define<string>({
    ...kindOf<string>(() => {}),
    create(id, context) {
      built.push(id)
      // Fails once more, to see that owed messages survive that.
      if (built.length === 6) throw new Error('store is busy')
      return {
        receive(message) {
          under[id]!(context)
          if (message === 'throw') throw new Error('broken')
        },
      }
    },
  })
  for (const id of Object.keys(under)) probe(id).tell('throw')
  world.run()
  t.equal(built.length, 4)
  write.resolve()
  world.advance(1_000)
  t.same(built.slice(4).sort(), ['commit', 'commit', 'outcome', 'timer'].sort())
})

t.test('stop releases the commits first and leaves waiting messages to the next actor', async t => {
  const { world, system } = makeStage()
  const events: string[] = []
  const write = new Deferred<void>()
  let built = 0
  const probe = system.define<string>({
    ...kindOf<string>(() => {}),
    create(_id, context) {
      const name = `#${++built}`
      return {
        receive(message) {
          events.push(`${name} ${message}`)
          if (message !== 'end') return
          context.commit(write, () => events.push(`${name} released`))
          context.startTimer('t', 100, 'timer')
          context.stop()
        },
        onStopped: () => events.push(`${name} stopped`),
      }
    },
  })
  probe('a').tell('end')
  probe('a').tell('waiting')
  world.advance(1_000)
  probe('a').tell('late')
  world.run()
  t.same(events, ['#1 end'])
  write.resolve()
  world.run()
  t.same(events, ['#1 end', '#1 released', '#1 stopped', '#2 waiting', '#2 late'])
})

t.test('what an actor tells itself while it ends reaches the next one', async t => {
  const { world, system } = makeStage()
  const seen: string[] = []
  const probe = system.define<string>({
    ...kindOf<string>(() => {}),
    create: (id, context) => ({
      receive(message) {
        seen.push(`${id} ${message}`)
        if (message === 'throw') throw new Error('broken')
        if (message === 'stop') context.stop()
      },
      onStopped: () => context.self.tell('farewell'),
    }),
  })
  probe('a').tell('stop')
  probe('b').tell('throw')
  world.advance(500)
  t.same(seen, ['a stop', 'b throw', 'a farewell', 'b farewell'])
})

t.test('an actor may stop itself outside a turn', async t => {
  const { world, system } = makeStage()
  let context: Context<string> | undefined
  const probe = system.define(
    kindOf<string>((_message, own) => {
      context = own
    }),
  )
  probe('a').tell('hello')
  world.run()
  context!.stop()
  world.run()
  t.equal(system.figures().liveActors, 0)
})

t.test('onStopped is called once at every kind of end, and may throw', async t => {
  const { world, system, failures } = makeStage()
  const stopped: string[] = []
  const write = new Deferred<void>()
  const probe = system.define<string>({
    kind: 'probe',
    mailboxMessagesMax: 10,
    onFailure: 'rebuild',
    idleMs: 1_000,
    create: (id, context) => ({
      receive() {
        if (id === 'throws') throw new Error('broken')
        if (id === 'stops') context.stop()
        if (id === 'commits') context.commit(write, () => {})
      },
      onStopped() {
        stopped.push(id)
        throw new Error('in onStopped')
      },
    }),
  })
  for (const id of ['throws', 'stops', 'commits', 'idles']) probe(id).tell('go')
  world.run()
  write.reject(new Error('disk full'))
  world.advance(3_000)
  t.same(stopped, ['throws', 'stops', 'commits', 'idles'])
  t.equal(system.figures().liveActors, 0)
  t.equal(failures.filter(failure => failure.endsWith('in onStopped')).length, 4)
})

t.test('a timer that was cancelled or restarted while its firing was under way is not seen', async t => {
  const { world, system } = makeStage()
  const seen: string[] = []
  const probe = system.define(
    kindOf<string>((message, context) => {
      seen.push(message)
      if (message === 'arm') {
        context.startTimer('ring', 500, 'ring timed out')
        context.startTimer('retry', 500, 'first try')
      }
      if (message === 'answer') {
        context.cancelTimer('ring')
        context.startTimer('retry', 500, 'second try')
      }
    }),
  )
  probe('a').tell('arm')
  world.run()
  // Ahead of the firings in the control lane, and handled after they were put there.
  probe('a').tellControl('answer')
  world.jump(700)
  world.run()
  t.same(seen, ['arm', 'answer'])
  world.advance(400)
  t.same(seen, ['arm', 'answer'])
  world.advance(300)
  t.same(seen, ['arm', 'answer', 'second try'])
})

t.test('a timer sends its message once, in time, and its key may be used again', async t => {
  const { world, system } = makeStage()
  const seen: number[] = []
  const startMs = world.nowMs()
  const probe = system.define(
    kindOf<string>((message, context) => {
      if (message === 'beat') seen.push(context.nowMs() - startMs)
      if (seen.length < 3) context.startTimer('beat', 10_000, 'beat')
    }),
  )
  probe('a').tell('arm')
  world.run()
  world.advance(60_000)
  t.equal(seen.length, 3)
  t.same(
    seen.filter((atMs, i) => atMs < (i + 1) * 10_000 || atMs > (i + 1) * 10_200),
    [],
  )
  t.equal(system.figures().timersArmed, 0)
})

t.test('a stored deadline outlives the actor and the wall clock: create arms the rest of it', async t => {
  const { world, system } = makeStage()
  const stored = { deadlineMs: world.nowMs() + 30_000 }
  const seen: string[] = []
  const probe = system.define<string>({
    ...kindOf<string>(() => {}),
    create(_id, context) {
      context.startTimer('ring', Math.max(0, stored.deadlineMs - context.nowMs()), 'ring timed out')
      return {
        receive(message) {
          seen.push(message)
          if (message === 'throw') throw new Error('broken')
        },
      }
    },
  })
  probe('a').tell('hello')
  world.advance(20_000)
  probe('a').tell('throw')
  probe('a').tell('again')
  world.advance(9_000)
  t.same(seen, ['hello', 'throw', 'again'])
  world.advance(1_200)
  t.same(seen, ['hello', 'throw', 'again', 'ring timed out'])
})
