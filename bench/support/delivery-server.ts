/**
 * Program: the project's sessions, actors and connections over inboxes in memory: a POST puts an invitation, or the end of
 * one, into the inbox of each device of a group and has their connections told. Nothing is durable, and no rule is kept.
 */

import { randomBytes } from 'node:crypto'
import type { PresenceMessage, StompConnectionMessage } from '../../actors/messages.ts'
import { LiveConnections, presenceKind, tellNews } from '../../actors/presence.ts'
import { stompConnectionKind } from '../../actors/stomp-connection/connection.ts'
import type { StompConnectionDeps } from '../../actors/stomp-connection/deps.ts'
import { EventFrames } from '../../actors/stomp-connection/event-frames.ts'
import { acceptInto } from '../../actors/stomp-connection/intake.ts'
import type { PersonName } from '../../src/domain/calls/call-notice.ts'
import type { CallId, DeviceId, UserId } from '../../src/domain/ids.ts'
import type { NoticeItem } from '../../src/domain/messages/inbox.ts'
import type { SharedNotice } from '../../src/domain/messages/notice.ts'
import type { Ref } from '../../src/runtime/actor.ts'
import { realWorld } from '../../src/runtime/clock.ts'
import { ActorSystem } from '../../src/runtime/system.ts'
import { sessionName } from '../../src/store/accounts/session-store.ts'
import type { InboxMessage } from '../../src/store/messages/inbox-store.ts'
import { HttpServer } from '../../src/transport/http.ts'
import { OpenConnections } from '../../src/transport/open-connections.ts'
import { problemOf } from '../../src/transport/problem.ts'
import type { HttpRoute } from '../../src/transport/route.ts'
import type { CallGroup } from './call-load.ts'
import { serveParent } from './program.ts'

export interface DeliveryServerProtocol {
  readonly setup: { readonly groups: readonly CallGroup[] }
  readonly request: 'port'
  readonly answer: number
}

serveParent<DeliveryServerProtocol>(async ({ groups }) => {
  const port = await new House(groups).listen()
  return () => port
})

/** A device with its waiting messages. */
interface Device {
  readonly userId: UserId
  readonly deviceId: DeviceId
  readonly encryptedAESKey: string
  waiting: InboxMessage[]
  nextOffset: number
}

class House {
  readonly #world = realWorld()
  readonly #connections = new LiveConnections()
  readonly #users: (userId: string) => Ref<PresenceMessage>
  readonly #system: ActorSystem
  readonly #groups: readonly (readonly Device[])[]
  readonly #byToken = new Map<string, Device>()
  readonly #byId = new Map<DeviceId, Device>()

