/**
 * Operations of the application API without sockets: a real store in a temporary folder, a clock that tests move, and
 * the outbox laid open. Requests take the way of real ones: routes, authentication, rates, bodies, problem bodies.
 */

import { Authentication } from '../../src/api/accounts/authentication.ts'
import type { Operation, OperationForm } from '../../src/api/table/operation.ts'
import { operationRoutes } from '../../src/api/table/operation-routes.ts'
import { RequestRates } from '../../src/api/table/request-rates.ts'
import { type AddressMethod, DEFAULT_SETTINGS } from '../../src/domain/accounts/account.ts'
import { type Session, withProof } from '../../src/domain/accounts/session.ts'
import type { Device } from '../../src/domain/devices/device.ts'
import { type DeviceId, type MethodId, newId, type UserId } from '../../src/domain/ids.ts'
import { LANES, type OutboxMessage } from '../../src/domain/messages/outbox-message.ts'
import { type Rates, USUAL_RATES } from '../../src/domain/rates.ts'
import { openStores } from '../../src/server/application-stores.ts'
import { sessionIdOf } from '../../src/store/accounts/session-store.ts'
import type { LmdbStore } from '../../src/store/engine/lmdb-store.ts'
import type { NoticesDeps } from '../../src/store/messages/notices.ts'
import { isStream } from '../../src/transport/answer-body.ts'
import { problemOf } from '../../src/transport/problem.ts'
import { networkOf } from '../../src/transport/remote-address.ts'
import type { AnswerBody, HttpAnswer, HttpRoute } from '../../src/transport/route.ts'
import { Router } from '../../src/transport/router.ts'
import { DocumentedAnswers } from './documented.ts'
import { openRehearsed, type RehearsedDatabase } from './memory-disk.ts'
import type { FakeWorld } from './world.ts'

export type TestWorld = ReturnType<typeof worldOf>

export interface WorldOptions {
  /** Whether each change is rehearsed first (`Rehearsals`); it is unless this says false. */
  readonly rehearses?: boolean
  readonly rates?: boolean | Rates
  /** 32 bytes of this. */
  readonly secret?: number
  /** The database as the stores know it. */
  readonly around?: (database: LmdbStore) => LmdbStore
  readonly isConnected?: NoticesDeps['isConnected']
}

/** Everything that operations are made from. `folder` may hold a store of an earlier world that was closed. */
export function openWorld(folder: string, startsAtMs = Date.UTC(2026, 0, 1), options: WorldOptions = {}) {
  const clock = stillClock(startsAtMs)
  return worldOf(openRehearsed(folder, clock.nowMs, options.rehearses), clock, options)
}

/** The world over a database that is open. */
export function worldOf(
  { database, rehearsals }: RehearsedDatabase,
  clock: Pick<FakeWorld, 'nowMs' | 'monotonicMs' | 'advance'>,
  options: WorldOptions = {},
) {
  const { around = database => database, rates } = options
  const { randomBytes } = rehearsals
  const nowMs = rehearsals.clock(() => clock.nowMs())
  const stores = openStores(around(database), options.isConnected ?? (() => false), {
    secret: Buffer.alloc(32, options.secret ?? 7),
    lifetimes: { accessS: 3600, refreshS: 60 * 86_400, sessionS: 365 * 86_400 },
    retention: { reportsDays: 180, auditDays: 365 },
    historyDays: 90,
    nowMs,
    randomBytes,
    onFault: error => {
      throw error
    },
  })
  const { expiries, outbox } = stores
  const monotonicMs = rehearsals.clock(() => clock.monotonicMs())
  const rateLimits = rates === true ? USUAL_RATES : rates || undefined
  const news: (readonly [UserId, DeviceId])[] = []
  database.subscribe('inbox-news', ({ userId, deviceId }) => news.push([userId, deviceId]))
  return {
    ...stores,
    stores,
    database,
    rehearsals,
    /** The devices that were told that there is something in their inbox. */
    news,
    authentication: new Authentication({ ...stores, nowMs }),
    randomBytes: (length: number): Uint8Array => randomBytes(length),
    nowMs,
    monotonicMs,
    rateLimits,
    requestRates: rateLimits && new RequestRates(rateLimits, monotonicMs),
    idsAs: 'string' as const,
    language: 'en' as const,
    isDevelopment: true,
    publicUrl: () => 'https://callsign.example',
    /** Moves the clock alone. */
    tick: (ms: number): void => clock.advance(ms),
    /** Moves the clock and ends expired rows. */
    async advance(ms: number): Promise<void> {
      clock.advance(ms)
      await stores.inbox.keepLong(stores.database, clock.nowMs())
      while ((await expiries.sweep(database, clock.nowMs(), 500)) > 0);
    },
    /** Takes the messages in the outbox, oldest first. */
    async takeSent(): Promise<OutboxMessage[]> {
      const sent: OutboxMessage[] = []
      for (const lane of LANES) {
        const queue = outbox.queue(lane)
        const waiting = queue.take(clock.nowMs() + 86_400_000, 10_000)
        await queue.settle(waiting.map(each => ({ waiting: each })))
        sent.push(...waiting.map(({ message }) => message))
      }
      return sent
    },
  }
}

