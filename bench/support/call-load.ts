/**
 * Program: people who call others, and the devices that ring. Callers start a call by HTTP and end it again; each device
 * of a callee has a STOMP connection, is told of both, and acknowledges.
 */

import { randomBytes } from 'node:crypto'
import type { KeyHolder } from '../../src/app/devices/call-key.ts'
import { keyMembersOf } from '../../src/app/devices/key-members.ts'
import { subscribingsOf } from './device-queues.ts'
import { HttpConnection } from './http-connection.ts'
import { targetOf } from './load-socket.ts'
import { mainThreadMs } from './machine.ts'
import type { Person } from './people.ts'
import { serveParent } from './program.ts'
import { latencyFigures } from './statistics.ts'
import { bearerLogin, StompSocket } from './stomp-socket.ts'
import { openMany, wireFrame } from './websocket-client.ts'

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
    /** Has so many calls at a time: starts each, awaits what its devices are told, ends it, awaits it again. */
    | { readonly kind: 'in-flight'; readonly calls: number; readonly seconds: number }
    /** The frames that a callee's device gets when a call starts and ends. */
    | { readonly kind: 'record' }
  readonly answer: CallLoadFigures
}

/**
 * The project; its sessions over inboxes in memory (`delivery-server.ts`); or bare uWebSockets.js (`call-limit.ts`), to
 * which nobody signs in. The last two are told which devices to ring and what the call's id is.
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
  const street = await Street.open({ url, devicesUrl }, server, groups)
  if (pid !== undefined) street.cpuMs = () => mainThreadMs(pid)
  return async request => {
    if (request.kind === 'record') return { ...NOTHING, recorded: await street.record() }
    street.forgetIdle()
    const [before, cpuBefore, startMs] = [street.messages, process.cpuUsage(), performance.now()]
    street.cpuLatencies = []
    const latencies = await LOADS[request.kind](street, request as never)
    const ms = performance.now() - startMs
    const { user, system } = process.cpuUsage(cpuBefore)
    const messages = street.messages - before
    return {
      calls: latencies.length,
      messages,
      messagesPerSecond: (messages * 1000) / ms,
      latency: latencyFigures(latencies),
      latencyCpu: latencyFigures(street.cpuLatencies),
      clientCores: (user + system) / 1000 / ms,
      recorded: NOTHING.recorded,
    }
  }
})

interface Places {
  readonly url: string
  readonly devicesUrl: string
}

type Asked<Kind> = Extract<CallLoadProtocol['request'], { kind: Kind }>

async function callAtRate(street: Street, asked: Asked<'rate'>): Promise<number[]> {
  const { callsPerSecond, seconds, ends, connections = 0 } = asked
  await street.openHttp(connections)
  const latencies: number[] = []
  const open: Call[] = []
  const startMs = performance.now()
  const callOne = async (dueMs: number) => {
    const cpuMs = street.cpuMs()
    const call = await street.start(dueMs)
    if (dueMs - startMs >= WARM_UP_MS) {
      latencies.push(call.ringingMs - dueMs)
      street.cpuLatencies.push(street.cpuMs() - cpuMs)
    }
    if (ends === 'afterwards') return void open.push(call)
    await sleep(CALL_LASTS_MS)
    await street.end(call)
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
  for (const call of open) await street.end(call)
  return latencies
}

async function callInFlight(street: Street, { calls, seconds }: Asked<'in-flight'>): Promise<number[]> {
  const latencies: number[] = []
  const endMs = performance.now() + seconds * 1000
  const callUntilEnd = async () => {
    for (let now = performance.now(); now < endMs; now = performance.now()) {
      const call = await street.start(now)
      latencies.push(call.ringingMs - now)
      await street.end(call)
    }
  }
  await Promise.all(Array.from({ length: calls }, callUntilEnd))
  return latencies
}

interface Caller {
  readonly token: string
  readonly body: string
  readonly group: number
  readonly devices: number
}

interface Call {
  readonly caller: Caller
  readonly callId: string
  readonly ringingMs: number
}

/** Devices that have been told of a call, and who waits until all have been. */
interface Told {
  count: number
  lastMs: number
  wanted: number
  onAll: (() => void) | undefined
}

