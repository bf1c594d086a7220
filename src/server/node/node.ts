/**
 * One node of several, from its settings to its stop. It keeps a copy of the ledger, has its fronts answer from that, and is
 * the writer while it holds the lease. A node that has lost the lease ends: another one goes on from what is recorded.
 */

import { setImmediate } from 'node:timers/promises'
import type { FrontDeskMessage } from '../../../actors/messages.ts'
import { NodeServer } from '../../fronts/link/node-sockets.ts'
import { type Addresses, COPY_AGE_MS_MAX } from '../../fronts/messages.ts'
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
import type { GrpcServer } from '../../transport/grpc.ts'
import type { HttpServer } from '../../transport/http.ts'
import { Newcomers } from '../../transport/newcomers.ts'
import { FrontDesks } from '../fronts/front-desks.ts'
import {
  operatorServer,
  publicRoutes,
  type Register,
  registrationServer,
  renewCertificates,
} from '../listeners.ts'
import { assertMaker, type Keys, makerOf, type OpenedLog, openCopiedLog, readKeys } from '../open-log.ts'
import { chosenPort, openPort } from '../process/listening.ts'
import { actorSystem, type Process } from '../process/process.ts'
import type { RunningServer, StartDeps } from '../process/running-server.ts'
import { VERSION } from '../process/version.ts'
import { type Config, ConfigError, listenersOf } from '../settings/config.ts'
import type { NodeConfig } from '../settings/node-settings.ts'
import { startWriter, type Writer } from '../writer.ts'
import { CopyFollower, openFilledCopy } from './copy-follower.ts'
import { LeaseKeeper } from './lease-keeper.ts'
import { NodeFronts } from './node-fronts.ts'

/** Resolves when the node serves, as the writer or beside it. Throws as `start`. */
export async function startNode(
  host: Process,
  node: NodeConfig,
  { say, knownCheckpoint }: Pick<StartDeps, 'say' | 'knownCheckpoint'>,
): Promise<RunningServer> {
  const { world, logger } = host
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
  const database = await openFilledCopy(host, ledger)
  const running = new Node(host, node, { ledger, database, knownCheckpoint })
  await running.listen(say)
  await running.join()
  return running
}

interface NodeDeps {
  readonly ledger: PostgresLedger
  readonly database: LmdbStore
  readonly knownCheckpoint: string | undefined
}

/** The parts of a node that is the writer. */
interface Writing extends Writer {
  readonly log: OpenedLog
  readonly lease: LeaseKeeper
  readonly desks: FrontDesks
}

class Node implements RunningServer {
  readonly #host: Process
  readonly #node: NodeConfig
  readonly #deps: NodeDeps
  readonly #system: ActorSystem
  readonly #addresses: Addresses = { http: '', grpc: '', admin: '' }
  readonly #server: NodeServer
  readonly #grpc: GrpcServer
  readonly #admin: HttpServer
  /** To the writer, where that is another node, for registrations that come here. */
  readonly #link: WriterLink
  readonly #fronts: NodeFronts
  readonly #keys: Keys
  readonly #maker: LogMaker
  readonly #logStore: LogStore
  #follower: CopyFollower | undefined
  #isAcquiring = false
  /** While it lasts the copy is what the ledger is. */
  #lease: LeaseKeeper | undefined
  #writing: Writing | undefined
  #stopped: Promise<void> | undefined

