/** One run of the server, from its settings to its stop. It builds every part and joins them, and holds no rule. */

import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { shuffle } from '../domain/shuffle.ts'
import type { Addresses } from '../fronts/messages.ts'
import { FRONT_STOP_MS, STOP_DEADLINE_MS } from '../limits.ts'
import { formatBanner, formatReady } from '../operations/banner.ts'
import { observe, observeConnections, observeFronts, observeStore } from '../operations/figures.ts'
import { finishReset } from '../store/engine/reset.ts'
import { Newcomers } from '../transport/newcomers.ts'
import { OpenConnections } from '../transport/open-connections.ts'
import { alsoOnLoopback, localUrlOf, ownUrlOf, portIn } from './addresses.ts'
import { FrontDesks } from './fronts/front-desks.ts'
import { FrontProcesses } from './fronts/front-processes.ts'
import { Fronts } from './fronts/fronts.ts'
import {
  consoleRoutes,
  operatorServer,
  publicRoutes,
  publicServer,
  registrationServer,
  renewCertificates,
  stompTcpServer,
} from './listeners.ts'
import { type OpenedLog, openLog } from './open-log.ts'
import { chosenPort, openPort, type PortPolicy } from './process/listening.ts'
import { actorSystem, Process } from './process/process.ts'
import type { Ready, RunningServer, StartDeps } from './process/running-server.ts'
import { VERSION } from './process/version.ts'
import type { Reads } from './reads.ts'
import { type Config, listenersOf } from './settings/config.ts'
import { startWriter } from './writer.ts'

