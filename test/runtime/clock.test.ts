import t from 'tap'
import type { Reply } from '../../src/runtime/actor.ts'
import { realWorld } from '../../src/runtime/clock.ts'
import { ActorSystem } from '../../src/runtime/system.ts'

t.test('in the real world messages are handled, timers fire and promises are waited for', async t => {
  const system = new ActorSystem({
    world: realWorld(),
    fatal: error => {
      throw error
    },
  })
  t.teardown(() => system.drainAndStop(1_000))
  type Message = { readonly kind: 'start'; readonly reply: Reply<number> } | { readonly kind: 'timer' }
  const probe = system.define<Message>({
    kind: 'probe',
    mailboxMessagesMax: 10,
    onFailure: 'stop-process',
    create(_id, context) {
      let startMs = 0
      let asked: Reply<number> | undefined
      return {
        receive(message) {
          if (message.kind === 'timer') {
            const passedMs = context.nowMs() - startMs
            return context.commit(Promise.resolve(), () => asked?.answer(passedMs))
          }
          startMs = context.nowMs()
          asked = message.reply
          context.startTimer('t', 150, { kind: 'timer' })
        },
      }
    },
  })
  // The ticks do not keep the process alive; in a server the sockets do.
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(alive))
  const passedMs = await probe('a').ask<number>(reply => ({ kind: 'start', reply }), 10_000)
  t.ok(passedMs >= 140, `${passedMs} ms`)
})

t.test(
  'the real clocks move, the monotonic one by milliseconds, and randomness stays in its bounds',
  async t => {
    const world = realWorld()
    const startMs = world.monotonicMs()
    const startWallMs = world.nowMs()
    await new Promise<void>(resolve => {
      let left = 3
      const stop = world.every(10, () => {
        left -= 1
        if (left > 0) return
        stop()
        resolve()
      })
      const alive = setInterval(() => left === 0 && clearInterval(alive), 5)
    })
    const passedMs = world.monotonicMs() - startMs
    t.ok(passedMs > 20 && passedMs < 10_000)
    t.ok(Math.abs(world.nowMs() - startWallMs - passedMs) < 1_000)
    const draws = Array.from({ length: 1_000 }, () => world.random())
    t.ok(draws.every(draw => draw >= 0 && draw < 1))
  },
)

t.test('a microtask runs before an immediate', async t => {
  const world = realWorld()
  const order: string[] = []
  await new Promise<void>(resolve => {
    world.immediate(() => {
      order.push('immediate')
      resolve()
    })
    world.microtask(() => order.push('microtask'))
    order.push('callback')
  })
  t.same(order, ['callback', 'microtask', 'immediate'])
})
