/** The actor of an endpoint over a real store, with receivers that tests answer for and a clock that they move. */

import t, { type Test } from 'tap'
import type { WebhookCommand } from '../../actors/messages.ts'
import { webhookKind } from '../../actors/webhook.ts'
import type { WebhookOutcome } from '../../src/delivery/webhook.ts'
import type { WebhookEvent } from '../../src/domain/operators/webhook-event.ts'
import { SignalError } from '../../src/errors.ts'
import type { Ref } from '../../src/runtime/actor.ts'
import { WebhookQueue } from '../../src/store/operators/webhook-queue.ts'
import type { Died } from '../../src/store/operators/webhook-store.ts'
import { makeStage } from '../support/actors.ts'
import { Deferred } from '../support/deferred.ts'
import { callMissed, openWebhooks, userCreated, type WebhookStoreOptions } from '../support/webhooks.ts'

interface Sending {
  readonly url: string
  readonly seq: number
  readonly webhookId: string
  readonly event: WebhookEvent
  readonly outcome: Deferred<WebhookOutcome>
}

const FAILED: WebhookOutcome = { kind: 'retry', reason: 'http-500' }
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

function makeSender(test: Test, options: WebhookStoreOptions = {}) {
  const stage = makeStage()
  const store = openWebhooks(test, options)
  const { database, webhooks } = store
  const sendings: Sending[] = []
  /** Answers at once; undefined leaves the answer to the test. */
  let answer: ((sending: Sending) => WebhookOutcome | undefined) | undefined
  const died: Died[] = []
  const errors: unknown[] = []
  // Changes are of the stage's time.
  const change: typeof database.change = (write, atMs = stage.world.nowMs()) => database.change(write, atMs)
  const queueOf = (endpointId: bigint) =>
    new WebhookQueue({ view: read => database.view(read), change }, webhooks, endpointId)
  const queues = new Map<bigint, WebhookQueue>()
  const define = stage.system.define<WebhookCommand>(
    webhookKind({
      queueOf(endpointId) {
        const queue = queueOf(endpointId)
        queues.set(endpointId, queue)
        return queue
      },
      send({ url }, seq, { webhookId, event }) {
        const sending = { url, seq, webhookId, event, outcome: new Deferred<WebhookOutcome>() }
        sendings.push(sending)
        const outcome = answer?.(sending)
        if (outcome !== undefined) sending.outcome.resolve(outcome)
        return Promise.resolve(sending.outcome)
      },
      onTried: () => undefined,
      onDied: all => void died.push(...all),
      onNotWritten: error => errors.push(error),
    }),
  )
  database.subscribe('webhook-news', ({ endpointId }) => define(`${endpointId}`).tell({ kind: 'wake' }))
  const until = async (isSo: () => boolean) => {
    for (let turns = 0; !isSo(); turns++) {
      if (turns > 20_000) throw new Error('it never came to that')
      await stage.world.settle()
    }
  }
  /** Moves the clock in small steps, with all that happens on the way. */
  const pass = async (ms: number, stepMs = 500) => {
    for (let passed = 0; passed < ms; passed += stepMs) {
      stage.world.advance(stepMs)
      await stage.world.settle()
      await database.settled()
      await stage.world.settle()
    }
  }
  return {
    ...stage,
    ...store,
    sendings,
    died,
    errors,
    queues,
    until,
    pass,
    answerWith(answers: typeof answer) {
      answer = answers
    },
    add: (...events: WebhookEvent[]) => store.add(stage.world.nowMs(), ...events),
    wake: (endpointId: bigint): Ref<WebhookCommand> => {
      const ref = define(`${endpointId}`)
      ref.tell({ kind: 'wake' })
      return ref
    },
  }
}

t.test('a written event is sent once it is durable, and then gone', async t => {
  const { create, add, sendings, until, pass, waiting } = makeSender(t)
  await create()
  await add(userCreated(1))
  await until(() => sendings.length === 1)
  t.equal(waiting(), 1, 'still there: its outcome is not known')
  sendings[0]!.outcome.resolve({ kind: 'sent' })
  await until(() => waiting() === 0)
  await pass(HOUR_MS, MINUTE_MS)
  t.equal(sendings.length, 1)
})

t.test('a failed event comes again under the same id, after pauses that grow', async t => {
  const { create, add, sendings, answerWith, pass, world, waiting } = makeSender(t)
  await create()
  const triedAtMs: number[] = []
  answerWith(() => {
    triedAtMs.push(world.nowMs())
    return triedAtMs.length < 5 ? FAILED : { kind: 'sent' }
  })
  await add(userCreated(1))
  await pass(10 * MINUTE_MS)
  t.equal(waiting(), 0)
  t.equal(new Set(sendings.map(({ webhookId, seq }) => `${webhookId} ${seq}`)).size, 1)
  const pauses = triedAtMs.slice(1).map((atMs, at) => (atMs - triedAtMs[at]!) / 1000)
  for (const [at, least] of [3.75, 7.5, 15, 30].entries())
    t.ok(pauses[at]! >= least && pauses[at]! <= least + 3, `pause ${at} of ${pauses[at]} s`)
})

