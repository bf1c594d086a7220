/**
 * The writer as fronts know it, those of this machine and those of other nodes: the actors that they speak to, what they
 * hear of changes, and what of a front ends with its link.
 */

import type { Duplex } from 'node:stream'
import { frontDeskKind } from '../../../actors/front-desk.ts'
import type { ForwardedRequest, PresenceMessage } from '../../../actors/messages.ts'
import type { LiveConnections } from '../../../actors/presence.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import { SignalError } from '../../errors.ts'
import { FrontLink } from '../../fronts/front-link.ts'
import { Link } from '../../fronts/link/link.ts'
import { type MessageToWriter, nameOfRoute, READ_LEASE_MS, WRITER_SERVES } from '../../fronts/messages.ts'
import type { PublishedLog } from '../../keyserver/published-log.ts'
import type { Registration } from '../../keyserver/registration.ts'
import type { LogHead } from '../../log/checkpoint.ts'
import { RemoteRef } from '../../runtime/remote-ref.ts'
import type { ActorSystem } from '../../runtime/system.ts'
import type { LmdbStore } from '../../store/engine/lmdb-store.ts'
import type { HttpAnswer, HttpRoute } from '../../transport/route.ts'
import type { Stores } from '../application-stores.ts'
import type { CallRooms } from '../call-rooms.ts'
import type { Register } from '../listeners.ts'
import type { Process } from '../process/process.ts'
import { VERSION } from '../process/version.ts'

export interface FrontDesksDeps {
  readonly host: Pick<Process, 'world' | 'logger' | 'onFault' | 'devConsole'>
  readonly system: ActorSystem
  readonly database: Pick<LmdbStore, 'follow' | 'lastChange' | 'settled'>
  readonly stores: Pick<Stores, 'sessions' | 'inboxWrites'>
  readonly rooms: Pick<CallRooms, 'onSeen'>
  readonly connections: LiveConnections
  /** All that the writer would serve itself. */
  readonly routes: readonly HttpRoute[]
  readonly published: PublishedLog
  readonly register: Register
  /** For how long no other node can change anything; always so on one machine. */
  readonly leaseLastsMs?: () => number
}

export class FrontDesks {
  readonly #deps: FrontDesksDeps
  /** Fronts of this machine: their parent is this process, which tells them what changes. */
  readonly #near = new Set<FrontLink>()
  /** Fronts of other nodes, which have a copy of the store. */
  readonly #far = new Set<FrontLink>()
  /** Fronts of other nodes that fell silent: they may serve for a moment more. */
  readonly #silent = new Set<FrontLink>()
  readonly #routes: ReadonlyMap<string, HttpRoute>
  #isStopping = false
  /** The last checkpoint that was announced. */
  #coming: LogHead | undefined

