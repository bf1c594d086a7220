/**
 * Program: apps that all come back at once, as after a restart: each opens a connection, signs in and subscribes to its
 * device's three queues. One that fails tries again after a random pause, as the documents ask of apps. They stay until they
 * are cut.
 */

import { subscribingsOf } from './device-queues.ts'
import type { LoadTarget } from './load-socket.ts'
import { serveParent } from './program.ts'
import { latencyFigures, rounded } from './statistics.ts'
import { type Login, StompSocket } from './stomp-socket.ts'

export interface StormLoadProtocol {
  readonly setup: LoadTarget & { readonly logins: readonly Login[] }
  readonly request: 'storm' | 'cut'
  readonly answer: StormFigures
}

export interface StormFigures {
  /** Until the last one is back. */
  readonly seconds: number
  /** Milliseconds from the start of the storm until a client is back. */
  readonly back: ReturnType<typeof latencyFigures>
  /** Connects that failed and were tried again, by the server's reason. */
  readonly failures: Readonly<Record<string, number>>
  /** Connections that were lost after they were back. */
  readonly lost: number
  /** Processor seconds of this client. */
  readonly clientCpuSeconds: number
}

serveParent<StormLoadProtocol>(async ({ logins, ...target }) => {
  let clients: StompSocket[] = []
  return async request => {
    if (request === 'storm') {
      const { opened, figures } = await storm(target, logins)
      clients = opened
      return figures
    }
    const lost = clients.filter(({ isOpen }) => !isOpen).length
    await Promise.all(clients.map(client => client.abort()))
    return { ...NOTHING, lost }
  }
})

async function storm(target: LoadTarget, logins: readonly Login[]) {
  const opened: StompSocket[] = []
  const failures: Record<string, number> = {}
  const backMs: number[] = []
  const [cpuBefore, startMs] = [process.cpuUsage(), performance.now()]
  const comeBack = async (login: Login) => {
    for (let tries = 1; ; tries++) {
      try {
        opened.push(await connect(target, login))
        backMs.push(performance.now() - startMs)
        return
      } catch (error) {
        const [why = ''] = String(error).split(/[\r\n]/)
        failures[why] = (failures[why] ?? 0) + 1
        await new Promise(resolve => {
          setTimeout(resolve, Math.random() * Math.min(PAUSE_MS_MAX, PAUSE_MS * 2 ** tries))
        })
      }
    }
  }
  const all: Promise<void>[] = []
  for (let at = 0; at < logins.length; at += STARTED_PER_TURN) {
    all.push(...logins.slice(at, at + STARTED_PER_TURN).map(comeBack))
    await new Promise(resolve => setImmediate(resolve))
  }
  await Promise.all(all)
  const { user, system } = process.cpuUsage(cpuBefore)
  const figures: StormFigures = {
    seconds: rounded((performance.now() - startMs) / 1000),
    back: latencyFigures(backMs),
    failures,
    lost: 0,
    clientCpuSeconds: rounded((user + system) / 1e6),
  }
  return { opened, figures }
}

async function connect(target: LoadTarget, login: Login): Promise<StompSocket> {
  const client = await StompSocket.open(target)
  await client.signIn(login, HEART_BEAT)
  await client.subscribe(subscribingsOf('queues', 0))
  return client
}

const NOTHING: StormFigures = {
  seconds: 0,
  back: latencyFigures([]),
  failures: {},
  lost: 0,
  clientCpuSeconds: 0,
}
/** Those of docs/protocol/socket.md. */
const PAUSE_MS = 1_000
const PAUSE_MS_MAX = 60_000
/** A client of one thread can't do all at once; between two portions it reads. */
const STARTED_PER_TURN = 100
/** The server's beats alone: this client's own would cost it what the storm needs. */
const HEART_BEAT = '0,10000'
