/**
 * One front: one of the processes that share the public port. It reads the writer's store, so it answers reads, lookups
 * and files of the log by itself, and has the writer do the rest. Its connections are actors here; users, calls and
 * topics are actors of the writer.
 */

import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { deserialize } from 'node:v8'
import { frontKind } from '../../../actors/front.ts'
import type {
  CallRoomMessage,
  DevTopicMessage,
  FrontDeskMessage,
  PresenceMessage,
} from '../../../actors/messages.ts'
import { LiveConnections } from '../../../actors/presence.ts'
import { Authentication } from '../../api/accounts/authentication.ts'
import type { Operation } from '../../api/table/operation.ts'
import type { LiveCalls } from '../../domain/calls/live-calls.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import { shuffle } from '../../domain/shuffle.ts'
import { SignalError } from '../../errors.ts'
import { Acknowledgements } from '../../fronts/acknowledgements.ts'
import { CatchUp } from '../../fronts/catch-up.ts'
import { Link } from '../../fronts/link/link.ts'
import {
  FAR_FRONT_SERVES,
  FRONT_SERVES,
  FRONT_SILENCE_MS_MAX,
  type MessageToFront,
  type MessageToWriter,
  NODE_LOST_MS,
  nameOfRoute,
  type RouteHead,
} from '../../fronts/messages.ts'
import { ReadLease } from '../../fronts/read-lease.ts'
import { ShownLog } from '../../fronts/shown-log.ts'
import { WriterLink } from '../../fronts/writer-link.ts'
import { LogStore } from '../../keyserver/log-store.ts'
import { PublishedLog } from '../../keyserver/published-log.ts'
import { VrfPool } from '../../keyserver/vrf/vrf-pool.ts'
import { FRONT_STOP_MS, VRF_JOBS_WAITING_MAX } from '../../limits.ts'
import { RequestLog } from '../../operations/console/requests.ts'
import { observe, observeConnections } from '../../operations/figures.ts'
import { createLogger } from '../../operations/log.ts'
import type { Ref } from '../../runtime/actor.ts'
import { machineMs, realWorld } from '../../runtime/clock.ts'
import { ActorSystem } from '../../runtime/system.ts'
import { BoundedCache } from '../../store/engine/bounded-cache.ts'
import { FollowedStore } from '../../store/engine/followed-store.ts'
import { LmdbStore } from '../../store/engine/lmdb-store.ts'
import type { DeviceInbox } from '../../store/messages/device-inbox.ts'
import { inboxNewsOf } from '../../store/messages/inbox-store.ts'
import type { InboxWrites } from '../../store/messages/inbox-writes.ts'
import type { HttpServer } from '../../transport/http.ts'
import type { ServedRequest } from '../../transport/http-deps.ts'
import { Newcomers } from '../../transport/newcomers.ts'
import { OpenConnections } from '../../transport/open-connections.ts'
import type { HttpAnswer, HttpRequest, HttpRoute } from '../../transport/route.ts'
import { alsoOnLoopback, isOnLanOnly, ownUrlOf } from '../addresses.ts'
import { type Application, admitOf, openApplication } from '../application.ts'
import { openStores } from '../application-stores.ts'
import { askRoom } from '../call-rooms.ts'
import { publicRoutes, publicServer, type ServedLog } from '../listeners.ts'
import { makerOf, readKeys } from '../open-log.ts'
import { assertOwnBinaries, Process } from '../process/process.ts'
import { pooledRandomBytes } from '../process/random-pool.ts'
import { VERSION } from '../process/version.ts'
import type { Config } from '../settings/config.ts'
import { Signalling } from '../signalling.ts'

type Welcome = Extract<MessageToFront, { kind: 'welcome' }>