/** Stands still until `advance`. */
function stillClock(startsAtMs: number): Parameters<typeof worldOf>[1] {
  let nowMs = startsAtMs
  return {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    advance: ms => {
      nowMs += ms
    },
  }
}

export interface TestAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** The parsed JSON, or undefined for no body. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any form
  readonly body: any
  /** The body as it was sent. */
  readonly text: string
}

export interface TestRequest {
  readonly token?: string
  /** A value to send as JSON, or bytes as they are. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** IPv4, 127.0.0.1 if left out. */
  readonly address?: readonly number[]
}

/**
 * Sends a request to one of the operations, such as `GET /app/api/friend?limit=2`. Rejects when the answer is not as
 * the document has it.
 */
export type Send = (methodAndPath: string, request?: TestRequest) => Promise<TestAnswer>

export function sender<World extends Parameters<typeof operationRoutes>[1]>(
  world: World,
  operations: readonly Operation<NoInfer<World>>[],
): Send {
  return routeSender(operationRoutes(operations, world), operations)
}

/** As `sender`, by routes that are there. */
export function routeSender(routes: readonly HttpRoute[], operations: readonly OperationForm[]): Send {
  const router = new Router(routes)
  const documented = new DocumentedAnswers(operations)
  const send: Send = async (methodAndPath, { token, body, headers = {}, address = [127, 0, 0, 1] } = {}) => {
    const [method = '', target = ''] = methodAndPath.split(' ')
    const [path = '', query = ''] = target.split('?')
    const match = router.find(path)
    const route = match?.targets.get(method)?.route
    if (match === undefined || route === undefined) throw new Error(`no operation at ${methodAndPath}`)
    const sent = new Map(Object.entries({ ...(token && { authorization: `Bearer ${token}` }), ...headers }))
    const bytes = Buffer.from(body === undefined ? '' : body instanceof Uint8Array ? body : formatBody(body))
    try {
      const answering = route.handle({
        method,
        path,
        params: match.params,
        query,
        requestId: 'test-request',
        contentType: headers['content-type'] ?? 'application/json',
        header: name => sent.get(name) ?? '',
        network: networkOf(Uint8Array.from(address)),
        body: bytes,
      })
      // As the transport's memory, which goes back when the handler has returned.
      bytes.fill(0)
      const answer = await answering
      const text = await textOf(answer.body)
      return {
        status: answer.status,
        headers: headersOf(answer),
        body: bodyOf(answer, text),
        text,
      }
    } catch (error) {
      const problem = problemOf(error, 'test-request')
      if (problem.status === 500) throw error
      return {
        status: problem.status,
        headers: headersOf({ ...problem, noStore: true }),
        body: JSON.parse(problem.body),
        text: problem.body,
      }
    }
  }
  return async (methodAndPath, request) => {
    const answer = await send(methodAndPath, request)
    const [method = '', target = ''] = methodAndPath.split(' ')
    documented.check(method, router.find(target.split('?')[0]!)!.path, answer)
    return answer
  }
}

function bodyOf({ status, contentType }: HttpAnswer, text: string): unknown {
  if (!JSON_TYPE.test(contentType)) return status === 204 ? undefined : text
  return text === '' ? undefined : JSON.parse(text)
}

const JSON_TYPE = /^application\/(?:[a-z]+\+)?json\b/

async function textOf(body: AnswerBody): Promise<string> {
  const parts: Uint8Array[] = []
  if (isStream(body)) for await (const part of body) parts.push(part)
  else parts.push(Buffer.from(body))
  return Buffer.concat(parts).toString('utf8')
}

