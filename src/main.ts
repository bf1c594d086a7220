#!/usr/bin/env node
/**
 * The server: reads the configuration, opens the store, starts the actors, listens; stops on SIGTERM. It builds every
 * part and joins them, and holds no rule.
 */

import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { type LogAppenderMessage, logAppenderKind } from '../actors/log-appender.ts'
import { Admission } from './api/admission.ts'
import { LogFiles } from './api/log-files.ts'
import { metaRoute } from './api/meta.ts'
import { publicKeyRoutes } from './api/public-keys.ts'
import { type RegistrationWorld, registerKey } from './api/registration.ts'
import { type Config, ConfigError, isLoopback, type Listener, readConfig } from './config.ts'
import { clientRequirement } from './domain/client-version.ts'
import { SignalError } from './errors.ts'
import { APPEND_DEADLINE_MS, STOP_DEADLINE_MS, VRF_JOBS_WAITING_MAX } from './limits.ts'
import { signCheckpoint } from './log/checkpoint.ts'
import { EMPTY_ROOT } from './log/hash.ts'
import { formatVerifierKey, parseSignerKey, type SignerKey } from './log/note.ts'
import { parseVrfSecret } from './log/vrf.ts'
import { VrfPool } from './log/vrf-pool.ts'
import { formatBanner } from './operations/banner.ts'
import { DEVELOPMENT_KEYS_FILE, developmentKeys } from './operations/development-keys.ts'
import { operatorRoutes } from './operations/health.ts'
import { createLogger, type Logger } from './operations/log.ts'
import { Metrics } from './operations/metrics.ts'
import type { Ref } from './runtime/actor.ts'
import { realWorld } from './runtime/clock.ts'
import { ActorSystem } from './runtime/system.ts'
import { Database, isEchoOfFailedCommit } from './store/database.ts'
import { type LogMaker, LogStore, STORE_FORMAT_VERSION } from './store/log-store.ts'
import { PublishedLog } from './store/published-log.ts'
import { RollBackGuard } from './store/roll-back-guard.ts'
import { GrpcServer } from './transport/grpc.ts'
import { HttpServer } from './transport/http.ts'

async function main(): Promise<void> {
  const flags = readFlags()
  const config = readConfig(process.env, { dev: flags.dev ?? false })
  const server = await start(config, createLogger(config.logLevel), flags['known-checkpoint'])
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void server.stop(signal))
  server.announce()
}

function readFlags(): { dev?: boolean; 'known-checkpoint'?: string } {
  try {
    return parseArgs({ options: { dev: { type: 'boolean' }, 'known-checkpoint': { type: 'string' } } }).values
  } catch (error) {
    throw new ConfigError([error instanceof Error ? error.message : String(error)])
  }
}

interface RunningServer {
  /** Says that the server is ready. */
  announce(): void
  /** Ends the process with exit code 0 once what was asked is answered; asked again, it goes on. */
  stop(reason: string): Promise<void>
}

async function start(
  config: Config,
  logger: Logger,
  knownCheckpoint: string | undefined,
): Promise<RunningServer> {
  const house = new House(config, logger)
  const log = await openLog(house, knownCheckpoint)
  const actors = await startActors(house, log)
  await log.guard.confirm()
  const addresses = { http: '', grpc: '', admin: '' }
  const http = publicServer(house, log, () => config.publicUrl ?? addresses.http)
  const grpc = registrationServer(house, log, actors)
  const admin = operatorServer(house)
  observe(house.metrics, actors.system, log.vrf)

  addresses.grpc = await listen('CALLSIGN_GRPC', config.grpc, grpc)
  addresses.admin = `http://${await listen('CALLSIGN_ADMIN', config.admin, admin)}`
  const scheme = config.http.tls === undefined ? 'http' : 'https'
  addresses.http = `${scheme}://${await listen('CALLSIGN_HTTP', config.http, http)}`

  return {
    announce: () => announce(config, log, addresses),
    async stop(reason) {
      if (house.isStopping) return
      house.isStopping = true
      logger.info({ event: 'stopping', reason })
      const tooLate = () => house.fatal(new Error(`not stopped within ${STOP_DEADLINE_MS} ms`))
      setTimeout(tooLate, STOP_DEADLINE_MS).unref()
      http.stopListening()
      // Callers get their answers first: these need the appender, which needs the store.
      await grpc.close(STOP_DEADLINE_MS / 2)
      await actors.system.drainAndStop(STOP_DEADLINE_MS / 4)
      http.close()
      admin.close()
      await log.vrf.close()
      await log.database.close()
      logger.info({ event: 'stopped' })
      process.exit(0)
    },
  }
}

