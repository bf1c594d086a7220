/** How the writer knows what a front has acknowledged, and how long it waits for that. */

import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { Acknowledgements } from '../../src/fronts/acknowledgements.ts'
import { FrontLink } from '../../src/fronts/front-link.ts'
import { FrontLinks } from '../../src/fronts/front-links.ts'
import { type MessageToFront, READ_LEASE_MS } from '../../src/fronts/messages.ts'
import type { LogHead } from '../../src/log/checkpoint.ts'
import { Deferred } from '../support/deferred.ts'

const flush: MessageToFront = { kind: 'flush' }
const head: LogHead = { treeSize: 2, checkpoint: 'of 2' }

/** The writer with its fronts, and a clock. */
class TestWriter {
  nowMs = 1_000
  readonly links: FrontLinks
  readonly #ticks: (() => void)[] = []

  constructor() {
    const published = { size: 1, head: { treeSize: 1, checkpoint: 'of 1' }, subscribe: () => undefined }
    this.links = new FrontLinks(published, {
      every: (_, run) => {
        this.#ticks.push(run)
        return () => undefined
      },
    })
  }

  readonly monotonicMs = () => this.nowMs

  async pass(ms: number): Promise<void> {
    this.nowMs += ms
    for (const tick of this.#ticks) tick()
    await setImmediate()
  }

  far(): TestFront {
    const front = new TestFront(this, true)
    this.links.joinFar(front.link)
    return front
  }

  near(): TestFront {
    const front = new TestFront(this, false)
    this.links.joinNear(front.link)
    return front
  }
}

class TestFront {
  readonly link: FrontLink
  readonly sent: MessageToFront[] = []
  readonly #acknowledgements = new Acknowledgements()
  readonly #toWriter = {
    send: (message: unknown) => this.link.onAcknowledged((message as { count: number }).count),
  }

  constructor(writer: TestWriter, isFar: boolean) {
    const send = (message: unknown) => void this.sent.push(message as MessageToFront)
    this.link = new FrontLink({ send, sendSoon: send }, writer, isFar)
  }

  /** Has the front handle all messages sent so far; returns their kinds. */
  handle(until?: Promise<void>) {
    return this.sent.splice(0).map(said => {
      void this.#acknowledgements.of(said, this.#toWriter, () => until)
      return said.kind
    })
  }

  /** Has it ask for a read lease, and answer at once. Returns whether it was given one. */
  renew(): boolean {
    this.link.renewReadLease(0)
    return this.handle().includes('read-lease')
  }
}

/** Counts as it resolves. */
function counted(promise: Promise<unknown> | undefined): { readonly count: number } {
  const counts = { count: 0 }
  void promise?.then(() => (counts.count += 1))
  return counts
}

t.test(
  'a front that was told something is asked once how far it is, and only for those who wait',
  async t => {
    const front = new TestWriter().near()
    t.equal(front.link.caughtUp(), undefined, 'it was told nothing')
    front.link.send(flush)
    front.link.sendSoon(flush)
    t.same(front.handle(), ['flush', 'flush'])
    const waits = [counted(front.link.caughtUp()), counted(front.link.caughtUp())]
    await setImmediate()
    t.same(waits, [{ count: 0 }, { count: 0 }])
    t.same(front.handle(), ['barrier'])
    await setImmediate()
    t.same(waits, [{ count: 1 }, { count: 1 }])
    t.equal(front.link.caughtUp(), undefined)
  },
)

t.test('waits for later messages go on', async t => {
  const front = new TestWriter().near()
  front.link.send(flush)
  const first = counted(front.link.caughtUp())
  front.link.send(flush)
  const second = counted(front.link.caughtUp())
  const later = new Deferred<void>()
  t.same(front.handle(Promise.resolve(later)), ['flush', 'barrier', 'flush', 'barrier'])
  await setImmediate()
  t.equal(first.count, 0, 'it is not heeded yet')
  later.resolve()
  await setImmediate()
  front.link.send(flush)
  const third = counted(front.link.caughtUp())
  front.handle()
  await setImmediate()
  t.same([first.count, second.count, third.count], [1, 1, 1])
})

