/** The real server as one app sees it through a proxy that records, changes, repeats, withholds and makes up what it says. */

import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import type { Call, CallsignError } from '../../src/app/app.ts'
import { formatFrame, parseFrame, type StompFrame } from '../../src/app/connection/stomp.ts'
import type { WebSocketClass, WebSocketLike } from '../../src/app/connection/stomp-socket.ts'
import { type KeyBinding, type KeyHolder, makeCallKey, sealCallKey } from '../../src/app/devices/call-key.ts'
import { hashOfSet, keyMembersOf } from '../../src/app/devices/key-members.ts'
import type { BodyOf, OperationName, ReplyOf } from '../../src/app/session/operations.ts'
import type { CallParticipant, QueueEvent } from '../../src/app/wire.ts'
import { packCallKey } from '../../src/client/client.ts'
import { type AppPerson as Insider, startPerson } from './app-people.ts'
import { settingsFor } from './call-people.ts'
import { openServer } from './open-server.ts'
import type { OpenServer } from './server.ts'
import { type AppPerson, befriend, newPerson, restart, until } from './whole-apps.ts'

export type EventOf<Type extends QueueEvent['type']> = Extract<QueueEvent, { readonly type: Type }>

/** Answers a request, which reaches the real server where `pass` is called, with this body in place of its own. */
type HttpLie = (pass: (body?: object) => Promise<Response>, body: unknown) => Promise<Response>
type MessageLie = (event: QueueEvent) => readonly QueueEvent[]

interface Sent {
  readonly request: string
  readonly body: unknown
}

/** Give its `fetch` and `webSocket` to the app. It is honest until a test gives it a lie; the newest lie counts. */
export class LyingServer {
  readonly #httpLies: { readonly request: RegExp; readonly lie: HttpLie }[] = []
  readonly #messageLies: { readonly type: string; readonly lie: MessageLie }[] = []
  readonly #sent: Sent[] = []
  readonly #heard: QueueEvent[] = []
  #onAcknowledged: (() => void)[] = []
  #socket: LyingSocket | undefined

  readonly fetch: typeof fetch = async (url, init) => {
    const request = `${init?.method ?? 'GET'} ${new URL(String(url)).pathname}`
    const body = typeof init?.body === 'string' ? JSON.parse(init.body) : undefined
    this.#sent.push({ request, body })
    const found = this.#httpLies.findLast(one => one.request.test(request))
    const pass = (other: object = body) =>
      fetch(url, other === body ? init : { ...init, body: JSON.stringify(other) })
    return found === undefined ? pass() : found.lie(pass, body)
  }

  readonly webSocket: WebSocketClass = socketClassOf(this)