  constructor(host: Process, node: NodeConfig, deps: NodeDeps) {
    const { database } = deps
    this.#host = host
    this.#node = node
    this.#deps = deps
    this.#system = actorSystem(host)
    this.#keys = readKeys(host.config)
    this.#maker = makerOf(this.#keys)
    this.#logStore = new LogStore(database)
    this.#server = new NodeServer(node.tls, socket => {
      if (this.#writing === undefined) socket.destroy()
      else this.#writing.desks.accept(socket)
    })
    this.#link = new WriterLink({
      port: new WriterPort(),
      self: { name: `${node.name}/registrations`, version: VERSION },
      system: this.#system,
      serves: new Map(),
      tls: node.tls,
      world: host.world,
      logger: host.logger,
      // The writer answers when all nodes show what it has registered.
      onMessage: () => undefined,
      onLost: () => undefined,
      onOtherForm: ({ message }) => {
        if (!host.isOpen)
          host.fatal(new ConfigError([`the nodes have different versions: ${message}; ${UPGRADE}`]))
      },
    })
    this.#fronts = new NodeFronts({
      host,
      system: this.#system,
      database,
      addresses: this.#addresses,
      onPoll: () => (this.#lease === undefined ? this.#follower?.look() : this.#look()),
    })
    this.#grpc = registrationServer(host, (...key) => this.#register(...key))
    this.#admin = operatorServer(host, () => this.#fronts.metrics())
    observeStore(host.metrics, () => database.figures)
    observeNode(host.metrics, () => ({
      isWriter: this.#writing !== undefined,
      change: database.lastChange,
      silentMs: this.#silentMs(),
    }))
    host.isServing = () => this.#fronts.isServing
  }

  get ready() {
    const { vkey, vrfPublicKey } = this.#maker
    return { ...this.#addresses, origin: this.#keys.signer.name, vkey, vrfPublicKey }
  }

  /** Opens the ports, but only chooses the one for HTTP, which the fronts open. Throws `ConfigError`. */
  async listen(say: (text: string) => void): Promise<void> {
    const { config } = this.#host
    const listeners = listenersOf(config)
    const ports = { takesNext: false, say }
    const addresses = this.#addresses
    await openPort(
      { ...this.#node, settings: ['CALLSIGN_NODE_HOST', 'CALLSIGN_NODE_PORT'] },
      this.#server,
      ports,
    )
    addresses.grpc = await openPort(listeners.grpc, this.#grpc, ports)
    addresses.admin = `http://${await openPort(listeners.admin, this.#admin, ports)}`
    const scheme = config.http.tls === undefined ? 'http' : 'https'
    addresses.http = `${scheme}://${await openPort(listeners.http, { listen: chosenPort }, ports)}`
  }

  /** Resolves when the node serves for the first time. */
  async join(): Promise<void> {
    const { host, database } = { host: this.#host, database: this.#deps.database }
    this.#follower = new CopyFollower({
      ledger: this.#deps.ledger,
      database,
      host,
      onApplied: () => this.#fronts.onApplied(),
      onWriter: writer => this.#onWriter(writer),
      onCurrent: () => this.#look(),
    })
    host.world.every(LOOK_MS, () => this.#look())
    await this.#fronts.serving
    host.isOpen = true
  }

  announce(): void {
    process.stdout.write(`${JSON.stringify({ event: 'ready', ...this.ready })}\n`)
  }

  renewCertificates(read: () => Config): Promise<void> {
    return renewCertificates(this.#host, this.#fronts, this.#grpc, read)
  }

  stop(reason: string): Promise<void> {
    this.#stopped ??= this.#stop(reason)
    return this.#stopped
  }

  #onWriter({ state, holder }: WriterState): void {
    if (state !== 'open') return this.#host.fatal(unusable(state))
    if (this.#writing !== undefined || this.#isAcquiring || this.#host.isStopping) return
    const place = holder === undefined ? undefined : placeOf(holder.address)
    this.#link.goTo(place)
    this.#fronts.sendTo(place)
    if (holder !== undefined) return
    this.#isAcquiring = true
    this.#acquire()
      .catch(this.#host.fatal)
      .finally(() => {
        this.#isAcquiring = false
      })
  }

  /** Becomes the writer, unless another node is faster. */
  async #acquire(): Promise<void> {
    const { ledger, database, knownCheckpoint } = this.#deps
    const { host, logger } = { host: this.#host, logger: this.#host.logger }
    const acquired = await ledger.acquire().catch(error => {
      logger.warn({ event: 'lease-not-acquired', err: error })
      return undefined
    })
    if (acquired === undefined) return
    const { epoch, last, head } = acquired
    logger.info({ event: 'writer', epoch, change: last })
    const { world, fatal } = host
    const lease = new LeaseKeeper({ lease: acquired, world, logger, onLost: fatal })
    await this.#follower!.reached(last)
    this.#lease = lease
    await this.#follower!.close()
    database.useLedger(lease)
    const recordedHead = head === undefined ? undefined : Buffer.from(head).toString()
    const log = await openCopiedLog(host, database, { knownCheckpoint, recordedHead })
    this.#writing = await this.#startWriting(log, lease)
    this.#fronts.serveBy(this.#writing.desks, () => log.published.head)
  }

  async #startWriting(log: OpenedLog, lease: LeaseKeeper): Promise<Writing> {
    const [host, system] = [this.#host, this.#system]
    const { headFile } = log.guard
    const publicUrl = () => host.config.publicUrl ?? this.#addresses.http
    const writer = await startWriter(host, system, log, {
      publicUrl,
      newcomers: new Newcomers(),
      announce: head => this.#writing?.desks.announce(head),
      onPublished: () => {
        this.#fronts.onApplied()
        this.#writing?.desks.onPublished()
      },
      record: async head => {
        await headFile?.record(head)
        await lease.recordHead(head)
      },
    })
    observe(host.metrics, system, log.vrf)
    const { stores, rooms, liveConnections } = writer.application
    const desks = new FrontDesks({
      host,
      system,
      database: log.database,
      stores,
      rooms,
      connections: liveConnections,
      routes: publicRoutes(host, log, writer.application, publicUrl),
      published: log.published,
      register: async (...key) => await writer.register(...key),
      leaseLastsMs: () => lease.lastsUntilMs - host.world.monotonicMs(),
    })
    return { ...writer, log, lease, desks }
  }

  /** Registers here or at the writer; a lookup then finds the key at any node. */
  async #register(...key: Parameters<Register>): Promise<Registration> {
    if (this.#writing !== undefined) return await this.#writing.desks.register(...key)
    const [userId, deviceId, publicKey] = key
    const desk = this.#system.remoteRef<FrontDeskMessage>(this.#link.port, 'front-desk', this.#node.name)
    return await desk.ask<Registration>(
      reply => ({ kind: 'register', userId, deviceId, publicKey, reply }),
      APPEND_DEADLINE_MS,
    )
  }

  /** A copy that may be old is not shown: it would honour sessions that are revoked by now. */
  #look(): void {
    const nowMs = this.#host.world.monotonicMs()
    if (this.#lease !== undefined) {
      // Once the lease has run out another node may write.
      return this.#fronts.current(Math.min(nowMs, this.#lease.lastsUntilMs - COPY_AGE_MS_MAX))
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
      this.#host.fatal(error)
    }
  }

  /** How long the ledger has not answered this node. */
  #silentMs(): number {
    if (this.#lease !== undefined) return 0
    const { heardAtMs } = this.#follower ?? {}
    return heardAtMs === undefined ? Number.POSITIVE_INFINITY : this.#host.world.monotonicMs() - heardAtMs
  }

  async #stop(reason: string): Promise<void> {
    const { ledger, database } = this.#deps
    const { logger, fatal } = this.#host
    this.#host.isStopping = true
    logger.info({ event: 'stopping', reason })
    const deadline = setTimeout(
      () => fatal(new Error(`not stopped within ${STOP_DEADLINE_MS} ms`)),
      STOP_DEADLINE_MS,
    ).unref()
    await setImmediate()
    await this.#fronts.stop()
    await this.#grpc.close(STOP_DEADLINE_MS / 3)
    await this.#writing?.desks.endReadLeases()
    this.#server.close()
    await this.#system.drainAndStop(STOP_DEADLINE_MS / 5)
    if (this.#writing !== undefined) await stopWriting(this.#writing)
    this.#link.goTo(undefined)
    await this.#follower?.close()
    this.#admin.close()
    await ledger.close()
    await database.close()
    this.#host.close()
    clearTimeout(deadline)
    logger.info({ event: 'stopped' })
  }
}

async function stopWriting({ application, log, lease }: Writing): Promise<void> {
  await application.stores.deviceInbox.settleNow()
  application.close()
  await log.vrf.close()
  await lease.release()
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
