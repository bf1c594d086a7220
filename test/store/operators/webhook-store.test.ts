/** Events that wait for endpoints: receivers, order, bounds, and dead ones. */

import t from 'tap'
import type { UserId } from '../../../src/domain/ids.ts'
import { USERS } from '../../../src/store/accounts/account-tables.ts'
import { idsKey } from '../../../src/store/engine/keys.ts'
import { endpointName, parseEndpointName } from '../../../src/store/operators/webhook-endpoints.ts'
import { WebhookQueue } from '../../../src/store/operators/webhook-queue.ts'
import { LIFETIME_MS } from '../../../src/store/operators/webhook-store.ts'
import { callMissed, openWebhooks, userCreated } from '../../support/webhooks.ts'

const NOW_MS = Date.UTC(2026, 10, 20)
/** Behind the store's own clock. */
const LATER_MS = Date.now() + 3_600_000
const NO_ROWS = { batches: 0, events: 0, subjects: 0, due: 0, dead: 0 }
const IDLE = { isGone: false, isDown: false }

t.test('without an endpoint that wants to hear of it, nothing is written', async t => {
  const { database, add, rows, create, webhooks } = openWebhooks(t)
  const { lastChange } = database
  await add(NOW_MS, userCreated(7))
  t.equal(database.lastChange, lastChange)
  await create({ kinds: ['call.missed'] })
  const { endpointId } = await create()
  await database.change(change => webhooks.endpoints.setState(change, endpointId, 'gone'))
  const before = database.lastChange
  await add(NOW_MS, userCreated(7))
  t.equal(database.lastChange, before)
  t.same(rows(), NO_ROWS)
})

t.test(
  'each endpoint counts its own events; the id and what users were called are the same for all',
  async t => {
    const { database, add, create, webhooks } = openWebhooks(t)
    const [calls, all] = [await create({ kinds: ['call.missed'] }), await create()]
    await database.change(change =>
      change.put(USERS, idsKey(7n), {
        ...{ displayName: 'Bob', createdAtMs: 0, acceptLanguage: '', externalId: 'b-204' },
        settings: { discoverableByEmail: true, discoverableByPhone: true, callsFromContactsOnly: true },
      }),
    )
    await add(NOW_MS, userCreated(7), callMissed(3, 7))
    const [ofCalls, ofAll] = [calls, all].map(({ endpointId }) =>
      new WebhookQueue(database, webhooks, endpointId).take(NOW_MS, 10),
    )
    t.same(
      ofCalls!.map(({ seq, webhook }) => [seq, webhook!.event]),
      [[1, callMissed(3, 7)]],
    )
    t.same(
      ofAll!.map(({ seq, webhook }) => [seq, webhook!.event.kind]),
      [
        [1, 'user.created'],
        [2, 'call.missed'],
      ],
    )
    t.equal(ofCalls![0]!.webhook!.webhookId, ofAll![1]!.webhook!.webhookId)
    t.same(ofCalls![0]!.webhook!.externalIds, [[7n as UserId, 'b-204']])
    t.equal(ofCalls![0]!.webhook!.atMs, NOW_MS)
  },
)