/** Opens the store, starts the actors, listens. Throws `ConfigError` or `SignalError` for a fault that the operator can mend. */
export async function start(config: Config, deps: StartDeps): Promise<RunningServer> {
  const { logger, say, knownCheckpoint, onReset } = deps
  if (config.isDevelopment) await finishReset(config.dataFolder)
  const host = new Process(config, logger, say)
  if (config.node !== undefined) {
    const { startNode } = await import('./node/node.ts')
    return await startNode(host, config.node, deps)
  }
  const log = await openLog(host, knownCheckpoint)
  let fronts: Fronts | undefined
  let desks: FrontDesks | undefined
  let frontProcesses: FrontProcesses | undefined
  const system = actorSystem(host)
  const addresses: Addresses = { http: '', grpc: '', admin: '' }
  const publicUrl = () => config.publicUrl ?? ownUrlOf(config, addresses)
  const newcomers = new Newcomers()
  const { headFile } = log.guard
  const { application, register } = await startWriter(host, system, log, {
    publicUrl,
    newcomers,
    announce: head => desks?.announce(head),
    onPublished: () => fronts?.onPublished(),
    record: headFile && (head => headFile.record(head)),
  })
  const connections = new OpenConnections()
  const ofConsole = consoleRoutes(host, log, application, {
    publicUrl,
    localUrl: () => localUrlOf(config, addresses),
    figures: () => system.figures(),
    onReset,
  })
  const routes = [...publicRoutes(host, log, application, publicUrl), ...ofConsole]
  const onServed = host.devConsole?.onServed
  const http = publicServer(host, log, application, { routes, publicUrl, connections, newcomers, onServed })
  const stompTcp = stompTcpServer(host, application, connections)
  const isAlone = config.fronts === 0
  const grpc = registrationServer(host, (...key) => desks?.register(...key) ?? register(...key))
  const admin = operatorServer(host, () => fronts?.metrics() ?? [])
  observe(host.metrics, system, log.vrf)
  observeConnections(host.metrics, connections, newcomers)
  observeStore(host.metrics, () => log.database.figures)
  observeFronts(host.metrics, () => frontProcesses?.figures ?? NO_FRONTS)

  const listeners = listenersOf(config)
  const ports: PortPolicy = {
    takesNext: config.isDevelopment,
    say: sentence => say(`callsign: ${sentence}\n`),
  }
  addresses.grpc = await openPort(listeners.grpc, grpc, ports)
  addresses.admin = `http://${await openPort(listeners.admin, admin, ports)}`
  const scheme = config.http.tls === undefined ? 'http' : 'https'
  if (stompTcp !== undefined && listeners.stompTcp !== undefined) {
    addresses.stompTcp = await openPort(listeners.stompTcp, stompTcp, ports)
  }
  const onHttp = isAlone ? alsoOnLoopback(config, http) : { listen: chosenPort }
  addresses.http = `${scheme}://${await openPort(listeners.http, onHttp, ports)}`
  if (!isAlone) await startFronts()
  host.isServing = () => fronts?.isServing ?? true
  host.isOpen = true
  const { vkey, vrfPublicKey } = log.maker
  const ready = { ...addresses, origin: log.keys.signer.name, vkey, vrfPublicKey }
  let stopped: Promise<void> | undefined

  return {
    ready,
    announce: () => announce(config, log, ready, application.features),
    renewCertificates: read => renewCertificates(host, fronts ?? http, grpc, read),
    stop(reason) {
      stopped ??= stop(reason)
      return stopped
    },
  }

  /** Resolves when all of them serve. */
  async function startFronts(): Promise<void> {
    const { database, published } = log
    const { stores, rooms, liveConnections } = application
    desks = new FrontDesks({
      host,
      system,
      database,
      stores,
      rooms,
      connections: liveConnections,
      routes,
      published,
      register,
    })
    fronts = new Fronts({
      host,
      system,
      database,
      head: () => published.head,
      routes: ofConsole,
      addresses,
      port: portIn(addresses.http),
    })
    fronts.serveBy(desks)
    const { open } = fronts
    frontProcesses = new FrontProcesses({
      count: config.fronts,
      onStarted: open,
      onEnded: () => log.database.dropDeadReaders(),
      world: host.world,
      logger,
    })
    await fronts.ready(config.fronts, FRONTS_START_MS_MAX)
  }

  async function stop(reason: string): Promise<void> {
    host.isStopping = true
    logger.info({ event: 'stopping', reason })
    const tooLate = () => host.fatal(new Error(`not stopped within ${STOP_DEADLINE_MS} ms`))
    const deadline = setTimeout(tooLate, STOP_DEADLINE_MS).unref()
    // Clients that have connected by now are let in; closing the socket would reset them.
    await setImmediate()
    http.stopListening()
    stompTcp?.stopListening()
    host.devConsole?.stop()
    await frontProcesses?.stop(FRONT_STOP_MS)
    const inRandomOrder = shuffle([...connections], host.world.random)
    await application.signalling.drain(inRandomOrder, STOP_DEADLINE_MS / 10, sleep)
    // Callers get their answers first: these need the appender, which needs the store.
    await grpc.close(STOP_DEADLINE_MS / 3)
    await http.answered(STOP_DEADLINE_MS / 5)
    await system.drainAndStop(STOP_DEADLINE_MS / 5)
    await application.stores.deviceInbox.settleNow()
    await connections.ended(STOP_DEADLINE_MS / 10)
    http.close()
    stompTcp?.close()
    admin.close()
    application.close()
    await log.vrf.close()
    await log.database.close()
    host.close()
    clearTimeout(deadline)
    logger.info({ event: 'stopped' })
  }
}

/** The ready line on stdout, as JSON for programs; in development, the banner for people on stderr. */
function announce(
  config: Config,
  { keys, published }: OpenedLog,
  ready: Ready,
  features: Reads['features'],
): void {
  if (!process.stdout.isTTY) process.stdout.write(`${JSON.stringify({ event: 'ready', ...ready })}\n`)
  else if (!config.isDevelopment) process.stdout.write(formatReady(ready))
  if (!config.isDevelopment) return
  const banner = formatBanner({
    ...ready,
    http: localUrlOf(config, ready),
    version: VERSION,
    dataFolder: config.dataFolder,
    treeSize: published.head.treeSize,
    areKeysNew: keys.areNew,
    ...(config.isExposed ? { phones: config.publicUrl ?? ownUrlOf(config, ready) } : {}),
    isTerminal: process.stderr.isTTY,
    features: { ...features, media: features.media === 'janus' },
    mediaUrl: config.application.janus?.clientUrl,
  })
  process.stderr.write(banner)
}

const FRONTS_START_MS_MAX = 30_000
const NO_FRONTS = { ready: 0, restarts: 0 }
