import t from 'tap'
import { Mailbox, MailboxPool, Ring } from '../../src/runtime/mailbox.ts'
import { SeededRandom } from '../support/world.ts'

t.test('a ring gives back what an array would, through growth and wrapping', async t => {
  const draw = new SeededRandom(7)
  const ring = new Ring<number>()
  const oracle: number[] = []
  let wrong = 0
  for (let i = 0; i < 20_000; i++) {
    // Long runs of pushes and of shifts in turn, so that it grows, empties and wraps.
    if (draw.chance(i % 400 < 200 ? 0.8 : 0.2)) {
      ring.push(i)
      oracle.push(i)
    } else if (ring.peek() !== oracle[0] || ring.shift() !== oracle.shift()) wrong += 1
    if (ring.length !== oracle.length) wrong += 1
  }
  t.equal(wrong, 0)
  t.ok(ring.slots > 8, 'it grew')
})

t.test('a mailbox starts small whatever its bound', async t => {
  const mailbox = new Mailbox()
  mailbox.offer('first', 100_000)
  t.ok(mailbox.slots <= 16)
})

t.test('a full user lane refuses and takes again once one was taken', async t => {
  const mailbox = new Mailbox()
  const taken = Array.from({ length: 12 }, (_, i) => mailbox.offer(i, 10))
  t.same(taken, [...new Array(10).fill(true), false, false])
  t.equal(mailbox.take(), 0)
  t.equal(mailbox.offer('again', 10), true)
  t.equal(mailbox.offer('too many', 10), false)
})

t.test('a mailbox drops unwanted messages and keeps the order of the rest', async t => {
  const mailbox = new Mailbox()
  for (let i = 0; i < 20; i++) mailbox.offer(i, 100)
  for (let i = 20; i < 40; i++) mailbox.offerControl(i)
  const isEven = (message: unknown) => Number(message) % 2 === 0
  t.same(mailbox.sift(isEven), [21, 23, 25, 27, 29, 31, 33, 35, 37, 39, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19])
  t.equal(mailbox.length, 20)
  const rest = Array.from({ length: 20 }, () => mailbox.take())
  t.same(rest, [20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18])
})

t.test('the control lane overtakes, keeps its order and is never full', async t => {
  const mailbox = new Mailbox()
  mailbox.offer('user 1', 1)
  for (let i = 0; i < 100; i++) mailbox.offerControl(i)
  t.equal(mailbox.offer('user 2', 1), false)
  t.equal(mailbox.length, 101)
  const taken = Array.from({ length: 102 }, () => mailbox.take())
  t.same(taken, [...Array.from({ length: 100 }, (_, i) => i), 'user 1', undefined])
})

t.test('a pool lends the same mailbox again, but keeps no grown one', async t => {
  const pool = new MailboxPool()
  const small = pool.borrow()
  pool.giveBack(small)
  t.equal(pool.borrow(), small)

  const grown = pool.borrow()
  for (let i = 0; i < 1_000; i++) grown.offer(i, 1_000)
  while (grown.take() !== undefined);
  pool.giveBack(grown)
  t.not(pool.borrow(), grown)
})

t.test('a pool keeps a bounded number of mailboxes', async t => {
  const pool = new MailboxPool()
  const lent = new Set(Array.from({ length: 5_000 }, () => pool.borrow()))
  for (const mailbox of lent) pool.giveBack(mailbox)
  const again = Array.from({ length: 5_000 }, () => pool.borrow())
  t.equal(again.filter(mailbox => lent.has(mailbox)).length, 1_024)
})