t.test('an endpoint may ask for a longer pause', async t => {
  const { create, add, sendings, answerWith, pass } = makeSender(t)
  await create()
  answerWith(() => (sendings.length === 1 ? { ...FAILED, afterMs: 120_000 } : { kind: 'sent' }))
  await add(userCreated(1))
  await pass(119_000)
  t.equal(sendings.length, 1)
  await pass(3_000)
  t.equal(sendings.length, 2)
})

t.test(
  'events of a call come in order until the third failure of one; events of another call pass it',
  async t => {
    const { create, add, sendings, answerWith, pass } = makeSender(t)
    await create()
    answerWith(({ seq }) => (seq === 1 ? FAILED : { kind: 'sent' }))
    await add(callMissed(3, 1), callMissed(3, 2), callMissed(4, 1))
    await pass(10_000)
    t.same(
      sendings.map(({ seq }) => seq),
      [1, 3, 1],
      'two tries',
    )
    await pass(10_000)
    t.same(
      sendings.map(({ seq }) => seq),
      [1, 3, 1, 1, 2],
    )
  },
)

t.test('sixteen are under way at once, and an endpoint that is slow holds up no other', async t => {
  const { create, add, sendings, until, pass, waiting } = makeSender(t)
  await create({ url: 'http://127.0.0.1:1/' })
  await add(...Array.from({ length: 40 }, (_, at) => userCreated(at)))
  await until(() => sendings.length === 16)
  await pass(10_000)
  t.equal(sendings.length, 16)
  await create({ url: 'http://127.0.0.1:2/', kinds: ['call.missed'] })
  await add(callMissed(3, 1))
  await until(() => sendings.length === 17)
  t.equal(sendings[16]!.url, 'http://127.0.0.1:2/')
  sendings[0]!.outcome.resolve({ kind: 'sent' })
  await until(() => sendings.length === 18)
  t.equal(waiting(), 41, 'of forty one is gone, and two are of the call')
})

t.test(
  'an endpoint that is down for an hour is probed by one event at a time, and then has all of them',
  async t => {
    const { create, add, sendings, answerWith, pass, rows, world, died } = makeSender(t)
    await create()
    const upAtMs = world.nowMs() + HOUR_MS
    answerWith(() => (world.nowMs() < upAtMs ? { kind: 'retry', reason: 'network' } : { kind: 'sent' }))
    for (let call = 1; call <= 100; call++) await add(callMissed(call, 1), callMissed(call, 2))
    await pass(HOUR_MS)
    const failed = sendings.length
    t.ok(failed > 60 && failed < 160, `${failed} tries in an hour`)
    await pass(2 * MINUTE_MS)
    await pass(HOUR_MS, 5_000)
    t.same(rows(), { batches: 0, events: 0, subjects: 0, due: 0, dead: 0 })
    t.same(died, [])
    const taken = sendings.slice(failed)
    t.equal(new Set(taken.map(({ webhookId }) => webhookId)).size, 200, 'each is taken')
    const orders = new Map<bigint, number[]>()
    for (const { event, seq } of taken) {
      const { callId } = event as { readonly callId: bigint }
      orders.set(callId, [...(orders.get(callId) ?? []), seq])
    }
    const inOrder = [...orders.values()].filter(([first, second]) => first! < second!)
    t.ok(inOrder.length > 90, `${inOrder.length} calls have kept their order`)
  },
)

t.test('a failure now and then is not taken for an outage', async t => {
  const { create, add, sendings, answerWith, pass, until, waiting } = makeSender(t)
  await create()
  answerWith(({ seq }) => (seq % 2 === 0 ? FAILED : { kind: 'sent' }))
  await add(...Array.from({ length: 60 }, (_, at) => userCreated(at)))
  await until(() => waiting() === 30 && sendings.length === 60)
  await pass(3_000)
  t.equal(sendings.length, 60, 'those that failed wait for their pause')
})

t.test('after three days an event is dead and reported; on request it comes again', async t => {
  const { create, add, sendings, answerWith, pass, died, rows, database, webhooks, world } = makeSender(t)
  const { endpointId } = await create()
  answerWith(() => FAILED)
  await add(userCreated(1))
  const beganAtMs = world.nowMs()
  await pass(71 * HOUR_MS, 5 * MINUTE_MS)
  t.same(died, [])
  const tries = sendings.length
  t.ok(tries > 15 && tries < 40, `${tries} tries`)
  await pass(2 * HOUR_MS, 5 * MINUTE_MS)
  t.same(died, [{ endpointId, seq: 1, reason: 'expired' }])
  t.ok(world.nowMs() - beganAtMs >= 72 * HOUR_MS)
  t.same(rows(), { batches: 0, events: 0, subjects: 0, due: 0, dead: 1 })
  answerWith(() => ({ kind: 'sent' }))
  await database.change(change => webhooks.retry(change, endpointId, 1), world.nowMs())
  await pass(MINUTE_MS)
  t.same(rows(), { batches: 0, events: 0, subjects: 0, due: 0, dead: 0 })
  t.equal(new Set(sendings.map(({ webhookId }) => webhookId)).size, 1)
})

