/**
 * The writer's side of its fronts: what they need to answer reads by themselves, the actors that they speak to, and what
 * of a front ends with it.
 */

import type { Duplex } from 'node:stream'
import { serialize } from 'node:v8'
import { frontDeskKind } from '../../actors/front-desk.ts'
import type { ForwardedRequest, FrontMessage, PresenceMessage } from '../../actors/messages.ts'
import type { LiveConnections } from '../../actors/presence.ts'
import type { DeviceId, UserId } from '../domain/ids.ts'
import { SignalError } from '../errors.ts'
import type { PublishedLog } from '../keyserver/published-log.ts'
import { Link } from '../nodes/link.ts'
import type { ProcessMetrics } from '../operations/merged-metrics.ts'
import type { Ref } from '../runtime/actor.ts'
import { RemoteRef } from '../runtime/remote-ref.ts'
import type { ActorSystem } from '../runtime/system.ts'
import type { Database } from '../store/engine/database.ts'
import type { TlsFiles } from '../transport/http-deps.ts'
import type { HttpAnswer, HttpRoute } from '../transport/route.ts'
import type { Addresses } from './addresses.ts'
import type { Stores } from './application-stores.ts'
import type { CallRooms } from './call-rooms.ts'
import type { FrontHandle } from './front-processes.ts'
import { FRONT_SILENCE_MS_MAX, type SaidByFront, type SaidByWriter, WRITER_SERVES } from './node-forms.ts'
import type { Process } from './process.ts'
import { VERSION } from './version.ts'

export interface FrontsDeps {
  readonly host: Pick<Process, 'config' | 'world' | 'logger' | 'onFault' | 'devConsole'>
  readonly system: ActorSystem
  readonly database: Pick<Database, 'follow' | 'lastChange'>
  readonly stores: Pick<Stores, 'sessions' | 'inboxWrites'>
  readonly rooms: Pick<CallRooms, 'onSeen'>
  readonly connections: LiveConnections
  /** All that the writer would serve itself. */
  readonly routes: readonly HttpRoute[]
  readonly published: PublishedLog
  readonly addresses: Addresses
  /** All fronts listen on this port. */
  readonly port: number
}

class OpenFront implements FrontHandle {
  readonly name: string
  readonly link: Link
  readonly self: Ref<FrontMessage>
  isReady = false
  #said = 0
  #saidAtTick = 0
  #heard = 0
  /** In the order of what they wait for. */
  #waiting: { readonly count: number; readonly resolve: () => void }[] = []

  constructor(name: string, link: Link, self: Ref<FrontMessage>) {
    this.name = name
    this.link = link
    this.self = self
  }

  stop(): void {
    this.self.tellControl({ kind: 'stop' })
  }

  say(said: SaidByWriter): void {
    this.#said += 1
    this.link.say(said)
  }

  onHeard(count: number): void {
    this.#heard = count
    this.#release(count)
  }

  /** Releases all that have waited since the tick before. */
  onTick(): void {
    this.#release(this.#saidAtTick)
    this.#saidAtTick = this.#said
  }

  #release(count: number): void {
    while (this.#waiting.length > 0 && this.#waiting[0]!.count <= count) this.#waiting.shift()!.resolve()
  }

