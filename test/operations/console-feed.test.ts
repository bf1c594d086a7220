/** The console's feed: kept events and waiting requests, both bounded. */

import t from 'tap'
import type { FeedAnswer } from '../../src/operations/console/events.ts'
import { ConsoleFeed, type ToldRequests } from '../../src/operations/console/feed.ts'
import { routeAnswer } from '../support/route-answer.ts'

function openFeed(
  bounds: ConstructorParameters<typeof ConsoleFeed>[2] = {},
  requests?: ToldRequests,
): ConsoleFeed {
  let nowMs = 1_000
  return new ConsoleFeed(() => nowMs++, requests, bounds)
}

function addCheckpoints(feed: ConsoleFeed, count: number): void {
  for (let treeSize = 1; treeSize <= count; treeSize++)
    feed.add({ type: 'checkpoint', treeSize, rootHash: '' })
}

function ask(feed: ConsoleFeed, query: string): Promise<FeedAnswer> {
  return routeAnswer(feed.route(), { query })
}

const sequencesOf = ({ events }: FeedAnswer): number[] => events.map(({ sequence }) => sequence)

t.test('events after N are answered at once, oldest first', async t => {
  const feed = openFeed()
  addCheckpoints(feed, 3)
  t.equal(feed.sequence, 3)
  t.same(await ask(feed, 'after=1'), {
    events: [
      { sequence: 2, atMs: 1_002, type: 'checkpoint', treeSize: 2, rootHash: '' },
      { sequence: 3, atMs: 1_003, type: 'checkpoint', treeSize: 3, rootHash: '' },
    ],
    next: 3,
    startedAtMs: 1_000,
  })
  t.same(sequencesOf(await ask(feed, '')), [1, 2, 3], 'everything, for who does not say after what')
})

t.test('an answer waits for the next event', async t => {
  const feed = openFeed()
  addCheckpoints(feed, 1)
  const answers = [ask(feed, 'after=1'), ask(feed, 'after=1')]
  t.equal(feed.waiting, 2)
  addCheckpoints(feed, 1)
  for (const answer of await Promise.all(answers)) t.match(answer, { events: [{ sequence: 2 }], next: 2 })
  t.equal(feed.waiting, 0)
})

t.test('an answer that has waited for long is empty, and goes on where it was', async t => {
  const feed = openFeed({ waitMs: 1 })
  addCheckpoints(feed, 1)
  // The feed's own timer does not keep a process alive.
  const alive = setInterval(() => undefined, 1_000)
  t.teardown(() => clearInterval(alive))
  t.match(await ask(feed, 'after=1'), { events: [], next: 1 })
  t.equal(feed.waiting, 0)
})

t.test('who has seen more than there is gets everything: the server was started anew', async t => {
  const feed = openFeed()
  addCheckpoints(feed, 2)
  t.same(sequencesOf(await ask(feed, 'after=3')), [1, 2])
  const empty = openFeed()
  const answer = ask(empty, 'after=57')
  addCheckpoints(empty, 1)
  t.match(await answer, { events: [{ sequence: 1 }], next: 1 })
})

t.test('an answer has a bounded number of events, and says where to go on', async t => {
  const feed = openFeed()
  addCheckpoints(feed, 1_200)
  const sequences: number[] = []
  for (let after = 0; after < 1_200; ) {
    const answer = await ask(feed, `after=${after}`)
    t.ok(answer.events.length <= 500)
    sequences.push(...sequencesOf(answer))
    after = answer.next
  }
  t.same(
    sequences,
    Array.from({ length: 1_200 }, (_, at) => at + 1),
  )
})

t.test('the oldest events go: the feed is bounded in number', async t => {
  const feed = openFeed({ eventsMax: 10 })
  addCheckpoints(feed, 100_000)
  t.equal(feed.size.events, 10)
  const newest = Array.from({ length: 10 }, (_, at) => 99_991 + at)
  for (const after of [0, 5, 99_990]) t.same(sequencesOf(await ask(feed, `after=${after}`)), newest)
  t.same(sequencesOf(await ask(feed, 'after=99995')), newest.slice(5))
  t.equal((await ask(feed, 'after=0')).next, 100_000)
})

t.test('the oldest events go: the feed is bounded in size', async t => {
  const feed = openFeed({ charsMax: 10_000 })
  const letter = { type: 'letter', channel: 'mail', to: 'ann@example.org', text: 'x'.repeat(900) } as const
  let isBounded = true
  for (let count = 0; count < 1_000; count++) {
    feed.add(letter)
    isBounded &&= feed.size.chars <= 10_000
  }
  t.ok(isBounded)
  t.equal(feed.size.events, 10)
  t.same(sequencesOf(await ask(feed, 'after=0'))[0], 991)
  feed.add({ ...letter, text: 'x'.repeat(20_000) })
  t.same(sequencesOf(await ask(feed, 'after=0')), [1_001], 'the newest is kept, however long')
})

t.test('a bounded number of requests wait at once; the next must come back', async t => {
  const feed = openFeed({ waitersMax: 2 })
  const answers = [ask(feed, 'after=0'), ask(feed, 'after=0')]
  await t.rejects(ask(feed, 'after=0'), { code: 'OVERLOADED' })
  addCheckpoints(feed, 1)
  t.same((await Promise.all(answers)).map(sequencesOf), [[1], [1]])
})

t.test('a closed feed answers all waiting requests, and takes no more', async t => {
  const feed = openFeed()
  const answer = ask(feed, 'after=0')
  feed.close()
  t.match(await answer, { events: [], next: 0 })
  t.match(await ask(feed, 'after=0'), { events: [], next: 0 })
  addCheckpoints(feed, 1)
  t.equal(feed.sequence, 0, 'nothing happens any more')
})

t.test('a text that is no number of an event is refused', async t => {
  for (const after of ['-1', '1.5', 'x', '', '1e3', '9'.repeat(16)]) {
    await t.rejects(ask(openFeed(), `after=${after}`), { code: 'VALIDATION_FAILED' }, after)
  }
})

t.test('requests are shown beside the events on demand, and wake waiting readers', async t => {
  let sequence = 3
  const rowsAfter = (after: number) =>
    Array.from({ length: sequence - after }, (_, at) => `${after + at + 1}`)
  const requests = {
    get sequence() {
      return sequence
    },
    rowsAfter,
  }
  const feed = openFeed({}, requests)
  addCheckpoints(feed, 1)
  t.match(await ask(feed, 'after=1&requestsAfter=1'), {
    events: [],
    next: 1,
    requests: [2, 3],
    nextRequest: 3,
  })
  t.match(await ask(feed, 'after=1&requestsAfter=9'), { requests: [1, 2, 3] }, 'of another server')
  t.notOk('requests' in (await ask(feed, 'after=0')))
  const waiting = [ask(feed, 'after=1&requestsAfter=3'), ask(feed, 'after=1')]
  sequence = 4
  feed.onRequest()
  t.match(await waiting[0], { events: [], requests: [4], nextRequest: 4 })
  t.equal(feed.waiting, 1, 'who did not ask for requests waits on')
  feed.close()
  t.match(await waiting[1], { events: [], next: 1 })
})