t.test('of a subject one is due, until it was taken or has failed three times', async t => {
  const { database, add, create, webhooks, rows } = openWebhooks(t)
  const { endpointId } = await create()
  await add(NOW_MS, callMissed(3, 7), callMissed(3, 8), callMissed(4, 7), callMissed(3, 9))
  const queue = new WebhookQueue(database, webhooks, endpointId)
  const taken = () => queue.take(LATER_MS, 10).map(({ seq }) => seq)
  t.same(taken(), [1, 3])
  t.same(taken(), [], 'each once')
  await queue.settle([{ kind: 'sent', seq: 1 }], IDLE)
  t.same(taken(), [2])
  for (const tries of [1, 2, 3]) {
    t.equal(database.view(view => webhooks.figuresOf(view, endpointId)).waiting, 3)
    await queue.settle([{ kind: 'failed', seq: 2, dueMs: NOW_MS }], IDLE)
    t.same(taken(), tries < 3 ? [2] : [2, 4], `failed ${tries} times`)
  }
  await add(NOW_MS, callMissed(3, 10))
  t.same(taken(), [], 'the one ahead of it has not failed so often')
  await queue.settle([{ kind: 'sent', seq: 2 }], IDLE)
  t.same(taken(), [], 'it has let the next one pass already')
  await queue.settle([{ kind: 'died', seq: 4, reason: 'too-large' }], IDLE)
  t.same(taken(), [5])
  await queue.settle(
    [
      { kind: 'sent', seq: 3 },
      { kind: 'sent', seq: 5 },
    ],
    IDLE,
  )
  t.same(rows(), { ...NO_ROWS, dead: 1 })
  t.same(
    database.view(view => webhooks.figuresOf(view, endpointId)),
    {
      ...{ nextSeq: 66, waiting: 0, waitingBytes: 0, dead: 1 },
    },
  )
})

t.test('an event is due at its time, and the next time is known', async t => {
  const { database, add, create, webhooks } = openWebhooks(t)
  const { endpointId } = await create()
  await add(NOW_MS, userCreated(1), userCreated(2))
  const queue = new WebhookQueue(database, webhooks, endpointId)
  t.equal(queue.take(NOW_MS - 1, 10).length, 0)
  t.equal(queue.nextDueMs(), NOW_MS)
  t.equal(queue.take(NOW_MS, 1).length, 1)
  await queue.settle([{ kind: 'failed', seq: 1, dueMs: NOW_MS + 5_000 }], IDLE)
  t.same(
    queue.take(NOW_MS + 4_999, 10).map(({ seq }) => seq),
    [2],
  )
  t.equal(queue.nextDueMs(), NOW_MS + 5_000)
  t.match(queue.take(NOW_MS + 5_000, 10), [{ seq: 1, tries: 1, sinceMs: NOW_MS }])
  t.equal(queue.nextDueMs(), undefined)
})

t.test('beyond the bound, the oldest events of the endpoint with the most die', async t => {
  const { database, add, create, webhooks, rows } = openWebhooks(t, { bounds: { waitingMax: 4 } })
  const [most, few] = [await create(), await create({ kinds: ['call.missed'] })]
  const crowded: bigint[] = []
  database.subscribe('webhooks-crowded', ({ endpointId }) => crowded.push(endpointId))
  await add(NOW_MS, userCreated(1), userCreated(2), callMissed(3, 7))
  t.same(rows(), { ...NO_ROWS, batches: 4 })
  t.same(crowded, [])
  await add(NOW_MS, userCreated(4), userCreated(5))
  t.same(rows(), { ...NO_ROWS, batches: 4, dead: 2 })
  t.same(crowded, [most.endpointId], 'said once for a change')
  t.match(
    database.view(view => webhooks.deadOf(view, most.endpointId, 0, 10)),
    [
      { seq: 1, reason: 'crowded', tries: 0, diedAtMs: NOW_MS },
      { seq: 2, reason: 'crowded' },
    ],
  )
  t.equal(database.view(view => webhooks.figuresOf(view, few.endpointId)).waiting, 1)
})

t.test('bytes are bounded, too', async t => {
  const { add, create, rows } = openWebhooks(t, { bounds: { waitingBytesMax: 1_000 } })
  await create()
  for (let userId = 1; userId <= 20; userId++) await add(NOW_MS, userCreated(userId))
  const { batches, dead } = rows()
  t.equal(batches + dead, 20)
  t.ok(batches > 1 && batches < 8, `${batches} wait`)
})