/** Joins the process at the other end of the socket, its parent, and serves until that stops it or is lost. */
export function startFront(socket: Duplex, name: string): void {
  let front: Front | undefined
  const world = realWorld()
  const system = new ActorSystem({
    world,
    fatal: error => front?.host.fatal(error),
    onFailure: failure => front?.host.onActorFailure(failure),
  })
  const acknowledgements = new Acknowledgements(count =>
    link.send({ kind: 'acknowledged', count } satisfies MessageToWriter),
  )
  const link: Link = new Link({
    socket,
    self: { name, version: VERSION },
    system,
    serves: FRONT_SERVES,
    silenceMsMax: FRONT_SILENCE_MS_MAX,
    world,
    onMessage: data =>
      acknowledgements.of(data as MessageToFront, message => {
        // At once: the next words are of changes behind this one.
        if (message.kind === 'welcome') front = new Front(system, link, name, message)
        else front?.onMessage(message)
        return undefined
      }),
    onLost: ({ message }) => {
      process.stderr.write(`callsign: ${name}: ${message}\n`)
      process.exit(1)
    },
  })
}

/** The store and the log as they are when the front has heeded what was said. */
class Following {
  readonly database: LmdbStore
  readonly store: FollowedStore
  readonly log: Omit<ServedLog, 'vrf'>
  readonly logStore: LogStore

  constructor(config: Config, { lastChange }: Welcome, onFault: (error: unknown) => void) {
    this.database = LmdbStore.openReadOnly(config.dataFolder)
    this.store = new FollowedStore(this.database, lastChange, inboxNewsOf, onFault)
    this.logStore = new LogStore(this.store)
    const keys = readKeys(config)
    this.log = { keys, maker: makerOf(keys), published: new PublishedLog(this.logStore, keys.signer) }
  }
}

class Front {
  readonly host: Process
  readonly following: Following
  readonly #system: ActorSystem
  readonly #link: Link
  readonly #writer: WriterLink
  readonly #http: HttpServer
  readonly #signalling: Signalling
  readonly #application: Application
  readonly #connections = new OpenConnections()
  readonly #newcomers = new Newcomers()
  readonly #deviceInbox: DeviceInbox
  readonly #vrf: VrfPool
  readonly #addresses: Welcome['addresses']
  /** In a node, whose copy may be older than the ledger. */
  readonly #readLease: ReadLease | undefined
  readonly #shownLog: ShownLog

