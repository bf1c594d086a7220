import t from 'tap'
import { Watermark } from '../src/watermark.ts'

/** Notes in `ended` how each wait ends. */
function open(reached?: number) {
  const watermark = new Watermark(reached)
  const ended: string[] = []
  const wait = (number: number) =>
    void watermark.wait(number).then(
      () => ended.push(`${number}`),
      (error: Error) => ended.push(`${number} ${error.message}`),
    )
  return { watermark, ended, wait }
}

const settled = () => new Promise(resolve => setImmediate(resolve))

t.test('waits end once the counter reaches their number, whatever the order in which they came', async t => {
  const { watermark, ended, wait } = open()
  for (const number of [3, 1, 2, 2]) wait(number)
  await settled()
  t.same(ended, [])
  watermark.reach(2)
  await settled()
  t.same(ended, ['1', '2', '2'])
  t.ok(watermark.isAwaited)
  watermark.reach(7)
  await settled()
  t.same(ended, ['1', '2', '2', '3'])
  t.notOk(watermark.isAwaited)
})

t.test('a number that is reached is not waited for', async t => {
  const { watermark, ended, wait } = open(4)
  wait(4)
  t.notOk(watermark.isAwaited)
  await settled()
  t.same(ended, ['4'])
})

t.test('the counter never falls', async t => {
  const { watermark } = open(4)
  watermark.reach(3)
  t.equal(watermark.reached, 4)
})

t.test('numbers that are given up end their waits and are not reached', async t => {
  const { watermark, ended, wait } = open()
  for (const number of [1, 2]) wait(number)
  t.ok(watermark.giveUp(1))
  t.notOk(watermark.giveUp(1), 'nothing is left to give up')
  wait(1)
  await settled()
  t.same(ended, ['1'])
  t.equal(watermark.reached, 0)
  watermark.giveUp(Number.POSITIVE_INFINITY)
  await settled()
  t.same(ended, ['1', '2', '1'])
})

t.test('waits below a number are refused, and the others go on', async t => {
  const { watermark, ended, wait } = open(Number.NEGATIVE_INFINITY)
  for (const number of [5, 6]) wait(number)
  watermark.refuseBelow(6, new Error('is late'))
  await settled()
  t.same(ended, ['5 is late'])
  watermark.reach(6)
  await settled()
  t.same(ended, ['5 is late', '6'])
})
