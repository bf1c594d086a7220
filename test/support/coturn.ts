/**
 * A real relay, Debian's coturn, on loopback: a server with the secrets asked for, its own test client, and a peer that
 * sends back what the relay brings it.
 */

import type { ChildProcess } from 'node:child_process'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from './free-port.ts'
import { type Outcome, runProgram, skipWithout, spawnBound } from './programs.ts'
import { PROJECT_ROOT } from './vectors.ts'

const SERVER = '/usr/bin/turnserver'
const CLIENT = '/usr/bin/turnutils_uclient'

/** Why a test that needs a relay is skipped, or false. */
export const skipWithoutCoturn = skipWithout([SERVER, CLIENT], 'coturn')

export interface Coturn {
  readonly port: number
  readonly tlsPort: number
  /** Resolves when its log has this text. */
  readonly says: (text: string) => Promise<void>
}

/** Runs until the end of the test, its files in the folder. Knows all the secrets; `further` are options of its own. */
export async function startCoturn(
  t: Test,
  folder: string,
  secrets: readonly string[],
  further: readonly string[] = [],
): Promise<Coturn> {
  const [port, tlsPort] = [await freePort(), await freePort()]
  const tls = join(PROJECT_ROOT, 'test/support/tls')
  const options = [
    'listening-ip=127.0.0.1',
    ...(further.some(option => option.startsWith('relay-ip=')) ? [] : ['relay-ip=127.0.0.1']),
    `listening-port=${port}`,
    `tls-listening-port=${tlsPort}`,
    'use-auth-secret',
    ...secrets.map(secret => `static-auth-secret=${secret}`),
    'realm=callsign.test',
    `cert=${join(tls, 'server.crt')}`,
    `pkey=${join(tls, 'server.key')}`,
    'allow-loopback-peers',
    'no-multicast-peers',
    'no-cli',
    'log-file=stdout',
    'simple-log',
    'verbose',
    `pidfile=${join(folder, 'pid')}`,
    `userdb=${join(folder, 'turndb')}`,
    ...further,
  ]
  const child = spawnBound(SERVER, ['-n', ...options.map(option => `--${option}`)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => end(child))
  const says = listenTo(child)
  await says('turn server id=0 created')
  return { port, tlsPort, says }
}

export interface Relaying {
  readonly username: string
  readonly password: string
  readonly isTls?: boolean
}

/** Has two messages go to the peer and back by the relay; the client ends with 0 if they did. */
export function relayMessages(
  { port, tlsPort }: Coturn,
  peer: Peer,
  { username, password, isTls }: Relaying,
): Promise<Outcome> {
  const authority = join(PROJECT_ROOT, 'test/support/tls/ca.crt')
  const way = isTls ? ['-S', '-t', '-E', authority, '-p', String(tlsPort)] : ['-p', String(port)]
  const load = ['-n', '2', '-m', '1', '-c', '-z', '5', '-v', '-e', '127.0.0.1', '-r', String(peer.port)]
  return runProgram(CLIENT, [...way, ...load, '-u', username, '-w', password, '127.0.0.1'])
}

export interface Peer {
  readonly port: number
  /** How many messages came. */
  readonly count: () => number
}

/** Sends every message back where it came from. */
export async function startPeer(t: Test): Promise<Peer> {
  const socket: Socket = createSocket('udp4')
  let count = 0
  socket.on('message', (bytes, { address, port }) => {
    count++
    socket.send(bytes, port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.teardown(() => new Promise<void>(resolve => socket.close(() => resolve())))
  return { port: socket.address().port, count: () => count }
}

/** Resolves when the program has said a text, now or before; rejects when it has ended. */
function listenTo(child: ChildProcess): (text: string) => Promise<void> {
  let log = ''
  const waiting = new Set<() => void>()
  const onText = (chunk: Buffer) => {
    log += chunk.toString('utf8')
    for (const look of waiting) look()
  }
  child.stdout!.on('data', onText)
  child.stderr!.on('data', onText)
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`turnserver ended with ${code}: ${log}`)
  })
  ended.catch(() => {})
  return text => {
    const said = new Promise<void>(resolve => {
      const look = () => void (log.includes(text) && resolve())
      waiting.add(look)
      look()
    })
    return Promise.race([said, ended])
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}
