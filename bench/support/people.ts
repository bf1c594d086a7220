/**
 * People in a store, as if they had signed in with their devices: written to it directly while no server runs. The log has
 * their keys, with random bytes for a VRF hash. `fsck` finds nothing wrong with such a store: see `server.ts`.
 */

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
import { VRF_HASH_BYTES } from '../../src/log/entry.ts'
import { developmentKeys } from '../../src/server/development/development-keys.ts'
import { AccountStore } from '../../src/store/accounts/account-store.ts'
import { SessionStore } from '../../src/store/accounts/session-store.ts'
import { ContactStore } from '../../src/store/contacts/contact-store.ts'
import { FriendRequestTable } from '../../src/store/contacts/friend-request-table.ts'
import { ShareTokenStore } from '../../src/store/contacts/share-token-store.ts'
import { DeviceStore } from '../../src/store/devices/device-store.ts'
import { Expiries } from '../../src/store/engine/expiries.ts'
import type { Change } from '../../src/store/engine/store.ts'
import { UserChanges } from '../../src/store/operators/user-changes.ts'
import { IdLists } from '../../src/store/tables/id-lists.ts'
import { LogEngine } from './log-engine.ts'
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
 * `contacts` is a contact of all others listed there.
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
  const town = await Town.open(dataFolder)
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
  readonly #log: LogEngine
  readonly #accounts: AccountStore
  readonly #devices: DeviceStore
  readonly #sessions: SessionStore
  readonly #contacts: ContactStore
  readonly #shareTokens: ShareTokenStore
  readonly #authentication: Authentication
  readonly #nowMs = Date.now()

  private constructor(dataFolder: string, log: LogEngine) {
    this.#log = log
    const { database } = log
    const expiries = new Expiries()
    this.#accounts = new AccountStore(database, new UserChanges(expiries))
    this.#devices = new DeviceStore(database)
    this.#sessions = new SessionStore({ database, expiries, lifetimes: LIFETIMES })
    const lists = new IdLists()
    const { secret } = developmentKeys(dataFolder).keys
    const secrets = deriveSecrets(Buffer.from(secret, 'base64'))
    this.#contacts = new ContactStore({
      expiries,
      deferredTasks: { define() {}, leave() {} },
      lists,
      friendRequests: new FriendRequestTable({ database, expiries, secrets, randomBytes }, lists),
      displayNameOf: () => NAME,
      tell: () => undefined,
      missedCallsOf: () => 0,
      haveCircle: () => false,
    })
    this.#shareTokens = new ShareTokenStore(expiries, lists, secrets)
    this.#authentication = new Authentication({
      secrets,
      lifetimes: LIFETIMES,
      sessions: this.#sessions,
      markPairUsed: async () => undefined,
      nowMs: () => this.#nowMs,
    })
  }

  static async open(dataFolder: string): Promise<Town> {
    return new Town(dataFolder, await LogEngine.open(dataFolder, 'all'))
  }

  /** Tokens by which their owners are found, in the order of the people. */
  shareTokensOf(people: readonly Person[]): Promise<string[]> {
    const terms = { createdAtMs: this.#nowMs, expiresAtMs: this.#nowMs + SHARED_MS, usesMax: USES_MAX }
    return this.#log.database.change(change =>
      people.map(({ userId }) => {
        const tokenId = newId(randomBytes) as TokenId
        return this.#shareTokens.create(change, { ...terms, userId: BigInt(userId) as UserId, tokenId }).text
      }),
    )
  }

  async settle(count: number, devicesEach: number, provider?: PushProvider): Promise<Person[]> {
    const [first, nowMs] = [this.#log.treeSize, this.#nowMs]
    const keys = Array.from({ length: count }, () => newId(randomBytes) as UserId).flatMap(userId =>
      Array.from({ length: devicesEach }, () => newKey(userId)),
    )
    await this.#log.append(keys.length, KEYS_IN_FLIGHT, index => keys[index - first]!)
    return this.#log.database.change(change => {
      const devices = keys.map((key, at) => newDevice(key, first + at, nowMs, provider))
      return Array.from({ length: count }, (_, at) => {
        const own = at * devicesEach
        return this.#addPerson(change, keys[own]!.userId, devices.slice(own, own + devicesEach))
      })
    })
  }

  link(pairs: readonly (readonly [Named, Named])[]): Promise<void> {
    return this.#log.database.change(change => {
      for (const [one, other] of pairs) this.#makeContacts(change, BigInt(one.userId), BigInt(other.userId))
    })
  }

  close(): Promise<void> {
    return this.#log.close()
  }

  #addPerson(change: Change, userId: UserId, devices: readonly Device[]): Person {
    const nowMs = this.#nowMs
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
    return { userId: String(userId), devices: devices.map(device => this.#addDevice(change, userId, device)) }
  }

  /** In the steps of a registration, which take the key for the user. */
  #addDevice(change: Change, userId: UserId, device: Device): Person['devices'][number] {
    const { deviceId, info, publicKey, keyAlgorithm, createdAtMs: startedAtMs } = device
    const sessionId = randomBytes(16)
    const session = sessionInUse(userId, this.#nowMs)
    this.#sessions.create(change, sessionId, session)
    this.#devices.begin(change, userId, { deviceId, sessionId, info, publicKey, keyAlgorithm, startedAtMs })
    this.#devices.finish(change, userId, device)
    this.#sessions.bind(change, sessionId, deviceId)
    return {
      deviceId: String(deviceId),
      token: this.#authentication.tokensOf(sessionId, session).accessToken,
    }
  }

  #makeContacts(change: Change, one: bigint, other: bigint): void {
    const [senderId, receiverId] = [one as UserId, other as UserId]
    const requestId = newId(randomBytes) as RequestId
    const command = { requestId, senderId, receiverId, route: 'token', message: undefined } as const
    this.#contacts.request(change, command, { kind: 'created', isDelivered: true, replaces: undefined })
    this.#contacts.accept(change, requestId, receiverId)
  }
}

