/** Which checkpoint a front shows, and which reads wait for one that comes. */

import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { ShownLog } from '../../src/fronts/shown-log.ts'
import type { LogHead } from '../../src/log/checkpoint.ts'
import { Deferred } from '../support/deferred.ts'
import { FakeWorld } from '../support/world.ts'

const head = (treeSize: number): LogHead => ({ treeSize, checkpoint: `of ${treeSize}` })

function open({ stored = 1, lease }: { stored?: number; lease?: () => Promise<void> | undefined } = {}) {
  const world = new FakeWorld()
  let shown: LogHead | undefined
  const log = new ShownLog(
    {
      size: () => shown?.treeSize,
      show: head => {
        shown = head
      },
      lease: lease && { mayRead: lease },
      world,
    },
    head(stored),
  )
  const answers: string[] = []
  return {
    world,
    log,
    answers,
    get size() {
      return shown?.treeSize
    },
    /** Whether the read is answered at once; by which tree it was is in `answers`. */
    read(name: string): boolean {
      const until = log.mayRead()
      until?.then(() => answers.push(`${name}: ${shown?.treeSize}`))
      return until === undefined
    },
  }
}

t.test('reads wait for a checkpoint that comes, each for the one that came when it was asked', async t => {
  const front = open()
  front.log.goTo('here')
  t.ok(front.read('before'))
  front.log.onStored(head(2), true)
  t.notOk(front.read('first'))
  front.log.onStored(head(3), true)
  t.notOk(front.read('second'))
  t.equal(front.size, 1, 'it is not shown yet')
  front.log.onStored(head(2), false)
  await setImmediate()
  t.same(front.answers, ['first: 2'], 'a log that grows without a pause keeps nobody')
  t.notOk(front.read('third'))
  front.log.onStored(head(3), false)
  await setImmediate()
  t.same(front.answers, ['first: 2', 'second: 3', 'third: 3'])
  t.ok(front.read('after'))
  t.equal(front.world.intervalsRunning, 0)
})

t.test('the same tree with more cosignatures keeps no read', async t => {
  const front = open({ stored: 2 })
  front.log.goTo('here')
  front.log.onStored(head(2), true)
  t.ok(front.read('at once'))
  front.log.onStored({ treeSize: 2, checkpoint: 'cosigned' }, false)
  t.ok(front.read('at once'))
})

t.test('a checkpoint that is announced and never published keeps reads for twenty seconds', async t => {
  const front = open()
  front.log.goTo('here')
  front.log.onStored(head(2), true)
  front.read('late')
  front.world.advance(19_999)
  await setImmediate()
  t.same(front.answers, [])
  front.world.advance(1)
  await setImmediate()
  t.same(front.answers, ['late: 1'])
  t.ok(front.read('at once'))
})

t.test('a lost writer keeps no read, which then waits for the copy', async t => {
  const current = new Deferred<void>()
  const front = open({ lease: () => Promise.resolve(current) })
  front.log.onPublished(head(2), false)
  front.log.onPublished(head(3), true)
  t.notOk(front.read('held'))
  front.log.onStored(head(3), false)
  t.equal(front.size, 2, 'what the copy has is not shown by that alone')
  front.log.onWriterLost()
  await setImmediate()
  t.same(front.answers, [], 'another writer may have shown more')
  current.resolve()
  await setImmediate()
  t.same(front.answers, ['held: 3'])
  front.log.onPublished(head(2), false)
  t.equal(front.size, 3, 'a tree that was shown never shrinks')
})

t.test('a front of the node that becomes the writer shows all that the copy has', async t => {
  const front = open({ stored: 4, lease: () => undefined })
  front.log.onPublished(head(3), false)
  t.equal(front.size, 3)
  front.log.goTo('here')
  t.equal(front.size, 4)
  front.log.goTo(undefined)
  front.log.onStored(head(5), false)
  t.equal(front.size, 4)
})