t.test('an event that is crowded out while it is sent is dead, whatever the endpoint answers', async t => {
  const { database, add, create, webhooks, rows } = openWebhooks(t, { bounds: { waitingMax: 1 } })
  const { endpointId } = await create()
  await add(NOW_MS, userCreated(1))
  const queue = new WebhookQueue(database, webhooks, endpointId)
  t.equal(queue.take(NOW_MS, 1).length, 1)
  await add(NOW_MS, userCreated(2))
  await queue.settle([{ kind: 'sent', seq: 1 }], IDLE)
  t.same(rows(), { ...NO_ROWS, batches: 1, dead: 1 })
})

t.test(
  'dead events are kept for thirty days, wait again when they are asked for, and let the rest pass',
  async t => {
    const { database, add, create, webhooks, rows, expiries } = openWebhooks(t)
    const { endpointId } = await create()
    await add(NOW_MS, userCreated(7), userCreated(7), userCreated(8))
    const queue = new WebhookQueue(database, webhooks, endpointId)
    queue.take(NOW_MS, 10)
    await queue.settle(
      [
        { kind: 'died', seq: 1, reason: 'expired' },
        { kind: 'died', seq: 3, reason: 'expired' },
      ],
      IDLE,
    )
    const retry = (fromSeq: number) =>
      database.change(change => webhooks.retry(change, endpointId, fromSeq), NOW_MS + 1)
    t.same(await retry(4), { count: 0, nextSeq: undefined })
    t.same(await retry(2), { count: 1, nextSeq: undefined })
    t.same(await retry(1), { count: 1, nextSeq: undefined })
    t.match(queue.take(LATER_MS, 10), [
      { seq: 2 },
      { seq: 1, tries: 3, sinceMs: NOW_MS + 1, webhook: { atMs: NOW_MS } },
      { seq: 3 },
    ])
    await queue.settle(
      [
        { kind: 'died', seq: 1, reason: 'expired' },
        { kind: 'sent', seq: 2 },
      ],
      IDLE,
    )
    const [dead] = database.view(view => webhooks.deadOf(view, endpointId, 0, 10))
    const sweep = (atMs: number) => expiries.sweep(database, atMs, 100)
    await sweep(dead!.diedAtMs + 30 * 86_400_000 - 1)
    t.equal(rows().dead, 1)
    await sweep(dead!.diedAtMs + 30 * 86_400_000)
    t.same(rows(), { ...NO_ROWS, events: 1, subjects: 1, due: 1 })
    t.equal(database.view(view => webhooks.figuresOf(view, endpointId)).dead, 0)
  },
)

t.test('dead events are bounded, and wait again only as far as there is room', async t => {
  const { database, add, create, webhooks, rows } = openWebhooks(t, { bounds: { waitingMax: 2, deadMax: 3 } })
  const { endpointId } = await create()
  for (let userId = 1; userId <= 9; userId++) await add(NOW_MS, userCreated(userId))
  t.match(rows(), { batches: 2, dead: 3 })
  t.match(await database.change(change => webhooks.retry(change, endpointId, 0)), { count: 0 })
  const queue = new WebhookQueue(database, webhooks, endpointId)
  queue.take(NOW_MS, 10)
  await queue.settle([{ kind: 'sent', seq: 9 }], IDLE)
  t.match(await database.change(change => webhooks.retry(change, endpointId, 0)), { count: 1 })
  t.match(rows(), { batches: 1, events: 1, dead: 2 })
})

t.test('while an endpoint is down, events older than three days die untried', async t => {
  const { database, add, create, webhooks, rows } = openWebhooks(t)
  const { endpointId } = await create()
  const nowMs = Date.now()
  await add(nowMs - LIFETIME_MS - 1, userCreated(1), userCreated(2))
  await add(nowMs - LIFETIME_MS + 3_600_000, userCreated(3))
  const queue = new WebhookQueue(database, webhooks, endpointId)
  t.same(await queue.settle([], { isGone: false, isDown: false }), [])
  const died = await queue.settle([], { isGone: false, isDown: true })
  t.match(died, [
    { seq: 1, reason: 'expired' },
    { seq: 2, reason: 'expired' },
  ])
  t.match(rows(), { batches: 1, dead: 2 })
})

