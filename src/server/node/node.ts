/**
 * One node of several, from its settings to its stop. It keeps a copy of the ledger, has its fronts answer from that, and is
 * the writer while it holds the lease. A node that has lost the lease ends: another node goes on from the ledger.
 */

import type { FrontDeskMessage } from '../../../actors/messages.ts'
import { SignalError } from '../../errors.ts'
import { NodeServer } from '../../fronts/link/node-sockets.ts'
import { COPY_AGE_MS_MAX } from '../../fronts/messages.ts'
import { WriterLink } from '../../fronts/writer-link.ts'
import { WriterPort } from '../../fronts/writer-port.ts'
import { type LogMaker, LogStore } from '../../keyserver/log-store.ts'
import type { Registration } from '../../keyserver/registration.ts'
import { APPEND_DEADLINE_MS, STOP_DEADLINE_MS } from '../../limits.ts'
import { observe, observeNode, observeStore } from '../../operations/figures.ts'
import type { ActorSystem } from '../../runtime/system.ts'
import type { LmdbStore } from '../../store/engine/lmdb-store.ts'
import { PostgresLedger } from '../../store/postgres/ledger.ts'
import type { LedgerState, WriterState } from '../../store/postgres/writer-row.ts'
import type { GrpcServer, Register } from '../../transport/grpc.ts'
import type { HttpServer } from '../../transport/http.ts'
import { Newcomers } from '../../transport/newcomers.ts'
import { OwnAddresses } from '../addresses.ts'
import { FrontDesks } from '../fronts/front-desks.ts'
import { operatorServer, publicRoutes, registrationServer, renewCertificates } from '../listeners.ts'
import { assertMaker, type Keys, makerOf, type OpenedLog, openCopiedLog, readKeys } from '../open-log.ts'
import { chosenPort, openPort, openPorts } from '../process/listening.ts'
import { actorSystem, type Process } from '../process/process.ts'
import type { RunningServer, StartDeps } from '../process/running-server.ts'
import type { Stops } from '../process/stages.ts'
import { stopProcess } from '../process/stop-process.ts'
import { VERSION } from '../process/version.ts'
import { type Config, ConfigError, listenersOf } from '../settings/config.ts'
import type { NodeConfig } from '../settings/node-settings.ts'
import { startWriter } from '../writer/writer.ts'
import { CopyFollower, openFilledCopy } from './copy-follower.ts'
import { watchDatabase } from './database-watch.ts'
import { LeaseKeeper } from './lease-keeper.ts'
import { NodeFronts } from './node-fronts.ts'
import type { FollowingNode, NodeRole, WritingNode } from './node-role.ts'

/** Resolves when the node serves, as the writer or beside it. Throws as `start`. */
export async function startNode(
  context: Process,
  node: NodeConfig,
  { say, knownCheckpoint }: Pick<StartDeps, 'say' | 'knownCheckpoint'>,
): Promise<Node> {
  const { world, logger } = context
  const ledger = await PostgresLedger.open({
    url: node.databaseUrl,
    node: { name: node.name, address: addressOf(node), version: VERSION },
    monotonicMs: world.monotonicMs,
    random: world.random,
    onFailure: error => logger.warn({ event: 'record-not-written', err: error }),
  })
  const { state } = await ledger.writer()
  if (state !== 'open') {
    await ledger.close()
    throw unusable(state)
  }
  await watchDatabase(context, ledger, node)
  const database = await openFilledCopy(context, ledger)
  const running = new Node(context, node, { ledger, database, knownCheckpoint })
  await running.listen(say)
  await running.serve()
  return running
}

