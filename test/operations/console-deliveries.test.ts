/** The last codes, messages and pushes of a development server, for people on the terminal and for programs. */

import t from 'tap'
import { Deliveries } from '../../src/operations/console/deliveries.ts'
import { routeAnswer } from '../support/route-answer.ts'

function openDeliveries() {
  let nowMs = Date.UTC(2026, 0, 1)
  const printed: string[] = []
  const deliveries = new Deliveries(
    () => nowMs,
    line => printed.push(line),
  )
  const [inbox, pushes] = deliveries.routes()
  return {
    printed,
    tick: (ms: number) => {
      nowMs += ms
    },
    send: (to: string, otp: string | undefined) =>
      deliveries.record({ channel: to.includes('@') ? 'mail' : 'sms', to, text: `to ${to}`, otp }),
    push: (userId: bigint) =>
      deliveries.record({
        channel: 'push',
        kind: 'call_invitation',
        provider: 'fcm',
        headers: { priority: 'high' },
        userId,
        deviceId: 7n,
        payload: { text: 'ü' },
      }),
    inbox: (query = '') => routeAnswer(inbox!, { query }),
    pushes: (query = '') => routeAnswer(pushes!, { query }),
  }
}

t.test('the inbox has the newest first, of everybody or of one address', async t => {
  const { send, inbox, tick } = openDeliveries()
  send('ann@example.org', '111111')
  tick(1_000)
  send('+15550100', '222222')
  send('Ann@example.org', undefined)
  const at = '2026-01-01T00:00:01.000Z'
  t.same(await inbox(), {
    items: [
      { channel: 'mail', to: 'Ann@example.org', text: 'to Ann@example.org', at },
      { channel: 'sms', to: '+15550100', text: 'to +15550100', otp: '222222', at },
      {
        channel: 'mail',
        to: 'ann@example.org',
        text: 'to ann@example.org',
        otp: '111111',
        at: '2026-01-01T00:00:00.000Z',
      },
    ],
  })
  t.match(await inbox('to=ANN@example.org'), {
    items: [{ to: 'Ann@example.org' }, { to: 'ann@example.org' }],
  })
  for (const query of ['to=+15550100', 'to=%2B15550100']) {
    t.match(await inbox(query), { items: [{ otp: '222222' }] }, query)
  }
  t.same(await inbox('to=nobody'), { items: [] })
})

t.test('the pushes are whole, with their size, of everybody or of one user', async t => {
  const { push, pushes } = openDeliveries()
  push(1n)
  push(2n)
  const item = { kind: 'call_invitation', provider: 'fcm', headers: { priority: 'high' }, deviceId: '7' }
  const rest = { payload: { text: 'ü' }, bytes: 13, at: '2026-01-01T00:00:00.000Z' }
  t.same(await pushes('userId=1'), { items: [{ ...item, userId: '1', ...rest }] })
  t.match(await pushes(), { items: [{ userId: '2' }, { userId: '1' }] })
})

t.test('the last thousand of each are kept', async t => {
  const { send, push, inbox, pushes } = openDeliveries()
  for (let count = 1; count <= 1_200; count++) {
    send('ann@example.org', String(count))
    push(BigInt(count))
  }
  const letters = (await inbox()).items
  t.match([letters.length, letters[0].otp, letters[999].otp], [1_000, '1200', '201'])
  t.equal((await pushes()).items.length, 1_000)
})

t.test('codes go to the terminal, a few in a second', async t => {
  const { send, printed, tick } = openDeliveries()
  send('ann@example.org', '111111')
  send('ann@example.org', undefined)
  t.same(printed.splice(0), ['  code for ann@example.org: 111111\n'])
  for (let count = 0; count < 1_000; count++) send('bob@example.org', '222222')
  t.equal(printed.length, 5)
  t.equal(printed.at(-1), '  and more codes: GET /dev/inbox\n')
  tick(1_000)
  send('carol@example.org', '333333')
  t.equal(printed.at(-1), '  code for carol@example.org: 333333\n')
})