t.test('an endpoint that is deleted goes with all of its events, in portions', async t => {
  const { database, add, create, webhooks, rows, expiries } = openWebhooks(t)
  const { endpointId } = await create()
  await add(NOW_MS, ...Array.from({ length: 300 }, (_, at) => userCreated(at)))
  const queue = new WebhookQueue(database, webhooks, endpointId)
  queue.take(NOW_MS, 300)
  await queue.settle([{ kind: 'died', seq: 1, reason: 'expired' }], IDLE)
  await database.change(change => webhooks.endpoints.setState(change, endpointId, 'deleted'))
  t.equal(
    database.view(view => webhooks.endpoints.read(view, endpointId)),
    undefined,
  )
  await add(NOW_MS, userCreated(7))
  let portions = 1
  while (!(await queue.purge())) portions++
  t.equal(portions, 3)
  t.same(rows(), NO_ROWS)
  t.same(
    database.view(view => webhooks.endpoints.all(view)),
    [],
  )
  t.equal(await expiries.sweep(database, NOW_MS + 40 * 86_400_000, 10), 0)
})

t.test('events of one change and subject are one row, until all of them have been sent', async t => {
  const { database, addBatch, create, webhooks, rows } = openWebhooks(t)
  const { endpointId } = await create()
  await addBatch(NOW_MS, callMissed(3, 7), callMissed(3, 8), callMissed(4, 7))
  t.same(rows(), { ...NO_ROWS, batches: 2 })
  const queue = new WebhookQueue(database, webhooks, endpointId)
  const taken = () => queue.take(NOW_MS, 10).map(({ seq }) => seq)
  t.same(taken(), [1, 3])
  const { lastChange } = database
  await queue.settle([{ kind: 'sent', seq: 1 }], IDLE)
  t.equal(database.lastChange, lastChange, 'nothing is written while others of the row wait')
  t.same(taken(), [2])
  await queue.settle([{ kind: 'sent', seq: 2 }], IDLE)
  t.same(rows(), { ...NO_ROWS, batches: 1 })
  await queue.settle([{ kind: 'sent', seq: 3 }], IDLE)
  t.same(rows(), NO_ROWS)
})

t.test(
  'after a crash, what was sent of a row comes again under its id, and no number is given twice',
  async t => {
    const folder = t.testdir()
    const before = openWebhooks(t, { folder })
    const { endpointId } = await before.create()
    await before.addBatch(NOW_MS, callMissed(3, 7), callMissed(3, 8))
    const first = new WebhookQueue(before.database, before.webhooks, endpointId)
    const [sent] = first.take(NOW_MS, 10)
    await first.settle([{ kind: 'sent', seq: sent!.seq }], IDLE)
    await before.database.close()
    const { database, webhooks, add } = openWebhooks(t, { folder })
    await add(NOW_MS, userCreated(1))
    const taken = new WebhookQueue(database, webhooks, endpointId).take(NOW_MS, 10)
    t.equal(taken[0]!.webhook!.webhookId, sent!.webhook!.webhookId)
    t.ok(taken[1]!.seq > 2, `${taken[1]!.seq} is behind those of before`)
  },
)

