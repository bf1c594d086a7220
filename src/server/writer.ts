/** The parts that only the writer has: the log appender, the rooms, the outbox, and all else that changes the store. */

import { logAppenderKind } from '../../actors/log-appender.ts'
import type { LogAppenderMessage, OutboxCommand } from '../../actors/messages.ts'
import { outboxKind } from '../../actors/outbox.ts'
import { LiveConnections } from '../../actors/presence.ts'
import { Authentication } from '../api/accounts/authentication.ts'
import { RequestRates } from '../api/table/request-rates.ts'
import { lasts } from '../domain/accounts/session.ts'
import { channelOf, LANES } from '../domain/messages/outbox-message.ts'
import { SignalError } from '../errors.ts'
import { type RegistrationDeps, registerKey } from '../keyserver/registration.ts'
import type { WitnessRounds } from '../keyserver/witness-rounds.ts'
import { APPEND_DEADLINE_MS } from '../limits.ts'
import type { LogHead } from '../log/checkpoint.ts'
import type { Ref } from '../runtime/actor.ts'
import type { ActorSystem } from '../runtime/system.ts'
import { CallIndex } from '../store/calls/call-index.ts'
import type { Newcomers } from '../transport/newcomers.ts'
import { isOnLanOnly } from './addresses.ts'
import { openStores } from './application-stores.ts'
import { CallRooms } from './call-rooms.ts'
import type { Register, StartedApplication } from './listeners.ts'
import { Media } from './media.ts'
import type { OpenedLog } from './open-log.ts'
import type { Process } from './process/process.ts'
import { pooledRandomBytes } from './process/random-pool.ts'
import { VERSION } from './process/version.ts'
import { admitOf } from './reads.ts'
import { ownActors, Signalling } from './signalling.ts'
import { startWitnessing } from './witnessing.ts'
import { type Application, openApplication } from './writes.ts'

export interface Writer {
  readonly application: StartedApplication
  readonly register: Register
}

export interface WriterDeps {
  readonly publicUrl: () => string
  readonly newcomers: Newcomers
  /** Resolves when no process shows an older checkpoint any more; then this one is published. */
  readonly announce: (head: LogHead) => Promise<void> | undefined
  /** Called after each checkpoint that is published. */
  readonly onPublished: () => void
  /** Resolves when a checkpoint is recorded outside the store; see `LogAppenderDeps`. */
  readonly record: ((head: LogHead) => Promise<void>) | undefined
}

/** Starts what changes anything: from here on this process is the writer. */
export async function startWriter(
  host: Process,
  system: ActorSystem,
  log: OpenedLog,
  { publicUrl, newcomers, announce, onPublished, record }: WriterDeps,
): Promise<Writer> {
  const witnesses = await startWitnessing(host, log, record)
  const appender = await startAppender(host, system, log, { announce, onPublished, record, witnesses })
  const register = registrationOf(host, log, appender)
  const application = await startApplication(host, log, system, { publicUrl, register, newcomers })
  await log.guard.confirm()
  await log.vrf.ready
  const close = () => {
    witnesses?.close()
    application.close()
  }
  return { application: { ...application, close }, register }
}

interface AppenderDeps extends Pick<WriterDeps, 'announce' | 'onPublished' | 'record'> {
  readonly witnesses: WitnessRounds | undefined
}

