/** The application of the writer: opens it, finishes the last process's work, and sets it going. */

import { LiveConnections } from '../../../actors/presence.ts'
import { Authentication } from '../../api/accounts/authentication.ts'
import type { ApiDeps } from '../../api/deps.ts'
import { Admission } from '../../api/table/admission.ts'
import { RequestRates } from '../../api/table/request-rates.ts'
import type { DeviceId, UserId } from '../../domain/ids.ts'
import { shownNetwork } from '../../domain/network.ts'
import { absencesIn } from '../../keyserver/index/absences.ts'
import { keyLookups } from '../../keyserver/lookups.ts'
import { observeMedia } from '../../operations/figures.ts'
import type { ActorSystem } from '../../runtime/system.ts'
import { CallIndex } from '../../store/calls/call-index.ts'
import { WEBHOOK_BOUNDS } from '../../store/operators/webhook-store.ts'
import type { Newcomers } from '../../transport/newcomers.ts'
import { isOnLanOnly } from '../addresses.ts'
import { openStores, type Stores } from '../application-stores.ts'
import { CallRooms } from '../call-rooms.ts'
import type { OpenedLog } from '../open-log.ts'
import type { WritingProcess } from '../process/process.ts'
import { pooledRandomBytes } from '../process/random-pool.ts'
import { VERSION } from '../process/version.ts'
import { admitOf } from '../reads.ts'
import { userTokenKeysOf } from '../settings/user-token-settings.ts'
import { vapidContactOf, vapidKeyOf } from '../settings/web-push-settings.ts'
import { dismissalBy, ownActors, Signalling } from '../signalling.ts'
import { Media } from './media.ts'
import { startOutbox } from './outbox.ts'
import { startUpkeep } from './upkeep.ts'
import { startWebhooks } from './webhooks.ts'
import { type Application, openApplication } from './writes.ts'

export interface StartedApplication extends Application {
  readonly stores: Stores
  readonly rooms: CallRooms
  readonly liveConnections: LiveConnections
  readonly authentication: Authentication
  readonly admission: Admission | undefined
  readonly signalling: Signalling
}

interface ApplicationDeps {
  readonly publicUrl: () => string
  readonly register: ApiDeps['register']
  readonly newcomers: Newcomers
}

/** Opens the application API, finishes the last process's work, and starts its outbox. */
export async function startApplication(
  context: WritingProcess,
  log: OpenedLog,
  system: ActorSystem,
  { publicUrl, register, newcomers }: ApplicationDeps,
): Promise<StartedApplication> {
  const live = openLive(context, log, system, newcomers)
  const { stores, rooms, media } = live
  const application = open(context, log, live, { publicUrl, register })
  // Devices have seen positions that a restored store would give to other messages.
  if (log.guard.isRestored) await log.database.change(change => stores.inbox.renewEpochs(change))
  await log.database.change(change => {
    stores.auditLog.applyRetention(change)
    stores.reports.applyRetention(change)
  })
  await repair(context, application)
  startOutbox(context, system, log.database, application)
  await startWebhooks(context, system, stores)
  startUpkeep(context, application)
  observeApplication(context, stores)
  observeMedia(context.metrics, () => media?.figures() ?? [])
  rooms.resume()
  await media?.start(context, rooms.onSeen)
  return {
    ...application,
    ...live,
    close() {
      media?.close()
      return application.close()
    },
  }
}

/** The parts under actors of calls, connections and people. */
type Live = ReturnType<typeof openLive>

function openLive(
  { config, world, logger, metrics, media: current, devConsole, onFault }: WritingProcess,
  { database, keys }: OpenedLog,
  system: ActorSystem,
  newcomers: Newcomers,
) {
  const { nowMs, monotonicMs } = world
  const { idsAs, language, lifetimes, retention, historyDays } = config.application
  const { rateLimits, hasTestTopics } = config
  const liveConnections = new LiveConnections()
  const randomBytes = pooledRandomBytes
  const isConnected = (userId: UserId, deviceId: DeviceId) => liveConnections.isConnected(userId, deviceId)
  const stores = openStores(database, isConnected, {
    secret: keys.secret,
    lifetimes,
    retention,
    historyDays,
    nowMs,
    randomBytes,
    webhookBounds: { ...WEBHOOK_BOUNDS, waitingMax: config.application.webhookWaitingMax },
    onFault: error => onFault(error),
  })
  const admit = admitOf(current)
  const shared = {
    ...{ system, stores, rateLimits, idsAs, language, monotonicMs, randomBytes, metrics, devConsole, admit },
  }
  const index = new CallIndex()
  const { settings } = current
  const { secrets } = stores
  const media = settings && new Media({ ...shared, settings, current, secrets, index, logger })
  const requestRates = rateLimits && new RequestRates(rateLimits, monotonicMs)
  const rooms = new CallRooms({
    ...{ ...shared, index, presence: liveConnections, requestRates },
    mediaRoom: media?.roomOf,
    gatewayFor: media?.gatewayFor,
  })
  const authentication = new Authentication({ ...stores, nowMs, onSeen: rooms.onSeen })
  const admission = requestRates && new Admission(requestRates, authentication)
  const signalling = new Signalling({
    ...{ ...shared, admission },
    actors: ownActors(system, rooms, {
      connections: liveConnections,
      dismissalOf: dismissalBy(stores),
      devConsole,
    }),
    connections: liveConnections,
    authenticate: authorization => authentication.requesterOf(authorization),
    runConnect: connect => newcomers.run(connect),
    hasTestTopics,
    version: VERSION,
    onFault,
  })
  return { stores, media, rooms, authentication, requestRates, admission, signalling, liveConnections }
}

