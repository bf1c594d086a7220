/** The programs of docs/protocol/socket.md as a page's reader runs them: they connect by @stomp/stompjs, and hear of a refused SEND. */

import { Client } from '@stomp/stompjs'
import t from 'tap'
import WebSocket from 'ws'
import { WireServer } from '../support/wire-server.ts'
import { blocksOf } from '../support/your-users.ts'

const NAMES = [
  ...['Client', 'freshAccessToken', 'onRefusal', 'onEvent', 'refused', 'carriedOut'],
  ...['callId', 'encryptedAESKeys', 'connected'],
]

t.test('a device connects, and a refused SEND comes to its queue of errors', async t => {
  const server = await WireServer.open(t, { people: 1 })
  const [device] = await server.devices(1)
  Object.assign(globalThis, { WebSocket })
  const [connecting = '', sending = ''] = blocksOf('protocol/socket.md')
    .filter(({ language }) => language === 'js')
    .map(({ text }) => text.replace('wss://call.example.org', server.running.http.replace('http', 'ws')))
  const program = new Function(
    ...NAMES,
    `${connecting}
    const subscribe = client.onConnect
    client.onConnect = () => { subscribe(); connected(); ${sending} }
    client.activate()
    return client`,
  )
  const events: unknown[] = []
  const refusal = await new Promise((resolve, reject) => {
    const client: Client = program(
      Client,
      async () => device!.token,
      () => {},
      (message: unknown) => events.push(message),
      (receiptId: string, code: string) => resolve({ receiptId, code }),
      () => reject(new Error('a SEND to no call was carried out')),
      ...['7', {}, () => t.comment('connected')],
    )
    t.teardown(() => client.deactivate())
  })
  t.same(refusal, { receiptId: 'keys-2', code: 'CALL_NOT_FOUND' })
})