class Street {
  messages = 0
  /** The server's processor time so far. */
  cpuMs: () => number = () => Number.NaN
  cpuLatencies: number[] = []
  readonly #places: Places
  readonly #server: CallServer
  readonly #idle: Caller[] = []
  /** For somebody who can call: a server that is too slow keeps them all busy. */
  readonly #waiting: ((caller: Caller) => void)[] = []
  readonly #http: HttpConnection[] = []
  /** By call and what its devices are told. */
  readonly #told = new Map<string, Told>()
  #calls = 0
  #recording: string[] | undefined = undefined

  private constructor(places: Places, server: CallServer) {
    this.#places = places
    this.#server = server
  }

  static async open(places: Places, server: CallServer, groups: readonly CallGroup[]): Promise<Street> {
    const street = new Street(places, server)
    for (const [group, { callers, callees }] of groups.entries()) {
      const devices = callees.flatMap(callee => callee.devices)
      for (const caller of callers) {
        const [device] = caller.devices
        const body = startBody({ userId: caller.userId, deviceId: device!.deviceId }, callees)
        street.#idle.push({ token: device!.token, body, group, devices: devices.length })
      }
      await openMany(devices.length, at => street.#openDevice(devices[at]!.token))
    }
    return street
  }

  /** Resolves when all devices ring and the caller has the answer. */
  async start(dueMs: number): Promise<Call> {
    const caller = this.#idle.shift() ?? (await this.#nextIdle())
    const { token, body, group, devices } = caller
    const lines = this.#linesFor(group, this.#nextCallId())
    const answer = await this.#post('/app/api/call/start', { token, body, lines }, 201)
    const callId = /"callId":"(\d+)"/.exec(answer)?.[1] ?? ''
    const { lastMs } = await this.#toldAll(`call_invitation ${callId}`, devices)
    // A caller hears of it later than the devices, or sooner.
    return { caller, callId, ringingMs: Math.max(lastMs, dueMs) }
  }

  /** Resolves when all devices know that nobody calls any more. */
  async end({ caller, callId }: Call): Promise<void> {
    const { token, group, devices } = caller
    const lines = this.#linesFor(group, callId)
    await this.#post(`/app/api/call/${callId}/end`, { token, body: '', lines }, 200)
    await this.#toldAll(`${LAST_WORD} ${callId}`, devices)
    const waiting = this.#waiting.shift()
    if (waiting === undefined) this.#idle.push(caller)
    else waiting(caller)
  }

  async record(): Promise<CallLoadFigures['recorded']> {
    this.#recording = []
    const call = await this.start(performance.now())
    await sleep(RECORDED_WITHIN_MS)
    const atStart = this.#recording
    this.#recording = []
    await this.end(call)
    await sleep(RECORDED_WITHIN_MS)
    const atEnd = this.#recording
    this.#recording = undefined
    const { devices } = call.caller
    return { atStart: ofFirst(atStart, devices), atEnd: ofFirst(atEnd, devices) }
  }

  /** A server ends connections that are not used for a while: each turn has its own. */
  forgetIdle(): void {
    for (const connection of this.#http.splice(0)) connection.close()
  }

  async openHttp(count: number): Promise<void> {
    this.#http.push(...(await openMany(count, () => HttpConnection.open(this.#places.url))))
  }

  #nextIdle(): Promise<Caller> {
    return new Promise(resolve => {
      this.#waiting.push(resolve)
    })
  }

  #linesFor(group: number, callId: string): string {
    return this.#server === 'project' ? '' : `x-group: ${group}\r\nx-call: ${callId}\r\n`
  }

