/**
 * One node of several, from its settings to its stop. It keeps a copy of the ledger, has its fronts answer from that, and is
 * the writer while it holds the lease. A node that loses the lease steps down: it forgets what the ledger lacks and follows.
 */

import type { FrontDeskMessage } from '../../../actors/messages.ts'
import { messageOf, SignalError } from '../../errors.ts'
import { linkKeyOf } from '../../fronts/link/link-proof.ts'
import { NodeServer, type NodeSocket } from '../../fronts/link/node-sockets.ts'
import { COPY_AGE_MS_MAX } from '../../fronts/messages.ts'
import { WriterLink } from '../../fronts/writer-link.ts'
import { WriterPort } from '../../fronts/writer-port.ts'
import { type LogMaker, LogStore } from '../../keyserver/log-store.ts'
import type { Registration } from '../../keyserver/registration.ts'
import type { ShownHeads } from '../../keyserver/shown-heads.ts'
import { APPEND_DEADLINE_MS, STOP_DEADLINE_MS } from '../../limits.ts'
import { observeNode, observeStore } from '../../operations/figures.ts'
import type { ActorSystem } from '../../runtime/system.ts'
import type { LmdbStore } from '../../store/engine/lmdb-store.ts'
import { isOfLostLease } from '../../store/engine/write-failure.ts'
import type { PostgresLedger } from '../../store/postgres/ledger.ts'
import type { LedgerState } from '../../store/postgres/writer-row.ts'
import type { GrpcServer, Register } from '../../transport/grpc.ts'
import type { HttpServer } from '../../transport/http.ts'
import { OwnAddresses } from '../addresses.ts'
import { operatorServer } from '../listeners.ts'
import { assertMaker, type Keys, makerOf, readKeys } from '../open-log.ts'
import { chosenPort, openPort, openPorts } from '../process/listening.ts'
import { actorSystem, type Process } from '../process/process.ts'
import type { RunningServer } from '../process/running-server.ts'
import type { Stops } from '../process/stages.ts'
import { stopProcess } from '../process/stop-process.ts'
import { Tenure } from '../process/tenure.ts'
import { VERSION } from '../process/version.ts'
import { renewSettings } from '../renewal.ts'
import { type Config, ConfigError, listenersOf } from '../settings/config.ts'
import type { NodeConfig } from '../settings/node-settings.ts'
import type { KnownIndex } from '../writer/indexing.ts'
import { registrationServer } from '../writer/registration-server.ts'
import { CopyFollower } from './copy-follower.ts'
import { LeaseKeeper } from './lease-keeper.ts'
import { NodeFronts } from './node-fronts.ts'
import { NewsOfNode } from './node-news.ts'
import type { FollowingNode, NodeRole, WritingNode } from './node-role.ts'
import { startWriting } from './writing.ts'

export interface NodeDeps {
  readonly ledger: PostgresLedger
  readonly database: LmdbStore
  readonly shownHeads: ShownHeads
  readonly knownCheckpoint: string | undefined
  readonly index: KnownIndex
}

export class Node implements RunningServer {
  readonly #context: Process
  readonly #node: NodeConfig
  readonly #deps: NodeDeps
  readonly #system: ActorSystem
  readonly #addresses: OwnAddresses
  readonly #server: NodeServer
  readonly #grpc: GrpcServer
  readonly #admin: HttpServer
  readonly #fronts: NodeFronts
  readonly #keys: Keys
  readonly #maker: LogMaker
  readonly #logStore: LogStore
  readonly #news = new NewsOfNode()
  #role: NodeRole
  /** By the monotonic clock: it doesn't try to become the writer before. */
  #acquiresFromMs = Number.NEGATIVE_INFINITY
  /** When it last began or ended to step down: its copy was whole then. */
  #steppedDownAtMs = Number.NEGATIVE_INFINITY
  /** Resolves when the role changes no more. */
  #settled = Promise.resolve()
  #stopped: Promise<void> | undefined

