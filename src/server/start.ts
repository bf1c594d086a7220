/** A server from its settings to its stop. Builds and joins every part, and holds no rule. */

import { setTimeout as sleep } from 'node:timers/promises'
import { shuffle } from '../domain/shuffle.ts'
import { STOP_DEADLINE_MS } from '../limits.ts'
import { clientUrlsOf } from '../media/media-settings.ts'
import { formatBanner, formatReady } from '../operations/banner.ts'
import { observe, observeConnections, observeFronts, observeStore } from '../operations/figures.ts'
import type { ProcessMetrics } from '../operations/merged-metrics.ts'
import type { ActorSystem } from '../runtime/system.ts'
import type { LmdbStore } from '../store/engine/lmdb-store.ts'
import { finishReset } from '../store/engine/reset.ts'
import { Newcomers } from '../transport/newcomers.ts'
import { OpenConnections } from '../transport/open-connections.ts'
import type { HttpRoute } from '../transport/route.ts'
import { alsoOnLoopback, OwnAddresses } from './addresses.ts'
import { FrontDesks } from './fronts/front-desks.ts'
import { Fronts, startFronts } from './fronts/fronts.ts'
import {
  consoleRoutes,
  operatorServer,
  publicRoutes,
  publicServer,
  serverApiRoutes,
  serverApiServer,
  stompTcpServer,
} from './listeners.ts'
import { openLog } from './open-log.ts'
import { chosenPort, openPorts, type Ports } from './process/listening.ts'
import { actorSystem, Process } from './process/process.ts'
import type { Ready, RunningServer, StartDeps } from './process/running-server.ts'
import type { Stops } from './process/stages.ts'
import { stopProcess } from './process/stop-process.ts'
import { VERSION } from './process/version.ts'
import { renewSettings } from './renewal.ts'
import type { Alone, MachineRole, ServerInRole, WriterOfFronts } from './role.ts'
import { type Config, listenersOf } from './settings/config.ts'
import type { Recording } from './writer/appender.ts'
import type { KnownIndex } from './writer/indexing.ts'
import { registrationServer } from './writer/registration-server.ts'
import { startWriter, type Writer } from './writer/writer.ts'

/** Opens the store, starts the actors, listens. Throws `ConfigError` or `SignalError` for a fault that the operator can mend. */
export async function start(config: Config, deps: StartDeps): Promise<ServerInRole> {
  if (config.isDevelopment) await finishReset(config.dataFolder)
  const context = new Process(config, deps.logger, deps.say)
  if (config.node !== undefined) {
    const { startNode } = await import('./node/start-node.ts')
    return await startNode(context, config.node, deps)
  }
  const machine = await openMachine(context, deps)
  return config.fronts === 0 ? await startAlone(machine) : await startWithFronts(machine)
}

/** The parts of a server on one machine, alone or with fronts. */
interface Machine {
  readonly context: Process
  readonly system: ActorSystem
  readonly addresses: OwnAddresses
  readonly database: LmdbStore
  readonly writer: Writer
  readonly newcomers: Newcomers
  readonly connections: OpenConnections
  readonly ofConsole: readonly HttpRoute[]
  readonly ofServerApi: readonly HttpRoute[]
  /** Every route of the public port but the log's files. */
  readonly routes: readonly HttpRoute[]
}

async function openMachine(
  context: Process,
  { knownCheckpoint, knownIndexCheckpoint, onReset }: StartDeps,
): Promise<Machine> {
  const { config, metrics } = context
  const log = await openLog(context, knownCheckpoint)
  const system = actorSystem(context)
  const addresses = new OwnAddresses(config)
  const { publicUrl, localUrl } = addresses
  const newcomers = new Newcomers()
  const connections = new OpenConnections()
  const { headFile } = log.guard
  const recording: Recording = headFile === undefined ? {} : { record: head => headFile.record(head) }
  const index: KnownIndex = { knownCheckpoint: knownIndexCheckpoint }
  const writer = await startWriter(context, system, log, { publicUrl, newcomers, recording, index })
  const figures = () => system.figures()
  const ofConsole = consoleRoutes(context, log, writer.application, { publicUrl, localUrl, figures, onReset })
  const ofServerApi = serverApiRoutes(writer.application.serverRoutes, addresses.serverApiUrl)
  const routes = [
    ...publicRoutes(context, log, writer.application, publicUrl),
    ...ofConsole,
    ...(config.serverApi.isPublic ? ofServerApi : []),
  ]
  observe(metrics, system, log.vrf)
  observeConnections(metrics, connections, newcomers)
  observeStore(metrics, () => log.database.figures)
  return {
    context,
    system,
    addresses,
    database: log.database,
    writer,
    newcomers,
    connections,
    ofConsole,
    ofServerApi,
    routes,
  }
}

async function startAlone(machine: Machine): Promise<ServerInRole> {
  const { context, addresses, writer, newcomers, connections, routes, ofServerApi } = machine
  const { config, metrics } = context
  const { publicUrl } = addresses
  const onServed = context.devConsole?.onServed
  const http = publicServer(context, writer.log, writer.application, {
    ...{ routes, publicUrl, connections, newcomers, onServed },
  })
  const serverApi = serverApiServer(context, writer.log, ofServerApi)
  observeFronts(metrics, () => NO_FRONTS)
  const inner = innerServers(machine, () => [])
  await open(machine, { ...inner.servers, serverApi, http: alsoOnLoopback(config, http) })
  context.opened()
  const role: Alone = { kind: 'alone', writer, http, serverApi }
  const servers = [http, serverApi]
  const stops: Stops = {
    listening: () => servers.forEach(each => void each.stopListening()),
    requests: () => Promise.all(servers.map(each => each.answered(STOP_DEADLINE_MS / 5))),
    sockets: () => servers.forEach(each => void each.close()),
  }
  return new MachineServer(machine, role, [stops, inner.stops], read =>
    renewSettings(context, http, inner.servers.grpc, read),
  )
}

