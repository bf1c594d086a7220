/**
 * The rooms of calls in the set-up for actors, behind the HTTP operations. The clock is moved by the test; everything
 * else takes its real course. A restart closes all of it and opens it again on the same folder.
 */

import type { Test } from 'tap'
import { type CallRoomDeps, callRoomKind } from '../../actors/calls/call-room.ts'
import type { CallRoomMessage } from '../../actors/messages.ts'
import { CALL_HISTORY } from '../../src/api/calls/call-history.ts'
import { CALL_VIEWS } from '../../src/api/calls/call-views.ts'
import { CALLS, keptCallReply } from '../../src/api/calls/calls.ts'
import { CommandIntake } from '../../src/api/calls/command-intake.ts'
import type { Call } from '../../src/domain/calls/call.ts'
import type { CallReply, CallRequest } from '../../src/domain/calls/call-command.ts'
import { activeRowOf, type CallHistoryRow } from '../../src/domain/calls/call-history.ts'
import { UnansweredRings } from '../../src/domain/calls/unanswered-rings.ts'
import type { Device } from '../../src/domain/devices/device.ts'
import type { KeyAlgorithm } from '../../src/domain/devices/public-key.ts'
import { type CallId, type DeviceId, newId, type RequestId, type UserId } from '../../src/domain/ids.ts'
import { noticeOf } from '../../src/domain/messages/inbox.ts'
import type { Notice } from '../../src/domain/messages/notice.ts'
import { USUAL_RATES } from '../../src/domain/rates.ts'
import { TokenBuckets } from '../../src/domain/token-bucket.ts'
import { SignalError } from '../../src/errors.ts'
import type { Ref } from '../../src/runtime/actor.ts'
import type { ActorSystem } from '../../src/runtime/system.ts'
import type { Admit } from '../../src/schema/call.ts'
import { CallFactsReader } from '../../src/store/calls/call-facts.ts'
import type { CallHistoryStore } from '../../src/store/calls/call-history-store.ts'
import { CallIndex } from '../../src/store/calls/call-index.ts'
import type { CallStore } from '../../src/store/calls/call-store.ts'
import type { ContactStore } from '../../src/store/contacts/contact-store.ts'
import type { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import type { IdempotentRequest } from '../../src/store/tables/idempotency-store.ts'
import { newDevice, newSession, newUser, type Send, sender, type TestWorld, worldOf } from './application.ts'
import { openTestActors, type TestActors } from './test-actors.ts'
import { FakeWorld } from './world.ts'

/** A device and who uses it. */
export interface Phone {
  readonly userId: UserId
  readonly deviceId: DeviceId
  readonly publicKeyHash: string
  readonly keyAlgorithm: KeyAlgorithm
  readonly token: string
}

export interface Person {
  readonly userId: UserId
  readonly phones: readonly Phone[]
  /** The first of them. */
  readonly phone: Phone
}

/** Clocks that stand still until the test moves them; microtasks and immediates are the real ones. */
class TestClock extends FakeWorld {
  override microtask(run: () => void): void {
    queueMicrotask(run)
  }

  override immediate(run: () => void): void {
    setImmediate(run)
  }
}

export interface RoomsOptions {
  readonly folder?: string
  readonly rates?: boolean
  /** Left out: there are no media gateways. */
  readonly admit?: Admit
  /** Stands for parts of the rooms' world. */
  readonly roomDeps?: (world: CallRoomDeps) => Partial<CallRoomDeps>
}

export class TestRooms {
  readonly world: TestWorld
  readonly clock: FakeWorld
  readonly system: ActorSystem
  readonly index = new CallIndex()
  readonly calls: CallStore
  readonly history: CallHistoryStore
  readonly contacts: ContactStore
  /** Devices that have a socket, as `<userId> <deviceId>`. */
  readonly connected = new Set<string>()
  /** Users with a connected device that may do little. */
  readonly restricted = new Set<UserId>()
  /** How many of the next writes of rooms fail. */
  writesToFail = 0
  readonly #t: Test
  readonly #actors: TestActors
  readonly #folder: string
  #next: TestRooms | undefined
  #isClosed = false
  /** Whether the change that is asked for is a room's. */
  #isApplying = false
  readonly #send: Send
  readonly #room: (id: string) => Ref<CallRoomMessage>

  constructor(t: Test, folder: string, options: RoomsOptions, wallMs?: number) {
    this.#t = t
    this.#folder = folder
    this.clock = new TestClock()
    if (wallMs !== undefined) this.clock.setWallClock(wallMs)
    const { rates = false, admit } = options
    const { connected, restricted, index } = this
    const isConnected = (userId: UserId, deviceId: DeviceId) => connected.has(`${userId} ${deviceId}`)
    const around = (database: LmdbStore) => this.#failing(database)
    const actors = openTestActors(t, { folder, world: this.clock })
    this.world = worldOf(actors, this.clock, { rates, isConnected, around })
    const { world } = this
    // Inboxes hold what calls tell, and nothing of contacts.
    world.notices.tell = () => undefined
    this.history = world.history
    this.calls = world.calls
    this.contacts = world.contacts
    this.system = actors.system
    this.#actors = actors
    const { contacts, calls } = this
    const roomDeps: CallRoomDeps = {
      store: {
        open: callId => calls.open(callId),
        apply: (...args) => this.#apply(...args),
        confirm: callId => calls.confirm(callId),
      },
      index,
      facts: new CallFactsReader({ ...world, contacts, index }),
      presence: { isConnected, hasRestricted: userId => restricted.has(userId) },
      keptReply: (kind, reply) => keptCallReply(kind, reply, { idsAs: world.idsAs, admit }),
      ...(rates && {
        rings: new UnansweredRings(new TokenBuckets(USUAL_RATES['call-ring'], 1_000)),
        keyRates: new TokenBuckets(USUAL_RATES['call-keys'], 1_000),
      }),
      newEventId: () => Buffer.from(world.randomBytes(16)).toString('base64url'),
      idsAs: world.idsAs,
      loweredPushes: { inc: () => undefined },
      monotonicMs: () => this.clock.monotonicMs(),
    }
    this.#room = this.system.define(callRoomKind({ ...roomDeps, ...options.roomDeps?.(roomDeps) }))
    const intake = new CommandIntake(world)
    const api = {
      ...world,
      ...{ calls, admit },
      callIndex: index,
      liveCallsOf: (userId: UserId) => index.callsOf(userId),
      history: this.history,
      askRoom: (callId: CallId, request: CallRequest, idempotent?: IdempotentRequest) =>
        intake.take(callId, request, idempotent, () => this.askOf(callId, request, idempotent)),
    }
    this.#send = sender(api, [...CALL_VIEWS, ...CALL_HISTORY, ...CALLS])
    for (const call of calls.live()) {
      index.put(call)
      this.#room(String(call.callId)).tellControl({ kind: 'deadline' })
    }
  }

  /** Errors that actors threw, and rejected commits. */
  get failures(): string[] {
    const { failures, fatal } = this.#actors
    return [...failures, ...fatal.map(error => `fatal: ${error}`)]
  }

  room(callId: CallId): Ref<CallRoomMessage> {
    return this.#room(String(callId))
  }

  /** Asks without waiting for anything. */
  askOf(callId: CallId, command: CallRequest, idempotent?: IdempotentRequest): Promise<CallReply> {
    return this.room(callId).ask(reply => ({ kind: 'command', command, idempotent, reply }), DEADLINE_MS)
  }

  /** Asks, and lets everything that follows from it come to its end. */
  async ask(callId: CallId, command: CallRequest): Promise<CallReply> {
    const asked = this.askOf(callId, command)
    asked.catch(() => undefined)
    await this.rest()
    return asked
  }

  /** Sends the room a command without waiting for the answer. */
  async tell(callId: CallId, command: CallRequest): Promise<void> {
    this.room(callId).tell({ kind: 'command', command })
    await this.rest()
  }

  /** As a client would, and lets everything that follows come to its end. */
  readonly send: Send = async (methodAndPath, request) => {
    const answer = await this.#send(methodAndPath, request)
    await this.rest()
    return answer
  }

  /** Waits until no write, ask or turn is under way. */
  async rest(): Promise<void> {
    for (let quiet = 0; quiet < 3; ) {
      await new Promise(resolve => setImmediate(resolve))
      const { commitsUnderWay, asksOpen, runQueueLength } = this.system.figures()
      quiet = commitsUnderWay + asksOpen + runQueueLength === 0 ? quiet + 1 : 0
    }
  }

  /** Time passes, and deadlines on the way happen in their time. */
  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= STEP_MS) {
      this.clock.advance(Math.min(left, STEP_MS))
      await this.rest()
    }
    await this.world.expiries.sweep(this.world.database, this.clock.nowMs(), 500)
  }

  /** The same server after its process was killed and was away for so long. */
  async restart(options: RoomsOptions = {}, awayMs = 0): Promise<TestRooms> {
    await this.close()
    this.#next = new TestRooms(this.#t, this.#folder, options, this.clock.nowMs() + awayMs)
    await this.#next.rest()
    return this.#next
  }

  /** Closes the store, even the one opened after a restart. */
  async close(): Promise<void> {
    if (!this.#isClosed) await this.world.database.close()
    this.#isClosed = true
    await this.#next?.close()
  }

  async person(name: string, phones = 1): Promise<Person> {
    const { userId } = await newUser(this.world, name)
    const theirs: Phone[] = []
    for (let at = 0; at < phones; at++) theirs.push(await this.phoneOf(userId))
    return { userId, phones: theirs, phone: theirs[0]! }
  }

  async phoneOf(userId: UserId): Promise<Phone> {
    const { deviceId, publicKeyHash, keyAlgorithm }: Device = await newDevice(this.world, userId)
    const { token } = await newSession(this.world, userId, deviceId)
    return { userId, deviceId, publicKeyHash, keyAlgorithm, token }
  }

  /** People who are all contacts of each other; each has so many devices. */
  async people(names: readonly string[], phones = 1): Promise<Person[]> {
    const people: Person[] = []
    for (const name of names) people.push(await this.person(name, phones))
    for (const [at, one] of people.entries()) {
      for (const other of people.slice(at + 1)) await this.befriend(one.userId, other.userId)
    }
    return people
  }

  async befriend(one: UserId, other: UserId): Promise<void> {
    const { world, contacts } = this
    await world.database.change(change => {
      for (const [senderId, receiverId] of [
        [one, other],
        [other, one],
      ] as const) {
        const requestId = newId(world.randomBytes) as RequestId
        const command = { requestId, senderId, receiverId, route: 'id', message: undefined } as const
        const decision = contacts.decideRequest(change, command, world.nowMs())
        if (decision.kind === 'refused') throw new SignalError(decision.code, 'they can not be contacts')
        contacts.request(change, command, decision)
      }
    }, world.nowMs())
  }

  newCallId(): CallId {
    return newId(this.world.randomBytes) as CallId
  }

  startRequest(by: Phone, callees: readonly Person[], callId: CallId, roomId?: number) {
    return {
      kind: 'start' as const,
      by,
      callId,
      roomId,
      isVideo: true,
      calleeIds: callees.map(({ userId }) => userId),
      encryptedAESKeys: keysFor(callees.flatMap(({ phones }) => phones)),
    }
  }

  /** A call that rings. */
  async start(by: Phone, callees: readonly Person[]): Promise<CallId> {
    const callId = this.newCallId()
    await this.ask(callId, this.startRequest(by, callees, callId))
    return callId
  }

  connect({ userId, deviceId }: Phone): void {
    this.connected.add(`${userId} ${deviceId}`)
  }

  disconnect({ userId, deviceId }: Phone): void {
    this.connected.delete(`${userId} ${deviceId}`)
  }

  /** The device's waiting messages. */
  inboxOf({ userId, deviceId }: Phone): Notice[] {
    const { database, inbox } = this.world
    const waiting = database.view(view =>
      inbox.after(view, userId, deviceId, { offset: 0, limit: 500, nowMs: this.clock.nowMs() }),
    )
    return waiting.flatMap(({ item }) => (item.kind === 'notice' ? [noticeOf(item)] : []))
  }

  kindsFor(phone: Phone): string[] {
    return this.inboxOf(phone).map(({ kind }) => kind)
  }

  call(callId: CallId): Call | undefined {
    return this.world.database.view(view => this.calls.read(view, callId))
  }

  /** What the user remembers, newest first. */
  historyOf(userId: UserId): CallHistoryRow[] {
    return this.world.database.view(view => {
      const active = this.index.callsOf(userId).flatMap(callId => {
        const call = this.calls.read(view, callId)
        return (call && activeRowOf(call, userId)) ?? []
      })
      return this.history.list(view, userId, { limit: 10, active }, this.clock.nowMs())
    })
  }

  /** The live call's `<state>` of each person in order. */
  statesOf(callId: CallId): string[] | undefined {
    return this.call(callId)?.participants.map(({ state }) => state)
  }

  #apply(...args: Parameters<CallStore['apply']>): Promise<void> {
    this.#isApplying = true
    const applied = this.calls.apply(...args)
    this.#isApplying = false
    return applied
  }

  /** The database, but for the writes of rooms that fail. */
  #failing(real: LmdbStore): LmdbStore {
    const change: LmdbStore['change'] = (write, atMs) => {
      if (this.writesToFail === 0 || !this.#isApplying) return real.change(write, atMs)
      this.writesToFail -= 1
      return Promise.reject(new SignalError('STORE_UNAVAILABLE', 'the disk is full'))
    }
    return new Proxy(real, {
      get(database, name) {
        const member = name === 'change' ? change : Reflect.get(database, name)
        return typeof member === 'function' ? member.bind(database) : member
      },
    })
  }
}

export function openRooms(t: Test, options: RoomsOptions = {}): TestRooms {
  const folder = options.folder ?? t.testdir()
  const rooms = new TestRooms(t, folder, options)
  t.teardown(() => rooms.close())
  return rooms
}

/** Stand-ins for an epoch's key, encrypted for each device. */
export function keysFor(
  phones: readonly Pick<Phone, 'userId' | 'deviceId'>[],
  epoch = 1,
): Record<string, string> {
  return Object.fromEntries(phones.map(phone => [nameOf(phone), keyFor(phone, epoch)]))
}

export function keyFor(phone: Pick<Phone, 'userId' | 'deviceId'>, epoch = 1): string {
  return Buffer.from(`key of epoch ${epoch} for ${nameOf(phone)} `.padEnd(96, '.')).toString('base64')
}

export function nameOf({ userId, deviceId }: Pick<Phone, 'userId' | 'deviceId'>): string {
  return `${userId}_${deviceId}`
}

const DEADLINE_MS = 10_000
/** A tick of the runtime is a tenth of it. */
const STEP_MS = 1_000