  constructor(system: ActorSystem, link: Link, name: string, welcome: Welcome) {
    const config: Config = deserialize(welcome.config)
    const say = (text: string) => void process.stderr.write(text)
    const host = new Process(config, createLogger(config.logLevel).child({ front: name }), say, {
      isFront: true,
    })
    const following = new Following(config, welcome, host.onFault)
    const { world, metrics } = host
    const { rateLimits, isDevelopment } = config
    const { idsAs, lifetimes } = config.application
    const { keys } = following.log
    this.host = host
    this.following = following
    this.#system = system
    this.#link = link
    this.#addresses = welcome.addresses
    const clusterName = config.node === undefined ? name : `${config.node.name}/${name}`
    if (config.node !== undefined) {
      link.limitSilence(NODE_LOST_MS)
      const poll = () => link.send({ kind: 'poll' } satisfies MessageToWriter)
      this.#readLease = new ReadLease({ machineMs, world, poll })
    }
    const readLease = this.#readLease
    const { published } = following.log
    const shownLog = new ShownLog(
      {
        size: () => published.size,
        show: head => {
          following.logStore.follow(head.treeSize)
          published.publish(head)
        },
        lease: readLease,
        world,
      },
      welcome.head,
    )
    this.#shownLog = shownLog
    this.#writer = new WriterLink({
      parent: link,
      self: { name: clusterName, version: VERSION },
      system,
      serves: FAR_FRONT_SERVES,
      tls: config.node?.tls,
      world,
      logger: host.logger,
      onMessage: message => this.#onFarMessage(message),
      onLost: () => {
        readLease?.end()
        shownLog.onWriterLost()
        this.#signalling.onWriterLost(this.#connections)
      },
    })
    this.#vrf = new VrfPool({
      secret: keys.vrfSecret,
      threads: Math.max(1, Math.floor(config.log.vrfThreads / Math.max(1, config.fronts))),
      cacheEntriesMax: config.log.vrfCacheEntriesMax,
      queueMax: VRF_JOBS_WAITING_MAX,
    })
    const log: ServedLog = { ...following.log, vrf: this.#vrf }
    const desk = this.#atWriter<FrontDeskMessage>('front-desk')(clusterName)
    const requests = isDevelopment ? new RequestLog(world.nowMs) : undefined
    const roomOf = this.#atWriter<CallRoomMessage>('call-room')
    const stores = openStores({
      database: following.store,
      secret: keys.secret,
      lifetimes,
      nowMs: world.nowMs,
      randomBytes: pooledRandomBytes,
      isConnected: () => false,
      onFault: host.onFault,
      inboxWrites: writesBy(desk),
    })
    this.#deviceInbox = stores.deviceInbox
    const authentication = new Authentication({
      ...stores,
      nowMs: world.nowMs,
      onSeen: this.#seenReporter(),
      sessions: {
        current: sessionName => stores.sessions.current(sessionName),
        markPairUsed: async (sessionId, generation) =>
          this.#sendSoon({ kind: 'pair-used', sessionId, generation }),
      },
    })
    const catchUp = new CatchUp(async () => {
      await desk.ask(reply => ({ kind: 'catch-up', reply }), CATCH_UP_MS_MAX).catch(() => undefined)
      await readLease?.mayRead()
    })
    const publicUrl = () => config.publicUrl ?? ownUrlOf(config, this.#addresses)
    const shared = {
      config: config.application,
      system,
      stores,
      rateLimits,
      idsAs,
      admit: admitOf(config.application),
      isDevelopment,
      nowMs: world.nowMs,
      monotonicMs: world.monotonicMs,
      randomBytes: pooledRandomBytes,
      metrics,
      authentication,
      publicUrl,
    }
    this.#signalling = new Signalling({
      ...shared,
      rooms: { of: roomOf, ask: (...asked) => askRoom(roomOf, ...asked), tellCallsOf: atWriterOnly },
      atWriter: {
        users: this.#atWriter<PresenceMessage>('presence'),
        topics: this.#atWriter<DevTopicMessage>('dev-topic'),
      },
      connections: new LiveConnections(),
      hasEnded: atWriterOnly,
      authenticate: authorization => {
        readLease?.assertFresh()
        return authentication.requesterOf(authorization)
      },
      runConnect: (read, isConnect) => {
        const run = () => this.#newcomers.run(read)
        return isConnect ? catchUp.run(run) : run()
      },
      version: VERSION,
      onFault: host.onFault,
    })
    this.#application = openApplication({
      ...shared,
      relayHost: isOnLanOnly(config) ? config.http.host : config.lanAddress,
      register: atWriterOnly,
      identityOf: atWriterOnly,
      askRoom: atWriterOnly,
      callIndex: CALLS_AT_WRITER,
      onSmsStopped: atWriterOnly,
      onTokenReused: atWriterOnly,
      ...(requests && { onRequester: requests.noteRequester }),
    })
    const counted = new Set(this.#application.operations.filter(hasRates).map(nameOfRoute))
    const served = { ...this.#application, authentication, signalling: this.#signalling }
    const routes = publicRoutes(host, log, served, publicUrl).map(route =>
      isAnsweredHere(route) && !counted.has(nameOfRoute(route))
        ? answeredHere(route, route.isLookup ? shownLog : readLease)
        : forwarded(route, desk),
    )
    this.#http = publicServer(host, log, served, {
      routes: [...routes, ...welcome.routes.map(head => forwarded(head, desk))],
      publicUrl,
      connections: this.#connections,
      newcomers: this.#newcomers,
      sharesPort: true,
      mayReadFiles: () => shownLog.mayRead(),
      onServed: requests && (served => this.#show(requests, served, desk)),
    })
    observe(metrics, system, this.#vrf)
    observeConnections(metrics, this.#connections, this.#newcomers)
    system.define(
      frontKind(
        () => metrics.text(),
        files => this.#http.renewCertificate(files),
        () => void this.#stop().catch(host.fatal),
      ),
    )
    this.#listen(welcome.port).catch(host.fatal)
  }

  onMessage(message: Exclude<MessageToFront, Welcome | { kind: 'barrier' }>): void {
    switch (message.kind) {
      case 'changed':
        return this.following.store.apply(message)
      case 'published':
        return this.#shownLog.onStored(message.head, message.isComing === true)
      case 'writer':
        this.#writer.goTo(message.at)
        this.#shownLog.goTo(message.at)
        if (message.at === 'here') this.#readLease?.needsNone()
        return
      case 'current':
        this.#readLease?.current(message.atMs)
        if (this.#writer.isFar) this.#sendSoon({ kind: 'renew-read-lease', askedAtMs: machineMs() })
        return
      case 'flush':
        return this.#deviceInbox.settleCollected()
      case 'position':
      case 'read-lease':
        return
    }
  }

  /** The writer of another node has its changes to here by a way of their own. */
  #onFarMessage(message: MessageToFront): Promise<void> | undefined {
    switch (message.kind) {
      case 'position':
        return this.following.store.applied(message.number)
      case 'published':
        this.#shownLog.onPublished(message.head, message.isComing === true)
        return undefined
      case 'flush':
        this.#deviceInbox.settleCollected()
        return undefined
      case 'read-lease':
        if (message.askedAtMs === undefined) this.#readLease?.end()
        else this.#readLease?.given(message.askedAtMs)
        return undefined
      default:
        throw new SignalError('MALFORMED', 'a writer says what it may')
    }
  }

  async #listen(port: number): Promise<void> {
    const { config } = this.host
    assertOwnBinaries(config)
    await this.#vrf.ready
    await alsoOnLoopback(config, this.#http).listen(config.http.host, port)
    this.host.opened()
    this.#link.send({ kind: 'ready' } satisfies MessageToWriter)
  }

  async #stop(): Promise<void> {
    if (this.host.phase === 'stopping') return
    this.host.stopping()
    this.#http.stopListening()
    const inRandomOrder = shuffle([...this.#connections], this.host.world.random)
    await this.#signalling.drain(inRandomOrder, FRONT_STOP_MS / 10, sleep)
    await this.#http.answered(FRONT_STOP_MS / 5)
    await this.#system.drainAndStop(FRONT_STOP_MS / 5)
    await this.#deviceInbox.settleNow()
    await this.#connections.ended(FRONT_STOP_MS / 10)
    this.#http.close()
    this.#application.close()
    await this.#vrf.close()
    await this.following.database.close()
    this.#writer.goTo(undefined)
    this.#link.close()
    process.exit(0)
  }

  /** Actors of the writer, by id. */
  #atWriter<Message>(kind: string): (id: string) => Ref<Message> {
    return id => this.#system.remoteRef<Message>(this.#writer.port, kind, id)
  }

  #sendSoon(message: MessageToWriter): void {
    this.#writer.sendSoon(message)
  }

  /** For the console of the writer, once a turn. */
  #show(requests: RequestLog, served: ServedRequest, desk: Ref<FrontDeskMessage>): void {
    if (!requests.add(served)) return
    this.host.world.immediate(() => {
      const taken = requests.take()
      if (taken.length > 0) desk.tell({ kind: 'served', requests: taken })
    })
  }

  /** Says to the writer which devices are there: of each, once in a while is enough. */
  #seenReporter(): (userId: UserId, deviceId: DeviceId) => void {
    const { monotonicMs } = this.host.world
    // No two users have a device of one id. A text of both ids would cost a tenth of a request.
    const reportedAtMs = new BoundedCache<DeviceId, number>(SEEN_KEPT_MAX)
    return (userId, deviceId) => {
      const nowMs = monotonicMs()
      if (nowMs - (reportedAtMs.get(deviceId) ?? Number.NEGATIVE_INFINITY) < SEEN_EVERY_MS) return
      reportedAtMs.set(deviceId, nowMs)
      this.#sendSoon({ kind: 'seen', userId, deviceId })
    }
  }
}

