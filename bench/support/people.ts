/** People in a store, as if they had signed in with their devices: written to it directly while no server runs. */

import { randomBytes } from 'node:crypto'
import { Authentication } from '../../src/api/accounts/authentication.ts'
import { type AddressMethod, DEFAULT_SETTINGS } from '../../src/domain/accounts/account.ts'
import type { Session } from '../../src/domain/accounts/session.ts'
import type { Device, PushTokens } from '../../src/domain/devices/device.ts'
import {
  type DeviceId,
  type MethodId,
  newId,
  type RequestId,
  type TokenId,
  type UserId,
} from '../../src/domain/ids.ts'
import { deriveSecrets } from '../../src/domain/secrets.ts'
import { developmentKeys } from '../../src/server/development-keys.ts'
import { AccountStore } from '../../src/store/accounts/account-store.ts'
import { SessionStore } from '../../src/store/accounts/session-store.ts'
import { ContactStore } from '../../src/store/contacts/contact-store.ts'
import { ShareTokenStore } from '../../src/store/contacts/share-token-store.ts'
import { DeviceStore } from '../../src/store/devices/device-store.ts'
import { Database } from '../../src/store/engine/database.ts'
import { Expiries } from '../../src/store/engine/expiries.ts'
import { IdLists } from '../../src/store/engine/id-lists.ts'
import type { Change } from '../../src/store/engine/store.ts'
import { startServer } from './server.ts'

/** Whose push tokens a device has. */
export type PushProvider = 'apns' | 'fcm'

type Named = Pick<Person, 'userId'>

export interface Person {
  readonly userId: string
  readonly devices: readonly { readonly deviceId: string; readonly token: string }[]
}

/**
 * Makes a data folder for a development server, with people who have so many devices each. Everybody with a place in
 * `contacts` is a contact of all whose places are listed there.
 */
export async function prefillPeople(
  dataFolder: string,
  count: number,
  devicesEach: number,
  contacts: readonly (readonly number[])[] = [],
  provider?: PushProvider,
): Promise<Person[]> {
  // The server itself makes the store and its keys.
  const server = await startServer({ dataFolder })
  await server.end()
  const town = new Town(dataFolder)
  const people: Person[] = []
  for (let at = 0; at < count; at += AT_ONCE) {
    people.push(...(await town.settle(Math.min(AT_ONCE, count - at), devicesEach, provider)))
  }
  for (let at = 0; at < contacts.length; at += AT_ONCE) {
    const links = contacts.slice(at, at + AT_ONCE).flatMap((others, from) => {
      const one = people[at + from]!
      return others.map(other => [one, people[other]!] as const)
    })
    await town.link(links)
  }
  await town.close()
  return people
}

/** A data folder that a server has made, opened while none runs. */
export class Town {
  readonly #database: Database
  readonly #accounts: AccountStore
  readonly #devices: DeviceStore
  readonly #sessions: SessionStore
  readonly #contacts: ContactStore
  readonly #shareTokens: ShareTokenStore
  readonly #authentication: Authentication
  readonly #nowMs = Date.now()