t.test('where one of a row fails, those of its subject wait behind it, also those of later rows', async t => {
  const { database, addBatch, create, webhooks, rows } = openWebhooks(t)
  const { endpointId } = await create()
  await addBatch(NOW_MS, callMissed(3, 1), callMissed(3, 2), callMissed(3, 3))
  await addBatch(NOW_MS, callMissed(3, 4))
  const queue = new WebhookQueue(database, webhooks, endpointId)
  const taken = (nowMs: number) => queue.take(nowMs, 10).map(({ seq }) => seq)
  t.same(taken(NOW_MS), [1])
  await queue.settle([{ kind: 'sent', seq: 1 }], IDLE)
  t.same(taken(NOW_MS), [2])
  await queue.settle([{ kind: 'failed', seq: 2, dueMs: LATER_MS }], IDLE)
  t.same(rows(), { batches: 1, events: 2, subjects: 2, due: 1, dead: 0 }, 'without the one that was sent')
  t.same(taken(LATER_MS - 1), [])
  t.equal(queue.nextDueMs(), LATER_MS)
  await addBatch(NOW_MS, callMissed(3, 5), callMissed(4, 1))
  t.same(taken(LATER_MS - 1), [6], 'other subjects go on')
  await queue.settle([{ kind: 'sent', seq: 6 }], IDLE)
  t.same(rows(), { batches: 1, events: 3, subjects: 3, due: 1, dead: 0 }, 'the row that was held up')
  for (const seq of [2, 3, 4, 5]) {
    t.same(taken(LATER_MS), [seq])
    await queue.settle([{ kind: 'sent', seq }], IDLE)
  }
  t.same(rows(), NO_ROWS)
})

t.test('a change that fails leaves nothing in the figures', async t => {
  const { database, add, create, webhooks } = openWebhooks(t)
  const { endpointId } = await create()
  const waiting = () => database.view(view => webhooks.figuresOf(view, endpointId)).waiting
  await add(NOW_MS, userCreated(1))
  await t.rejects(
    database.change(change => {
      webhooks.add(change, userCreated(2))
      throw new Error('no')
    }),
  )
  await add(NOW_MS, userCreated(3))
  t.equal(waiting(), 2)
  const seqs = new WebhookQueue(database, webhooks, endpointId).take(LATER_MS, 10).map(({ seq }) => seq)
  t.equal(new Set(seqs).size, 2)
})

t.test('the endpoint of the settings is as they say: made, changed, stopped as it was, gone', async t => {
  const { database, webhooks } = openWebhooks(t)
  const settle = (settings?: { url: string; secrets: string[] }) =>
    database.change(change => webhooks.endpoints.settle(change, settings))
  const states = () =>
    database.view(view => webhooks.endpoints.all(view)).map(({ url, state }) => `${url} ${state}`)
  await settle()
  t.same(states(), [])
  await settle({ url: 'https://a.example/', secrets: ['one'] })
  t.same(states(), ['https://a.example/ open'])
  const { lastChange } = database
  await settle({ url: 'https://a.example/', secrets: ['one'] })
  t.equal(database.lastChange, lastChange, 'nothing is written for the same')
  await database.change(change => webhooks.endpoints.setState(change, 0n, 'gone'))
  await settle({ url: 'https://a.example/', secrets: ['one'] })
  t.same(states(), ['https://a.example/ gone'], 'a restart is no reason to begin again')
  await settle({ url: 'https://b.example/', secrets: ['two', 'one'] })
  t.same(states(), ['https://b.example/ open'])
  await settle()
  t.same(states(), ['https://b.example/ deleted'])
  await settle({ url: 'https://b.example/', secrets: ['two', 'one'] })
  t.same(states(), ['https://b.example/ open'])
})

t.test('there are few endpoints; a second secret takes the place of the one before the last', async t => {
  const { database, create, webhooks } = openWebhooks(t)
  const first = await create()
  for (let more = 1; more < 16; more++) await create()
  await t.rejects(create(), { code: 'WEBHOOK_LIMIT' })
  const rotate = (secret: string) =>
    database.change(change =>
      webhooks.endpoints.rotate(change, webhooks.endpoints.read(change, first.endpointId)!, secret),
    )
  await rotate('two')
  t.match(await rotate('three'), { secrets: ['three', 'two'] })
})

t.test('with another secret of the server, events are unreadable and endpoints have no secrets', async t => {
  const folder = t.testdir()
  const before = openWebhooks(t, { folder })
  const { endpointId } = await before.create()
  await before.add(NOW_MS, userCreated(1))
  await before.database.close()
  const { database, webhooks } = openWebhooks(t, { folder, secret: 2 })
  const queue = new WebhookQueue(database, webhooks, endpointId)
  t.match(queue.endpoint(), { url: 'http://127.0.0.1:9/', secrets: [] })
  t.match(queue.take(NOW_MS, 1), [{ seq: 1, webhook: undefined }])
})