/** Its rates are counted in one place. */
function hasRates({ rates = [] }: Operation): boolean {
  return rates.length > 0
}

/** Lookups, and whatever is read: but not of what only the writer knows. */
function isAnsweredHere(route: HttpRoute): boolean {
  return (route.method === 'GET' || route.isLookup === true) && !READ_AT_WRITER.has(route.path)
}

/** As soon as a read may be answered. */
function answeredHere(route: HttpRoute, gate: Pick<ReadLease, 'mayRead'> | undefined): HttpRoute {
  if (gate === undefined) return route
  return {
    ...route,
    handle(request) {
      const until = gate.mayRead()
      if (until === undefined) return route.handle(request)
      const kept = keptRequest(request)
      return until.then(() => route.handle(kept))
    },
  }
}

/** It outlives the handler's return. */
function keptRequest(request: HttpRequest): HttpRequest {
  const { method, path, params, query, requestId, contentType, network, header, body } = request
  return { method, path, params, query, requestId, contentType, network, header, body: body.slice() }
}

/** The writer answers it. */
function forwarded(head: RouteHead, desk: Ref<FrontDeskMessage>): HttpRoute {
  const route = nameOfRoute(head)
  return {
    ...head,
    handle: request =>
      desk.ask<HttpAnswer>(
        reply => ({ kind: 'request', route, request: dataOf(request, head), reply }),
        REQUEST_DEADLINE_MS,
      ),
  }
}