  constructor(context: Process, node: NodeConfig, deps: NodeDeps) {
    const { database } = deps
    this.#context = context
    this.#node = node
    this.#deps = deps
    this.#system = actorSystem(context)
    this.#addresses = new OwnAddresses(context.config)
    this.#keys = readKeys(context.config)
    this.#maker = makerOf(this.#keys)
    this.#logStore = new LogStore(database)
    const proof = { name: node.name, key: linkKeyOf(this.#keys.secret) }
    const accept = (other: NodeSocket) => {
      if (this.#role.kind === 'writing node') this.#role.desks.accept(other)
      else other.socket.destroy()
    }
    this.#server = new NodeServer(node.tls, proof, accept, context.onLinkRefused)
    this.#fronts = new NodeFronts({
      ...{ context, database, system: this.#system, addresses: this.#addresses },
      onPoll: () => this.#onPoll(),
    })
    this.#grpc = registrationServer(context, (...key) => this.#register(...key))
    this.#admin = operatorServer(context, () => this.#fronts.metrics())
    this.#role = { kind: 'following node', follower: this.#openFollower(), link: this.#openLink() }
    observeStore(context.metrics, () => database.figures)
    observeNode(context.metrics, () => ({
      isWriter:
        this.#role.kind === 'writing node' && this.#role.lease.lastsUntilMs > context.world.monotonicMs(),
      change: database.lastChange,
      silentMs: this.#silentMs(),
      heldBack: this.#role.kind === 'writing node' ? this.#role.lease.heldBack : 0,
    }))
  }

  get role(): NodeRole {
    return this.#role
  }

  get ready() {
    const { vkey, vrfPublicKey } = this.#maker
    return { ...this.#addresses.all, origin: this.#keys.signer.name, vkey, vrfPublicKey }
  }

  /** Opens the ports, but only chooses those for HTTP and the server API, which the fronts open. Throws `ConfigError`. */
  async listen(say: (text: string) => void): Promise<void> {
    const { config } = this.#context
    const policy = { takesNext: false, say }
    const settings = ['CALLSIGN_NODE_HOST', 'CALLSIGN_NODE_PORT']
    await openPort({ ...this.#node, settings }, this.#server, policy)
    const servers = {
      grpc: this.#grpc,
      admin: this.#admin,
      http: { listen: chosenPort },
      serverApi: { listen: chosenPort },
      stompTcp: undefined,
    }
    const ports = { ...servers, listeners: listenersOf(config), isSecure: config.http.tls !== undefined }
    this.#addresses.opened(await openPorts(ports, policy))
  }

  /** Resolves when the node serves for the first time. */
  async serve(): Promise<void> {
    this.#settled = this.#run().catch(this.#context.fatal)
    this.#context.world.every(LOOK_MS, () => this.#look())
    await this.#fronts.serving
    this.#context.opened(() => this.#fronts.isServing)
  }

  announce(): void {
    process.stdout.write(`${JSON.stringify({ event: 'ready', ...this.ready })}\n`)
  }

  renew(read: () => Config): Promise<void> {
    return renewSettings(this.#context, this.#fronts, this.#grpc, read)
  }

  stop(reason: string): Promise<void> {
    this.#news.offer({ kind: 'stop' })
    this.#stopped ??= stopProcess(this.#context, () => this.#parts(), reason).then(() => {
      this.#role = { kind: 'stopped' }
    })
    return this.#stopped
  }

  /** The one place where the node's role changes, until `stop`. */
  async #run(): Promise<void> {
    for (;;) {
      const news = await this.#news.next()
      const role = this.#role
      if (news.kind === 'stop') return
      if (news.kind === 'lease-lost') {
        if (role.kind === 'writing node' && role.lease.epoch === news.epoch)
          this.#role = await this.#stepDown(role.tenure, news.reason)
        continue
      }
      const { state, holder } = news.writer
      if (state !== 'open') throw unusable(state)
      if (role.kind !== 'following node') continue
      const place = holder && placeOf(holder.address)
      role.link.goTo(place)
      this.#fronts.follow(place)
      if (place === undefined && this.#context.world.monotonicMs() >= this.#acquiresFromMs)
        this.#role = await this.#acquire(role)
    }
  }

  /** Becomes the writer, unless another node is faster, or the ledger has lost what this node has shown. */
  async #acquire(following: FollowingNode): Promise<FollowingNode | WritingNode> {
    const { ledger, shownHeads } = this.#deps
    const { world, logger } = this.#context
    const { follower, link } = following
    this.#role = { kind: 'acquiring', follower, link, lease: undefined }
    const acquired = await ledger.acquire().catch(error => {
      logger.warn({ event: 'lease-not-acquired', err: error })
      return undefined
    })
    if (acquired === undefined) return following
    const { epoch, last, head } = acquired
    const lease = new LeaseKeeper({
      lease: acquired,
      world,
      logger,
      onLost: ({ message }) => this.#news.offer({ kind: 'lease-lost', epoch, reason: message }),
    })
    try {
      await follower.reached(last, CAUGHT_UP_MS_MAX)
      shownHeads.assertExtendedBy(this.#logStore)
    } catch (error) {
      logger.error({ event: 'ledger-refused', reason: messageOf(error) })
      this.#acquiresFromMs = world.monotonicMs() + REFUSED_MS
      await this.#release(lease)
      return following
    }
    logger.info({ event: 'writer', epoch, change: last })
    this.#role = { kind: 'acquiring', follower, link, lease }
    await follower.close()
    const tenure = new Tenure(this.#context)
    tenure.onEnd(() => this.#release(lease))
    try {
      const writing = await startWriting(tenure, {
        ...this.#deps,
        lease,
        recordedHead: head && Buffer.from(head).toString(),
        system: this.#system,
        publicUrl: this.#addresses.publicUrl,
        onPublished: () => this.#fronts.onApplied(),
      })
      this.#fronts.serveBy(writing.desks)
      return writing
    } catch (error) {
      if (!isOfLostLease(error) && !isUnavailable(error)) throw error
      // The lease lasts, so it is this node that can't write, as where a head can't be recorded.
      if (lease.lastsUntilMs > world.monotonicMs()) this.#acquiresFromMs = world.monotonicMs() + REFUSED_MS
      return await this.#stepDown(tenure, messageOf(error))
    }
  }

  /** Forgets all that the ledger lacks, and follows. Fronts and their sockets stay. */
  async #stepDown(tenure: Tenure, reason: string): Promise<FollowingNode> {
    const { logger, world } = this.#context
    logger.error({ event: 'writer-stepped-down', reason })
    this.#role = { kind: 'stepping down' }
    this.#steppedDownAtMs = world.monotonicMs()
    this.#fronts.follow(undefined)
    await tenure.end()
    this.#steppedDownAtMs = world.monotonicMs()
    return { kind: 'following node', follower: this.#openFollower(), link: this.#openLink() }
  }

  /** Another node may write. A lease that can't be released runs out. */
  async #release(lease: LeaseKeeper): Promise<void> {
    await lease
      .release()
      .catch(error => this.#context.logger.warn({ event: 'lease-not-released', err: error }))
  }

  #openFollower(): CopyFollower {
    return new CopyFollower({
      ...this.#deps,
      indexHeads: this.#deps.index.shownHeads,
      context: this.#context,
      onApplied: () => this.#fronts.onApplied(),
      onWriter: writer => {
        if (writer.head !== undefined) this.#fronts.onRecorded(writer.head.toString())
        if (this.#context.phase !== 'stopping') this.#news.offer({ kind: 'writer', writer })
      },
      onCurrent: () => this.#look(),
    })
  }

  /** For registrations that come to this node while another node writes. */
  #openLink(): WriterLink {
    const { world, logger, fatal } = this.#context
    const isStarting = () => this.#context.phase === 'starting'
    return new WriterLink({
      port: new WriterPort(),
      self: { name: `${this.#node.name}/registrations`, version: VERSION },
      system: this.#system,
      serves: new Map(),
      tls: this.#node.tls,
      linkKey: linkKeyOf(this.#keys.secret),
      world,
      logger,
      // The writer answers when all nodes show the key that it has registered.
      onMessage: () => undefined,
      onLost: () => undefined,
      onOtherForm({ message }) {
        if (isStarting())
          fatal(new ConfigError([`the nodes have different versions: ${message}; ${UPGRADE}`]))
      },
    })
  }

  /** Registers here or at the writer; a lookup then finds the key at any node. */
  async #register(...key: Parameters<Register>): Promise<Registration> {
    const role = this.#role
    if (role.kind === 'writing node') return await role.desks.register(...key)
    if (role.kind === 'stepping down' || role.kind === 'stopped')
      throw new SignalError('LOG_UNAVAILABLE', 'the node is between two roles')
    const { port } = role.link
    const [userId, deviceId, publicKey] = key
    const desk = this.#system.remoteRef<FrontDeskMessage>(port, 'front-desk', this.#node.name)
    return await desk.ask<Registration>(
      reply => ({ kind: 'register', userId, deviceId, publicKey, reply }),
      APPEND_DEADLINE_MS,
    )
  }

  /** While the node holds it, the copy equals the ledger. */
  get #lease(): LeaseKeeper | undefined {
    const role = this.#role
    return role.kind === 'acquiring' || role.kind === 'writing node' ? role.lease : undefined
  }

  get #follower(): CopyFollower | undefined {
    const role = this.#role
    return role.kind === 'following node' || role.kind === 'acquiring' ? role.follower : undefined
  }

  /** A front waits to hear that the copy is current. */
  #onPoll(): void {
    if (this.#lease === undefined) this.#follower?.poll()
    else this.#look()
  }

  /** The node doesn't show a copy that may be old: it would honour revoked sessions. */
  #look(): void {
    const nowMs = this.#context.world.monotonicMs()
    const lease = this.#lease
    if (lease !== undefined) {
      // Once the lease has run out another node may write.
      return this.#fronts.current(Math.min(nowMs, lease.lastsUntilMs - COPY_AGE_MS_MAX))
    }
    this.#assertOwnLog()
    const currentAtMs = this.#follower?.currentAtMs ?? Number.NEGATIVE_INFINITY
    this.#fronts.current(currentAtMs)
    this.#fronts.mayServe(nowMs - Math.max(currentAtMs, this.#steppedDownAtMs) < COPY_AGE_MS_MAX)
  }

  /** With other keys its answers would be wrong. */
  #assertOwnLog(): void {
    const made = this.#logStore.maker()
    try {
      if (made !== undefined) assertMaker(made, this.#maker, this.#keys.secondSigner)
    } catch (error) {
      this.#context.fatal(error)
    }
  }

  /** How long the ledger has been silent to this node. */
  #silentMs(): number {
    if (this.#lease !== undefined) return 0
    const { heardAtMs } = this.#follower ?? {}
    return heardAtMs === undefined ? Number.POSITIVE_INFINITY : this.#context.world.monotonicMs() - heardAtMs
  }

  #parts(): readonly Stops[] {
    const { ledger, database } = this.#deps
    const node: Stops = {
      // A change of role that is under way ends beside them: later stages need its parts.
      fronts: () => Promise.all([this.#settled, this.#fronts.stop()]),
      registrations: () => this.#grpc.close(STOP_DEADLINE_MS / 3),
      actors: () => this.#system.drainAndStop(STOP_DEADLINE_MS / 5),
      sockets: () => {
        this.#server.close()
        this.#admin.close()
      },
      ledger: () => ledger.close(),
      store: () => database.close(),
    }
    return [node, ...partsOf(this.#role)]
  }
}

function partsOf(role: NodeRole): readonly Stops[] {
  switch (role.kind) {
    case 'following node':
    case 'acquiring':
      return [
        {
          services() {
            role.link.goTo(undefined)
            return role.follower.close()
          },
        },
      ]
    case 'writing node':
      return [
        role.writer.stops,
        role.desks.stops,
        { lease: () => role.lease.release(), ledger: () => role.tenure.context.world.stop() },
      ]
    case 'stepping down':
    case 'stopped':
      return []
  }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof SignalError && error.code === 'STORE_UNAVAILABLE'
}

/** The refusal to use a ledger in this state. */
export function unusable(state: Exclude<LedgerState, 'open'>): ConfigError {
  return new ConfigError([`the ledger in CALLSIGN_DATABASE_URL can't be used: ${UNUSABLE[state]}`])
}

function placeOf(address: string): { readonly host: string; readonly port: number } {
  const { hostname, port } = new URL(`tcp://${address}`)
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) }
}

const UNUSABLE = {
  filling: 'a store moves into it, and has not ended; run `migrate --to postgres` to its end',
  left: 'it has moved to the store of one machine; to go back, stop that server and run `migrate --to postgres` into an empty database',
} as const
const UPGRADE = 'stop all nodes, then start the newer program at each'
const LOOK_MS = 250
/** A copy that takes longer has something else the matter: another node may be better off. */
const CAUGHT_UP_MS_MAX = 5_000
/** Longer than a lease, so that each other node tries before. */
const REFUSED_MS = 10_000