/** What every part of the process shares: settings, clocks, figures, and how it ends when it must. */
class House {
  readonly config: Config
  readonly logger: Logger
  readonly world = realWorld()
  readonly metrics = new Metrics()
  isStopping = false
  #noWritesUntilMs = 0

  constructor(config: Config, logger: Logger) {
    this.config = config
    this.logger = logger
    process.on('unhandledRejection', error => isEchoOfFailedCommit(error) || this.fatal(error))
  }

  /** Ends the process: it can't say what its state is any more. */
  readonly fatal = (error: unknown): never => {
    this.logger.fatal({ event: 'fatal', err: error })
    this.logger.flush()
    process.stderr.write(`callsign: ${error instanceof Error ? error.message : String(error)}\n`)
    process.exit(1)
  }

  readonly onActorFailure = ({ kind, error }: { kind: string; error: unknown }): void => {
    // The store, or the head file: what else fails ends the process.
    const cannotWrite = error instanceof SignalError && error.code === 'STORE_UNAVAILABLE'
    if (cannotWrite) this.#noWritesUntilMs = this.world.monotonicMs() + NO_WRITES_MS
    this.logger.error({ event: 'actor-failed', kind, err: error })
  }

  readonly onFault = (error: unknown, requestId?: string): void =>
    this.logger.error({ event: 'fault', requestId, err: error })

  readonly onRefused = (code: string, requestId?: string): void =>
    this.logger.info({ event: 'refused', code, requestId })

  /** Why the process should get no traffic now. */
  notReady(): string | undefined {
    if (this.isStopping) return 'stopping'
    return this.world.monotonicMs() < this.#noWritesUntilMs ? 'the last write failed' : undefined
  }
}

interface OpenedLog {
  readonly keys: Keys
  readonly maker: LogMaker
  readonly database: Database
  readonly store: LogStore
  readonly published: PublishedLog
  readonly guard: RollBackGuard
  readonly vrf: VrfPool
}

/** Opens the store and makes a new log with its checkpoint of size 0, or checks that this log is ours to go on with. */
async function openLog({ config, logger }: House, knownCheckpoint: string | undefined): Promise<OpenedLog> {
  const keys = readKeys(config)
  const { dataFolder, log } = config
  const guard = new RollBackGuard({
    dataFolder,
    verifier: keys.signer,
    headFile: log.headFile,
    knownCheckpoint,
  })
  if (log.headFile === undefined && !config.isDevelopment) {
    logger.warn({ event: 'log-head-file-unset', advice: 'set CALLSIGN_LOG_HEAD_FILE to notice a roll-back' })
  }
  const database = Database.open(dataFolder)
  const store = new LogStore(database)
  const vrf = await VrfPool.start({
    secret: keys.vrfSecret,
    threads: log.vrfThreads,
    cacheEntriesMax: log.vrfCacheEntriesMax,
    queueMax: VRF_JOBS_WAITING_MAX,
  })
  const maker = {
    formatVersion: STORE_FORMAT_VERSION,
    vkey: formatVerifierKey(keys.signer),
    vrfPublicKey: Buffer.from(vrf.publicKey).toString('base64'),
  }
  const made = store.maker()
  if (made !== undefined) assertMaker(made, maker)
  else if (store.head() !== undefined) {
    throw new SignalError('CHECKPOINT_INVALID', 'the store holds a log without the record of who made it')
  }
  guard.assertExtends(store)
  if (made === undefined) {
    await store.create(maker, signCheckpoint({ treeSize: 0, rootHash: EMPTY_ROOT }, keys.signer))
  }
  return { keys, maker, database, store, vrf, guard, published: new PublishedLog(store, keys.signer) }
}

function assertMaker(made: LogMaker, maker: LogMaker): void {
  for (const name of ['formatVersion', 'vkey', 'vrfPublicKey'] as const) {
    if (made[name] === maker[name]) continue
    throw new ConfigError([`the data directory was made with ${name} ${made[name]}, not ${maker[name]}`])
  }
}

interface Actors {
  readonly system: ActorSystem
  readonly logAppender: Ref<LogAppenderMessage>
}