  constructor(deps: FrontDesksDeps) {
    this.#deps = deps
    this.#routes = new Map(deps.routes.map(route => [nameOfRoute(route), route]))
    deps.system.define(
      frontDeskKind({
        answer: (route, request) => this.#answer(route, request),
        inbox: deps.stores.inboxWrites,
        register: (...key) => this.register(...key),
        catchUp: () => this.#catchUp(),
        onServed: deps.host.devConsole?.onServedByFront,
        onFault: deps.host.onFault,
      }),
    )
    deps.host.world.every(LAG_TICK_MS, () => {
      for (const front of [...this.#all(), ...this.#silent]) front.onTick()
      for (const front of this.#silent) if (!front.isAwaited) this.#silent.delete(front)
    })
  }

  /** Serves a front of this machine until `leave`. */
  join(front: FrontLink): void {
    this.#near.add(front)
    this.#announceTo(front)
  }

  leave(front: FrontLink, link: Link): void {
    this.#near.delete(front)
    front.onLost()
    this.#end(link)
  }

  /** Serves a front of another node, for as long as the connection lasts. */
  readonly accept = (socket: Duplex): void => {
    const { system, host, database, published } = this.#deps
    let stopFollowing = () => {}
    let name = 'a node'
    const link: Link = new Link({
      socket,
      self: { name: 'writer', version: VERSION },
      system,
      serves: WRITER_SERVES,
      world: host.world,
      onOpen: peer => {
        name = peer.name
        host.logger.info({ event: 'far-front-joined', front: name, version: peer.version })
        this.#far.add(front)
        const sendPosition = () => front.sendSoon({ kind: 'position', number: database.lastChange })
        sendPosition()
        stopFollowing = database.follow(sendPosition)
        front.send({ kind: 'published', head: published.head })
        this.#announceTo(front)
      },
      onMessage: message => this.onMessage(front, message as MessageToWriter),
      beforeAnswer: this.beforeAnswer,
      onLost: reason => {
        stopFollowing()
        this.#far.delete(front)
        host.logger.warn({ event: 'far-front-lost', front: name, reason: reason.message })
        if (reason.by === 'silent') this.#silent.add(front)
        else front.onLost()
        this.#end(link)
      },
    })
    const front = new FrontLink(link)
  }

  /** A lookup then finds the key, whichever process answers. */
  async register(...key: Parameters<Register>): Promise<Registration> {
    const registration = await this.#deps.register(...key)
    await this.caughtUp()
    return registration
  }

  onMessage(front: FrontLink, message: MessageToWriter): undefined {
    const { rooms, stores } = this.#deps
    switch (message.kind) {
      case 'acknowledged':
        front.onAcknowledged(message.count)
        return
      case 'seen':
        rooms.onSeen(message.userId as UserId, message.deviceId as DeviceId)
        return
      case 'renew-read-lease':
        // Once this writer's own lease has run out another one may answer, which doesn't wait for this front. One that is late is
        // not waited for either, when a checkpoint is announced.
        if (this.#leaseLastsMs > READ_LEASE_MS && !this.#isStopping && !front.isLate)
          front.sendSoon({ kind: 'read-lease', askedAtMs: message.askedAtMs })
        return
      case 'pair-used':
        void stores.sessions.markPairUsed(message.sessionId, message.generation).catch(() => undefined)
        return
      default:
        throw new SignalError('MALFORMED', 'a front says what it may')
    }
  }

  /**
   * Resolves when no front shows an older checkpoint any more, or none that counts: reads of the log wait there until this one is
   * published, which is for the caller to do then.
   */
  async announce(head: LogHead): Promise<void> {
    // Reads wait for as long as a word takes, not for as long as the slowest copy.
    await inTime(this.#far)
    this.#coming = head
    for (const front of this.#all()) this.#announceTo(front)
    await inTime(this.#all())
  }

  #announceTo(front: FrontLink): void {
    const head = this.#coming
    if (head === undefined || head.treeSize <= (this.#deps.published.size ?? 0)) return
    front.send({ kind: 'published', head, isComing: true })
  }

  /** Call this when a checkpoint is published. Those of this machine hear it from its process. */
  onPublished(): void {
    for (const front of this.#far) front.send({ kind: 'published', head: this.#deps.published.head })
  }

  /**
   * Resolves when every front shows all that is durable and published by now: a client that is answered then finds it at any
   * front. One that hangs is waited for until its copy is too old to be read: two or three seconds.
   */
  async caughtUp(): Promise<void> {
    await Promise.all(Array.from(this.#all(), front => front.caughtUp()))
  }

  /** What a client has changed by a command to a room is there at every front when it hears that it is done. */
  readonly beforeAnswer = (kind: string): Promise<void> | undefined =>
    kind === 'call-room' ? this.caughtUp() : undefined

  async #catchUp(): Promise<void> {
    for (const front of this.#all()) front.send({ kind: 'flush' })
    await this.caughtUp()
    // Behind what the fronts have sent meanwhile, also of connections that have just closed.
    await this.#deps.database.settled()
    await this.caughtUp()
  }

  /** Resolves when no front of another node reads on the word of this writer, so that another one may follow it. */
  async endReadLeases(): Promise<void> {
    this.#isStopping = true
    for (const front of this.#far) front.send({ kind: 'read-lease', askedAtMs: undefined })
    await Promise.all(Array.from(this.#far, front => front.caughtUp()))
  }

  get #leaseLastsMs(): number {
    return this.#deps.leaseLastsMs?.() ?? Number.POSITIVE_INFINITY
  }

  *#all(): Iterable<FrontLink> {
    yield* this.#near
    yield* this.#far
  }

  async #answer(name: string, { headers, ...request }: ForwardedRequest): Promise<HttpAnswer> {
    const route = this.#routes.get(name)
    if (route === undefined) throw new SignalError('NOT_FOUND', 'there is nothing at this path')
    const answer = await route.handle({ ...request, header: header => headers[header] ?? '' })
    await this.caughtUp()
    if (this.#leaseLastsMs < 0)
      throw new SignalError('STORE_UNAVAILABLE', 'the lease has run out: another node may be the writer')
    return answer
  }

  /** Its connections have ended with the link. */
  #end(link: Link): void {
    for (const [userId, connection] of this.#deps.connections.all()) {
      if (!(connection.ref instanceof RemoteRef) || connection.ref.port !== link) continue
      const user = this.#deps.system.ref<PresenceMessage>('presence', userId)
      user.tellControl({ kind: 'detached', connectionId: connection.ref.id })
    }
  }
}

/** As `caughtUp`, but one that hangs is waited for once: each time it would keep the rest from reading the log. */
async function inTime(fronts: Iterable<FrontLink>): Promise<void> {
  await Promise.all(Array.from(fronts, front => (front.isLate ? undefined : front.caughtUp())))
}

/** Two of them are longer than `COPY_AGE_MS_MAX`. */
const LAG_TICK_MS = 1_100
