/** Which pictures are asked for: what the app shows, who spoke last, and what the line carries. */

import t from 'tap'
import { type Picture, Pictures } from '../../../src/app/media/pictures.ts'

const camera = (feed: string, isOn = true): Picture => ({ feed, name: 'camera', isOn })
const screen = (feed: string): Picture => ({ feed, name: 'screen', isOn: true })

/** Feeds whose pictures come. */
function coming(pictures: Pictures, all: readonly Picture[]): string[] {
  return all
    .filter(({ feed, name }) => pictures.wanted(feed, name).send)
    .map(({ feed, name }) => `${feed} ${name}`)
}

/** So many samples of a line that is full. */
function fill(pictures: Pictures, samples: number): void {
  for (let at = 0; at < samples; at++) {
    pictures.adaptation.take({
      atMs: at * 250,
      pictures: pictures.count,
      hasSmall: true,
      kbits: 60,
      soundKbits: 60,
      lost: 0.2,
      concealed: 0.2,
      delayMs: 300,
    })
  }
}

t.test(
  'the number of pictures is limited: the latest speaker first, then screens, then further cameras',
  async t => {
    let speakers: string[] = []
    const pictures = new Pictures(3, () => speakers)
    const all = ['1', '2', '3', '4', '5'].map(feed => camera(feed))
    pictures.decide(all)
    t.same(coming(pictures, all), ['1 camera', '2 camera', '3 camera'])
    t.ok(pictures.isPaused('4', 'camera'))
    speakers = ['5', '4']
    const withScreen = [...all, screen('2')]
    pictures.decide(withScreen)
    t.same(coming(pictures, withScreen), ['4 camera', '5 camera', '2 screen'])
  },
)

t.test('what the app does not show is not asked for, and takes no place', async t => {
  const pictures = new Pictures(2, () => [])
  const all = [camera('1'), camera('2', false), camera('3'), camera('4')]
  pictures.resize('1', 'camera', 'none')
  pictures.resize('3', 'camera', 'small')
  pictures.decide(all)
  t.same(coming(pictures, all), ['2 camera', '3 camera', '4 camera'], 'one that is off costs nothing')
  t.equal(pictures.count, 2)
  t.ok(pictures.isPaused('1', 'camera'))
  t.notOk(pictures.isPaused('2', 'camera'))
  t.equal(pictures.wanted('3', 'camera').substream, 0)
  t.equal(pictures.wanted('4', 'camera').substream, 1)
})

t.test('between two there is one size alone', async t => {
  const pictures = new Pictures(9, () => [])
  pictures.resize('1', 'camera', 'small')
  pictures.decide([camera('1')])
  t.equal(pictures.wanted('1', 'camera').substream, 1)
  pictures.decide([camera('1'), camera('2', false)])
  t.equal(pictures.wanted('1', 'camera').substream, 0)
})

t.test('on a line that carries sound alone, not even the speaker’s picture comes', async t => {
  const pictures = new Pictures(9, () => ['2'])
  const all = [camera('1'), camera('2')]
  pictures.decide(all)
  fill(pictures, 2)
  pictures.decide(all)
  t.same(coming(pictures, all), [])
  t.same(
    all.map(({ feed, name }) => pictures.isPaused(feed, name)),
    [true, true],
  )
})