async function startActors(
  house: House,
  { store, keys, published, guard: { headFile } }: OpenedLog,
): Promise<Actors> {
  const { world, fatal, metrics, logger, config } = house
  const system = new ActorSystem({
    world,
    fatal,
    onFailure: house.onActorFailure,
    refuseAskCycles: config.isDevelopment,
  })
  const appenderKind = logAppenderKind({
    store,
    signer: keys.signer,
    publishedSize: () => published.size,
    ...(headFile === undefined ? {} : { record: head => headFile.record(head) }),
    publish: head => {
      published.publish(head)
      metrics.batches.inc()
      metrics.treeSize.set(head.treeSize)
      logger.info({ event: 'checkpoint', treeSize: head.treeSize })
    },
    fatal,
  })
  const logAppender = system.define(appenderKind)('log')
  // The appender checks the whole right edge of the log before it says what size it has.
  await logAppender.ask<number>(reply => ({ kind: 'open', reply }), OPEN_DEADLINE_MS)
  return { system, logAppender }
}

function publicServer(
  house: House,
  { keys, maker, published, vrf }: OpenedLog,
  publicUrl: () => string,
): HttpServer {
  const { config, world, metrics } = house
  const { vkey, vrfPublicKey } = maker
  const { minClientVersions } = config.http
  const admission = new Admission(world.monotonicMs)
  world.every(SWEEP_MS, () => admission.sweep())
  return new HttpServer({
    routes: [
      ...publicKeyRoutes({ log: published, vrf }),
      metaRoute({
        nowMs: world.nowMs,
        publicUrl,
        log: { origin: keys.signer.name, vkey, vrfPublicKey, isFrozen: config.log.isFrozen },
      }),
    ],
    findFile: new LogFiles(published, keys.signer.keyId.toString(16).padStart(8, '0')).find,
    ...(config.areRatesLimited ? { admit: admission.admit } : {}),
    trustedProxies: config.http.trustedProxies,
    corsOrigins: config.http.corsOrigins,
    ...(config.http.tls === undefined ? {} : { tls: config.http.tls }),
    ...(minClientVersions.length === 0 ? {} : { requiredClient: clientRequirement(minClientVersions) }),
    onAnswer: (route, status, seconds) => metrics.answerTimes.observe(route, status, seconds),
    onRefused: house.onRefused,
    onFault: house.onFault,
  })
}

function registrationServer(house: House, { vrf }: OpenedLog, { logAppender }: Actors): GrpcServer {
  const { config, metrics, logger } = house
  const registration: RegistrationWorld = {
    isFrozen: config.log.isFrozen,
    vrf,
    append: key => logAppender.ask<number>(reply => ({ kind: 'append', ...key, reply }), APPEND_DEADLINE_MS),
    onRegistered: index => {
      metrics.registrations.inc()
      logger.info({ event: 'registered', index })
    },
  }
  const { token, tls } = config.grpc
  return new GrpcServer({
    register: (userId, deviceId, publicKey) => registerKey(registration, userId, deviceId, publicKey),
    ...(token === undefined ? {} : { token }),
    ...(tls === undefined ? {} : { tls }),
    onCall: (status, seconds) => metrics.grpcCalls.observe({ status }, seconds),
    onRefused: house.onRefused,
    onFault: house.onFault,
  })
}

function operatorServer(house: House): HttpServer {
  const { onRefused, onFault } = house
  return new HttpServer({ routes: operatorRoutes(house, house.metrics), onRefused, onFault })
}

interface Keys {
  readonly signer: SignerKey
  readonly vrfSecret: Uint8Array
  readonly areNew: boolean
}

function readKeys(config: Config): Keys {
  const keysFile = join(config.dataFolder, DEVELOPMENT_KEYS_FILE)
  // New keys would only be refused, by a log that was made with others.
  if (
    config.log.keys === undefined &&
    existsSync(join(config.dataFolder, 'store')) &&
    !existsSync(keysFile)
  ) {
    throw new ConfigError([`${keysFile} is missing: put back the keys that this log was made with`])
  }
  const { keys, areNew } =
    config.log.keys === undefined
      ? developmentKeys(config.dataFolder)
      : { keys: config.log.keys, areNew: false }
  const signer = parseKey('KT_PRIVATE_KEY', () => parseSignerKey(keys.ktPrivateKey))
  const vrfSecret = parseKey('VRF_PRIVATE_KEY', () => parseVrfSecret(keys.vrfPrivateKey))
  if (signer.name !== keys.origin) {
    throw new ConfigError([`KT_PRIVATE_KEY is of ${signer.name}, CALLSIGN_ORIGIN is ${keys.origin}`])
  }
  return { signer, vrfSecret, areNew }
}

function parseKey<Key>(name: string, parse: () => Key): Key {
  try {
    return parse()
  } catch (error) {
    throw new ConfigError([`${name}: ${error instanceof SignalError ? error.message : 'not usable'}`])
  }
}

