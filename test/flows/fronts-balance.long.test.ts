/** After all fronts have died, the first that comes back has every socket; it lets them go until they are spread, and no message is lost. */

import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { headerOf } from '../support/naive-stomp.ts'
import type { SocketClient } from '../support/socket-client.ts'
import { type WireDevice, WireServer } from '../support/wire-server.ts'

const PHONES = 80
const QUEUE = '/user/queue/dev.balance'
const PAUSE_MS = 25

/** Connects again whenever its connection ends, and acknowledges each message. */
class Phone {
  /** Messages that came. */
  readonly came = new Set<string>()
  /** Those that the server has taken. */
  readonly sent: string[] = []
  readonly #server: WireServer
  readonly #device: WireDevice
  #client: SocketClient | undefined
  #isOver = false

  constructor(server: WireServer, device: WireDevice) {
    this.#server = server
    this.#device = device
    void this.#stay()
  }

  get isConnected(): boolean {
    return this.#client !== undefined
  }

  /** Sends itself a message until the server has taken one. */
  async send(body: string): Promise<void> {
    for (;;) {
      const taken = this.#client?.send(QUEUE, body).then(
        () => true,
        () => false,
      )
      if ((await taken) === true) break
      await setTimeout(PAUSE_MS)
    }
    this.sent.push(body)
  }

  end(): void {
    this.#isOver = true
    this.#client?.destroy()
  }

  async #stay(): Promise<void> {
    while (!this.#isOver) {
      try {
        const client = await this.#server.connect('websocket', this.#device)
        client.onFrame = frame => {
          if (frame.command !== 'MESSAGE') return
          this.came.add(String(frame.body))
          client.write(`ACK\nid:${headerOf(frame, 'ack')}\n\n\0`)
        }
        await client.subscribe(QUEUE, 's', 'ack:client-individual\n')
        this.#client = client
        if (!client.isClosed) await once(client.socket, 'close')
      } catch {
        await setTimeout(PAUSE_MS)
      }
      this.#client = undefined
    }
  }
}

t.test('sockets that all came to one front are spread again, and no message is lost', async t => {
  const server = await WireServer.start(t, { people: PHONES, environment: { CALLSIGN_FRONTS: '2' } })
  const { running } = server
  const phones = (await server.devices(PHONES)).map(device => new Phone(server, device))
  t.teardown(() => {
    for (const phone of phones) phone.end()
  })
  const until = async (isSo: () => boolean | Promise<boolean>) => {
    while (!(await isSo())) await setTimeout(PAUSE_MS)
  }
  const pidsOf = (front: string) =>
    Array.from(
      running.stderr().matchAll(new RegExp(`"front-started","front":"${front}","pid":(\\d+)`, 'g')),
      ([, pid]) => Number(pid),
    )
  const counts = async () => {
    const text = await (await fetch(`${running.admin}/metrics`)).text()
    return Array.from(text.matchAll(/^callsign_connections\{process="front-\d"\} (\d+)$/gm), ([, count]) =>
      Number(count),
    )
  }
  const sendAll = (round: string) => Promise.all(phones.map(phone => phone.send(round)))
  const allAreThere = () => phones.every(phone => phone.isConnected)
  await until(allAreThere)
  await sendAll('before')

  const first = pidsOf('front-1').length
  for (const name of ['front-1', 'front-2']) process.kill(pidsOf(name).at(-1)!, 'SIGKILL')
  await until(() => !allAreThere())
  let killed = pidsOf('front-2').length
  await until(() => {
    // The second one ends as often as it starts, until all are at the first.
    const pids = pidsOf('front-2')
    for (const pid of pids.slice(killed)) process.kill(pid, 'SIGKILL')
    killed = pids.length
    return pidsOf('front-1').length > first && allAreThere()
  })
  t.same(await counts(), [PHONES], 'all are at the first that came back')

  let isSpread = false
  const rounds = (async () => {
    for (let round = 0; !isSpread; round++) await sendAll(`meanwhile ${round}`)
  })()
  await until(async () => {
    const each = await counts()
    return each.length === 2 && Math.max(...each) <= (1.25 * PHONES) / 2 + 1 && allAreThere()
  })
  isSpread = true
  await rounds
  await sendAll('after')
  await until(() => phones.every(({ came, sent }) => sent.every(body => came.has(body))))
  t.pass('every message that the server took came')

  t.ok((await server.figure('callsign_stomp_endings_total{reason="moved"}')) >= PHONES / 3)
  t.same(server.faults(), [])
})