async function startAppender(
  host: Process,
  system: ActorSystem,
  { store, keys, published }: OpenedLog,
  { announce, onPublished, record, witnesses }: AppenderDeps,
): Promise<Ref<LogAppenderMessage>> {
  const { fatal, metrics, logger, devConsole } = host
  const appenderKind = logAppenderKind({
    store,
    signer: keys.signer,
    ...(keys.secondSigner && { secondSigner: keys.secondSigner }),
    publishedSize: () => published.size,
    ...(record && { record }),
    ...(witnesses && { witnesses }),
    announce,
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
  let lastCosigned = Promise.resolve()
  witnesses?.listen({
    onCosigned: head => {
      lastCosigned = lastCosigned
        .then(() => announce(head))
        .then(() => void logAppender.tellControl({ kind: 'cosigned', head }))
    },
    onQuorumLost: () => logAppender.tellControl({ kind: 'quorum-lost' }),
  })
  // The appender checks the whole right edge of the log before it says what size it has.
  await logAppender.ask<number>(reply => ({ kind: 'open', reply }), OPEN_DEADLINE_MS)
  return logAppender
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
  system: ActorSystem,
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
    admit: admitOf(config.application),
  }
  const index = new CallIndex()
  const { janus } = config.application
  const media = janus && new Media({ ...shared, settings: janus, secrets: stores.secrets, index, logger })
  const rooms = new CallRooms({ ...shared, index, mediaRoom: media?.roomOf, presence: connections })
  const authentication = new Authentication({ ...stores, nowMs, onSeen: rooms.onSeen })
  const signalling = new Signalling({
    ...shared,
    actors: ownActors(system, rooms, {
      connections,
      hasEnded: sessionName => !lasts(stores.sessions.current(sessionName)),
      devConsole,
    }),
    connections,
    authenticate: authorization => authentication.requesterOf(authorization),
    runConnect: connect => newcomers.run(connect),
    isDevelopment,
    version: VERSION,
    onFault: host.onFault,
  })
  const requestRates = rateLimits && new RequestRates(rateLimits, monotonicMs)
  const application = openApplication({
    config: config.application,
    stores,
    authentication,
    isDevelopment,
    relayHost: isOnLanOnly(config) ? config.http.host : config.lanAddress,
    rateLimits,
    requestRates,
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
    admit: shared.admit,
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
  const lists = await application.lists.repairPending()
  if (lists.finished + lists.left > 0) logger.info({ event: 'device-lists-repaired', ...lists })
  for (const lane of LANES) outboxOf(lane).tell({ kind: 'wake' })
  world.every(SWEEP_MS, () => requestRates?.sweep())
  forEver(host, EXPIRE_MS, () => expireAll(application.expire))
  // Until a list that the log took too late is served, contacts find that the log has another one.
  forEver(host, LATE_LISTS_MS, () => application.lists.repairPending())
  metrics.gauge('callsign_codes_guessed', 'Whether more codes are wrong than right, and many: 1 or 0', () =>
    Number(database.view(view => stores.guessWatch.isGuessed(view, nowMs()))),
  )
  metrics.labelledCounter(
    'callsign_inbox_dropped_total',
    'Messages that left an inbox unread: it was full, or their time was over',
    'reason',
    () => stores.inbox.dropped,
  )
  metrics.gauge(
    'callsign_media_gateway_up',
    'Whether the media gateway answered last, or there is none: 1 or 0',
    () => Number(media?.isUp ?? true),
  )
  metrics.gauge('callsign_media_rooms', 'Rooms that the media gateway had at the last look', () =>
    media === undefined ? 0 : media.roomCount,
  )
  rooms.resume()
  if (media !== undefined) {
    await media.listen()
    media.sweep().catch(host.onFault)
    forEver(host, MEDIA_SWEEP_MS, () => media.sweep())
    world.every(MEDIA_SEEN_MS, () => {
      for (const { userId, deviceId } of media.present()) rooms.onSeen(userId, deviceId)
    })
  }
  const close = () => {
    media?.close()
    application.close()
  }
  return { ...application, close, stores, rooms, liveConnections: connections, authentication, signalling }
}

/** Acts so often, unless the last time is still under way. */
function forEver({ world, onFault }: Process, everyMs: number, act: () => Promise<unknown>): void {
  let isUnderWay = false
  world.every(everyMs, () => {
    if (isUnderWay) return
    isUnderWay = true
    act()
      .catch(error => onFault(error))
      .finally(() => {
        isUnderWay = false
      })
  })
}

/**
 * Ends what comes to its end, a bounded number at a time, so that no request ever scans for it. Without a pause while there
 * is more, so that what ends never gathers faster than it goes.
 */
async function expireAll(expire: Application['expire']): Promise<void> {
  while ((await expire(EXPIRED_AT_ONCE)) === EXPIRED_AT_ONCE);
  // The last portion may have left more.
  await expire(EXPIRED_AT_ONCE)
}

function registrationOf(host: Process, { vrf }: OpenedLog, logAppender: Ref<LogAppenderMessage>): Register {
  const { config, metrics, logger } = host
  const registration: RegistrationDeps = {
    isFrozen: config.log.isFrozen,
    vrf,
    append: key =>
      logAppender
        .ask<number>(reply => ({ kind: 'append', ...key, reply }), APPEND_DEADLINE_MS)
        .catch(error => {
          const isLate = error instanceof SignalError && error.code === 'DEADLINE_EXCEEDED'
          if (!isLate || config.log.witnesses === undefined) throw error
          throw new SignalError('LOG_UNAVAILABLE', 'the log’s witnesses did not answer in time', {
            cause: error,
          })
        }),
    onRegistered: index => {
      metrics.registrations.inc()
      logger.info({ event: 'registered', index })
    },
  }
  return (...key) => registerKey(registration, ...key)
}

/** Opening a log reads its right edge and the last 65,000 entries: well below a second on any disk. */
const OPEN_DEADLINE_MS = 60_000
const SWEEP_MS = 60_000
const EXPIRE_MS = 1_000
const LATE_LISTS_MS = 5_000
const MEDIA_SWEEP_MS = 60_000
/** A third of the time after which a device without a sign of life is lost. */
const MEDIA_SEEN_MS = 30_000
/** Rows ended in one change: a few milliseconds. */
const EXPIRED_AT_ONCE = 1_000
