/**
 * The set-up for actors: an actor system over a real store, with clocks that tests move. It has STOMP connections,
 * presence and topics, without sockets: clients in memory, people with their names for tokens, and calls that tests
 * answer for. `test-rooms.ts` adds the rooms of calls.
 */

import type { Test } from 'tap'
import { devTopicKind } from '../../actors/dev-topic.ts'
import type {
  DevTopicMessage,
  PresenceMessage,
  StompConnectionMessage,
  TopicSubscriber,
} from '../../actors/messages.ts'
import { LiveConnections, presenceKind, tellBadge, tellNews } from '../../actors/presence.ts'
import { stompConnectionKind } from '../../actors/stomp-connection/connection.ts'
import type { StompCalls, StompConnectionDeps, TokenOwner } from '../../actors/stomp-connection/deps.ts'
import { EventFrames } from '../../actors/stomp-connection/event-frames.ts'
import { acceptInto, type RunConnect } from '../../actors/stomp-connection/intake.ts'
import { chooseLanguage } from '../../src/delivery/texts.ts'
import type { CallRequest } from '../../src/domain/calls/call-command.ts'
import type { CallId, DeviceId, UserId } from '../../src/domain/ids.ts'
import type { Badge, NoticeBody } from '../../src/domain/messages/notice.ts'
import { deriveSecrets } from '../../src/domain/secrets.ts'
import { type ErrorCode, SignalError } from '../../src/errors.ts'
import type { Ref } from '../../src/runtime/actor.ts'
import type { ActorSystem } from '../../src/runtime/system.ts'
import { Expiries } from '../../src/store/engine/expiries.ts'
import type { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { DeviceInbox } from '../../src/store/messages/device-inbox.ts'
import { InboxStore } from '../../src/store/messages/inbox-store.ts'
import { LocalInboxWrites } from '../../src/store/messages/inbox-writes.ts'
import type { InboxHead } from '../../src/store/messages/message-tables.ts'
import { problemOf } from '../../src/transport/problem.ts'
import { makeStage, type Stage } from './actors.ts'
import { MemoryClient, type MemoryClientOptions } from './memory-client.ts'
import { openRehearsed } from './memory-disk.ts'
import { connectFrame } from './naive-client.ts'
import { itemOf } from './notice-item.ts'
import { profileOf } from './profile.ts'
import type { Rehearsals } from './rehearsal-store.ts'
import type { FakeWorld } from './world.ts'

/** One person's device; its token is `<userId>.<deviceId>`. */
export interface Person {
  readonly userId: UserId
  readonly deviceId: DeviceId
  readonly token: string
}

let peopleCount = 0

/** A new person, or another device of a known one. */
export function newPerson(userId: UserId = BigInt(++peopleCount + 7_000) as UserId): Person {
  const deviceId = BigInt(++peopleCount + 90_000) as DeviceId
  return { userId, deviceId, token: `${userId}.${deviceId}` }
}

export interface TestActors extends Stage {
  readonly stompDeps: StompConnectionDeps
  readonly database: LmdbStore
  readonly rehearsals: Rehearsals
  readonly inbox: InboxStore
  readonly connections: LiveConnections
  readonly users: (userId: string) => Ref<PresenceMessage>
  readonly topics: (name: string) => Ref<DevTopicMessage>
  readonly system: ActorSystem
  readonly calls: FakeCalls
  /** `userId.deviceId online|offline`, as calls would be told. */
  readonly presence: string[]
  /** Reasons for which connections ended. */
  readonly ended: string[]
  /** Addresses, as text, of CONNECTs that failed. */
  readonly failedConnects: string[]
  /** Faults of ours that answers hid, each after its request id. */
  readonly faults: string[]
  /** Everybody there is. */
  readonly peers: MemoryClient[]
  open(options?: MemoryClientOptions): MemoryClient
  /** A client that has signed in, with its CONNECTED taken; `headers` are lines of its CONNECT. */
  connect(person: Person, version?: string, headers?: string): Promise<MemoryClient>
  /** Tells a device something, as an operation would. */
  tell(person: Person, body: NoticeBody, expiresAtMs?: number): Promise<void>
  /** Sets every badge to so many missed calls, without a message. */
  countMissed(missedCalls: number): void
  /** Has everybody's badge count so many missed calls, and the person's connections told that it may be another. */
  setBadge(person: Person, missedCalls: number): Promise<void>
  /** Puts a text into a queue of the development surface. */
  keep(person: Person, queue: string, ...bodies: string[]): Promise<void>
  /** Of the person's inbox. */
  head(person: Person): InboxHead
  /** Until everything that is under way has come to its end. */
  settle(): Promise<void>
  /** Lets time pass, in steps that let everything happen in between. */
  pass(ms: number): Promise<void>
}

export interface TestActorsOptions {
  readonly deps?: Partial<StompConnectionDeps>
  /** An earlier set-up's folder, whose store goes on. */
  readonly folder?: string
  /** By default one in which nothing runs until the test says so. */
  readonly world?: FakeWorld
  /** When acknowledgements that are collected are written; left out: as soon as the event loop comes round. */
  readonly soon?: (run: () => void) => void
  /** Runs a client's first pieces; at once where it is left out. */
  readonly runConnect?: RunConnect
}

export function openTestActors(t: Test, options: TestActorsOptions = {}): TestActors {
  const stage = makeStage({}, options.world)
  const { world, system } = stage
  const { database, rehearsals } = openRehearsed(options.folder ?? t.testdir(), () => world.nowMs())
  const { randomBytes } = rehearsals
  t.teardown(() => database.close())
  const connections = new LiveConnections()
  const inbox = new InboxStore({
    database,
    expiries: new Expiries(),
    secrets: deriveSecrets(Buffer.alloc(32, 1)),
    randomBytes,
    isConnected: (userId, deviceId) => connections.isConnected(userId, deviceId),
  })
  database.subscribe('inbox-news', ({ userId, deviceId }) => tellNews(connections, userId, deviceId))
  database.subscribe('badge-changed', ({ userId }) => tellBadge(connections, userId))
  database.subscribe('session-ended', ({ userId, sessionId }) =>
    users(String(userId)).tellControl({ kind: 'revoked', revoked: { kind: 'session', sessionId } }),
  )
  const presence: string[] = []
  const users = system.define(
    presenceKind(
      connections,
      () => undefined,
      (userId, deviceId, isOnline) =>
        presence.push(`${userId}.${deviceId} ${isOnline ? 'online' : 'offline'}`),
    ),
  )
  const topics = system.define(devTopicKind())
  const calls = new FakeCalls()
  let badge: Badge = { total: 0, friendRequests: 0, missedCalls: 0 }
  const countMissed = (missedCalls: number) => {
    badge = { total: missedCalls, friendRequests: 0, missedCalls }
  }
  const ended: string[] = []
  const failedConnects: string[] = []
  const faults: string[] = []
  const stompDeps: StompConnectionDeps = {
    server: 'callsign/0.0.0',
    hasTestTopics: true,
    areRatesLimited: false,
    isDraining: () => false,
    monotonicMs: () => world.monotonicMs(),
    newEventId: () => randomBytes(16).toString('base64url'),
    badgeOf: () => badge,
    authenticate: authenticateByName,
    restrictionOf: () => undefined,
    admission: {
      connected: () => 0,
      failedConnect(network) {
        failedConnects.push(network)
        return 0
      },
    },
    inbox: new DeviceInbox({
      database,
      inbox,
      writes: new LocalInboxWrites(database, inbox),
      nowMs: () => world.nowMs(),
      soon: options.soon ?? (run => world.immediate(run)),
      onFault: error => void faults.push(String(error)),
    }),
    frames: new EventFrames({ idsAs: 'string', userOf: profileOf }),
    calls,
    users,
    topics,
    problemOf,
    languageOf: header => chooseLanguage(header, 'en'),
    onFault: (error, requestId) => faults.push(`${requestId} ${error}`),
    onEnded: reason => ended.push(reason),
    ...options.deps,
  }
  const refs = system.define(stompConnectionKind(stompDeps))
  const accept = acceptInto(refs, stompDeps.isDraining, options.runConnect ?? (connect => connect()))
  const peers: MemoryClient[] = []
  const flush = () => {
    world.run()
    for (const peer of peers) if (!peer.isClosed) peer.flush()
  }
  const settle = async () => {
    for (let round = 0; round < 2; round++) {
      await world.settle()
      flush()
      await database.change(() => undefined)
      await world.settle()
      flush()
    }
  }
  const open = (peerOptions: MemoryClientOptions = {}) => {
    const peer = new MemoryClient(accept, peerOptions)
    peers.push(peer)
    return peer
  }
  return {
    ...stage,
    stompDeps,
    database,
    rehearsals,
    inbox,
    connections,
    users,
    topics,
    calls,
    presence,
    ended,
    failedConnects,
    faults,
    peers,
    open,
    async connect({ token }, version, headers) {
      const peer = open()
      peer.write(connectFrame(token, version, headers))
      await settle()
      const [frame] = peer.take()
      if (frame?.command !== 'CONNECTED') throw new Error(`not connected: ${frame?.octets}`)
      return peer
    },
    async tell({ userId, deviceId }, body, expiresAtMs) {
      const notice = { ...body, eventId: randomBytes(16).toString('base64url'), sentAtMs: world.nowMs() }
      const entry = {
        item: itemOf(notice),
        ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
      } as const
      await database.change(change => inbox.append(change, userId, deviceId, entry), world.nowMs())
      await settle()
    },
    countMissed,
    async setBadge({ userId }, missedCalls) {
      countMissed(missedCalls)
      await database.change(change => change.happened({ kind: 'badge-changed', userId }))
      await settle()
    },
    async keep({ userId, deviceId }, queue, ...bodies) {
      await database.change(change => {
        for (const body of bodies) {
          const item = { kind: 'dev', queue, headers: [], body: Buffer.from(body) } as const
          inbox.append(change, userId, deviceId, { item })
        }
      }, world.nowMs())
      await settle()
    },
    head: ({ userId, deviceId }) => database.view(view => inbox.head(view, userId, deviceId)),
    settle,
    async pass(ms) {
      for (let left = ms; left > 0; left -= STEP_MS) {
        world.advance(Math.min(left, STEP_MS))
        flush()
      }
      await settle()
    },
  }
}

/** Calls whose rooms do what the test says. */
export class FakeCalls implements StompCalls {
  /** `callId command said`, in order. */
  readonly commands: string[] = []
  readonly subscribers = new Map<string, TopicSubscriber>()
  /** Code with which commands and subscriptions are refused. */
  refusal: ErrorCode | undefined = undefined

  async command(callId: CallId, { kind, by: _, ...said }: CallRequest): Promise<void> {
    if (this.refusal !== undefined) throw new SignalError(this.refusal, 'not now')
    this.commands.push(`${callId} ${kind} ${JSON.stringify(said)}`)
  }

  async subscribe(callId: string, _by: unknown, subscriber: TopicSubscriber, tag: number): Promise<void> {
    if (this.refusal !== undefined) throw new SignalError(this.refusal, 'not yours')
    this.subscribers.set(callId, subscriber)
    subscriber.tell({ kind: 'topic-joined', tag })
  }

  unsubscribe(callId: string): void {
    this.subscribers.delete(callId)
  }
}

/** The connection's actor, for messages that presence or a topic would tell it. */
export function connectionOf({ system }: TestActors, peer: MemoryClient): Ref<StompConnectionMessage> {
  return system.ref('stomp-connection', peer.id)
}

function authenticateByName(authorization: string): TokenOwner {
  if (authorization === '') throw new SignalError('TOKEN_MISSING', 'send a token')
  const token = authorization.replace(/^Bearer /, '')
  if (token === 'expired')
    throw new SignalError('TOKEN_EXPIRED', 'the access token is over: refresh once and repeat')
  const [, userId, deviceId] = /^(\d+)\.(\d*)$/.exec(token) ?? []
  if (userId === undefined) throw new SignalError('TOKEN_INVALID', 'the access token is not accepted')
  const owner = { sessionName: token, userId: BigInt(userId) as UserId }
  return deviceId === '' ? owner : { ...owner, deviceId: BigInt(deviceId!) as DeviceId }
}

/** As the timers of the runtime tick. */
const STEP_MS = 100
