/** One run of the server, from its settings to its stop. It builds every part and joins them, and holds no rule. */

import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { logAppenderKind } from '../../actors/log-appender.ts'
import type { LogAppenderMessage, OutboxCommand } from '../../actors/messages.ts'
import { outboxKind } from '../../actors/outbox.ts'
import { LiveConnections } from '../../actors/presence.ts'
import { Authentication } from '../api/accounts/authentication.ts'
import { lasts } from '../domain/accounts/session.ts'
import { channelOf, LANES } from '../domain/messages/outbox-message.ts'
import { shuffle } from '../domain/shuffle.ts'
import { type RegistrationDeps, registerKey } from '../keyserver/registration.ts'
import { APPEND_DEADLINE_MS, FRONT_STOP_MS, STOP_DEADLINE_MS } from '../limits.ts'
import { formatBanner, formatReady } from '../operations/banner.ts'
import { observe, observeConnections, observeFronts, observeStore } from '../operations/figures.ts'
import type { Logger } from '../operations/log.ts'
import type { Ref } from '../runtime/actor.ts'
import { ActorSystem } from '../runtime/system.ts'
import { finishReset } from '../store/engine/reset.ts'
import { Newcomers } from '../transport/newcomers.ts'
import { OpenConnections } from '../transport/open-connections.ts'
import { type Addresses, alsoOnLoopback, isOnLanOnly, localUrlOf, ownUrlOf, portIn } from './addresses.ts'
import { type Application, openApplication } from './application.ts'
import { openStores } from './application-stores.ts'
import { CallRooms } from './call-rooms.ts'
import { type Config, listenersOf } from './config.ts'
import { FrontProcesses } from './front-processes.ts'
import { Fronts } from './fronts.ts'
import {
  consoleRoutes,
  operatorServer,
  publicRoutes,
  publicServer,
  type Register,
  registrationServer,
  renewCertificates,
  type StartedApplication,
  stompTcpServer,
} from './listeners.ts'
import { chosenPort, openPort, type PortPolicy } from './listening.ts'
import { type OpenedLog, openLog } from './open-log.ts'
import { Process } from './process.ts'
import { pooledRandomBytes } from './random-pool.ts'
import { Signalling } from './signalling.ts'
import { VERSION } from './version.ts'

/** Where the server listens, and by which keys its log is verified. */
export interface Ready extends Addresses {
  readonly origin: string
  readonly vkey: string
  readonly vrfPublicKey: string
}

export interface RunningServer {
  readonly ready: Ready
  /** Says that the server is ready. */
  announce(): void
  /** Takes the certificates of the settings as they are now, and nothing else of them; broken ones are logged and left. */
  renewCertificates(read: () => Config): Promise<void>
  /** Resolves when what was asked is answered and everything is closed; asked again, with the first one. */
  stop(reason: string): Promise<void>
}

export interface StartDeps {
  readonly logger: Logger
  /** Prints beside the log what is for a person: codes in development, ports that were taken. */
  readonly say: (text: string) => void
  readonly knownCheckpoint: string | undefined
  /** Called when the data directory is marked to begin anew, in development. */
  readonly onReset: () => void
}

