/** The application as `start.ts` puts it together, every operation of it, with a log that is only counted. */

import { createHash } from 'node:crypto'
import type { Test } from 'tap'
import type { DeviceId, UserId } from '../../src/domain/ids.ts'
import type { Registration } from '../../src/keyserver/registration.ts'
import type { DevConsole } from '../../src/operations/console/console.ts'
import { Metrics } from '../../src/operations/metrics.ts'
import { realWorld } from '../../src/runtime/clock.ts'
import { ActorSystem } from '../../src/runtime/system.ts'
import { openApplication } from '../../src/server/application.ts'
import type { ApplicationConfig } from '../../src/server/application-config.ts'
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
  const signalling = new Signalling({
    ...world,
    system,
    devConsole: { onDecided, onPresence: () => undefined },
    version: '0.0.0',
    metrics: new Metrics(),
    onFault: error => t.fail(`a fault: ${error}`),
  })
  const application = openApplication({
    ...world,
    ...signalling,
    config: { ...CONFIG, ...options.config },
    isDevelopment: options.isDevelopment ?? true,
    secret: Buffer.alloc(32, 7),
    register: options.register ?? (async () => ({ index: logged++, vrfHash: world.randomBytes(64) })),
    onTokenReused: () => undefined,
    onFault(error) {
      throw error
    },
    onSmsStopped: () => undefined,
    identityOf: () => undefined,
    isConnected: (userId, deviceId) => signalling.connections.isConnected(userId, deviceId),
  })
  signalling.open(application)
  t.teardown(async () => {
    application.close()
    await world.database.close()
  })
  return {
    world,
    system,
    application,
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
