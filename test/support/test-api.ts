/**
 * The set-up for operations: the application in process as `start.ts` puts it together, over a real store, with a clock
 * that tests move. Its log is counted only, unless a test asks for a real one.
 */

import { createHash } from 'node:crypto'
import type { Test } from 'tap'
import { LiveConnections } from '../../actors/presence.ts'
import { Authentication } from '../../src/api/accounts/authentication.ts'
import type { ApiDeps } from '../../src/api/deps.ts'
import { OPERATIONS } from '../../src/api/operations.ts'
import { Admission } from '../../src/api/table/admission.ts'
import { generateUserTokenKey, userTokenKey } from '../../src/domain/accounts/user-token.ts'
import type { KeysShown } from '../../src/domain/contacts/friend-request.ts'
import type { DeviceId, UserId } from '../../src/domain/ids.ts'
import type { BadgeState, NoticeBody } from '../../src/domain/messages/notice.ts'
import type { DevConsole } from '../../src/operations/console/console.ts'
import { Metrics } from '../../src/operations/metrics.ts'
import { realWorld } from '../../src/runtime/clock.ts'
import { ActorSystem } from '../../src/runtime/system.ts'
import type { Stores } from '../../src/server/application-stores.ts'
import { CallRooms } from '../../src/server/call-rooms.ts'
import type { ApplicationConfig } from '../../src/server/settings/application-config.ts'
import { dismissalBy, ownActors, Signalling } from '../../src/server/signalling.ts'
import { type Application, openApplication } from '../../src/server/writer/writes.ts'
import type { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import { openWorld, routeSender, type Send, type TestWorld } from './application.ts'
import { IdentityStandIns } from './identity-stand-ins.ts'
import { RegistrationLog } from './registration-log.ts'
import { type SignInRequests, signInRequests } from './sign-in-requests.ts'
import { storedTable } from './stored-table.ts'

export const TEST_CONFIG: ApplicationConfig = {
  idsAs: 'string',
  lifetimes: { accessS: 3600, refreshS: 60 * 86_400, sessionS: 365 * 86_400 },
  retention: { reportsDays: 180, auditDays: 365 },
  historyDays: 90,
  stepUpS: 900,
  signInWaitH: 72,
  testIdentifiers: new Map(),
  smsCountries: new Set(),
  blockedCountries: new Set(['KP']),
  appName: 'Callsign',
  language: 'en',
  providers: [],
  contactsBy: 'users',
  deepLinkScheme: 'callsign',
  webPushHosts: ['push.example'],
  tokenAudiences: ['https://api.example.org', 'reports'],
  tokenKeys: [],
  appleAppIds: [],
  androidApps: [],
  smsBudgets: { rangeHourly: 30, networkHourly: 30, callingCodeHourly: 200, daily: 10_000 },
  lookupsNeedToken: false,
  webhookWaitingMax: 1_000_000,
  passkeys: {
    rpId: 'example.org',
    origins: ['https://example.org', `android:apk-key-hash:${'A'.repeat(43)}`],
    takesLoopback: false,
  },
}

export const USER_TOKEN_KEY = userTokenKey(generateUserTokenKey(length => new Uint8Array(length).fill(7)))

/** Without them production has no codes. Nothing is sent: the outbox keeps it. */
const SENDERS = {
  mail: { url: 'smtp://127.0.0.1:1', from: 'callsign@example.org' },
  sms: { url: 'http://127.0.0.1:1' },
} satisfies Partial<ApplicationConfig>

export interface TestApiOptions {
  /** An earlier set-up's folder, whose store goes on. */
  readonly folder?: string
  readonly config?: Partial<ApplicationConfig>
  readonly rates?: boolean
  /** Whether each change is rehearsed first (`Rehearsals`); it is unless this says false. */
  readonly rehearses?: boolean
  /** By default, unless there are identity providers. */
  readonly isDevelopment?: boolean
  /** Google and Apple, on the loopback address. */
  readonly identities?: 'with Apple key' | 'without Apple key'
  /** A log in the store, with an appender and faults by order. */
  readonly log?: 'appended' | 'frozen'
  /** In place of the log. */
  readonly register?: ApiDeps['register']
  /** In place of those of an index; it has none by default. */
  readonly proveAbsences?: ApiDeps['proveAbsences']
  /** In place of what contacts show one another. */
  readonly keysShown?: (asker: UserId, owner: UserId) => KeysShown | undefined
  /** Told of each decision about a call once it is durable. */
  readonly onDecided?: DevConsole['onDecided']
}

export interface Told {
  readonly userId: UserId
  readonly body: NoticeBody | BadgeState
  /** The device that the message passes over. */
  readonly except?: DeviceId | undefined
}

export interface TestApi extends SignInRequests {
  readonly world: TestWorld
  readonly system: ActorSystem
  readonly application: Application
  readonly stores: Stores
  readonly connections: LiveConnections
  readonly rooms: CallRooms
  readonly signalling: Signalling
  readonly send: Send
  /** Messages to users, oldest first, including the badges of connected devices. */
  readonly told: Told[]
  /** Keys that the log is to have: base64 of the hash, and whose it is. */
  readonly keysLogged: Map<string, { readonly userId: bigint; readonly deviceId: bigint }>
  /** Closed unless the options ask for it. */
  readonly log: RegistrationLog
  /** Not started unless the options ask for them. */
  readonly identities: IdentityStandIns
  /** Moves the clock and ends expired rows. */
  readonly advance: (ms: number) => Promise<void>
  /** Ends it as the process would end, whatever is under way. */
  readonly close: () => Promise<void>
}

export async function openTestApi(t: Test, options: TestApiOptions = {}): Promise<TestApi> {
  const connections = new LiveConnections()
  const [log, identities] = [new RegistrationLog(), new IdentityStandIns()]
  const world = openWorld(options.folder ?? t.testdir(), undefined, {
    rehearses: options.rehearses ?? true,
    rates: options.rates ?? false,
    isConnected: (userId, deviceId) => connections.isConnected(userId, deviceId),
  })
  if (options.log !== undefined) await log.open(world.database, { isFrozen: options.log === 'frozen' })
  if (options.identities !== undefined) await identities.start(world.nowMs)
  const parts = openParts(t, world, { connections, log, identities, options })
  let isClosed = false
  const close = async () => {
    if (isClosed) return
    isClosed = true
    parts.application.close()
    await log.close()
    await identities.stop()
    await world.database.close()
  }
  t.teardown(close)
  const send = routeSender(parts.application.routes, OPERATIONS)
  return {
    world,
    ...parts,
    ...signInRequests(world, send, identities),
    connections,
    send,
    told: toldIn(world),
    log,
    identities,
    advance: world.advance,
    close,
  }
}

interface GivenParts {
  readonly connections: LiveConnections
  readonly log: RegistrationLog
  readonly identities: IdentityStandIns
  readonly options: TestApiOptions
}

function openParts(t: Test, world: TestWorld, { connections, log, identities, options }: GivenParts) {
  // Only what operations and registrations ask for has faults by order.
  const stores = { ...world.stores, database: log.isOpen ? log.around(world.database) : world.database }
  const { keysShown, onDecided = () => undefined } = options
  const isDevelopment = options.isDevelopment ?? options.identities === undefined
  const system = new ActorSystem({
    world: { ...realWorld(), nowMs: world.nowMs, monotonicMs: world.nowMs },
    fatal: error => t.fail(`an actor ended everything: ${error}`),
    onFailure: ({ kind, error }) => t.fail(`${kind} failed: ${error}`),
  })
  const devConsole = { onDecided, onPresence: () => undefined }
  const shared = { ...world, system, metrics: new Metrics(), devConsole }
  const rooms = new CallRooms({ ...shared, presence: connections })
  const authentication = new Authentication({ ...stores, nowMs: world.nowMs, onSeen: rooms.onSeen })
  const signalling = new Signalling({
    ...shared,
    admission: world.requestRates && new Admission(world.requestRates, authentication),
    actors: ownActors(system, rooms, { connections, dismissalOf: dismissalBy(stores), devConsole }),
    connections,
    hasTestTopics: options.isDevelopment ?? options.identities === undefined,
    authenticate: authorization => authentication.requesterOf(authorization),
    runConnect: connect => connect(),
    version: '0.0.0',
    onFault: error => t.fail(`a fault: ${error}`),
  })
  if (keysShown !== undefined) stores.contacts.keysShown = (_, asker, owner) => keysShown(asker, owner)
  const keysLogged: TestApi['keysLogged'] = new Map()
  let logged = 0
  const count = async () => ({ index: logged++, vrfHash: world.randomBytes(64) })
  const application = openApplication({
    ...world,
    stores,
    authentication,
    lookUpKeys: () => '{"results":[]}',
    proveAbsences: options.proveAbsences ?? (async () => () => undefined),
    askRoom: rooms.ask,
    operateRoom: rooms.operate,
    callIndex: rooms.index,
    liveCallsOf: userId => rooms.index.callsOf(userId),
    onRingTaken: rooms.onRingTaken,
    config: {
      ...TEST_CONFIG,
      ...(options.identities && identities.config(options.identities === 'with Apple key')),
      ...(options.identities && !isDevelopment && SENDERS),
      ...options.config,
    },
    isDevelopment,
    register: options.register ?? (log.isOpen ? log.register : count),
    userTokenKey: USER_TOKEN_KEY,
    onSendingLost: () => undefined,
    onTokenReused: () => undefined,
    onSmsStopped: () => undefined,
    onLoginChecked: () => undefined,
    onTryFailed: () => undefined,
    identityOf: vrfHash => keysLogged.get(Buffer.from(vrfHash).toString('base64')),
  })
  return { system, application, stores, rooms, signalling, keysLogged }
}

/** The events that users get after this call. */
function toldIn({ database, notices, contacts, rehearsals, nowMs }: TestWorld): Told[] {
  const told: Told[] = []
  const tell = notices.tell.bind(notices)
  notices.tell = (change, userId, body, except) => {
    if (!rehearsals.isRehearsing) told.push({ userId, body, except })
    tell(change, userId, body, except)
  }
  database.subscribe('badge-changed', ({ userId }) => {
    const badge = database.view(view => contacts.badgeOf(view, userId, nowMs()))
    told.push({ userId, body: { kind: 'badge', badge } })
  })
  return told
}

/** SHA-256 of the rows of each table, to see whether anything was stored. */
export function tableDigests(database: LmdbStore): Record<string, string> {
  const digests = database.tableNames().map(name => {
    const digest = createHash('sha256')
    database.view(view => {
      for (const { key, value } of view.range(storedTable(name))) digest.update(key).update(value)
    })
    return [name, digest.digest('hex')] as const
  })
  return Object.fromEntries(digests)
}
