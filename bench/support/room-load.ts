/**
 * Program: people in call rooms, each with a device. Again and again in each room one calls all others, and the call takes
 * the course that is asked for; what the topics tell is counted.
 */

import { randomBytes } from 'node:crypto'
import { SEALED_KEY_BYTES, startBody } from './call-body.ts'
import type { CallGroup } from './call-load.ts'
import { subscribingsOf } from './device-queues.ts'
import { HttpConnection } from './http-connection.ts'
import { targetOf } from './load-socket.ts'
import type { Person } from './people.ts'
import { serveParent } from './program.ts'
import { bearerLogin, StompSocket } from './stomp-socket.ts'
import { wireFrame } from './websocket-client.ts'

/**
 * `joined`: every device watches, rings and joins, and the call is ended. `answered`: half of the callees join, the caller
 * gives those a new key, one leaves, and the caller ends the call. `given-up`: the caller ends it while all ring.
 */
export type CallCourse = 'joined' | 'answered' | 'given-up'

export interface RoomLoadProtocol {
  readonly setup: {
    /** Without a path. */
    readonly url: string
    /** One caller each. */
    readonly rooms: readonly CallGroup[]
  }
  readonly request: {
    readonly course: CallCourse
    readonly seconds: number
    /** All of them unless it is given. */
    readonly rooms?: number
  }
  readonly answer: RoomLoadFigures
}

export interface RoomLoadFigures {
  readonly calls: number
  /** Events of calls that reached a device, all of them and by the second. */
  readonly frames: number
  readonly framesPerSecond: number
  /** Octets of one of them, on average. */
  readonly frameBytes: number
  /** Processor time of this client. */
  readonly clientCores: number
}

serveParent<RoomLoadProtocol>(async ({ url, rooms: groups }) => {
  const all: Room[] = []
  for (const group of groups) all.push(await Room.open(url, group))
  return async ({ course, seconds, rooms: count }) => {
    const rooms = all.slice(0, count)
    // A server ends connections that are not used for a while: each turn has its own.
    for (const room of rooms) await room.reopen(url)
    const [cpuBefore, startMs] = [process.cpuUsage(), performance.now()]
    const endMs = startMs + seconds * 1000
    const calls = await Promise.all(rooms.map(room => room.callUntil(endMs, course)))
    const ms = performance.now() - startMs
    const { user, system } = process.cpuUsage(cpuBefore)
    const frames = sumOf(rooms.map(room => room.frames))
    return {
      calls: sumOf(calls),
      frames,
      framesPerSecond: (frames * 1000) / ms,
      frameBytes: Math.round(sumOf(rooms.map(room => room.bytes)) / frames),
      clientCores: (user + system) / 1000 / ms,
    }
  }
})

/** A device that is in all calls of its room. */
interface Member {
  readonly name: string
  readonly token: string
  readonly socket: StompSocket
  http: HttpConnection
  /** Called once with the next message of a type, `receipt`, or `over` when the topic says that the call is. */
  readonly waits: Map<string, () => void>
}

class Room {
  frames = 0
  bytes = 0
  readonly #members: Member[] = []
  readonly #body: string

  private constructor(body: string) {
    this.#body = body
  }

  static async open(url: string, { callers: [caller], callees }: CallGroup): Promise<Room> {
    const room = new Room(startBody(callees))
    for (const person of [caller!, ...callees]) await room.#enter(url, person)
    return room
  }

  /** Begins to count anew, with new HTTP connections. */
  async reopen(url: string): Promise<void> {
    this.frames = 0
    this.bytes = 0
    for (const member of this.#members) {
      member.http.close()
      member.http = await HttpConnection.open(url)
    }
  }

  async callUntil(endMs: number, course: CallCourse): Promise<number> {
    let calls = 0
    while (performance.now() < endMs) {
      await this.#call(course)
      calls++
    }
    return calls
  }

