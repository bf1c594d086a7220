/** The servers of the process: the public port, STOMP over TCP, the server API, and the operators' port. */

import { join } from 'node:path'
import type { Authentication } from '../api/accounts/authentication.ts'
import { userTokenKeysRoute } from '../api/accounts/user-tokens.ts'
import { asyncApiRoute } from '../api/documents/asyncapi.ts'
import { plainOperations } from '../api/documents/log-operations.ts'
import { metaRoute } from '../api/documents/meta.ts'
import { openApiRoute } from '../api/documents/openapi.ts'
import { serverOpenApiRoute } from '../api/documents/server-openapi.ts'
import { OPERATIONS } from '../api/operations.ts'
import { SERVER_OPERATIONS } from '../api/server-api/operations.ts'
import type { Admission } from '../api/table/admission.ts'
import { requestReader } from '../api/table/shown-requests.ts'
import { chooseLanguage } from '../delivery/texts.ts'
import { vapidPublicKey } from '../delivery/vapid-key.ts'
import { clientRequirement } from '../domain/client-version.ts'
import type { DeviceId, UserId } from '../domain/ids.ts'
import { INDEX_STATE, MAP } from '../keyserver/index/index-tables.ts'
import { LogFiles } from '../keyserver/log-files.ts'
import { lookupRoutes } from '../keyserver/lookups.ts'
import { formatVerifierKey, type VerifierKey } from '../log/note.ts'
import { clientUrlsOf } from '../media/media-settings.ts'
import type { ConsoleSources } from '../operations/console/console.ts'
import type { ConsoleState } from '../operations/console/events.ts'
import type { Reset } from '../operations/console/reset.ts'
import { operatorRoutes } from '../operations/health.ts'
import { iconRoutes } from '../operations/icon.ts'
import { mergeMetrics, type ProcessMetrics } from '../operations/merged-metrics.ts'
import { operatorPageRoutes, type ShownLog } from '../operations/operator-page.ts'
import type { ActorSystem } from '../runtime/system.ts'
import { markForReset } from '../store/engine/reset.ts'
import { HttpServer } from '../transport/http.ts'
import type { ServedRequest } from '../transport/http-deps.ts'
import type { Newcomers } from '../transport/newcomers.ts'
import type { OpenConnections } from '../transport/open-connections.ts'
import { statusOf } from '../transport/problem.ts'
import type { HttpRoute } from '../transport/route.ts'
import { StompTcpServer } from '../transport/stomp-tcp.ts'
import type { OpenedLog } from './open-log.ts'
import type { Process } from './process/process.ts'
import { VERSION } from './process/version.ts'
import type { Reads } from './reads.ts'
import type { Config } from './settings/config.ts'
import { userTokenKeysOf } from './settings/user-token-settings.ts'
import { vapidKeyOf } from './settings/web-push-settings.ts'
import type { Signalling } from './signalling.ts'
import type { StartedApplication } from './writer/application.ts'

/** The log as a process serves it. */
export type ServedLog = Pick<OpenedLog, 'keys' | 'maker' | 'published' | 'index' | 'vrf'>

/** The part of the API that a process answers by itself. */
export interface ServedApplication extends Reads {
  readonly authentication: Authentication
  /** Undefined where no rate counts, in development. */
  readonly admission: Admission | undefined
  readonly signalling: Signalling
}

export interface ConsoleDeps {
  readonly publicUrl: () => string
  /** Where programs on this machine reach the server. */
  readonly localUrl: () => string
  readonly figures: ActorSystem['figures']
  /** Called when the data directory is marked to begin anew. */
  readonly onReset: () => void
}