function dataOf(request: HttpRequest, { headers = [] }: RouteHead) {
  const { method, path, params, query, requestId, contentType, network, body } = request
  const sent: Record<string, string> = {}
  for (const name of headers) {
    const value = request.header(name)
    if (value !== '') sent[name] = value
  }
  return { method, path, params, query, requestId, contentType, network, body, headers: sent }
}

function writesBy(desk: Ref<FrontDeskMessage>): InboxWrites {
  return {
    settle: (settled, sent) =>
      desk.ask(reply => ({ kind: 'settle', settled, sent, reply }), REQUEST_DEADLINE_MS),
    markDelivered: (userId, deviceId, delivered) =>
      desk.ask(
        reply => ({ kind: 'mark-delivered', userId, deviceId, delivered, reply }),
        REQUEST_DEADLINE_MS,
      ),
  }
}

/** Stands for what a front never comes to. */
function atWriterOnly(): never {
  throw new SignalError('INTERNAL', 'only the writer does that')
}

const CALLS_AT_WRITER: LiveCalls = {
  size: 0,
  put: atWriterOnly,
  forget: atWriterOnly,
  callsOf: atWriterOnly,
  haveInCommon: atWriterOnly,
  callsBetween: atWriterOnly,
  callsWith: atWriterOnly,
  otherCallWith: atWriterOnly,
  otherCallOf: atWriterOnly,
  callInRoom: atWriterOnly,
}

/** Reads for which live calls count. */
const READ_AT_WRITER: ReadonlySet<string> = new Set(['/app/api/user/publicKeys', '/app/api/call/pending'])
/** The writer refuses sooner what it can't do. */
const REQUEST_DEADLINE_MS = 60_000
/** A front that hangs keeps no client from another one for longer. */
const CATCH_UP_MS_MAX = 1_000
const SEEN_EVERY_MS = 1_000
const SEEN_KEPT_MAX = 65_536