  constructor(dataFolder: string) {
    this.#database = Database.open(dataFolder)
    const database = this.#database
    const expiries = new Expiries(database)
    this.#accounts = new AccountStore(database)
    this.#devices = new DeviceStore(database)
    this.#sessions = new SessionStore({ database, expiries, lifetimes: LIFETIMES })
    const lists = new IdLists()
    const { secret } = developmentKeys(dataFolder).keys
    const secrets = deriveSecrets(Buffer.from(secret, 'base64'))
    this.#contacts = new ContactStore({
      database,
      expiries,
      deferredTasks: { define() {}, leave() {} },
      lists,
      secrets,
      randomBytes,
      displayNameOf: () => NAME,
      tell: () => undefined,
      missedCallsOf: () => 0,
    })
    this.#shareTokens = new ShareTokenStore({ expiries, lists, secrets })
    this.#authentication = new Authentication({
      secrets,
      lifetimes: LIFETIMES,
      sessions: this.#sessions,
      nowMs: () => this.#nowMs,
    })
  }

  /** Tokens by which their owners are found, in the order of the people. */
  shareTokensOf(people: readonly Person[]): Promise<string[]> {
    const terms = { createdAtMs: this.#nowMs, expiresAtMs: this.#nowMs + SHARED_MS, usesMax: USES_MAX }
    return this.#database.change(change =>
      people.map(({ userId }) => {
        const tokenId = newId(randomBytes) as TokenId
        return this.#shareTokens.create(change, { ...terms, userId: BigInt(userId) as UserId, tokenId }).text
      }),
    )
  }

  settle(count: number, devicesEach: number, provider?: PushProvider): Promise<Person[]> {
    return this.#database.change(change =>
      Array.from({ length: count }, () => this.#newPerson(change, devicesEach, provider)),
    )
  }

  link(pairs: readonly (readonly [Named, Named])[]): Promise<void> {
    return this.#database.change(change => {
      for (const [one, other] of pairs) this.#makeContacts(change, BigInt(one.userId), BigInt(other.userId))
    })
  }

  close(): Promise<void> {
    return this.#database.close()
  }

  #newPerson(change: Change, devicesEach: number, provider: PushProvider | undefined): Person {
    const nowMs = this.#nowMs
    const userId = newId(randomBytes) as UserId
    const id = newId(randomBytes) as MethodId
    const key = `user${userId}@bench.example`
    const method: AddressMethod = {
      id,
      kind: 'email',
      key,
      shown: key,
      addedAtMs: nowMs,
      lastUsedAtMs: nowMs,
    }
    this.#accounts.put(change, userId, {
      displayName: NAME,
      createdAtMs: nowMs,
      settings: DEFAULT_SETTINGS,
      primaryMethodId: id,
      acceptLanguage: 'en',
    })
    this.#accounts.putMethod(change, userId, method)
    const devices = Array.from({ length: devicesEach }, () => this.#newDevice(change, userId, provider))
    return { userId: String(userId), devices }
  }

  #newDevice(change: Change, userId: UserId, provider: PushProvider | undefined): Person['devices'][number] {
    const deviceId = newId(randomBytes) as DeviceId
    const device: Device = {
      deviceId,
      info: { platform: 'ios', model: 'iPhone15,2', name: 'A telephone', appVersion: '1.4.2' },
      publicKey: randomBytes(65).toString('base64'),
      keyAlgorithm: 'P-256',
      publicKeyIndex: 0,
      publicKeyHash: randomBytes(64).toString('base64'),
      ...(provider && { push: newPushTokens(provider, this.#nowMs) }),
      createdAtMs: this.#nowMs,
      lastSeenAtMs: this.#nowMs,
    }
    this.#devices.put(change, userId, device)
    return { deviceId: String(deviceId), token: this.#newSession(change, userId, deviceId) }
  }

  #newSession(change: Change, userId: UserId, deviceId: DeviceId): string {
    const sessionId = randomBytes(16)
    const session = sessionInUse(userId, this.#nowMs)
    this.#sessions.create(change, sessionId, session)
    this.#sessions.bind(change, sessionId, deviceId)
    return this.#authentication.tokensOf(sessionId, session).accessToken
  }

  #makeContacts(change: Change, one: bigint, other: bigint): void {
    const [senderId, receiverId] = [one as UserId, other as UserId]
    const requestId = newId(randomBytes) as RequestId
    const command = { requestId, senderId, receiverId, route: 'token', message: undefined } as const
    this.#contacts.request(change, command, { kind: 'created', isDelivered: true, replaces: undefined })
    this.#contacts.accept(change, requestId, receiverId)
  }
}

/** As long as the providers make them. */
function newPushTokens(provider: PushProvider, registeredAtMs: number): PushTokens {
  if (provider === 'fcm') return { fcmToken: randomBytes(106).toString('base64url'), registeredAtMs }
  const newToken = () => randomBytes(32).toString('hex')
  const bundleId = 'org.example.callsign'
  return { apnsToken: newToken(), apnsVoipToken: newToken(), bundleId, registeredAtMs }
}

/** As the server keeps one whose first use has been noted, before it is bound to a device. */
export function sessionInUse(userId: UserId, nowMs: number): Session {
  return {
    userId,
    generation: 1,
    rotatedAtMs: nowMs,
    isPairUsed: true,
    createdAtMs: nowMs,
    authenticatedAtMs: nowMs,
    lastUsedAtMs: nowMs,
    endsAtMs: nowMs + LIFETIMES.sessionS * 1000,
    methods: ['otp'],
    userAgent: 'Callsign/1.4.2 (iPhone15,2; iOS 18.4)',
  }
}

const NAME = 'Ann Example'
const AT_ONCE = 500
const SHARED_MS = 30 * 86_400_000
const USES_MAX = 100
/** Those of the server. */
export const LIFETIMES = { accessS: 3_600, refreshS: 60 * 86_400, sessionS: 365 * 86_400 }
