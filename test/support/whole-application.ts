/** The application as `start.ts` puts it together, every operation of it, with a log that is only counted. */

import { createHash } from 'node:crypto'
import type { Test } from 'tap'
import { LiveConnections } from '../../actors/presence.ts'
import { Authentication } from '../../src/api/accounts/authentication.ts'
import type { DeviceId, UserId } from '../../src/domain/ids.ts'
import type { Registration } from '../../src/keyserver/registration.ts'
import type { DevConsole } from '../../src/operations/console/console.ts'
import { Metrics } from '../../src/operations/metrics.ts'
import { realWorld } from '../../src/runtime/clock.ts'
import { ActorSystem } from '../../src/runtime/system.ts'
import { openApplication } from '../../src/server/application.ts'
import type { ApplicationConfig } from '../../src/server/application-config.ts'
import { openStores, type Stores } from '../../src/server/application-stores.ts'
import { CallRooms } from '../../src/server/call-rooms.ts'
import { Signalling } from '../../src/server/signalling.ts'
import type { Database } from '../../src/store/engine/database.ts'
import { openWorld, type Send, sender, type TestWorld } from './application.ts'
import { storedTable } from './stored-table.ts'

const CONFIG: ApplicationConfig = {
  idsAs: 'string',
  lifetimes: { accessS: 3600, refreshS: 60 * 86_400, sessionS: 365 * 86_400 },
  stepUpS: 0,
  testIdentifiers: new Map(),
  blockedCountries: new Set(['KP']),
  appName: 'Callsign',
  language: 'en',
  providers: [],
  deepLinkScheme: 'callsign',
  appleAppIds: [],
  androidApps: [],
  smsBudgets: { rangeHourly: 30, networkHourly: 30, callingCodeHourly: 200, daily: 10_000 },
  lookupsNeedToken: false,
}

export interface WholeOptions {
  readonly config?: Partial<ApplicationConfig>
  readonly rates?: boolean
  /** Whether each change is rehearsed first (`Rehearsals`); it is unless this says false. */
  readonly rehearses?: boolean
  readonly isDevelopment?: boolean
  readonly register?: (userId: UserId, deviceId: DeviceId, publicKey: string) => Promise<Registration>
  /** Told of each decision about a call once it is durable. */
  readonly onDecided?: DevConsole['onDecided']
}

export interface WholeApplication {
  readonly world: TestWorld
  readonly system: ActorSystem
  readonly application: ReturnType<typeof openApplication>
  readonly stores: Stores
  readonly connections: LiveConnections
  readonly rooms: CallRooms
  readonly signalling: Signalling
  readonly send: Send
  /** Moves the clock and ends what has come to its end. */
  readonly advance: (ms: number) => Promise<void>
}

export function openWhole(t: Test, options: WholeOptions = {}): WholeApplication {
  const world = openWorld(t.testdir(), undefined, {
    rehearses: options.rehearses ?? true,
    rates: options.rates ?? false,
  })
  let logged = 0
  const system = new ActorSystem({
    world: { ...realWorld(), nowMs: world.nowMs, monotonicMs: world.nowMs },
    fatal: error => t.fail(`an actor ended everything: ${error}`),
    onFailure: ({ kind, error }) => t.fail(`${kind} failed: ${error}`),
  })
  const { onDecided = () => undefined } = options
  const config = { ...CONFIG, ...options.config }
  const connections = new LiveConnections()
  const onFault = (error: unknown): never => {
    throw error
  }
  const stores = openStores({
    ...world,
    secret: Buffer.alloc(32, 7),
    lifetimes: config.lifetimes,
    isConnected: (userId, deviceId) => connections.isConnected(userId, deviceId),
    onFault,
  })
  const devConsole = { onDecided, onPresence: () => undefined }
  const shared = { ...world, system, stores, metrics: new Metrics(), devConsole }
  const rooms = new CallRooms({ ...shared, presence: connections })
  const authentication = new Authentication({ ...stores, nowMs: world.nowMs, onSeen: rooms.onSeen })
  const signalling = new Signalling({
    ...shared,
    rooms,
    connections,
    authenticate: authorization => authentication.requesterOf(authorization),
    hasEnded: () => false,
    runConnect: connect => connect(),
    version: '0.0.0',
    onFault: error => t.fail(`a fault: ${error}`),
  })
  const application = openApplication({
    ...world,
    stores,
    authentication,
    askRoom: rooms.ask,
    callIndex: rooms.index,
    config,
    isDevelopment: options.isDevelopment ?? true,
    register: options.register ?? (async () => ({ index: logged++, vrfHash: world.randomBytes(64) })),
    onTokenReused: () => undefined,
    onSmsStopped: () => undefined,
    identityOf: () => undefined,
  })
  t.teardown(async () => {
    application.close()
    await world.database.close()
  })
  return {
    world,
    system,
    application,
    stores,
    connections,
    rooms,
    signalling,
    send: sender(world, application.operations),
    async advance(ms) {
      world.tick(ms)
      while ((await application.expire(500)) > 0);
    },
  }
}

/** SHA-256 of the rows of each table, to see whether anything was stored. */
export function tableDigests(database: Database): Record<string, string> {
  const digests = database.tableNames().map(name => {
    const digest = createHash('sha256')
    database.view(view => {
      for (const { key, value } of view.range(storedTable(name))) digest.update(key).update(value)
    })
    return [name, digest.digest('hex')] as const
  })
  return Object.fromEntries(digests)
}