async function startWithFronts(machine: Machine): Promise<ServerInRole> {
  const { context, system, addresses, database, writer, ofConsole, routes } = machine
  const { published } = writer.log
  const desks = new FrontDesks({
    context,
    system,
    writer,
    routes: [...routes, ...writer.application.serverRoutes],
    leaseLastsMs: () => Number.POSITIVE_INFINITY,
  })
  const deps = {
    ...{ context, system, database, addresses },
    head: () => published.head,
    routes: ofConsole,
    // On one machine the store is always current.
    onPoll: () => undefined,
  }
  const fronts = new Fronts(deps, { kind: 'here', desks })
  published.subscribe(() => fronts.onPublished())
  const inner = innerServers(machine, () => fronts.metrics())
  await open(machine, { ...inner.servers, serverApi: { listen: chosenPort }, http: { listen: chosenPort } })
  const running = startFronts(fronts, deps, context.config.fronts)
  observeFronts(context.metrics, () => running.processes.figures)
  await running.serving
  context.opened(() => fronts.isServing)
  const role: WriterOfFronts = { kind: 'writer', writer, desks, fronts: running }
  return new MachineServer(machine, role, [{ fronts: running.stop }, desks.stops, inner.stops], read =>
    renewSettings(context, fronts, inner.servers.grpc, read),
  )
}

/** All servers but the public port's. */
function innerServers(
  { context, writer, connections }: Machine,
  frontsMetrics: () => readonly ProcessMetrics[] | Promise<readonly ProcessMetrics[]>,
) {
  const { application } = writer
  const stompTcp = stompTcpServer(context, application, connections)
  const grpc = registrationServer(context, writer.register)
  const admin = operatorServer(context, frontsMetrics)
  const stops: Stops = {
    listening() {
      stompTcp?.stopListening()
      context.devConsole?.stop()
    },
    clients: () =>
      application.signalling.drain(
        shuffle([...connections], context.world.random),
        STOP_DEADLINE_MS / 10,
        sleep,
      ),
    registrations: () => grpc.close(STOP_DEADLINE_MS / 3),
    connections: () => connections.ended(STOP_DEADLINE_MS / 10),
    sockets() {
      stompTcp?.close()
      admin.close()
    },
  }
  return { servers: { grpc, admin, stompTcp }, stops }
}

async function open(
  { context, addresses }: Machine,
  servers: Pick<Ports, 'http' | 'grpc' | 'admin' | 'serverApi' | 'stompTcp'>,
): Promise<void> {
  const { config, say } = context
  const ports = { ...servers, listeners: listenersOf(config), isSecure: config.http.tls !== undefined }
  const sayTaken = (sentence: string) => say(`callsign: ${sentence}\n`)
  addresses.opened(await openPorts(ports, { takesNext: config.isDevelopment, say: sayTaken }))
}

class MachineServer implements ServerInRole {
  readonly ready: Ready
  readonly renew: RunningServer['renew']
  readonly #machine: Machine
  readonly #parts: readonly Stops[]
  #role: MachineRole
  #stopped: Promise<void> | undefined

  constructor(
    machine: Machine,
    role: Alone | WriterOfFronts,
    parts: readonly Stops[],
    renew: RunningServer['renew'],
  ) {
    const { addresses, system, database, writer } = machine
    const { maker, keys } = writer.log
    const { vkey, vrfPublicKey } = maker
    this.ready = { ...addresses.all, origin: keys.signer.name, vkey, vrfPublicKey }
    this.renew = renew
    this.#machine = machine
    this.#role = role
    this.#parts = [
      ...parts,
      writer.stops,
      { actors: () => system.drainAndStop(STOP_DEADLINE_MS / 5), store: () => database.close() },
    ]
  }

  get role(): MachineRole {
    return this.#role
  }

  announce(): void {
    announce(this.#machine, this.ready)
  }

  stop(reason: string): Promise<void> {
    this.#stopped ??= stopProcess(this.#machine.context, () => this.#parts, reason).then(() => {
      this.#role = { kind: 'stopped' }
    })
    return this.#stopped
  }
}

/** The ready line on stdout, as JSON for programs; in development, the banner for people on stderr. */
function announce({ context: { config }, addresses, writer }: Machine, ready: Ready): void {
  if (!process.stdout.isTTY) process.stdout.write(`${JSON.stringify({ event: 'ready', ...ready })}\n`)
  else if (!config.isDevelopment) process.stdout.write(formatReady(ready))
  if (!config.isDevelopment) return
  const { features } = writer.application
  const banner = formatBanner({
    ...ready,
    http: addresses.localUrl(),
    version: VERSION,
    dataFolder: config.dataFolder,
    treeSize: writer.log.published.head.treeSize,
    areKeysNew: writer.log.keys.areNew,
    ...(config.isExposed ? { phones: addresses.publicUrl() } : {}),
    isTerminal: process.stderr.isTTY,
    features: { ...features, media: features.media !== 'client' && features.media },
    mediaUrl: clientUrlsOf(config.application.media).join(', ') || undefined,
  })
  process.stderr.write(banner)
}

const NO_FRONTS = { ready: 0, restarts: 0 }