function open(
  { config, world, logger, metrics, media, devConsole }: WritingProcess,
  { store, keys, published, vrf, index }: OpenedLog,
  { stores, rooms, authentication, requestRates }: Live,
  { publicUrl, register }: Pick<ApplicationDeps, 'publicUrl' | 'register'>,
): Application {
  return openApplication({
    config: {
      ...config.application,
      vapidKey: vapidKeyOf(config.application, config.isDevelopment, keys.secret),
      vapidContact: vapidContactOf(config.application, config.publicUrl),
    },
    stores,
    authentication,
    isDevelopment: config.isDevelopment,
    relayHost: isOnLanOnly(config) ? config.http.host : config.lanAddress,
    rateLimits: config.rateLimits,
    requestRates,
    nowMs: world.nowMs,
    randomBytes: pooledRandomBytes,
    publicUrl,
    register,
    userTokenKey: userTokenKeysOf(config.application, config.isDevelopment, keys.secret)[0],
    identityOf(vrfHash) {
      const index = store.newestIndex(vrfHash)
      return index === undefined ? undefined : store.identity(index)
    },
    proveAbsences: absencesIn(index, vrf),
    lookUpKeys: keyLookups(published, vrf, index),
    askRoom: rooms.ask,
    operateRoom: rooms.operate,
    callIndex: rooms.index,
    liveCallsOf: userId => rooms.index.callsOf(userId),
    onRingTaken: rooms.onRingTaken,
    admit: admitOf(media),
    ...(devConsole && { onRendered: devConsole.onDelivered, onRequester: devConsole.onRequester }),
    onSmsStopped({ scope, name, untilMs }) {
      metrics.smsStops.inc({ scope })
      const shown = scope === 'network' ? shownNetwork(name) : name
      logger.warn({ event: 'sms-stopped', scope, name: shown, until: new Date(untilMs).toISOString() })
    },
    onLoginChecked(outcome) {
      metrics.loginChecks.inc({ outcome: outcome.kind })
      if (outcome.kind === 'failed') logger.warn({ event: 'login-check-failed', reason: outcome.reason })
    },
    onTryFailed(outcome, next) {
      metrics.deliveries.inc({ channel: 'push', outcome: outcome.kind })
      if (next === 'alert') metrics.ringsByAlert.inc()
      logger.warn({ event: 'not-delivered', channel: 'push', ...outcome, next })
    },
    onSendingLost: cause => logger.error({ event: 'sending-thread-lost', cause }),
    onTokenReused: (userId, requestId) =>
      logger.warn({ event: 'refresh-token-reused', userId: `${userId}`, requestId }),
  })
}

async function repair({ logger }: WritingProcess, { registration, lists }: Application): Promise<void> {
  const registrations = await registration.repairPending()
  if (registrations.finished + registrations.left > 0)
    logger.info({ event: 'registrations-repaired', ...registrations })
  const repaired = await lists.repairPending()
  if (repaired.finished + repaired.left > 0) logger.info({ event: 'device-lists-repaired', ...repaired })
}

function observeApplication(
  { metrics, logger, world }: WritingProcess,
  { database, guessWatch, inbox }: Stores,
): void {
  database.subscribe('code-tried', ({ tried: { asker, isAccepted } }) =>
    metrics.codeTries.inc({ asker, outcome: isAccepted ? 'accepted' : 'wrong' }),
  )
  database.subscribe('passkey-counter-back', ({ userId }) =>
    logger.warn({ event: 'passkey-counter-back', userId: `${userId}` }),
  )
  database.subscribe('codes-guessed', () => logger.warn({ event: 'codes-guessed' }))
  metrics.gauge('callsign_codes_guessed', 'Whether more codes are wrong than right, and many: 1 or 0', () =>
    Number(database.view(view => guessWatch.isGuessed(view, world.nowMs()))),
  )
  metrics.labelledCounter(
    'callsign_inbox_dropped_total',
    'Messages that left an inbox unread: it was full, or their time was over',
    'reason',
    () => inbox.dropped,
  )
}