/** By lower-case name. */
function headersOf({
  noStore,
  headers = [],
}: Pick<HttpAnswer, 'noStore' | 'headers'>): Record<string, string> {
  const cacheControl = noStore ? { 'cache-control': 'no-store' } : {}
  return {
    ...cacheControl,
    ...Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value])),
  }
}

/** A user with one proven address and a session, as if they had signed in, and had proven then once more who they are. */
export interface TestUser {
  readonly userId: UserId
  readonly email: string
  readonly sessionId: Uint8Array
  readonly token: string
}

export async function newUser(world: TestWorld, displayName = 'Ann', email?: string): Promise<TestUser> {
  const nowMs = world.nowMs()
  const userId = newId(world.randomBytes) as UserId
  const id = newId(world.randomBytes) as MethodId
  const key = email ?? `user${userId}@example.org`
  const method: AddressMethod = { id, kind: 'email', key, shown: key, addedAtMs: nowMs, lastUsedAtMs: nowMs }
  await world.database.change(change => {
    world.accounts.put(change, userId, {
      displayName,
      createdAtMs: nowMs,
      settings: DEFAULT_SETTINGS,
      primaryMethodId: id,
      acceptLanguage: 'en',
    })
    world.accounts.putMethod(change, userId, method)
  })
  return { userId, email: key, ...(await newSession(world, userId)) }
}

export async function newSession(world: TestWorld, userId: UserId, deviceId?: DeviceId) {
  const nowMs = world.nowMs()
  const sessionId = world.randomBytes(16)
  const session: Session = {
    userId,
    ...(deviceId === undefined ? {} : { deviceId }),
    generation: 1,
    rotatedAtMs: nowMs,
    isPairUsed: false,
    createdAtMs: nowMs,
    provenAtMs: nowMs,
    isProofSigned: true,
    lastUsedAtMs: nowMs,
    endsAtMs: nowMs + world.lifetimes.sessionS * 1000,
    methods: ['otp'],
    userAgent: 'test',
  }
  await world.database.change(change => world.sessions.create(change, sessionId, session))
  return { sessionId, token: world.authentication.tokensOf(sessionId, session).accessToken }
}

/** The session of the token has a fresh proof, as if its user had confirmed a code and its device had signed that. */
export async function prove(world: TestWorld, token: string): Promise<void> {
  const { sessionName } = world.authentication.requesterOf(`Bearer ${token}`)
  const sessionId = sessionIdOf(sessionName)
  await world.database.change(change => {
    const session = world.sessions.read(change, sessionId)
    if (session === undefined) throw new Error('the session is gone')
    world.sessions.put(change, sessionId, withProof(session, { nowMs: change.nowMs, isSigned: true }))
  })
}

/**
 * A device of the user as if it had been registered, with push tokens; the log knows nothing of it. The user's first one is
 * registered by the sessions that they have.
 */
export async function newDevice(world: TestWorld, userId: UserId, push = true): Promise<Device> {
  const device: Device = {
    deviceId: newId(world.randomBytes) as DeviceId,
    info: { platform: 'ios', name: 'a phone' },
    publicKey: Buffer.from(world.randomBytes(65)).toString('base64'),
    keyAlgorithm: 'P-256',
    publicKeyIndex: 0,
    publicKeyHash: Buffer.from(world.randomBytes(64)).toString('base64'),
    ...(push
      ? {
          push: {
            fcmToken: `token-${newId(world.randomBytes)}`,
            registeredAtMs: { fcmToken: world.nowMs() },
          },
        }
      : {}),
    createdAtMs: world.nowMs(),
    lastSeenAtMs: world.nowMs(),
  }
  await world.database.change(change => {
    const isFirst = world.devices.countActive(change, userId) === 0
    world.devices.put(change, userId, device)
    if (!isFirst) return
    for (const sessionId of world.sessions.idsOf(change, userId))
      world.sessions.bind(change, sessionId, device.deviceId)
  })
  return device
}

/** The user's newest device list names these devices; the log knows nothing of it. */
export async function newDeviceList(
  world: TestWorld,
  userId: UserId,
  deviceIds: readonly DeviceId[],
  seq = 0,
): Promise<void> {
  const logged = { list: world.randomBytes(99), seq, deviceIds, index: 0, vrfHash: world.randomBytes(64) }
  await world.database.change(change => world.deviceLists.finish(change, userId, logged))
}

export function formatBody(body: unknown): string {
  return JSON.stringify(body, (_, value) => (typeof value === 'bigint' ? String(value) : value))
}