  async #call(course: CallCourse): Promise<void> {
    const [caller, ...callees] = this.#members as [Member, ...Member[]]
    const rung = told(callees, 'call_invitation')
    const callId = await this.#start(caller)
    await rung
    if (course === 'given-up') return this.#end(callId, caller, told(callees, 'call_cancelled'))
    const watching = told(this.#members, 'receipt')
    for (const { socket } of this.#members) socket.send(watchFrame(callId))
    await watching
    for (const { socket } of callees) socket.send(ringingFrame(callId))
    const joining = course === 'joined' ? callees : callees.slice(0, Math.ceil(callees.length / 2))
    await Promise.all(joining.map(member => post(member, `/app/api/call/${callId}/join`)))
    if (course === 'answered') await this.#changeKey(callId, caller, joining)
    await this.#end(callId, caller, told(this.#members, 'over'))
    for (const { socket } of this.#members) socket.send(UNSUBSCRIBE)
  }

  /** Gives those in the call a new key, and has one of them leave. */
  async #changeKey(callId: string, caller: Member, joined: readonly Member[]): Promise<void> {
    const encryptedAESKeys = Object.fromEntries(
      joined.map(({ name }) => [name, randomBytes(SEALED_KEY_BYTES).toString('base64')]),
    )
    const body = JSON.stringify({ epoch: 2, reason: 'rotation', encryptedAESKeys })
    const updated = told(joined, 'key_update')
    await post(caller, `/app/api/call/${callId}/keys`, body, 202)
    await updated
    await post(joined[0]!, `/app/api/call/${callId}/leave`, '', 204)
  }

  async #end(callId: string, caller: Member, over: Promise<unknown>): Promise<void> {
    await post(caller, `/app/api/call/${callId}/end`)
    await over
  }

  async #start({ http, token }: Member): Promise<string> {
    const answer = await http.post({ path: '/app/api/call/start', body: this.#body, token }, 201)
    return /"callId":"(\d+)"/.exec(answer)?.[1] ?? ''
  }

  async #enter(url: string, { userId, devices: [device] }: Person): Promise<void> {
    const { deviceId, token } = device!
    const socket = await StompSocket.open(targetOf(url))
    await socket.signIn(bearerLogin(token))
    await socket.subscribe(subscribingsOf('queues', 0))
    const http = await HttpConnection.open(url)
    const member: Member = { name: `${userId}_${deviceId}`, token, socket, http, waits: new Map() }
    socket.onMessage = octets => this.#onMessage(member, octets)
    this.#members.push(member)
  }

  #onMessage({ socket, waits }: Member, octets: Buffer): void {
    const message = octets.toString('latin1')
    const tell = (what: string | undefined) => {
      if (what === undefined) return
      waits.get(what)?.()
      waits.delete(what)
    }
    if (message.includes('\ndestination:/topic/')) {
      this.frames++
      this.bytes += octets.length
      if (IS_OVER.test(message)) tell('over')
      return
    }
    if (message.startsWith('RECEIPT')) return tell('receipt')
    const ack = /\nack:(.+)/.exec(message)?.[1]
    if (ack !== undefined) socket.send(wireFrame(`ACK\nid:${ack}\n\n\0`))
    tell(/\ntype:(.+)/.exec(message)?.[1])
  }
}

/** Resolves when it has come to all of them. */
function told(members: readonly Member[], what: string): Promise<unknown> {
  return Promise.all(members.map(({ waits }) => new Promise<void>(resolve => void waits.set(what, resolve))))
}

async function post({ http, token }: Member, path: string, body = '', status = 200): Promise<void> {
  await http.post({ path, body, token }, status)
}

function watchFrame(callId: string): Buffer {
  return wireFrame(`SUBSCRIBE\nid:call\ndestination:/topic/call.${callId}\nack:auto\nreceipt:r\n\n\0`)
}

function ringingFrame(callId: string): Buffer {
  return wireFrame(`SEND\ndestination:/app/call/${callId}/ringing\n\n\0`)
}

function sumOf(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

const UNSUBSCRIBE = wireFrame('UNSUBSCRIBE\nid:call\n\n\0')
const IS_OVER = /"type":"call_status".*"status":"ended"/
