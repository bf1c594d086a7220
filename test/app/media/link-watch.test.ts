/** How well each person, and this device, gets through, from one look to the next. */

import t from 'tap'
import { type HeardStream, LinkWatch } from '../../../src/app/media/link-watch.ts'
import type { OwnSample } from '../../../src/app/media/publisher.ts'

const STREAM = {
  packets: 0,
  lost: 0,
  bytes: 0,
  decoded: 0,
  freezes: 0,
  played: 0,
  concealed: 0,
  jitter: 0,
  level: 0,
}
/** Counts that a good stream adds from one look to the next. */
const WELL = { packets: 100, played: 96_000 }
const OWN = { level: 0, isBad: false, isSending: true, state: 'connected' as const }

interface Looked {
  /** Counts by stream, such as `7 microphone`. A stream that is off is not there. */
  readonly streams?: Readonly<Record<string, Partial<typeof STREAM>>>
  readonly own?: Partial<OwnSample> & { readonly isSilent?: boolean }
  readonly times?: number
}

/** Gives each change of quality, such as `7 poor`. */
function play(looks: readonly Looked[], watch?: LinkWatch): string[] {
  const told: string[] = []
  const links: LinkWatch = watch ?? new LinkWatch(feed => told.push(`${feed} ${links.qualityOf(feed)}`))
  const sums = new Map<string, HeardStream>()
  let reports = 0
  for (const { streams = {}, own = {}, times = 1 } of looks) {
    for (let count = 0; count < times; count++) {
      const heard = Object.entries(streams).map(([key, came]) => {
        const [feed, name] = key.split(' ') as [string, HeardStream['name']]
        const sum = { ...STREAM, ...sums.get(key), feed, name }
        for (const [what, more] of Object.entries(came)) sum[what as 'packets'] += more
        sums.set(key, sum)
        return sum
      })
      if (!own.isSilent) reports++
      links.measure(['7', '8'], heard, { ...OWN, ...own, reports })
    }
  }
  return told
}

t.test(
  'lost packets, made-up sound and a picture that stands still are poor, if not for a moment',
  async t => {
    const mic = '7 microphone'
    for (const bad of [{ lost: 10 }, { concealed: 20_000 }, { freezes: 1 }]) {
      const came = { [mic]: { ...WELL, ...bad } }
      t.same(
        play([{ streams: { [mic]: WELL } }, { streams: came }, { streams: { [mic]: WELL }, times: 9 }]),
        [],
      )
      t.same(
        play([
          { streams: came, times: 3 },
          { streams: { [mic]: WELL }, times: 9 },
        ]),
        ['7 poor', '7 good'],
      )
    }
  },
)

t.test('a person from whom nothing comes for two looks is lost, then poor, then good', async t => {
  const came = { '7 microphone': WELL, '8 camera': WELL }
  const silent = { '7 microphone': {}, '8 camera': WELL }
  const looks = [{ streams: came }, { streams: silent, times: 2 }, { streams: came, times: 3 }]
  t.same(play(looks), ['7 lost', '7 poor', '7 good'])
  t.same(play([{ streams: came }, { streams: silent }, { streams: came }, { streams: silent }]), [])
})

t.test('a muted person is not lost, nor one whose screen stands still', async t => {
  const looks = [
    { streams: { '7 microphone': WELL, '7 screen': WELL } },
    { streams: { '7 screen': {} }, times: 5 },
    { streams: { '7 microphone': {} } },
  ]
  t.same(play(looks), [])
})

t.test('while nothing reaches this device, the members keep their quality', async t => {
  const silent = { '7 microphone': {}, '8 microphone': {} }
  const came = { '7 microphone': WELL, '8 microphone': WELL }
  for (const own of [{ isSilent: true }, { state: 'disconnected' }] as const) {
    const looks = [
      { streams: came, times: 2 },
      { streams: silent, own, times: 5 },
      { streams: came, times: 3 },
    ]
    t.same(play(looks), ['own lost', 'own poor', 'own good'])
  }
  const muted = { isSilent: true, isSending: false }
  t.same(play([{ streams: came, own: muted, times: 5 }]), [], 'the gateway reports on nothing')
  t.same(play([{ own: { isSilent: true }, times: 5 }]), [], 'the browser counts no reports')
  t.same(play([{ own: { isBad: true }, times: 2 }]), ['own poor'])
})

t.test('a device to which nothing comes for long is to join anew, once', async t => {
  const deafOf = (feeds: readonly string[], own: Partial<OwnSample> = {}, isConnected = true) => {
    const watch = new LinkWatch(() => undefined)
    const streams = ['7', '8'].map(feed => ({ ...STREAM, feed, name: 'microphone' as const }))
    return [1, 2, 3, 4, 5, 6, 7].map(reports => {
      watch.measure(feeds, streams, { ...OWN, reports, ...own })
      return watch.isDeaf(feeds, isConnected)
    })
  }
  const fromAll = deafOf(['7', '8'])
  t.equal(fromAll.filter(Boolean).length, 1)
  t.equal(deafOf(['7', '8', '9']).filter(Boolean).length, 0, 'the third sends nothing')
  t.equal(deafOf(['7', '8'], {}, false).filter(Boolean).length, 0, 'a connection has its own time limit')
  t.equal(deafOf([], { reports: 1 }).filter(Boolean).length, 1, 'the gateway says nothing of what it gets')
  t.equal(deafOf([]).filter(Boolean).length, 0, 'alone')
})

t.test('out of the room the own link is lost at once', async t => {
  const told: string[] = []
  const watch: LinkWatch = new LinkWatch(feed => told.push(`${feed} ${watch.qualityOf(feed)}`))
  for (const isAway of [true, true, false]) watch.setAway(isAway)
  t.same(told, ['own lost', 'own good'])
})

t.test('who has gone is forgotten', async t => {
  const told: string[] = []
  const watch: LinkWatch = new LinkWatch(feed => told.push(feed))
  play([{ streams: { '7 microphone': WELL } }, { streams: { '7 microphone': {} }, times: 3 }], watch)
  t.equal(watch.qualityOf('7'), 'lost')
  watch.measure(['8'], [], { ...OWN, reports: 99 })
  t.equal(watch.qualityOf('7'), 'good')
})

t.test('only a microphone that is on is a voice', async t => {
  const watch = new LinkWatch(() => undefined)
  const loud = { ...STREAM, level: 0.3, feed: '7' }
  for (const _ of ['once', 'twice']) watch.listen([{ ...loud, name: 'camera' }], { ...OWN, reports: 0 })
  t.equal(watch.speaking.active, undefined)
  for (const _ of ['once', 'twice']) watch.listen([{ ...loud, name: 'microphone' }], { ...OWN, reports: 0 })
  t.equal(watch.speaking.active, '7')
  for (let look = 0; look < 5; look++) watch.listen([], { ...OWN, level: 0.3, reports: 0 })
  t.equal(watch.speaking.active, 'own')
})