  /** Lies in place of an operation. Returns a function that ends the lie. */
  handle<Name extends OperationName>(
    operation: Name,
    lie: (pass: (body?: object) => Promise<Response>, body: BodyOf<Name>) => Promise<Response>,
  ): () => void {
    return added(this.#httpLies, { request: patternOf(operation), lie: lie as HttpLie })
  }

  /** Changes the answers to an operation. */
  answer<Name extends OperationName>(
    operation: Name,
    change: (reply: ReplyOf<Name>, body: BodyOf<Name>) => object,
  ): () => void {
    return this.handle(operation, async (pass, body) => {
      const honest = await pass()
      if (!honest.ok) return honest
      return Response.json(change((await honest.json()) as ReplyOf<Name>, body), { status: honest.status })
    })
  }

  /** Puts other messages of the queue, or none, in the place of each of this type. */
  message<Type extends QueueEvent['type']>(
    type: Type,
    lie: (event: EventOf<Type>) => readonly QueueEvent[],
  ): () => void {
    return added(this.#messageLies, { type, lie: lie as MessageLie })
  }

  /** Makes up a message of the queue, or repeats one as a new one. */
  tell(event: QueueEvent): void {
    this.#socket!.deliver(event)
  }

  /** Has the app look at its clock. */
  wake(): void {
    this.tell({ v: 1, type: 'nothing' } as never)
  }

  /** Bodies that the app has sent for an operation. */
  sent<Name extends OperationName>(operation: Name): BodyOf<Name>[] {
    const sent = this.#sent.filter(({ request }) => patternOf(operation).test(request))
    return sent.map(({ body }) => body as BodyOf<Name>)
  }

  /** The first message of this type that the real server sends the app, also one that was lied about. */
  async heard<Type extends QueueEvent['type']>(
    type: Type,
    isIt: (event: EventOf<Type>) => boolean = () => true,
  ): Promise<EventOf<Type>> {
    for (;;) {
      const found = this.#heard.find(event => event.type === type && isIt(event as EventOf<Type>))
      if (found !== undefined) return found as EventOf<Type>
      await new Promise<void>(resolve => this.#onAcknowledged.push(resolve))
    }
  }

  /** Ends all lies, and forgets requests and answers. */
  beHonest(): void {
    for (const all of [this.#httpLies, this.#messageLies, this.#sent, this.#heard]) all.splice(0)
  }

  onOpened(socket: LyingSocket): void {
    this.#socket = socket
  }

  /** Gives the messages that the app gets in its place. */
  onQueue(event: QueueEvent): readonly QueueEvent[] {
    this.#heard.push(event)
    for (const resolve of this.#onAcknowledged.splice(0)) resolve()
    return this.#messageLies.findLast(({ type }) => type === event.type)?.lie(event) ?? [event]
  }
}

class LyingSocket implements WebSocketLike {
  onopen: WebSocketLike['onopen'] = null
  onmessage: WebSocketLike['onmessage'] = null
  onclose: WebSocketLike['onclose'] = null
  onerror: WebSocketLike['onerror'] = null
  readonly #socket: WebSocket
  readonly #lying: LyingServer
  #lastAck = 0

  constructor(lying: LyingServer, url: string, protocols: string[]) {
    this.#lying = lying
    this.#socket = new WebSocket(url, protocols)
    this.#socket.onopen = event => this.onopen?.(event as never)
    this.#socket.onclose = event => this.onclose?.(event as never)
    this.#socket.onerror = event => this.onerror?.(event as never)
    this.#socket.onmessage = ({ data }) => this.#onData(data)
    lying.onOpened(this)
  }

  /** The real server knows nothing of messages that were made up. */
  send(data: string): void {
    const frame = data === '\n' ? undefined : parseFrame(data)
    if (frame?.command !== 'ACK' || !frame.headers.get('id')!.startsWith(MADE_UP)) this.#socket.send(data)
    else this.#tell(formatFrame('RECEIPT', { 'receipt-id': frame.headers.get('receipt')! }))
  }

  close(): void {
    this.#socket.close()
  }

  terminate(): void {
    this.#socket.terminate()
  }

  /** As an event of its own. */
  deliver(event: QueueEvent): void {
    const headers = { subscription: 'calls', ack: `${MADE_UP}${++this.#lastAck}` }
    this.#tell(formatFrame('MESSAGE', headers, JSON.stringify({ ...event, eventId: randomUUID() })))
  }

  #onData(data: unknown): void {
    const frame = data === '\n' ? undefined : parseFrame(String(data))
    if (frame?.command !== 'MESSAGE' || !isQueue(frame)) return this.#tell(data)
    const told = this.#lying.onQueue(JSON.parse(frame.body))
    const headers = Object.fromEntries(frame.headers)
    if (told.length === 0) this.#socket.send(formatFrame('ACK', { id: headers.ack! }))
    const [first, ...others] = told
    if (first !== undefined) this.#tell(formatFrame('MESSAGE', headers, JSON.stringify(first)))
    for (const other of others) this.deliver(other)
  }

  #tell(data: unknown): void {
    this.onmessage?.({ data } as never)
  }
}

export interface DeceivedPerson extends AppPerson {
  readonly lies: LyingServer
}

/** People on one server, each behind a liar of their own. */
export class DeceivedHouse {
  readonly server: OpenServer
  /** All contacts of each other. */
  readonly people: DeceivedPerson[] = []
  readonly #t: Test

  private constructor(t: Test, server: OpenServer) {
    this.#t = t
    this.server = server
  }

  /** After each test, all are honest and have left their calls. */
  static async open(t: Test, count: number, start: typeof openServer = openServer): Promise<DeceivedHouse> {
    const server = await start({ dataFolder: t.testdir(), environment: settingsFor(count) })
    t.teardown(() => server.end())
    const house = new DeceivedHouse(t, server)
    for (let at = 0; at < count; at++) await house.#add(at)
    t.afterEach(() => house.#goHome())
    return house
  }

  /** The person's app ends and starts again. */
  async restart(at: number): Promise<DeceivedPerson> {
    const before = this.people[at]!
    await before.me.close()
    const again = { ...before, ...(await restart(this.#t, before)) }
    this.people[at] = again
    return again
  }

  /** A second hand on the person's device, with its keys and session: a member's app that misbehaves. */
  insider(at: number): Promise<Insider> {
    return startPerson(this.server, at, this.people[at]!.options.storage, undefined, 'go-on')
  }

  async #add(at: number): Promise<void> {
    const lies = new LyingServer()
    const { fetch, webSocket } = lies
    const person = { ...(await newPerson(this.#t, this.server.http, at, { fetch, webSocket })), lies }
    for (const other of this.people) await befriend(person, other)
    this.people.push(person)
  }

  async #goHome(): Promise<void> {
    for (const { lies } of this.people) lies.beHonest()
    for (const { me } of this.people)
      for (const call of me.calls)
        if (call.isIncoming && call.state === 'ringing') await call.decline().catch(() => {})
        else await call.leave().catch(() => {})
  }
}

/** The first person calls the rest, and all answer. Gives each one's call, in order. */
export async function callOf(caller: AppPerson, ...others: readonly AppPerson[]): Promise<Call[]> {
  const ringing = others.map(other => other.me.once('ringing'))
  const call = await caller.me.call(others.map(({ me }) => me.userId!))
  const calls = await Promise.all(ringing)
  for (const one of calls) await one.answer()
  for (const one of [call, ...calls])
    await until(one, ({ participants }) => participants.filter(isJoined).length > others.length)
  return [call, ...calls]
}

/** The next error of the call with this code. */
export async function failure(call: Call, code: string): Promise<CallsignError> {
  for (;;) {
    const error = await call.once('error')
    if (error.code === code) return error
  }
}

/** A key that a misbehaving member's device seals for a victim's, with a set of any devices. */
export async function forge(
  { keyLog }: Insider,
  to: KeyHolder,
  set: readonly KeyHolder[],
  binding: KeyBinding,
  callKey: Uint8Array = makeCallKey(),
): Promise<{ readonly keyMembers: string; readonly encryptedAESKey: string }> {
  const keyMembers = keyMembersOf(set)
  const content = packCallKey({ callKey, setHash: hashOfSet(keyMembers), sealedAtMs: Date.now() })
  return { keyMembers, encryptedAESKey: await sealCallKey(content, keyLog.self, to, binding) }
}

function socketClassOf(lying: LyingServer): WebSocketClass {
  return class extends LyingSocket {
    constructor(url: string, protocols: string[]) {
      super(lying, url, protocols)
    }
  }
}

/** `{callId}` stands for digits. */
function patternOf(operation: OperationName): RegExp {
  const [method, path = ''] = operation.split(' ')
  return new RegExp(`^${method} /app/api/${path.replace(/\{\w+\}/g, '\\d+')}$`)
}

function isJoined({ state }: CallParticipant): boolean {
  return state === 'joined'
}

function added<One>(all: One[], one: One): () => void {
  all.push(one)
  return () => void all.splice(all.indexOf(one), 1)
}

function isQueue({ headers }: StompFrame): boolean {
  return headers.get('ack') !== undefined
}

const MADE_UP = 'made-up-'
