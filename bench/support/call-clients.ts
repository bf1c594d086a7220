/**
 * Callers, who start and end calls by HTTP, and callees' devices, which ring: each has a STOMP connection, and
 * acknowledges its messages. In a call that is answered, callers have connections too.
 */

import { randomBytes } from 'node:crypto'
import type { KeyHolder } from '../../src/app/devices/call-key.ts'
import { keyMembersOf } from '../../src/app/devices/key-members.ts'
import type { CallGroup, CallLoadFigures, CallServer } from './call-load.ts'
import { subscribingsOf } from './device-queues.ts'
import { HttpConnection } from './http-connection.ts'
import { targetOf } from './load-socket.ts'
import type { Person } from './people.ts'
import { bearerLogin, StompSocket } from './stomp-socket.ts'
import { openMany, wireFrame } from './websocket-client.ts'

export interface Places {
  readonly url: string
  /** Where devices connect. */
  readonly devicesUrl: string
}

export interface Caller {
  readonly token: string
  readonly body: string
  readonly group: number
  /** The devices of its callees. */
  readonly devices: readonly Device[]
  /** Opened once it is to watch its calls. */
  socket: StompSocket | undefined
}

/** A callee's device, and its connection. */
interface Device {
  readonly token: string
  readonly socket: StompSocket
  /** The last that it was told. */
  eventId: string
}

export interface Call {
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

export class CallClients {
  messages = 0
  /** The server's processor time so far. */
  cpuMs: () => number = () => Number.NaN
  cpuLatencies: number[] = []
  /** The first one of each group. */
  readonly firstCallers: Caller[] = []
  readonly #places: Places
  readonly #server: CallServer
  readonly #idle: Caller[] = []
  /** Waits for a free caller: a server that is too slow keeps them all busy. */
  readonly #waiting: ((caller: Caller) => void)[] = []
  readonly #http: HttpConnection[] = []
  /** By call and event. */
  readonly #told = new Map<string, Told>()
  #calls = 0
  #recording: string[] | undefined = undefined

  private constructor(places: Places, server: CallServer) {
    this.#places = places
    this.#server = server
  }

