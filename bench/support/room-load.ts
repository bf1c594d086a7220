/**
 * Program: people in call rooms, each with a device that watches the call. Again and again in each room one calls all
 * others, every device watches, rings and joins, and the call is ended; what the topics tell is counted.
 */

import { startBody } from './call-body.ts'
import type { CallGroup } from './call-load.ts'
import { subscribingsOf } from './device-queues.ts'
import { HttpConnection } from './http-connection.ts'
import type { Person } from './people.ts'
import { serveParent } from './program.ts'
import { bearerLogin, StompSocket } from './stomp-socket.ts'
import { wireFrame } from './websocket-client.ts'

export interface RoomLoadProtocol {
  readonly setup: {
    /** Without a path. */
    readonly url: string
    /** One caller each. */
    readonly rooms: readonly CallGroup[]
  }
  readonly request: { readonly seconds: number }
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
  const rooms: Room[] = []
  for (const group of groups) rooms.push(await Room.open(url, group))
  return async ({ seconds }) => {
    // A server ends connections that are not used for a while: each turn has its own.
    for (const room of rooms) await room.reopen(url)
    const [cpuBefore, startMs] = [process.cpuUsage(), performance.now()]
    const endMs = startMs + seconds * 1000
    const calls = await Promise.all(rooms.map(room => room.callUntil(endMs)))
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
  readonly token: string
  readonly socket: StompSocket
  http: HttpConnection
  /** Called when its subscription is confirmed, and when it hears that the call is over. */
  onWatching: () => void
  onOver: () => void
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

  async callUntil(endMs: number): Promise<number> {
    let calls = 0
    while (performance.now() < endMs) {
      await this.#call()
      calls++
    }
    return calls
  }

  async #call(): Promise<void> {
    const [caller, ...callees] = this.#members
    const callId = await this.#start(caller!)
    const watching = this.#eachMember('onWatching')
    for (const { socket } of this.#members) socket.send(watchFrame(callId))
    await watching
    for (const { socket } of callees) socket.send(ringingFrame(callId))
    await Promise.all(callees.map(member => this.#post(member, `/app/api/call/${callId}/join`)))
    const over = this.#eachMember('onOver')
    await this.#post(caller!, `/app/api/call/${callId}/end`)
    await over
    for (const { socket } of this.#members) socket.send(UNSUBSCRIBE)
  }

  /** Resolves when it has come to all of them. */
  async #eachMember(event: 'onWatching' | 'onOver'): Promise<void> {
    const heard = this.#members.map(
      member =>
        new Promise<void>(resolve => {
          member[event] = resolve
        }),
    )
    await Promise.all(heard)
  }

  async #start({ http, token }: Member): Promise<string> {
    const answer = await http.post({ path: '/app/api/call/start', body: this.#body, token }, 201)
    return /"callId":"(\d+)"/.exec(answer)?.[1] ?? ''
  }

  async #post({ http, token }: Member, path: string): Promise<void> {
    await http.post({ path, body: '', token }, 200)
  }

  async #enter(url: string, { devices: [device] }: Person): Promise<void> {
    const { token } = device!
    const socket = await StompSocket.open(Number(new URL(url).port))
    await socket.signIn(bearerLogin(token))
    await socket.subscribe(subscribingsOf('queues', 0))
    const member: Member = {
      token,
      socket,
      http: await HttpConnection.open(url),
      onWatching: () => undefined,
      onOver: () => undefined,
    }
    socket.onMessage = octets => this.#onMessage(member, octets)
    this.#members.push(member)
  }

  #onMessage(member: Member, octets: Buffer): void {
    const message = octets.toString('latin1')
    if (message.includes('\ndestination:/topic/')) {
      this.frames++
      this.bytes += octets.length
      if (IS_OVER.test(message)) member.onOver()
      return
    }
    if (message.startsWith('RECEIPT')) return member.onWatching()
    const ack = /\nack:(.+)/.exec(message)?.[1]
    if (ack !== undefined) member.socket.send(wireFrame(`ACK\nid:${ack}\n\n\0`))
  }
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