  /** Resolves when it has heeded all that was said so far; undefined where it has. */
  caughtUp(): Promise<void> | undefined {
    const count = this.#said
    if (this.#heard >= count) return undefined
    return new Promise(resolve => this.#waiting.push({ count, resolve }))
  }
}

export class Fronts {
  readonly #deps: FrontsDeps
  readonly #open = new Set<OpenFront>()
  readonly #routes: ReadonlyMap<string, HttpRoute>
  #onReady: (() => void) | undefined

  constructor(deps: FrontsDeps) {
    this.#deps = deps
    this.#routes = new Map(deps.routes.map(route => [nameOfRoute(route), route]))
    deps.system.define(
      frontDeskKind({
        answer: (route, request) => this.#answer(route, request),
        inbox: deps.stores.inboxWrites,
        onServed: deps.host.devConsole?.onServedByFront,
        onFault: deps.host.onFault,
      }),
    )
    deps.host.world.every(CATCH_UP_TICK_MS, () => {
      for (const front of this.#open) front.onTick()
    })
  }

  /** Speaks to a front that has just been started. */
  readonly open = (socket: Duplex, name: string): FrontHandle => {
    const { system, host, database } = this.#deps
    let stopFollowing = () => {}
    const link: Link = new Link({
      socket,
      self: { name: 'writer', version: VERSION },
      system,
      serves: WRITER_SERVES,
      silenceMsMax: FRONT_SILENCE_MS_MAX,
      world: host.world,
      onOpen: () => {
        this.#open.add(front)
        this.#welcome(front)
        stopFollowing = database.follow(change => front.say({ kind: 'changed', ...change }))
      },
      onSaid: said => this.#onSaid(front, said as SaidByFront),
      onLost: reason => {
        stopFollowing()
        this.#open.delete(front)
        front.isReady = false
        front.onHeard(Number.POSITIVE_INFINITY)
        host.logger.warn({ event: 'front-lost', front: name, reason: reason.message })
        this.#endPresence(link)
      },
    })
    const front = new OpenFront(name, link, system.remoteRef<FrontMessage>(link, 'front', name))
    return front
  }

  /** Whether at least one front serves. */
  get isServing(): boolean {
    return [...this.#open].some(({ isReady }) => isReady)
  }

  /** Resolves when `count` fronts serve; rejects where they don't within `ms`. */
  ready(count: number, ms: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const tooLate = setTimeout(
        () => reject(new SignalError('INTERNAL', `the fronts did not start within ${ms} ms`)),
        ms,
      )
      this.#onReady = () => {
        if ([...this.#open].filter(({ isReady }) => isReady).length < count) return
        clearTimeout(tooLate)
        resolve()
      }
    })
  }

  /** Call this when a checkpoint is published. */
  onPublished(): void {
    for (const front of this.#open) front.say({ kind: 'published', head: this.#deps.published.head })
  }

  /**
   * Resolves when every front shows all that is durable and published by now: a client that is answered then finds it at any
   * front. One that hangs is waited for a second or two.
   */
  async caughtUp(): Promise<void> {
    await Promise.all(Array.from(this.#open, front => front.caughtUp()))
  }

  /** Resolves when they were told. */
  async renewCertificate(files: TlsFiles): Promise<void> {
    for (const { self } of this.#open) self.tellControl({ kind: 'renew-certificate', files })
  }

  /** The figures of each front, in the text form of Prometheus; one that does not answer is left out. */
  async metrics(): Promise<readonly ProcessMetrics[]> {
    const answers = [...this.#open].map(async ({ name, self }) => {
      const text = await self.ask<string>(reply => ({ kind: 'metrics', reply }), METRICS_MS_MAX)
      return { process: name, text }
    })
    const settled = await Promise.allSettled(answers)
    return settled.flatMap(each => (each.status === 'fulfilled' ? [each.value] : []))
  }

  #welcome(front: OpenFront): void {
    const { host, database, published, addresses, port, routes } = this.#deps
    front.say({
      kind: 'welcome',
      config: serialize(host.config),
      port,
      addresses,
      routes: routes.map(({ handle: _, ...head }) => head),
      lastChange: database.lastChange,
      head: published.head,
    })
  }

  #onSaid(front: OpenFront, said: SaidByFront): void {
    const { rooms, stores } = this.#deps
    switch (said.kind) {
      case 'ready':
        front.isReady = true
        return this.#onReady?.()
      case 'heard':
        return front.onHeard(said.count)
      case 'seen':
        return rooms.onSeen(said.userId as UserId, said.deviceId as DeviceId)
      case 'pair-used':
        void stores.sessions.markPairUsed(said.sessionId, said.generation).catch(() => undefined)
        return
      default:
        throw new SignalError('MALFORMED', 'a front says what it may')
    }
  }

  async #answer(name: string, { headers, ...request }: ForwardedRequest): Promise<HttpAnswer> {
    const route = this.#routes.get(name)
    if (route === undefined) throw new SignalError('NOT_FOUND', 'there is nothing at this path')
    const answer = await route.handle({ ...request, header: header => headers[header] ?? '' })
    await this.caughtUp()
    return answer
  }

  /** Its connections have ended with the front. */
  #endPresence(link: Link): void {
    for (const [userId, connection] of this.#deps.connections.all()) {
      if (!(connection.ref instanceof RemoteRef) || connection.ref.port !== link) continue
      const user = this.#deps.system.ref<PresenceMessage>('presence', userId)
      user.tellControl({ kind: 'detached', connectionId: connection.ref.id })
    }
  }
}

/** By which a front asks for it. */
export function nameOfRoute({ method, path }: Pick<HttpRoute, 'method' | 'path'>): string {
  return `${method} ${path}`
}

const METRICS_MS_MAX = 2_000
const CATCH_UP_TICK_MS = 1_000