  static async open(places: Places, server: CallServer, groups: readonly CallGroup[]): Promise<CallClients> {
    const clients = new CallClients(places, server)
    for (const [group, { callers, callees }] of groups.entries()) {
      const tokens = callees.flatMap(callee => callee.devices).map(({ token }) => token)
      const devices = await openMany(tokens.length, at => clients.#openDevice(tokens[at]!))
      for (const { userId, devices: own } of callers) {
        const [{ deviceId, token }] = own as [Person['devices'][number]]
        const body = startBody({ userId, deviceId }, callees)
        clients.#idle.push({ token, body, group, devices, socket: undefined })
      }
      clients.firstCallers.push(clients.#idle.at(-callers.length)!)
    }
    return clients
  }

  /** Resolves with a caller who is not in a call. */
  async nextIdle(): Promise<Caller> {
    return (
      this.#idle.shift() ??
      new Promise(resolve => {
        this.#waiting.push(resolve)
      })
    )
  }

  /** Takes a caller back after the call. */
  release(caller: Caller): void {
    const waiting = this.#waiting.shift()
    if (waiting === undefined) this.#idle.push(caller)
    else waiting(caller)
  }

  /** Resolves when all devices ring and the caller has the answer. */
  async start(caller: Caller, dueMs: number): Promise<Call> {
    const { token, body, group, devices } = caller
    const lines = this.#linesFor(group, this.#nextCallId())
    const answer = await this.#post('/app/api/call/start', { token, body, lines }, 201)
    const callId = /"callId":"(\d+)"/.exec(answer)?.[1] ?? ''
    const { lastMs } = await this.#toldAll(`call_invitation ${callId}`, devices.length)
    // A caller hears of it later than the devices, or sooner.
    return { caller, callId, ringingMs: Math.max(lastMs, dueMs) }
  }

  /** Resolves when all devices know that the unanswered call has ended. */
  async end({ caller, callId }: Call): Promise<void> {
    await this.#postEnd(caller, callId)
    await this.#toldAll(`${LAST_WORD} ${callId}`, caller.devices.length)
  }

  /** A caller who watches its calls has a connection. */
  async openCaller(caller: Caller): Promise<void> {
    caller.socket ??= (await this.#openDevice(caller.token)).socket
  }

  /**
   * All devices say that they ring, half of them join and watch the call as its caller does, some leave, and the caller
   * ends it. Resolves when all who are in it or ring still know of that.
   */
  async answer({ caller, callId }: Call): Promise<void> {
    const { devices, socket: callerSocket } = caller
    const [joining, staying] = [devices.slice(0, JOINING), devices.slice(LEAVING, JOINING)]
    watch(callerSocket!, callId)
    await this.#toldAll(`watched ${callId}`, 1)
    for (const device of devices) ring(device, callId)
    await this.#toldAll(`rung ${callId}`, devices.length)
    await Promise.all(joining.map(device => this.#join(device, callId)))
    await this.#toldAll(`watched ${callId}`, joining.length)
    await Promise.all(joining.slice(0, LEAVING).map(device => this.#leave(device, callId)))
    await this.#postEnd(caller, callId)
    await this.#toldAll(`call_ended ${callId}`, staying.length)
    await this.#toldAll(`${LAST_WORD} ${callId}`, devices.length - joining.length)
    for (const { socket } of [...staying, { socket: callerSocket! }]) unwatch(socket, callId)
  }

  async record(): Promise<CallLoadFigures['recorded']> {
    this.#recording = []
    const caller = await this.nextIdle()
    const call = await this.start(caller, performance.now())
    await sleep(RECORDED_WITHIN_MS)
    const atStart = this.#recording
    this.#recording = []
    await this.end(call)
    this.release(caller)
    await sleep(RECORDED_WITHIN_MS)
    const atEnd = this.#recording
    this.#recording = undefined
    const devices = caller.devices.length
    return { atStart: ofFirst(atStart, devices), atEnd: ofFirst(atEnd, devices) }
  }

  /** A server ends connections that are not used for a while: each turn has its own. */
  forgetIdle(): void {
    for (const connection of this.#http.splice(0)) connection.close()
  }

  async openHttp(count: number): Promise<void> {
    this.#http.push(...(await openMany(count, () => HttpConnection.open(this.#places.url))))
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

  async #postEnd({ token, group }: Caller, callId: string): Promise<void> {
    const lines = this.#linesFor(group, callId)
    await this.#post(`/app/api/call/${callId}/end`, { token, body: '', lines }, 200)
  }

  async #join({ token, socket }: Device, callId: string): Promise<void> {
    await this.#post(`/app/api/call/${callId}/join`, { token, body: '', lines: '' }, 200)
    watch(socket, callId)
  }

  async #leave({ token, socket }: Device, callId: string): Promise<void> {
    await this.#post(`/app/api/call/${callId}/leave`, { token, body: '', lines: '' }, 204)
    unwatch(socket, callId)
  }

  async #openDevice(token: string): Promise<Device> {
    const socket = await StompSocket.open(targetOf(this.#places.devicesUrl))
    if (this.#server !== 'bare') {
      await socket.signIn(bearerLogin(token))
      await socket.subscribe(subscribingsOf('queues', 0))
    }
    const device: Device = { token, socket, eventId: '' }
    socket.onMessage = octets => this.#onFrame(device, octets.toString('latin1'))
    return device
  }

  #onFrame(device: Device, frame: string): void {
    if (frame.startsWith('RECEIPT')) return this.#onTold(headerOf(frame, 'receipt-id'))
    this.messages++
    this.#recording?.push(frame)
    // Messages of a topic are not acknowledged, and not waited for.
    if (!frame.includes('\nack:')) return
    // Also of bare uWebSockets.js, which sends the recorded messages.
    device.socket.send(wireFrame(`ACK\nid:${headerOf(frame, 'ack')}\n\n\0`))
    device.eventId = /"eventId":"([^"]+)"/.exec(frame)?.[1] ?? ''
    this.#onTold(`${headerOf(frame, 'type')} ${/"callId":"(\d+)"/.exec(frame)?.[1]}`)
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

function ring({ socket, eventId }: Device, callId: string): void {
  const lines = ['SEND', `destination:/app/call/${callId}/ringing`, `receipt:rung ${callId}`]
  socket.send(wireFrame(`${lines.join('\n')}\n\n${JSON.stringify({ eventId })}\0`))
}

function watch(socket: StompSocket, callId: string): void {
  const lines = [
    'SUBSCRIBE',
    `id:${callId}`,
    `destination:/topic/call.${callId}`,
    `receipt:watched ${callId}`,
  ]
  socket.send(wireFrame(`${lines.join('\n')}\n\n\0`))
}

function unwatch(socket: StompSocket, callId: string): void {
  socket.send(wireFrame(`UNSUBSCRIBE\nid:${callId}\n\n\0`))
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

/** As HPKE makes it of a key with its set, its time and a checkpoint. */
const SEALED_KEY_BYTES = 262
/** The event for a call that ends before the device answered. */
const LAST_WORD = 'call_cancelled'
const RECORDED_WITHIN_MS = 500
/** Devices that join an answered call, and those of them that leave before its end. */
const JOINING = 5
const LEAVING = 2
