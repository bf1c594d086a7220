/** Parts of the simulator: its options, its gate, and its figures. */

import t from 'tap'
import { Figures } from '../../scripts/simulate/figures.ts'
import { Gate } from '../../scripts/simulate/gate.ts'
import { readSettings, shareTokenIn } from '../../scripts/simulate/settings.ts'

t.test('a share link is as good as its token', async t => {
  const token = 'c_IWsU7NkrCKk7SB7xEgmSvA'
  for (const text of [
    token,
    `http://127.0.0.1:8080/c/${token}`,
    `callsign://c/${token}`,
    `https://a.b/c/${token}?x=1`,
    `http://127.0.0.1:8080/dev/client#c=${token}&u=1`,
  ]) {
    t.equal(shareTokenIn(text), token)
  }
  for (const text of ['', 'http://127.0.0.1:8080/', 'c-1', 'xc_1']) t.throws(() => shareTokenIn(text))
})

t.test('without options there is one person of each behaviour, and with --control none yet', async t => {
  t.match(readSettings({}), { pace: 1, behaviours: { length: 5 }, url: 'http://127.0.0.1:8080' })
  t.same(readSettings({ control: true }).behaviours, [])
  t.same(readSettings({ control: true, people: 'drop' }).behaviours, ['drop'])
})

t.test('so many go through a gate at a time', async t => {
  const gate = new Gate(2)
  const inside: (() => void)[] = []
  const passing = [1, 2, 3].map(() => gate.through(() => new Promise<void>(resolve => inside.push(resolve))))
  t.equal(inside.length, 2)
  inside[0]!()
  await passing[0]
  t.equal(inside.length, 3)
  for (const leave of inside) leave()
  await Promise.all(passing)
  await t.rejects(gate.through(() => Promise.reject(new Error('no'))))
  t.equal(await gate.through(async () => 7), 7)
})

t.test('latencies are those of the interval, or of all calls', async t => {
  const figures = new Figures()
  t.equal(figures.latency, undefined)
  for (let ms = 1; ms <= 100; ms++) figures.rang(ms)
  t.match(figures.takeLatency(), { p50: 50, p99: 99 })
  t.equal(figures.takeLatency(), undefined)
  t.match(figures.latency, { p50: 50, p99: 99 })
  figures.fail('wrong key')
  figures.fail('wrong key')
  t.equal(figures.failed, 2)
})
