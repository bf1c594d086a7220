/** The SDK with a WebSocket like the one in React Native up to 0.85, which cuts texts at a NUL. */

import t from 'tap'
import { WebSocket } from 'ws'
import { settingsFor } from '../support/call-people.ts'
import { openServer } from '../support/open-server.ts'
import { befriend, newPerson } from '../support/whole-apps.ts'

class CuttingSocket {
  onopen: ((event: never) => unknown) | null = null
  onmessage: ((event: never) => unknown) | null = null
  onclose: ((event: never) => unknown) | null = null
  onerror: ((event: never) => unknown) | null = null
  readonly #socket: WebSocket

  constructor(url: string, protocols: string[]) {
    const socket = new WebSocket(url, protocols)
    this.#socket = socket
    socket.binaryType = 'arraybuffer'
    socket.onopen = event => this.onopen?.(event as never)
    socket.onmessage = ({ data }) => this.onmessage?.({ data: cut(data) } as never)
    socket.onclose = event => this.onclose?.(event as never)
    socket.onerror = event => this.onerror?.(event as never)
  }

  send(data: string | Uint8Array): void {
    this.#socket.send(cut(data) as string | Uint8Array)
  }

  close(): void {
    this.#socket.close()
  }
}

function cut(data: unknown): unknown {
  return typeof data === 'string' ? data.split('\0', 1)[0] : data
}

t.test('two people call each other on phones', async t => {
  const navigator = { value: { product: 'ReactNative' }, configurable: true }
  t.intercept(globalThis as { navigator?: unknown }, 'navigator', navigator)
  const server = await openServer({ dataFolder: t.testdir(), environment: settingsFor(2) })
  t.teardown(() => server.end())
  const webSocket = CuttingSocket
  const ann = await newPerson(t, server.http, 0, { webSocket })
  const bob = await newPerson(t, server.http, 1, { webSocket })
  const added = ann.me.once('contact_added')
  await befriend(ann, bob)
  t.match(await added, { displayName: 'Person 1' })
  const ringing = bob.me.once('ringing')
  const call = await ann.me.call([bob.me.userId!])
  const incoming = await ringing
  await incoming.answer()
  t.equal(incoming.fingerprint, call.fingerprint)
  const ended = incoming.once('ended')
  await call.end()
  t.same(await ended, { reason: 'hangup' })
  t.same([...ann.errors, ...bob.errors], [])
})
