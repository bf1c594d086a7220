/**
 * One life of the server in a seeded run of calls, from a start to a kill: stores over a database in memory, the actor
 * system in a seeded world, and signalling as `start.ts` joins it.
 */

import type { CallRoomMessage } from '../../actors/messages.ts'
import { LiveConnections } from '../../actors/presence.ts'
import { removeDevice } from '../../src/api/devices/device-removal.ts'
import type { CallReply, CallRequest } from '../../src/domain/calls/call-command.ts'
import type { CallId } from '../../src/domain/ids.ts'
import { USUAL_RATES } from '../../src/domain/rates.ts'
import { SignalError } from '../../src/errors.ts'
import type { Metrics } from '../../src/operations/metrics.ts'
import type { ActorKind } from '../../src/runtime/actor.ts'
import { ActorSystem } from '../../src/runtime/system.ts'
import type { Stores } from '../../src/server/application-stores.ts'
import { CallRooms } from '../../src/server/call-rooms.ts'
import { ownActors, Signalling } from '../../src/server/signalling.ts'
import { type PlantedBug, plantInContext, plantInIndex, plantInStore } from './call-bugs.ts'
import type { Ledger, RunNote } from './call-run-ledger.ts'
import type { RunPhone } from './call-run-phone.ts'
import { openRunStores, type RunStores } from './call-run-stores.ts'
import { RoomWatch } from './call-run-watch.ts'
import type { MemoryStore } from './memory-store.ts'
import { type SeededRandom, SeededWorld } from './world.ts'

/** One server life's needs from its run, and its legacy to the next. */
export interface ServerRun {
  readonly bug: PlantedBug | undefined
  readonly draw: SeededRandom
  readonly ledger: Ledger
  readonly database: MemoryStore<RunNote>
  readonly phones: readonly RunPhone[]
  readonly habits: { readonly areRatesLimited: boolean }
  violate(what: string): void
}

export class RunServer {
  readonly world: SeededWorld
  readonly system: ActorSystem
  readonly connections = new LiveConnections()
  readonly rooms: CallRooms
  readonly signalling: Signalling
  readonly watch: RoomWatch
  readonly stores: RunStores
  /** A write was refused, so that anything may be. */
  hasFailed = false
  /** The calls that it found as it started. */
  readonly resumed: ReadonlySet<CallId>
  readonly #run: ServerRun

  constructor(run: ServerRun, startsAtMs: number) {
    this.#run = run
    const { bug, draw, database } = run
    this.world = new SeededWorld(draw.below(2 ** 31))
    this.world.setWallClock(startsAtMs)
    const contextFor = plantInContext.bind(undefined, bug)
    this.watch = new RoomWatch({ ledger: run.ledger, contextFor, violate: what => run.violate(what) })
    this.system = this.#makeSystem()
    const randomBytes = (length: number) => randomBytesOf(draw, length)
    const { connections, watch, world } = this
    this.stores = openRunStores({
      database,
      bug,
      draw,
      watch,
      randomBytes,
      nowMs: () => world.nowMs(),
      soon: run => world.immediate(run),
      onFault: error => run.violate(`a fault of ours: ${error}`),
      isConnected: (userId, deviceId) => connections.isConnected(userId, deviceId),
    })
    const { roomCalls: calls, connectionInbox: deviceInbox, ...stores } = this.stores
    this.resumed = new Set([...calls.live()].map(({ callId }) => callId))
    const opened = { ...stores, database: plantInStore(bug, database, draw), calls, deviceInbox }
    const shared = {
      ...this.#signallingDeps(randomBytes),
      stores: opened as unknown as Stores,
    }
    this.rooms = new CallRooms({ ...shared, presence: connections, requestRates: undefined })
    plantInIndex(bug, this.rooms.index, callId =>
      this.stores.database.view(view => this.stores.roomCalls.read(view, callId)),
    )
    const admission = { connected: () => 0, failedConnect: () => 0 }
    this.signalling = new Signalling({
      ...shared,
      admission: this.#run.habits.areRatesLimited ? admission : undefined,
      actors: ownActors(this.system, this.rooms, { connections, dismissalOf: () => undefined }),
      connections,
      authenticate: authorization => this.#requesterOf(authorization),
      runConnect: connect => connect(),
    })
    this.rooms.resume()
  }

  /** Puts a request to a room as HTTP does it; resolves with the text of a kept reply where there is one. */
  async submit(
    by: RunPhone,
    callId: CallId,
    request: CallRequest,
    key?: string,
  ): Promise<CallReply | string> {
    const { userId, deviceId } = by.actor
    this.rooms.onSeen(userId, deviceId)
    const keyed = key === undefined ? undefined : { scope: `${request.kind} ${userId}`, key, hash: NO_HASH }
    const reply = await this.rooms.ask(callId, request, keyed)
    return reply.kind === 'kept' ? reply.text : reply
  }

  async removeDevice({ actor }: RunPhone): Promise<void> {
    const { database } = this.#run
    await database.change(change => removeDevice(change, this.stores, actor), this.world.nowMs())
  }

  #makeSystem(): ActorSystem {
    const run = this.#run
    return new ActorSystem({
      world: this.world,
      turnsPerVisitMax: 1 + run.draw.below(3),
      fatal: error => run.violate(`the process stops: ${error}`),
      onFailure: ({ kind, id, error }) => {
        const isRefusal = error instanceof SignalError && error.code === 'STORE_UNAVAILABLE'
        if (isRefusal && this.hasFailed) return
        run.violate(`${kind}/${id} fails: ${error instanceof Error ? error.stack : error}`)
      },
    })
  }

  #signallingDeps(randomBytes: (length: number) => Uint8Array) {
    const { system, watch, world } = this
    const define = (kind: ActorKind<CallRoomMessage>) =>
      system.define(kind.kind === 'call-room' ? watch.watched(kind) : kind)
    return {
      system: { define } as unknown as ActorSystem,
      hasTestTopics: false,
      rateLimits: this.#run.habits.areRatesLimited ? USUAL_RATES : undefined,
      idsAs: 'string' as const,
      language: 'en' as const,
      version: '0',
      monotonicMs: () => world.monotonicMs(),
      randomBytes,
      metrics: NO_METRICS,
      onFault: (error: unknown) => this.#run.violate(`a fault of ours: ${error}`),
    }
  }

  #requesterOf(authorization: string) {
    const phone = this.#run.phones.find(({ name }) => authorization === `Bearer ${name}`)
    const { userId, deviceId } = phone!.actor
    if (this.stores.database.view(view => this.stores.devices.active(view, userId, deviceId)) !== undefined) {
      // Each phone has a session, which is good again as soon as it signs in anew.
      return { sessionName: phone!.name, userId, deviceId }
    }
    throw new SignalError('SESSION_REVOKED', 'the device was removed')
  }
}

function randomBytesOf(draw: SeededRandom, length: number): Uint8Array {
  const bytes = Buffer.allocUnsafe(length)
  for (let at = 0; at < length; at++) bytes[at] = draw.below(256)
  return bytes
}

const NO_HASH = Buffer.alloc(32)
const NO_METRICS = {
  callCommands: { inc() {} },
  loweredPushes: { inc() {} },
  stompEndings: { inc() {} },
} as unknown as Metrics