t.test('a front of another node is waited for while its read lease lasts, and no longer', async t => {
  const writer = new TestWriter()
  const front = writer.far()
  front.handle()
  front.link.send(flush)
  t.equal(front.link.caughtUp(), undefined, 'it has no lease, and asks the ledger before it reads')
  t.notOk(front.renew(), 'nothing is known of its link')
  t.ok(front.renew())
  front.link.send(flush)
  const write = counted(writer.links.caughtUp())
  await writer.pass(READ_LEASE_MS - 100)
  t.equal(write.count, 0)
  await writer.pass(101)
  t.equal(write.count, 1)
  const [next, announced] = [counted(writer.links.caughtUp()), counted(writer.links.announce(head))]
  await setImmediate()
  t.same([next.count, announced.count], [1, 1], 'what comes later does not wait at all')
  t.equal(writer.links.figures()[0]!.waitedMs, READ_LEASE_MS + 1)
})

t.test('waits for fronts end with the writer, and none begins later', async t => {
  const writer = new TestWriter()
  const [near, far] = [writer.near(), writer.far()]
  far.renew()
  t.ok(far.renew())
  const linkLost = writer.far()
  linkLost.renew()
  t.ok(linkLost.renew())
  writer.links.leave(linkLost.link, false)
  near.link.send(flush)
  far.link.send(flush)
  const before = counted(writer.links.caughtUp())
  await setImmediate()
  t.equal(before.count, 0)
  writer.links.end()
  const after = counted(writer.links.caughtUp())
  await setImmediate()
  t.same([before.count, after.count], [1, 1])
  const next = new TestWriter()
  next.links.joinNear(near.link)
  const again = counted(next.links.caughtUp())
  await setImmediate()
  t.equal(again.count, 0, 'the next writer of this machine waits for its fronts')
  near.handle()
  await setImmediate()
  t.equal(again.count, 1)
})

t.test('a front on a slow link gets no read lease until it is fast again', async t => {
  const writer = new TestWriter()
  const front = writer.far()
  t.notOk(front.renew())
  t.ok(front.renew())
  for (let renewals = 0; renewals < 8; renewals++) {
    front.link.renewReadLease(0)
    await writer.pass(400)
    front.handle()
  }
  t.ok(front.link.lagMs > 350)
  front.link.renewReadLease(0)
  t.notOk(front.handle().includes('read-lease'))
  front.link.send(flush)
  t.equal(counted(writer.links.caughtUp()).count, 0)
  await setImmediate()
  t.equal(front.link.caughtUp(), undefined, 'nobody waits for it')
  let asked = 0
  while (!front.renew()) asked += 1
  t.ok(asked < 10, `it is given one again after ${asked} fast answers`)
  front.link.renewReadLease(0)
  await writer.pass(READ_LEASE_MS)
  front.link.renewReadLease(0)
  t.same(
    front.sent.map(({ kind }) => kind),
    ['barrier', 'read-lease'],
    'one that has left a question open gets no other',
  )
})

t.test('a front may read until its lease has ended, though its link is lost', async t => {
  const writer = new TestWriter()
  const [silent, gone] = [writer.far(), writer.far()]
  for (const front of [silent, gone]) {
    front.renew()
    front.renew()
  }
  writer.links.leave(silent.link, false)
  writer.links.leave(gone.link, true)
  t.same(writer.links.figures(), [])
  const write = counted(writer.links.caughtUp())
  const handedOver = counted(writer.links.endReadLeases())
  await writer.pass(READ_LEASE_MS)
  t.same([write.count, handedOver.count], [0, 0])
  await writer.pass(1)
  t.same([write.count, handedOver.count], [1, 1])
})

t.test('a front of this machine that is only slow is waited for once', async t => {
  const writer = new TestWriter()
  const [slow, lost] = [writer.near(), writer.near()]
  for (const front of [slow, lost]) front.link.send(flush)
  const first = counted(writer.links.caughtUp())
  writer.links.leave(lost.link, true)
  await writer.pass(2_200)
  t.equal(first.count, 0)
  await writer.pass(1)
  t.equal(first.count, 1)
  slow.link.send(flush)
  t.equal(slow.link.caughtUp(), undefined)
  slow.handle()
  slow.link.send(flush)
  t.ok(slow.link.caughtUp(), 'it has come back')
})
