/**
 * What waits, over real sockets: the server in this process, with its clock in our hands. Silence, expiry, clients that
 * are there no longer, and those that read too slowly for too long.
 */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { HttpServer } from '../../src/transport/http.ts'
import { OpenConnections } from '../../src/transport/open-connections.ts'
import { StompTcpServer } from '../../src/transport/stomp-tcp.ts'
import { newDevice, newSession, newUser } from '../support/application.ts'
import { connectFrame, sendFrame } from '../support/naive-client.ts'
import { headerOf } from '../support/naive-stomp.ts'
import { builtProgram, spawnBound } from '../support/programs.ts'
import { type Carrier, SocketClient, webSocketFrame } from '../support/socket-client.ts'
import { openTestApi, type TestApi } from '../support/test-api.ts'
import { CARRIERS } from '../support/wire-server.ts'

const CLOCK_MS = 20

interface Served extends TestApi {
  readonly sockets: OpenConnections
  readonly ports: Readonly<Record<Carrier, number>>
  /** A new user's access token. */
  newToken(): Promise<string>
  open(carrier: Carrier): Promise<SocketClient>
  connect(carrier: Carrier, token: string, lines?: string): Promise<SocketClient>
}

async function serve(t: Test): Promise<Served> {
  const whole = await openTestApi(t)
  // Besides what tests move it by, the clock goes on.
  const ticking = setInterval(() => whole.world.tick(CLOCK_MS), CLOCK_MS)
  const sockets = new OpenConnections({ lingerMs: 200 })
  const parts = { accept: whole.signalling.accept, connections: sockets }
  const onFault = (error: unknown) => t.fail(`a fault: ${error}`)
  const http = new HttpServer({ routes: [], webSocket: parts, onRefused: () => undefined, onFault })
  const tcp = new StompTcpServer({ ...parts, onFault })
  t.teardown(() => {
    clearInterval(ticking)
    http.close()
    tcp.close()
  })
  const ports = { websocket: await http.listen('127.0.0.1', 0), tcp: await tcp.listen('127.0.0.1', 0) }
  return {
    ...whole,
    sockets,
    ports,
    open: carrier => SocketClient.open(carrier, ports[carrier]),
    connect: (carrier, token, lines) => SocketClient.connect(carrier, ports[carrier], token, '1.2', lines),
    async newToken() {
      const { userId } = await newUser(whole.world)
      const { deviceId } = await newDevice(whole.world, userId)
      return (await newSession(whole.world, userId, deviceId)).token
    },
  }
}

/** The code that a connection ends with, which is not to be seen over TCP. */
function coded(carrier: Carrier, code: number): number {
  return carrier === 'tcp' ? 1005 : code
}

t.test('C-12, C-13: who has not said CONNECT after ten seconds is closed', async t => {
  const house = await serve(t)
  for (const carrier of CARRIERS) {
    const [silent, dribbling] = [await house.open(carrier), await house.open(carrier)]
    dribbling.write('CONNECT\naccept-ver')
    await house.advance(6_000)
    dribbling.write('sion:1.2\n')
    const innocent = await house.connect(carrier, await house.newToken())
    await innocent.send('/topic/dev.t', 'x')
    t.notOk(silent.isClosed || dribbling.isClosed)
    await house.advance(4_100)
    for (const peer of [silent, dribbling]) {
      t.equal(await peer.ending(), `connect_timeout ${coded(carrier, 4408)}`)
    }
    await innocent.disconnect()
  }
})

t.test(
  'D-04, D-07, D-08: a client that promised beats and is silent is gone; pings are no beats',
  async t => {
    const house = await serve(t)
    for (const carrier of CARRIERS) {
      const beating = 'heart-beat:1000,1000\n'
      const [silent, pinging, talking] = [
        await house.connect(carrier, await house.newToken(), beating),
        await house.connect(carrier, await house.newToken(), beating),
        await house.connect(carrier, await house.newToken(), beating),
      ]
      for (let second = 10; second <= 20; second += 10) {
        await house.advance(10_000)
        if (carrier === 'websocket') {
          pinging.socket.write(webSocketFrame(0x89, 'p'))
          await pinging.until(() => pinging.pongs === second / 10)
        }
        await silent.until(() => silent.beats === second / 10)
        await talking.send('/topic/dev.t', 'x')
        t.notOk(silent.isClosed, `open after ${second} s`)
      }
      await house.advance(6_100)
      for (const peer of [silent, pinging]) {
        t.equal(await peer.ending(), `heart_beat_missed ${coded(carrier, 4408)}`)
      }
      await talking.disconnect()
    }
  },
)

t.test('C-16: a token that expires cuts no connection; the next CONNECT needs a fresh one', async t => {
  const house = await serve(t)
  for (const carrier of CARRIERS) {
    const token = await house.newToken()
    const living = await house.connect(carrier, token)
    await living.subscribe('/user/queue/dev.t')
    await house.advance(3_600_000)
    await living.send('/user/queue/dev.t', 'still here')
    t.equal(String((await living.message()).body), 'still here')
    const late = await house.open(carrier)
    late.write(connectFrame(token))
    t.equal(await late.ending(), `token_expired ${coded(carrier, 4401)}`)
    t.equal(headerOf(late.frames[0], 'retry'), 'refresh')
    await living.send('/user/queue/dev.t', 'and still')
    await living.disconnect()
  }
})

/** A client that is stopped when it has connected: nothing is read or closed any more, and its socket stays. */
async function halfOpenClient(t: Test, port: number, token: string): Promise<ChildProcess> {
  const script = builtProgram('test/support/half-open-client')
  const child = spawnBound(process.execPath, [script, `${port}`, token], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const [bytes] = await once(child.stdout!, 'data')
  t.equal(String(bytes), 'CONNECTED\n')
  child.kill('SIGSTOP')
  return child
}

t.test('a client that is there no longer is let go, though its socket never closes', async t => {
  const house = await serve(t)
  const token = await house.newToken()
  const innocent = await house.connect('websocket', await house.newToken())
  await halfOpenClient(t, house.ports.tcp, token)
  t.equal(house.connections.count, 2)
  await house.advance(26_200)
  await innocent.send('/topic/dev.t', 'x')
  while (house.sockets.size > 1) await innocent.send('/topic/dev.t', 'x')
  t.equal(house.connections.count, 1)
  const back = await house.connect('tcp', token)
  await back.disconnect()
  await innocent.disconnect()
})

t.test('a client that lags for ten seconds hears that it was slow', async t => {
  const house = await serve(t)
  for (const carrier of CARRIERS) {
    const [lazy, sender] = [
      await house.connect(carrier, await house.newToken()),
      await house.connect('tcp', await house.newToken()),
    ]
    await lazy.subscribe('/topic/dev.t')
    lazy.keepTail()
    lazy.pause()
    while (house.sockets.bufferedBytes < 400 * 1024) {
      sender.write(sendFrame('/topic/dev.t', 'x'.repeat(100_000)))
      await sender.send('/topic/dev.other', 'x')
    }
    await house.advance(7_000)
    await sender.send('/topic/dev.other', 'x')
    t.notOk(lazy.isClosed)
    await house.advance(3_100)
    while (house.connections.count > 1) await sender.send('/topic/dev.other', 'x')
    lazy.resume()
    await lazy.closed()
    t.match(
      lazy.tail.subarray(lazy.tail.lastIndexOf('ERROR\n')).toString('latin1'),
      /^ERROR\n[^\0]*reason:slow\n/,
    )
    await sender.disconnect()
  }
})