/** Every route of the public port but the log's files. */
export function publicRoutes(
  { config, world }: Pick<Process, 'config' | 'world'>,
  { keys, maker, published, index, vrf }: ServedLog,
  { authentication, features, loginMethods, routes }: ServedApplication,
  publicUrl: () => string,
): readonly HttpRoute[] {
  const { vkey, vrfPublicKey } = maker
  const { lookupsNeedToken } = config.application
  const vapidKey = vapidKeyOf(config.application, config.isDevelopment, keys.secret)
  const lookups = lookupRoutes(published, vrf, index)
  return [
    ...(lookupsNeedToken ? lookups.map(route => authentication.guard(route)) : lookups),
    metaRoute({
      nowMs: world.nowMs,
      publicUrl,
      features,
      webPushKey: vapidKey && vapidPublicKey(vapidKey),
      historyDays: config.application.historyDays,
      loginMethods,
      minClientVersions: config.http.minClientVersions,
      log: {
        origin: keys.signer.name,
        vkey,
        vrfPublicKey,
        indexVkey: keys.indexSigner && formatVerifierKey(keys.indexSigner),
        witnessPolicy: config.log.witnesses?.policyText,
        isFrozen: config.log.isFrozen,
        lookupsNeedToken,
      },
    }),
    openApiRoute(() => ({
      operations: OPERATIONS,
      lookupsNeedToken,
      version: VERSION,
      serverUrl: publicUrl(),
      statusOf,
    })),
    asyncApiRoute(() => ({ version: VERSION, serverUrl: publicUrl() })),
    userTokenKeysRoute(userTokenKeysOf(config.application, config.isDevelopment, keys.secret)),
    ...iconRoutes(),
    ...routes,
  ]
}

function shownLog({ keys: { indexSigner }, maker: { vkey, vrfPublicKey } }: ServedLog): ShownLog {
  return { vkey, vrfPublicKey, ...(indexSigner && { indexVkey: formatVerifierKey(indexSigner) }) }
}

/** The routes of the server API's port; `operations` are answered by the writer, which may be another process. */
export function serverApiRoutes(
  operations: readonly HttpRoute[],
  serverApiUrl: () => string,
): readonly HttpRoute[] {
  const document = () => ({
    operations: SERVER_OPERATIONS,
    version: VERSION,
    serverUrl: serverApiUrl(),
    statusOf,
  })
  return [serverOpenApiRoute(document), ...operations]
}

/**
 * Serves the operators' page beside the API, and the files of the log, which the page verifies: it asks no other server.
 * `mayReadFiles` as of the public port.
 */
export function serverApiServer(
  { config, metrics, onRefused, onFault }: Process,
  log: ServedLog,
  routes: readonly HttpRoute[],
  { sharesPort = false, mayReadFiles }: Pick<PublicServerDeps, 'sharesPort' | 'mayReadFiles'> = {},
): HttpServer {
  return new HttpServer({
    routes: [...routes, ...operatorPageRoutes(shownLog(log)), ...iconRoutes()],
    sharesPort,
    ...(mayReadFiles && { mayReadFiles }),
    findFile: logFiles(log),
    trustedProxies: config.http.trustedProxies,
    onAnswer: (route, status, seconds) => metrics.answerTimes.observe(route, status, seconds),
    onRefused,
    onFault,
  })
}

export interface PublicServerDeps {
  readonly routes: readonly HttpRoute[]
  readonly publicUrl: () => string
  readonly connections: OpenConnections
  readonly newcomers: Newcomers
  readonly sharesPort?: boolean
  readonly mayReadFiles?: () => Promise<void> | undefined
  /** Called with every answer; absent but in development. */
  readonly onServed?: ((served: ServedRequest) => void) | undefined
}

export function publicServer(
  context: Process,
  log: ServedLog,
  { admission, signalling }: ServedApplication,
  { routes, publicUrl, connections, newcomers, sharesPort = false, mayReadFiles, onServed }: PublicServerDeps,
): HttpServer {
  const { config, world, metrics } = context
  const { minClientVersions } = config.http
  world.every(SWEEP_MS, () => admission?.sweep())
  return new HttpServer({
    routes,
    sharesPort,
    ...(mayReadFiles && { mayReadFiles }),
    findFile: logFiles(log),
    admission,
    webSocket: { accept: signalling.accept, connections, publicUrl },
    newcomers,
    languageOf: header => chooseLanguage(header, config.application.language),
    trustedProxies: config.http.trustedProxies,
    corsOrigins: config.http.corsOrigins,
    isLoopbackAllowed: config.isDevelopment,
    onOriginRefused: context.onOriginRefused,
    ...(config.http.tls === undefined ? {} : { tls: config.http.tls }),
    ...(minClientVersions.length === 0 ? {} : { requiredClient: clientRequirement(minClientVersions) }),
    onServed,
    onAnswer: (route, status, seconds) => metrics.answerTimes.observe(route, status, seconds),
    onRefused: context.onRefused,
    onFault: context.onFault,
  })
}