t.test('the endpoint of the settings has one name', async t => {
  t.equal(parseEndpointName(endpointName(0n)), 0n)
  t.equal(parseEndpointName('wh_000000000000'), undefined)
  t.equal(parseEndpointName(endpointName(17n)), 17n)
})

t.test(
  'a clock that was set back keeps no events of a deleted endpoint, and no bound from being kept',
  async t => {
    const { database, add, create, rows, webhooks } = openWebhooks(t, { bounds: { waitingMax: 2 } })
    const { endpointId } = await create()
    await add(LATER_MS, userCreated(1))
    for (const userId of [2, 3, 4]) await add(NOW_MS, userCreated(userId))
    t.match(rows(), { batches: 2, dead: 2 })
    await database.change(change => webhooks.endpoints.setState(change, endpointId, 'deleted'))
    const purge = () => database.change(change => webhooks.purge(change, endpointId), NOW_MS)
    while (!(await purge()));
    t.same(rows(), NO_ROWS)
  },
)

t.test(
  'a batch is sent again when its outcomes were never written, and does not hold up its subject',
  async t => {
    const { database, add, create, webhooks } = openWebhooks(t)
    const { endpointId } = await create()
    await add(NOW_MS, callMissed(3, 7))
    await add(NOW_MS, callMissed(3, 8))
    const failing = {
      view: database.view.bind(database),
      change: <Result>(write: Parameters<typeof database.change<Result>>[0]) =>
        database.change<Result>(change => {
          write(change)
          throw new Error('not written')
        }),
    }
    const seqs = (queue: WebhookQueue) => queue.take(NOW_MS, 10).map(({ seq }) => seq)
    const queue = new WebhookQueue(failing, webhooks, endpointId)
    t.same(seqs(queue), [1])
    await t.rejects(queue.settle([{ kind: 'sent', seq: 1 }], IDLE))
    t.same(seqs(queue), [], 'its outcome is still to be written')
    const rebuilt = new WebhookQueue(database, webhooks, endpointId)
    t.same(seqs(rebuilt), [1])
    await rebuilt.settle([{ kind: 'sent', seq: 1 }], IDLE)
    t.same(seqs(rebuilt), [2])
  },
)

t.test('events of one subject that expire together leave nothing that is due', async t => {
  const { database, add, create, rows, webhooks } = openWebhooks(t)
  const { endpointId } = await create()
  await add(NOW_MS - LIFETIME_MS, callMissed(3, 7), callMissed(3, 8), callMissed(3, 9))
  await database.change(change => webhooks.killExpired(change, endpointId), NOW_MS)
  t.same(rows(), { ...NO_ROWS, dead: 3 })
})

t.test('events of another subject get past many batches of one, which are not all looked at', async t => {
  const { database, add, create, webhooks } = openWebhooks(t)
  const { endpointId } = await create()
  const ofOne = Array.from({ length: 1_200 }, (_, at) => callMissed(3, 100 + at))
  await add(NOW_MS, ...ofOne, callMissed(4, 7))
  const queue = new WebhookQueue(database, webhooks, endpointId)
  const given: number[] = []
  for (let turn = 0; turn < 12; turn++) {
    const seqs = queue.take(LATER_MS, 16).map(({ seq }) => seq)
    given.push(...seqs)
    await queue.settle(
      seqs.map(seq => ({ kind: 'sent', seq })),
      IDLE,
    )
    const { reads } = database.figures
    queue.nextDueMs()
    t.ok(database.figures.reads - reads < 1_100, 'reads do not grow with what waits')
  }
  const [others, ofTheOne] = [given.filter(seq => seq > 1_200), given.filter(seq => seq <= 1_200)]
  t.same(others, [1_201])
  t.same(
    ofTheOne,
    ofTheOne.map((_, at) => at + 1),
    'in order',
  )
})