  async #post(
    path: string,
    request: { readonly token: string; readonly body: string; readonly lines: string },
    status: number,
  ): Promise<string> {
    // The one that has waited longest: the server ends those that wait for too long.
    const connection = this.#http.shift() ?? (await HttpConnection.open(this.#places.url))
    const answer = await connection.post({ path, ...request }, status)
    this.#http.push(connection)
    return answer
  }

  async #openDevice(token: string): Promise<void> {
    const device = await StompSocket.open(targetOf(this.#places.devicesUrl))
    if (this.#server !== 'bare') {
      await device.signIn(bearerLogin(token))
      await device.subscribe(subscribingsOf('queues', 0))
    }
    device.onMessage = octets => {
      const message = octets.toString('latin1')
      this.messages++
      this.#recording?.push(message)
      // Also of bare uWebSockets.js, which sends the recorded messages.
      device.send(wireFrame(`ACK\nid:${headerOf(message, 'ack')}\n\n\0`))
      this.#onTold(`${headerOf(message, 'type')} ${/"callId":"(\d+)"/.exec(message)?.[1]}`)
    }
  }

  #onTold(what: string): void {
    const told = this.#toldOf(what)
    told.count++
    told.lastMs = performance.now()
    if (told.count === told.wanted) told.onAll?.()
  }

  async #toldAll(what: string, devices: number): Promise<Told> {
    const told = this.#toldOf(what)
    told.wanted = devices
    if (told.count < devices) {
      await new Promise<void>(resolve => {
        told.onAll = resolve
      })
    }
    this.#told.delete(what)
    return told
  }

  #toldOf(what: string): Told {
    let told = this.#told.get(what)
    if (told === undefined) {
      told = { count: 0, lastMs: 0, wanted: 0, onAll: undefined }
      this.#told.set(what, told)
    }
    return told
  }

  /** As many digits as ids have. */
  #nextCallId(): string {
    return String(10 ** 15 + this.#calls++)
  }
}

/** The body of `POST call/start`: it calls all of them, with a key for each of their devices, and the set of all of these. */
function startBody(caller: DeviceName, callees: readonly Person[]): string {
  const names = callees.flatMap(({ userId, devices }) =>
    devices.map(({ deviceId }) => ({ userId, deviceId })),
  )
  const encryptedAESKeys = Object.fromEntries(
    names.map(({ userId, deviceId }) => [
      `${userId}_${deviceId}`,
      randomBytes(SEALED_KEY_BYTES).toString('base64'),
    ]),
  )
  const keyMembers = keyMembersOf([caller, ...names].map(holderOf))
  const calleeIds = callees.map(({ userId }) => userId)
  return JSON.stringify({ calleeIds, keyMembers, encryptedAESKeys, isVideo: true })
}

function holderOf({ userId, deviceId }: DeviceName): KeyHolder {
  const keyHash = new Uint8Array(randomBytes(32))
  return { userId, deviceId, name: `${userId}_${deviceId}`, key: NO_KEY, keyHash }
}

/** Names and hashes alone are in a set. */
const NO_KEY = { kind: 'P-256', point: new Uint8Array() } as const

type DeviceName = Pick<KeyHolder, 'userId' | 'deviceId'>

function headerOf(message: string, name: string): string {
  const start = message.indexOf(`\n${name}:`) + name.length + 2
  return message.slice(start, message.indexOf('\n', start))
}

/** Every device gets as many. */
function ofFirst(messages: readonly string[], devices: number): string[] {
  const types = new Map<string, string>()
  for (const message of messages) types.set(headerOf(message, 'type'), message)
  if (messages.length !== types.size * devices) throw new Error('devices are told different things')
  return [...types.values()]
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
const LOADS = { rate: callAtRate, 'in-flight': callInFlight }
/** As HPKE makes it of a key with its set, its time and a checkpoint. */
const SEALED_KEY_BYTES = 262
/** What a device is told of a call that is over before it answered. */
const LAST_WORD = 'call_cancelled'
const CALL_LASTS_MS = 1_000
/** Each turn opens its connections anew in it, and an idle server wakes up. */
const WARM_UP_MS = 300
const TIMER_LATE_MS = 2
const RECORDED_WITHIN_MS = 500