t.test('an event that fails for three days dies, though later ones are taken', async t => {
  const { create, add, answerWith, pass, died, rows } = makeSender(t)
  const { endpointId } = await create()
  answerWith(({ seq }) => (seq === 1 ? FAILED : { kind: 'sent' }))
  await add(userCreated(1))
  for (let hour = 0; hour < 74; hour++) {
    await pass(HOUR_MS, 10 * MINUTE_MS)
    await add(userCreated(2))
  }
  t.same(died, [{ endpointId, seq: 1, reason: 'expired' }])
  t.equal(rows().dead, 1)
})

t.test('one that can never be sent is dead at once, and the next one is sent', async t => {
  const { create, add, answerWith, pass, died, rows, sendings } = makeSender(t)
  const { endpointId } = await create()
  answerWith(({ seq }) => (seq === 1 ? { kind: 'hopeless', reason: 'too-large' } : { kind: 'sent' }))
  await add(userCreated(1), userCreated(1))
  await pass(2_000)
  t.same(died, [{ endpointId, seq: 1, reason: 'too-large' }])
  t.same(rows(), { batches: 0, events: 0, subjects: 0, due: 0, dead: 1 })
  t.equal(sendings.length, 2)
})

t.test(
  '410 stops the endpoint: waiting events stay, nothing more is written, until it is begun again',
  async t => {
    const { create, add, answerWith, pass, sendings, database, webhooks, waiting } = makeSender(t)
    const { endpointId } = await create()
    answerWith(() => ({ kind: 'gone' }))
    await add(userCreated(1), userCreated(2))
    await pass(HOUR_MS, MINUTE_MS)
    t.equal(
      database.view(view => webhooks.endpoints.read(view, endpointId)?.state),
      'gone',
    )
    const tried = sendings.length
    t.ok(tried <= 2)
    await add(userCreated(3))
    await pass(HOUR_MS, MINUTE_MS)
    t.equal(sendings.length, tried)
    t.equal(waiting(), 2)
    answerWith(() => ({ kind: 'sent' }))
    await database.change(change => webhooks.endpoints.setState(change, endpointId, 'open'))
    await add(userCreated(4))
    await pass(MINUTE_MS)
    t.equal(waiting(), 0)
    t.same(
      sendings
        .slice(tried)
        .map(({ seq }) => seq)
        .sort(),
      [1, 2, 3],
    )
  },
)

t.test('an endpoint that is deleted is sent nothing more, and its actor ends', async t => {
  const { create, add, until, sendings, database, webhooks, pass, waiting } = makeSender(t)
  const { endpointId } = await create()
  await add(...Array.from({ length: 400 }, (_, at) => userCreated(at)))
  await until(() => sendings.length === 16)
  await database.change(change => webhooks.endpoints.setState(change, endpointId, 'deleted'))
  await until(() => waiting() === 0)
  for (const { outcome } of sendings) outcome.resolve(FAILED)
  await pass(HOUR_MS, MINUTE_MS)
  t.equal(sendings.length, 16)
  t.same(
    database.view(view => webhooks.endpoints.all(view)),
    [],
  )
})

t.test('a process that ends between sending and writing sends again, under the same id', async t => {
  const folder = t.testdir()
  const before = makeSender(t, { folder })
  const { endpointId } = await before.create()
  await before.add(userCreated(1), userCreated(2))
  await before.until(() => before.sendings.length === 2)
  // The receiver has taken both; the process ends before it writes that.
  await before.database.close()
  const after = makeSender(t, { folder })
  after.answerWith(() => ({ kind: 'sent' }))
  after.wake(endpointId)
  await after.until(() => after.waiting() === 0)
  const named = ({ webhookId, seq }: Sending) => `${webhookId} ${seq}`
  t.same(after.sendings.map(named), before.sendings.map(named))
})

t.test('while the store takes no writes, outcomes are kept, and nothing is sent twice', async t => {
  const { create, add, until, sendings, errors, queues, pass, answerWith, waiting } = makeSender(t)
  const { endpointId } = await create()
  await add(userCreated(1))
  await until(() => sendings.length === 1)
  const queue = queues.get(endpointId)!
  const settle = queue.settle.bind(queue)
  queue.settle = () => Promise.reject(new SignalError('STORE_UNAVAILABLE', 'the disk is full'))
  sendings[0]!.outcome.resolve({ kind: 'sent' })
  answerWith(() => ({ kind: 'sent' }))
  await until(() => errors.length === 1)
  await add(userCreated(2))
  await pass(5_000)
  t.ok(errors.length > 2)
  t.equal(sendings.length, 2)
  queue.settle = settle
  await pass(5_000)
  t.equal(waiting(), 0)
  t.equal(sendings.length, 2)
})