interface NodeDeps {
  readonly ledger: PostgresLedger
  readonly database: LmdbStore
  readonly knownCheckpoint: string | undefined
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
  readonly #news = new News<WriterState | 'stop'>()
  #role: NodeRole
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
    this.#server = new NodeServer(node.tls, socket => {
      if (this.#role.kind === 'writing node') this.#role.desks.accept(socket)
      else socket.destroy()
    })
    this.#fronts = new NodeFronts({
      ...{ context, database, system: this.#system, addresses: this.#addresses },
      onPoll: () => this.#onPoll(),
    })
    this.#grpc = registrationServer(context, (...key) => this.#register(...key))
    this.#admin = operatorServer(context, () => this.#fronts.metrics())
    this.#role = { kind: 'following node', follower: this.#openFollower(), link: this.#openLink() }
    observeStore(context.metrics, () => database.figures)
    observeNode(context.metrics, () => ({
      isWriter: this.#role.kind === 'writing node',
      change: database.lastChange,
      silentMs: this.#silentMs(),
    }))
  }

  get role(): NodeRole {
    return this.#role
  }

  get ready() {
    const { vkey, vrfPublicKey } = this.#maker
    return { ...this.#addresses.all, origin: this.#keys.signer.name, vkey, vrfPublicKey }
  }

  /** Opens the ports, but only chooses the one for HTTP, which the fronts open. Throws `ConfigError`. */
  async listen(say: (text: string) => void): Promise<void> {
    const { config } = this.#context
    const policy = { takesNext: false, say }
    const settings = ['CALLSIGN_NODE_HOST', 'CALLSIGN_NODE_PORT']
    await openPort({ ...this.#node, settings }, this.#server, policy)
    const servers = {
      grpc: this.#grpc,
      admin: this.#admin,
      http: { listen: chosenPort },
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

  renewCertificates(read: () => Config): Promise<void> {
    return renewCertificates(this.#context, this.#fronts, this.#grpc, read)
  }

  stop(reason: string): Promise<void> {
    this.#news.offer('stop')
    this.#stopped ??= stopProcess(this.#context, () => this.#parts(), reason).then(() => {
      this.#role = { kind: 'stopped' }
    })
    return this.#stopped
  }

  /** The one place where the node's role changes, until `stop`. */
  async #run(): Promise<void> {
    for (;;) {
      const news = await this.#news.next()
      if (news === 'stop') return
      if (news.state !== 'open') throw unusable(news.state)
      if (this.#role.kind !== 'following node') continue
      const place = news.holder && placeOf(news.holder.address)
      this.#role.link.goTo(place)
      this.#fronts.follow(place)
      if (place === undefined) this.#role = await this.#acquire(this.#role)
    }
  }

  /** Becomes the writer, unless another node is faster. */
  async #acquire(following: FollowingNode): Promise<FollowingNode | WritingNode> {
    const { ledger, database, knownCheckpoint } = this.#deps
    const { world, fatal, logger } = this.#context
    const { follower, link } = following
    this.#role = { kind: 'acquiring', follower, link, lease: undefined }
    const acquired = await ledger.acquire().catch(error => {
      logger.warn({ event: 'lease-not-acquired', err: error })
      return undefined
    })
    if (acquired === undefined) return following
    const { epoch, last, head } = acquired
    logger.info({ event: 'writer', epoch, change: last })
    const lease = new LeaseKeeper({ lease: acquired, world, logger, onLost: fatal })
    await follower.reached(last)
    this.#role = { kind: 'acquiring', follower, link, lease }
    await follower.close()
    database.useLedger(lease)
    const recordedHead = head === undefined ? undefined : Buffer.from(head).toString()
    const log = await openCopiedLog(this.#context, database, { knownCheckpoint, recordedHead })
    const writing = await this.#startWriting(log, lease)
    this.#fronts.serveBy(writing.desks)
    return writing
  }

  async #startWriting(log: OpenedLog, lease: LeaseKeeper): Promise<WritingNode> {
    const [context, system] = [this.#context, this.#system]
    const { publicUrl } = this.#addresses
    const { headFile } = log.guard
    log.published.subscribe(() => this.#fronts.onApplied())
    const writer = await startWriter(context, system, log, {
      publicUrl,
      newcomers: new Newcomers(),
      record: async head => {
        await headFile?.record(head)
        await lease.recordHead(head)
      },
    })
    observe(context.metrics, system, log.vrf)
    const routes = publicRoutes(context, log, writer.application, publicUrl)
    const leaseLastsMs = () => lease.lastsUntilMs - context.world.monotonicMs()
    const desks = new FrontDesks({ context, system, writer, routes, leaseLastsMs })
    return { kind: 'writing node', lease, writer, desks }
  }

  #openFollower(): CopyFollower {
    return new CopyFollower({
      ...this.#deps,
      context: this.#context,
      onApplied: () => this.#fronts.onApplied(),
      onWriter: writer => {
        if (this.#context.phase !== 'stopping') this.#news.offer(writer)
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
    if (this.#role.kind === 'writing node') return await this.#role.writer.register(...key)
    if (this.#role.kind === 'stopped') throw new SignalError('LOG_UNAVAILABLE', 'the node has stopped')
    const { port } = this.#role.link
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
    this.#fronts.mayServe(nowMs - currentAtMs < COPY_AGE_MS_MAX)
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
      return [role.writer.stops, role.desks.stops, { lease: () => role.lease.release() }]
    case 'stopped':
      return []
  }
}

/** The newest item offered. */
class News<Item> {
  #newest: Item | undefined
  #taken: ((item: Item) => void) | undefined

  offer(item: Item): void {
    this.#newest = item
    this.#taken?.(item)
    if (this.#taken !== undefined) this.#newest = undefined
    this.#taken = undefined
  }

  /** Resolves with the newest item not yet taken. */
  next(): Promise<Item> {
    const item = this.#newest
    this.#newest = undefined
    if (item !== undefined) return Promise.resolve(item)
    return new Promise(resolve => {
      this.#taken = resolve
    })
  }
}

function unusable(state: Exclude<LedgerState, 'open'>): ConfigError {
  return new ConfigError([`the ledger in CALLSIGN_DATABASE_URL can't be used: ${UNUSABLE[state]}`])
}

function addressOf({ host, port }: NodeConfig): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
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
