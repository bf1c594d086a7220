/** The agreement on heart-beats, and when a beat is due or a peer gone. */
import t from 'tap'
import { BEAT, beatDueAtMs, negotiateHeartBeat, silentAtMs } from '../../src/stomp/heart-beat.ts'
import { codeOf } from '../support/codes.ts'

t.test('each direction runs at the slower of what both sides can do', async t => {
  const cases: [string | undefined, number, number][] = [
    ['0,0', 0, 0],
    [undefined, 0, 0],
    ['1,1', 10_000, 26_000],
    ['1000,2000', 10_000, 26_000],
    ['20000,30000', 30_000, 51_000],
    ['0,20000', 20_000, 0],
    ['20000,0', 0, 51_000],
    ['60000,60000', 60_000, 151_000],
  ]
  for (const [header, beatEveryMs, silenceMsMax] of cases) {
    const agreed = negotiateHeartBeat(header, '1.2')
    t.same(agreed, { beatEveryMs, silenceMsMax, header: '10000,10000' }, String(header))
    t.same(negotiateHeartBeat(header, '1.1'), agreed)
  }
})

t.test('beats are sent at least once a minute, and none are asked for that come more rarely', async t => {
  t.same(negotiateHeartBeat('60001,3600000', '1.2'), {
    beatEveryMs: 60_000,
    silenceMsMax: 0,
    header: '10000,0',
  })
})

t.test('another offer is kept within its bounds', async t => {
  t.same(negotiateHeartBeat('1,1', '1.2', 1_000), {
    beatEveryMs: 1_000,
    silenceMsMax: 3_500,
    header: '1000,1000',
  })
  t.throws(() => negotiateHeartBeat('1,1', '1.2', 999))
  t.throws(() => negotiateHeartBeat('1,1', '1.2', 60_001))
})

t.test('a blank after the comma is read', async t => {
  t.same(negotiateHeartBeat('4000, 20000', '1.2'), negotiateHeartBeat('4000,20000', '1.2'))
})

t.test('1.0 has no beats, whatever its header says', async t => {
  for (const header of ['1000,1000', 'abc', undefined]) {
    t.same(negotiateHeartBeat(header, '1.0'), { beatEveryMs: 0, silenceMsMax: 0, header: undefined })
  }
})

t.test('a header that is not two numbers is refused', async t => {
  const bad = [
    'abc',
    '',
    ',',
    '1',
    '1,',
    ',1',
    '-1,5',
    '5,-1',
    '1,2,3',
    ' 1,2',
    '1 ,2',
    '1,  2',
    '1,2 ',
    '1.5,2',
    '01,2',
    '+1,2',
  ]
  const headers = [...bad, '1e3,1', '1,2\n', '1234567890,1', '٣,٣']
  const accepted = headers.filter(header => codeOf(() => negotiateHeartBeat(header, '1.2')) !== 'MALFORMED')
  t.same(accepted, [])
})

t.test('due times follow the last octet that was sent or heard', async t => {
  const agreed = negotiateHeartBeat('20000,30000', '1.2')
  t.equal(beatDueAtMs(agreed, 1_000), 31_000)
  t.equal(silentAtMs(agreed, 1_000), 52_000)
  const none = negotiateHeartBeat('0,0', '1.2')
  t.equal(beatDueAtMs(none, 1_000), Number.POSITIVE_INFINITY)
  t.equal(silentAtMs(none, 1_000), Number.POSITIVE_INFINITY)
})

t.test('a beat is a single LF', async t => {
  t.same([...BEAT], [0x0a])
})