/** The files of the log, and below `/index` those of its index. */
function logFiles({ keys, published, index }: ServedLog): LogFiles['find'] {
  const { find } = new LogFiles(published, tagOf(keys.signer))
  if (keys.indexSigner === undefined) return find
  const ofIndex = new LogFiles(index, tagOf(keys.indexSigner))
  return path =>
    path.startsWith(INDEX_PREFIX) ? ofIndex.find(path.slice(INDEX_PREFIX.length - 1)) : find(path)
}

function tagOf({ keyId }: VerifierKey): string {
  return keyId.toString(16).padStart(8, '0')
}

/** Routes of the development console; none without one. */
export function consoleRoutes(
  context: Process,
  log: OpenedLog,
  application: StartedApplication,
  deps: ConsoleDeps,
): readonly HttpRoute[] {
  return context.devConsole?.routes(consoleSources(context, log, application, deps)) ?? []
}

function consoleSources(
  { config }: Process,
  { keys, maker, database, published }: OpenedLog,
  { stores }: StartedApplication,
  { publicUrl, localUrl, figures, onReset }: ConsoleDeps,
): ConsoleSources {
  const { vkey, vrfPublicKey } = maker
  return {
    publicUrl,
    isExposed: config.isExposed,
    corsOrigins: config.http.corsOrigins,
    mediaUrls: clientUrlsOf(config.application.media),
    version: VERSION,
    addresses: () => ({ local: localUrl(), ...(config.isExposed ? { phones: publicUrl() } : {}) }),
    requests: requestReader([...OPERATIONS, ...plainOperations(config.application.lookupsNeedToken)]),
    log: () => ({
      origin: keys.signer.name,
      vkey,
      vrfPublicKey,
      treeSize: published.size ?? 0,
      ...(keys.indexSigner && { index: shownIndex(database, formatVerifierKey(keys.indexSigner)) }),
    }),
    displayNameOf: userId => database.view(view => stores.accounts.displayNameOf(view, userId as UserId)),
    waitingFor: (userId, deviceId) =>
      database.view(view => stores.inbox.head(view, userId as UserId, deviceId as DeviceId).count),
    figures,
    reset: resetOf(config, onReset),
    simulatorProgram: () => ({
      file: SIMULATOR,
      args: ['--json', '--control', '--media', 'if-there', '--url', localUrl()],
    }),
  }
}

function shownIndex(
  database: OpenedLog['database'],
  vkey: string,
): NonNullable<ConsoleState['log']['index']> {
  const state = database.view(view => view.get(INDEX_STATE, MAP))
  // The stored index has another key: a new one is about to begin.
  if (state?.vkey !== vkey) return { vkey, entries: 0, leaves: 0, isHeld: false }
  const { entries, leaves, isHeld } = state
  return { vkey, entries, leaves, isHeld }
}

function resetOf({ dataFolder, log }: Config, onReset: () => void): Reset {
  const isOwn = log.keys === undefined && log.headFile === undefined
  return {
    refusal: isOwn
      ? undefined
      : 'the settings name the keys of the log or a head file, and a new log under the same keys would be a fork of it',
    async begin() {
      await markForReset(dataFolder)
      onReset()
    },
  }
}

export function stompTcpServer(
  { config, onFault }: Process,
  { signalling }: StartedApplication,
  connections: OpenConnections,
): StompTcpServer | undefined {
  if (config.stompTcpPort === undefined) return undefined
  return new StompTcpServer({ accept: signalling.accept, connections, onFault })
}

/** `frontsMetrics` adds the figures of other processes. */
export function operatorServer(
  context: Process,
  frontsMetrics: () => readonly ProcessMetrics[] | Promise<readonly ProcessMetrics[]>,
): HttpServer {
  const { onRefused, onFault } = context
  const metrics = {
    async text() {
      const [text, others] = await Promise.all([context.metrics.text(), frontsMetrics()])
      return mergeMetrics([{ process: 'writer', text }, ...others])
    },
  }
  return new HttpServer({ routes: operatorRoutes(context, metrics), onRefused, onFault })
}

const INDEX_PREFIX = '/index/'
const SWEEP_MS = 60_000
const SIMULATOR = join(import.meta.dirname, '..', '..', 'scripts', 'simulate.js')
