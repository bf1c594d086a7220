/** A new key need not wait once each other device in the call has it. */

import t from 'tap'
import { SeenEpochs } from '../../../src/app/media/seen-epochs.ts'

const ANN = { userId: '1', state: 'joined', feedIds: [10] } as const
const BOB = { userId: '2', state: 'joined', feedIds: [20, 21] } as const
const CAT = { userId: '3', state: 'joined', feedIds: [30] } as const
const DAN = { userId: '4', state: 'ringing' } as const
const EVE = { userId: '5', state: 'joined' } as const

t.test('all who have joined have a new key once a frame with it came from each', async t => {
  const seen = new SeenEpochs()
  const haveAll = (epoch: number) => seen.haveAll(epoch, [ANN, BOB, CAT, DAN], '1')
  const stories: readonly (readonly [feed: string, epoch: number, isWithAll: boolean])[] = [
    ['20', 1, false],
    ['20', 2, false],
    ['99', 2, false],
    ['30', 1, false],
    ['30', 2, true],
  ]
  for (const [feed, epoch, isWithAll] of stories) {
    seen.note(feed, epoch)
    t.equal(haveAll(2), isWithAll, `${feed} in epoch ${epoch}`)
  }
  t.equal(haveAll(3), false)
})

t.test('a device that sends nothing is not known to have it', async t => {
  const seen = new SeenEpochs()
  seen.note('20', 2)
  t.equal(seen.haveAll(2, [ANN, BOB, EVE], '1'), false)
})