interface DeviceKey {
  readonly userId: UserId
  readonly deviceId: DeviceId
  readonly vrfHash: Uint8Array
  readonly publicKey: string
}

function newKey(userId: UserId): DeviceKey {
  return {
    userId,
    deviceId: newId(randomBytes) as DeviceId,
    vrfHash: randomBytes(VRF_HASH_BYTES),
    publicKey: randomBytes(65).toString('base64'),
  }
}

function newDevice(
  { deviceId, publicKey, vrfHash }: DeviceKey,
  publicKeyIndex: number,
  nowMs: number,
  provider: PushProvider | undefined,
): Device {
  return {
    deviceId,
    info: { platform: 'ios', model: 'iPhone15,2', name: 'A telephone', appVersion: '1.4.2' },
    publicKey,
    keyAlgorithm: 'P-256',
    publicKeyIndex,
    publicKeyHash: Buffer.from(vrfHash).toString('base64'),
    ...(provider && { push: newPushTokens(provider, nowMs) }),
    createdAtMs: nowMs,
    lastSeenAtMs: nowMs,
  }
}

/** As long as the providers make them. */
function newPushTokens(provider: PushProvider, registeredAtMs: number): PushTokens {
  if (provider === 'fcm')
    return { fcmToken: randomBytes(106).toString('base64url'), registeredAtMs: { fcmToken: registeredAtMs } }
  const newToken = () => randomBytes(32).toString('hex')
  const bundleId = 'org.example.callsign'
  return {
    apnsToken: newToken(),
    apnsVoipToken: newToken(),
    bundleId,
    registeredAtMs: { apnsToken: registeredAtMs, apnsVoipToken: registeredAtMs },
  }
}

/** As the server keeps one whose first use has been noted, before it is bound to a device. */
export function sessionInUse(userId: UserId, nowMs: number): Session {
  return {
    userId,
    generation: 1,
    rotatedAtMs: nowMs,
    isPairUsed: true,
    createdAtMs: nowMs,
    lastUsedAtMs: nowMs,
    endsAtMs: nowMs + LIFETIMES.sessionS * 1000,
    methods: ['otp'],
    userAgent: 'Callsign/1.4.2 (iPhone15,2; iOS 18.4)',
  }
}

const NAME = 'Ann Example'
const AT_ONCE = 500
const KEYS_IN_FLIGHT = 2_048
const SHARED_MS = 30 * 86_400_000
const USES_MAX = 100
/** Those of the server. */
export const LIFETIMES = { accessS: 3_600, refreshS: 60 * 86_400, sessionS: 365 * 86_400 }