/** Opens the store, starts the actors, listens. Throws `ConfigError` or `SignalError` for a fault that the operator can mend. */
export async function start(
  config: Config,
  { logger, say, knownCheckpoint, onReset }: StartDeps,
): Promise<RunningServer> {
  if (config.isDevelopment) await finishReset(config.dataFolder)
  const host = new Process(config, logger, say)
  const log = await openLog(host, knownCheckpoint)
  let fronts: Fronts | undefined
  let frontProcesses: FrontProcesses | undefined
  const actors = await startActors(host, log, () => fronts?.onPublished())
  const addresses: Addresses = { http: '', grpc: '', admin: '' }
  const publicUrl = () => config.publicUrl ?? ownUrlOf(config, addresses)
  const register = registrationOf(host, log, actors)
  const newcomers = new Newcomers()
  const application = await startApplication(host, log, actors, { publicUrl, register, newcomers })
  await log.guard.confirm()
  await log.vrf.ready
  const connections = new OpenConnections()
  const routes = [
    ...publicRoutes(host, log, application, publicUrl),
    ...consoleRoutes(host, log, application, {
      publicUrl,
      localUrl: () => localUrlOf(config, addresses),
      figures: () => actors.system.figures(),
      onReset,
    }),
  ]
  const onServed = host.devConsole?.onServed
  const http = publicServer(host, log, application, { routes, publicUrl, connections, newcomers, onServed })
  const stompTcp = stompTcpServer(host, application, connections)
  const isAlone = config.fronts === 0
  const grpc = registrationServer(host, isAlone ? register : registerEverywhere)
  const admin = operatorServer(host, () => fronts?.metrics() ?? [])
  observe(host.metrics, actors.system, log.vrf)
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

  /** A lookup then finds the key, whichever process answers. */
  async function registerEverywhere(...key: Parameters<Register>): ReturnType<Register> {
    const registration = await register(...key)
    await fronts?.caughtUp()
    return registration
  }

  /** Resolves when all of them serve. */
  async function startFronts(): Promise<void> {
    fronts = new Fronts({
      host,
      system: actors.system,
      database: log.database,
      stores: application.stores,
      rooms: application.rooms,
      connections: application.liveConnections,
      routes,
      published: log.published,
      addresses,
      port: portIn(addresses.http),
    })
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
    await actors.system.drainAndStop(STOP_DEADLINE_MS / 5)
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

interface Actors {
  readonly system: ActorSystem
  readonly logAppender: Ref<LogAppenderMessage>
}

async function startActors(
  host: Process,
  { store, keys, published, guard: { headFile } }: OpenedLog,
  onPublished: () => void,
): Promise<Actors> {
  const { world, fatal, metrics, logger, config, devConsole } = host
  const system = new ActorSystem({
    world,
    fatal,
    onFailure: host.onActorFailure,
    refuseAskCycles: config.isDevelopment,
  })
  const appenderKind = logAppenderKind({
    store,
    signer: keys.signer,
    publishedSize: () => published.size,
    ...(headFile === undefined ? {} : { record: head => headFile.record(head) }),
    publish: head => {
      published.publish(head)
      onPublished()
      metrics.batches.inc()
      metrics.treeSize.set(head.treeSize)
      devConsole?.onCheckpoint(head)
      logger.info({ event: 'checkpoint', treeSize: head.treeSize })
    },
    fatal,
  })
  const logAppender = system.define(appenderKind)('log')
  // The appender checks the whole right edge of the log before it says what size it has.
  await logAppender.ask<number>(reply => ({ kind: 'open', reply }), OPEN_DEADLINE_MS)
  return { system, logAppender }
}

interface ApplicationDeps {
  readonly publicUrl: () => string
  readonly register: Register
  readonly newcomers: Newcomers
}

/** Opens the application API, finishes what the last process left unfinished, and has its outbox sent. */
async function startApplication(
  host: Process,
  { database, keys, store, guard }: OpenedLog,
  { system }: Actors,
  { publicUrl, register, newcomers }: ApplicationDeps,
): Promise<StartedApplication> {
  const { config, world, logger, metrics, devConsole } = host
  const { nowMs, monotonicMs } = world
  const { rateLimits, isDevelopment } = config
  const { idsAs, lifetimes } = config.application
  const connections = new LiveConnections()
  const stores = openStores({
    database,
    secret: keys.secret,
    lifetimes,
    nowMs,
    randomBytes: pooledRandomBytes,
    isConnected: (userId, deviceId) => connections.isConnected(userId, deviceId),
    onFault: error => host.onFault(error),
  })
  const shared = {
    system,
    stores,
    rateLimits,
    idsAs,
    monotonicMs,
    randomBytes: pooledRandomBytes,
    metrics,
    devConsole,
  }
  const rooms = new CallRooms({ ...shared, presence: connections })
  const authentication = new Authentication({ ...stores, nowMs, onSeen: rooms.onSeen })
  const signalling = new Signalling({
    ...shared,
    rooms,
    connections,
    hasEnded: sessionName => !lasts(stores.sessions.current(sessionName)),
    authenticate: authorization => authentication.requesterOf(authorization),
    runConnect: connect => newcomers.run(connect),
    isDevelopment,
    version: VERSION,
    onFault: host.onFault,
  })
  const application = openApplication({
    config: config.application,
    stores,
    authentication,
    isDevelopment,
    relayHost: isOnLanOnly(config) ? config.http.host : config.lanAddress,
    rateLimits,
    nowMs,
    monotonicMs,
    randomBytes: pooledRandomBytes,
    publicUrl,
    register,
    identityOf(vrfHash) {
      const index = store.newestIndex(vrfHash)
      return index === undefined ? undefined : store.identity(index)
    },
    askRoom: rooms.ask,
    callIndex: rooms.index,
    ...(devConsole === undefined
      ? {}
      : { onRendered: devConsole.onDelivered, onRequester: devConsole.onRequester }),
    onSmsStopped({ scope, name, untilMs }) {
      metrics.smsStops.inc({ scope })
      logger.warn({ event: 'sms-stopped', scope, name, until: new Date(untilMs).toISOString() })
    },
    onTokenReused: (userId, requestId) =>
      logger.warn({ event: 'refresh-token-reused', userId: `${userId}`, requestId }),
  })
  const outboxOf = system.define<OutboxCommand>(
    outboxKind({
      queueOf: lane => application.outbox.queue(lane),
      send: message => application.delivery.send(message),
      onTried(lane, outcome) {
        const channel = channelOf(lane)
        metrics.deliveries.inc({ channel, outcome: outcome.kind })
        if (outcome.kind !== 'sent' && outcome.kind !== 'skipped')
          logger.warn({ event: 'not-delivered', channel, ...outcome })
      },
    }),
  )
  database.subscribe('outbox-news', ({ lane }) => outboxOf(lane).tell({ kind: 'wake' }))
  database.subscribe('code-tried', ({ tried: { asker, isAccepted } }) =>
    metrics.codeTries.inc({ asker, outcome: isAccepted ? 'accepted' : 'wrong' }),
  )
  database.subscribe('codes-guessed', () => logger.warn({ event: 'codes-guessed' }))
  // Devices have seen positions that a restored store would give to other messages.
  if (guard.isRestored) await database.change(change => stores.inbox.renewEpochs(change))
  const repairs = await application.registration.repairPending()
  if (repairs.finished + repairs.left > 0) logger.info({ event: 'registrations-repaired', ...repairs })
  for (const lane of LANES) outboxOf(lane).tell({ kind: 'wake' })
  world.every(SWEEP_MS, application.sweep)
  expireForEver(host, application)
  metrics.gauge('callsign_codes_guessed', 'Whether more codes are wrong than right, and many: 1 or 0', () =>
    Number(database.view(view => stores.guessWatch.isGuessed(view, nowMs()))),
  )
  metrics.labelledCounter(
    'callsign_inbox_dropped_total',
    'Messages that left an inbox unread: it was full, or their time was over',
    'reason',
    () => stores.inbox.dropped,
  )
  rooms.resume()
  return { ...application, stores, rooms, liveConnections: connections, authentication, signalling }
}

/** Ends what comes to its end, a bounded number at a time, so that no request ever scans for it. */
function expireForEver({ world, onFault }: Process, { expire }: Application): void {
  let isUnderWay = false
  world.every(EXPIRE_MS, () => {
    if (isUnderWay) return
    isUnderWay = true
    expireAll(expire)
      .catch(error => onFault(error))
      .finally(() => {
        isUnderWay = false
      })
  })
}

/** Without a pause while there is more, so that what ends never gathers faster than it goes. */
async function expireAll(expire: Application['expire']): Promise<void> {
  while ((await expire(EXPIRED_AT_ONCE)) === EXPIRED_AT_ONCE);
  // The last portion may have left more.
  await expire(EXPIRED_AT_ONCE)
}

function registrationOf(host: Process, { vrf }: OpenedLog, { logAppender }: Actors): Register {
  const { config, metrics, logger } = host
  const registration: RegistrationDeps = {
    isFrozen: config.log.isFrozen,
    vrf,
    append: key => logAppender.ask<number>(reply => ({ kind: 'append', ...key, reply }), APPEND_DEADLINE_MS),
    onRegistered: index => {
      metrics.registrations.inc()
      logger.info({ event: 'registered', index })
    },
  }
  return (...key) => registerKey(registration, ...key)
}

/** The ready line on stdout, as JSON for programs; in development, the banner for people on stderr. */
function announce(
  config: Config,
  { keys, published }: OpenedLog,
  ready: Ready,
  features: Application['features'],
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
    features,
  })
  process.stderr.write(banner)
}

/** Opening a log reads its right edge and the last 65,000 entries: well below a second on any disk. */
const OPEN_DEADLINE_MS = 60_000
const FRONTS_START_MS_MAX = 30_000
const NO_FRONTS = { ready: 0, restarts: 0 }
const SWEEP_MS = 60_000
const EXPIRE_MS = 1_000
/** Rows ended in one change: a few milliseconds. */
const EXPIRED_AT_ONCE = 1_000
