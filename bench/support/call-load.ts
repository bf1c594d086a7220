/** Program: calls at a rate or so many at a time, by `CallClients`; callers give them up, or half the devices answer. */

import { type Call, CallClients, type Caller } from './call-clients.ts'
import { mainThreadMs } from './machine.ts'
import type { Person } from './people.ts'
import { serveParent } from './program.ts'
import { latencyFigures } from './statistics.ts'

export interface CallLoadProtocol {
  readonly setup: {
    /** Without a path. */
    readonly url: string
    /** Where devices connect, if not there. */
    readonly devicesUrl?: string
    readonly server: CallServer
    readonly groups: readonly CallGroup[]
    /** The server's; latencies are then also counted in its main thread's processor time. */
    readonly pid?: number
  }
  readonly request: /** Starts so many calls a second whatever becomes of them; the first 300 ms do not count. */
    | {
        readonly kind: 'rate'
        readonly callsPerSecond: number
        readonly seconds: number
        /** Each ends a second later, or all of them once the last one rings. */
        readonly ends: 'meanwhile' | 'afterwards'
        /** HTTP connections that are opened before the first call; more where they do not suffice. */
        readonly connections?: number
      }
    /** Has so many calls at a time: starts each, awaits its devices' events, ends it, awaits them again. */
    | { readonly kind: 'in-flight'; readonly calls: number; readonly seconds: number }
    /** The same of calls that five devices answer; of the project alone. One call a group at most, since a device is in one. */
    | { readonly kind: 'answered'; readonly calls: number; readonly seconds: number }
    /** The frames that a callee's device gets when a call starts and ends. */
    | { readonly kind: 'record' }
  readonly answer: CallLoadFigures
}

/**
 * The project; its sessions over inboxes in memory (`delivery-server.ts`); or bare uWebSockets.js (`call-limit.ts`), to
 * which no client signs in. The last two get the devices to ring and the call's id from the load.
 */
export type CallServer = 'project' | 'sessions' | 'bare'

/** Callers, and each caller's callees. */
export interface CallGroup {
  readonly callers: readonly Person[]
  readonly callees: readonly Person[]
}

export interface CallLoadFigures {
  readonly calls: number
  /** MESSAGEs that came, of all kinds. */
  readonly messages: number
  readonly messagesPerSecond: number
  /** Milliseconds from when a call was to start until the last of its devices rang. */
  readonly latency: ReturnType<typeof latencyFigures>
  /** Milliseconds that the server's main thread spent until then, on this call and all earlier ones. */
  readonly latencyCpu: ReturnType<typeof latencyFigures>
  /** Processor time of this client. */
  readonly clientCores: number
  /** The frames of one device, in order; only when recorded. */
  readonly recorded: { readonly atStart: readonly string[]; readonly atEnd: readonly string[] }
}

serveParent<CallLoadProtocol>(async ({ url, devicesUrl = url, server, groups, pid }) => {
  const clients = await CallClients.open({ url, devicesUrl }, server, groups)
  if (pid !== undefined) clients.cpuMs = () => mainThreadMs(pid)
  return async request => {
    if (request.kind === 'record') return { ...NOTHING, recorded: await clients.record() }
    clients.forgetIdle()
    const [before, cpuBefore, startMs] = [clients.messages, process.cpuUsage(), performance.now()]
    clients.cpuLatencies = []
    const latencies = await LOADS[request.kind](clients, request as never)
    const ms = performance.now() - startMs
    const { user, system } = process.cpuUsage(cpuBefore)
    const messages = clients.messages - before
    return {
      calls: latencies.length,
      messages,
      messagesPerSecond: (messages * 1000) / ms,
      latency: latencyFigures(latencies),
      latencyCpu: latencyFigures(clients.cpuLatencies),
      clientCores: (user + system) / 1000 / ms,
      recorded: NOTHING.recorded,
    }
  }
})

type Asked<Kind> = Extract<CallLoadProtocol['request'], { kind: Kind }>

async function callAtRate(clients: CallClients, asked: Asked<'rate'>): Promise<number[]> {
  const { callsPerSecond, seconds, ends, connections = 0 } = asked
  await clients.openHttp(connections)
  const latencies: number[] = []
  const open: Call[] = []
  const startMs = performance.now()
  const callOne = async (dueMs: number) => {
    const cpuMs = clients.cpuMs()
    const caller = await clients.nextIdle()
    const call = await clients.start(caller, dueMs)
    if (dueMs - startMs >= WARM_UP_MS) {
      latencies.push(call.ringingMs - dueMs)
      clients.cpuLatencies.push(clients.cpuMs() - cpuMs)
    }
    if (ends === 'afterwards') return void open.push(call)
    await sleep(CALL_LASTS_MS)
    await endOne(call)
  }
  const endOne = async (call: Call) => {
    await clients.end(call)
    clients.release(call.caller)
  }
  const all: Promise<void>[] = []
  for (let at = 0; at < callsPerSecond * seconds; at++) {
    const dueMs = startMs + (at * 1000) / callsPerSecond
    // Timers of Node are late by up to a millisecond, which is not the server's.
    while (performance.now() < dueMs - TIMER_LATE_MS) await sleep(1)
    while (performance.now() < dueMs) await new Promise(resolve => setImmediate(resolve))
    all.push(callOne(dueMs))
  }
  await Promise.all(all)
  for (const call of open) await endOne(call)
  return latencies
}

async function callInFlight(clients: CallClients, { calls, seconds }: Asked<'in-flight'>): Promise<number[]> {
  const latencies: number[] = []
  const endMs = performance.now() + seconds * 1000
  const callUntilEnd = async () => {
    for (let now = performance.now(); now < endMs; now = performance.now()) {
      const caller = await clients.nextIdle()
      const call = await clients.start(caller, now)
      latencies.push(call.ringingMs - now)
      await clients.end(call)
      clients.release(caller)
    }
  }
  await Promise.all(Array.from({ length: calls }, callUntilEnd))
  return latencies
}

async function callAnswered(clients: CallClients, { calls, seconds }: Asked<'answered'>): Promise<number[]> {
  const callers = clients.firstCallers.slice(0, calls)
  if (callers.length < calls) throw new Error('there are fewer groups than calls')
  for (const caller of callers) await clients.openCaller(caller)
  const latencies: number[] = []
  const endMs = performance.now() + seconds * 1000
  const callUntilEnd = async (caller: Caller) => {
    for (let now = performance.now(); now < endMs; now = performance.now()) {
      const call = await clients.start(caller, now)
      latencies.push(call.ringingMs - now)
      await clients.answer(call)
    }
  }
  await Promise.all(callers.map(callUntilEnd))
  return latencies
}

function sleep(ms: number): Promise<void> {
  return new Promise(resolve => {
    setTimeout(resolve, ms)
  })
}

const NOTHING: CallLoadFigures = {
  calls: 0,
  messages: 0,
  messagesPerSecond: 0,
  latency: latencyFigures([]),
  latencyCpu: latencyFigures([]),
  clientCores: 0,
  recorded: { atStart: [], atEnd: [] },
}
const LOADS = { rate: callAtRate, 'in-flight': callInFlight, answered: callAnswered }
const CALL_LASTS_MS = 1_000
/** Each turn opens its connections anew in it, and an idle server wakes up. */
const WARM_UP_MS = 300
const TIMER_LATE_MS = 2