  constructor(groups: readonly CallGroup[]) {
    this.#system = new ActorSystem({ world: this.#world, fatal })
    this.#users = this.#system.define(
      presenceKind(
        this.#connections,
        () => undefined,
        () => undefined,
      ),
    )
    this.#groups = groups.map(({ callees }) =>
      callees.flatMap(({ userId, devices }) =>
        devices.map(({ deviceId, token }) => this.#newDevice(userId, deviceId, token)),
      ),
    )
  }

  listen(): Promise<number> {
    const connectionOf = this.#system.define<StompConnectionMessage>(
      stompConnectionKind(this.#connectionDeps()),
    )
    const webSocket = {
      accept: acceptInto(
        connectionOf,
        () => false,
        connect => connect(),
      ),
      connections: new OpenConnections(),
    }
    const routes = [
      this.#route('/app/api/call/start', 201, invitationTo),
      this.#route('/app/api/call/{callId}/end', 200, endFor),
    ]
    return new HttpServer({ routes, webSocket, onRefused: fatal, onFault: fatal }).listen('127.0.0.1', 0)
  }

  #route(path: string, status: number, noticeTo: typeof invitationTo): HttpRoute {
    return {
      method: 'POST',
      path,
      headers: ['x-group', 'x-call'],
      bodyBytesMax: BODY_BYTES_MAX,
      handle: ({ header }) => {
        const callId = header('x-call')
        const devices = this.#groups[Number(header('x-group'))]!
        const userIds = new Set(devices.map(({ userId }) => userId))
        const people = [...userIds].map(userId => ({ userId, displayName: NAME }))
        const body = noticeTo(BigInt(callId) as CallId, people)
        for (const device of devices) this.#tell(device, body)
        return { status, contentType: 'application/json', body: `{"callId":"${callId}"}` }
      },
    }
  }

  #tell(device: Device, body: SharedNotice): void {
    const offset = device.nextOffset++
    const encryptedAESKey = body.kind === 'call_invitation' ? device.encryptedAESKey : undefined
    const own = { encryptedAESKey, eventId: EVENT_ID, sentAtMs: NOW_MS }
    const item: NoticeItem = { kind: 'notice', body, ...own }
    device.waiting.push({ offset, queue: 'calls', item, atMs: NOW_MS, expiresAtMs: LATER_MS })
    tellNews(this.#connections, device.userId, device.deviceId)
  }

  #connectionDeps(): StompConnectionDeps {
    const deviceOf = (deviceId: DeviceId) => this.#byId.get(deviceId)!
    return {
      server: 'bench/1',
      hasTestTopics: false,
      areRatesLimited: false,
      isDraining: () => false,
      problemOf,
      languageOf: () => 'en',
      monotonicMs: () => this.#world.monotonicMs(),
      newEventId: () => EVENT_ID,
      authenticate: authorization => ({
        ...this.#byToken.get(authorization.slice('Bearer '.length))!,
        sessionName: sessionName(randomBytes(16)),
      }),
      restrictionOf: () => undefined,
      badgeOf: () => NO_BADGE,
      inbox: {
        head(_userId, deviceId) {
          const { nextOffset, waiting } = deviceOf(deviceId)
          return { epoch: 1, nextOffset, givenBelow: nextOffset, lostOffset: 0, count: waiting.length }
        },
        after: (_userId, deviceId, offset) => deviceOf(deviceId).waiting.filter(each => each.offset > offset),
        isSettling: () => false,
        settleSoon(_userId, deviceId, settled) {
          const device = deviceOf(deviceId)
          device.waiting = device.waiting.filter(({ offset }) => !settled.includes(offset))
        },
        settleNow: async () => undefined,
        failedSettles: 0,
        change: () => fatal('nothing is sent'),
        markDelivered: async () => undefined,
      },
      frames: new EventFrames({ idsAs: 'string', userOf: () => fatal('no user is shown') }),
      calls: {
        command: () => fatal('no command comes'),
        subscribe: () => fatal('nobody watches'),
        unsubscribe: () => undefined,
      },
      users: this.#users,
      topics: () => fatal('there are no topics'),
      onEnded: () => undefined,
      onFault: fatal,
    }
  }

  #newDevice(userIdText: string, deviceIdText: string, token: string): Device {
    const [userId, deviceId] = [BigInt(userIdText) as UserId, BigInt(deviceIdText) as DeviceId]
    const encryptedAESKey = randomBytes(SEALED_KEY_BYTES).toString('base64')
    const device = { userId, deviceId, encryptedAESKey, waiting: [], nextOffset: 1 }
    this.#byToken.set(token, device)
    this.#byId.set(deviceId, device)
    return device
  }
}

function invitationTo(callId: CallId, participants: readonly PersonName[]): SharedNotice {
  return {
    kind: 'call_invitation',
    callId,
    version: 1,
    callerId: CALLER_ID,
    callerName: NAME,
    displayName: NAME,
    alias: undefined,
    isContact: true,
    roomId: 4_503_599_627_370_496,
    isVideo: true,
    isOnGoing: false,
    keyEpoch: 1,
    keyFromUserId: CALLER_ID,
    keyFromDeviceId: CALLERS_PHONE,
    expiresAtMs: LATER_MS,
    participants,
  }
}

function endFor(callId: CallId): SharedNotice {
  return {
    kind: 'call_cancelled',
    callId,
    version: 1,
    callerId: CALLER_ID,
    callerName: NAME,
    displayName: NAME,
    alias: undefined,
    isContact: true,
    isVideo: true,
    atMs: NOW_MS,
  }
}

function fatal(error: unknown): never {
  throw error
}

const CALLER_ID = 4_503_599_627_370_497n as UserId
const CALLERS_PHONE = 4_503_599_627_370_499n as DeviceId
const NAME = 'Ann Example'
const NOW_MS = 1_800_000_000_000
const LATER_MS = NOW_MS + 60_000
const EVENT_ID = 'x'.repeat(22)
const BODY_BYTES_MAX = 512 * 1024
const SEALED_KEY_BYTES = 125
const NO_BADGE = { total: 0, friendRequests: 0, missedCalls: 0 }