/** Resolves with `host:port`, or says in one line which setting names a port that can't be had. */
async function listen(
  prefix: string,
  { host, port }: Listener,
  server: { listen(host: string, port: number): Promise<number> },
): Promise<string> {
  try {
    return `${host.includes(':') ? `[${host}]` : host}:${await server.listen(host, port)}`
  } catch {
    throw new ConfigError([
      `${prefix}_HOST, ${prefix}_PORT: ${host}:${port} is taken or can't be listened on`,
    ])
  }
}

function observe(metrics: Metrics, system: ActorSystem, vrf: VrfPool): void {
  const vrfFigures = [
    ['jobsQueued', 'callsign_vrf_jobs_queued', 'VRF jobs waiting for a thread'],
    ['threadsReady', 'callsign_vrf_threads_ready', 'VRF threads that take jobs'],
    ['threadsReplaced', 'callsign_vrf_threads_replaced', 'VRF threads that ended and were replaced'],
    ['hashesComputed', 'callsign_vrf_hashes_computed', 'VRF hashes computed for registrations'],
    ['proofsComputed', 'callsign_vrf_proofs_computed', 'VRF proofs computed for first lookups'],
    ['cacheEntries', 'callsign_vrf_cache_entries', 'VRF results kept in memory'],
    ['cacheHits', 'callsign_vrf_cache_hits', 'Lookups answered from the cache'],
    ['cacheMisses', 'callsign_vrf_cache_misses', 'Lookups that needed a thread'],
  ] as const
  for (const [figure, name, help] of vrfFigures) metrics.gauge(name, help, () => vrf.figures[figure])
  metrics.gauge(
    'callsign_actor_run_queue',
    'Actors waiting for a turn',
    () => system.figures().runQueueLength,
  )
  const kindFigures = [
    ['live', 'callsign_actors_live', 'Actors in memory'],
    ['mailboxDepthMax', 'callsign_actor_mailbox_depth_max', 'The deepest any mailbox of the kind has been'],
    ['turns', 'callsign_actor_turns', 'Messages, timers and commits handled since the start'],
    ['handlingMs', 'callsign_actor_handling_ms', 'Milliseconds spent handling since the start'],
    ['restarts', 'callsign_actor_restarts', 'Actors dropped because a handler failed, since the start'],
    [
      'commitFailures',
      'callsign_actor_commit_failures',
      'Actors dropped because a write failed, since the start',
    ],
  ] as const
  for (const [figure, name, help] of kindFigures) {
    metrics.labelledGauge(name, help, 'kind', () => {
      const kinds = Object.entries(system.figures().kinds)
      return new Map(kinds.map(([kind, figures]) => [kind, figures[figure]]))
    })
  }
  metrics.labelledGauge(
    'callsign_actor_dead_letters',
    'Messages that reached nobody, since the start',
    'reason',
    () => new Map(Object.entries(system.figures().deadLetters)),
  )
}

/** The ready line for programs on stdout; in development, the banner for people on stderr. */
function announce(
  config: Config,
  { keys, maker, published }: OpenedLog,
  addresses: { http: string; grpc: string; admin: string },
): void {
  const { vkey, vrfPublicKey } = maker
  const ready = { ...addresses, origin: keys.signer.name, vkey, vrfPublicKey }
  process.stdout.write(`${JSON.stringify({ event: 'ready', ...ready })}\n`)
  if (!config.isDevelopment) return
  const banner = formatBanner({
    ...ready,
    version: VERSION,
    dataFolder: config.dataFolder,
    treeSize: published.head.treeSize,
    areKeysNew: keys.areNew,
    isExposed: !isLoopback(config.http.host),
  })
  process.stderr.write(banner)
}

function readVersion(): string {
  const path = join(dirname(import.meta.dirname), '..', 'package.json')
  const { version }: { version: string } = JSON.parse(readFileSync(path, 'utf8'))
  return version
}

const VERSION = readVersion()
/** Opening a log reads its right edge and the last 65,000 entries: well below a second on any disk. */
const OPEN_DEADLINE_MS = 60_000
const SWEEP_MS = 60_000
/** How long a failed write keeps the process out of traffic; the next one may succeed again. */
const NO_WRITES_MS = 10_000

try {
  await main()
} catch (error) {
  process.stderr.write(`callsign: ${sentenceOf(error)}\n`)
  process.exit(1)
}

/** What an operator can mend is one sentence; anything else is ours, with its stack. */
function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // What the runtime says of a failed commit is only that; the store or the head file says why.
  if (error.cause instanceof SignalError && error.cause.code === 'STORE_UNAVAILABLE')
    return error.cause.message
  const isTheirs = error instanceof ConfigError || error instanceof SignalError || 'syscall' in error
  return isTheirs ? error.message : (error.stack ?? error.message)
}
