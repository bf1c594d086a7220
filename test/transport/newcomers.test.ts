/** New connections and CONNECTs wait for a turn when many come at once, and connected ones are served between. */

import { connect } from 'node:net'
import { setImmediate as nextLook } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Newcomers } from '../../src/transport/newcomers.ts'
import { tlsFile, tlsPath } from '../support/tls.ts'
import { joinSockets, serveSockets } from '../support/web-sockets.ts'

/** Turns of the event loop that the test gives. */
class Turns {
  #next: (() => void)[] = []
  readonly wait = (run: () => void): void => void this.#next.push(run)

  give(): void {
    for (const run of this.#next.splice(0)) run()
  }
}

const oneNetwork = () => 'network'

class FakeConnection {
  isPaused = false
  starts = 0
  abort: () => void = () => undefined

  pause(): void {
    this.isPaused = true
  }

  resume: () => void = () => {
    this.isPaused = false
    this.starts++
  }

  onAborted(handler: () => void): void {
    this.abort = handler
  }
}

t.test('a turn reads so many new connections; later ones wait in their order', async t => {
  const turns = new Turns()
  const newcomers = new Newcomers(2, turns.wait)
  const connections = Array.from({ length: 5 }, () => new FakeConnection())
  for (const connection of connections) newcomers.admit(connection, oneNetwork)
  const paused = () => connections.map(({ isPaused }) => isPaused)
  t.same(paused(), [false, false, true, true, true])
  t.equal(newcomers.waiting, 3)
  turns.give()
  t.same(paused(), [false, false, false, false, true])
  turns.give()
  t.same(paused(), [false, false, false, false, false])
  const [late, later] = [new FakeConnection(), new FakeConnection()]
  newcomers.admit(late, oneNetwork)
  newcomers.admit(later, oneNetwork)
  t.same([late.isPaused, later.isPaused], [false, true], 'the last one of the turn before counts')
})

t.test('a quiet server reads each new connection at once', async t => {
  const turns = new Turns()
  const newcomers = new Newcomers(1, turns.wait)
  for (let at = 0; at < 3; at++) {
    const connection = new FakeConnection()
    newcomers.admit(connection, oneNetwork)
    t.notOk(connection.isPaused)
    turns.give()
    turns.give()
  }
})

t.test('CONNECTs go before new connections, and count with them', async t => {
  const turns = new Turns()
  const newcomers = new Newcomers(2, turns.wait)
  const connections = Array.from({ length: 4 }, () => new FakeConnection())
  for (const connection of connections) newcomers.admit(connection, oneNetwork)
  const ran: number[] = []
  for (let at = 0; at < 3; at++) newcomers.run(() => ran.push(at))
  t.same(ran, [])
  turns.give()
  t.same(ran, [0, 1])
  t.equal(newcomers.waiting, 3)
  turns.give()
  t.same(ran, [0, 1, 2])
  t.same(
    connections.map(({ isPaused }) => isPaused),
    [false, false, false, true],
  )
})

t.test('a crowd from one network keeps other networks waiting for a turn at most', async t => {
  const turns = new Turns()
  const newcomers = new Newcomers(2, turns.wait)
  const started: string[] = []
  const come = (name: string, network: string) => {
    const connection = new FakeConnection()
    newcomers.admit(connection, () => network)
    connection.resume = () => started.push(name)
  }
  for (let at = 1; at <= 6; at++) come(`crowd ${at}`, 'crowd')
  come('lone', 'lone')
  turns.give()
  t.same(started, ['crowd 3', 'lone'])
  turns.give()
  turns.give()
  t.same(started, ['crowd 3', 'lone', 'crowd 4', 'crowd 5', 'crowd 6'])
  t.equal(newcomers.waiting, 0)
})

t.test('a prefix of IPv6 has as many turns as it stands for clients', async t => {
  for (const [turnsOfOthers, networkOf] of [
    [4, at => [0x20, 1, 0xd, 0xb8, 0, 0, 7, at]],
    [16, at => [0x20, 1, 0xd, 0xb8, 0, 0, at, 0]],
    [32, at => [0x20, 1, 0xd, 0xb8, 0, at, 0, 0]],
    [64, at => [0x20, 1, 0xd, 0xb8, at, 0, 0, 0]],
    // Many small networks with zeros in their last octets share fewer.
    [32, at => [0x20, 1, 0xd, 0xb8, at >> 3, 0, at << 5, 0]],
  ] as const satisfies readonly (readonly [number, (at: number) => readonly number[]])[]) {
    const turns = new Turns()
    const newcomers = new Newcomers(1, turns.wait)
    const started: string[] = []
    const come = (name: string, network: string) => {
      const connection = new FakeConnection()
      newcomers.admit(connection, () => network)
      connection.resume = () => started.push(name)
    }
    come('first', 'any')
    for (let at = 0; at < 256; at++) come('crowd', Buffer.from(networkOf(at)).toString('latin1'))
    come('lone', 'lone')
    while (newcomers.waiting > 0) turns.give()
    t.equal(started.indexOf('lone'), turnsOfOthers)
    t.equal(started.length, 257)
  }
})

t.test('a connection that ended while it waited is not touched', async t => {
  const turns = new Turns()
  const newcomers = new Newcomers(1, turns.wait)
  const [first, gone, next] = [new FakeConnection(), new FakeConnection(), new FakeConnection()]
  for (const connection of [first, gone, next]) newcomers.admit(connection, oneNetwork)
  gone.abort()
  turns.give()
  turns.give()
  t.equal(gone.starts, 0)
  t.equal(next.starts, 1)
})

for (const isTls of [false, true]) {
  t.test(`over ${isTls ? 'TLS' : 'TCP'} a client waits with all that it has sent`, async t => {
    const { turns, newcomers, server, resident } = await openServer(t, isTls)
    const upgraded: string[] = []
    const joining = ['one', 'two'].map(name =>
      joinSockets(server.port, isTls ? CA : undefined).then(client => {
        upgraded.push(name)
        return client
      }),
    )
    // The first one needs no turn.
    await Promise.race(joining)
    while (newcomers.waiting < 1) await nextLook()
    resident.client.socket.send('still there?')
    await resident.session.until(({ text }) => text.includes('still there?'))
    t.equal(upgraded.length, 1)
    turns.give()
    await Promise.all(joining)
    t.equal(newcomers.waiting, 0)
  })
}

t.test('a client that goes while it waits, and a server that stops, leave nothing to be touched', async t => {
  const { turns, newcomers, server, resident } = await openServer(t, false)
  const sockets = Array.from({ length: 4 }, () => connect(server.port, '127.0.0.1'))
  while (newcomers.waiting < 3) await nextLook()
  for (const socket of sockets.slice(1, 2)) socket.resetAndDestroy()
  turns.give()
  resident.client.socket.send('still there?')
  await resident.session.until(({ text }) => text.includes('still there?'))
  server.server.close()
  turns.give()
  turns.give()
  for (const socket of sockets) socket.destroy()
  t.same(server.faults, [])
})

/** A server that reads one new connection in a turn, and a client that is connected. */
async function openServer(t: Test, isTls: boolean) {
  const turns = new Turns()
  const newcomers = new Newcomers(1, turns.wait)
  const server = await serveSockets(t, { parts: { newcomers, ...(isTls ? { tls: TLS } : {}) } })
  const client = await joinSockets(server.port, isTls ? CA : undefined)
  t.teardown(() => client.socket.terminate())
  const session = await server.sessions.at(0)
  // Ends the resident's turn.
  turns.give()
  return { turns, newcomers, server, resident: { client, session } }
}

const TLS = { certificateFile: tlsPath('server.crt'), keyFile: tlsPath('server.key') }
const CA = Buffer.from(tlsFile('ca.crt'))
